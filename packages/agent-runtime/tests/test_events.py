"""What a run tells: every event has the fields that are promised, and comes when it is promised."""

from __future__ import annotations

import asyncio
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NotRequired, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings, strategies as st

import agent_core.events
from agent_core import AgentError, Message, Session, ToolSuspended
from agent_core.events import Event, RunEvent
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Block,
    Command,
    ContextPolicy,
    HealthRegistry,
    ModelSpec,
    RunRequest,
    SetResult,
    Suspend,
)
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_runtime import AgentRuntime, PluginRegistrar, RunResult
    from agent_runtime.phases import PhaseView
    from agent_runtime.verdicts import Verdict

Events = list[dict[str, Any]]

# The fields


def kind_of(event_class: Any) -> str:
    hints = get_type_hints(event_class, localns={"Session": Session})
    (kind,) = get_args(hints["type"])
    return str(kind)


CLASSES: dict[str, Any] = {kind_of(one): one for one in get_args(RunEvent)}
LEFT_OUT = {"session", "messages"}  # of the events of delegates, since the run above has sessions of its own


def check_fields(event: dict[str, Any], *, nested: bool = False) -> None:
    """Fail unless the event has exactly the fields of its class, of the types that it says."""
    event_class = CLASSES[event["type"]]
    hints = get_type_hints(event_class, localns={"Session": Session}, include_extras=True)
    optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    wanted = {name: hint for name, hint in hints.items() if not (nested and name in LEFT_OUT)}
    assert wanted.keys() - optional <= event.keys() <= wanted.keys(), event
    for name, value in event.items():
        assert fits(value, hints[name]), (event["type"], name, value, hints[name])
    if event["type"] == "tool_call_partial" and isinstance(event["part"], dict) and "type" in event["part"]:
        check_fields(event["part"], nested=True)


