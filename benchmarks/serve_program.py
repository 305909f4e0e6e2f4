"""A server for the serving benchmark: one agent, an OpenAI-compatible model, everything stored in SQLite."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from agent_app import AgentApplication
from agent_server import LocalAccess, create_server, serve
from agent_server.listener import open_socket
from openai_compatible_provider import OpenAICompatibleProvider

TOKEN = "a-token-of-the-benchmark"


class Tool:
    """The one tool of the benchmark."""

    name = "tools"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tool."""
        properties = {"x": {"type": "integer"}, "note": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["x"]}
        function = {"name": "tool_0", "description": "Do it.", "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, _name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do nothing, at once."""
        return {"success": True, "result": f"ok {arguments['x']}"}


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--llm", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tool", action="store_true")
    asked = parser.parse_args()
    config = {
        "agents": {"a": {"model": "m", "system_prompt": "You are a helpful assistant."}},
        "models": {"m": {"provider": "openai_compatible", "model": asked.model}},
        "plugins": {"openai_compatible": {"base_url": asked.llm, "api_key": "any"}},
        "permissions": {"allow": ["tool_0"]},
    }
    folder = Path(tempfile.mkdtemp())
    plugins = [OpenAICompatibleProvider, *([Tool] if asked.tool else [])]
    with AgentApplication(
        config, store=f"sqlite:///{folder}/app.db", assets=folder / "assets", plugins=plugins, installed=False
    ) as app:
        serve(create_server(app, LocalAccess(TOKEN)), open_socket("127.0.0.1", asked.port))


if __name__ == "__main__":
    main()
