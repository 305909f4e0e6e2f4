"""Tools that were written for pydantic-ai, LangChain, the OpenAI Agents SDK or MCP, taken as they are.

They are known by what they have and not by their classes, so that none of these libraries is imported here.
"""

from __future__ import annotations

import json
from base64 import b64decode
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from agent_core import ArgumentTypeError, File, FunctionTool, ToolError
from agent_core.frozen import freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


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


def speaks_mcp(given: object) -> bool:
    """Say whether something has tools as MCP's clients, sessions and servers in this process have them."""
    return hasattr(given, "list_tools") and hasattr(given, "call_tool")


def tools_of_mcp(given: Any) -> Callable[[object], Awaitable[list[ForeignTool]]]:
    """Return a function that lists the tools of an MCP client or session, or of a server in this process."""

    async def make(_context: object) -> list[ForeignTool]:
        listed = await given.list_tools()
        found = list(getattr(listed, "tools", listed))  # a server returns the list itself
        while cursor := getattr(listed, "next_cursor", None):
            listed = await _next_page(given, cursor)
            found += listed.tools
        return [_of_mcp(given, one) for one in found]

    return make


async def _next_page(given: Any, cursor: str) -> Any:
    if hasattr(given, "send_request"):  # a session, which takes the parameters as one object
        parameters = import_module("mcp.types").PaginatedRequestParams
        return await given.list_tools(params=parameters(cursor=cursor))
    return await given.list_tools(cursor=cursor)


def _of_mcp(given: Any, listed: Any) -> ForeignTool:
    async def call(arguments: dict[str, Any], context: object) -> object:
        result = await given.call_tool(listed.name, arguments)
        parts = [_part_of_mcp(block) for block in result.content]
        text = "\n".join(part for part in parts if isinstance(part, str))
        if result.is_error:
            raise ToolError(listed.name, text)
        files = [part for part in parts if isinstance(part, File)]
        return parts if files else text or result.structured_content

    description = listed.description or listed.title or ""
    return ForeignTool(call, name=listed.name, description=description, parameters=listed.input_schema)


def _part_of_mcp(block: Any) -> str | File:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return File(b64decode(block.data), block.mime_type, block.type)
    return json.dumps(block.model_dump(mode="json", exclude_none=True))
