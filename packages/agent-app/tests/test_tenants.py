"""Several tenants in one store: each sees its own sessions, and PostgreSQL itself keeps them apart."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.assets import AssetNotFound, open_assets
from agent_app.errors import DecisionNotAccepted, SessionNotFound, StoreUnavailable
from agent_app.store import open_store
from agent_app.store.base import Approval, Changes, Grant
from agent_core import Message, Session
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_app.store.base import SessionStore

OWN_ROLE = "keelwork_of_tests"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/store.db"
    else:
        url = request.getfixturevalue("own_database")
    with closing(open_store(url)) as opened:
        yield opened


@pytest.fixture
def own_database() -> Iterator[str]:
    """A database whose owner is an ordinary role: policies do not bind superusers."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from agent_app.testing.postgres import create_database, drop_database, shared_server

    try:
        url = create_database(shared_server())
    except StoreUnavailable as error:
        pytest.skip(str(error))
    name = conninfo_to_dict(url)["dbname"]
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (OWN_ROLE,)).fetchone():
            connection.execute(f"CREATE ROLE {OWN_ROLE} LOGIN".encode())
        connection.execute(f'ALTER DATABASE "{name}" OWNER TO {OWN_ROLE}'.encode())
        connection.execute(f"GRANT ALL ON SCHEMA public TO {OWN_ROLE}".encode())
    yield _as_url(url)
    drop_database(url)


