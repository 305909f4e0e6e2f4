"""One run from start to end: phases, reasons, what is kept, and what a request may ask for."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ArgumentError, ArgumentTypeError, Cancellation, Message, ProviderError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    Checkpoint,
    Command,
    Phase,
    PhaseView,
    RunRequest,
    RunResult,
    StateKey,
    Suspend,
    Timeout,
)
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drive, Events, MakeRuntime, OpenCalls, Placing

    Plugin = type[Placing]

PATIENCE = 60.0


def look(place: str, context: Any) -> str:
    """Look at a place.

    Args:
        place: Where.
    """
    return f"{place} is empty"


def calling(*places: str, text: str = "", **options: Any) -> Reply:
    return Reply(text=text, tool_calls=[ToolCall("look", {"place": place}) for place in places], **options)


def types(events: Events) -> list[str]:
    return [event["type"] for event in events]


def contents(provider: ScriptedProvider, request: int) -> list[tuple[str, str]]:
    return [(item["role"], item["content"]) for item in provider.requests[request].native_messages]


# Phases


def recording(placing: Plugin, seen: list[str]) -> Placing:
    def note(view: PhaseView) -> None:
        call = "" if view.call is None else f" {view.call.arguments['place']}"
        seen.append(f"{view.phase}{call}")

    return placing(**{phase.value: note for phase in Phase})


def test_the_phases_come_in_their_order(make_runtime: MakeRuntime, placing: Plugin, drive: Drive) -> None:
    seen: list[str] = []
    runtime = make_runtime(
        [calling("attic", "cellar"), "Nothing there."],
        tools=[tool(look, parallel=False)],
        plugins={"p": recording(placing, seen)},
    )

    drive(runtime, RunRequest("a", "Look around."))

    assert seen == [
        "run_start",
        "step_start",
        "before_inference",
        "after_inference",
        "tool_gate attic",
        "before_tool_execute attic",
        "after_tool_execute attic",
        "tool_gate cellar",
        "before_tool_execute cellar",
        "after_tool_execute cellar",
        "step_end",
        "step_start",
        "before_inference",
        "after_inference",
        "step_end",
        "run_end",
    ]


def test_each_phase_sees_what_there_is_by_then(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    seen: dict[str, tuple[Any, ...]] = {}

    def note(view: PhaseView) -> None:
        reason = None if view.reason is None else view.reason.code
        result = None if view.result is None else view.result["content"]
        said = [message.content for message in view.messages]
        seen.setdefault(
            view.phase,
            (view.run.round, len(view.session.messages), said, result, reason, view.usage.requests),
        )

    plugin = placing(**{phase.value: note for phase in Phase})
    runtime = make_runtime([calling("attic", text="Up."), "Done."], tools=[look], plugins={"p": plugin})

    drive(runtime, RunRequest("a", "Look."))

    assert seen == {
        "run_start": (0, 1, [], None, None, 0),
        "step_start": (1, 1, [], None, None, 0),
        "before_inference": (1, 1, [], None, None, 0),
        "after_inference": (1, 2, ["Up."], None, None, 1),
        "tool_gate": (1, 2, ["Up."], None, None, 1),
        "before_tool_execute": (1, 2, ["Up."], None, None, 1),
        "after_tool_execute": (1, 3, ["Up."], "attic is empty", None, 1),
        "step_end": (1, 3, ["Up."], None, None, 1),
        "run_end": (2, 4, ["Done."], None, "natural_end", 2),
    }


def test_a_run_tells_its_events_in_the_order_of_the_phases(make_runtime: MakeRuntime, watch: Drive) -> None:
    runtime = make_runtime([calling("attic", text="Up."), "Done."], tools=[look])

    events, _result = watch(runtime, RunRequest("a", "Look."))

    assert types(events) == [
        "run_start",
        "step_start",
        "text",
        "usage",
        "tool_call_start",
        "tool_call_result",
        "step_end",
        "step_start",
        "text",
        "usage",
        "step_end",
        "run_end",
    ]


def test_plugins_are_activated_first_and_let_go_in_reverse(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    seen: list[str] = []

    def noting(word: str) -> Callable[[Any], None]:
        return lambda _view: seen.append(word)

    def plugin(name: str) -> Placing:
        hooks = {"run_start": noting(f"start {name}"), "run_end": noting(f"end {name}")}
        return placing(on_activate=noting(f"on {name}"), on_deactivate=noting(f"off {name}"), **hooks)

    runtime = make_runtime(["Hi."], plugins={"one": plugin("one"), "two": plugin("two")})

    drive(runtime, RunRequest("a", "Hello."))

    assert seen == ["on one", "on two", "start one", "start two", "end one", "end two", "off two", "off one"]


# Reasons


def suspending(_view: PhaseView) -> Suspend:
    return Suspend("May I?")


def stopping(_view: PhaseView) -> Command:
    return Command().stop("enough", "that will do")


def cancelled_token() -> Cancellation:
    token = Cancellation()
    token.cancel()
    return token


ENDINGS: dict[str, tuple[list[Any], dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "by itself": (["Hi."], {}, {}, ("natural_end", "")),
    "by a hook": (["Hi."], {"after_inference": stopping}, {}, ("enough", "that will do")),
    "by a hook before the model is asked": (
        ["Hi."],
        {"before_inference": stopping},
        {},
        ("enough", "that will do"),
    ),
    "by the last round": (
        [calling("attic")] * 100,
        {},
        {},
        ("max_rounds", "the model was asked 100 times, as often as max_rounds allows"),
    ),
    "by an error of the provider": (
        [ValueError("no luck")],
        {},
        {},
        ("error", "Plugin 'scripted', hook 'stream_api': raised ValueError: no luck"),
    ),
    "by the caller": (
        ["Hi."],
        {},
        {"cancellation": cancelled_token()},
        ("cancelled", "the caller cancelled the run"),
    ),
    "by waiting": (
        [calling("attic")],
        {"gate": suspending},
        {},
        ("suspended", "the run waits for decisions"),
    ),
    "by its budget": (
        ["Hi."],
        {},
        {"token_budget": 0},
        ("token_budget", "0 tokens were used, as many as allowed"),
    ),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_every_run_ends_once_and_says_why(
    how: str, make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    script, placed, asked, reason = ENDINGS[how]
    ended: list[Any] = []
    plugin = placing(run_end=lambda view: ended.append(tuple(view.reason)), **placed)
    runtime = make_runtime(script, tools=[look], plugins={"p": plugin})

    events, result = drive(runtime, RunRequest("a", "Hello.", **asked))

    assert ended == [reason]
    assert tuple(result.reason) == reason
    if events:
        assert types(events).count("run_end") == 1
        assert events[-1]["type"] == "run_end"
        assert tuple(events[-1]["reason"].values()) == reason


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.RUN_END])
def test_a_hook_that_fails_ends_the_run_and_leaves_a_whole_history(
    phase: Phase, make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    ended: list[Any] = []

    def fail(_view: PhaseView) -> None:
        raise ValueError("broken")

    plugin = placing(run_end=lambda view: ended.append(view.reason.code), **{phase.value: fail})
    runtime = make_runtime([calling("attic", "cellar"), "Done."], tools=[look], plugins={"p": plugin})

    events, result = drive(runtime, RunRequest("a", "Look."))

    assert result.reason.code == "error"
    assert str(result.error) == f"Plugin 'p', hook '{phase}': ValueError: broken"
    assert ended == ["error"]
    assert open_calls(result.session) == []
    if events:
        assert types(events)[-2:] == ["error", "run_end"]


def test_a_hook_that_fails_at_the_end_costs_nothing_but_the_good_reason(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    let_go: list[str] = []

    def fail(_view: PhaseView) -> None:
        raise ValueError("broken")

    failing = placing(run_end=fail, on_deactivate=lambda _view: let_go.append("failing"))
    other = placing(on_deactivate=lambda _view: let_go.append("other"))
    runtime = make_runtime(["Hi."], plugins={"p": failing, "q": other})

    events, result = drive(runtime, RunRequest("a", "Hello."))

    assert (result.reason.code, result.text) == ("error", "Hi.")
    assert let_go == ["other", "failing"]
    assert not events or types(events)[-2:] == ["error", "run_end"]


def test_an_error_of_the_end_does_not_hide_the_one_before(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    def fail(_view: PhaseView) -> None:
        raise ValueError("second")

    runtime = make_runtime([ValueError("first")], plugins={"p": placing(run_end=fail)})

    _events, result = drive(runtime, RunRequest("a", "Hello."))

    assert "first" in str(result.error)


def test_a_plugin_that_cannot_be_activated_ends_the_run_after_its_start(
    make_runtime: MakeRuntime, placing: Plugin, watch: Drive
) -> None:
    def fail(_view: PhaseView) -> None:
        raise ValueError("broken")

    runtime = make_runtime(["Hi."], plugins={"p": placing(on_activate=fail)})

    events, result = watch(runtime, RunRequest("a", "Hello."))

    assert types(events) == ["run_start", "error", "run_end"]
    assert result.reason.code == "error"


def test_state_that_cannot_be_kept_is_an_error_and_not_the_end_of_everything(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    key: StateKey[Any] = StateKey("thing", None, scope="session")
    plugin = placing(keys=[key], step_end=lambda _view: Command().update(key, object()))
    runtime = make_runtime(["Hi."], plugins={"p": plugin})

    events, result = drive(runtime, RunRequest("a", "Hello."))

    assert (result.reason.code, result.text) == ("error", "Hi.")
    assert "State key 'thing'" in str(result.error)
    assert not events or types(events)[-2:] == ["error", "run_end"]


def test_a_hook_whose_side_question_fails_does_not_swap_the_conversation(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    class OnlyStreams(ScriptedProvider):
        call_api = None  # type: ignore[assignment]
        call_api_async = None  # type: ignore[assignment]

    def ask(view: PhaseView) -> Any:
        yield from view.run.ask([Message("user", "And what is the title?")])

    script: list[Any] = ["Hi.", Reply(text="The ti", error=ValueError("broken"))]
    runtime = make_runtime(OnlyStreams(script), plugins={"p": placing(step_end=ask)})

    _events, result = drive(runtime, RunRequest("a", "Hello."))

    assert result.reason.code == "error"
    assert [message.content for message in result.session.messages] == ["Hello.", "Hi."]


# What is kept


def test_the_result_has_everything_that_the_run_added(make_runtime: MakeRuntime, drive: Drive) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    prices = {"input_price": 2.0, "output_price": 10.0}
    script = [calling("attic", text="Up.", usage=usage), Reply(text="Nothing.", usage=usage)]
    runtime = make_runtime(script, tools=[look], model=prices)
    before = Session("s", [Message("user", "Hello."), Message("assistant", "Hi.")])

    _events, result = drive(runtime, RunRequest("a", "Look.", before))

    assert [(message["role"], message["content"]) for message in result.messages] == [
        ("user", "Look."),
        ("assistant", "Up."),
        ("tool", "attic is empty"),
        ("assistant", "Nothing."),
    ]
    assert [message.to_dict() for message in result.session.messages][2:] == result.messages
    assert [message.content for message in result.session.messages][:2] == ["Hello.", "Hi."]
    assert (result.text, result.rounds, result.session.session_id) == ("Nothing.", 2, "s")
    assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (2, 2000, 200)
    assert result.usage.cost == pytest.approx(2 * (1000 * 2.0 + 100 * 10.0) / 1_000_000)
    assert result.error is None
    assert result.raise_for_error() is result


def test_the_last_event_says_what_the_result_says(make_runtime: MakeRuntime, watch: Drive) -> None:
    runtime = make_runtime([calling("attic", usage={"input_tokens": 3}), "Nothing."], tools=[look])

    events, result = watch(runtime, RunRequest("a", "Look.", run_id="r"))

    assert events[-1] == {
        "type": "run_end",
        "run_id": "r",
        "agent_id": "a",
        "reason": {"code": "natural_end", "detail": ""},
        "text": result.text,
        "rounds": result.rounds,
        "usage": result.usage.to_dict(),
        "session": result.session,
        "messages": result.messages,
    }
    told = [message for event in events if event["type"] == "step_end" for message in event["messages"]]
    assert [message["content"] for message in told] == [message["content"] for message in result.messages[1:]]


def test_an_error_keeps_the_text_that_was_there(make_runtime: MakeRuntime, drive: Drive) -> None:
    script = [calling("attic"), Reply(chunks=["It is ", "all em"], error=ValueError("broken"))]
    runtime = make_runtime(script, tools=[look])

    events, result = drive(runtime, RunRequest("a", "Look."))

    assert (result.reason.code, result.text) == ("error", "It is all em")
    assert result.session.messages[-1].metadata["interrupted"] == "error"
    with pytest.raises(ProviderError, match="broken"):
        result.raise_for_error()
    if events:
        assert types(events)[-2:] == ["error", "run_end"]
        assert events[-1]["text"] == "It is all em"
        assert json.loads(json.dumps(events[-2]))["error"]["plugin"] == "scripted"


class Breaking(ScriptedProvider):
    """Fails behind its last chunk, when all calls are there."""

    def stream_api(self, native_messages: Any, state: Any, request_id: str | None = None) -> Any:
        yield from super().stream_api(native_messages, state, request_id)
        raise ConnectionError("cut")

    async def stream_api_async(self, native_messages: Any, state: Any, request_id: str | None = None) -> Any:
        async for chunk in super().stream_api_async(native_messages, state, request_id):
            yield chunk
        raise ConnectionError("cut")


def test_calls_of_an_answer_that_broke_off_are_answered(
    make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    runtime = make_runtime(Breaking([calling("attic", text="Up.")]), tools=[look])

    _events, result = drive(runtime, RunRequest("a", "Look."))

    assert (result.reason.code, result.text) == ("error", "Up.")
    assert open_calls(result.session) == []


def test_a_run_without_any_text_has_none(make_runtime: MakeRuntime, drive: Drive) -> None:
    runtime = make_runtime([Reply(text="")])
    before = Session("s", [Message("user", "Hello."), Message("assistant", "An old word.")])

    _events, result = drive(runtime, RunRequest("a", "And?", before))

    assert result.text == ""
    assert result.reason.code == "natural_end"


# What a request may ask for


class Scene:
    """Two agents, a tool that notes its context, and everything that a run showed."""

    def __init__(self, make_runtime: MakeRuntime, placing: Plugin) -> None:
        self.clock = ManualClock()
        usage = {"input_tokens": 60, "output_tokens": 40}
        script: list[Any] = [calling("attic", text="Up.", usage=usage), Reply(text="Nothing.", usage=usage)]
        script.append("More.")
        self.provider = ScriptedProvider(script)
        self.contexts: list[Any] = []
        self.parents: list[Any] = []
        self.events: Events = []
        self.kept: list[str] = []
        self.came = [["Wait!"]]
        self.result: RunResult | None = None
        plugin = placing(step_start=lambda view: self.parents.append(view.run.parents))
        self.runtime = make_runtime(
            self.provider,
            tools=[self.look],
            plugins={"p": plugin},
            clock=self.clock,
            model={"input_price": 10_000.0, "output_price": 0.0},
        )
        agents = self.runtime.registries.agents
        agents.add("b", replace(self.runtime.resolve("a").spec, id="b"))

    def look(self, place: str, context: Any) -> str:
        """Look at a place."""
        self.contexts.append(context)
        self.clock.advance(5)
        return f"{place} is empty"

    def run(self, **changed: Any) -> Scene:
        request = RunRequest(**{"agent_id": "a", "messages": "Look.", **changed})
        stream = self.runtime.run(request)
        self.events = list(stream)
        self.result = stream.result
        return self

    @property
    def reason(self) -> str:
        return "" if self.result is None else self.result.reason.code


FIELDS: dict[str, tuple[Callable[[Scene], Any], Callable[[Scene], Any], Any, Any]] = {
    "agent_id": (lambda _: "b", lambda scene: scene.events[-1]["agent_id"], "a", "b"),
    "messages": (
        lambda _: ["One.", Message("user", "Two."), {"role": "user", "content": "Three."}],
        lambda scene: [content for _, content in contents(scene.provider, 0)],
        ["Look."],
        ["One.", "Two.", "Three."],
    ),
    "session": (
        lambda _: Session("s", [Message("user", "Before.")]),
        lambda scene: [content for _, content in contents(scene.provider, 0)],
        ["Look."],
        ["Before.", "Look."],
    ),
    "run_id": (
        lambda _: "mine",
        lambda scene: scene.events[0]["run_id"] == scene.events[-1]["run_id"] == "mine",
        False,
        True,
    ),
    "config": (
        lambda _: {"temperature": 0.5},
        lambda scene: [request.config.get("temperature") for request in scene.provider.requests],
        [None, None],
        [0.5, 0.5],
    ),
    "stream": (lambda _: False, lambda scene: types(scene.events).count("text"), 2, 0),
    "silent": (lambda _: True, lambda scene: {*types(scene.events)} - {"text"} == set(), False, True),
    "timeout": (lambda _: 4.0, lambda scene: scene.reason, "natural_end", "timeout"),
    "token_budget": (lambda _: 100, lambda scene: scene.reason, "natural_end", "token_budget"),
    "cost_budget": (lambda _: 0.6, lambda scene: scene.reason, "natural_end", "cost_budget"),
    "cancellation": (lambda _: cancelled_token(), lambda scene: scene.reason, "natural_end", "cancelled"),
    "context": (
        lambda _: {"user": "ada", "agent_id": "forged"},
        lambda scene: [(context.get("user"), context["agent_id"]) for context in scene.contexts],
        [(None, "a")],
        [("ada", "a")],
    ),
    "checkpoint": (
        lambda scene: lambda checkpoint: scene.kept.append(checkpoint.kind),
        lambda scene: scene.kept,
        [],
        ["input", "answer", "intent", "result", "answer", "end"],
    ),
    "inbox": (
        lambda scene: lambda: scene.came.pop() if scene.came else [],
        lambda scene: [content for _, content in contents(scene.provider, 1)][-1],
        "attic is empty",
        "Wait!",
    ),
    "parents": (lambda _: ("boss",), lambda scene: scene.parents, [(), ()], [("boss",), ("boss",)]),
}


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_a_request_changes_the_run(
    field: str, make_runtime: MakeRuntime, placing: Plugin
) -> None:
    value, observe, usual, changed = FIELDS[field]
    plain, scene = Scene(make_runtime, placing), Scene(make_runtime, placing)

    assert observe(plain.run()) == usual
    assert observe(scene.run(**{field: value(scene)})) == changed


def test_no_field_of_a_request_is_left_out() -> None:
    # Decisions and what was granted need rules that ask, and a run that is resumed another one before it: see
    # the tests of suspension, of permissions and of resumable runs. Limits and dependencies have tests of
    # their own as well.
    others = {
        "ask_anyway",
        "decisions",
        "deps",
        "granted",
        "journey",
        "limits",
        "pauses",
        "resumable",
        "trace",
    }
    assert {*FIELDS, *others} == {field.name for field in fields(RunRequest)}


def test_settings_of_a_request_are_stronger_than_all_others(make_runtime: MakeRuntime, drive: Drive) -> None:
    provider = ScriptedProvider(["Hi.", "Hi."])
    sections = {"config": {"temperature": 0.1, "top_p": 0.2}}
    runtime = make_runtime(
        provider, sections=sections, model={"config": {"temperature": 0.9, "top_p": 0.9, "seed": 7}}
    )

    drive(runtime, RunRequest("a", "Hello.", config={"temperature": 0.5}))
    drive(runtime, RunRequest("a", "Hello."))

    seen = [
        [request.config[key] for key in ("temperature", "top_p", "seed")] for request in provider.requests
    ]
    assert seen == [[0.5, 0.2, 7], [0.1, 0.2, 7]]


@pytest.mark.parametrize("session", [None, Session("s"), Session("s", [Message("assistant", "Hi.")])])
def test_a_request_with_nothing_to_ask_is_refused(
    session: Session | None, make_runtime: MakeRuntime, drive: Drive
) -> None:
    provider = ScriptedProvider(["Hi."])

    with pytest.raises(ArgumentError, match="there is nothing to ask: give messages"):
        drive(make_runtime(provider), RunRequest("a", session=session))

    assert provider.requests == []


@pytest.mark.parametrize(
    "last",
    [Message("user", "Hello?"), Message("assistant", "I was abou", {"interrupted": "cancelled"})],
    ids=["question", "interrupted"],
)
def test_a_session_that_ends_with_an_open_question_needs_no_message(
    last: Message, make_runtime: MakeRuntime, drive: Drive
) -> None:
    _events, result = drive(make_runtime(["Hi."]), RunRequest("a", session=Session("s", [last])))

    assert (result.text, len(result.messages)) == ("Hi.", 1)


def test_a_session_that_ends_with_an_answer_is_asked_about_if_the_request_wants_it(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    runtime = make_runtime(["More."])
    answered = Session("s", [Message("user", "Hello?"), Message("assistant", "Hi.")])

    _events, result = drive(runtime, RunRequest("a", session=answered, ask_anyway=True))
    with pytest.raises(ArgumentError, match="there is nothing to ask"):
        drive(runtime, RunRequest("a", session=Session("s"), ask_anyway=True))

    assert [message.content for message in result.session.messages] == ["Hello?", "Hi.", "More."]


@pytest.mark.parametrize("wrong", [5, [5], [["nested"]]])
def test_messages_that_are_none_are_refused(wrong: Any, make_runtime: MakeRuntime, drive: Drive) -> None:
    provider = ScriptedProvider(["Hi."])

    with pytest.raises((ArgumentTypeError, TypeError)):
        drive(make_runtime(provider), RunRequest("a", wrong))

    assert provider.requests == []


class CountingToken:
    """A caller's token that knows who listens to it."""

    cancelled = False

    def __init__(self) -> None:
        self.listening: set[object] = set()

    def add_callback(self, callback: Callable[[], None]) -> object:
        self.listening.add(callback)
        return callback

    def remove_callback(self, token: object) -> None:
        self.listening.discard(token)


