"""Phases at work: what hooks see, how their commands come together, and what the loop makes of them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentError, PluginError, Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Command,
    ModelSpec,
    Phase,
    PhaseLoopExceeded,
    RunRequest,
    RunResult,
    StateKey,
    Suspend,
)
from agent_runtime.engine import MOST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.steps import Flow
    from agent_runtime import AgentRuntime, PluginRegistrar
    from agent_runtime.phases import PhaseView

Events = list[dict[str, Any]]
DRIVERS = ("run", "run_async", "run_to_completion", "run_to_completion_async")
LOG: StateKey[list[str]] = StateKey("log", [])
COUNT: StateKey[int] = StateKey("count", 0, merge="commutative", reduce=lambda count, more: count + more)


class Placing:
    """A plugin that does what the test gives it."""

    name = "placing"
    version = "1"

    def __init__(self, place: Callable[[PluginRegistrar], object]) -> None:
        self._place = place

    def register(self, registrar: PluginRegistrar) -> None:
        self._place(registrar)


class Setting(NamedTuple):
    """A runtime with one agent, and the provider that it asks."""

    runtime: AgentRuntime
    provider: ScriptedProvider


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def setting(script: list[Any], plugins: dict[str, Any], provider: Any = None, **spec: Any) -> Setting:
    asked = provider or ScriptedProvider(script)
    builder = AgentRuntimeBuilder().with_agent_spec(AgentSpec("a", "m", plugin_ids=tuple(plugins), **spec))
    builder.with_model(ModelSpec("m", "scripted")).with_provider("scripted", asked)
    for plugin_id, plugin in plugins.items():
        builder.with_plugin(plugin_id, plugin if hasattr(plugin, "register") else Placing(plugin))
    for name in ("add", "subtract", "divide"):
        builder.with_tool(name, add)
    return Setting(builder.build(), asked)


async def collect(runtime: AgentRuntime, request: RunRequest) -> tuple[Events, RunResult]:
    stream = runtime.run_async(request)
    events = [event async for event in stream]
    assert stream.result is not None
    return events, stream.result


def drive(runtime: AgentRuntime, request: RunRequest, driver: str = "run") -> tuple[Events, RunResult]:
    """Run a request in one of the four ways; who only waits for the result sees no events."""
    if driver == "run":
        stream = runtime.run(request)
        events = list(stream)
        assert stream.result is not None
        return events, stream.result
    if driver == "run_async":
        return asyncio.run(collect(runtime, request))
    if driver == "run_to_completion":
        return [], runtime.run_to_completion(request)
    return [], asyncio.run(runtime.run_to_completion_async(request))


def run(script: list[Any], *places: Any, **spec: Any) -> tuple[Events, RunResult]:
    """Run one request with a plugin for each function that places something."""
    plugins = {f"p{number}": place for number, place in enumerate(places)}
    return drive(setting(script, plugins, **spec).runtime, RunRequest("a", "Hello."))


def of_type(events: Events, kind: str) -> Events:
    return [event for event in events if event["type"] == kind]


def warnings_of(events: Events) -> list[str]:
    return [event["message"] for event in of_type(events, "warning")]


def hook(phase: str, function: Callable[[PhaseView], Any]) -> Callable[[PluginRegistrar], None]:
    return lambda registrar: registrar.phase_hook(phase, function)


def calling(*names: str, **more: Any) -> Reply:
    return Reply(tool_calls=[ToolCall(name, {"a": 1, "b": 2}) for name in names], **more)


# Snapshots and conflicts


@pytest.mark.parametrize("driver", DRIVERS)
def test_all_hooks_of_a_phase_see_the_state_as_it_was_when_the_phase_began(driver: str) -> None:
    seen: list[tuple[str, int]] = []

    def place(registrar: PluginRegistrar) -> None:
        def count(view: PhaseView) -> Command:
            seen.append((view.phase.value, view.state.read(COUNT)))
            return Command().update(COUNT, 1)

        for phase in ("run_start", "run_start", "step_start"):
            registrar.phase_hook(phase, count)

    made = setting(["hi"], {"keys": lambda registrar: registrar.state_key(COUNT), "it": place})
    drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert seen == [("run_start", 0), ("run_start", 0), ("step_start", 2)]


def test_the_second_hook_that_updates_an_exclusive_key_is_asked_again_with_the_first_update_in_sight() -> (
    None
):
    seen: list[tuple[str, list[str]]] = []

    def writer(name: str) -> Callable[[PhaseView], Command]:
        def write(view: PhaseView) -> Command:
            seen.append((name, [*view.state.read(LOG)]))
            return Command().update(LOG, [*view.state.read(LOG), name])

        return write

    def look(view: PhaseView) -> None:
        seen.append(("end", [*view.state.read(LOG)]))

    _, result = run(
        ["hi"],
        lambda registrar: registrar.state_key(LOG),
        hook("run_start", writer("first")),
        hook("run_start", writer("second")),
        hook("run_end", look),
    )

    assert result.reason.code == "natural_end"
    assert seen == [("first", []), ("second", []), ("second", ["first"]), ("end", ["first", "second"])]


def test_of_a_hook_that_is_asked_again_only_the_second_answer_counts() -> None:
    done: list[str] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.state_key(LOG)
        registrar.state_key(COUNT)
        registrar.effect_handler("note", lambda payload, _view: done.append(payload))
        for name in ("first", "second"):
            registrar.phase_hook(
                "run_start",
                lambda view, name=name: (
                    Command().update(LOG, [*view.state.read(LOG), name]).update(COUNT, 1).effect("note", name)
                ),
            )
        registrar.phase_hook("run_end", lambda view: done.append(f"{view.state.read(COUNT)}"))

    run(["hi"], place)

    assert done == ["first", "second", "2"]


@settings(max_examples=40)
@given(st.lists(st.sets(st.sampled_from(["x", "y", "z"])), max_size=6))
def test_exclusive_keys_end_as_if_the_hooks_had_run_one_after_the_other(touched: list[set[str]]) -> None:
    last: dict[str, list[int]] = {}

    def place(registrar: PluginRegistrar) -> None:
        for name in "xyz":
            registrar.state_key(StateKey(name, []))
        for number, names in enumerate(touched):
            registrar.phase_hook("run_start", appender(number, names))
        registrar.phase_hook("run_end", lambda view: last.update({name: view.state[name] for name in "xyz"}))

    def appender(number: int, names: set[str]) -> Callable[[PhaseView], Command]:
        def append(view: PhaseView) -> Command:
            command = Command()
            for name in sorted(names):
                command = command.update(name, [*view.state[name], number])
            return command

        return append

    run(["hi"], place)

    assert last == {name: [n for n, names in enumerate(touched) if name in names] for name in "xyz"}


def test_hooks_of_calls_that_run_at_the_same_time_lose_no_update() -> None:
    class Both:
        name = "both"
        version = "1"
        parallel = True

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "both", "parameters": {"type": "object"}}}]

        def execute_tool(self, _name: str, _arguments: Any) -> dict[str, Any]:
            return {"success": True, "result": "ok"}

    seen: list[list[str]] = []

    async def write(view: PhaseView) -> Command:
        known = view.state.read(LOG)
        await asyncio.sleep(0)
        return Command().update(LOG, [*known, "once"])

    def place(registrar: PluginRegistrar) -> None:
        registrar.state_key(LOG)
        registrar.tool("both", Both())
        registrar.phase_hook("before_tool_execute", write)
        registrar.phase_hook("run_end", lambda view: seen.append(list(view.state.read(LOG))))

    for driver in DRIVERS:
        made = setting([calling(*["both"] * 5), "done"], {"it": place})
        drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert seen == [["once"] * 5] * 4


# Scheduled actions and effects


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_action_is_done_after_all_hooks_of_the_phase_on_the_newest_state(driver: str) -> None:
    seen: list[Any] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.state_key(COUNT)
        registrar.phase_hook("run_start", lambda _view: Command().schedule("look", "one").update(COUNT, 1))
        registrar.phase_hook("run_start", lambda _view: Command().schedule("look", "two").update(COUNT, 1))
        registrar.action_handler("look", look)
        registrar.phase_hook("step_start", lambda view: seen.append(("step", view.state.read(COUNT))))

    def look(payload: Any, view: PhaseView) -> Command:
        seen.append((payload, view.phase.value, view.state.read(COUNT)))
        return Command().update(COUNT, 10)

    drive(setting(["hi"], {"it": place}).runtime, RunRequest("a", "Hello."), driver)

    assert seen == [("one", "run_start", 2), ("two", "run_start", 12), ("step", 22)]


def test_an_action_for_a_later_phase_waits_for_it_and_is_done_once() -> None:
    seen: list[Any] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.action_handler(
            "note", lambda payload, view: seen.append((payload, view.phase.value, view.run.round))
        )
        registrar.phase_hook(
            "run_start",
            lambda _view: (
                Command()
                .schedule("note", "later", phase=Phase.STEP_END)
                .schedule("note", "last", phase=Phase.RUN_END)
                .schedule("note", "now", phase=Phase.RUN_START)
            ),
        )

    run([calling("add"), "done"], place)

    assert seen == [("now", "run_start", 0), ("later", "step_end", 1), ("last", "run_end", 2)]


def test_an_action_that_waits_survives_a_suspension_in_another_process() -> None:
    seen: list[Any] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.tool_gate(lambda _view: Suspend("May I?"))
        registrar.action_handler("note", lambda payload, view: seen.append((payload, view.phase.value)))
        registrar.phase_hook(
            "after_inference",
            lambda view: (
                Command().schedule("note", {"kept": [1]}, phase=Phase.AFTER_TOOL_EXECUTE)
                if view.run.round == 1
                else None
            ),
        )

    first = setting([calling("add")], {"it": place})
    waiting = first.runtime.run_to_completion(RunRequest("a", "Hello."))
    assert waiting.reason.code == "suspended" and seen == []
    session = Session.from_dict(json.loads(json.dumps(waiting.session.to_dict())))

    second = setting(["done"], {"it": place})
    result = second.runtime.run_to_completion(
        RunRequest("a", session=session, decisions=[{"target": waiting.suspended[0].id}])
    )

    assert result.reason.code == "natural_end"
    assert seen == [({"kept": [1]}, "after_tool_execute")]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _payload, _view: 1 / 0, "Plugin 'p0', hook \"action 'break'\": ZeroDivisionError"),
        (lambda _payload, _view: "text", "must return a Command or None, not str"),
        (lambda _payload, _view: Command().update("unknown", 1), "State key 'unknown': nobody registered it"),
    ],
)
def test_a_handler_that_fails_is_a_warning_and_the_run_goes_on(answer: Any, told: str) -> None:
    def place(registrar: PluginRegistrar) -> None:
        registrar.action_handler("break", answer)
        registrar.phase_hook("run_start", lambda _view: Command().schedule("break"))

    events, result = run(["hi"], place)

    (warning,) = of_type(events, "warning")
    assert told in warning["message"] and warning["plugin"] == "p0"
    assert (result.reason.code, result.text) == ("natural_end", "hi")


def test_unknown_actions_and_effects_are_warnings_that_name_those_there_are() -> None:
    events, result = run(
        ["hi"], hook("run_start", lambda _view: Command().schedule("stopp").effect("notify"))
    )

    action, effect = warnings_of(events)
    assert "nobody handles the action 'stopp'; there are ['add_message'" in action and "'stop'" in action
    assert effect == "nobody handles the effect 'notify'; there are []"
    assert result.reason.code == "natural_end"


def scheduling(times: int, seen: list[int], phase: str) -> Callable[[PluginRegistrar], None]:
    """Place an action that schedules itself so many times."""

    def again(payload: Any, _view: PhaseView) -> Command | None:
        seen.append(payload)
        return Command().schedule("again", payload + 1) if payload < times else None

    def place(registrar: PluginRegistrar) -> None:
        registrar.action_handler("again", again)
        registrar.phase_hook(phase, lambda _view: Command().schedule("again", 1))

    return place


def test_actions_may_schedule_each_other_for_a_while() -> None:
    seen: list[int] = []

    _, result = run(["hi"], scheduling(MOST_ROUNDS, seen, "run_start"))

    assert (result.reason.code, len(seen)) == ("natural_end", MOST_ROUNDS)


@pytest.mark.parametrize("phase", ["run_start", "step_end", "run_end"])
def test_actions_that_schedule_each_other_without_an_end_end_the_run(phase: str) -> None:
    seen: list[int] = []

    events, result = run(["hi"], scheduling(10**6, seen, phase))

    assert isinstance(result.error, PhaseLoopExceeded)
    assert result.error.phase == phase and result.error.actions == ("again",)
    told = f"Phase '{phase}' does not come to an end: actions 'again' keep scheduling each other"
    assert result.reason == ("error", told)
    assert len(seen) == MOST_ROUNDS and events[-1]["type"] == "run_end"


@pytest.mark.parametrize("driver", DRIVERS)
def test_effects_come_after_all_updates_of_the_phase(driver: str) -> None:
    seen: list[Any] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.state_key(COUNT)
        registrar.action_handler("more", lambda _payload, _view: Command().update(COUNT, 5).effect("note", 2))
        registrar.effect_handler("note", lambda payload, view: seen.append((payload, view.state.read(COUNT))))
        registrar.phase_hook("run_start", lambda _view: Command().effect("note", 1).schedule("more"))
        registrar.phase_hook("run_start", lambda _view: Command().update(COUNT, 1))

    drive(setting(["hi"], {"it": place}).runtime, RunRequest("a", "Hello."), driver)

    assert seen == [(1, 6), (2, 6)]


def test_an_effect_that_fails_is_a_warning_and_the_next_one_happens() -> None:
    seen: list[str] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.effect_handler("break", lambda _payload, _view: 1 / 0)
        registrar.effect_handler("note", lambda payload, _view: seen.append(payload))
        registrar.phase_hook("run_start", lambda _view: Command().effect("break").effect("note", "done"))

    events, result = run(["hi"], place)

    assert warnings_of(events) == [
        "Plugin 'p0', hook \"effect 'break'\": ZeroDivisionError: division by zero"
    ]
    assert (seen, result.reason.code) == (["done"], "natural_end")


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_effect_may_be_a_coroutine(driver: str) -> None:
    seen: list[str] = []

    async def note(payload: str, _view: PhaseView) -> None:
        await asyncio.sleep(0)
        seen.append(payload)

    def place(registrar: PluginRegistrar) -> None:
        registrar.effect_handler("note", note)
        registrar.phase_hook("run_start", lambda _view: Command().effect("note", "done"))

    drive(setting(["hi"], {"it": place}).runtime, RunRequest("a", "Hello."), driver)

    assert seen == ["done"]


def test_an_effect_that_blocks_does_not_stand_in_the_way_of_an_event_loop() -> None:
    threads: list[int] = []

    def place(registrar: PluginRegistrar) -> None:
        registrar.effect_handler("note", lambda _payload, _view: threads.append(threading.get_ident()))
        registrar.phase_hook("run_start", lambda _view: Command().effect("note"))

    drive(setting(["hi"], {"it": place}).runtime, RunRequest("a", "Hello."), "run_async")

    assert threads and threads[0] != threading.get_ident()


# Hooks of all kinds


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_hook_may_be_a_coroutine_function(driver: str) -> None:
    async def wait(_view: PhaseView) -> Command:
        await asyncio.sleep(0)
        return Command().stop("enough", "It waited.")

    made = setting(["hi"], {"it": hook("step_end", wait)})
    _, result = drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert result.reason == ("enough", "It waited.")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_hook_may_be_a_generator_that_asks_the_model_outside_the_conversation(driver: str) -> None:
    def judge(view: PhaseView) -> Flow[Command]:
        verdict = yield from view.run.ask([{"role": "user", "content": "Was that polite?"}])
        return Command().stop("judged", verdict)

    script = [Reply(text="hi", usage={"output_tokens": 3}), Reply(text="yes", usage={"output_tokens": 4})]
    made = setting(script, {"it": hook("after_inference", judge)})
    events, result = drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert result.reason == ("judged", "yes")
    assert [message["content"] for message in result.messages] == ["Hello.", "hi"]
    assert (result.usage.requests, result.usage.output_tokens, result.rounds) == (2, 7, 1)
    assert [event["text"] for event in of_type(events, "text")] in ([], ["hi"])
    beside = made.provider.requests[1]
    assert [item["content"] for item in beside.native_messages] == ["Was that polite?"]
    assert not beside.config.get("tools")


class StreamOnly:
    """A provider that cannot answer in one piece, so that an answer may break off in the middle."""

    name = "stream_only"
    version = "1"

    def __init__(self, scripted: ScriptedProvider) -> None:
        for hook_name in ("to_native_messages", "from_native_messages", "init", "stream_api", "process_chunk",
                          "finalize"):  # fmt: skip
            setattr(self, hook_name, getattr(scripted, hook_name))


def test_a_side_question_that_breaks_off_does_not_replace_the_conversation() -> None:
    def judge(view: PhaseView) -> Flow[None]:
        yield from view.run.ask([{"role": "user", "content": "Was that polite?"}])

    scripted = ScriptedProvider(["hi", Reply(text="well", error=ConnectionError("gone"))])
    made = setting([], {"it": hook("after_inference", judge)}, provider=StreamOnly(scripted))
    result = made.runtime.run_to_completion(RunRequest("a", "Hello."))

    assert result.reason.code == "error" and "gone" in result.reason.detail
    assert [message["content"] for message in result.messages] == ["Hello.", "hi"]
    assert result.session.session_id and not result.session.session_id.endswith("-beside")


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("phase", list(Phase))
def test_a_hook_that_raises_ends_the_run_with_the_names_of_plugin_and_phase(
    phase: Phase, driver: str
) -> None:
    def fail(_view: PhaseView) -> None:
        raise ValueError("boom")

    made = setting([calling("add", "subtract"), "done"], {"culprit": hook(phase, fail)})
    events, result = drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert result.reason == ("error", f"Plugin 'culprit', hook '{phase.value}': ValueError: boom")
    assert isinstance(result.error, PluginError)
    assert (result.error.plugin, result.error.hook) == ("culprit", phase.value)
    if events:
        assert [event["type"] for event in events[-2:]] == ["error", "run_end"]
        assert events[-2]["error"]["plugin"] == "culprit"
    assert unanswered(result.session) == []


def unanswered(session: Session) -> list[str]:
    made = [call["id"] for message in session.messages for call in message.metadata.get("tool_calls") or ()]
    answered = [message.metadata["tool_call_id"] for message in session.messages if message.role == "tool"]
    return [call for call in made if answered.count(call) != 1]


def test_results_of_calls_that_ran_at_the_same_time_are_kept_when_a_hook_fails_about_the_first() -> None:
    class Both:
        name = "both"
        version = "1"
        parallel = True

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "both", "parameters": {"type": "object"}}}]

        def execute_tool(self, _name: str, _arguments: Any) -> dict[str, Any]:
            return {"success": True, "result": "it ran"}

    def fail(_view: PhaseView) -> None:
        raise ValueError("boom")

    def place(registrar: PluginRegistrar) -> None:
        registrar.tool("both", Both())
        registrar.phase_hook("after_tool_execute", fail)

    _, result = run([calling("both", "both")], place)

    tool_messages = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert tool_messages == ["it ran", "it ran"]


@pytest.mark.parametrize("answer", ["text", {"updates": []}, True, 0])
def test_a_hook_that_returns_something_else_gets_an_error_with_what_it_may_return(answer: Any) -> None:
    _, result = run(["hi"], hook("run_start", lambda _view: answer))

    kind = type(answer).__name__
    assert result.reason.detail == (
        f"Plugin 'p0', hook 'run_start': must return a Command or None, not {kind}"
    )


def test_a_hook_that_updates_an_unknown_key_ends_the_run_with_the_name_of_the_key() -> None:
    _, result = run(["hi"], hook("run_start", lambda _view: Command().update("cuont", 1)))

    assert result.reason.code == "error" and "State key 'cuont': nobody registered it" in result.reason.detail


# Plugins that come and go


class Visiting:
    """Notes when it is activated and deactivated."""

    version = "1"

    def __init__(self, name: str, seen: list[str], fails: str = "") -> None:
        self.name = name
        self._seen = seen
        self._fails = fails

    def register(self, registrar: PluginRegistrar) -> None:
        for phase in ("run_start", "run_end"):
            registrar.phase_hook(phase, lambda view: self._seen.append(f"{view.phase.value} {self.name}"))

    def on_activate(self, _view: PhaseView) -> Command:
        self._note("on_activate")
        return Command().schedule("warn", f"{self.name} is here")

    async def on_deactivate(self, view: PhaseView) -> None:
        assert view.phase is Phase.RUN_END
        self._note("on_deactivate")

    def _note(self, hook_name: str) -> None:
        self._seen.append(f"{hook_name} {self.name}")
        if self._fails == hook_name:
            raise ValueError("boom")


@pytest.mark.parametrize("driver", DRIVERS)
def test_plugins_are_activated_in_order_and_deactivated_in_reverse(driver: str) -> None:
    seen: list[str] = []
    made = setting(["hi"], {name: Visiting(name, seen) for name in ("one", "two")})

    events, result = drive(made.runtime, RunRequest("a", "Hello."), driver)

    assert result.reason.code == "natural_end"
    assert seen == [
        "on_activate one",
        "on_activate two",
        "run_start one",
        "run_start two",
        "run_end one",
        "run_end two",
        "on_deactivate two",
        "on_deactivate one",
    ]
    if events:
        assert [event["type"] for event in events[:4]] == ["run_start", "warning", "warning", "step_start"]


@pytest.mark.parametrize("hook_name", ["on_activate", "on_deactivate"])
def test_a_plugin_that_fails_to_come_or_go_ends_the_run_with_its_name(hook_name: str) -> None:
    seen: list[str] = []
    made = setting(["hi"], {"one": Visiting("one", seen, hook_name), "two": Visiting("two", seen)})

    events, result = drive(made.runtime, RunRequest("a", "Hello."))

    assert result.reason == ("error", f"Plugin 'one', hook '{hook_name}': ValueError: boom")
    assert events[0]["type"] == "run_start" and events[-1]["type"] == "run_end"
    assert "on_deactivate one" in seen and "on_deactivate two" in seen


@pytest.mark.parametrize("hook_name", ["on_activate", "on_deactivate"])
def test_what_a_plugin_returns_when_it_comes_or_goes_must_be_a_command(hook_name: str) -> None:
    plugin = Placing(lambda _registrar: None)
    setattr(plugin, hook_name, lambda _view: "text")

    _, result = drive(setting(["hi"], {"it": plugin}).runtime, RunRequest("a", "Hello."))

    assert result.reason.detail == (
        f"Plugin 'placing', hook '{hook_name}': must return a Command or None, not str"
    )


# The actions by which hooks steer the loop, by what the provider was asked


def scheduled(phase: str, name: str, payload: Any) -> Callable[[PluginRegistrar], None]:
    """Schedule an action in the first round only."""
    return hook(phase, lambda view: Command().schedule(name, payload) if view.run.round <= 1 else None)


def asked(made: Setting) -> list[list[str]]:
    return [[item["content"] for item in request.native_messages] for request in made.provider.requests]


def offered(made: Setting) -> list[list[str]]:
    return [
        sorted(tool["function"]["name"] for tool in request.config.get("tools") or ())
        for request in made.provider.requests
    ]


ALL_TOOLS = ["add", "divide", "subtract"]
TWO_ROUNDS = [calling("add", text="let me see"), "done"]


def steered(*places: Any) -> tuple[Setting, Events, RunResult]:
    made = setting(list(TWO_ROUNDS), {f"p{number}": place for number, place in enumerate(places)})
    return made, *drive(made.runtime, RunRequest("a", "Hello."))


@pytest.mark.parametrize(
    ("phase", "requests", "roles"),
    [
        ("run_start", 0, ["user"]),
        ("before_inference", 0, ["user"]),
        ("after_inference", 1, ["user", "assistant", "tool"]),
        ("before_tool_execute", 1, ["user", "assistant", "tool"]),
        ("step_end", 1, ["user", "assistant", "tool"]),
    ],
)
def test_stop_ends_the_run_at_the_next_opportunity(phase: str, requests: int, roles: list[str]) -> None:
    made, _, result = steered(scheduled(phase, "stop", {"code": "enough", "detail": "It is late."}))

    assert result.reason == ("enough", "It is late.")
    assert [message["role"] for message in result.messages] == roles
    assert len(made.provider.requests) == requests


def test_calls_that_a_stop_came_before_are_answered_as_not_run() -> None:
    _, _, result = steered(scheduled("after_inference", "stop", {"code": "enough"}))

    assert result.messages[-1]["content"] == "Error: the call was not run: the run was stopped (enough)"
    assert result.messages[-1]["metadata"]["error"] == {"type": "not_run"}


def test_of_two_who_want_to_stop_the_first_gives_the_reason() -> None:
    _, _, result = steered(
        scheduled("step_end", "stop", {"code": "first"}), scheduled("step_end", "stop", {"code": "second"})
    )

    assert result.reason.code == "first"


def test_a_stop_without_a_reason_is_called_stopped() -> None:
    _, _, result = steered(scheduled("step_end", "stop", None))

    assert result.reason == ("stopped", "")


def test_a_message_that_is_not_kept_is_sent_once_and_not_stored() -> None:
    note = {"role": "user", "content": "Be brief."}
    made, _, result = steered(scheduled("before_inference", "add_message", note))

    assert asked(made) == [["Hello.", "Be brief."], ["Hello.", "let me see", "3"]]
    assert [message["content"] for message in result.messages] == ["Hello.", "let me see", "3", "done"]


def test_a_message_that_is_kept_stays_in_the_session() -> None:
    note = {"role": "user", "content": "Be brief.", "keep": True}
    made, _, result = steered(scheduled("before_inference", "add_message", note))

    assert asked(made) == [["Hello.", "Be brief."], ["Hello.", "Be brief.", "let me see", "3"]]
    assert [message["content"] for message in result.messages][:2] == ["Hello.", "Be brief."]


def test_a_message_that_a_step_leaves_behind_is_for_the_next_request() -> None:
    made, _, _ = steered(scheduled("step_end", "add_message", {"role": "system", "content": "Hurry."}))

    assert asked(made) == [["Hello."], ["Hello.", "let me see", "3", "Hurry."]]


def test_an_override_changes_the_settings_of_one_request_and_the_later_plugin_wins() -> None:
    made, _, _ = steered(
        scheduled("before_inference", "override", {"temperature": 0.1, "top_p": 0.5}),
        scheduled("before_inference", "override", {"temperature": 0.9}),
    )

    seen = [
        (request.config.get("temperature"), request.config.get("top_p")) for request in made.provider.requests
    ]
    assert seen == [(0.9, 0.5), (None, None)]


@pytest.mark.parametrize(
    ("actions", "left"),
    [
        ([("exclude_tools", ["add"])], ["divide", "subtract"]),
        ([("exclude_tools", "*d*")], ["subtract"]),
        ([("exclude_tools", ["add"]), ("exclude_tools", ["divide"])], ["subtract"]),
        ([("only_tools", ["add"])], ["add"]),
        ([("only_tools", "*d*")], ["add", "divide"]),
        ([("only_tools", ["*d*"]), ("only_tools", ["add", "subtract"])], ["add"]),
        ([("only_tools", ["add", "divide"]), ("exclude_tools", ["add"])], ["divide"]),
        ([("only_tools", [])], []),
        ([("exclude_tools", ["unknown"])], ALL_TOOLS),
    ],
)
def test_tools_are_hidden_from_one_request(actions: list[tuple[str, Any]], left: list[str]) -> None:
    made, _, _ = steered(*(scheduled("before_inference", name, payload) for name, payload in actions))

    assert offered(made) == [left, ALL_TOOLS]


def test_a_warning_is_shown_to_watchers() -> None:
    _, events, _ = steered(scheduled("run_start", "warn", "Something is odd."))

    assert of_type(events, "warning") == [{"type": "warning", "message": "Something is odd."}]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("add_message", "Be brief."),
        ("add_message", {"role": "tool", "content": "x"}),
        ("override", ["temperature"]),
        ("exclude_tools", 7),
        ("only_tools", [7]),
        ("exclude_tools", ["half a pattern\\"]),
    ],
)
def test_a_payload_that_an_action_cannot_use_is_a_warning_and_changes_nothing(
    name: str, payload: Any
) -> None:
    made, events, result = steered(scheduled("before_inference", name, payload))

    (warning,) = of_type(events, "warning")
    told = repr(payload[0]) if isinstance(payload, list) else repr(payload)
    assert f"action '{name}'" in warning["message"] and told in warning["message"]
    assert warning["plugin"] == "loop_action_handlers"
    assert (asked(made)[0], offered(made)[0]) == (["Hello."], ALL_TOOLS)
    assert result.reason.code == "natural_end"


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_was_asked_for_the_next_request_survives_a_suspension(driver: str) -> None:
    def place(registrar: PluginRegistrar) -> None:
        registrar.tool_gate(lambda _view: Suspend("May I?"))
        registrar.phase_hook(
            "step_end",
            lambda view: (
                Command()
                .schedule("add_message", {"role": "user", "content": "Be brief."})
                .schedule("override", {"temperature": 0.3})
                .schedule("only_tools", ["add"])
                if view.run.round == 1
                else None
            ),
        )

    first = setting([calling("add")], {"it": place})
    _, waiting = drive(first.runtime, RunRequest("a", "Hello."), driver)
    session = Session.from_dict(json.loads(json.dumps(waiting.session.to_dict())))
    second = setting(["done"], {"it": place})
    decisions = [{"target": waiting.suspended[0].id}]
    drive(second.runtime, RunRequest("a", session=session, decisions=decisions), driver)

    assert asked(second) == [["Hello.", "", "3", "Be brief."]]
    assert offered(second) == [["add"]]
    assert second.provider.requests[0].config["temperature"] == 0.3


def test_a_model_that_is_not_declared_cannot_be_asked_a_side_question() -> None:
    def judge(view: PhaseView) -> Flow[Command | None]:
        try:
            yield from view.run.ask([{"role": "user", "content": "?"}], model="mm")
        except AgentError as error:
            return Command().stop("no", str(error))
        return None

    _, result = run(["hi"], hook("after_inference", judge))

    assert result.reason == ("no", "model 'mm' is not declared; did you mean 'm'?")