def _as_url(url: str) -> str:
    """Return the address with the ordinary role as its user."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{OWN_ROLE}@{rest.rpartition('@')[2]}"


def session(name: str) -> Session:
    return Session(name, [Message("user", f"the words of {name}")])


def filled(store: SessionStore) -> tuple[SessionStore, SessionStore]:
    """Return the views of two tenants with a session each, in which something waits."""
    views = store.of_tenant("red"), store.of_tenant("blue")
    for view, name in zip(views, ("red one", "blue one"), strict=True):
        made = view.create(session(name), title=name)
        asked = Approval(id=f"{name} asks", session_id=name, suspension={}, created=1.0)
        view.save(made.session, made, changes=Changes(approvals=[asked]))
        view.append_events(name, [{"type": "note", "of": name}])
        view.put_input(name, {"role": "user", "content": name}, "queue")
        always = Grant(id=f"{name} g", pattern="shell", effect="allow", scope="always", key="", created=1.0)
        view.add_grant(always)
    return views


def test_each_tenant_has_its_own_sessions(store: SessionStore) -> None:
    store.create(session("before"))
    red, blue = filled(store)

    assert (list(red), list(blue), list(store.of_tenant(""))) == (["red one"], ["blue one"], ["before"])
    assert sorted(store) == ["before", "blue one", "red one"]
    assert [info.id for info in red.list()] == ["red one"]
    assert [info.id for info in red.list(query="words")] == ["red one"]
    assert [info.id for info in blue.list(query="one")] == ["blue one"]
    assert [one.id for one in red.approvals()] == ["red one asks"]
    assert [one.id for one in red.grants()] == ["red one g"]
    assert [one.id for one in blue.grants(session_id="blue one")] == ["blue one g"]
    assert {event["session_id"] for event in red.feed()} == {"red one"}
    assert red.feed_end() < store.feed_end()
    assert [info.id for info in red.find("blue")] == []
    assert [info.id for info in red.find("red")] == ["red one"]
    assert set(red.first_messages(["red one", "blue one"])) == {"red one"}
    assert (store.tenant_of("red one"), store.tenant_of("before")) == ("red", "")


OPERATIONS: dict[str, Callable[[SessionStore, Any], object]] = {
    "load": lambda store, _base: store.load("red one"),
    "info": lambda store, _base: store.info("red one"),
    "messages": lambda store, _base: store.messages("red one"),
    "family": lambda store, _base: store.family("red one"),
    "events": lambda store, _base: store.events("red one"),
    "last_events": lambda store, _base: store.last_events("red one"),
    "usage_events": lambda store, _base: store.usage_events("red one"),
    "inputs": lambda store, _base: store.inputs("red one"),
    "approvals": lambda store, _base: store.approvals("red one"),
    "grants": lambda store, _base: store.grants(session_id="red one"),
    "holder": lambda store, _base: store.holder("red one"),
    "intents": lambda store, _base: store.open_intents("red one"),
    "rename": lambda store, _base: store.rename("red one", "mine"),
    "assign": lambda store, _base: store.assign("red one", "agent"),
    "delete": lambda store, _base: store.delete("red one"),
    "append": lambda store, _base: store.append_events("red one", [{"type": "x"}]),
    "put_input": lambda store, _base: store.put_input("red one", {"role": "user"}, "queue"),
    "edit_input": lambda store, _base: store.edit_input("red one", 1, {"role": "user"}, "queue"),
    "drop_input": lambda store, _base: store.drop_input("red one", 1),
    "acquire": lambda store, _base: store.acquire("red one", "me", seconds=5, take_over=True),
    "open": lambda store, _base: store.open("red one", "me", seconds=5),
    "fork": lambda store, _base: store.fork("red one", session("copy"), 1),
    "save": lambda store, base: store.save(base.session.with_metadata({"x": 1}), base),
    "tenant_of": lambda store, _base: store.tenant_of("red one"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_session_of_another_tenant_is_not_there(store: SessionStore, name: str) -> None:
    red, blue = filled(store)
    base = red.load("red one")

    with pytest.raises(SessionNotFound):
        OPERATIONS[name](blue, base)

    assert red.load("red one") == base
    assert [one.seq for one in red.inputs("red one")] == [1]


def test_decisions_and_grants_of_another_tenant_are_not_there(store: SessionStore) -> None:
    red, blue = filled(store)

    with pytest.raises(DecisionNotAccepted):
        blue.decide("red one asks", {"approved": True})
    assert not blue.remove_grant("red one g")
    assert [one.decision for one in red.approvals()] == [None]
    assert len(red.grants()) == 1


def test_a_fork_belongs_to_the_tenant_of_its_source_whoever_makes_it(store: SessionStore) -> None:
    red, blue = filled(store)

    red.fork("red one", session("by red"), 1)
    store.fork("red one", session("by a worker"), 1)

    assert sorted(red) == ["by a worker", "by red", "red one"]
    assert list(blue) == ["blue one"]
    assert {info.id for info in red.family("red one")} == {"by a worker", "by red", "red one"}


def test_a_deleted_session_is_told_to_its_tenant_alone(store: SessionStore) -> None:
    red, blue = filled(store)
    before = red.feed_end()

    store.delete("red one")

    assert [event["type"] for event in red.feed(after=before)] == ["session_deleted"]
    assert "session_deleted" not in {event["type"] for event in blue.feed()}


def test_postgresql_keeps_tenants_apart_whatever_a_statement_says(own_database: str) -> None:
    import psycopg

    with closing(open_store(own_database)) as store:
        filled(store)
    tables = ("sessions", "events", "inputs", "approvals", "grants", "feed", "metadata", "leases", "intents")
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("SET search_path = agent_store")
        connection.execute("SET agent_store.tenant = 't:blue'")
        of_blue = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in tables}
        changed = connection.execute("UPDATE sessions SET title = 'taken'").rowcount
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE sessions SET tenant = 'red'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO events VALUES ('red one', 99, 'x')")

    assert "red" not in str(of_blue)
    assert [len(of_blue[name]) for name in ("sessions", "events", "inputs", "approvals", "grants")] == [1] * 5
    assert changed == 1


def test_postgresql_keeps_the_assets_of_tenants_apart(own_database: str) -> None:
    import psycopg

    with closing(open_store(own_database)) as store, closing(open_assets(own_database)) as assets:
        filled(store)
        same = [assets.put(name, b"of both", name="same.txt") for name in ("red one", "blue one")]
        of_red = assets.put("red one", b"the secret of red", name="red.txt")
        red, blue = assets.of_tenant("red"), assets.of_tenant("blue")

        assert red.read(of_red.id) == b"the secret of red"
        assert blue.read(same[1].id) == b"of both"
        assert [one.id for one in blue.list("blue one")] == [same[1].id]
        assert blue.list("red one") == ()
        for look in (blue.get, blue.read):
            with pytest.raises(AssetNotFound):
                look(of_red.id)
        assert blue.put("blue one", b"the secret of red", name="mine.txt").size == of_red.size
        store.delete("red one")
        assert red.delete_session("red one") == 2
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute("SET search_path = agent_assets")
        connection.execute("SET agent_store.tenant = 't:red'")
        tables = ("assets", "content", "chunks")
        left = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in tables}

    assert left == {"assets": [], "content": [], "chunks": []}


def test_an_application_of_a_tenant_has_its_sessions_and_their_events(tmp_path: Path) -> None:
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "echo"}}}
    with AgentApplication(
        config, store=f"sqlite:///{tmp_path}/app.db", plugins=[EchoProvider], installed=False
    ) as app:
        red, blue = app.of_tenant("red"), app.of_tenant("blue")
        session_id = red.create_session().session_id
        list(red.chat(session_id, "hello"))

        with red.subscribe_all() as events:
            first = next(iter(events))
        with pytest.raises(SessionNotFound):
            blue.load_session(session_id)
        with pytest.raises(SessionNotFound):
            list(blue.chat(session_id, "mine?"))
        red.close()  # the others go on

        assert (first["type"], first["tenant"]) == ("session_created", "red")
        assert blue.all_events() == []
        assert app.load_session(session_id).messages[-1].content == "hello"
