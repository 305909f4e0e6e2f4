"""Every hook of every kind of plugin, misbehaving in every way: a named error, and an untouched session."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ConfigError,
    Message,
    PluginError,
    PluginMutationError,
    ProviderError,
    Session,
    ToolDescriptor,
    errors,
)
from agent_core.frozen import FrozenDict
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.tool import ToolWrapper

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]


class GoodProvider:
    """Writes every hook that a request calls, in its plainest form."""

    name = "provider"
    version = "1"

    def get_models(self, config: dict[str, Any], context: Any = None) -> Dicts:
        return [{"id": "model"}]

    def get_tags(self, config: dict[str, Any], models: Any = None, context: Any = None) -> list[str]:
        return ["tag"]

    def init(self, config: dict[str, Any], context: Any = None) -> State:
        return {"config": config}

    def initialize_request(self, native_messages: Dicts, state: State, context: Any = None) -> Any:
        return native_messages, state

    def to_native_messages(self, messages: Dicts, state: Any = None, context: Any = None) -> Dicts:
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts, state: Any = None, context: Any = None) -> Dicts:
        return [{"role": item["role"], "content": item["content"]} for item in native_messages]

    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Any:
        return [{"content": chunk}], [{"role": "assistant", "content": chunk}], native_messages, state

    def finalize(self, native_messages: Dicts, state: State, context: Any = None) -> Any:
        return [], native_messages, state

    def register_tool_formats(self, registry: Any) -> None:
        return None


class Streaming(GoodProvider):
    def stream_api(self, native_messages: Dicts, state: State, request_id: Any = None) -> Iterator[str]:
        yield from ("one", "two")


class Calling(GoodProvider):
    def call_api(self, native_messages: Dicts, state: State, request_id: Any = None) -> Any:
        return [], [{"role": "assistant", "content": "one"}], native_messages, state


class StreamingAsync(GoodProvider):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        yield "one"


class CallingAsync(GoodProvider):
    async def call_api_async(self, native_messages: Dicts, state: State) -> Any:
        return [], [{"role": "assistant", "content": "one"}], native_messages, state


class GoodFollower:
    version = "1"

    def get_models(self, config: dict[str, Any], models: Dicts, context: Any = None) -> Dicts:
        return models

    def get_tags(self, config: dict[str, Any], models: Any = None, context: Any = None) -> list[str]:
        return []

    def required_tags(self) -> list[str]:
        return ["tag"]

    def forbidden_tags(self) -> list[str]:
        return ["other"]

    def is_enabled(
        self, config: Any, tags: Any = None, models: Any = None, context: Any = None
    ) -> bool | None:
        return None

    def init(self, config: dict[str, Any], state: State, context: Any = None) -> State:
        return state

    def initialize_request(self, native_messages: Dicts, state: State, context: Any = None) -> Any:
        return native_messages, state

    def to_native_messages(
        self, messages: Dicts, native_messages: Dicts, state: Any = None, context: Any = None
    ) -> Dicts:
        return native_messages

    def from_native_messages(
        self, native_messages: Dicts, messages: Dicts, state: Any = None, context: Any = None
    ) -> Dicts:
        return messages

    def finalize(
        self, final_messages: Dicts, native_messages: Dicts, state: State, context: Any = None
    ) -> Any:
        return final_messages, native_messages, state

    def get_actions(self, state: Any = None, context: Any = None) -> Dicts:
        return [{"id": "look", "trigger": "response_finalize"}]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: Any = None,
        state: Any = None,
    ) -> dict[str, Any]:
        return {}


class GoodExtension(GoodFollower):
    name = "extension"

    def process_chunk(
        self, chunk: str, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Any:
        return partials, finals, native_messages, state


class GoodFeature(GoodFollower):
    name = "feature"

    def prepare_tools(
        self, tools: list[ToolDescriptor], config: Any = None, context: Any = None
    ) -> list[ToolDescriptor]:
        return tools


class GoodTool:
    name = "tool"
    version = "1"

    def get_tags(self, config: dict[str, Any], models: Any = None, context: Any = None) -> list[str]:
        return []

    def required_tags(self) -> list[str]:
        return []

    def forbidden_tags(self) -> list[str]:
        return []

    def is_enabled(
        self, config: Any, tags: Any = None, models: Any = None, context: Any = None
    ) -> bool | None:
        return None

    def init(self, config: Any = None, context: Any = None) -> State:
        return {}

    def get_tool_schemas(self, state: Any = None, context: Any = None) -> Dicts:
        return [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]

    def register_tool_formats(self, registry: Any) -> None:
        return None

    def execute_tool(self, tool_name: str, arguments: Any) -> None:
        raise AssertionError("a request runs no tools")


GOOD: dict[str, type] = {
    "provider": Streaming,
    "extension": GoodExtension,
    "feature": GoodFeature,
    "tool": GoodTool,
}
WRAPPERS: dict[str, Any] = {
    "provider": ProviderWrapper,
    "extension": ExtensionWrapper,
    "feature": FeatureWrapper,
    "tool": ToolWrapper,
}
API = {
    "call_api": Calling,
    "stream_api": Streaming,
    "call_api_async": CallingAsync,
    "stream_api_async": StreamingAsync,
}

# Not called by a request: other tests try them.
FOR_FRONT_ENDS = {"get_config_schema", "get_ui_elements"}
FOR_ACTIONS = {"get_actions", "execute_action"}  # they cost only the action, see below
ELSEWHERE = {
    "provider": FOR_FRONT_ENDS | {"required_tags", "forbidden_tags", "is_enabled", "cancel_request"},
    "extension": FOR_FRONT_ENDS | FOR_ACTIONS,
    "feature": FOR_FRONT_ENDS | FOR_ACTIONS | {"get_template", "get_completions", "apply_completion"},
    "tool": FOR_FRONT_ENDS
    | {"execute_tool", "stream_tool", "execute_tool_async", "stream_tool_async"}
    | {"format_tool_call_preview", "format_tool_call_display", "format_tool_result", "to_display_format"},
}

HOOKS = [
    (kind, spec.name)
    for kind, wrapper in WRAPPERS.items()
    for spec in wrapper.hooks
    if spec.name not in ELSEWHERE[kind]
]
MAY_RETURN_NONE = {"is_enabled", "register_tool_formats"}
MAY_RETURN_ANYTHING = {"register_tool_formats"}


def good_plugins(kind: str = "", hook: str = "") -> dict[str, type]:
    """Return a healthy plugin of each kind; a provider that has nothing but the hook in question."""
    return {**GOOD, "provider": API.get(hook, Streaming)} if kind == "provider" else dict(GOOD)


def core_of(plugins: dict[str, type]) -> AgentCore:
    core = AgentCore()
    core.register_provider(plugins["provider"], [plugins["extension"]])
    core.register_feature(plugins["feature"])
    core.register_tool(plugins["tool"])
    return core


def core_with_bad(kind: str, hook: str, bad: Callable[..., Any]) -> AgentCore:
    plugins = good_plugins(kind, hook)
    plugins[kind] = type("Bad", (plugins[kind],), {hook: bad})
    return core_of(plugins)


def new_session() -> Session:
    return Session("s", [Message("user", "hello", {"source": "keyboard"})], {"owner": "ada"})


def ask_and_wait(core: AgentCore, session: Session, config: dict[str, Any]) -> tuple[Session, Dicts, Dicts]:
    return (*core.send_request(session, config), [])


def fails(drive: Drive, core: AgentCore, kind: str, hook: str) -> PluginError:
    """Ask, expect the error to name plugin and hook, and all that was passed in to be as it was."""
    session = new_session()
    config: dict[str, Any] = {"nested": {"list": [1]}}

    with pytest.raises(PluginError) as caught:
        drive(core, session, config)

    assert (caught.value.plugin, caught.value.hook) == (kind, hook)
    assert repr(kind) in str(caught.value)
    assert repr(hook) in str(caught.value)
    assert session == new_session()
    assert config == {"nested": {"list": [1]}}
    return caught.value


def test_good_plugins_pass_so_that_the_bad_ones_fail_for_their_own_reason(drive: Drive) -> None:
    session, _, _ = drive(core_of(good_plugins()), new_session(), {})

    assert [message.content for message in session.messages] == ["hello", "one", "two"]


def test_a_hook_that_raises_is_named(drive: Drive) -> None:
    def bad(*_given: Any) -> Any:
        raise LookupError("on purpose")

    for kind, hook in HOOKS:
        error = fails(drive, core_with_bad(kind, hook, bad), kind, hook)

        assert "LookupError: on purpose" in error.problem, (kind, hook)
        assert isinstance(error.__cause__, LookupError), (kind, hook)
        assert isinstance(error, ProviderError) is (hook in API), (kind, hook)


def test_a_hook_that_cannot_say_why_it_failed_is_named() -> None:
    for kind, hook in HOOKS:
        fails(ask_and_wait, core_with_bad(kind, hook, _fail_without_a_word), kind, hook)


ENDLESS: list[tuple[str, str, Callable[..., Any]]] = [
    ("provider", "get_models", lambda *_: [endless(id="model")]),
    ("provider", "to_native_messages", lambda *_: [endless(role="user", content="hello")]),
    ("provider", "from_native_messages", lambda *_: [endless(role="assistant", content="one")]),
    ("provider", "initialize_request", lambda _, native, state, *_more: ([*native, endless()], state)),
    ("provider", "finalize", lambda _, native, state, *_more: ([endless()], native, state)),
    (
        "extension",
        "process_chunk",
        lambda _, chunk, parts, finals, native, state: (parts, [endless()], native, state),
    ),
    ("feature", "get_models", lambda _, config, models, *_more: [*models, endless(id="more")]),
    ("feature", "to_native_messages", lambda _, messages, native, *_more: [*native, endless()]),
    (
        "feature",
        "from_native_messages",
        lambda _, native, messages, *_more: [*messages, endless(role="user")],
    ),
    ("feature", "initialize_request", lambda _, native, state, *_more: ([*native, endless()], state)),
    ("feature", "finalize", lambda _, finals, native, state, *_more: ([*finals, endless()], native, state)),
    ("tool", "get_tool_schemas", lambda *_: [{"type": "function", "function": endless(name="look")}]),
]


def test_a_hook_whose_answer_has_no_end_is_named() -> None:
    for kind, hook, bad in ENDLESS:
        fails(ask_and_wait, core_with_bad(kind, hook, bad), kind, hook)


@pytest.mark.parametrize("kind", GOOD)
def test_a_session_that_met_a_bad_plugin_can_be_used_with_a_good_one(drive: Drive, kind: str) -> None:
    def bad(*_given: Any) -> Any:
        raise LookupError("on purpose")

    session = new_session()
    with pytest.raises(PluginError):
        drive(core_with_bad(kind, "init", bad), session, {})

    healed, messages, _ = drive(core_of(good_plugins()), session, {})

    assert [message["content"] for message in messages] == ["one", "two"]
    assert healed.messages[0].metadata["source"] == "keyboard"
    assert "native_rebuilt" not in healed.metadata


def test_a_hook_that_returns_none_is_named(drive: Drive) -> None:
    def bad(*_given: Any) -> None:
        return None

    for kind, hook in HOOKS:
        if hook not in MAY_RETURN_NONE:
            error = fails(drive, core_with_bad(kind, hook, bad), kind, hook)

            assert "None" in error.problem, (kind, hook)


@pytest.mark.parametrize("wrong", ["text", [3]], ids=["text", "list"])
def test_a_hook_that_returns_the_wrong_type_is_named(drive: Drive, wrong: Any) -> None:
    for kind, hook in HOOKS:
        if hook not in MAY_RETURN_ANYTHING:
            # Text and lists can be iterated over, so they would be streams.
            bad = answering(3 if hook == "stream_api" else wrong)

            fails(drive, core_with_bad(kind, hook, bad), kind, hook)


def answering(answer: Any) -> Callable[..., Any]:
    return lambda *_given: answer


TUPLES = {"initialize_request": 2, "finalize": 3, "process_chunk": 4, "call_api": 4, "call_api_async": 4}


@pytest.mark.parametrize("wrong", [None, "text", [3]], ids=["none", "text", "list"])
def test_a_tuple_with_one_wrong_part_is_named(drive: Drive, wrong: Any) -> None:
    for kind, hook in HOOKS:
        for place in range(TUPLES.get(hook, 0)):
            # What a partial looks like is between the provider and the front end.
            partials = place == 0 and TUPLES[hook] == 4 and wrong == [3]
            bad = replacing(kind, hook, place, 3 if partials else wrong)

            fails(drive, core_with_bad(kind, hook, bad), kind, hook)


def replacing(kind: str, hook: str, place: int, part: Any) -> Callable[..., Any]:
    """Return the good hook with another *part* at that *place* of its answer."""
    good = getattr(good_plugins(kind, hook)[kind], hook)

    def bad(*given: Any) -> Any:
        answer = good(*given[: good.__code__.co_argcount])
        return (*answer[:place], part, *answer[place + 1 :])

    async def bad_async(*given: Any) -> Any:
        answer = await good(*given[: good.__code__.co_argcount])
        return (*answer[:place], part, *answer[place + 1 :])

    return bad_async if hook == "call_api_async" else bad


@pytest.mark.parametrize("size", [0, 5])
def test_a_tuple_of_the_wrong_length_is_named(drive: Drive, size: int) -> None:
    async def bad_async(*_given: Any) -> Any:
        return ([],) * size

    for kind, hook in HOOKS:
        if hook in TUPLES:
            bad = bad_async if hook == "call_api_async" else answering(([],) * size)

            fails(drive, core_with_bad(kind, hook, bad), kind, hook)


def test_a_broken_message_is_charged_to_the_plugin_that_made_it(drive: Drive) -> None:
    broken = (
        {"content": "no role"},
        {"role": "robot", "content": "x"},
        {"role": "assistant", "content": "x", "metadata": 3},
    )
    for kind in ("provider", "extension", "feature"):
        for message in broken:
            core = core_with_bad(kind, "from_native_messages", answering([message]))

            fails(drive, core, kind, "from_native_messages")


def scribble(value: Any) -> None:
    """Change a lent dict or list."""
    if isinstance(value, dict):
        value["scribble"] = True
    else:
        value.append({"scribble": True})


def scribble_inside(value: Any) -> None:
    """Change the first thing in a lent dict or list."""
    first = next(iter(value.values())) if isinstance(value, dict) else value[0]
    if isinstance(first, str):
        value[0] = "scribble"
    else:
        scribble(first.schema if isinstance(first, ToolDescriptor) else first)


# What may be changed in each lent value. The list of tools is the feature's own, the tools in it are
# not; a triggered action has no inputs to look into, and the first thing in a context is the core.
BOTH = (scribble, scribble_inside)
CHANGES: dict[str, tuple[Callable[[Any], None], ...]] = {
    **dict.fromkeys(("config", "messages", "native_messages", "final_messages", "models", "tags"), BOTH),
    **dict.fromkeys(("params", "context"), (scribble,)),
    "tools": (scribble_inside,),
}
Mutation = tuple[str, str, str, Callable[[Any], None]]
MUTATIONS: list[Mutation] = [
    (kind, hook, name, change)
    for kind, hook in HOOKS
    for spec in WRAPPERS[kind].hooks
    if spec.name == hook
    if hook not in ("call_api_async", "stream_api_async")  # called like their twins
    for name in spec.arguments
    if (hook, name) != ("get_models", "context")  # models are looked for without a request
    for change in CHANGES.get(name, ())
]


WHERE_DRIVERS_DIFFER = ("call_api", "stream_api", "process_chunk")


def test_a_hook_that_changes_its_arguments_in_place_is_named_by_every_driver(drive: Drive) -> None:
    mutations = [mutation for mutation in MUTATIONS if mutation[1] in WHERE_DRIVERS_DIFFER]

    check_mutations(drive, mutations)


def test_a_hook_that_changes_its_arguments_in_place_is_named() -> None:
    """The pipeline calls these itself, before or after a driver has anything to do."""
    mutations = [mutation for mutation in MUTATIONS if mutation[1] not in WHERE_DRIVERS_DIFFER]

    def stream(core: AgentCore, session: Session, config: dict[str, Any]) -> tuple[Session, Dicts, Dicts]:
        *partials, final = core.send_request_stream(session, config)
        return final["session"], final["messages"], partials

    check_mutations(stream, mutations)


def check_mutations(drive: Drive, mutations: list[Mutation]) -> None:
    for kind, hook, argument, change in mutations:
        error = fails(drive, core_that_scribbles(kind, hook, argument, change), kind, hook)

        assert isinstance(error, PluginMutationError), (kind, hook, argument, change)
        assert "in place" in error.problem, (kind, hook, argument, change)


def core_that_scribbles(kind: str, hook: str, argument: str, change: Callable[[Any], None]) -> AgentCore:
    [spec] = [spec for spec in WRAPPERS[kind].hooks if spec.name == hook]
    place = 1 + spec.arguments.index(argument)

    def bad(*given: Any) -> Any:
        change(given[place])
        raise AssertionError("it could be changed")

    return core_with_bad(kind, hook, bad)


# Hooks whose failure costs only what they were asked for


def _raise(*_given: Any) -> Any:
    raise LookupError("on purpose")


def _answer_with_a_good_and_a_bad_one(*_given: Any) -> Any:
    return [3, {"id": "tidy"}, {"label": "nameless"}]


class SpeechlessError(Exception):
    """Cannot even say what it is about, as one whose `__str__` needs what nobody gave it."""

    def __str__(self) -> str:
        raise AttributeError("message")


def _fail_without_a_word(*_given: Any) -> Any:
    raise SpeechlessError


def endless(**also: Any) -> dict[str, Any]:
    value = dict(also)
    value["again"] = value
    return value


SPOILED: dict[str, Callable[..., Any]] = {
    "raises": _raise,
    "speechless": _fail_without_a_word,
    "endless": answering([endless(id="again")]),
    "object": answering([{"id": "thing", "thing": object()}]),
    "none": answering(None),
    "text": answering("text"),
    "number": answering(3),
    "junk": _answer_with_a_good_and_a_bad_one,
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_plugin_that_cannot_describe_itself_spoils_nothing_and_is_explained(drive: Drive, how: str) -> None:
    for kind, wrapper in WRAPPERS.items():
        for hook in sorted((FOR_FRONT_ENDS | FOR_ACTIONS) & {spec.name for spec in wrapper.hooks}):
            core = core_with_bad(kind, hook, SPOILED[how])
            session, _, _ = drive(core, new_session(), {})
            lifecycle = core.execute_lifecycle_actions(new_session(), {}, "session_create")

            assert [message.content for message in session.messages] == ["hello", "one", "two"]
            assert lifecycle[0] == new_session()
            assert core.get_ui_schema({}) is not None
            assert core.get_config_schema() is not None
            assert core.get_session_actions({}) is not None
            if hook != "execute_action":
                [explained] = [one for one in core.explain_plugins({}) if one["plugin"] == kind]
                assert explained["enabled"], (kind, hook)
                assert any(line.startswith(hook) for line in explained["problems"]), (kind, hook)
                problems = core.get_plugin_problems({})
                assert {(one["plugin"], one["hook"]) for one in problems} == {(kind, hook)}, problems


@pytest.mark.parametrize("described", [endless(type="string"), {"default": object()}])
def test_a_setting_that_is_no_data_is_not_listed(described: dict[str, Any]) -> None:
    core = core_with_bad("tool", "get_config_schema", answering({"good": {}, "bad": described}))

    assert [entry["key"] for entry in core.get_config_schema()] == ["good"]
    [problem] = core.get_plugin_problems({})
    assert (problem["plugin"], problem["hook"]) == ("tool", "get_config_schema")
    assert "'bad'" in problem["problem"]


@pytest.mark.parametrize("how", ["none", "text", "number", "junk"])
def test_the_good_entries_of_a_bad_answer_count(how: str) -> None:
    core = core_with_bad("feature", "get_actions", SPOILED[how])

    known = [(action["plugin"], action["id"]) for action in core.get_session_actions({})]
    assert (("feature", "tidy") in known) is (how == "junk")
    assert "extension" in {plugin for plugin, _ in known}


@pytest.mark.parametrize("kind", ["extension", "feature"])
def test_an_action_cannot_change_the_session_that_it_is_shown(kind: str) -> None:
    def bad(self: Any, action_id: str, session: Session, native_messages: Dicts, params: Any) -> Any:
        session.metadata["owner"] = "somebody else"
        raise AssertionError("it could be changed")

    *_, final = core_with_bad(kind, "execute_action", bad).send_request_stream(new_session(), {})

    [problem] = final["problems"]
    assert (problem["plugin"], problem["error"]["type"]) == (kind, "PluginMutationError")
    assert final["session"].metadata["owner"] == "ada"


@pytest.mark.parametrize("kind", ["extension", "feature"])
@pytest.mark.parametrize("argument", ["native_messages", "params", "context"])
def test_an_action_cannot_change_what_it_is_lent(kind: str, argument: str) -> None:
    core = core_that_scribbles(kind, "execute_action", argument, scribble)

    *_, final = core.send_request_stream(new_session(), {})

    [problem] = final["problems"]
    assert problem["error"]["type"] == "PluginMutationError"


def test_schemas_that_no_format_knows_are_charged_to_their_tool(drive: Drive) -> None:
    unknown: tuple[object, ...] = (
        {},
        {"nonsense": True},
        {"type": "function", "function": {}},
        {"type": "function"},
        "look",
    )
    for schema in unknown:
        core = core_with_bad("tool", "get_tool_schemas", answering([schema]))

        fails(drive, core, "tool", "get_tool_schemas")


def test_a_feature_that_offers_a_tool_which_nobody_runs_is_named(drive: Drive) -> None:
    def bad(self: Any, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return [*tools, ToolDescriptor(name="invented", schema=FrozenDict(), plugin="feature")]

    error = fails(drive, core_with_bad("feature", "prepare_tools", bad), "feature", "prepare_tools")

    assert "'invented'" in error.problem


def test_the_error_of_a_later_chunk_carries_what_earlier_ones_brought(drive: Drive) -> None:
    def bad(
        self: Any, chunk: str, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Any:
        return (partials, finals, native_messages, state) if chunk == "one" else None

    error = fails(drive, core_with_bad("extension", "process_chunk", bad), "extension", "process_chunk")

    assert error.partial is not None
    assert [message["content"] for message in error.partial["messages"]] == ["one"]
    assert error.partial["messages"][0]["metadata"]["interrupted"] == "error"


@pytest.mark.parametrize("kind", ["provider", "extension", "feature"])
def test_an_error_of_the_platforms_own_passes_as_it_is(drive: Drive, kind: str) -> None:
    def bad(*_given: Any) -> Any:
        raise ConfigError("config['key'] is missing", field="key")

    session = new_session()

    with pytest.raises(ConfigError) as caught:
        drive(core_with_bad(kind, "init", bad), session, {})

    assert caught.value.field == "key"
    assert session == new_session()


class OwnFormat(Streaming):
    """A provider whose native items do not look like messages."""

    def to_native_messages(self, messages: Dicts, state: Any = None, context: Any = None) -> Dicts:
        return [{"who": message["role"], "said": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts, state: Any = None, context: Any = None) -> Dicts:
        return [{"role": item["who"], "content": item["said"]} for item in native_messages]

    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Any:
        return [{"content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State, context: Any = None) -> Any:
        answer = {"who": "assistant", "said": "hi"}
        return [answer], [*native_messages, answer], state


class ReadableFinals(OwnFormat):
    def finalize(self, native_messages: Dicts, state: State, context: Any = None) -> Any:
        _, native, state = super().finalize(native_messages, state, context)
        return [{"role": "assistant", "content": "hi"}], native, state


class ReadableFeature:
    name = "feature"
    version = "1"

    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Any:
        return [{"role": "assistant", "content": "hi!"}], native_messages, state


class CannotRead(OwnFormat):
    def from_native_messages(self, native_messages: Dicts, state: Any = None, context: Any = None) -> Dicts:
        return [{"role": item["who"], "content": item["text"]} for item in native_messages]


@pytest.mark.parametrize(
    ("provider", "features", "plugin", "hook"),
    [
        (ReadableFinals, [], "provider", "finalize"),
        (OwnFormat, [ReadableFeature], "feature", "finalize"),
        (CannotRead, [], "provider", "from_native_messages"),
    ],
)
def test_a_final_that_is_no_native_item_is_blamed_on_the_hook_that_returned_it(
    drive: Drive, provider: type, features: list[type], plugin: str, hook: str
) -> None:
    core = AgentCore()
    core.register_provider(provider)
    for feature in features:
        core.register_feature(feature)

    with pytest.raises(PluginError) as caught:
        drive(core, new_session(), {})

    assert (caught.value.plugin, caught.value.hook) == (plugin, hook)
    if hook == "finalize":
        assert "final messages are native items" in caught.value.problem


def test_the_reference_page_has_a_row_for_every_error() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\|(.*?)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    written = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("_")
        if value.__module__ == errors.__name__
    }

    assert [name for name, _, _ in rows] == list(written)
    for name, also, fields in rows:
        assert all(issubclass(written[name], getattr(builtins, base)) for base in names_in(also))
        assert names_in(fields) == fields_of(written[name])


def names_in(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def fields_of(error: type[BaseException]) -> list[str]:
    """Return the attributes that the error's constructor sets, or that the class itself has."""
    own = [name for name in vars(error) if not name.startswith("_") and name != "kind"]
    init = error.__init__
    return own or (
        re.findall(r"self\.(\w+)(?:: \w+)? =", inspect.getsource(init)) if inspect.isfunction(init) else []
    )