def fits(value: Any, hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return hint is Any or value in inside
    if origin is NotRequired or isinstance(hint, UnionType):
        return any(fits(value, one) for one in inside)
    if origin in (list, dict):
        items = value.values() if isinstance(value, dict) else value
        return isinstance(value, origin) and all(fits(item, inside[-1]) for item in items)
    kinds = (int, float) if hint is float else hint
    return isinstance(value, kinds) and (hint is bool or not isinstance(value, bool))


def test_the_checker_notices_what_is_wrong() -> None:
    good: dict[str, Any] = {"type": "step_start", "round": 1}
    check_fields(good)

    for bad in ({**good, "more": 1}, {"type": "step_start"}, {**good, "round": "1"}, {**good, "round": True}):
        with pytest.raises(AssertionError):
            check_fields(bad)


# The order


class Order:
    """Follows the events of one run, and fails at the first that is out of place."""

    MODEL = frozenset({"text", "reasoning", "status", "tool_call_args", "retry", "fallback", "compaction"})

    def __init__(self) -> None:
        self.place = "before"
        self.round: int | None = None
        self.open: dict[str, str] = {}
        self.nested: dict[str, Order] = {}
        self.answered: list[str] = []

    def follow(self, events: Events) -> Order:
        for event in events:
            self.take(event)
        assert self.place == "over", f"the run ends with {self.place}"
        return self

    def take(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        assert self.place != "over", f"{kind} after run_end"
        assert (self.place == "before") == (kind == "run_start"), f"{kind} while {self.place}"
        if kind in self.MODEL:
            assert self.place == "model", f"{kind} while {self.place}"
        elif kind != "warning" and not event.get("beside"):  # a question for a summary may come at any time
            getattr(self, f"_{kind}")(event)

    def _run_start(self, event: dict[str, Any]) -> None:
        self.place = "resumed" if event["resumed"] else "started"

    def _step_start(self, event: dict[str, Any]) -> None:
        assert self.place in ("started", "resumed", "between") and not self.open
        assert self.round is None or event["round"] == self.round + 1
        assert event["round"] >= 1
        self.round = event["round"]
        self.place = "model"

    def _usage(self, _event: dict[str, Any]) -> None:
        assert self.place == "model"
        self.place = "calls"

    def _tool_call_start(self, event: dict[str, Any]) -> None:
        assert self.place in ("calls", "resumed")
        assert event["call_id"] not in self.open and event["call_id"] not in self.answered
        self.open[event["call_id"]] = event["name"]

    def _tool_call_partial(self, event: dict[str, Any]) -> None:
        assert self.open[event["call_id"]] == event["name"]
        part = event["part"]
        if isinstance(part, dict) and part.get("type") in CLASSES:
            if part["type"] == "run_start":
                self.nested[event["call_id"]] = Order()
            self.nested[event["call_id"]].take(part)

    def _tool_call_result(self, event: dict[str, Any]) -> None:
        assert self.place in ("calls", "resumed")
        assert self.open.pop(event["call_id"], event["name"]) == event["name"]
        assert event["call_id"] not in self.answered
        self.answered.append(event["call_id"])
        nested = self.nested.get(event["call_id"])
        assert nested is None or nested.place == "over" or event["is_error"]

    def _step_end(self, event: dict[str, Any]) -> None:
        assert self.place == "calls" and event["round"] == self.round
        self.open.clear()  # what has no result now waits
        self.place = "between"

    def _suspended(self, event: dict[str, Any]) -> None:
        assert self.place not in ("suspended", "failed") and event["suspensions"]
        self.place = "suspended"

    def _error(self, _event: dict[str, Any]) -> None:
        assert self.place != "failed"
        self.place = "failed"

    def _run_end(self, event: dict[str, Any]) -> None:
        assert (event["reason"]["code"] == "error") == (self.place == "failed")
        assert event["reason"]["code"] != "suspended" or self.place == "suspended"
        self.place = "over"


START: dict[str, Any] = {"type": "run_start", "resumed": False}
STEP: dict[str, Any] = {"type": "step_start", "round": 1}
END: dict[str, Any] = {"type": "run_end", "reason": {"code": "natural_end"}}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [START],
        [END],
        [START, END, END],
        [START, END, {"type": "warning"}],
        [START, START, END],
        [START, {"type": "text"}, END],
        [START, {"type": "usage"}, END],
        [START, STEP, STEP, END],
        [START, STEP, {"type": "step_end", "round": 1}, END],
        [START, STEP, {"type": "tool_call_start", "call_id": "1", "name": "add"}, END],
        [START, {"type": "error"}, END],
        [START, {"type": "run_end", "reason": {"code": "suspended"}}],
    ],
)
def test_the_order_that_is_checked_can_be_violated(events: Events) -> None:
    with pytest.raises(AssertionError):
        Order().follow(events)


# A place where everything happens


class Vocal(ScriptedProvider):
    """Says more than text: what begins with a word and a colon is shown as something else."""

    def process_chunk(self, chunk: dict[str, Any], native_messages: Any, state: dict[str, Any]) -> Any:
        kind, _, rest = chunk.get("text", "").partition(": ")
        shown = {
            "think": {"reasoning": rest},
            "status": {"status": rest},
            "args": {"tool_call": {"index": 0, "id": None, "name": None, "arguments": rest}},
        }.get(kind)
        if shown is None:
            return super().process_chunk(chunk, native_messages, state)
        return [{"role": "assistant", **shown}], [], native_messages, state


class Strict:
    """Blocks, asks, answers itself, or fails, by the name of the tool."""

    name = "strict"
    version = "1"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.tool_gate(self._gate)
        registrar.phase_hook("step_start", self._steer)

    def _gate(self, view: PhaseView) -> Verdict | None:
        assert view.call is not None
        if view.call.name == "broken_gate":
            raise ValueError("boom")
        verdicts: dict[str, Verdict] = {
            "block": Block("no"),
            "ask": Suspend("May I?"),
            "given": SetResult({"a": 1}),
        }
        return verdicts.get(view.call.name)

    def _steer(self, view: PhaseView) -> Command | None:
        return Command().schedule("warn", "careful") if view.run.round == 2 else None


def nothing() -> str:
    """Do nothing."""
    return "nothing"


def fail() -> str:
    """Fail."""
    raise ValueError("boom")


def wait_for_answer(context: dict[str, Any]) -> str:
    """Ask somebody."""
    if context.get("decision") is None:
        raise ToolSuspended("What now?")
    return str(context["decision"].value)


