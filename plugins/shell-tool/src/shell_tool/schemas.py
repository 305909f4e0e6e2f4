"""The tools as the model sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shell_tool.settings import Settings

SHELL, JOBS, OUTPUT, STOP = "shell", "shell_jobs", "shell_output", "shell_stop"
MAX_WAIT = 60
_ID = {"type": "string", "description": "The id of the command."}


def tool_schemas(settings: Settings) -> list[dict[str, Any]]:
    """Return the schemas of the four tools."""
    return [_shell(settings), *_OTHERS]


def _shell(settings: Settings) -> dict[str, Any]:
    return _schema(
        SHELL,
        "Run a command in bash, in the workspace. Each call is a shell of its own: a changed folder or "
        "variable lasts to the end of the call. There is no standard input. Output is standard output and "
        "standard error together.",
        {
            "command": {"type": "string", "minLength": 1, "description": "What bash shall run."},
            "cwd": {
                "type": "string",
                "description": "A folder of the workspace to run it in; by default its root.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": settings.max_timeout,
                "description": f"Seconds after which it is ended; by default {settings.timeout:g}, "
                "in the background none.",
            },
            "background": {
                "type": "boolean",
                "description": "Do not wait for its end. For servers, and for what takes long.",
            },
        },
        ["command"],
    )


def _schema(
    name: str, description: str, properties: dict[str, Any], required: list[str] | None = None
) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required or [],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


_OTHERS = (
    _schema(
        JOBS, "List the commands that run in the background, and those whose output can still be read.", {}
    ),
    _schema(
        OUTPUT,
        "Read the output of a command that runs in the background, or whose output was too long to be shown.",
        {
            "id": _ID,
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "The byte to begin with; the end of each answer names the next one.",
            },
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_WAIT,
                "description": "Seconds to wait for output beyond the offset, or for the end.",
            },
        },
        ["id"],
    ),
    _schema(
        STOP, "End a command that runs in the background, with all that it started.", {"id": _ID}, ["id"]
    ),
)
