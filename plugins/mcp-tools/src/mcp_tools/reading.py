"""Reading from a server what it offers; page by page, and not for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from mcp_tools.listing import Described, Listing, Tool

if TYPE_CHECKING:
    from mcp_tools.settings import Server
    from mcp_tools.sieve import Sieve

MOST: Final = 1_000
_PAGES: Final = 50
_BRIEF: Final = 500

ListPage = Callable[..., Awaitable[Any]]


async def read_listing(session: Any, server: Server, sieve: Sieve) -> Listing:
    """Return what a server offers now."""
    sieve.take_dropped()
    able = session.server_capabilities
    tools = await _all(session.list_tools, "tools") if able.tools else []
    resources, templates = [], []
    if able.resources:
        resources = await _all(session.list_resources, "resources")
        templates = await _templates(session)
    prompts = await _all(session.list_prompts, "prompts") if able.prompts else []
    return Listing.of(
        server.name,
        [_tool(one) for one in tools if any(fnmatchcase(one.name, glob) for glob in server.tools)],
        [
            *(Described("resource", _told(one, "uri")) for one in resources),
            *(Described("resource", _told(one, "uri_template")) for one in templates),
            *(Described("prompt", _told(one, "arguments")) for one in prompts),
        ],
        sieve.take_dropped(),
    )


async def _all(list_page: ListPage, field: str) -> list[Any]:
    from mcp_types import PaginatedRequestParams

    found: list[Any] = []
    cursor = None
    for _ in range(_PAGES):
        page = await list_page(params=PaginatedRequestParams(cursor=cursor))
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST:
            break
    return found[:MOST]


async def _templates(session: Any) -> list[Any]:
    """Return the templates of resources; many servers that have resources do not know the question."""
    from mcp import MCPError

    try:
        return await _all(session.list_resource_templates, "resource_templates")
    except MCPError:
        return []


def _tool(told: Any) -> Tool:
    return Tool(told.name, told.description or "", told.input_schema)


def _told(told: Any, *fields: str) -> dict[str, Any]:
    """Return what is worth telling of a resource or a prompt, in brief."""
    data = told.model_dump(by_alias=True, mode="json", exclude_none=True)
    aliases = [type(told).model_fields[field].alias or field for field in ("name", "description", *fields)]
    return {key: _cut(data[key]) for key in aliases if key in data}


def _cut(value: Any) -> Any:
    return value[:_BRIEF] if isinstance(value, (str, list)) else value
