"""Inside a sandbox: listens on its loopback, carries connections to a socket file, becomes the command.

Run as a program by its path, without our packages: `python -I -S bridge.py PORT SOCKET COMMAND...`. The child
that carries connections ends with the sandbox. It is started for every command that may reach a host, so it
imports as little as it can: the modules `socket` and `threading` take longer than a command should.
"""

import os
import sys
from _socket import AF_INET, AF_UNIX, SHUT_WR, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from _thread import start_new_thread
from select import select

_PIECE = 65_536
_WAITING = 128


def _carry(client: socket, path: str) -> None:
    proxy = socket(AF_UNIX, SOCK_STREAM)
    try:
        proxy.connect(path)
        ends = {client: proxy, proxy: client}
        open_ends = set(ends)
        while open_ends:
            for end in select(list(open_ends), [], [])[0]:
                piece = end.recv(_PIECE)
                if piece:
                    ends[end].sendall(piece)
                else:
                    open_ends.discard(end)
                    ends[end].shutdown(SHUT_WR)
    except OSError:  # either side has gone
        pass
    finally:
        client.close()
        proxy.close()


def main() -> None:
    """Start listening, and run the command."""
    port, path, *command = sys.argv[1:]
    listener = socket(AF_INET, SOCK_STREAM)
    listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(_WAITING)
    if os.fork():
        listener.close()
        os.execvp(command[0], command)  # noqa: S606 - what we were asked to become
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # else whoever reads the command's output would wait for us
        os.dup2(quiet, stream)
    while True:
        descriptor, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - what `socket.accept` is made of
        start_new_thread(_carry, (socket(AF_INET, SOCK_STREAM, 0, descriptor), path))


if __name__ == "__main__":
    main()
