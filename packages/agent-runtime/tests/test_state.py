"""State keys: their rules, their snapshots, and what of them outlives a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import Session
from agent_core.frozen import FrozenValueError
from agent_core.testing import ScriptedProvider
from agent_runtime import AgentRuntimeBuilder, AgentSpec, Command, ModelSpec, RunRequest, StateKey
from agent_runtime.errors import StateError
from agent_runtime.state import State
from agent_runtime.suspension import STATE

if TYPE_CHECKING:
    from agent_runtime import AgentRuntime, PluginRegistrar
    from agent_runtime.phases import PhaseView

PLAIN: StateKey[Any] = StateKey("plain", None)
TOTAL: StateKey[int] = StateKey("total", 0, merge="commutative", reduce=lambda total, more: total + more)
MOST: StateKey[int] = StateKey("most", 0, merge="commutative", reduce=max)
NAMES: StateKey[list[str]] = StateKey(
    "names", [], merge="commutative", reduce=lambda names, more: sorted({*names, *more})
)
KEYS: dict[str, StateKey[Any]] = {key.name: key for key in (PLAIN, TOTAL, MOST, NAMES)}

updates = st.lists(
    st.one_of(
        st.tuples(st.just("total"), st.integers(-5, 5)),
        st.tuples(st.just("most"), st.integers(0, 50)),
        st.tuples(st.just("names"), st.lists(st.sampled_from("abcd"))),
    )
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NO_JSON: list[Any] = [
    object(),
    {1, 2},
    b"bytes",
    float("nan"),
    float("inf"),
    {1: "a number as a key"},
    ["deep", {"inside": [print]}],
]


def applied(state: State, changes: list[tuple[str, Any]]) -> State:
    for name, update in changes:
        state = state.updated(name, update)
    return state


def test_a_key_without_updates_has_its_default() -> None:
    state = State(KEYS)

    assert state.read(TOTAL) == 0 and state["plain"] is None
    assert dict(state) == {"plain": None, "total": 0, "most": 0, "names": []}


def test_updating_gives_another_snapshot_and_leaves_the_first_alone() -> None:
    before = State(KEYS).updated("total", 2)

    after = before.updated("total", 3)

    assert (before.read(TOTAL), after.read(TOTAL)) == (2, 5)


@settings(max_examples=40)
@given(updates, st.randoms(use_true_random=False))
def test_commutative_updates_come_to_the_same_in_any_order(changes: list[Any], random: Any) -> None:
    shuffled = random.sample(changes, len(changes))

    assert dict(applied(State(KEYS), changes)) == dict(applied(State(KEYS), shuffled))


@settings(max_examples=40)
@given(st.lists(json_values, min_size=1))
def test_of_exclusive_updates_the_last_counts(values: list[Any]) -> None:
    state = applied(State(KEYS), [("plain", value) for value in values])

    assert state.read(PLAIN) == values[-1]


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["plain", "kept"]), json_values))
def test_what_is_saved_passes_through_json_and_comes_back(values: dict[str, Any]) -> None:
    keys = {"plain": PLAIN, "kept": StateKey("kept", None, scope="session")}
    state = applied(State(keys), list(values.items()))

    saved = [json.loads(json.dumps(state.saved(scope))) for scope in ("run", "session")]

    assert dict(State.restored(keys, *saved)) == dict(state)
    assert [set(part) for part in saved] == [values.keys() & {"plain"}, values.keys() & {"kept"}]


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: type(value).__name__)
def test_a_value_that_json_cannot_hold_is_refused_with_the_name_of_its_key(value: Any) -> None:
    with pytest.raises(StateError, match="'plain': JSON cannot hold its value") as caught:
        State(KEYS).updated("plain", value)

    assert caught.value.key == "plain"


@pytest.mark.parametrize("value", NO_JSON, ids=lambda value: type(value).__name__)
def test_a_rule_that_makes_such_a_value_is_refused_as_well(value: Any) -> None:
    key: StateKey[Any] = StateKey("made", None, reduce=lambda _value, update: update)

    with pytest.raises(StateError, match="'made': JSON cannot hold its value"):
        State({"made": key}).updated("made", value)


def test_a_value_that_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(StateError, match="contains itself"):
        State(KEYS).updated("plain", circle)


def test_a_key_that_nobody_registered_is_named_with_those_that_are_there() -> None:
    with pytest.raises(StateError, match=r"'other'.*nobody registered it; there are \['most', 'names'"):
        State(KEYS).updated("other", 1)


def test_a_rule_that_raises_names_its_key_and_the_update() -> None:
    with pytest.raises(StateError, match="'total': the update 'x' cannot be applied") as caught:
        State(KEYS).updated("total", "x")

    assert isinstance(caught.value.__cause__, TypeError)


def test_a_value_cannot_be_changed_in_place() -> None:
    given_list = ["a"]
    state = State(KEYS).updated("plain", given_list)
    given_list.append("b")

    with pytest.raises(FrozenValueError):
        state.read(PLAIN).append("c")

    assert state.read(PLAIN) == ["a"]


def test_a_default_cannot_be_changed_in_place_for_all_runs() -> None:
    with pytest.raises(FrozenValueError):
        State(KEYS).read(NAMES).append("a")

    assert NAMES.default == []


@pytest.mark.parametrize(
    ("about", "problem"),
    [
        ({"scope": "forever"}, "scope is run or session"),
        ({"merge": "somehow"}, "merge is exclusive or commutative"),
        ({"merge": "commutative"}, "needs a reduce function"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(about: dict[str, Any], problem: str) -> None:
    with pytest.raises(StateError, match=problem):
        StateKey("odd", 0, **about)


def test_saved_values_of_keys_that_are_gone_are_forgotten() -> None:
    assert dict(State.restored({"total": TOTAL}, {"total": 4, "gone": 1})) == {"total": 4}


# In runs


class Counting:
    """Counts runs per session and per run."""

    name = "counting"
    version = "1"
    sessions: StateKey[int] = StateKey(
        "counting.session", 0, scope="session", merge="commutative", reduce=lambda count, more: count + more
    )
    runs: StateKey[int] = StateKey(
        "counting.run", 0, merge="commutative", reduce=lambda count, more: count + more
    )

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.state_key(self.sessions)
        registrar.state_key(self.runs)
        registrar.phase_hook(
            "run_start", lambda _view: Command().update(self.sessions, 1).update(self.runs, 1)
        )
        registrar.phase_hook("run_end", self._look)

    def _look(self, view: PhaseView) -> None:
        self.seen.append((view.state.read(self.sessions), view.state.read(self.runs)))


def runtime_with(plugin: Any, script: list[Any]) -> AgentRuntime:
    return (
        AgentRuntimeBuilder()
        .with_agent_spec(AgentSpec("a", "m", plugin_ids=("it",)))
        .with_model(ModelSpec("m", "scripted"))
        .with_provider("scripted", ScriptedProvider(script))
        .with_plugin("it", plugin)
        .build()
    )


def test_a_key_of_session_scope_outlives_the_run_and_one_of_run_scope_does_not() -> None:
    plugin = Counting()
    runtime = runtime_with(plugin, ["one", "two", "three"])

    session: Session | None = None
    for text in "abc":
        result = runtime.run_to_completion(RunRequest("a", text, session))
        session = Session.from_dict(json.loads(json.dumps(result.session.to_dict())))

    assert plugin.seen == [(1, 1), (2, 1), (3, 1)]
    assert session is not None and session.metadata[STATE] == {"counting.session": 3}


def test_another_session_knows_nothing_of_it() -> None:
    plugin = Counting()
    runtime = runtime_with(plugin, ["one", "two"])

    for text in "ab":
        runtime.run_to_completion(RunRequest("a", text))

    assert plugin.seen == [(1, 1), (1, 1)]


def test_a_hook_that_gives_what_json_cannot_hold_ends_the_run_with_the_key_and_keeps_the_rest() -> None:
    class Careless:
        name = "careless"
        version = "1"

        def register(self, registrar: PluginRegistrar) -> None:
            registrar.state_key(StateKey("careless.things", None, scope="session"))
            registrar.phase_hook("step_end", lambda _view: Command().update("careless.things", {1, 2}))

    runtime = runtime_with(Careless(), ["one"])

    events = list(runtime.run(RunRequest("a", "x")))

    assert events[-1]["type"] == "run_end" and events[-1]["text"] == "one"
    assert events[-1]["reason"]["code"] == "error"
    assert "'careless.things'" in events[-1]["reason"]["detail"]
    json.dumps(events[-1]["session"].to_dict())


def test_metadata_that_is_no_state_does_not_prevent_a_run() -> None:
    plugin = Counting()
    session = Session("s", metadata={STATE: "not a mapping"})

    result = runtime_with(plugin, ["one"]).run_to_completion(RunRequest("a", "x", session))

    assert plugin.seen == [(1, 1)] and result.session.metadata[STATE] == {"counting.session": 1}
