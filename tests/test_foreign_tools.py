"""Tools of other libraries in `tools=[...]`, each made with the library itself.

Those that are not in the lock are brought by `make test-wheels`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import Image, MCPServer

from agent_core import ArgumentTypeError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, RunResult


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calling(name: str, **arguments: Any) -> ScriptedProvider:
    return ScriptedProvider([Reply(tool_calls=[ToolCall(name, arguments)]), "done"])


def results(result: RunResult[Any]) -> list[dict[str, Any]]:
    return [message for message in result.messages if message["role"] == "tool"]


def both_ways(given: object, name: str, **arguments: Any) -> list[str]:
    """Return what the model reads of a call, in a run that blocks and in one that does not."""
    first, second = (Agent(calling(name, **arguments), tools=[given], deps_type=str) for _ in range(2))
    blocking = first.run("Go.", deps="the shop")
    waiting = asyncio.run(second.run_async("Go.", deps="the shop"))
    return [message["content"] for result in (blocking, waiting) for message in results(result)]


def test_a_tool_of_langchain() -> None:
    tools = pytest.importorskip("langchain_core.tools")

    async def multiply(a: int, b: int) -> int:
        return a * b

    slow = tools.StructuredTool.from_function(coroutine=multiply, name="multiply", description="Multiply.")

    assert both_ways(tools.tool(add), "add", a=1, b=2) == ["3", "3"]
    assert both_ways(slow, "multiply", a=3, b=2) == ["6", "6"]


def test_a_tool_of_pydantic_ai() -> None:
    library = pytest.importorskip("pydantic_ai")

    def with_context(ctx: Any, a: int) -> int:
        return a

    with_context.__annotations__["ctx"] = library.RunContext[str]

    assert both_ways(library.Tool(add), "add", a=1, b=2) == ["3", "3"]
    with pytest.raises(ArgumentTypeError, match="takes pydantic-ai's RunContext"):
        Agent("local", tools=[library.Tool(with_context)])


def test_a_tool_of_the_openai_agents_sdk() -> None:
    library = pytest.importorskip("agents")

    def where(ctx: Any, word: str) -> str:
        return f"{word} at {ctx.context}"

    where.__annotations__["ctx"] = library.RunContextWrapper[str]

    assert both_ways(library.function_tool(add), "add", a=1, b=2) == ["3", "3"]
    assert both_ways(library.function_tool(where), "where", word="tea") == ["tea at the shop"] * 2


@pytest.fixture
def kitchen(caplog: pytest.LogCaptureFixture) -> MCPServer:
    server = MCPServer("kitchen")

    @server.tool()
    def brew(leaves: str) -> str:
        """Brew tea."""
        return f"a cup of {leaves}"

    @server.tool()
    def photograph() -> Image:
        """Take a picture."""
        return Image(data=b"\x89PNG", format="png")

    @server.tool()
    def burn() -> str:
        raise ValueError("no water")

    caplog.set_level(logging.CRITICAL)  # the server logs what burn raises
    return server


def test_a_server_of_mcp_in_this_process(kitchen: MCPServer) -> None:
    model = calling("brew", leaves="assam")

    result = Agent(model, tools=[kitchen]).run("Tea, please.")

    assert results(result)[0]["content"] == "a cup of assam"
    assert [tool["function"]["name"] for tool in model.requests[0].config["tools"]] == [
        "brew",
        "photograph",
        "burn",
    ]


@pytest.mark.parametrize("session", [False, True], ids=["client", "session"])
def test_a_client_of_mcp(kitchen: MCPServer, session: bool) -> None:
    calls = [ToolCall("brew", {"leaves": "assam"}), ToolCall("photograph"), ToolCall("burn")]

    async def talk() -> RunResult[Any]:
        async with Client(kitchen) as client:
            model = ScriptedProvider([Reply(tool_calls=calls), "done"])
            tools = [client.session if session else client]
            return await Agent(model, tools=tools).run_async("Tea, please.")

    brewed, photographed, burnt = results(asyncio.run(talk()))

    assert brewed["content"] == "a cup of assam"
    assert photographed["tool_result"]["parts"][0]["mime_type"] == "image/png"
    assert burnt["metadata"]["error"] == {"type": "exception"}
    assert "Error executing tool burn" in burnt["content"]
