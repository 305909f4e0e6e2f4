"""Tools that were written for pydantic-ai, LangChain or the OpenAI Agents SDK, taken as they are.

They are known by what they have and not by their classes, so that none of these libraries is imported here.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from agent_core import FunctionTool
from agent_core.frozen import freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ForeignTool(FunctionTool[..., Any]):
    """A tool of another library: its schema is given, and its function takes what the model sent."""

    def __init__(
        self, function: Callable[..., Any], *, name: str, description: str, parameters: Mapping[str, Any]
    ) -> None:
        super().__init__(function, name=name, description=description)
        schema = {"name": name, "description": description, "parameters": thaw(freeze(parameters))}
        self._schemas = freeze([{"type": "function", "function": schema}])
        self._parameters = parameters

    def get_tool_schemas(self, state: Mapping[str, object] | None = None) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._schemas)

    def renamed(self, name: str) -> ForeignTool:
        """Return the same tool under another name."""
        about = str(self._description or "")
        return ForeignTool(self.__wrapped__, name=name, description=about, parameters=self._parameters)

    def _run(
        self, arguments: Mapping[str, object], context: object, cancellation: object, tool_call: object
    ) -> object:
        return self.__wrapped__(dict(arguments), context)


def from_other_library(given: Any) -> FunctionTool[..., Any] | None:
    """Return a tool of another library as one of ours; None if it is none that is known."""
    module = type(given).__module__.partition(".")[0]
    if module in ("pydantic_ai", "agents") or hasattr(given, "on_invoke_tool"):
        return _of_openai_agents(given) if hasattr(given, "on_invoke_tool") else _of_pydantic_ai(given)
    if hasattr(given, "get_input_schema") and hasattr(given, "ainvoke") and hasattr(given, "args"):
        return _of_langchain(given)
    return None


def _of_openai_agents(given: Any) -> ForeignTool:
    async def call(arguments: dict[str, Any], context: Any) -> object:
        kind = import_module("agents.tool_context").ToolContext
        call_id = str((context or {}).get("tool_call_id") or "")
        sent = json.dumps(arguments)
        about = kind(
            context=getattr((context or {}).get("run"), "deps", None),
            tool_name=given.name,
            tool_call_id=call_id,
            tool_arguments=sent,
        )
        return await given.on_invoke_tool(about, sent)

    return ForeignTool(
        call, name=given.name, description=given.description, parameters=given.params_json_schema
    )


def _of_pydantic_ai(given: Any) -> FunctionTool[..., Any] | None:
    """Return a tool of pydantic-ai; one that takes its `RunContext` cannot be called without its runs."""
    schema = getattr(given, "function_schema", None)
    if schema is None:
        return None
    if given.takes_ctx:
        from agent_core import ArgumentTypeError

        raise ArgumentTypeError(
            f"the tool {given.name!r} takes pydantic-ai's RunContext, which exists only in its own runs: "
            "give its function the RunContext of agent_runtime"
        )

    async def call(arguments: dict[str, Any], context: object) -> object:
        read = schema.validator.validate_python(arguments)
        return await schema.call(read, None)

    return ForeignTool(
        call, name=given.name, description=given.description or "", parameters=schema.json_schema
    )


def _of_langchain(given: Any) -> ForeignTool:
    async def call(arguments: dict[str, Any], context: object) -> object:
        return await given.ainvoke(arguments)

    schema = given.tool_call_schema
    parameters = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema
    return ForeignTool(call, name=given.name, description=given.description, parameters=parameters)
