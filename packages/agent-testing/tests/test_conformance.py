"""The conformance kit: good plugins pass every check, and each kind of bad one fails exactly its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator  # noqa: TC003
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, repeat
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import ArgumentError, Session, ToolDescriptor, ToolInteropRegistry, tool
from agent_core.interop import InspectedSchema, ToolSchemaFormat
from agent_core.testing import EchoProvider, Reply, ScriptedProvider
from agent_testing.conformance import (
    Exchange,
    ExtensionConformance,
    FeatureConformance,
    Finding,
    ProviderConformance,
    Skipped,
    ToolConformance,
    check_plugin,
)
from agent_testing.conformance.stage import difference
from agent_testing.conformance.suite import CHECKS

pytest_plugins = ["pytester"]

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Chunked = tuple[Dicts, Dicts, Dicts, State]
Finalized = tuple[Dicts, Dicts, State]


class GoodCommon:
    """The hooks of every kind, well behaved."""

    version = "1"
    priority = 50

    def get_config_schema(self) -> dict[str, Any]:
        return {"tone": {"type": "string", "default": "kind"}}

    def get_ui_elements(self, config: dict[str, Any], tags: list[str]) -> Dicts:
        return [{"ui_type": "config", "key": "tone", "tags": list(tags)}]

    def get_tags(self, config: dict[str, Any]) -> list[str]:
        return ["kind"]

    def required_tags(self) -> list[str]:
        return []

    def forbidden_tags(self) -> list[str]:
        return []

    def is_enabled(self, config: dict[str, Any], tags: list[str]) -> bool | None:
        return None


class GoodProvider(GoodCommon, EchoProvider):
    name = "good_provider"

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        return native_messages, {**state, "opened": True}

    def cancel_request(self, request_id: str) -> None:
        return None


class GoodBeside(GoodCommon):
    """The hooks that extensions and features share."""

    def init(self, config: dict[str, Any], state: State) -> State:
        return {**state, "mine": config.get("tone")}

    def get_models(self, config: dict[str, Any], models: Dicts) -> Dicts:
        return [{**model, "tone": "kind"} for model in models]

    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        return [{**item, "seen": True} for item in native_messages]

    def from_native_messages(self, native_messages: Dicts, messages: Dicts) -> Dicts:
        return messages

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        return native_messages, state

    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Finalized:
        return final_messages, native_messages, state

    def get_actions(self) -> Dicts:
        return [
            {"id": "tag", "label": "Tag", "idempotent": True, "inputs": {"tag": {"type": "string"}}},
            {"id": "shorten", "inputs": {"to": {"type": "integer", "required": True}}},
            {"id": "greet", "trigger": "response_finalize"},
        ]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any],
    ) -> dict[str, Any]:
        if action_id == "tag":
            display = {"format": "text", "body": "Tagged."}
            return {"session_metadata": {"tag": params.get("tag", "new")}, "display": display}
        if action_id == "shorten":
            return {"native_messages": native_messages[: params["to"]]}
        if action_id == "greet":
            return {
                "final_messages": [{**m, "content": f"Hi! {m['content']}"} for m in context["final_messages"]]
            }
        return {"error": {"type": "unknown_action", "message": action_id}}


class GoodExtension(GoodBeside):
    name = "good_extension"

    def process_chunk(
        self, chunk: Any, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Chunked:
        return [{**partial, "mine": True} for partial in partials], finals, native_messages, state


class GoodFeature(GoodBeside):
    name = "good_feature"

    def prepare_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return sorted(tools, key=lambda tool: tool.name)

    def get_template(self) -> str:
        return "Dear {name}"

    def get_completions(self, config: dict[str, Any], text: str) -> Dicts:
        return [{"replacement": "tea", "start": -2}]

    def apply_completion(self, config: dict[str, Any], text: str, completion: dict[str, Any]) -> str:
        return str(completion.get("replacement", ""))


class GoodTool(GoodCommon):
    name = "good_tool"
    parameters: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    }

    def get_tool_schemas(self) -> Dicts:
        return [{"type": "function", "function": {"name": "spell", "parameters": self.parameters}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool_name != "spell":
            raise LookupError(tool_name)
        return {"success": True, "result": "-".join(arguments["word"])}

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return f"spell {arguments['word']}"

    def format_tool_result(self, result: dict[str, Any]) -> str:
        return str(result["result"])

    def to_display_format(self, text: str) -> dict[str, Any]:
        return {"type": "text", "content": text}


class CallOnlyProvider(GoodProvider):
    """Answers in one piece and has nothing to stream."""

    name = "call_only"
    stream_api = None  # type: ignore[assignment]  # a hook that is not written
    stream_api_async = None  # type: ignore[assignment]
    process_chunk = None  # type: ignore[assignment]

    def call_api(self, native_messages: Dicts, state: State) -> Chunked:
        return [], [], native_messages, {**state, "words": ["done"]}


class AsyncOnlyProvider(GoodProvider):
    name = "async_only"
    stream_api = None  # type: ignore[assignment]  # a hook that is not written


SHORTEN = {"shorten": {"to": 2}}
SPELL = {"spell": {"word": "tea"}}
GIVEN: dict[type, dict[str, Any]] = {
    GoodProvider: {"kind": "provider", "exchange": Exchange()},
    GoodExtension: {"kind": "extension", "action_params": SHORTEN},
    GoodFeature: {"kind": "feature", "action_params": SHORTEN},
    GoodTool: {"kind": "tool", "tool_calls": SPELL},
}


def given_for(plugin: type) -> dict[str, Any]:
    return next(given for good, given in GIVEN.items() if issubclass(plugin, good))


class TestAProviderThatEchoes(ProviderConformance):
    plugin = EchoProvider

    def exchange(self) -> Exchange:
        return Exchange(messages=[{"role": "user", "content": "one two three"}])


class TestAProviderWithAScript(ProviderConformance):
    def make_plugin(self) -> ScriptedProvider:
        return ScriptedProvider(repeat(Reply(chunks=["one ", "two"], usage={"output_tokens": 2})))

    @contextmanager
    def exchange(self) -> Iterator[Exchange]:
        yield Exchange(config={"temperature": 0})


class TestAProviderThatOnlyCalls(ProviderConformance):
    plugin = CallOnlyProvider

    def exchange(self) -> Exchange:
        return Exchange()


class TestAnExtension(ExtensionConformance):
    plugin = GoodExtension()
    action_params = SHORTEN


class TestAFeature(FeatureConformance):
    plugin = GoodFeature
    action_params = SHORTEN


class TestATool(ToolConformance):
    plugin = GoodTool
    tool_calls = SPELL


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


class TestAFunctionTool(ToolConformance):
    plugin = add
    tool_calls: ClassVar[dict[str, Any]] = {"add": {"a": 1}}


def subtract(a: int, b: int) -> int:
    return a - b


class TestAPlainFunction(ToolConformance):
    plugin = subtract
    tool_calls: ClassVar[dict[str, Any]] = {"subtract": {"a": 3, "b": 1}}


class TestGoodPlugins:
    @pytest.mark.parametrize("plugin", GIVEN)
    def test_a_plugin_with_every_hook_passes_every_check(self, plugin: type) -> None:
        report = check_plugin(plugin, **GIVEN[plugin])

        assert (report.findings, report.skipped) == ([], [])
        assert report.passed == [check.__name__ for check in CHECKS[report.kind]]
        assert report.ok

    def test_a_provider_without_a_blocking_form_passes(self) -> None:
        report = check_plugin(AsyncOnlyProvider, "provider", exchange=Exchange())

        assert (report.findings, report.skipped) == ([], [])


class Unversioned(GoodProvider):
    version = ""


class WithArguments(GoodProvider):
    def __init__(self, url: str) -> None:
        self.url = url


class OddSignature(GoodProvider):
    def to_native_messages(self) -> Dicts:  # type: ignore[override]
        return []


class OddPriority(GoodFeature):
    priority = "first"  # type: ignore[assignment]


class SpeaksLatin(GoodProvider):
    tool_schema_formats = ("latin",)


class PerhapsOn(GoodFeature):
    default_enabled = "no"


class NamelessModels(GoodProvider):
    def get_models(self, config: dict[str, Any]) -> Dicts:
        return [{"name": "Large"}]


class ConvertsToNone(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        return None  # type: ignore[return-value]


class ForgetsTheState(GoodProvider):
    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Any:
        return super().process_chunk(chunk, native_messages, state)[:3]


class CannotConnect(GoodProvider):
    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        raise ConnectionError("refused")


class StumblesAtTheEnd(GoodProvider):
    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        return super().finalize(native_messages, {"words": [*state["words"], 1 / len(state["words"][7:])]})


class Undecided(GoodFeature):
    def is_enabled(self, config: dict[str, Any], tags: list[str]) -> Any:
        return "yes"


class InventsTools(GoodFeature):
    def prepare_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return [*tools, ToolDescriptor(name="new", schema=tools[0].schema, plugin="mine")]


class TemplateOfNothing(GoodFeature):
    def get_template(self) -> Any:
        return None


class KnowsOnlyItsOwnCompletions(GoodFeature):
    def apply_completion(self, config: dict[str, Any], text: str, completion: dict[str, Any]) -> str:
        return str(completion["emoji"])


class SilentAction(GoodExtension):
    def execute_action(self, *arguments: Any) -> Any:
        return None


class SilentChunks(GoodExtension):
    def process_chunk(self, *arguments: Any) -> Any:
        return None


class StripsMetadata(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        for message in messages:
            message.pop("metadata")
        return [{"role": message["role"], "content": message["content"]} for message in messages]


class AppendsAnswers(GoodProvider):
    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        finals, _, state = super().finalize([], state)
        native_messages.extend(finals)
        return finals, native_messages, state


class AppendsChunks(GoodProvider):
    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Chunked:
        native_messages.append({"role": "assistant", "content": chunk})
        return super().process_chunk(chunk, native_messages, state)


class ConfiguresItself(GoodProvider):
    def init(self, config: dict[str, Any]) -> State:
        config["tone"] = "kind"
        return super().init(config)


class SortsTools(GoodFeature):
    def prepare_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        tools.reverse()
        return tools


class EditsInPlace(GoodExtension):
    def execute_action(self, action_id: str, *arguments: Any) -> dict[str, Any]:
        arguments[1].clear()
        return super().execute_action(action_id, *arguments[:4])


class Moody(GoodFeature):
    def __init__(self) -> None:
        self.asked = count()

    def get_tags(self, config: dict[str, Any]) -> list[str]:
        return [f"mood-{next(self.asked)}"]


class SetOfChoices(GoodProvider):
    def get_config_schema(self) -> dict[str, Any]:
        return {"tone": {"enum": {"kind", "rude"}}}


class LiveElements(GoodExtension):
    def get_ui_elements(self, config: dict[str, Any], tags: list[str]) -> Dicts:
        return [{"ui_type": "config", "key": "tone", "on_change": print}]


class StampsAnswers(GoodProvider):
    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        finals, native_messages, state = super().finalize(native_messages, state)
        stamped = [{**final, "at": datetime(2030, 1, 1, tzinfo=UTC)} for final in finals]
        return stamped, [*native_messages[: -len(finals) or None], *stamped], state


class NumbersKeys(GoodFeature):
    def get_completions(self, config: dict[str, Any], text: str) -> Dicts:
        return [{"replacement": "tea", "scores": {1: 0.5}}]


class UnspeakableResult(GoodFeature):
    def execute_action(self, action_id: str, *arguments: Any) -> dict[str, Any]:
        return {**super().execute_action(action_id, *arguments[:4]), "when": object()}


class Countdown(GoodProvider):
    def __init__(self) -> None:
        self.converted = count()

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{**item, "number": next(self.converted)} for item in super().to_native_messages(messages)]


class Greets(GoodExtension):
    def __init__(self) -> None:
        self.requests = count()

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        return [{"role": "system", "content": f"{next(self.requests)}"}, *native_messages], state


class PutsAHeader(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": "header", "content": ""}, *super().to_native_messages(messages)]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages([item for item in native_messages if item["role"] != "header"])


class RemindsEachTime(GoodFeature):
    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        return [*native_messages, *native_messages[:1]]


class WritesOneFormat(GoodFeature):
    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        return [{"role": "system", "content": "Be kind."}, *native_messages], state


class ReadsOneFormat(GoodFeature):
    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Finalized:
        return (
            final_messages,
            native_messages,
            {**state, "said": [item["content"] for item in final_messages]},
        )


class StaysOffElsewhere(ReadsOneFormat):
    """Knows one format, and says so."""

    def is_enabled(self, config: dict[str, Any], tags: list[str], **more: Any) -> bool | None:
        return config.get("provider") == "the one that I know"


class ShoutsAsync(GoodProvider):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        async for word in super().stream_api_async(native_messages, state):
            yield word.upper()


class CannotCall(GoodProvider):
    def call_api(self, native_messages: Dicts, state: State) -> Chunked:
        raise ConnectionError("refused")


class SaysNothingInOnePiece(GoodProvider):
    def call_api(self, native_messages: Dicts, state: State) -> Chunked:
        return [], [], native_messages, state


class CountsChunks(GoodExtension):
    def process_chunk(
        self, chunk: Any, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Chunked:
        chunks = state.get("chunks", 0) + 1
        patch = {"chunks": chunks}
        return partials, finals, native_messages, {**state, **patch, "session_metadata_patch": patch}


class WantsAWord(GoodProvider):
    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        assert state["words"][0] is not None
        return super().finalize(native_messages, state)


class WantsAPartial(GoodExtension):
    def process_chunk(
        self, chunk: Any, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Chunked:
        if "text" in chunk:
            partials = [{**partials[0], "mine": True}]
        return partials, finals, native_messages, state


class WantsAFinal(GoodFeature):
    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Finalized:
        return [*final_messages[:-1], {**final_messages[-1]}], native_messages, state


class AllOrNothing(GoodProvider):
    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        yield from super().stream_api(native_messages, state)
        state["done"] = True

    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        async for word in super().stream_api_async(native_messages, state):
            yield word
        state["done"] = True

    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        if "done" not in state:
            return [], native_messages, state
        return super().finalize(native_messages, state)


class TakesOffence(GoodProvider):
    """Remembers streams that were left and is never the same again."""

    offended = False

    def __init__(self) -> None:
        self.offended = False

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        try:
            yield from ["Well."] if self.offended else super().stream_api(native_messages, state)
        except GeneratorExit:
            self.offended = True
            raise


class NeverForgives(TakesOffence):
    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        if self.offended:
            raise ConnectionError("hung up")
        return super().stream_api(native_messages, state)


class OneLine(GoodProvider):
    """Has one line, which is busy while somebody streams."""

    busy = False

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        if self.busy:
            raise ConnectionError("busy")
        self.busy = True
        try:
            yield from super().stream_api(native_messages, state)
        finally:
            self.busy = False


class SharesItsWords(GoodProvider):
    def init(self, config: dict[str, Any]) -> State:
        self.words: list[str] = []
        return super().init(config)

    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Chunked:
        self.words.append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> Finalized:
        return super().finalize(native_messages, {**state, "words": list(self.words)})


class OneAtATime(GoodExtension):
    current: State | None = None

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        self.current = state = {**state}
        return native_messages, state

    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Finalized:
        patch = {"alone": self.current is state}
        return final_messages, native_messages, {**state, "session_metadata_patch": patch}


class LosesTheCall(GoodProvider):
    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages(
            [{k: v for k, v in item.items() if k != "tool_call_id"} for item in native_messages]
        )


class HasNoSystem(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        return super().to_native_messages([m for m in messages if m["role"] != "system"])


class KeepsOnePart(GoodProvider):
    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages(
            [{**item, "parts": item["parts"][:1]} if "parts" in item else item for item in native_messages]
        )


class CancelsWhatIsThere(GoodProvider):
    def cancel_request(self, request_id: str) -> None:
        raise KeyError(request_id)


class NamelessAction(GoodExtension):
    def get_actions(self) -> Dicts:
        return [{"label": "Do it"}]


class TwiceTheSame(GoodFeature):
    def get_actions(self) -> Dicts:
        return [{"id": "tag"}, {"id": "tag"}]


class NothingBehindIt(GoodFeature):
    execute_action = None  # type: ignore[assignment]  # a hook that is not written


class AnswersAnything(GoodExtension):
    def execute_action(self, action_id: str, *arguments: Any) -> dict[str, Any]:
        result = super().execute_action(action_id, *arguments[:4])
        return {} if "error" in result else result


class FailsWithoutAName(GoodFeature):
    def execute_action(self, action_id: str, *arguments: Any) -> dict[str, Any]:
        result = super().execute_action(action_id, *arguments[:4])
        if "error" in result:
            raise RuntimeError("oops")
        return result


class UnsafeDisplay(GoodFeature):
    def execute_action(self, action_id: str, *arguments: Any) -> dict[str, Any]:
        result = super().execute_action(action_id, *arguments[:4])
        return {**result, "display": {"format": "text", "body": "Hi", "on_click": "steal()"}}


class WantsTheApplication(GoodExtension):
    def from_native_messages(self, native_messages: Dicts, messages: Dicts) -> Dicts:
        if len(messages) == 2:
            raise RuntimeError("this happens to be what the action leaves")
        return messages


class CountsItsRuns(GoodExtension):
    def execute_action(self, action_id: str, session: Session, *arguments: Any) -> dict[str, Any]:
        if action_id == "tag":
            return {"session_metadata": {"tags": session.metadata.get("tags", 0) + 1}}
        return super().execute_action(action_id, session, *arguments[:3])


class NoJsonSchema(GoodTool):
    parameters: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"word": {"type": "words"}}}


class NoObject(GoodTool):
    parameters: ClassVar[dict[str, Any]] = {"type": "array"}


class UnreadableSchema(GoodTool):
    def get_tool_schemas(self) -> Dicts:
        return [{"tool": "spell"}]


class TwoOfOneName(GoodTool):
    def get_tool_schemas(self) -> Dicts:
        return super().get_tool_schemas() * 2


class NameWithASpace(GoodTool):
    def get_tool_schemas(self) -> Dicts:
        return [{"type": "function", "function": {"name": "spell it", "parameters": self.parameters}}]


class AnswersToAnotherName(GoodTool):
    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return super().execute_tool(tool_name.upper(), arguments)


class AttachesObjects(GoodTool):
    def format_tool_result(self, result: dict[str, Any]) -> Any:
        return {"type": "tool_result", "tool_use_id": "call_1", "content": "t-e-a", "cache": {1, 2}}


class Generous(GoodTool):
    parameters: ClassVar[dict[str, Any]] = {"type": "object"}

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return "spell"


class Quits(Generous):
    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if "word" not in arguments:
            raise SystemExit(2)
        return super().execute_tool(tool_name, arguments)


class LongPreview(GoodTool):
    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return "\n".join(["spell", *arguments.values()])


class NoPreview(GoodTool):
    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return str(arguments["sentence"])


class ShowsText(GoodTool):
    def to_display_format(self, text: str) -> Any:
        return text


class ShowsObjects(GoodTool):
    def to_display_format(self, text: str) -> dict[str, Any]:
        return {"type": "text", "content": {text}}


class CannotShow(GoodTool):
    def to_display_format(self, text: str) -> dict[str, Any]:
        raise RuntimeError("no colours")


class CannotFormat(GoodTool):
    def format_tool_result(self, result: dict[str, Any]) -> str:
        return str(result["letters"])

    to_display_format = None  # type: ignore[assignment]  # a hook that is not written


HOSTILE: list[tuple[str, str, type]] = [
    ("it_registers", "version", Unversioned),
    ("it_registers", "__init__", WithArguments),
    ("it_registers", "to_native_messages", OddSignature),
    ("it_registers", "register_feature", OddPriority),
    ("it_registers", "default_enabled", PerhapsOn),
    ("it_registers", "tool_schema_formats", SpeaksLatin),
    ("hooks_answer_the_documented_types", "get_models", NamelessModels),
    ("hooks_answer_the_documented_types", "to_native_messages", ConvertsToNone),
    ("hooks_answer_the_documented_types", "process_chunk", ForgetsTheState),
    ("hooks_answer_the_documented_types", "stream_api", CannotConnect),
    ("hooks_answer_the_documented_types", "finalize", StumblesAtTheEnd),
    ("hooks_answer_the_documented_types", "is_enabled", Undecided),
    ("hooks_answer_the_documented_types", "prepare_tools", InventsTools),
    ("hooks_answer_the_documented_types", "get_template", TemplateOfNothing),
    ("hooks_answer_the_documented_types", "apply_completion", KnowsOnlyItsOwnCompletions),
    ("hooks_answer_the_documented_types", "execute_action", SilentAction),
    ("hooks_answer_the_documented_types", "process_chunk", SilentChunks),
    ("inputs_are_left_alone", "to_native_messages", StripsMetadata),
    ("inputs_are_left_alone", "finalize", AppendsAnswers),
    ("inputs_are_left_alone", "process_chunk", AppendsChunks),
    ("inputs_are_left_alone", "init", ConfiguresItself),
    ("inputs_are_left_alone", "prepare_tools", SortsTools),
    ("inputs_are_left_alone", "execute_action", EditsInPlace),
    ("enablement_is_pure", "get_tags", Moody),
    ("settings_and_elements_are_json", "get_config_schema", SetOfChoices),
    ("settings_and_elements_are_json", "get_ui_elements", LiveElements),
    ("answers_are_json", "finalize", StampsAnswers),
    ("answers_are_json", "get_completions", NumbersKeys),
    ("answers_are_json", "execute_action", UnspeakableResult),
    ("transforms_are_deterministic", "to_native_messages", Countdown),
    ("transforms_are_deterministic", "initialize_request", Greets),
    ("one_message_converts_as_in_a_batch", "to_native_messages", PutsAHeader),
    ("one_message_converts_as_in_a_batch", "to_native_messages", RemindsEachTime),
    ("calls_streams_and_async_twins_agree", "stream_api_async", ShoutsAsync),
    ("calls_streams_and_async_twins_agree", "call_api", CannotCall),
    ("calls_streams_and_async_twins_agree", "call_api", SaysNothingInOnePiece),
    ("calls_streams_and_async_twins_agree", "process_chunk", CountsChunks),
    ("an_empty_answer_is_finalized", "finalize", WantsAWord),
    ("an_empty_answer_is_finalized", "process_chunk", WantsAPartial),
    ("an_empty_answer_is_finalized", "finalize", WantsAFinal),
    ("closing_early_keeps_a_partial", "finalize", AllOrNothing),
    ("closing_early_keeps_a_partial", "stream_api", TakesOffence),
    ("closing_early_keeps_a_partial", "stream_api", NeverForgives),
    ("interleaved_requests_stay_apart", "stream_api", OneLine),
    ("interleaved_requests_stay_apart", "stream_api", SharesItsWords),
    ("interleaved_requests_stay_apart", "process_chunk", OneAtATime),
    ("a_round_trip_keeps_messages", "from_native_messages", LosesTheCall),
    ("a_round_trip_keeps_messages", "from_native_messages", HasNoSystem),
    ("a_round_trip_keeps_parts", "from_native_messages", KeepsOnePart),
    ("cancelling_an_unknown_request_is_harmless", "cancel_request", CancelsWhatIsThere),
    ("actions_are_well_defined", "get_actions", NamelessAction),
    ("actions_are_well_defined", "get_actions", TwiceTheSame),
    ("actions_are_well_defined", "execute_action", NothingBehindIt),
    ("another_native_format_works", "stream_api", WritesOneFormat),
    ("another_native_format_works", "finalize", ReadsOneFormat),
    ("unknown_actions_are_refused", "execute_action", AnswersAnything),
    ("unknown_actions_are_refused", "execute_action", FailsWithoutAName),
    ("actions_run", "execute_action", UnsafeDisplay),
    ("actions_run", "from_native_messages", WantsTheApplication),
    ("idempotent_actions_change_nothing_twice", "execute_action", CountsItsRuns),
    ("tool_schemas_are_valid", "get_tool_schemas", NoJsonSchema),
    ("tool_schemas_are_valid", "get_tool_schemas", NoObject),
    ("tool_schemas_are_valid", "get_tool_schemas", UnreadableSchema),
    ("tool_schemas_are_valid", "get_tool_schemas", TwoOfOneName),
    ("tool_schemas_are_valid", "get_tool_schemas", NameWithASpace),
    ("tools_answer_to_their_names", "execute_tool", AnswersToAnotherName),
    ("results_can_be_shown", "format_tool_result", AttachesObjects),
    ("bad_arguments_are_reported", "execute_tool", Generous),
    ("bad_arguments_are_reported", "execute_tool", Quits),
    ("previews_are_one_line", "format_tool_call_preview", LongPreview),
    ("previews_are_one_line", "format_tool_call_preview", NoPreview),
    ("results_can_be_shown", "format_tool_result", CannotFormat),
    ("results_can_be_shown", "to_display_format", ShowsText),
    ("results_can_be_shown", "to_display_format", ShowsObjects),
    ("results_can_be_shown", "to_display_format", CannotShow),
]


class TestBadPlugins:
    @pytest.mark.parametrize(
        ("check", "hook", "plugin"), HOSTILE, ids=[plugin.__name__ for _, _, plugin in HOSTILE]
    )
    def test_a_bad_plugin_fails_the_check_that_is_about_it_and_no_other(
        self, check: str, hook: str, plugin: type
    ) -> None:
        report = check_plugin(plugin, **given_for(plugin))

        assert {(finding.check, finding.hook) for finding in report.findings} == {(check, hook)}
        assert f"Plugin {report.plugin!r}, hook {hook!r}: " in str(report.findings[0])
        assert not report.ok
        assert {check, *report.passed, *(skip.check for skip in report.skipped)} == {
            every.__name__ for every in CHECKS[report.kind]
        }

    def test_there_is_a_bad_plugin_for_every_check(self) -> None:
        assert {check for check, _, _ in HOSTILE} == {
            check.__name__ for checks in CHECKS.values() for check in checks
        }


class Untouchable(GoodProvider):
    """Would reach for the network, which no check may cause by itself."""

    name = "untouchable"

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        raise AssertionError("asked")

    def get_models(self, config: dict[str, Any]) -> Dicts:
        raise AssertionError("asked")


class Dangerous(GoodTool):
    name = "dangerous"
    parameters: ClassVar[dict[str, Any]] = {"type": "object"}
    ran: ClassVar[list[str]] = []

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.ran.append(tool_name)
        return {"success": True, "result": "gone"}

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return tool_name


class Freeform(GoodTool):
    name = "freeform"

    def get_tool_schemas(self) -> Dicts:
        return [{"type": "custom", "custom": {"name": "spell", "description": "Spell a text."}}]

    def execute_tool(self, tool_name: str, arguments: Any) -> dict[str, Any]:
        return {"success": True, "result": "-".join(arguments)}

    def format_tool_call_preview(self, tool_name: str, arguments: Any) -> str:
        return f"spell {arguments}"


def reasons(skipped: list[Skipped]) -> dict[str, str]:
    return {skip.check: skip.reason for skip in skipped}


class NeedsAnAddress(GoodProvider):
    def init(self, config: dict[str, Any]) -> State:
        return {**super().init(config), "url": config["url"]}


class Mute(GoodProvider):
    def process_chunk(self, chunk: str, native_messages: Dicts, state: State) -> Chunked:
        return [], *super().process_chunk(chunk, native_messages, state)[1:]


class RefusesImages(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        if any("multipartContent" in message for message in messages):
            raise ValueError("only text, please")
        return super().to_native_messages(messages)


class IgnoresImages(GoodProvider):
    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": m["role"], "content": m["content"], "seen": m["metadata"]} for m in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": m["role"], "content": m["content"], "metadata": m.get("seen", {})}
            for m in native_messages
        ]


class SpeaksItsOwnFormat(GoodTool):
    name = "own_format"

    def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
        registry.register_schema_format(
            ToolSchemaFormat(
                id="own",
                matches=lambda schema: "own" in schema,
                inspect=lambda schema: InspectedSchema(name=schema["own"], parameters=self.parameters),
                build=lambda schema: {"own": schema.name},
            )
        )

    def get_tool_schemas(self) -> Dicts:
        return [{"own": "spell"}]


class TestWhatDoesNotApply:
    @pytest.mark.parametrize(
        ("plugin", "check", "reason"),
        [
            (Mute, "closing_early_keeps_a_partial", "no partial after which to leave"),
            (CallOnlyProvider, "closing_early_keeps_a_partial", "does not stream"),
            (CallOnlyProvider, "interleaved_requests_stay_apart", "does not stream"),
            (RefusesImages, "a_round_trip_keeps_parts", "only text, please"),
            (IgnoresImages, "a_round_trip_keeps_parts", "does not bring back parts"),
        ],
    )
    def test_a_check_without_a_subject_is_skipped_with_a_reason(
        self, plugin: type, check: str, reason: str
    ) -> None:
        report = check_plugin(plugin, "provider", exchange=Exchange())

        assert report.ok
        assert reason in reasons(report.skipped)[check]

    def test_a_tool_may_bring_formats_of_its_own(self) -> None:
        report = check_plugin(SpeaksItsOwnFormat, "tool", tool_calls=SPELL)

        assert (report.findings, report.skipped) == ([], [])


class TestWhatTheAuthorSays:
    def test_without_an_exchange_no_request_is_sent(self) -> None:
        report = check_plugin(Untouchable, "provider")

        assert report.ok
        assert "no exchange was given" in reasons(report.skipped)["calls_streams_and_async_twins_agree"]

    def test_an_exchange_may_be_a_context_manager_and_lasts_as_long_as_it_is_needed(self) -> None:
        log: list[str] = []

        @contextmanager
        def exchange() -> Iterator[Exchange]:
            log.append("open")
            yield Exchange(messages=[{"role": "user", "content": "a b"}], config={"url": "http://localhost"})
            log.append("closed")

        report = check_plugin(NeedsAnAddress, "provider", exchange=exchange)

        assert (report.findings, report.skipped) == ([], [])
        assert log == ["open", "closed"] * (len(log) // 2) != []

    def test_a_constructor_with_arguments_is_called_by_the_author(self) -> None:
        report = check_plugin(
            WithArguments,
            "provider",
            make_plugin=lambda: WithArguments("http://localhost"),
            exchange=Exchange(),
        )

        assert report.ok

    def test_a_feature_may_be_checked_with_the_authors_provider(self) -> None:
        report = check_plugin(GoodFeature, "feature", provider=GoodProvider, action_params=SHORTEN)

        reason = "the plugin is checked with a provider that its author chose"
        assert report.findings == []
        assert report.skipped == [Skipped("another_native_format_works", reason)]

    def test_a_feature_for_one_format_passes_if_it_is_off_with_others(self) -> None:
        report = check_plugin(StaysOffElsewhere, "feature", action_params=SHORTEN)

        reason = "the feature is off with a provider of another native format"
        assert report.findings == []
        assert report.skipped == [Skipped("another_native_format_works", reason)]

    def test_a_check_can_be_waived_with_a_reason(self) -> None:
        waived = {"one_message_converts_as_in_a_batch": "neighbours are merged"}

        report = check_plugin(PutsAHeader, "provider", exchange=Exchange(), skip=waived)

        assert report.ok
        assert reasons(report.skipped) == waived

    def test_waiving_a_check_that_does_not_exist_is_a_mistake(self) -> None:
        with pytest.raises(ArgumentError, match="a tool has no check 'it_flies'"):
            check_plugin(GoodTool, "tool", skip={"it_flies": "it does not"})

    def test_an_unknown_kind_is_a_mistake(self) -> None:
        with pytest.raises(ArgumentError, match="kind must be one of"):
            check_plugin(GoodTool, "gadget")

    def test_a_tool_that_is_not_listed_is_never_run(self) -> None:
        report = check_plugin(Dangerous, "tool")

        assert report.ok
        assert Dangerous.ran == []
        assert "no arguments for ['spell']" in reasons(report.skipped)["tools_answer_to_their_names"]

    def test_a_tool_that_must_not_run_is_said_to(self) -> None:
        report = check_plugin(Dangerous, "tool", tool_calls={"spell": None})

        assert report.ok
        assert Dangerous.ran == []
        assert "tools_answer_to_their_names" in report.passed

    def test_a_call_of_a_tool_that_is_not_announced_is_found(self) -> None:
        report = check_plugin(GoodTool, "tool", tool_calls={**SPELL, "spel": {}})

        assert [str(finding) for finding in report.findings] == [
            "Plugin 'good_tool', hook 'get_tool_schemas': does not announce 'spel', for which there is a call"
        ]

    def test_a_freeform_tool_is_called_with_text(self) -> None:
        report = check_plugin(Freeform, "tool", tool_calls={"spell": "tea"})

        assert report.ok
        assert reasons(report.skipped) == {
            "bad_arguments_are_reported": "the plugin's tools take text, which is never wrong"
        }

    def test_an_action_without_inputs_to_run_it_is_not_passed_in_silence(self) -> None:
        report = check_plugin(GoodFeature, "feature")

        assert report.ok
        assert "no inputs that fit ['shorten']" in reasons(report.skipped)["actions_run"]

    def test_an_action_that_must_not_run_is_said_to(self) -> None:
        report = check_plugin(GoodFeature, "feature", action_params={"shorten": None})

        assert (report.findings, report.skipped) == ([], [])

    def test_a_check_that_another_fault_prevents_says_which(self) -> None:
        report = check_plugin(ConvertsToNone, "provider", exchange=Exchange())

        assert reasons(report.skipped)["interleaved_requests_stay_apart"] == (
            "to_native_messages must be fixed first: it must return a list of dicts, returned None"
        )

    def test_it_may_be_asked_from_within_an_event_loop(self) -> None:
        async def check() -> bool:
            return check_plugin(GoodProvider, "provider", exchange=Exchange()).ok

        assert asyncio.run(check())


class TestTheReport:
    def test_it_reads_as_text(self) -> None:
        report = check_plugin(CancelsWhatIsThere, "provider")

        assert str(report).startswith(
            "provider 'good_provider': 11 passed, 3 skipped, 1 findings\n"
            "  cancelling_an_unknown_request_is_harmless: Plugin 'good_provider', hook 'cancel_request': "
            "is called for an unknown request and raised KeyError: 'conformance-no-such-request'\n"
        )
        assert "closing_early_keeps_a_partial: not checked, no exchange was given" in str(report)

    def test_a_finding_has_check_hook_and_problem(self) -> None:
        [finding] = check_plugin(Unversioned, "provider").findings

        assert finding == Finding(
            "it_registers", "version", "must be a text that says something, is ''", "good_provider"
        )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


class TestDifferences:
    @settings(max_examples=40)
    @given(JSON, JSON)
    def test_there_is_one_exactly_if_the_values_differ(self, one: Any, other: Any) -> None:
        assert (difference(one, other, "value") is None) == (one == other)

    @pytest.mark.parametrize(
        ("one", "other", "told"),
        [
            ({"a": [1, 2]}, {"a": [1, 3]}, "session.a[1] is 2, and then 3"),
            ({"a": [1]}, {"a": [1, 3]}, "session.a has 1 items, and then 2"),
            ({"a": 1}, {}, "session.a is 1, and not there in the second"),
            ({}, {"a": 1}, "session.a is 1, and not there in the first"),
        ],
    )
    def test_it_names_the_first_place(self, one: Any, other: Any, told: str) -> None:
        assert difference(one, other, "session") == told


class TestUnderPytest:
    def test_every_check_is_a_test_of_its_own_with_a_message_of_its_own(
        self, pytester: pytest.Pytester
    ) -> None:
        pytester.makepyfile(
            """
            from agent_core.testing import EchoProvider
            from agent_testing.conformance import Exchange, ProviderConformance

            class Rude(EchoProvider):
                name = "rude"
                def cancel_request(self, request_id):
                    raise KeyError(request_id)

            class TestRude(ProviderConformance):
                plugin = Rude
                skip = {"a_round_trip_keeps_parts": "it takes no images"}
                def exchange(self):
                    return Exchange()
            """
        )

        result = pytester.runpytest_inprocess("-v", "-rs", "-p", "no:cacheprovider")

        result.assert_outcomes(passed=12, skipped=2, failed=1)
        result.stdout.fnmatch_lines_random(
            [
                "*::TestRude::test_it_registers PASSED*",
                "*::TestRude::test_interleaved_requests_stay_apart PASSED*",
                "*::TestRude::test_cancelling_an_unknown_request_is_harmless FAILED*",
                "*AssertionError: Plugin 'rude', hook 'cancel_request': *raised KeyError*",
                "SKIPPED*it takes no images",
                "SKIPPED*the plugin does not write get_config_schema or get_ui_elements",
            ]
        )

    def test_a_class_without_a_plugin_says_what_is_missing(self) -> None:
        class TestNothing(ToolConformance):
            pass

        with pytest.raises(AssertionError, match="set plugin, or override make_plugin"):
            TestNothing().test_it_registers()  # type: ignore[attr-defined]  # made from the list of checks

    def test_every_class_has_a_test_for_each_of_its_checks(self) -> None:
        for base in (ProviderConformance, ExtensionConformance, FeatureConformance, ToolConformance):
            tests = {name.removeprefix("test_") for name in dir(base) if name.startswith("test_")}

            assert tests == {check.__name__ for check in CHECKS[base.kind]}

    def test_pytest_is_not_needed_to_import_or_to_check(self) -> None:
        code = (
            "import sys; from agent_core.testing import EchoProvider\n"
            "from agent_testing.conformance import Exchange, check_plugin\n"
            "assert check_plugin(EchoProvider, 'provider', exchange=Exchange()).ok\n"
            "assert 'pytest' not in sys.modules"
        )

        subprocess.run([sys.executable, "-c", code], check=True)


def test_the_guide_lists_every_check() -> None:
    guide = Path(__file__).parents[3] / "docs" / "how-to" / "test-your-plugin.md"
    text = guide.read_text(encoding="utf-8")

    for checks in CHECKS.values():
        for check in checks:
            assert f"`{check.__name__}`" in text
