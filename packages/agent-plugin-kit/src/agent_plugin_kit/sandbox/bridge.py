"""Inside a sandbox: listens on its loopback, carries connections to a socket file, becomes the command.

Run as a program by its path, without our packages: `python -I -S bridge.py PORT SOCKET COMMAND...`. The child
that carries connections ends with the sandbox.
"""

import os
import select
import socket
import sys
import threading
from contextlib import suppress

_PIECE = 65_536


def _carry(client: socket.socket, path: str) -> None:
    with suppress(OSError), client, socket.socket(socket.AF_UNIX) as proxy:
        proxy.connect(path)
        ends = {client: proxy, proxy: client}
        open_ends = set(ends)
        while open_ends:
            for end in select.select(list(open_ends), [], [])[0]:
                piece = end.recv(_PIECE)
                if piece:
                    ends[end].sendall(piece)
                else:
                    open_ends.discard(end)
                    with suppress(OSError):
                        ends[end].shutdown(socket.SHUT_WR)


def main() -> None:
    """Start listening, and run the command."""
    port, path, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)))
    if os.fork():
        listener.close()
        os.execvp(command[0], command)  # noqa: S606 - what we were asked to become
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # else whoever reads the command's output would wait for us
        os.dup2(quiet, stream)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_carry, args=(client, path), daemon=True).start()


if __name__ == "__main__":
    main()
