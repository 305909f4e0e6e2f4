"""What a model asked for is run, and answered by one tool message per call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentTypeError,
    Cancellation,
    ConfigError,
    ProviderNotFoundError,
    Session,
    ToolDescriptor,
)
from agent_core.context import Context
from agent_core.frozen import FrozenDict
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall

Case = Callable[..., AbstractContextManager[None]]

Dicts = list[dict[str, Any]]
Drive = Callable[..., Dicts]


def _execute(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    return core.execute_tool_calls(calls, config, **options)


def _execute_async(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    return asyncio.run(core.execute_tool_calls_async(calls, config, **options))


def _iterate(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    return list(core.iter_tool_messages(calls, config, **options))


def _iterate_async(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    async def collect() -> Dicts:
        return [event async for event in core.iter_tool_messages_async(calls, config, **options)]

    return asyncio.run(collect())


def _stream(core: AgentCore, call: Any, config: dict[str, Any], **options: Any) -> Dicts:
    return list(core.stream_tool_call(call, config, **options))


def _stream_async(core: AgentCore, call: Any, config: dict[str, Any], **options: Any) -> Dicts:
    async def collect() -> Dicts:
        return [item async for item in core.stream_tool_call_async(call, config, **options)]

    return asyncio.run(collect())


def _driver_name(driver: Drive) -> str:
    return driver.__name__[1:]


@pytest.fixture(params=[_execute, _execute_async, _iterate, _iterate_async], ids=_driver_name)
def run(request: pytest.FixtureRequest) -> Drive:
    """Run calls in each way in turn: ``run(core, calls, config, **options)`` returns the messages."""
    driver: Drive = request.param
    return lambda core, calls, config, **options: [
        event for event in driver(core, calls, config, **options) if "role" in event
    ]


@pytest.fixture(params=[_iterate, _iterate_async], ids=_driver_name)
def watch(request: pytest.FixtureRequest) -> Drive:
    """Run calls and return messages and partial output, as they came."""
    driver: Drive = request.param
    return driver


@pytest.fixture(params=[_stream, _stream_async], ids=_driver_name)
def stream(request: pytest.FixtureRequest) -> Drive:
    """Run one call and return what the tool itself yielded."""
    driver: Drive = request.param
    return driver


def function(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


LOOK_UP = function("look_up", word={"type": "string"})
PATCH = {"type": "custom", "name": "patch", "description": "Apply a patch."}


def call(name: str = "look_up", arguments: str = "{}", call_id: str | None = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class Words:
    """Its tools repeat what they were given; `calls` has the arguments of each run."""

    name = "words"
    version = "1"

    def __init__(self) -> None:
        self.calls: Dicts = []

    def get_tool_schemas(self) -> Dicts:
        return [LOOK_UP, PATCH]

    def execute_tool(self, tool_name: str, arguments: Any, **more: Any) -> str:
        self.calls.append({"tool_name": tool_name, "arguments": arguments, **more})
        return f"{tool_name}: {arguments}"


class Answering:
    """Returns a value from its one tool."""

    name = "answering"
    version = "1"

    def __init__(self, answer: Any = None) -> None:
        self._answer = answer

    def get_tool_schemas(self) -> Dicts:
        return [LOOK_UP]

    def execute_tool(self, tool_name: str, arguments: Any) -> Any:
        return self._answer


def core_with(*tools: Any) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider)
    for plugin in tools:
        core.register_tool(plugin)
    return core


def test_a_tool_message_in_full(run: Drive) -> None:
    core = core_with(Words())

    assert run(core, [call(arguments='{"word": "heron"}')], {}) == [
        {
            "role": "tool",
            "content": "look_up: {'word': 'heron'}",
            "metadata": {
                "tool_call_id": "call_1",
                "tool_name": "look_up",
                "tool_plugin": "words",
                "tool_schema": LOOK_UP,
            },
            "tool_result": {"type": "tool_result", "text": "look_up: {'word': 'heron'}"},
        }
    ]


def test_calls_are_answered_one_by_one_in_their_order(run: Drive) -> None:
    words = Words()
    calls = [call(arguments=f'{{"word": "{word}"}}', call_id=word) for word in ("c", "a", "b")]

    messages = run(core_with(words), calls, {})

    assert [message["metadata"]["tool_call_id"] for message in messages] == ["c", "a", "b"]
    assert [received["arguments"]["word"] for received in words.calls] == ["c", "a", "b"]


@pytest.mark.parametrize("call_id", ["same", "", None])
def test_calls_with_the_same_id_or_none_are_each_run_once(run: Drive, call_id: str | None) -> None:
    words = Words()
    calls = [call(arguments=f'{{"word": "{word}"}}', call_id=call_id) for word in "ab"]

    messages = run(core_with(words), calls, {})

    assert [message["content"] for message in messages] == [
        "look_up: {'word': 'a'}",
        "look_up: {'word': 'b'}",
    ]
    assert [message["metadata"]["tool_call_id"] for message in messages] == [call_id or None] * 2
    assert [received["arguments"] for received in words.calls] == [{"word": "a"}, {"word": "b"}]


def test_no_calls_are_no_work(run: Drive) -> None:
    assert run(AgentCore(), [], {"provider": "unheard of"}) == []


def test_tools_run_without_any_provider(run: Drive) -> None:
    core = AgentCore()
    core.register_tool(Answering("fine"))

    assert [message["content"] for message in run(core, [call()], {})] == ["fine"]


@pytest.mark.parametrize(
    ("config", "options", "error"),
    [
        ({"provider": "unheard of"}, {}, ProviderNotFoundError),
        ({"tool_timeout": "soon"}, {}, ConfigError),
        ({}, {"context": ["junk"]}, ArgumentTypeError),
    ],
)
def test_what_is_wrong_with_the_request_itself_is_raised(
    run: Drive, config: dict[str, Any], options: dict[str, Any], error: type[Exception]
) -> None:
    words = Words()

    with pytest.raises(error):
        run(core_with(words), [call()], config, **options)
    assert words.calls == []


@pytest.mark.parametrize("calls", [call(), "look_up", 5])
def test_calls_must_be_a_list(run: Drive, calls: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="tool_calls must be a list"):
        run(core_with(Words()), calls, {})


def test_a_cancellation_must_be_a_token(watch: Drive) -> None:
    with pytest.raises(ArgumentTypeError, match="'Event' has no add_callback"):
        watch(core_with(Words()), [call()], {}, cancellation=threading.Event())


JSON_CALLS: dict[str, dict[str, Any]] = {
    "openai.chat.function": call(arguments='{"word": "heron"}', call_id="7"),
    "openai.chat.function, loose": {
        "id": "7",
        "function": {"name": "look_up", "arguments": {"word": "heron"}},
    },
    "openai.responses.function": {
        "type": "function_call",
        "call_id": "7",
        "name": "look_up",
        "arguments": '{"word": "heron"}',
    },
    "anthropic.tool_use": {"type": "tool_use", "id": "7", "name": "look_up", "input": {"word": "heron"}},
    "gemini.function_call": {"functionCall": {"id": "7", "name": "look_up", "args": {"word": "heron"}}},
    "gemini.function_call, bare": {"id": "7", "name": "look_up", "args": {"word": "heron"}},
}
TEXT_CALLS: dict[str, dict[str, Any]] = {
    "openai.chat.custom": {"id": "7", "type": "custom", "custom": {"name": "patch", "input": "- a\n+ b"}},
    "openai.chat.custom, flat": {"id": "7", "type": "custom", "name": "patch", "input": "- a\n+ b"},
    "openai.responses.custom": {
        "type": "custom_tool_call",
        "call_id": "7",
        "name": "patch",
        "input": "- a\n+ b",
    },
}
WRAPPED_CALLS: dict[str, dict[str, Any]] = {
    "openai.chat.function": call("patch", '{"input": "- a\\n+ b"}', "7"),
    "anthropic.tool_use": {"type": "tool_use", "id": "7", "name": "patch", "input": {"input": "- a\n+ b"}},
}


@pytest.mark.parametrize("wire", JSON_CALLS)
def test_a_call_reaches_its_tool_over_every_wire(wire: str) -> None:
    words = Words()

    [message] = core_with(words).execute_tool_calls([JSON_CALLS[wire]], {})

    assert message["content"] == "look_up: {'word': 'heron'}"
    assert message["metadata"]["tool_call_id"] == "7"
    assert (words.calls[0]["payload_kind"], words.calls[0]["payload_format"]) == ("json", "json_object")


@pytest.mark.parametrize("wire", TEXT_CALLS)
def test_a_freeform_call_gives_its_tool_text(wire: str) -> None:
    words = Words()

    [message] = core_with(words).execute_tool_calls([TEXT_CALLS[wire]], {})

    assert message["content"] == "patch: - a\n+ b"
    assert message["metadata"]["tool_call_id"] == "7"
    assert (words.calls[0]["payload_kind"], words.calls[0]["payload_format"]) == ("text", "text")


@pytest.mark.parametrize("wire", WRAPPED_CALLS)
def test_a_text_tool_gets_its_text_over_a_wire_that_knows_only_json(wire: str) -> None:
    words = Words()

    [message] = core_with(words).execute_tool_calls([WRAPPED_CALLS[wire]], {})

    assert message["content"] == "patch: - a\n+ b"
    assert (words.calls[0]["payload_kind"], words.calls[0]["payload_format"]) == ("text", "text")


def test_a_tool_gets_everything_about_its_call(run: Drive) -> None:
    words = Words()
    core = core_with(words)
    made = {**call(arguments='{"word": "heron"}'), "index": 0}

    run(core, [made], {"depth": 3})

    [received] = words.calls
    assert set(received) == {
        "tool_name",
        "arguments",
        "state",
        "payload_kind",
        "payload_format",
        "payload_metadata",
        "tool_call",
        "cancellation",
        "context",
        "prepared",
    }
    assert received["tool_call"] == made
    assert received["payload_metadata"] == {"extra": {"index": 0}}
    assert received["state"]["config"]["depth"] == 3
    assert received["prepared"] == {}
    assert received["cancellation"].cancelled is False


def test_what_a_tool_is_lent_it_cannot_change_and_what_it_is_given_it_can(run: Drive) -> None:
    class Writing(Words):
        def execute_tool(self, tool_name: str, arguments: Any, **more: Any) -> str:
            arguments["word"] = "mine"
            more["state"]["seen"] = True
            more["tool_call"]["function"]["name"] = "another"
            return "never said"

    made = call(arguments='{"word": "heron"}')

    [message] = run(core_with(Writing()), [made], {})

    assert message["metadata"]["error"] == {"type": "exception"}
    assert "FrozenValueError: this dict is frozen" in message["content"]
    assert made == call(arguments='{"word": "heron"}')


def test_the_arguments_of_an_object_call_are_a_copy(run: Drive) -> None:
    class Writing(Words):
        def execute_tool(self, tool_name: str, arguments: Any, **more: Any) -> str:
            arguments["words"].append("mine")
            return "done"

        def get_tool_schemas(self) -> Dicts:
            return [function("look_up", words={"type": "array"})]

    made = {"type": "tool_use", "id": "1", "name": "look_up", "input": {"words": ["heron"]}}

    run(core_with(Writing()), [made], {})

    assert made["input"] == {"words": ["heron"]}


def test_state_is_shared_by_the_calls_of_one_batch_and_by_no_others(run: Drive) -> None:
    class Counting(Answering):
        def init(self, config: Mapping[str, Any]) -> dict[str, Any]:
            return {"calls": 0}

        def execute_tool(  # type: ignore[override]
            self, tool_name: str, arguments: Any, state: dict[str, Any]
        ) -> int:
            state["calls"] += 1
            return int(state["calls"])

    core = core_with(Counting())

    first = run(core, [call(), call()], {})
    second = run(core, [call()], {})

    assert [message["content"] for message in first + second] == ["1", "2", "1"]


def test_a_feature_leaves_something_for_the_tool(run: Drive) -> None:
    class Limits:
        name = "limits"
        version = "1"

        def prepare_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
            return [replace(tool, prepared={"limit": 10}) for tool in tools]

    words = Words()
    core = core_with(words)
    core.register_feature(Limits)

    run(core, [call()], {})

    assert words.calls[0]["prepared"] == {"limit": 10}
    assert isinstance(words.calls[0]["prepared"], FrozenDict)


def test_the_context_tells_a_tool_where_it_runs(run: Drive) -> None:
    words = Words()
    core = core_with(words)

    run(core, [call()], {"depth": 3})

    context = words.calls[0]["context"]
    assert context == {"core": core, "config": {"depth": 3}, "trigger_source": "core"}
    assert isinstance(context, Context)


def test_the_context_completes_what_layers_above_said_and_overwrites_none_of_it(run: Drive) -> None:
    words = Words()
    core = core_with(words)

    run(core, [call()], {}, context={"trigger_source": "application", "user": "Ada", "core": "richer"})

    context = words.calls[0]["context"]
    assert context == {"trigger_source": "application", "user": "Ada", "core": "richer", "config": {}}


def test_the_context_reaches_a_streamed_call_too(stream: Drive) -> None:
    class Streaming(Words):
        def stream_tool(self, tool_name: str, arguments: Any, **named: Any) -> Iterator[Any]:
            yield self.execute_tool(tool_name, arguments, **named)

    words = Streaming()

    stream(core_with(words), call(), {"depth": 3}, context={"user": "Ada"})

    assert words.calls[0]["context"]["user"] == "Ada"
    assert words.calls[0]["context"]["config"] == {"depth": 3}


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


def test_any_value_is_a_result(run: Drive, case: Case) -> None:
    cases: list[tuple[Any, str]] = [
        ("a text", "a text"),
        ("", ""),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        ([1, "b"], '[\n  1,\n  "b"\n]'),
        ({"b": 1, "a": [2]}, '{\n  "a": [\n    2\n  ],\n  "b": 1\n}'),
        (None, '{\n  "result": null,\n  "success": true\n}'),
        ({"success": True, "result": "said"}, "said"),
        ({"success": True, "content": "said"}, "said"),
        ({"success": True, "result": {"a": 1}}, '{\n  "a": 1\n}'),
        ({"success": True, "result": "said", "error": "but slowly"}, "but slowly\nsaid"),
        ({"success": True, "lines": 3, "words": 9}, '{\n  "lines": 3,\n  "success": true,\n  "words": 9\n}'),
    ]
    for answer, content in cases:
        with case(answer, content):
            [message] = run(core_with(Answering(answer)), [call()], {})

            assert message["content"] == content
            assert message["tool_result"] == {"type": "tool_result", "text": content}
            assert "error" not in message["metadata"]


def test_an_object_that_is_no_json_is_described() -> None:
    [message] = core_with(Answering(Opaque())).execute_tool_calls([call()], {})

    assert "<opaque>" in message["content"]
    assert "error" not in message["metadata"]


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"success": False, "error": "no such word"}, "no such word"),
        ({"success": False, "result": "no such word"}, "no such word"),
        ({"success": False}, '{\n  "success": false\n}'),
        ({"success": True, "is_error": True, "result": "no such word"}, "no such word"),
    ],
)
def test_a_result_that_says_so_is_a_failure(run: Drive, answer: Any, content: str) -> None:
    [message] = run(core_with(Answering(answer)), [call()], {})

    assert message["content"] == content
    assert message["metadata"]["error"] == {"type": "tool_failed"}
    assert message["tool_result"] == {"type": "tool_result", "text": content, "is_error": True}


class Formatting(Answering):
    """Answers with one value and lets functions do the rest."""

    def __init__(self, answer: Any, formatted: Any = None, display: Any = None) -> None:
        super().__init__(answer)
        self._formatted = formatted
        self._display = display
        self.seen: list[tuple[Any, ...]] = []

    def format_tool_result(self, result: dict[str, Any], state: dict[str, Any]) -> Any:
        self.seen.append(("format", result, set(state)))
        return self._formatted

    def to_display_format(self, text: str, result: dict[str, Any], state: dict[str, Any]) -> Any:
        self.seen.append(("display", text, result, set(state)))
        return self._display


def test_a_plugin_says_in_its_own_words_what_the_model_reads(run: Drive) -> None:
    plugin = Formatting([1, 2, 3], "three numbers")

    [message] = run(core_with(plugin), [call()], {})

    result = {"success": True, "result": [1, 2, 3]}
    assert message["content"] == "three numbers"
    assert message["tool_result"] == {"type": "tool_result", "text": "three numbers"}
    assert plugin.seen == [("format", result, {"config"}), ("display", "three numbers", result, {"config"})]


def test_a_failure_stays_one_when_a_plugin_words_it(run: Drive) -> None:
    plugin = Formatting({"success": False, "error": "ENOENT"}, "There is no such file.")

    [message] = run(core_with(plugin), [call()], {})

    assert message["content"] == "There is no such file."
    assert message["metadata"]["error"] == {"type": "tool_failed"}
    assert message["tool_result"]["is_error"] is True


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("formatted", "content"),
    [
        (
            {
                "type": "tool_result",
                "tool_use_id": "call_1",
                "content": [{"type": "text", "text": "a picture:"}, PICTURE],
            },
            "a picture:",
        ),
        ({"type": "function_call_output", "call_id": "call_1", "output": "said"}, "said"),
        ({"functionResponse": {"name": "look_up", "response": {"output": "said"}}}, "said"),
        (
            {
                "type": "tool_result",
                "text": "said",
                "parts": [{"type": "image", "url": "https://a.example/b"}],
            },
            "said",
        ),
    ],
    ids=["anthropic", "responses", "gemini", "core"],
)
def test_a_structured_result_is_kept_as_the_plugin_wrote_it(
    run: Drive, formatted: dict[str, Any], content: str
) -> None:
    [message] = run(core_with(Formatting("raw", formatted)), [call()], {})

    assert message["content"] == content
    assert message["tool_result"] == formatted


def test_a_structured_failure_is_a_failure(run: Drive) -> None:
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "no", "is_error": True}

    [message] = run(core_with(Formatting("raw", block)), [call()], {})

    assert message["metadata"]["error"] == {"type": "tool_failed"}
    assert message["tool_result"] == block


def test_parts_of_a_plain_result_are_kept_along_with_its_text(run: Drive) -> None:
    parts = [{"type": "text", "text": "a picture:"}, PICTURE]

    [message] = run(core_with(Answering({"success": True, "content": parts})), [call()], {})

    assert message["content"] == "a picture:"
    assert message["tool_result"]["parts"] == [
        {"type": "text", "text": "a picture:"},
        {"type": "image", "mime_type": "image/png", "data": "AAAA"},
    ]


DIFF = {"type": "diff", "content": "- a"}


@pytest.mark.parametrize(
    ("answer", "formatted", "display", "shown"),
    [
        ("raw", "worded", DIFF, DIFF),
        ("raw", {"type": "tool_result", "text": "worded", "display": DIFF}, None, DIFF),
        ("raw", {"type": "tool_result", "text": "worded", "display": {"other": 1}}, DIFF, DIFF),
        ("raw", "worded", None, None),
        ("raw", "worded", "no dict", None),
        ("raw", "worded", ["no dict"], None),
    ],
)
def test_what_a_person_sees_is_in_the_metadata(
    run: Drive, answer: Any, formatted: Any, display: Any, shown: Any
) -> None:
    [message] = run(core_with(Formatting(answer, formatted, display)), [call()], {})

    assert message["content"] == "worded"
    assert message["metadata"].get("display") == shown


def test_a_result_may_bring_its_display_along(run: Drive) -> None:
    answer = {"success": True, "result": "said", "display": DIFF}

    [message] = run(core_with(Answering(answer)), [call()], {})

    assert message["content"] == "said"
    assert message["metadata"]["display"] == DIFF


def test_what_a_tool_only_quotes_does_not_become_a_display(run: Drive) -> None:
    quoted = {"success": True, "result": {"display": DIFF, "type": "tool_result", "text": "quoted"}}

    [message] = run(core_with(Answering(quoted)), [call()], {})

    assert "display" not in message["metadata"]


class Streaming:
    name = "streaming"
    version = "1"

    def get_tool_schemas(self) -> Dicts:
        return [LOOK_UP]

    def stream_tool(self, tool_name: str, arguments: Any) -> Iterator[Any]:
        yield {"part": {"type": "text", "content": "looking"}}
        yield {"progress": 0.5}
        yield {"success": True, "result": f"found {arguments.get('word')}"}


class StreamingAsync(Streaming):
    async def stream_tool(self, tool_name: str, arguments: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        for item in Streaming().stream_tool(tool_name, arguments):
            await asyncio.sleep(0)
            yield item


class StreamingBoth(Streaming):
    async def stream_tool_async(self, tool_name: str, arguments: Any) -> AsyncIterator[Any]:
        for item in self.stream_tool(tool_name, arguments):
            yield item


class StreamingFromExecute(Answering):
    def execute_tool(self, tool_name: str, arguments: Any) -> Any:
        return Streaming().stream_tool(tool_name, arguments)


class StreamingAList(Streaming):
    def stream_tool(self, tool_name: str, arguments: Any) -> Any:
        return list(super().stream_tool(tool_name, arguments))


class StreamingSwitchedOff(Streaming):
    streams = False

    def execute_tool(self, tool_name: str, arguments: Any) -> str:
        return f"found {arguments.get('word')}"


PARTS: Dicts = [{"part": {"type": "text", "content": "looking"}}, {"part": {"progress": 0.5}}]
STREAMING = [Streaming, StreamingAsync, StreamingBoth, StreamingFromExecute, StreamingAList]


@pytest.mark.parametrize("plugin", STREAMING)
def test_partial_output_comes_before_its_message_and_calls_do_not_mix(
    watch: Drive, plugin: type[Any]
) -> None:
    calls = [call(arguments=f'{{"word": "{word}"}}', call_id=word) for word in "ab"]

    events = watch(core_with(plugin), calls, {})

    assert [event if "part" in event else event["content"] for event in events] == [
        *PARTS,
        "found a",
        *PARTS,
        "found b",
    ]


@pytest.mark.parametrize("plugin", [*STREAMING, StreamingSwitchedOff])
def test_every_form_of_a_tool_gives_the_same_message(run: Drive, plugin: type[Any]) -> None:
    [message] = run(core_with(plugin), [call(arguments='{"word": "heron"}')], {})

    assert message["content"] == "found heron"
    assert message["tool_result"] == {"type": "tool_result", "text": "found heron"}


@pytest.mark.parametrize("plugin", [Streaming, StreamingAsync, StreamingBoth, StreamingAList])
def test_a_streamed_call_shows_what_the_tool_itself_yields(stream: Drive, plugin: type[Any]) -> None:
    items = stream(core_with(plugin), call(arguments='{"word": "heron"}'), {})

    assert items == [PARTS[0], {"progress": 0.5}, {"success": True, "result": "found heron"}]


@pytest.mark.parametrize("plugin", [Streaming, StreamingFromExecute, StreamingSwitchedOff, Answering])
def test_a_streamed_call_of_a_tool_that_does_not_stream_yields_nothing_and_does_not_run_it(
    stream: Drive, plugin: type[Any]
) -> None:
    ran = []

    class Watched(plugin):  # type: ignore[misc]  # one of several
        stream_tool = None if plugin is Streaming else getattr(plugin, "stream_tool", None)

        def execute_tool(self, tool_name: str, arguments: Any) -> str:
            ran.append(tool_name)
            return "fine"

    assert stream(core_with(Watched), call(), {}) == []
    assert ran == []


def test_a_plain_function_streams_if_it_is_a_generator(stream: Drive) -> None:
    def look_up(word: str) -> Iterator[str]:
        """Look up a word."""
        yield f"found {word}"

    def find(word: str) -> str:
        """Find a word."""
        raise AssertionError(word)

    core = core_with(look_up, find)

    assert stream(core, call(arguments='{"word": "heron"}'), {}) != []
    assert stream(core, call("find", arguments='{"word": "heron"}'), {}) == []


@pytest.mark.parametrize(
    "unfit", [call("unheard_of"), call(arguments="{"), call(arguments='{"word": 5}'), {"junk": 1}]
)
def test_a_streamed_call_that_cannot_be_run_yields_nothing(stream: Drive, unfit: dict[str, Any]) -> None:
    words = Words()

    assert stream(core_with(words), unfit, {}) == []
    assert words.calls == []


class Bilingual:
    """Has each hook twice and notes which one was used, and where."""

    name = "bilingual"
    version = "1"

    def get_tool_schemas(self) -> Dicts:
        return [LOOK_UP]

    def execute_tool(self, tool_name: str, arguments: Any) -> str:
        return "waited"

    async def execute_tool_async(self, tool_name: str, arguments: Any) -> str:
        return "awaited"


@pytest.mark.parametrize(
    ("driver", "used"),
    [(_execute, "waited"), (_iterate, "waited"), (_execute_async, "awaited"), (_iterate_async, "awaited")],
    ids=lambda value: value if isinstance(value, str) else _driver_name(value),
)
def test_each_way_of_calling_prefers_its_own_form(driver: Drive, used: str) -> None:
    [message] = driver(core_with(Bilingual), [call()], {})

    assert message["content"] == used


def test_an_async_tool_works_for_callers_that_wait(run: Drive) -> None:
    class Waiting(Answering):
        async def execute_tool(self, tool_name: str, arguments: Any) -> str:
            await asyncio.sleep(0)
            return f"awaited {arguments['word']}"

    [message] = run(core_with(Waiting()), [call(arguments='{"word": "heron"}')], {})

    assert message["content"] == "awaited heron"


def test_an_event_loop_goes_on_while_a_tool_blocks() -> None:
    released = threading.Event()

    class Blocking(Answering):
        def execute_tool(self, tool_name: str, arguments: Any) -> str:
            return "released" if released.wait(timeout=60) else "stuck"

    async def release_meanwhile() -> Dicts:
        running = asyncio.ensure_future(core_with(Blocking()).execute_tool_calls_async([call()], {}))
        await asyncio.sleep(0)
        released.set()
        return await running

    [message] = asyncio.run(release_meanwhile())

    assert message["content"] == "released"


def test_interleaved_batches_on_one_core_do_not_mix() -> None:
    core = core_with(Streaming)
    streams = [
        core.iter_tool_messages([call(arguments=f'{{"word": "{word}"}}', call_id=word)], {}) for word in "ab"
    ]

    events = [next(stream) for _ in range(3) for stream in streams]

    assert [event["content"] for event in events if "role" in event] == ["found a", "found b"]
    assert [event["metadata"]["tool_call_id"] for event in events if "role" in event] == ["a", "b"]


def test_batches_in_several_threads_do_not_mix() -> None:
    together = threading.Barrier(4, timeout=60)

    class Meeting(Answering):
        def execute_tool(  # type: ignore[override]
            self, tool_name: str, arguments: Any, state: dict[str, Any]
        ) -> str:
            state.setdefault("words", []).append(arguments["word"])
            together.wait()
            return ",".join(state["words"])

    core = core_with(Meeting())
    answers: dict[str, list[str]] = {}

    def work(word: str) -> None:
        calls = [call(arguments=f'{{"word": "{word}"}}')] * 3
        answers[word] = [message["content"] for message in core.execute_tool_calls(calls, {})]

    threads = [threading.Thread(target=work, args=(word,)) for word in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == {word: [word, f"{word},{word}", f"{word},{word},{word}"] for word in "abcd"}


def test_the_stream_of_a_batch_ends_with_all_messages_as_its_result() -> None:
    stream = core_with(Streaming).iter_tool_messages([call(call_id="a"), call(call_id="b")], {})

    events = list(stream)

    assert stream.result == [event for event in events if "role" in event]


def test_a_token_that_nobody_cancels_changes_nothing(watch: Drive) -> None:
    token = Cancellation()

    events = watch(core_with(Streaming), [call(arguments='{"word": "heron"}')], {}, cancellation=token)

    assert [event if "part" in event else event["content"] for event in events] == [*PARTS, "found heron"]
    assert token._callbacks == {}


def test_calls_are_found_in_assistant_messages() -> None:
    first, second = call(call_id="1"), call(call_id="2")
    messages: list[Any] = [
        {"role": "user", "content": "hi", "metadata": {"tool_calls": [call(call_id="no")]}},
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [first, "junk"]}},
        {"role": "assistant", "content": "", "metadata": {"tool_calls": "junk"}},
        {"role": "assistant", "content": "", "metadata": None},
        {"role": "assistant", "content": "", "metadata": ["junk"]},
        {"role": "assistant", "content": ""},
        "junk",
        {"role": "assistant", "content": "", "metadata": {"tool_calls": [second]}},
    ]

    assert AgentCore().extract_tool_calls_from_messages(messages) == [first, second]


def test_from_the_models_call_to_its_next_answer() -> None:
    provider = ScriptedProvider(
        [Reply(text="Let me see.", tool_calls=[ToolCall("look_up", {"word": "heron"}, id="7")]), "A bird."]
    )
    core = AgentCore()
    core.register_provider(provider)
    core.register_tool(Words())
    session, finals = core.send_request(core.add_message(Session("s"), "user", "What is a heron?"), {})

    for message in core.execute_tool_calls(core.extract_tool_calls_from_messages(finals), {}):
        session = core.add_message(session, **message)
    session, finals = core.send_request(session, {})

    assert finals[-1]["content"] == "A bird."
    sent = provider.requests[1].native_messages[-1]
    assert (sent["role"], sent["tool_call_id"]) == ("tool", "7")
    assert sent["content"] == "look_up: {'word': 'heron'}"
    assert session.messages[2].tool_result == {"type": "tool_result", "text": "look_up: {'word': 'heron'}"}