@pytest.mark.parametrize("messages", ["Hello.", ()], ids=["run", "refused"])
def test_a_run_lets_go_of_the_token_and_of_its_alarm(
    messages: Any, make_runtime: MakeRuntime, drive: Drive
) -> None:
    token, clock = CountingToken(), ManualClock()
    runtime = make_runtime([calling("attic"), "Hi."], tools=[look], clock=clock)

    try:
        drive(runtime, RunRequest("a", messages, cancellation=token, timeout=5))
    except ArgumentError:
        assert not messages

    assert token.listening == set()
    assert clock._due == []


# Time and money


def after(event: threading.Event, action: Callable[[], Any]) -> None:
    """Do something in another thread once the event has happened."""

    def wait() -> None:
        assert event.wait(PATIENCE)
        action()

    threading.Thread(target=wait, daemon=True).start()


def hanging(asked: threading.Event) -> Callable[[Any], Reply]:
    def line(_native: Any) -> Reply:
        asked.set()
        return Reply(chunks=["I am thi", "nking"], delay=(0.0, math.inf))

    return line


@pytest.mark.parametrize("stream", [True, False])
def test_a_model_that_hangs_is_stopped_when_the_time_is_over(
    stream: bool, make_runtime: MakeRuntime, drive: Drive
) -> None:
    clock, asked = ManualClock(), threading.Event()
    runtime = make_runtime([hanging(asked)], clock=clock)
    after(asked, lambda: clock.advance(30))

    _events, result = drive(runtime, RunRequest("a", "Hello.", timeout=30, stream=stream))

    assert tuple(result.reason) == ("timeout", "the run took longer than 30 seconds")


