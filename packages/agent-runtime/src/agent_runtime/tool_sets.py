"""Tools that belong together: put under a prefix, filtered, or decided anew for each step.

A tool set is a list of tools and nothing else, so that sets of sets need no rules: `prefixed` and
`filtered` return another set. What is decided for each step (`filtered` by a function of the context,
`dynamic`) is decided before each request; a tool that is hidden then cannot be called either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core import ArgumentTypeError, FunctionTool, ToolError, lazy, tool
from agent_core.io import run_awaitable
from agent_runtime.agent_run import agent_run
from agent_runtime.foreign_tools import from_other_library

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from agent_core import ToolDescriptor
    from agent_runtime.run_context import RunContext

Condition = Callable[["RunContext[Any]", "ToolDescriptor"], bool]
Maker = Callable[["RunContext[Any]"], "Iterable[object] | Awaitable[Iterable[object]]"]


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Some tools, and when they are offered.

    Attributes:
        tools: Typed functions and tools of other libraries.
        conditions: Asked before each request, by the name of the tool; one that says no hides the tool.
    """

    tools: tuple[FunctionTool[..., Any], ...]
    conditions: Mapping[str, tuple[Condition, ...]]

    @classmethod
    def of(cls, *tools: object) -> ToolSet:
        """Return a set of functions, tools, and other sets."""
        found: list[FunctionTool[..., Any]] = []
        conditions: dict[str, tuple[Condition, ...]] = {}
        for given in tools:
            if isinstance(given, ToolSet):
                found += given.tools
                conditions |= given.conditions
            else:
                found.append(as_function_tool(given))
        return cls(tuple(found), conditions)

    def prefixed(self, prefix: str) -> ToolSet:
        """Return the same tools under names that begin with *prefix*."""
        renamed = tuple(one.renamed(f"{prefix}{one.name}") for one in self.tools)
        return ToolSet(renamed, {f"{prefix}{name}": asked for name, asked in self.conditions.items()})

    def filtered(self, condition: Condition) -> ToolSet:
        """Return the same tools, each offered in a step only if ``condition(context, tool)`` says so."""
        asked = {one.name: (*self.conditions.get(one.name, ()), condition) for one in self.tools}
        return replace(self, conditions=asked)

    def __iter__(self) -> Iterator[FunctionTool[..., Any]]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)


@dataclass(frozen=True, slots=True)
class DynamicTools:
    """Tools that a function of the context makes before each request."""

    make: Maker


def dynamic(make: Maker) -> DynamicTools:
    """Let *make* decide before each request which tools there are; it may be async."""
    return DynamicTools(make)


def as_function_tool(given: object) -> FunctionTool[..., Any]:
    """Return a function, or a tool of another library, as a tool.

    Raises:
        ArgumentTypeError: If it is neither.
    """
    if isinstance(given, FunctionTool):
        return given
    if (foreign := from_other_library(given)) is not None:
        return foreign
    if callable(given) and not isinstance(given, type):
        return tool(given)
    raise ArgumentTypeError(f"a tool must be a function or a tool, not {type(given).__name__}")


class DynamicToolbox:
    """The tool plugin behind dynamic tool sets: it offers what the current step has."""

    name = "dynamic_tools"
    version = "1"

    def init(self, config: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"toolbox": agent_run(context).toolbox}

    def get_tool_schemas(self, state: Mapping[str, Any]) -> list[dict[str, Any]]:
        toolbox: dict[str, FunctionTool[..., Any]] = state.get("toolbox") or {}
        return [schema for one in toolbox.values() for schema in one.get_tool_schemas()]

    def execute_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, object],
        state: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        cancellation: object = None,
    ) -> object:
        chosen = self._tool(tool_name, context)
        answer: Any = chosen.execute_tool(tool_name, arguments, context=context, cancellation=cancellation)
        return run_awaitable(lambda: answer) if chosen.is_async else answer

    async def execute_tool_async(
        self,
        tool_name: str,
        arguments: Mapping[str, object],
        state: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        cancellation: object = None,
    ) -> object:
        chosen = self._tool(tool_name, context)
        if not chosen.is_async:
            return await lazy.asyncio.to_thread(
                self.execute_tool, tool_name, arguments, state, context=context, cancellation=cancellation
            )
        answer: Any = chosen.execute_tool(tool_name, arguments, context=context, cancellation=cancellation)
        return await answer

    def tool_behind(self, tool_name: str, state: Mapping[str, Any]) -> FunctionTool[..., Any] | None:
        """Return the tool that answers a call; what it says of itself counts for its calls."""
        toolbox: dict[str, FunctionTool[..., Any]] = state.get("toolbox") or {}
        return toolbox.get(tool_name)

    def _tool(self, name: str, context: Mapping[str, Any] | None) -> FunctionTool[..., Any]:
        found = agent_run(context).toolbox.get(name)
        if found is None:
            raise ToolError(name, "it is not offered in this step")
        return found


def checked_tools(given: object) -> Sequence[object]:
    """Return what somebody wrote as `tools`.

    Raises:
        ArgumentTypeError: If it is a single tool, or no list.
    """
    if isinstance(given, ToolSet):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        return [_checked_tool(one) for one in given]
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        raise ArgumentTypeError(f"tools must be a list: write tools=[{name}]")
    raise ArgumentTypeError(f"tools must be a list of functions and tools, not {type(given).__name__}")


def _checked_tool(given: object) -> object:
    if isinstance(given, str):
        raise ArgumentTypeError(
            f"tools has {given!r}, a text, and takes functions: write tools=[function], "
            f"or plugin_ids=[{given!r}] for an installed plugin"
        )
    if hasattr(type(given), "as_tool") and hasattr(type(given), "run_async"):  # tools of LangChain have one
        raise ArgumentTypeError(
            f"{given!r} is an agent and no tool: write delegates=[...] for it, or tools=[it.as_tool(...)]"
        )
    return given
