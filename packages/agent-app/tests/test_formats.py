"""Stores that former versions have written: read by this one, put aside before, and brought back.

`formats/format-N.json` has the rows of a store as format N kept them, and what was in it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreTooNew
from agent_app.store import checksums, migration, open_store, postgres, records, sqlite_file
from agent_app.store.base import Grant
from agent_app.store.repair import repair_store
from agent_core import Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.base import SessionStore

FORMATS = Path(__file__).parent / "formats"
# Former versions wrote numbers that JSON does not have; they are read as nothing.
FORMER = [
    json.loads(path.read_text(), parse_constant=lambda _name: None)
    for path in sorted(FORMATS.glob("format-*.json"))
]
GRANT = Grant(id="g", pattern="shell", effect="allow", scope="session", key="river", created=1.0)


@pytest.fixture(params=FORMER, ids=lambda former: f"format {former['format']}")
def former(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, former: dict[str, Any], tmp_path: Path) -> Iterator[str]:
    """The address of a store that a former version has written."""
    if request.param == "sqlite":
        write_sqlite(tmp_path / "store.db", former)
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server = request.getfixturevalue("postgres_url")
    drop_schemas(server)
    write_postgres(server, former)
    yield server
    drop_schemas(server)


def cell(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return value["text"].encode() if "text" in value else bytes.fromhex(value["hex"])


def tables(former: dict[str, Any]) -> Iterator[tuple[str, Sequence[str], list[list[Any]]]]:
    for name, table in former["tables"].items():
        yield name, table["columns"], [[cell(value) for value in row] for row in table["rows"]]


def texts(former: dict[str, Any]) -> list[tuple[int, str]]:
    """The words of each content that is searched."""
    rows = next(rows for name, _, rows in tables(former) if name == "content")
    return [
        (number, records.text_of(records.read_message(body, None)))
        for number, _, body, searched in rows
        if searched
    ]


def write_sqlite(path: Path, former: dict[str, Any]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        checksums.install(connection)
        connection.executescript(migration.script("sqlite", 0, former["format"]))
        connection.execute("DELETE FROM past")
        for name, columns, rows in tables(former):
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows)
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts(former))
        connection.execute(f"PRAGMA application_id = {sqlite_file.APPLICATION}")
        connection.execute(f"PRAGMA user_version = {former['format']}")


def write_postgres(url: str, former: dict[str, Any]) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA agent_store; SET search_path = agent_store")
        connection.execute(bytes(migration.script("postgres", 0, former["format"]), "utf-8"))
        connection.execute("DELETE FROM past")
        for name, columns, rows in tables(former):
            marks = ", ".join(["%s"] * len(columns))
            sql = f"INSERT INTO {name} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE VALUES ({marks})"
            connection.cursor().executemany(bytes(sql, "utf-8"), rows)
        for number, text in texts(former):
            connection.execute(
                "INSERT INTO words VALUES (%s, array_to_tsvector(%s::text[]))",
                (number, postgres._lexemes(text)),
            )
        for table in ("content", "lists"):
            sql = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
            connection.execute(bytes(sql, "utf-8"))


def schemas(url: str) -> list[str]:
    import psycopg

    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'agent_store%' ORDER BY nspname"
        ).fetchall()
    return [row[0] for row in found]


def drop_schemas(url: str) -> None:
    import psycopg

    for schema in schemas(url):
        with psycopg.connect(url) as connection:
            connection.execute(bytes(f"DROP SCHEMA {schema} CASCADE", "utf-8"))


def contents(store: SessionStore) -> dict[str, Any]:
    """Everything that a store can be asked for, in the words of the files."""
    return {session_id: content(store, session_id) for session_id in store}


def content(store: SessionStore, session_id: str) -> dict[str, Any]:
    info, stored = store.info(session_id), store.load(session_id)
    return {
        "info": [
            info.title,
            info.agent_id,
            info.created,
            info.updated,
            info.messages,
            info.revision,
            info.parent_id,
        ],
        "session": stored.session.to_dict(),
        "sealed": stored.session.seal is not None,
        "events": list(store.events(session_id)),
        "inputs": [[one.seq, one.message, one.mode, one.created] for one in store.inputs(session_id)],
        "approvals": [
            [one.id, one.suspension, one.created, one.decision, one.used]
            for one in store.approvals(session_id)
        ],
        "intents": store.open_intents(session_id),
        "holder": (held := store.holder(session_id)) and [held.owner, held.token, held.expires],
    }


def searches(store: SessionStore, queries: Sequence[str]) -> dict[str, list[str]]:
    return {query: sorted(info.id for info in store.list(query=query).sessions) for query in queries}


def bring_back(url: str) -> str:
    """Do what the page on durability says, and return the address of the store as it was."""
    import psycopg

    if url.startswith("sqlite"):
        (copy,) = Path(url.removeprefix("sqlite:///")).parent.glob("*.backup")
        return f"sqlite:///{copy}"
    _, copy_schema = schemas(url)
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA agent_store CASCADE")
        connection.execute(bytes(f"ALTER SCHEMA {copy_schema} RENAME TO agent_store", "utf-8"))
    return url


def is_former(url: str, former: dict[str, Any]) -> None:
    """Check that a store has the tables of its format, no more and no less."""
    import psycopg

    database = "sqlite" if url.startswith("sqlite") else "postgres"
    if database == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            assert file.execute("PRAGMA user_version").fetchone() == (former["format"],)
            names = {row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    else:
        with psycopg.connect(url) as connection:
            sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'agent_store'"
            names = {row[0] for row in connection.execute(sql).fetchall()}
    assert names >= made_tables(database, 0, former["format"])
    assert not names & made_tables(database, former["format"], sqlite_file.FORMAT)


def made_tables(database: str, after: int, upto: int) -> set[str]:
    """The tables that the steps between two formats make, but for those that take another name at once."""
    steps = migration.script(database, after, upto)
    made = re.findall(r"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", steps)
    return {name for name in made if f"ALTER TABLE {name} RENAME" not in steps}


def test_a_store_of_a_former_version_is_read_as_it_was(url: str, former: dict[str, Any]) -> None:
    with closing(open_store(url)) as store:
        assert contents(store) == former["expected"]
        assert searches(store, list(former["searches"])) == former["searches"]
        assert [list(asdict(grant).values()) for grant in store.grants()] == former.get("grants", [])
        used = [one for one in former["expected"]["river"]["events"] if one["type"] == "usage"]
        assert store.usage_events("river") == used
        assert store.check(deep=True).problems == ()


def test_a_store_of_a_former_version_is_used_like_a_new_one(url: str) -> None:
    with closing(open_store(url)) as store:
        assert store.add_grant(GRANT) == GRANT
        forked = store.load("river").session
        store.fork("river", Session("new", forked.history, forked.metadata), len(forked.messages))
        store.delete("river")
        store.collect()
        assert (store.grants(), sorted(store)) == ([], ["branch", "new", "plain"])
        assert store.check(deep=True).problems == ()
    with closing(open_store(url)) as store:  # and is not changed a second time
        assert sorted(store) == ["branch", "new", "plain"]
    if not url.startswith("sqlite"):
        assert len(schemas(url)) == 2


def test_what_was_put_aside_can_be_brought_back(url: str, former: dict[str, Any]) -> None:
    with closing(open_store(url)) as store:
        store.delete("river")

    back = bring_back(url)

    is_former(back, former)
    with closing(open_store(back)) as store:
        assert contents(store) == former["expected"]
        assert searches(store, list(former["searches"])) == former["searches"]
        store.create(Session("after", ()))
        store.delete("river")
        assert store.check(deep=True).problems == ()


def test_the_copy_in_postgres_says_what_it_is_of(url: str, former: dict[str, Any]) -> None:
    if url.startswith("sqlite"):
        pytest.skip("SQLite puts a file aside")
    open_store(url).close()
    store, copy = schemas(url)
    assert store == "agent_store"
    assert re.fullmatch(rf"agent_store_format_{former['format']}_\d{{8}}_\d{{6}}", copy)


def test_a_migration_that_fails_leaves_store_and_schemas_as_they_were(
    url: str, former: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_app.errors import StoreError

    for module in (sqlite_file, postgres):
        step = module._script(former["format"])
        broken = f"{step}; INSERT INTO nowhere VALUES (1);"
        monkeypatch.setattr(module, "_script", lambda _found, broken=broken: broken)
    with pytest.raises(StoreError, match="nowhere"):
        open_store(url)

    is_former(url, former)
    if not url.startswith("sqlite"):
        assert schemas(url) == ["agent_store"]


def test_the_former_version_refuses_what_this_one_has_written(
    url: str, former: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(url).close()
    now = sqlite_file.FORMAT
    for module in (sqlite_file, postgres):
        monkeypatch.setattr(module, "FORMAT", former["format"])

    with pytest.raises(StoreTooNew, match=f"has format {now}.*update the platform; nothing was changed"):
        open_store(url)

    monkeypatch.undo()
    with closing(open_store(url)) as store:
        assert contents(store) == former["expected"]


def test_a_damaged_store_of_a_former_version_is_saved(former: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write_sqlite(path, former)
    with path.open("r+b") as file:
        file.write(b"overwritten")
    before = path.read_bytes()

    report = repair_store(path, tmp_path / "new.db")

    assert path.read_bytes() == before
    assert report.problems == ()
    assert (report.lost["messages"], report.damaged["messages"]) == (0, 0)
    write_sqlite(tmp_path / "whole.db", former)
    with (
        closing(open_store(f"sqlite:///{tmp_path}/whole.db")) as old,
        closing(open_store(f"sqlite:///{tmp_path}/new.db")) as new,
    ):
        assert set(old) <= set(new)
        for name in old:
            assert new.load(name).session.to_dict() == old.load(name).session.to_dict()
            assert new.events(name) == old.events(name)


def test_both_databases_are_in_the_same_format() -> None:
    assert sqlite_file.FORMAT == postgres.FORMAT == max(former["format"] for former in FORMER) + 1