def test_a_stop_condition_of_time_also_stops_a_model_that_hangs(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    clock, asked = ManualClock(), threading.Event()
    runtime = make_runtime([hanging(asked)], clock=clock, stop_conditions=[Timeout(30)])
    after(asked, lambda: clock.advance(30))

    _events, result = drive(runtime, RunRequest("a", "Hello.", timeout=100))

    assert tuple(result.reason) == ("timeout", "the run took longer than 30 seconds")


def test_what_a_model_said_before_the_time_was_over_is_kept(make_runtime: MakeRuntime) -> None:
    clock, asked = ManualClock(), threading.Event()
    runtime = make_runtime([hanging(asked)], clock=clock)
    shown: list[Any] = []
    stream = runtime.run(RunRequest("a", "Hello.", timeout=30))
    for event in stream:
        shown.append(event)
        if event["type"] == "text":
            clock.advance(30)

    assert shown[-1]["reason"]["code"] == "timeout"
    assert shown[-1]["text"] == "I am thi"


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_tool_that_hangs_is_stopped_when_the_time_is_over(
    is_async: bool, parallel: bool, make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    clock, begun, let_go = ManualClock(), threading.Event(), threading.Event()

    def hang() -> str:
        """Never answer."""
        begun.set()
        let_go.wait(PATIENCE)
        return "late"

    async def hang_async() -> str:
        """Never answer."""
        import asyncio

        begun.set()
        await asyncio.Event().wait()
        return "late"

    hung = tool(hang_async if is_async else hang, name="hang", parallel=parallel)
    calls = [ToolCall("hang")] * (2 if parallel else 1)
    runtime = make_runtime([Reply(tool_calls=calls), "Done."], tools=[hung], clock=clock)
    after(begun, lambda: clock.advance(30))

    _events, result = drive(runtime, RunRequest("a", "Hello.", timeout=30))
    let_go.set()

    assert result.reason.code == "timeout"
    assert open_calls(result.session) == []
    assert result.session.messages[-1].metadata["error"]["type"] == "cancelled"


def test_a_budget_stops_a_run_before_its_calls_run(
    make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    ran: list[str] = []

    def spend(place: str) -> str:
        """Spend."""
        ran.append(place)
        return place

    reply = Reply(tool_calls=[ToolCall("spend", {"place": "x"})], usage={"input_tokens": 10})
    runtime = make_runtime([reply, reply, reply], tools=[spend])

    _events, result = drive(runtime, RunRequest("a", "Go.", token_budget=20))

    assert (result.reason.code, result.rounds, len(ran)) == ("token_budget", 2, 1)
    assert open_calls(result.session) == []
    assert "not run" in str(result.session.messages[-1].content)


# Messages that come meanwhile


def test_an_inbox_continues_a_run_that_would_end(make_runtime: MakeRuntime, drive: Drive) -> None:
    provider = ScriptedProvider(["First.", "Second.", "Third."])
    came: list[list[Any]] = [[], [Message("user", "And one more.")], ["And now?", "Please."]]

    _events, result = drive(
        make_runtime(provider), RunRequest("a", "Hello.", inbox=lambda: came.pop() if came else [])
    )

    assert (result.text, result.rounds, result.reason.code) == ("Third.", 3, "natural_end")
    assert [content for role, content in contents(provider, 2) if role == "user"] == [
        "Hello.",
        "And now?",
        "Please.",
        "And one more.",
    ]
    assert [message["content"] for message in result.messages if message["role"] == "user"] == [
        "Hello.",
        "And now?",
        "Please.",
        "And one more.",
    ]


def test_an_inbox_does_not_keep_alive_a_run_that_must_stop(make_runtime: MakeRuntime, drive: Drive) -> None:
    asked: list[int] = []

    def inbox() -> list[str]:
        asked.append(1)
        return ["more"]

    runtime = make_runtime(["Hi."] * 5, max_rounds=2)

    _events, result = drive(runtime, RunRequest("a", "Hello.", inbox=inbox))

    assert (result.reason.code, result.rounds, len(asked)) == ("natural_end", 2, 1)


# Checkpoints


def test_checkpoints_come_in_order_with_the_intent_before_and_the_result_after_each_call(
    make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    log: list[Any] = []

    def look(place: str) -> str:
        """Look at a place."""
        log.append(f"runs {place}")
        return "empty"

    def keep(checkpoint: Checkpoint) -> None:
        log.append((checkpoint.kind, checkpoint.call_id, open_calls(checkpoint.session)))

    runtime = make_runtime([calling("attic", "cellar"), "Done."], tools=[tool(look, parallel=False)])

    drive(runtime, RunRequest("a", "Look.", checkpoint=keep))

    assert log == [
        ("input", None, []),
        ("answer", None, ["call_1", "call_2"]),
        ("intent", "call_1", ["call_1", "call_2"]),
        "runs attic",
        ("result", "call_1", ["call_2"]),
        ("intent", "call_2", ["call_2"]),
        "runs cellar",
        ("result", "call_2", []),
        ("answer", None, []),
        ("end", None, []),
    ]


def test_the_session_of_every_checkpoint_can_be_gone_on_with(make_runtime: MakeRuntime, drive: Drive) -> None:
    kept: list[Session] = []
    runtime = make_runtime([calling("attic"), "Done."], tools=[look])
    drive(runtime, RunRequest("a", "Look.", checkpoint=lambda checkpoint: kept.append(checkpoint.session)))

    for session in kept:
        again = Session.from_dict(json.loads(json.dumps(session.to_dict())))
        _events, result = drive(make_runtime(["Here."], tools=[look]), RunRequest("a", "Go on.", again))

        assert (result.reason.code, result.text) == ("natural_end", "Here.")
        assert len(result.session.messages) == len(session.messages) + 2


@pytest.mark.parametrize("kind", ["input", "answer", "intent", "result", "end"])
def test_a_checkpoint_that_cannot_be_kept_ends_the_run(
    kind: str, make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    ran: list[str] = []

    def look(place: str) -> str:
        """Look at a place."""
        ran.append(place)
        return "empty"

    def keep(checkpoint: Checkpoint) -> None:
        if checkpoint.kind == kind:
            raise OSError("disk full")

    runtime = make_runtime([calling("attic"), "Done."], tools=[look])

    events, result = drive(runtime, RunRequest("a", "Look.", checkpoint=keep))

    assert result.reason.code == "error"
    assert "disk full" in str(result.error)
    assert open_calls(result.session) == []
    assert ran == ([] if kind in ("input", "answer", "intent") else ["attic"])
    assert not events or types(events)[-2:] == ["error", "run_end"]


# Answers that are not whole


def test_a_model_that_paused_is_asked_again_without_a_word(make_runtime: MakeRuntime, drive: Drive) -> None:
    provider = ScriptedProvider([Reply(text="Let me", extra={"_metadata": {"ending": "paused"}}), " see."])

    _events, result = drive(make_runtime(provider), RunRequest("a", "Hello."))

    assert (result.rounds, result.reason.code) == (2, "natural_end")
    assert contents(provider, 1) == [("user", "Hello."), ("assistant", "Let me")]


def test_a_call_that_was_cut_off_is_not_run_and_the_model_learns_it(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    cut_off = {"ending": "length", "incomplete_tool_calls": [{"name": "look", "arguments": '{"pla'}]}
    provider = ScriptedProvider([Reply(text="", extra={"_metadata": cut_off}), calling("attic"), "Done."])

    _events, result = drive(make_runtime(provider, tools=[look]), RunRequest("a", "Look."))

    assert (result.rounds, result.reason.code, result.text) == (3, "natural_end", "Done.")
    role, note = contents(provider, 1)[-1]
    assert role == "user"
    assert "was cut off" in note
    assert [message["role"] for message in result.messages] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    assert not any("cut off" in content for _, content in contents(provider, 2))


def test_a_model_that_is_cut_off_again_and_again_is_not_asked_for_ever(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    cut_off = Reply(text="x", extra={"_metadata": {"incomplete_tool_calls": [{}]}})

    _events, result = drive(make_runtime([cut_off] * 10), RunRequest("a", "Look."))

    assert (result.rounds, result.reason.code) == (3, "length")


def test_an_answer_that_is_only_too_long_is_the_end(make_runtime: MakeRuntime, drive: Drive) -> None:
    runtime = make_runtime([Reply(text="Once upon a", extra={"_metadata": {"ending": "length"}})])

    _events, result = drive(runtime, RunRequest("a", "Tell me."))

    assert (result.rounds, result.reason.code, result.text) == (1, "length", "Once upon a")


# Plugins that fail


def test_an_action_that_fails_at_the_end_of_a_turn_is_a_warning(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    class Failing:
        name = "failing"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "adjust", "trigger": "response_finalize"}]

        def execute_action(self, *_given: Any) -> dict[str, Any]:
            raise LookupError("no idea")

    runtime = make_runtime(["Hello."], plugins={"failing": Failing})

    events, result = drive(runtime, RunRequest("a", "Hi."))

    assert result.text == "Hello."
    for warning in [event for event in events if event["type"] == "warning"]:
        assert warning["plugin"] == "failing"
        assert "action 'adjust' failed" in warning["message"] and "no idea" in warning["message"]
    assert not events or "warning" in types(events)


def test_an_unclaimed_section_is_an_event_once_in_a_conversation(make_runtime: MakeRuntime) -> None:
    runtime = make_runtime(["Hello.", "Again."], sections={"memroy": {"size": 3}})

    first = runtime.run(RunRequest("a", "Hi."))
    seen = [event["message"] for event in first if event["type"] == "warning"]
    assert first.result is not None
    again = list(runtime.run(RunRequest("a", "More.", first.result.session)))

    assert len(seen) == 1 and "section 'memroy'" in seen[0]
    assert "warning" not in types(again)
