"""In which order plugins are called, and what each is handed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent_core import AgentCore, Session

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]


class Witness:
    """Notes every call of its hooks, and leaves its name in whatever passes through its hands."""

    version = "1"

    def __init__(self, name: str, calls: list[str], priority: int = 100) -> None:
        self.name = name
        self.priority = priority
        self.calls = calls

    def note(self, hook: str) -> None:
        self.calls.append(f"{self.name}.{hook}")

    def sign(self, values: Dicts, key: str) -> Dicts:
        return [{**value, key: [*value.get(key, []), self.name]} for value in values]

    def is_enabled(self, config: dict[str, Any]) -> None:
        self.note("is_enabled")


class WitnessProvider(Witness):
    def init(self, config: dict[str, Any]) -> State:
        self.note("init")
        return {"config": config, "init": [self.name], "chunks": []}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        self.note("to_native_messages")
        return [{"text": message["content"], "made": [self.name]} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        self.note("from_native_messages")
        return [
            {"role": "assistant", "content": item["text"], "metadata": {**item, "read": [self.name]}}
            for item in native_messages
        ]

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        self.note("initialize_request")
        return native_messages, {**state, "initialize": [self.name]}

    def repair_native(self, native_messages: Dicts) -> tuple[Dicts, list[str]]:
        self.note("repair_native")
        return native_messages, []

    def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
        self.note("call_api")
        return [], [{"text": "called"}], native_messages, {**state, "asked_with": native_messages}

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        self.note("stream_api")
        state["asked_with"] = native_messages
        yield from ("one ", "two")

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        self.note("process_chunk")
        state = {**state, "chunks": [*state["chunks"], chunk]}
        return [{"content": chunk, "seen": [self.name]}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        self.note("finalize")
        finals: Dicts = [{"text": "".join(state["chunks"])}] if state["chunks"] else []
        return finals, native_messages, {**state, "finalize": [self.name]}


class WitnessFollower(Witness):
    """An extension and a feature alike: what a kind is not asked for must simply not be called."""

    def prepare_tools(self, tools: list[Any]) -> list[Any]:
        self.note("prepare_tools")
        return tools

    def init(self, config: dict[str, Any], state: State) -> State:
        self.note("init")
        return {**state, "init": [*state["init"], self.name]}

    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        self.note("to_native_messages")
        return self.sign(native_messages, "made")

    def from_native_messages(self, native_messages: Dicts, messages: Dicts) -> Dicts:
        self.note("from_native_messages")
        return [
            {
                **message,
                "metadata": {**message["metadata"], "read": [*message["metadata"]["read"], self.name]},
            }
            for message in messages
        ]

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        self.note("initialize_request")
        return native_messages, {**state, "initialize": [*state["initialize"], self.name]}

    def process_chunk(
        self, chunk: str, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        self.note("process_chunk")
        return self.sign(partials, "seen"), finals, native_messages, state

    def finalize(
        self, final_messages: Dicts, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, State]:
        self.note("finalize")
        state = {**state, "finalize": [*state["finalize"], self.name]}
        return self.sign(final_messages, "finished"), native_messages, state

    def get_actions(self, state: State) -> Dicts:
        self.note("get_actions")
        return [
            {"id": "adjust", "trigger": "response_finalize"},
            {"id": "other", "trigger": "request_prepare"},
        ]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any],
        state: State,
    ) -> dict[str, Any]:
        self.note(f"execute_action({action_id})")
        adjusted = [*context["final_messages"]]
        adjusted[-1] = {**adjusted[-1], "content": f"{adjusted[-1]['content']} {self.name}"}
        patch = {"state": {key: state[key] for key in ("init", "initialize", "finalize", "asked_with")}}
        return {"final_messages": adjusted, "session_metadata": patch}


class WitnessTool(Witness):
    def init(self, config: dict[str, Any]) -> State:
        self.note("init")
        return {}

    def get_tool_schemas(self) -> Dicts:
        self.note("get_tool_schemas")
        return [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        raise AssertionError("a request runs no tools")


FOLLOWERS = ["first", "second", "early", "late"]
EVERYONE = ["provider", *FOLLOWERS]


def chain(hook: str, plugins: list[str]) -> list[str]:
    return [f"{plugin}.{hook}" for plugin in plugins]


PREPARED = [
    "tool.init",
    "tool.get_tool_schemas",
    *chain("prepare_tools", ["early", "late"]),
    *chain("init", EVERYONE),
]
CONVERTED = chain("to_native_messages", EVERYONE)
INITIALIZED = [*chain("initialize_request", EVERYONE), "provider.repair_native"]
CALLED = ["provider.call_api"]
STREAMED = ["provider.stream_api", *chain("process_chunk", ["provider", "first", "second"]) * 2]
AFTER = [
    *chain("finalize", EVERYONE),
    *chain("from_native_messages", EVERYONE),
    *chain("get_actions", FOLLOWERS),
    *chain("execute_action(adjust)", FOLLOWERS),
]


def witnessed(calls: list[str]) -> AgentCore:
    core = AgentCore()
    extensions = [WitnessFollower("first", calls, 9), WitnessFollower("second", calls, 1)]
    core.register_provider(WitnessProvider("provider", calls), extensions)
    core.register_feature(WitnessFollower("late", calls, 200))
    core.register_feature(WitnessFollower("early", calls, 10))
    core.register_tool(WitnessTool("tool", calls))
    return core


def ask(core: AgentCore, drive: Drive) -> tuple[Session, Dicts, Dicts]:
    return drive(core, core.add_message(core.create_session(), "user", "hello"), {})


def test_every_hook_is_called_in_the_documented_order(drive: Drive) -> None:
    calls: list[str] = []

    _, _, partials = ask(witnessed(calls), drive)

    asked = [call for call in calls if call.endswith(".is_enabled")]
    assert calls[: len(asked)] == asked, "who takes part is decided before anything else"
    answered = STREAMED if partials else CALLED
    assert calls[len(asked) :] == [*PREPARED, *CONVERTED, *INITIALIZED, *answered, *AFTER]


def test_the_reference_page_has_this_order(drive: Drive) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "request.md"
    rows = re.findall(r"^\| \d+ \| (.+?) \| (.+?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    calls: list[str] = []

    _, _, partials = ask(witnessed(calls), drive)

    members = {"provider": ["provider"], "extensions": ["first", "second"], "features": ["early", "late"]}
    documented = []
    for hooks, kinds in rows:
        written = re.findall(r"\w+", hooks.replace(" or ", " "))
        hook = written[-1] if partials else written[0]
        plugins = [name for kind in kinds.split(", ") for name in members.get(kind, ["tool"])]
        documented += chain(hook, plugins) if partials or hook != "process_chunk" else []
    asked = [call.replace("(adjust)", "") for call in calls if not call.endswith(".is_enabled")]
    assert list(dict.fromkeys(asked)) == documented


def test_a_later_turn_converts_nothing_twice_and_asks_nobody_again_whether_it_is_on(drive: Drive) -> None:
    calls: list[str] = []
    core = witnessed(calls)
    session, _, _ = ask(core, drive)
    calls.clear()
    session = core.add_message(session, "user", "and more")
    converted = [call for call in calls if call.endswith(".to_native_messages")]
    calls.clear()

    session, _, partials = drive(core, session, {})

    assert converted == CONVERTED, "a message gets its native form when it is added"
    assert calls == [*PREPARED, *INITIALIZED, *(STREAMED if partials else CALLED), *AFTER]
    assert [item["text"] for item in session.metadata["state"]["asked_with"]][0::2] == ["hello", "and more"]


def test_what_a_plugin_returns_is_what_the_next_one_receives(drive: Drive) -> None:
    session, messages, partials = ask(witnessed([]), drive)

    [message] = messages
    state = session.metadata["state"]
    assert state["init"] == state["initialize"] == state["finalize"] == EVERYONE
    assert [item["made"] for item in state["asked_with"]] == [EVERYONE]
    assert message["metadata"]["finished"] == FOLLOWERS
    assert message["metadata"]["read"] == EVERYONE
    assert message["content"] == f"{'one two' if partials else 'called'} first second early late"
    assert [event["message"]["seen"] for event in partials] == [["provider", "first", "second"]] * len(
        partials
    )


def test_features_of_equal_priority_keep_the_order_of_registration(drive: Drive) -> None:
    calls: list[str] = []
    core = AgentCore()
    core.register_provider(WitnessProvider("provider", calls))
    for name in ("c", "a", "b"):
        core.register_feature(WitnessFollower(name, calls))

    ask(core, drive)

    assert [call for call in calls if call.endswith(".finalize")] == chain(
        "finalize", ["provider", "c", "a", "b"]
    )


def test_plugins_that_are_off_are_not_called_at_all(drive: Drive) -> None:
    calls: list[str] = []
    core = witnessed(calls)
    session = core.add_message(core.create_session(), "user", "hello")

    drive(core, session, {"disabled_plugins": ["second", "late", "tool"]})

    assert {call.split(".")[0] for call in calls} == {"provider", "first", "early"}


def test_finals_of_the_call_come_before_those_of_finalize(drive: Drive) -> None:
    class TwoFinals(WitnessProvider):
        def process_chunk(
            self, chunk: str, native_messages: Dicts, state: State
        ) -> tuple[Dicts, Dicts, Dicts, State]:
            return [], [{"text": "from the call"}] if chunk == "two" else [], native_messages, state

        def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
            return [], [{"text": "from the call"}], native_messages, state

        def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
            return [{"text": "from finalize"}], native_messages, state

    core = AgentCore()
    core.register_provider(TwoFinals("provider", []))

    _, messages, _ = ask(core, drive)

    assert [message["content"] for message in messages] == ["from the call", "from finalize"]
