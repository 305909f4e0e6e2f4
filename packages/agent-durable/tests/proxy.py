"""A way to a server that can be cut: all its connections are closed, and no new ones come through."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Listens on a port of this machine and passes everything on to a socket file.

    Args:
        target: The socket file.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._cut = False
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        with self._lock:
            self._cut = True
            ends, self._ends = self._ends, []
        for end in ends:
            _close(end)

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._cut = False

    def close(self) -> None:
        """End it."""
        self.cut()
        _close(self._listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        with self._lock:
            try:
                if self._cut:
                    raise ConnectionRefusedError
                far.connect(self._target)
            except OSError:
                _close(near)
                far.close()
                return
            self._ends += [near, far]
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _close(source)
    _close(sink)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
