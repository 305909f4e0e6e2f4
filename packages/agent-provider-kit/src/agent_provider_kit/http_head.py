"""The head of a request as it is written: where it goes, and its header lines (RFC 9112)."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from urllib.parse import SplitResult

_PORTS = {"http": 80, "https": 443}
_WITH_BODY = ("POST", "PUT", "PATCH")
_FRAMING = frozenset(("content-length", "transfer-encoding"))

# What stands in an address as it is (RFC 3986); parts that are encoded already are left alone.
_UNSAFE = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]")
_UNSAFE_IN_QUERY = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/%?]")
_LONGEST_LABEL = 63  # RFC 1035, 2.3.4
_NO_HOST = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:%]")


class Origin(NamedTuple):
    """Whom a connection reaches."""

    secure: bool
    host: str
    port: int


class Target(NamedTuple):
    """Where a request goes.

    Attributes:
        origin: The server.
        path: Path and query, encoded.
        host: The value of the header Host.
        authorization: The value of the header Authorization, if the address has a name and a password.
    """

    origin: Origin
    path: str
    host: str
    authorization: str | None


@lru_cache(maxsize=256)
def find_target(url: str) -> Target:
    """Take an address apart.

    Raises:
        ConnectionError: If it is not the address of a web server.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConnectionError(f"the address is not valid: {error}") from error
    host = parts.hostname
    if parts.scheme not in _PORTS or not host:
        place = f"{parts.scheme}:{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else url
        raise ConnectionError(f"{place.partition('?')[0]!r} is not an address of the form https://host/path")
    host = _ascii_host(host)
    shown = f"[{host}]" if ":" in host else host
    default = _PORTS[parts.scheme]
    path = _UNSAFE.sub(_encoded, parts.path) or "/"
    if parts.query:
        path += f"?{_UNSAFE_IN_QUERY.sub(_encoded_in_query, parts.query)}"
    return Target(
        Origin(parts.scheme == "https", host, default if port is None else port),
        path,
        shown if port in (None, default) else f"{shown}:{port}",
        _authorization(parts),
    )


def _ascii_host(host: str) -> str:
    if not host.isascii():
        import idna  # few hosts have names in other scripts

        try:
            return idna.encode(host, uts46=True).decode()
        except UnicodeError as error:
            raise ConnectionError(f"the host name {host!r} is not valid: {error}") from error
    if _NO_HOST.search(host):
        raise ConnectionError(f"the host name {host!r} is not valid")
    if not all(0 < len(label) <= _LONGEST_LABEL for label in host.removesuffix(".").split(".")):
        raise ConnectionError(
            f"the host name {host!r} is not valid: between its dots are 1 to {_LONGEST_LABEL} characters"
        )
    return host


def _encoded(found: re.Match[str]) -> str:
    return quote(found.group(), safe="", errors="surrogatepass")


def _encoded_in_query(found: re.Match[str]) -> str:
    return "+" if found.group() == " " else _encoded(found)


def _authorization(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(words.encode()).decode()}"


def write_head(target: Target, method: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Return a request up to its body.

    The length of the body is known here, so a header Content-Length is not taken from the caller.

    Raises:
        ValueError: If a header has a character with which another one could be smuggled in, or says that
            the body is sent in a way in which it is not.
    """
    given = {name.lower() for name in headers}
    lines = [f"{method} {target.path} HTTP/1.1\r\n"]
    if "host" not in given:
        lines.append(f"Host: {target.host}\r\n")
    if "accept" not in given:
        lines.append("Accept: */*\r\n")
    if "accept-encoding" not in given:
        lines.append("Accept-Encoding: identity\r\n")  # unpacking costs more than a few bytes on the wire
    if target.authorization is not None and "authorization" not in given:
        lines.append(f"Authorization: {target.authorization}\r\n")
    if given.isdisjoint(_FRAMING):
        lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    else:
        lines += [f"{name}: {value}\r\n" for name, value in _without_length(headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}\r\n")
    elif method in _WITH_BODY:
        lines.append("Content-Length: 0\r\n")
    head = "".join(lines)
    # Counting the line ends of the whole is cheaper than looking at each name and value.
    if not head.count("\r") == head.count("\n") == len(lines) or "\0" in head:
        raise ValueError(_line_break_in(headers))
    try:
        return f"{head}\r\n".encode()
    except UnicodeEncodeError:  # which would show the whole head, and with it the key
        raise ValueError(_not_a_text_in(headers)) from None


def _without_length(headers: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name, value in headers.items():
        if name.lower() == "transfer-encoding":
            raise ValueError(f"the header {name} cannot be set: the body is sent with its length")
        if name.lower() != "content-length":
            yield name, value


def _line_break_in(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if any(character in f"{name}{value}" for character in "\r\n\0"):
            return f"the header {name!r} has a line break or a NUL in its name or value: remove it"
    return "the method of the request has a line break or a NUL in it"


def _not_a_text_in(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if any("\ud800" <= character <= "\udfff" for character in f"{name}{value}"):
            return f"the header {name!a} has bytes in its name or value that are not text: write it again"
    return "the method of the request has bytes in it that are not text"
