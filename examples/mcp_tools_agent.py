"""Tools of an MCP server: it is started, shown to a person, approved, and then used by an agent."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_app import AgentApplication
from mcp_tools import McpTools

KITCHEN = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("kitchen")


@server.tool()
def brew(leaves: str) -> str:
    """Brew tea."""
    return f"a cup of {leaves}"


server.run()
'''


def serve_tea(model: dict[str, Any], providers: list[Any], folder: Path, agree: Callable[[str], bool]) -> str:
    """Ask an agent for tea, with a server that brews it."""
    (folder / "kitchen.py").write_text(KITCHEN)
    server = {"command": sys.executable, "args": [str(folder / "kitchen.py")], "sandbox": "off"}
    config = {
        "agents": {"waiter": {"model": "main", "plugin_ids": ["mcp_tools"]}},
        "models": {"main": model},
        "plugins": {"mcp_tools": {"servers": {"kitchen": server}, "pins": str(folder / "pins.json")}},
        "permissions": {"default": "allow"},
    }
    plugins = {"providers": providers, "features": [McpTools()]}
    with AgentApplication(config, plugins=plugins, installed=not providers) as app:
        session = app.create_session().session_id
        answer: dict[str, Any] = {"confirm": ""}
        while "confirm" in answer:  # first the command line, then what its tools say about themselves
            params = {"server": "kitchen", **({"confirm": answer["confirm"]} if answer["confirm"] else {})}
            answer = app.execute_session_action(session, "mcp_tools", "approve", params)[1]
            if "confirm" in answer and not agree(answer["display"]["body"]):
                return "not approved"
        *_, final = app.chat(session, "Make me some assam.")
        return final["messages"][-1]["content"]


if __name__ == "__main__":
    provider, _, name = os.environ.get("MODEL", "local_llama").partition(":")
    print(
        serve_tea(
            {"provider": provider, "model": name},
            [],
            Path.cwd(),
            lambda text: input(f"{text}\n[y/N] ") == "y",
        )
    )
