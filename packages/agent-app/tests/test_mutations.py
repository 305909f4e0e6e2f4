"""What actions ask to be done to sessions: all of it or nothing, and as the direct calls do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_app import (
    AgentApplication,
    RevisionConflict,
    SessionBusy,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    SessionOutdated,
)
from agent_app.assets import AssetNotFound, SessionAssetStore
from agent_core import AgentError, ArgumentError, Message, PluginError, Session
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Act = Callable[[AgentApplication, dict[str, Any]], dict[str, Any] | None]
Make = Callable[..., AgentApplication]


class Plugin:
    """An application plugin with one action, which returns the mutations that a function gives."""

    version = "1"

    def __init__(self, act: Act, name: str = "helper", trigger: Any = None) -> None:
        self.name = name
        self._act = act
        self._action = {"id": "do", "label": "Do it", "inputs": {}}
        if trigger is not None:
            self._action["trigger"] = trigger

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [self._action]

    def execute_action(
        self, app: AgentApplication, action_id: str, params: Any, context: dict[str, Any], state: Any
    ) -> dict[str, Any]:
        mutations = self._act(app, context)
        return {} if mutations is None else {"mutations": mutations}


class Witness(Plugin):
    """Notes every lifecycle of every session, and leaves its mark on those that are stored."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        triggers = ["session_create", "session_save_prepare", "session_delete_prepare"]
        super().__init__(self._note, "witness", triggers)

    def _note(self, _app: AgentApplication, context: dict[str, Any]) -> dict[str, Any]:
        session = Session.from_dict(context["session"])
        self.seen.append((context["lifecycle"], session.session_id))
        return {"updated": [session.with_metadata({context["lifecycle"]: True})]}


