"""How plugins look to their authors' type checker: this file is read by mypy, strictly, and then run."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from agent_core import (
    AgentCore,
    AsyncEventStream,
    Batch,
    Decision,
    EventStream,
    FunctionTool,
    InstalledPlugin,
    ModelDiscoveryCache,
    Resolution,
    Session,
    ToolDescriptor,
    find_installed,
    tool,
)
from agent_core.types import FeaturePlugin, ProviderExtensionPlugin, ProviderPlugin, ToolPlugin

Dicts = list[dict[str, Any]]
State = dict[str, Any]


class LeanProvider:
    """Writes what it needs; there is nothing to inherit from."""

    name = "lean"
    version = "1"

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str | Batch]:
        yield "one "
        yield Batch(["two ", "three"])

    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        yield "one two three"

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        said = state.get("said", "") + chunk
        return [{"role": "assistant", "content": chunk}], [], native_messages, {**state, "said": said}

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        answer = {"role": "assistant", "content": state["said"]}
        return [answer], [*native_messages, answer], state


class LeanExtension:
    name = "counting"
    version = "1"

    def process_chunk(
        self, chunk: Any, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        return partials, finals, native_messages, {**state, "chunks": state.get("chunks", 0) + 1}


class LeanFeature:
    name = "short_tools"
    version = "1"
    priority = 10

    def required_tags(self) -> list[str]:
        return []

    def prepare_tools(self, tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return tools[:1]


class LeanTools:
    name = "clock"
    version = "1"

    def get_tool_schemas(self) -> Dicts:
        return [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "noon"}


@tool
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


def use_as_protocols(
    provider: ProviderPlugin, extension: ProviderExtensionPlugin, feature: FeaturePlugin, tools: ToolPlugin
) -> None:
    """A caller who holds a complete plugin sees each hook's full signature."""
    assert_type(provider.get_tags({}, models=[], context=None), list[str])
    assert_type(provider.init({}, context=None), State)
    assert_type(extension.init({}, {}, context=None), State)
    assert_type(feature.prepare_tools([], config={}, context=None), list[ToolDescriptor])
    assert_type(tools.get_tool_schemas(state={}, context=None), Dicts)
    assert_type(feature.priority, int)


def mistakes_that_a_type_checker_finds(core: AgentCore, session: Session) -> None:
    """Each line is wrong, and mypy says so: an ignore that is not needed would be an error itself."""
    add("1", 2)  # type: ignore[arg-type]
    core.send_request(session, "config")  # type: ignore[arg-type]
    core.send_request(session, {}, "request_id")  # type: ignore[call-arg]
    core.add_message(session, "robot", "hello")  # type: ignore[arg-type]
    session.session_id = "other"  # type: ignore[misc]
    core.resolve({}).decisions[0].enabled = False  # type: ignore[misc]


def test_classes_objects_and_functions_can_be_registered() -> None:
    core = AgentCore(ModelDiscoveryCache(60))
    core.register_provider(LeanProvider, [LeanExtension])
    core.register_feature(LeanFeature())
    core.register_tool(LeanTools)
    core.register_tool(add)

    assert core.get_plugins_for_config({}) == {
        "providers": ["lean"],
        "extensions": ["counting"],
        "features": ["short_tools"],
        "tools": ["clock", "add"],
    }


def test_a_function_that_is_a_tool_keeps_its_type() -> None:
    plugin: FunctionTool[..., int] = add
    assert_type(add(1, 2), int)

    assert plugin(first=1, second=2) == 3


def test_answers_of_the_core_have_types() -> None:
    core = AgentCore()
    core.register_provider(LeanProvider)
    session = core.add_message(core.create_session(), "user", "Count")
    new, messages = core.send_request(session, {})
    stream = core.send_request_stream(session, {})

    assert_type(new, Session)
    assert_type(messages, Dicts)
    assert isinstance(stream, EventStream)
    assert_type(core.resolve({}), Resolution)
    assert_type(core.resolve({}).decisions, tuple[Decision, ...])
    assert_type(core.explain_plugins({}), Dicts)
    assert_type(find_installed([]), list[InstalledPlugin])
    assert [event["type"] for event in stream] == ["partial", "partial", "partial", "final"]
    assert messages[-1]["content"] == "one two three"
    assert isinstance(core.send_request_stream_async(session, {}), AsyncEventStream)
