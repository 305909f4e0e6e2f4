"""An MCP server that wants a token gets the one of the login, also a newer one in a conversation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from mcp_tools import McpTools
from oauth_login import OAuthLogin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from oauth_login import TokenStore


class Tickets:
    """An MCP server over HTTP that answers only to the tokens of the authority."""

    def __init__(self, authority: Any) -> None:
        self._authority = authority
        self.used: list[str] = []
        tools = MCPServer("tickets")

        @tools.tool()
        def read_ticket(number: int) -> str:
            """Read a ticket."""
            return f"ticket {number}: the kettle is broken"

        self._inner = tools.streamable_http_app()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"").decode()
            live = [f"Bearer {one.token['access_token']}" for one in self._authority.refresh_tokens.values()]
            if given not in live:
                await PlainTextResponse("no", 401)(scope, receive, send)
                return
            if given not in self.used:
                self.used.append(given)
        await self._inner(scope, receive, send)


@pytest.fixture
def tickets(authority: Any) -> Iterator[tuple[Tickets, str]]:
    app = Tickets(authority)
    http = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=http.run)
    thread.start()
    while not http.started:
        assert thread.is_alive()
        thread.join(0.01)
    [listening] = http.servers
    yield app, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    http.should_exit = True
    thread.join()


@pytest.fixture
def mcp() -> Iterator[McpTools]:
    plugin = McpTools()
    yield plugin
    plugin.close()


def config(authority: Any, url: str, folder: Path) -> dict[str, Any]:
    house = {"client_id": "keelwork", "issuer": authority.url}
    server = {"url": url, "headers": {"Authorization": "oauth:house"}}
    return {
        "agents": {"clerk": {"model": "main", "plugin_ids": ["mcp_tools"]}},
        "models": {"main": {"provider": "scripted"}},
        "plugins": {
            "oauth_login": {"oauth_servers": {"house": house}},
            "mcp_tools": {"servers": {"tickets": server}, "pins": str(folder / "pins.json")},
        },
        "permissions": {"default": "allow"},
    }


def read(number: int) -> Reply:
    return Reply(tool_calls=[ToolCall("tickets__read_ticket", {"number": number})])


def approve(app: AgentApplication, session: str) -> dict[str, Any]:
    """Say yes to the server, and to what its tools say about themselves."""
    answer: dict[str, Any] = {"confirm": None}
    while "confirm" in answer:
        confirmed = {"confirm": answer["confirm"]} if answer["confirm"] else {}
        params = {"server": "tickets", **confirmed}
        answer = app.execute_session_action(session, "mcp_tools", "approve", params)[1]
    return answer


def test_an_mcp_server_gets_the_token_of_the_login_and_then_the_refreshed_one(
    authority: Any, store: TokenStore, clock: Any, tickets: tuple[Tickets, str], mcp: McpTools, tmp_path: Path
) -> None:
    server, url = tickets
    model = ScriptedProvider([read(1), "One is broken.", read(2), "Two is broken."])
    store.set("house", authority.token())
    plugins: dict[str, list[Any]] = {
        "providers": [model],
        "features": [mcp],
        "applications": [OAuthLogin(store)],
    }
    with AgentApplication(config(authority, url, tmp_path), plugins=plugins, installed=False) as app:
        session = app.create_session().session_id
        approve(app, session)

        list(app.chat(session, "What is ticket 1?"))
        clock.now += 3600  # the first token has ended by now
        list(app.chat(session, "And ticket 2?"))

    answers = [
        message["content"] for message in model.requests[-1].native_messages if message["role"] == "tool"
    ]
    assert answers == ["ticket 1: the kettle is broken", "ticket 2: the kettle is broken"]
    assert (len(server.used), authority.refreshes) == (2, 1)


def test_without_a_login_the_server_says_what_to_type(
    authority: Any, store: TokenStore, tickets: tuple[Tickets, str], mcp: McpTools, tmp_path: Path
) -> None:
    plugins: dict[str, list[Any]] = {
        "providers": [ScriptedProvider([])],
        "features": [mcp],
        "applications": [OAuthLogin(store)],
    }
    with AgentApplication(config(authority, tickets[1], tmp_path), plugins=plugins, installed=False) as app:
        answer = approve(app, app.create_session().session_id)

    assert "/oauth_login.login server=house" in str(answer)