def show() -> Iterator[dict[str, Any]]:
    """Show something before the result."""
    yield {"part": "half"}
    yield {"part": {"progress": 0.5}}
    yield {"success": True, "result": "all"}


class Showing:
    """A tool that shows something before its result."""

    name = "show"
    version = "1"
    parallel = True

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "show", "parameters": {"type": "object"}}}]

    def stream_tool(self, _name: str, _arguments: Any) -> Iterator[dict[str, Any]]:
        return show()


TOOLS: dict[str, Any] = {
    **dict.fromkeys(("nothing", "block", "ask", "given", "broken_gate"), nothing),
    "fail": fail,
    "wait_for_answer": wait_for_answer,
    "show": Showing(),
}


def place(script: list[Any], helper: list[Any] | None = None, **spec: Any) -> AgentRuntime:
    retry = {"max_retries": 1, "stream_retries": 0, "fallback_models": ["spare"]}
    own: dict[str, Any] = {"plugin_ids": ("strict",), "delegates": ("helper",), "sections": {"retry": retry}}
    builder = AgentRuntimeBuilder().with_agent_spec(AgentSpec("a", "m", **{**own, **spec}))
    builder.with_agent_spec(AgentSpec("helper", "h", plugin_ids=("strict",)))
    for model, provider in (("m", Vocal(script)), ("h", Vocal(helper or [])), ("spare", Vocal(["spare"]))):
        builder.with_provider(f"provider of {model}", provider)
        builder.with_model(ModelSpec(model, f"provider of {model}", context_window=1000))
    for name, tool in TOOLS.items():
        builder.with_tool(name, tool)
    builder.with_clock(ManualClock(auto_advance=True)).with_health(HealthRegistry())
    return builder.with_plugin("strict", Strict()).build()


def drive(runtime: AgentRuntime, request: RunRequest, driver: str = "run") -> tuple[Events, RunResult]:
    if driver == "run":
        stream = runtime.run(request)
        events = list(stream)
        assert stream.result is not None
        return events, stream.result

    async def watch() -> tuple[Events, RunResult]:
        stream = runtime.run_async(request)
        events = [event async for event in stream]
        assert stream.result is not None
        return events, stream.result

    return asyncio.run(watch())


def calling(*names: str) -> Reply:
    made = [ToolCall(name, {"prompt": "Go."} if name == "delegate_helper" else {}) for name in names]
    return Reply(tool_calls=made, usage={"input_tokens": 3, "output_tokens": 2})


def long_conversation() -> Session:
    roles = ("user", "assistant")
    return Session("s", [Message(roles[turn % 2], f"turn {turn} ".ljust(400, "a")) for turn in range(8)])


POLICY = ContextPolicy(keep_recent=2, reserve_tokens=100)
TALK = Reply(chunks=["think: hm", "status: loading", "args: {", "args: }", "Hello"])
PLAIN: dict[str, Any] = {"plugin_ids": (), "delegates": (), "sections": {}}

RUNS: dict[str, tuple[list[Any], list[Any], dict[str, Any], Session | None]] = {
    "talk": ([TALK], [], {}, None),
    "calls": ([calling("show", "nothing", "fail"), calling("show", "show"), "done"], [], {}, None),
    "gates": ([calling("block", "given", "broken_gate"), calling("ask", "nothing")], [], {}, None),
    "retry": ([ConnectionError("gone"), "back again"], [], {}, None),
    "fallback": ([ConnectionError("gone"), ConnectionError("gone")], [], {}, None),
    "error": ([ValueError("odd")], [], PLAIN, None),
    "half an answer": ([Reply(text="half", error=ValueError("odd"))], [], PLAIN, None),
    "compaction": (["A summary.", "done"], [], {**PLAIN, "context_policy": POLICY}, long_conversation()),
    "delegate": ([calling("delegate_helper"), "done"], [TALK], {}, None),
    "busy delegate": (
        [calling("delegate_helper", "show"), "done"],
        [calling("show", "fail", "block"), "helped"],
        {},
        None,
    ),
    "delegate that fails": ([calling("delegate_helper"), "done"], [ValueError("odd")], {}, None),
    "delegate that waits": ([calling("delegate_helper")], [calling("ask", "wait_for_answer")], {}, None),
    "tool that waits": ([calling("wait_for_answer", "nothing")], [], {}, None),
    "max_rounds": ([calling("nothing")], [], {"max_rounds": 1}, None),
}


