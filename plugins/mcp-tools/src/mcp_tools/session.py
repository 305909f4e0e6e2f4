"""One conversation with a server, over the SDK; the first connection loads it, which takes a second."""

from __future__ import annotations

import logging
import os
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import mcp
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
)

from agent_core.product import VERSION
from mcp_tools.calls import Answered, Failed
from mcp_tools.settings import Lost, filled_in, server_environment
from mcp_tools.sieve import Sieve, sieved
from mcp_tools.tool_list import Described, Listing, Tool
from mcp_tools.transports import http_transport, stdio_transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from mcp_types import Tool as OfferedTool
    from pydantic import BaseModel

    from agent_plugin_kit.sandbox import Confined
    from mcp_tools.calls import Ask, Outcome, Tell
    from mcp_tools.settings import Server
    from mcp_tools.transports import Diary

MOST: Final = 1_000
_PAGES: Final = 50
_BRIEF: Final = 500
_LONGEST_ERROR: Final = 4_000


@asynccontextmanager
async def open_session(
    server: Server,
    diary: Diary,
    *,
    confine: Callable[[Sequence[str], Mapping[str, str]], Confined | None],
    lost: Callable[[str], None],
    changed: Callable[[], None],
) -> AsyncIterator[ServerSession]:
    """Start a server, or reach it by its URL, and yield the session with it.

    Args:
        diary: Where to note what happens outside the protocol.
        confine: Puts a command line with its environment into the sandbox; returns None where there is none.
        lost: Called with the reason when the server ends by itself.
        changed: Called when the server says that what it offers has changed.
    """

    async def hear(message: object) -> None:
        if getattr(message, "method", "").endswith("/list_changed"):
            changed()

    for name in ("mcp", "client"):  # what the SDK logs is for whoever listens, not for the terminal
        logging.getLogger(name).addHandler(logging.NullHandler())
    declared = server.declared
    if "url" in declared:
        headers = filled_in(os.environ, declared.get("headers", {}))
        transport = http_transport(declared["url"], headers, server.timeout)
    else:
        env = server_environment(os.environ, declared.get("env", {}))
        transport = stdio_transport(server.launch, env, diary, lost, confine=confine)
    us = Implementation(name="keelwork", version=VERSION)
    sieve = Sieve()
    streams: Any = sieved(transport, sieve)
    async with mcp.Client(streams, client_info=us, cache=None, message_handler=hear) as client:
        yield ServerSession(server, client, sieve, changed)


class ServerSession:
    """A connected server: it is asked what it offers, and calls are put to it."""

    def __init__(self, server: Server, client: mcp.Client, sieve: Sieve, changed: Callable[[], None]) -> None:
        self._server = server
        self._client = client
        self._session = client.session
        self._sieve = sieve
        self._changed = changed

    async def listing(self) -> Listing:
        """Return what the server offers now."""
        self._sieve.version = self._session.protocol_version
        self._sieve.take_dropped()
        able = self._session.server_capabilities
        tools = await _all(self._session.list_tools, "tools") if able and able.tools else []
        resources, templates = [], []
        if able and able.resources:
            resources = await _all(self._session.list_resources, "resources")
            with suppress(mcp.MCPError):  # many servers that have resources do not know this question
                templates = await _all(self._session.list_resource_templates, "resource_templates")
        prompts = await _all(self._session.list_prompts, "prompts") if able and able.prompts else []
        return Listing.of(
            self._server.name,
            [_tool(one) for one in tools if any(fnmatchcase(one.name, glob) for glob in self._server.tools)],
            [
                *(Described("resource", _fields(one, "uri")) for one in resources),
                *(Described("resource", _fields(one, "uri_template")) for one in templates),
                *(Described("prompt", _fields(one, "arguments")) for one in prompts),
            ],
            self._sieve.take_dropped(),
        )

    async def follow(self) -> None:
        """Ask a server of the newer protocol to tell of changes; many have none to tell of."""
        with suppress(mcp.MCPError, RuntimeError):
            async with self._client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _change in changes:
                    self._changed()

    async def outcome(self, ask: Ask, tell: Tell) -> Outcome:
        """Ask, and return what came of it.

        Raises:
            Lost: If the connection is what failed.
        """
        try:
            return Answered(await ask(self, tell))
        except mcp.MCPError as error:
            # The second is how the SDK words that a server elsewhere has forgotten us.
            if error.code == CONNECTION_CLOSED or error.message == "Session terminated":
                raise Lost(error.message) from error
            return Failed(f"the server answered with an error: {_brief(error.message)} (code {error.code})")
        except Exception as error:  # an answer may break whatever reads it
            return Failed(f"the server's answer cannot be read: {_brief(str(error))}")

    async def call_tool(
        self, name: str, arguments: dict[str, Any], trace: dict[str, str], tell: Tell
    ) -> CallToolResult:
        """Call a tool.

        Not by the SDK's `call_tool`: that checks the answer against a schema of the server's own, and a
        hostile one keeps the loop busy for ever.
        """
        about: dict[str, Any] = {"_meta": trace} if trace else {}
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments, **about))
        return await self._session.send_request(request, CallToolResult, progress_callback=tell)

    async def read_resource(self, uri: str) -> Any:
        """Read a resource."""
        return await self._session.read_resource(uri)

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""
        return await self._session.get_prompt(name, arguments)


async def _all(list_page: Callable[..., Awaitable[Any]], field: str) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(_PAGES):
        page = await list_page(params=PaginatedRequestParams(cursor=cursor))
        found += getattr(page, field)
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST:
            break
    return found[:MOST]


def _tool(offer: OfferedTool) -> Tool:
    return Tool(offer.name, offer.description or "", offer.input_schema)


def _fields(offer: BaseModel, *names: str) -> dict[str, Any]:
    """Return what is worth telling of a resource or a prompt, in brief."""
    data = offer.model_dump(by_alias=True, mode="json", exclude_none=True)
    aliases = [type(offer).model_fields[field].alias or field for field in ("name", "description", *names)]
    return {key: _cut(data[key]) for key in aliases if key in data}


def _cut(value: Any) -> Any:
    return value[:_BRIEF] if isinstance(value, (str, list)) else value


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"
