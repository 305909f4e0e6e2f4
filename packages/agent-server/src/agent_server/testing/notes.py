"""A tool that tests have called: its calls are asked about."""

from __future__ import annotations

from typing import Any

ASKS = {"permissions": {"default": "ask"}}
"""The configuration of an application in which every call is asked about."""


class Notes:
    """Writes notes; one that says "fail" fails.

    Attributes:
        written: The notes that were written.
    """

    name = "notes"
    version = "1"

    def __init__(self) -> None:
        self.written: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool, `note`."""
        properties = {"text": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["text"]}
        function = {"name": "note", "description": "Write a note.", "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Write a note."""
        if arguments["text"] == "fail":
            return {"success": False, "error": "the pen is broken"}
        self.written.append(arguments["text"])
        return {"success": True, "result": f"written: {arguments['text']}"}
