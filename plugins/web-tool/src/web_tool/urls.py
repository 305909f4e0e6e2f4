"""URLs in one plain spelling.

Permission rules are compared with the spelling, the address check looks at it, and the request is made of it.
So there must be only one, on which every reader agrees. What readers disagree on is refused: white space,
control characters, backslashes, user names, escapes in hosts, and addresses that are not written as four
plain numbers (`0x7f.1`, `2130706433`, `0177.0.0.1`). What is left is ASCII: hosts in punycode, escapes in
upper case and only where they are needed, no `..` in the path, no fragment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import quote, urljoin


class FetchError(Exception):
    """A page cannot be read."""


class UrlRefusedError(FetchError):
    """A URL is not spelled in a way that leaves no doubt about where it leads."""


class PlaceRefusedError(FetchError):
    """A URL leads where the settings do not allow to go."""


Address = IPv4Address | IPv6Address

MAX_URL: Final = 4096
_MAX_HOST: Final = 253  # RFC 1035
_MAX_PORT: Final = 65_535
_PORTS: Final = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<netloc>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.IGNORECASE
)
_NETLOC = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# Some servers take these for slashes, and then for a way out of a folder that a rule allows.
_HIDDEN_DOTS = re.compile(r"(?:^|/|%2F|%5C)\.\.?(?:%2F|%5C)|(?:%2F|%5C)\.\.?(?:/|$)")
_PATH_KEEPS: Final = "%/!$&'()*+,;=:@"  # RFC 3986, section 3.3
_QUERY_KEEPS: Final = _PATH_KEEPS + "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """A URL, taken apart.

    Attributes:
        host: In lower case and punycode; an IPv6 address has no brackets.
        port: Also where it goes without saying.
        target: Path and query, as they are sent.
    """

    scheme: str
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"

    @property
    def address(self) -> Address | None:
        """The address, if the host is one and no name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    def is_same_place(self, other: Url) -> bool:
        """Say whether *other* is on the same server: host and port, or the step from http to https."""
        if self.host != other.host:
            return False
        upgrade = (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        return upgrade or (self.scheme, self.port) == (other.scheme, other.port)


def read_url(text: str) -> Url:
    """Return a URL in its plain spelling.

    Raises:
        UrlRefusedError: If there is any doubt where it leads.
    """
    _check_characters(text)
    parts = _URL.fullmatch(text)
    if parts is None:
        raise UrlRefusedError(f"{_shown(text)} is not a web address: it must begin with http:// or https://")
    scheme = parts["scheme"].lower()
    host, port = _read_netloc(parts["netloc"], scheme)
    url = Url(scheme=scheme, host=host, port=port, target=_read_target(parts["path"], parts["query"]))
    if len(str(url)) > MAX_URL:
        raise UrlRefusedError(f"the URL is longer than {MAX_URL} characters")
    return url


def join_url(base: Url, reference: str) -> Url:
    """Return where *reference*, read on the page *base*, leads to.

    Raises:
        UrlRefusedError: If there is any doubt about it.
    """
    _check_characters(reference)
    try:
        return read_url(urljoin(str(base), reference))
    except ValueError:
        raise UrlRefusedError(f"{_shown(reference)} is not a web address") from None


def _check_characters(text: str) -> None:
    if len(text) > MAX_URL:
        raise UrlRefusedError(f"the URL is longer than {MAX_URL} characters")
    if not text.isprintable() or " " in text or "\\" in text:
        problem = "has white space, control characters or a backslash, which no URL may have"
        raise UrlRefusedError(f"{_shown(text)} {problem}: write them as %20 and the like")


def _read_netloc(netloc: str, scheme: str) -> tuple[str, int]:
    if "@" in netloc:
        raise UrlRefusedError("a user name in a URL is not allowed: leave out the part before the @")
    parts = _NETLOC.fullmatch(netloc)
    if parts is None:
        raise UrlRefusedError(f"{_shown(netloc)} is not a host")
    host = _read_ipv6(parts["ipv6"]) if parts["ipv6"] else _read_name(parts["name"])
    port = int(parts["port"] or _PORTS[scheme])
    if not 0 < port <= _MAX_PORT:
        raise UrlRefusedError(f"there is no port {port}")
    return host, port


def _read_ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise UrlRefusedError(f"[{text}] is not an IPv6 address") from None
    if address.ipv4_mapped is None:
        return str(address)
    high, low = divmod(int(address.ipv4_mapped), 1 << 16)
    return f"::ffff:{high:x}:{low:x}"  # Python 3.13 and later write it with dots, URLs do not


def _read_name(text: str) -> str:
    name = _ascii_name(text).lower().removesuffix(".")
    if len(name) > _MAX_HOST or _NAME.fullmatch(name) is None:
        raise UrlRefusedError(f"{_shown(text)} is not a host name")
    if _NUMBER.fullmatch(name.rpartition(".")[2]) is None:
        return name
    try:
        return str(IPv4Address(name))
    except ValueError:
        hint = "write an address as four plain numbers, like 192.0.2.1"
        raise UrlRefusedError(f"{_shown(text)} is an address in an odd spelling: {hint}") from None


def _ascii_name(text: str) -> str:
    if text.isascii():
        return text
    import idna

    try:
        return idna.encode(text[: _MAX_HOST + 1], uts46=True).decode()
    except UnicodeError as error:
        raise UrlRefusedError(f"{_shown(text)} is not a host name: {error}") from None


def _read_target(path: str, query: str | None) -> str:
    plain = _without_dots(_escaped(path, _PATH_KEEPS))
    if _HIDDEN_DOTS.search(plain):
        raise UrlRefusedError("the path hides dots next to an escaped slash: write it with plain slashes")
    return plain if query is None else f"{plain}?{_escaped(query, _QUERY_KEEPS)}"


def _escaped(text: str, keeps: str) -> str:
    """Return *text* with escapes where they are needed and nowhere else."""
    return quote(_ESCAPE.sub(_unescape_plain, _STRAY_PERCENT.sub("%25", text)), safe=keeps)


def _unescape_plain(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    is_plain = character.isascii() and (character.isalnum() or character in "-._~")
    return character if is_plain else match[0].upper()


def _without_dots(path: str) -> str:
    """Return the path that `.` and `..` lead to (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _shown(text: str) -> str:
    """Return *text* for a message: what cannot be seen is written as its code."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


_SHOWN: Final = 120
