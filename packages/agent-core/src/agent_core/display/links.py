"""The web addresses that a display may offer: http and https, in one plain spelling.

Parsers of URLs disagree on the odd ones, and phishing lives in the disagreement. So anything odd is
refused (white space, backslashes, user names, escapes in the host), and what remains is written in
ASCII, with the host in punycode: a look-alike letter shows.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

MAX_URL: Final = 2048
MAX_HOST: Final = 253  # RFC 1035
MAX_PORT: Final = 65_535

_NETLOC = re.compile(r"(?:\[([0-9A-Fa-f:.]++)\]|([^\[\]:@]++))(?::([0-9]{0,5}))?")
_HOST = re.compile(r"[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+\.?")
_KEPT = "!$&'()*+,;=:@/?%~"  # RFC 3986, section 2: what needs no percent sign in path and query


class UrlRefusedError(ValueError):
    """An address may not be offered; the message says why."""


def plain_url(url: str, *, quoting: str = "") -> str:
    """Return *url* in its plain spelling.

    Args:
        quoting: Characters that the place where the address goes cannot hold as they are.

    Raises:
        UrlRefusedError: If it is not a strict http or https address of at most `MAX_URL` characters.
    """
    parts = _split(url)
    if parts.scheme not in ("http", "https"):
        raise UrlRefusedError("only http and https addresses are allowed")
    kept = "".join(character for character in _KEPT if character not in quoting)
    plain = f"{parts.scheme}://{_netloc(parts.netloc)}{quote(parts.path, kept)}"
    plain += f"?{quote(parts.query, kept)}" if parts.query else ""
    plain += f"#{quote(parts.fragment, kept)}" if parts.fragment else ""
    return _short(plain)


def _split(url: str) -> SplitResult:
    _short(url)
    if not url.isprintable() or "\\" in url or any(map(str.isspace, url)):
        raise UrlRefusedError("white space, control characters and backslashes are not allowed")
    try:
        return urlsplit(url)
    except ValueError:
        raise UrlRefusedError("not an address") from None


def _short(url: str) -> str:
    if len(url) > MAX_URL:
        raise UrlRefusedError(f"longer than {MAX_URL} characters")
    return url


def _netloc(netloc: str) -> str:
    if "@" in netloc:
        raise UrlRefusedError("a user name in an address is not allowed")
    match = _NETLOC.fullmatch(netloc)
    if match is None or int(match[3] or 0) > MAX_PORT:
        raise UrlRefusedError("no usable host")
    host = _ipv6(match[1]) if match[1] else _punycode(match[2])
    return f"{host}:{match[3]}" if match[3] else host


def _ipv6(host: str) -> str:
    try:
        return f"[{IPv6Address(host)}]"  # which Python itself checks since 3.11.4 only
    except ValueError:
        raise UrlRefusedError("no usable host") from None


def _punycode(host: str) -> str:
    try:
        ascii_host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise UrlRefusedError("the host has no punycode form") from None
    if len(ascii_host) > MAX_HOST or _HOST.fullmatch(ascii_host) is None:
        raise UrlRefusedError("no usable host")
    return ascii_host