@pytest.fixture(params=["sqlite file", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def assets(tmp_path: Path) -> Iterator[SessionAssetStore]:
    with SessionAssetStore(tmp_path / "assets") as opened:
        yield opened


@pytest.fixture
def make(address: str, assets: SessionAssetStore) -> Iterator[Make]:
    """Make an application on each kind of store."""
    apps: list[AgentApplication] = []

    def make_app(*plugins: Any, script: Any = ()) -> AgentApplication:
        known = [ScriptedProvider(script), *plugins]
        apps.append(AgentApplication(CONFIG, store=address, assets=assets, plugins=known, installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def do(app: AgentApplication) -> dict[str, Any]:
    return app.execute_application_action("helper", "do", {})


def ids(app: AgentApplication) -> set[str]:
    return {one.id for one in app.list_sessions().sessions}


def texts(app: AgentApplication, session_id: str) -> list[Any]:
    return [message.content for message in app.load_session(session_id).messages]


def test_a_session_that_went_on_since_the_action_saw_it_is_not_overwritten(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        session = app.load_session("s")
        list(other.chat("s", "meanwhile"))  # a turn of somebody else
        return {"updated": [session.with_metadata({"seen": 1})], "created": [Session("new")]}

    app = make(Plugin(act), script=["an answer"])
    other = app
    app.create_session(session_id="s")

    with pytest.raises(RevisionConflict, match="was changed in between"):
        do(app)

    assert texts(app, "s") == ["meanwhile", "an answer"]
    assert "seen" not in app.load_session("s").metadata and ids(app) == {"s"}


def test_a_session_from_before_is_not_stored_over_messages_that_it_lacks(make: Make) -> None:
    kept: list[Session] = []
    app = make(Plugin(lambda _app, _context: {"updated": kept}), script=["an answer"])
    kept.append(app.create_session(session_id="s"))
    list(app.chat("s", "hello"))

    with pytest.raises(RevisionConflict, match="was changed in between"):
        do(app)
    kept[:] = [Session("s", [Message("user", "other")])]  # of which nobody knows what it was made of
    with pytest.raises(SessionOutdated, match=r"run the action again; nothing was changed"):
        do(app)

    assert texts(app, "s") == ["hello", "an answer"]


def test_an_action_that_has_gone_on_itself_does_not_lose_that(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        old = app.load_session("s")
        app.save_session(Session("s", [*old.messages, Message("user", "new")], old.metadata))
        return {"updated": [old.with_metadata({"seen": 1})]}

    app = make(Plugin(act))
    app.create_session(session_id="s")

    with pytest.raises(RevisionConflict):
        do(app)
    assert texts(app, "s") == ["new"]


def test_an_action_that_loads_twice_does_not_undo_what_came_between(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        old = app.load_session("s")
        app.store.save(old.with_metadata({"beside": 1}), app.store.load("s"))
        new = app.load_session("s")
        return {"updated": [(old if stale else new).with_metadata({"seen": 1})]}

    stale = True
    app = make(Plugin(act))
    app.create_session(session_id="s")

    with pytest.raises(RevisionConflict):
        do(app)
    assert "seen" not in app.load_session("s").metadata

    stale = False
    app.store.save(app.load_session("s").with_metadata({"beside": 0}), app.store.load("s"))
    do(app)
    assert app.load_session("s").metadata["beside"] == app.load_session("s").metadata["seen"] == 1


OLDER: dict[str, Callable[[AgentApplication, Session], Any]] = {
    "as it was": lambda _app, old: old,
    "with metadata": lambda _app, old: old.with_metadata({"seen": 1}),
    "with a message": lambda app, old: app.update_agent("a", old)[0].add_message(old, "user", "mine"),
    "cut": lambda app, old: app.update_agent("a", old)[0].slice_session(old, end=1),
    "as a dict": lambda _app, old: old.to_dict(),
    "as a changed dict": lambda _app, old: {**old.to_dict(), "messages": old.to_dict()["messages"][:1]},
}


@pytest.mark.parametrize("made", OLDER.values(), ids=OLDER)
def test_an_older_session_is_refused_even_if_the_action_has_loaded_the_current_one(
    make: Make, made: Callable[[AgentApplication, Session], Any]
) -> None:
    kept: list[Session] = []

    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        assert len(app.load_session("s").messages) == 4
        return {"updated": [made(app, kept[0])]}

    app = make(Plugin(act), script=["one", "two"])
    app.create_session(session_id="s")
    list(app.chat("s", "first"))
    kept.append(app.load_session("s"))
    list(app.chat("s", "second"))

    with pytest.raises((RevisionConflict, SessionOutdated)):
        do(app)

    assert texts(app, "s") == ["first", "one", "second", "two"]
    assert "seen" not in app.load_session("s").metadata


def test_older_metadata_is_refused_even_if_the_action_has_loaded_the_current_session(make: Make) -> None:
    kept: list[Session] = []

    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        app.load_session("s")
        return {"updated": [kept[0].with_metadata({"seen": 1})]}

    app = make(Plugin(act))
    kept.append(app.create_session(session_id="s", metadata={"tone": "old"}))
    app.save_session(app.load_session("s").with_metadata({"tone": "new"}))

    with pytest.raises(RevisionConflict):
        do(app)

    assert app.load_session("s").metadata["tone"] == "new"


def test_what_was_made_of_the_stored_session_can_be_shorter(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        session = app.load_session("s")
        core, config, _ = app.update_agent("a", session)
        return {"updated": [core.slice_session(session, config, end=2)]}

    app = make(Plugin(act), script=["one", "two"])
    app.create_session(session_id="s")
    list(app.chat("s", "first"))
    list(app.chat("s", "second"))

    do(app)

    assert texts(app, "s") == ["first", "one"]


def test_an_action_may_change_what_it_has_loaded_in_any_way(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        data = app.load_session("s").to_dict()
        return {"updated": [{**data, "messages": data["messages"][:1], "metadata": {"title": "Cut"}}]}

    app = make(Plugin(act), script=["an answer"])
    app.create_session(session_id="s")
    list(app.chat("s", "hello"))

    assert do(app)["mutations"]["updated"] == ["s"]
    assert texts(app, "s") == ["hello"]
    assert app.list_sessions().sessions[0].title == "Cut"


def test_a_created_session_has_the_lifecycles_and_the_agent_of_the_direct_call(make: Make) -> None:
    witness = Witness()
    app = make(Plugin(lambda _app, _context: {"created": [Session("new")]}), witness)
    direct = app.create_session(session_id="direct")
    expected = [(name, "new") for name, _ in witness.seen]
    witness.seen.clear()

    do(app)

    assert witness.seen == expected == [("session_create", "new"), ("session_save_prepare", "new")]
    assert app.load_session("new").metadata == direct.metadata
    assert app.store.info("new").agent_id == app.store.info("direct").agent_id == "a"


def test_a_deleted_session_has_the_lifecycle_and_loses_its_attachments(
    make: Make, assets: SessionAssetStore
) -> None:
    witness = Witness()
    reasons: list[str] = []
    ask_why = Plugin(
        lambda _app, context: reasons.append(context["delete_reason"]), "why", "session_delete_prepare"
    )
    app = make(Plugin(lambda _app, _context: {"deleted": ["s"]}), witness, ask_why)
    app.create_session(session_id="s")
    kept = assets.put("s", b"a secret", name="note.txt")
    witness.seen.clear()

    do(app)

    assert witness.seen == [("session_delete_prepare", "s")] and reasons == ["plugin_action"]
    with pytest.raises(SessionNotFound):
        app.load_session("s")
    with pytest.raises(AssetNotFound):
        assets.read(kept.id)


def test_an_id_that_is_taken_costs_the_whole_set(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        marked = app.load_session("s").with_metadata({"seen": 1})
        return {"created": [Session("new"), Session("taken")], "updated": [marked], "deleted": ["other"]}

    witness = Witness()
    app = make(Plugin(act), witness)
    for name in ("s", "taken", "other"):
        app.create_session(session_id=name)
    witness.seen.clear()

    with pytest.raises(SessionExists, match="taken"):
        do(app)

    assert ids(app) == {"s", "taken", "other"} and "seen" not in app.load_session("s").metadata
    assert witness.seen == []  # it was known before anybody was asked


@pytest.mark.parametrize("key", ["updated", "deleted"])
def test_a_session_that_is_not_there_costs_the_whole_set(make: Make, key: str) -> None:
    missing: Any = Session("nowhere") if key == "updated" else "nowhere"
    app = make(Plugin(lambda _app, _context: {"created": [Session("new")], key: [missing]}))

    with pytest.raises(SessionNotFound, match="nowhere"):
        do(app)
    assert ids(app) == set()


def test_an_agent_that_is_not_declared_costs_the_whole_set(make: Make) -> None:
    made = [Session("new"), Session("odd", (), {"agent_id": "nobody"})]
    app = make(Plugin(lambda _app, _context: {"created": made}))

    with pytest.raises(ArgumentError, match="nobody"):
        do(app)
    assert ids(app) == set()


def test_a_failure_in_the_middle_of_writing_leaves_nothing(make: Make, assets: SessionAssetStore) -> None:
    """Between the check and the write a plugin takes an id, and writes a session that is to be changed."""

    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        marked = app.load_session("s").with_metadata({"seen": 1})
        return {"created": [Session("first"), Session("second")], "updated": [marked], "deleted": ["gone"]}

    def disturb(app: AgentApplication, context: dict[str, Any]) -> None:
        if context["session"]["session_id"] != "gone":
            return
        stored = app.store.load(disturbed[0]) if disturbed[0] == "s" else None
        if stored is None:
            app.store.create(Session(disturbed[0]))
        else:
            app.store.save(stored.session.with_metadata({"beside": 1}), stored)

    disturbed = ["second"]
    app = make(Plugin(act), Plugin(disturb, "disturber", "session_delete_prepare"))
    for name in ("s", "gone"):
        app.create_session(session_id=name)
    kept = assets.put("gone", b"still here", name="note.txt")

    with pytest.raises(SessionExists, match="second"):
        do(app)
    assert ids(app) == {"s", "gone", "second"} and "seen" not in app.load_session("s").metadata

    app.store.delete("second")
    disturbed[0] = "s"
    with pytest.raises(RevisionConflict):
        do(app)
    assert ids(app) == {"s", "gone"} and app.load_session("s").metadata["beside"] == 1
    assert assets.read(kept.id) == b"still here"

    disturbed[0] = "somebody else"
    assert do(app)["mutations"]["created"] == ["first", "second"]
    assert ids(app) == {"s", "first", "second", "somebody else"}


@pytest.mark.parametrize("key", ["updated", "deleted"])
def test_a_session_that_another_process_holds_costs_the_whole_set(make: Make, key: str) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        marked: Any = app.load_session("s").with_metadata({"seen": 1})
        return {"created": [Session("new")], key: [marked if key == "updated" else "s"]}

    witness = Witness()
    app = make(Plugin(act), witness)
    app.create_session(session_id="s")
    lease = app.store.acquire("s", "somebody else", seconds=60)
    witness.seen.clear()

    with pytest.raises(SessionHeld, match="somebody else"):
        do(app)
    assert witness.seen == []
    assert ids(app) == {"s"} and "seen" not in app.load_session("s").metadata

    app.store.release(lease)
    do(app)
    assert ids(app) == ({"s", "new"} if key == "updated" else {"new"})


def test_a_session_that_runs_here_is_not_changed_and_can_be_deleted(make: Make) -> None:
    wanted: dict[str, Any] = {"created": [Session("new")], "updated": [Session("s")]}
    app = make(Plugin(lambda _app, _context: wanted), script=["an answer"])
    app.create_session(session_id="s")
    events = app.chat("s", "hello")
    next(events)

    with pytest.raises(SessionBusy):
        do(app)
    assert ids(app) == {"s"}

    wanted = {"deleted": ["s"]}
    do(app)  # as `delete_session` does, which cancels the run
    assert ids(app) == set()
    assert list(events)[-1]["type"] == "error"


@pytest.mark.parametrize("trigger", ["request_complete", "session_save_prepare"])
def test_a_lifecycle_cannot_lose_what_is_about_to_be_stored(make: Make, trigger: str) -> None:
    def act(_app: AgentApplication, context: dict[str, Any]) -> dict[str, Any]:
        return {"updated": [Session(context["session"]["session_id"])]}

    app = make(Plugin(act, trigger=trigger), script=["an answer"])
    app.save_session(Session("s"))

    events = list(app.chat("s", "hello"))

    assert texts(app, "s") == ["hello", "an answer"]
    [problem] = [event for event in events if event["type"] == "lifecycle_error"]
    assert (problem["plugin"], problem["error"]["type"]) == ("helper", "SessionOutdated")


@pytest.mark.parametrize("agent", ["other", "nobody"])
def test_a_session_changes_its_agent_by_switch_agent_alone(make: Make, agent: str) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        return {"updated": [app.load_session("s").with_metadata({"agent_id": agent})]}

    app = make(Plugin(act))
    app.create_session(session_id="s")

    with pytest.raises(ArgumentError, match="call switch_agent"):
        do(app)
    assert app.load_session("s").metadata["agent_id"] == "a"


@pytest.mark.parametrize("session_id", ["", "a\0b", "\ud800"])
def test_an_id_that_cannot_be_one_is_refused_before_any_lifecycle(make: Make, session_id: str) -> None:
    witness = Witness()
    app = make(Plugin(lambda _app, _context: {"created": [Session("new"), Session(session_id)]}), witness)

    with pytest.raises(AgentError):
        do(app)
    assert (ids(app), witness.seen) == (set(), [])


def test_an_action_can_delete_the_session_that_it_was_run_from(make: Make) -> None:
    app = make(Plugin(lambda _app, _context: {"deleted": ["s"], "created": [Session("next")]}))
    app.create_session(session_id="s")

    assert do(app) == {"mutations": {"created": ["next"], "updated": [], "deleted": ["s"]}}
    assert ids(app) == {"next"}


@pytest.mark.parametrize("key", ["created", "deleted"])
def test_a_lifecycle_neither_makes_nor_deletes_the_session_that_it_is_about(make: Make, key: str) -> None:
    def act(_app: AgentApplication, context: dict[str, Any]) -> dict[str, Any]:
        own = context["session"]["session_id"]
        return {key: [Session(own) if key == "created" else own], "updated": []}

    app = make(Plugin(act, trigger=["session_create", "session_delete_prepare"]))
    app.create_session(session_id="s")
    _, results = app.run_session_lifecycle("session_create", Session("t"))

    assert ids(app) == {"s"} and "that it is about" in results[0]["error"]["message"]
    app.delete_session("s")
    assert ids(app) == set()


def test_a_lifecycle_does_not_lose_what_is_about_to_be_stored(make: Make) -> None:
    def act(app: AgentApplication, context: dict[str, Any]) -> dict[str, Any] | None:
        if not context["session"]["messages"]:
            return None
        stored = app.load_session("s")  # without the message that is being saved
        return {"updated": [stored.with_metadata({"seen": 1})]}

    app = make(Plugin(act, trigger="session_save_prepare"))
    session = app.create_session(session_id="s")
    app.save_session(Session("s", [Message("user", "hello")], session.metadata))

    assert texts(app, "s") == ["hello"] and "seen" not in app.load_session("s").metadata


def test_actions_that_make_sessions_for_new_sessions_come_to_an_end(make: Make) -> None:
    numbers = count()

    def act(_app: AgentApplication, _context: Any) -> dict[str, Any]:
        return {"created": [Session(f"made-{next(numbers)}")]}

    triggers = ["session_create", "session_save_prepare"]
    app = make(*(Plugin(act, name, triggers) for name in ("one", "two")))
    app.create_session(session_id="s")

    # Each makes one, and the other one for that, at both lifecycles of each.
    assert len(ids(app)) == 1 + next(numbers) and len(ids(app)) < 20


def test_an_action_that_deletes_at_a_deletion_takes_no_part_in_that(make: Make) -> None:
    def act(app: AgentApplication, context: dict[str, Any]) -> dict[str, Any]:
        return {"deleted": sorted(ids(app) - {context["session"]["session_id"]})}

    app = make(Plugin(act, trigger="session_delete_prepare"))
    for name in ("one", "two", "three"):
        app.create_session(session_id=name)
    app.delete_session("one")

    assert ids(app) == set()


def test_many_sessions_are_deleted_at_once(make: Make, kind: str) -> None:
    many = 10 if kind == "postgres" else 300

    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        return {"deleted": [one.id for one in app.list_sessions(limit=500).sessions]}

    app = make(Plugin(act))
    with app.store.writing():
        for number in range(many):
            app.store.create(Session(f"s{number}"))

    assert len(do(app)["mutations"]["deleted"]) == many
    assert ids(app) == set()


def test_the_async_twin_refuses_a_stale_session_as_well(make: Make) -> None:
    def act(app: AgentApplication, _context: Any) -> dict[str, Any]:
        session = app.load_session("s")
        app.store.save(session.with_metadata({"beside": 1}), app.store.load("s"))
        return {"updated": [session.with_metadata({"seen": 1})]}

    app = make(Plugin(act))
    app.create_session(session_id="s")

    with pytest.raises(RevisionConflict):
        asyncio.run(app.execute_application_action_async("helper", "do", {}))
    assert app.load_session("s").metadata["beside"] == 1


def test_a_failing_lifecycle_costs_nothing(make: Make) -> None:
    def fail(_app: AgentApplication, _context: Any) -> None:
        raise PluginError("bad", "execute_action", "no")

    triggers = ["session_create", "session_save_prepare", "session_delete_prepare"]
    app = make(
        Plugin(lambda _app, _context: {"created": [Session("new")], "deleted": ["s"]}),
        Plugin(fail, "bad", triggers),
    )
    app.create_session(session_id="s")
    do(app)

    assert ids(app) == {"new"}


# Any set.

NAMES = [f"s{number}" for number in range(4)]
STATES = ["free", "held", "stale", "unseen"]


@st.composite
def sets(draw: Any) -> dict[str, Any]:
    """Which sessions are there, in which state, and what is asked for."""
    there = {name: draw(st.sampled_from(STATES)) for name in NAMES if draw(st.booleans())}
    wanted = {key: draw(st.lists(st.sampled_from(NAMES), max_size=2)) for key in ("created", "updated")}
    return {"there": there, **wanted, "deleted": draw(st.lists(st.sampled_from(NAMES), max_size=2))}


class Case:
    """A set of mutations, and the sessions that it meets."""

    def __init__(self, app: AgentApplication, assets: SessionAssetStore, case: dict[str, Any]) -> None:
        self._app = app
        self._assets = assets
        self.there: dict[str, str] = case["there"]
        self.created, self.updated, self.deleted = case["created"], case["updated"], case["deleted"]
        self.before: dict[str, Any] = {}
        for name in ids(app):
            app.store.delete(name, lease=app.store.acquire(name, "whoever", seconds=1, take_over=True))
            assets.delete_session(name)
        for name, state in self.there.items():
            app.store.create(Session(name, [Message("user", "old")], {"marks": 1}))
            assets.put(name, name.encode(), name="a")
            if state == "held":
                app.store.acquire(name, "somebody else", seconds=60)

    def mutations(self) -> dict[str, Any]:
        """Return what the action wants; some sessions change after it has seen them."""
        made = [Session(name, [Message("user", "made")]) for name in self.created]
        changed = [self._changed(name) for name in self.updated]
        for name in self.updated:
            if self.there.get(name) == "stale":
                stored = self._app.store.load(name)
                self._app.store.save(stored.session.with_metadata({"marks": 2}), stored)
        self.before = self.visible()
        return {"created": made, "updated": changed, "deleted": self.deleted}

    def _changed(self, name: str) -> Session:
        unseen = self.there.get(name, "unseen") == "unseen"
        session = Session(name) if unseen else self._app.load_session(name)
        return Session(name, [*session.messages, Message("user", "more")], session.metadata)

    def visible(self) -> dict[str, Any]:
        """Return the sessions, and what is attached to each; the action has not seen these."""
        found = {}
        for name in ids(self._app):
            session = self._app.store.load(name).session
            attached = [self._assets.read(one.id) for one in self._assets.list(name)]
            said = [message.content for message in session.messages]
            found[name] = (said, session.metadata.get("marks"), attached)
        return found

    def expected(self) -> dict[str, Any]:
        """Return what is there if all of it was done."""
        kept = {name: one for name, one in self.before.items() if name not in self.deleted}
        changed = {name: ([*self.before[name][0], "more"], *self.before[name][1:]) for name in self.updated}
        return {**kept, **{name: (["made"], None, []) for name in self.created}, **changed}

    @property
    def possible(self) -> bool:
        """Whether nothing stands against it."""
        named = [*self.created, *self.updated, *self.deleted]
        return (
            len(set(named)) == len(named)
            and not set(self.created) & set(self.there)
            and all(self.there.get(name) == "free" for name in self.updated)
            and all(self.there.get(name, "held") != "held" for name in self.deleted)
        )


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_of_any_set_everything_is_done_or_nothing(
    make: Make, assets: SessionAssetStore, data: st.DataObject
) -> None:
    cases: list[Case] = []
    app = make(Plugin(lambda _app, _context: cases[-1].mutations()))
    for _ in range(4):
        case = Case(app, assets, data.draw(sets()))
        cases.append(case)
        try:
            do(app)
        except AgentError:
            assert not case.possible and case.visible() == case.before
        else:
            assert case.possible and case.visible() == case.expected()
    app.close()
