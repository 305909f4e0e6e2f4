"""The network of a sandbox: a proxy of ours that connects to the allowed hosts and to nothing else.

The command has no network. Where hosts are allowed, it finds an HTTP proxy on its own loopback; a small
`bridge` there hands each connection to a socket file, on which the `Proxy` listens in our process. The proxy
looks names up itself and connects only to public addresses, unless a rule names a local place: a name that
leads to `127.0.0.1` opens nothing. It takes `CONNECT` (for HTTPS) and plain HTTP requests, and remembers what
it refused, so that model and person learn of it.

What is inside a TLS connection is not looked at. So an allowed host is trusted whole, with everything that it
serves for others.
"""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_plugin_kit.addresses import read_address, why_not_public

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PORT: Final = 3128
"""Where the proxy seems to be, inside a sandbox with a loopback of its own."""
_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_PATIENCE: Final = 20.0
_IDLE: Final = 300.0
_MOST_CONNECTIONS: Final = 128
_WEB: Final = frozenset({80, 443})


class Host(NamedTuple):
    """A rule for a host: a name or pattern, and the port it is for; None for those of the web."""

    pattern: str
    port: int | None

    @classmethod
    def read(cls, text: str) -> Host:
        """Read `api.example.com`, `*.example.com`, `localhost:5432`, `[::1]:80`.

        Raises:
            ValueError: If it is none of these.
        """
        rest, port = text.strip().lower(), None
        if "://" in rest or "/" in rest or not rest:
            raise ValueError(
                f"{text!r:.80} is not a host: write a name such as api.example.com, without a path"
            )
        head, colon, tail = rest.rpartition(":")
        if colon and tail.isdecimal() and ("]" not in tail and (":" not in head or head.endswith("]"))):
            rest, port = head, int(tail)
        rest = rest.removeprefix("[").removesuffix("]")
        if not rest or rest.strip("*.") == "":
            raise ValueError(f"{text!r:.80} would allow every host: name the one that you mean")
        return cls(rest, port)

    def fits(self, name: str, port: int) -> bool:
        """Say whether a connection falls under the rule."""
        return fnmatchcase(name, self.pattern) and (port in _WEB if self.port is None else port == self.port)

    @property
    def is_plain(self) -> bool:
        """Whether it names one host, which may then be a local one."""
        return "*" not in self.pattern and "?" not in self.pattern


class Refused(Exception):
    """A connection is not made; the text says why."""


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str
    port: int
    first: bytes
    tunnel: bool


class Proxy:
    """Listens on a socket file, and connects to allowed hosts.

    Args:
        path: The socket file, in a folder that only we can open; None for a port on our own loopback.
        hosts: What is allowed.

    Attributes:
        refused: What was asked for and not allowed, as `host:port`.
        port: The port, if there is no socket file.
    """

    def __init__(self, path: Path | None, hosts: Sequence[str]) -> None:
        self._rules = tuple(Host.read(host) for host in hosts)
        self.refused: dict[str, str] = {}
        self._slots = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(path))
            self._listener.listen(_MOST_CONNECTIONS)
        self.port: int | None = None if path is not None else self._listener.getsockname()[1]
        threading.Thread(target=self._serve, name="sandbox-proxy", daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._talk, args=(connection,), name="sandbox-proxy", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(_PATIENCE)
                try:
                    asked = _read_request(connection)
                    other = self._connect(asked)
                except Refused as refused:
                    body = f"the sandbox: {refused}\n".encode()
                    head = (
                        f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                    )
                    connection.sendall(head.encode() + body)
                    return
                except OSError as error:
                    connection.sendall(
                        f"HTTP/1.1 502 {type(error).__name__}\r\nConnection: close\r\n\r\n".encode()
                    )
                    return
                with other:
                    if asked.tunnel:
                        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    if asked.first:
                        other.sendall(asked.first)
                    relay(connection, other)
        except OSError:  # either side has gone
            pass
        finally:
            self._slots.release()

    def _connect(self, asked: _Asked) -> socket.socket:
        rule = next((one for one in self._rules if one.fits(asked.name, asked.port)), None)
        if rule is None:
            self.refused[f"{asked.name}:{asked.port}"] = "it is not among the allowed hosts"
            raise Refused(f"{asked.name}:{asked.port} is not among the allowed hosts")
        found = socket.getaddrinfo(asked.name, asked.port, type=socket.SOCK_STREAM)
        kinds = {why_not_public(read_address(str(address[0]))) for *_, address in found}
        chosen = rule.is_plain and rule.port is not None  # `localhost:5432` says that a local place is meant
        local = next((kind for kind in kinds if kind is not None), None)
        if local is not None and not chosen:
            self.refused[f"{asked.name}:{asked.port}"] = f"it leads to a {local} address"
            raise Refused(f"{asked.name} leads to a {local} address; a rule with its port would allow that")
        problem: OSError = OSError("no address")
        for family, kind, protocol, _, address in found:
            other = socket.socket(family, kind, protocol)
            other.settimeout(_PATIENCE)
            try:
                other.connect(address)
            except OSError as error:
                other.close()
                problem = error
            else:
                return other
        raise problem


def _read_request(connection: socket.socket) -> _Asked:
    """Read what a client wants of the proxy."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(_PIECE)
        data += piece
        if not piece or len(data) > _HEAD:
            raise Refused("this is not a request for a proxy")
    head, _, rest = data.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    method, _, place = line.decode("latin-1").partition(" ")
    place, _, version = place.rpartition(" ")
    if method == "CONNECT":
        name, port = _name_and_port(place, 443)
        return _Asked(name, port, rest, tunnel=True)
    if not place.startswith("http://"):
        raise Refused("only http and https go through the proxy")
    where, slash, path = place.removeprefix("http://").partition("/")
    name, port = _name_and_port(where, 80)
    kept = [one for one in fields.split(b"\r\n") if not _is_for_proxies(one)]
    first = [f"{method} {slash}{path} {version}".encode("latin-1"), *kept, b"Connection: close"]
    if not slash:
        first[0] = f"{method} / {version}".encode("latin-1")
    return _Asked(name, port, b"\r\n".join(first) + b"\r\n\r\n" + rest, tunnel=False)


def _is_for_proxies(field: bytes) -> bool:
    name = field.partition(b":")[0].strip().lower()
    return name.startswith(b"proxy-") or name in (b"connection", b"keep-alive")


def _name_and_port(text: str, port: int) -> tuple[str, int]:
    try:
        host = Host.read(text.rpartition("@")[2])
    except ValueError as error:
        raise Refused(str(error)) from None
    if not host.is_plain:
        raise Refused(f"{text!r} is not a host")
    return host.pattern.rstrip("."), port if host.port is None else host.port


def relay(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended, or neither says anything for long."""
    ends = {one: other, other: one}
    one.settimeout(_PATIENCE)
    other.settimeout(_PATIENCE)
    open_ends = set(ends)
    while open_ends:
        ready, _, _ = select.select(list(open_ends), [], [], _IDLE)
        if not ready:
            return
        for end in ready:
            piece = end.recv(_PIECE)
            if piece:
                ends[end].sendall(piece)
                continue
            open_ends.discard(end)
            with suppress(OSError):
                ends[end].shutdown(socket.SHUT_WR)


def proxy_variables(port: int) -> Mapping[str, str]:
    """Return the variables that tell programs where the proxy is."""
    address = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    return {**dict.fromkeys(names, address), "NO_PROXY": "", "no_proxy": "", "NODE_USE_ENV_PROXY": "1"}
