"""What every transport needs: proxies, one TLS context, errors in plain words, patience with a slow reply."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import math
import os
import re
import socket
import ssl
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_provider_kit.transport import Timeouts

CUT_SHORT = "the connection was closed before the reply was complete"
READ_BUFFER = 256 * 1024
KEPT_ALIVE = 60.0  # seconds for which a connection waits for its next request

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_SPELLED = (*_VARIABLES, *map(str.upper, _VARIABLES))
_KEYS: frozenset[object] = frozenset(
    (*_SPELLED, *map(os.fsencode, _SPELLED))
)  # Windows has texts, others bytes
_PROXY = re.compile(r"\w+://(?:[^/?#@]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]]+)(?::\d{1,5})?/?")
_PORT = re.compile(r"^(?:\[.*\]|[^:]*):\d+$")
_CODE = re.compile(r"\[Errno (\d+)\]")


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for *url*, or None to go there directly.

    Raises:
        ConnectionError: If the environment names one that is not an HTTP proxy.
    """
    # Asked for each request, and reading eight variables costs as much as writing its head. So what is below
    # the environment is looked at first, where there is such a thing.
    raw = getattr(os.environ, "_data", None)
    if type(raw) is dict and raw.keys().isdisjoint(_KEYS):
        return None
    # The one in lower case counts, even if it is empty: so a proxy is switched off for one command.
    environment = tuple(os.environ.get(name, os.environ.get(name.upper(), "")).strip() for name in _VARIABLES)
    if not any(environment):
        return None
    return _lookup(url, environment)


@lru_cache(maxsize=256)
def _lookup(url: str, environment: tuple[str, ...]) -> str | None:
    # The variables are in the key, so that changing one counts.
    http, https, everything, bypass = environment
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None  # whoever goes there directly says what is wrong with the address
    chosen = {"http": http, "https": https}.get(parts.scheme) or everything
    if not chosen or _goes_directly(host, port or {"http": 80}.get(parts.scheme, 443), bypass):
        return None
    return _check(chosen if "://" in chosen else f"http://{chosen}")


def _goes_directly(host: str, port: int, bypass: str) -> bool:
    """Say whether NO_PROXY lists a host.

    It may have names, which stand for what is below them too, addresses, networks (10.0.0.0/8) and "*",
    each but the last two with a port. There is no standard; this is what curl, Go and requests agree on.
    """
    address = _address(host)
    for pattern in bypass.lower().replace(",", " ").split():
        if pattern == "*":
            return True
        if address is not None and "/" in pattern:
            if address in _network(pattern):
                return True
            continue
        # An IPv6 address without brackets has no port.
        name, colon, wanted = pattern.rpartition(":") if _PORT.search(pattern) else (pattern, "", "")
        if colon and wanted != str(port):
            continue
        name = name.strip("[]").removeprefix("*").strip(".")
        if host == name or (address is not None and address == _address(name)):
            return True
        if name and address is None and host.endswith(f".{name}"):
            return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _network(pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | tuple[()]:
    try:
        return ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return ()


def _check(proxy: str) -> str:
    parts = urlsplit(proxy) if _PROXY.fullmatch(proxy) else None
    if parts is None or not parts.hostname:  # and where its password ends nobody knows, so it is not shown
        raise ConnectionError(
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names a proxy that is not of the form http://host:port: "
            "correct it; special characters in its password are written as %40 for @, %23 for #"
        )
    if parts.scheme not in ("http", "https"):
        raise ConnectionError(
            f"the proxy {parts.scheme}://{place_of(proxy)} is not an HTTP proxy: "
            "name one in HTTPS_PROXY, or list the host in NO_PROXY"
        )
    return proxy


def place_of(url: str) -> str:
    """Return host and port of an address, without the name and the password that it may have."""
    return urlsplit(url).netloc.rpartition("@")[2]


@cache
def shared_tls() -> ssl.SSLContext:
    """Return the one context of this process: making one costs more than a request."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def plain_words(error: BaseException) -> str:
    """Return what happened in words for people; those of a client are for its developers."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    code: Any = None if isinstance(error, ssl.SSLError) else getattr(error, "errno", None)
    if code in errno.errorcode:
        return os.strerror(code)
    # A host with several addresses fails with one line about each, and only their text is kept.
    if isinstance(error, OSError) and (codes := dict.fromkeys(map(int, _CODE.findall(str(error))))):
        return "; ".join(map(os.strerror, codes))
    return str(error) or type(error).__name__


class Patience:
    """Closes a reply whose reader has waited too long: for bytes, or for content.

    One timer for a whole reply: one for each read costs more than the read. What a reader does between two
    reads costs no patience for bytes. It does cost patience for content, since a server may send its pings
    faster than they are read; a reader who was given content begins anew when it comes for more.

    Args:
        close: Closes the reply, so that whoever waits for it wakes up.
        timeouts: How long is too long.

    Attributes:
        waiting_since: When the reader began to wait for the next piece; None while it is busy.
        over: What there was too much waiting for, once it was too much.
    """

    __slots__ = (
        "_close", "_content", "_content_since", "_idle", "_loop", "_timer", "over", "waiting_since"
    )  # fmt: skip

    def __init__(self, close: Callable[[], None], timeouts: Timeouts) -> None:
        self.waiting_since: float | None = None
        self.over: str | None = None
        self._close = close
        self._idle = math.inf if timeouts.idle is None else timeouts.idle
        self._content = math.inf if timeouts.content is None else timeouts.content
        self._loop = asyncio.get_running_loop()
        self._content_since = now = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at(now + min(self._idle, self._content))

    def begin_anew(self) -> None:
        """Wait for more content from now on."""
        self._content_since = self._loop.time()

    def wait(self) -> None:
        """Begin to wait for the next piece.

        Raises:
            TimeoutError: If the pieces before brought no content for too long.
        """
        self.waiting_since = now = self._loop.time()
        if now >= self._content_since + self._content:
            self._end(self._no_content())
        if self.over is not None:
            raise TimeoutError(self.over)

    def stop(self) -> None:
        """Look at the clock no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, moment: float) -> None:
        if moment < math.inf:
            self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self.waiting_since is None:
            self._look_at(now + min(self._idle, self._content))
        elif now >= self._content_since + self._content:
            self._end(self._no_content())
        elif now >= self.waiting_since + self._idle:
            self._end(f"nothing arrived for {self._idle:g} seconds")
        else:
            self._look_at(min(self.waiting_since + self._idle, self._content_since + self._content))

    def _end(self, over: str) -> None:
        self.over = over
        self._close()

    def _no_content(self) -> str:
        return (
            f"the connection is alive, but no content arrived for {self._content:g} seconds (content_timeout)"
        )
