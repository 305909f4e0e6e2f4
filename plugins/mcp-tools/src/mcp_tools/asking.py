"""The questions that are put to a server, in the SDK's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_tools.calls import Ask


def tool_call(name: str, arguments: Mapping[str, Any]) -> Ask:
    """Call a tool.

    Not by the SDK's `call_tool`: that checks the answer against a schema of the server's own, and a hostile
    one keeps the loop busy for ever.
    """

    async def ask(session: Any, progress: Any) -> Any:
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        params = CallToolRequestParams(name=name, arguments=dict(arguments))
        return await session.send_request(
            CallToolRequest(params=params), CallToolResult, progress_callback=progress
        )

    return ask


def resource(uri: str) -> Ask:
    """Read a resource."""

    async def ask(session: Any, _progress: Any) -> Any:
        return await session.read_resource(uri)

    return ask


def prompt(name: str, arguments: Mapping[str, str]) -> Ask:
    """Get a prompt."""

    async def ask(session: Any, _progress: Any) -> Any:
        return await session.get_prompt(name, dict(arguments))

    return ask
