"""A server made with the SDK: `polite.py BOOK [PORT_FILE]`, over stdio, or over HTTP if there is a port file.

The book is a JSON file with the `tools` that it lists, read anew each time.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server

BOOK = Path(sys.argv[1])
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 7).decode()


def book() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(BOOK.read_text())
    return read


def leave(arguments: dict[str, Any], mark: str) -> None:
    Path(arguments["mark"]).write_text(mark)


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    tools = book()["tools"]
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])


async def call_tool(context: Any, params: Any) -> types.CallToolResult:
    arguments = params.arguments or {}
    return await DOINGS.get(params.name, echo)(context, arguments)


async def echo(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    if arguments.get("text") == "trace":
        return said(str((context.meta or {}).get("traceparent")))
    return said(json.dumps(arguments, sort_keys=True))


async def fail(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[text("no such page")], is_error=True)


async def slow(_context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    try:
        leave(arguments, "began")
        await anyio.sleep(600)
    except anyio.get_cancelled_exc_class():
        leave(arguments, "cancelled")
        raise
    return said("done")


async def die(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    os._exit(3)


async def count(context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    for number in range(arguments["to"]):
        await context.session.report_progress(number + 1, arguments["to"], f"step {number + 1}")
    return said("counted")


async def picture(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    page = types.TextResourceContents(uri="memo://page", text="a page", mime_type="text/plain")
    sound = types.AudioContent(type="audio", data=PIXEL, mime_type="audio/wav")
    image = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    link = types.ResourceLink(type="resource_link", uri="memo://link", name="link")
    embedded = types.EmbeddedResource(type="resource", resource=page)
    return types.CallToolResult(content=[text("A pixel."), image, sound, embedded, link])


async def weigh(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content={"grams": 5})


async def weigh_twice(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[text('{"grams": 5}')], structured_content={"grams": 5})


async def huge(_context: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return said("x" * arguments["bytes"])


async def environment(_context: Any, _arguments: dict[str, Any]) -> types.CallToolResult:
    return said(json.dumps({"env": dict(os.environ), "cwd": os.getcwd()}))  # noqa: PTH109 - as it was started


DOINGS = {
    "fail": fail, "slow": slow, "die": die, "count": count, "picture": picture, "weigh": weigh,
    "weigh_twice": weigh_twice, "huge": huge, "environment": environment,
}  # fmt: skip


async def list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
    told = book().get("resources", [{"uri": "memo://tea", "name": "tea"}])
    return types.ListResourcesResult(resources=[types.Resource.model_validate(one) for one in told])


async def list_templates(_context: Any, _params: Any) -> types.ListResourceTemplatesResult:
    told = [types.ResourceTemplate.model_validate(one) for one in book().get("templates", [])]
    return types.ListResourceTemplatesResult(resource_templates=told)


async def read_resource(_context: Any, params: Any) -> types.ReadResourceResult:
    page = types.TextResourceContents(uri=params.uri, text=f"all about {params.uri}")
    return types.ReadResourceResult(contents=[page])


async def list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
    greet = {"name": "greet", "arguments": [{"name": "who", "required": True}]}
    told = book().get("prompts", [greet])
    return types.ListPromptsResult(prompts=[types.Prompt.model_validate(one) for one in told])


async def get_prompt(_context: Any, params: Any) -> types.GetPromptResult:
    content = text(f"Greet {(params.arguments or {})['who']}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def said(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[text(words)])


def made() -> Server[Any]:
    others: dict[str, Any] = {}
    if book().get("more"):
        others = {
            "on_list_resources": list_resources,
            "on_list_resource_templates": list_templates,
            "on_read_resource": read_resource,
            "on_list_prompts": list_prompts,
            "on_get_prompt": get_prompt,
        }
    return Server("polite", on_list_tools=list_tools, on_call_tool=call_tool, **others)


async def over_stdio() -> None:
    from mcp import stdio_server

    server = made()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def over_http(port_file: Path) -> None:
    import socket

    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        app = made().streamable_http_app(json_response="--json" in sys.argv)
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        listening.listen()
        port_file.write_text(str(listening.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        over_http(Path(sys.argv[2]))
    else:
        anyio.run(over_stdio)