@pytest.mark.parametrize("driver", ["run", "run_async"])
@pytest.mark.parametrize("name", RUNS)
def test_every_event_has_its_fields_and_its_place(name: str, driver: str) -> None:
    script, helper, spec, session = RUNS[name]

    events, _ = drive(place(script, helper, **spec), RunRequest("a", "Hello.", session), driver)

    for event in events:
        check_fields(event)
    Order().follow(events)


def test_every_type_of_event_occurs() -> None:
    seen = set()
    for script, helper, spec, session in RUNS.values():
        request = RunRequest("a", "Hello.", session, checkpoint=lambda _checkpoint: None, pauses=True)
        events, _ = drive(place(script, helper, **spec), request)
        seen |= {event["type"] for event in events}

    assert seen == set(CLASSES) - {"handoff"}  # which only an `Agent` has: see test_agent_handoffs.py


def test_the_classes_of_events_are_all_in_the_union() -> None:
    declared = {
        value
        for value in vars(agent_core.events).values()
        if isinstance(value, type) and "type" in value.__annotations__
    }

    assert declared == set(get_args(Event))


@pytest.mark.parametrize("driver", ["run", "run_async"])
@pytest.mark.parametrize("name", ["gates", "delegate that waits", "tool that waits"])
def test_a_run_that_goes_on_tells_it_in_the_same_way(name: str, driver: str) -> None:
    script, helper, spec, session = RUNS[name]
    runtime = place([*script, "done"], [*helper, "helped"], **spec)
    events, result = drive(runtime, RunRequest("a", "Hello.", session), driver)
    assert not events[0]["resumed"] and result.suspended

    while result.suspended:
        decisions = [{"target": one.id, "value": "yes"} for one in result.suspended]
        events, result = drive(runtime, RunRequest("a", session=result.session, decisions=decisions), driver)
        assert events[0]["resumed"]
        for event in events:
            check_fields(event)
        Order().follow(events)

    assert (result.reason.code, result.text) == ("natural_end", "done")


def test_the_last_event_says_what_the_result_says() -> None:
    events, result = drive(place([calling("show"), "done"]), RunRequest("a", "Hello."))

    last = events[-1]
    assert last["session"] is result.session and last["messages"] == result.messages
    assert last["reason"] == {"code": result.reason.code, "detail": result.reason.detail}
    assert (last["text"], last["rounds"], last["run_id"]) == (result.text, result.rounds, result.run_id)
    assert last["usage"] == result.usage.to_dict()
    added = [message for event in events if event["type"] == "step_end" for message in event["messages"]]
    assert [(one["role"], one["content"]) for one in result.messages[1:]] == [
        (one["role"], one["content"]) for one in added
    ]


# Random scripts

names = st.sampled_from(["nothing", "fail", "show", "block", "given", "ask", "wait_for_answer", "broken_gate",
                         "missing", "delegate_helper"])  # fmt: skip
lines = st.one_of(
    st.lists(names, min_size=1, max_size=4).map(lambda chosen: calling(*chosen)),
    st.lists(st.sampled_from(["think: a", "status: b", "args: c", "d", "e"]), max_size=4).map(
        lambda chunks: Reply(chunks=chunks)
    ),
    st.just(Reply(text="half", error=ValueError("odd"))),
    st.just(ConnectionError("gone")),
    st.just(AgentError("odd")),
)


@settings(max_examples=40)
@given(st.lists(lines, max_size=5), st.lists(lines, max_size=4), st.sampled_from(["run", "run_async"]))
def test_whatever_a_script_says_events_keep_their_order(
    script: list[Any], helper: list[Any], driver: str
) -> None:
    runtime = place(script, helper, max_rounds=4)
    events, result = drive(runtime, RunRequest("a", "Hello."), driver)
    told = [events]
    if result.suspended:
        decisions = [{"target": one.id, "value": "yes"} for one in result.suspended]
        told.append(drive(runtime, RunRequest("a", session=result.session, decisions=decisions), driver)[0])

    for events in told:
        for event in events:
            check_fields(event)
        Order().follow(events)
