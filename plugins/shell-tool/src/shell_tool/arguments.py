"""The tools as the model sees them, and the arguments of its calls; what does not fit is refused in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shell_tool.environment import Refused

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
            "command": {"type": "string", "minLength": 1, "description": "The command line for bash."},
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


MAX_COMMAND = 100_000
"""How many bytes a command may have; the system takes 131,072 as one argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellArguments:
    """The arguments of `shell`."""

    command: str
    cwd: str | None
    timeout: float | None
    background: bool

    @classmethod
    def read(cls, arguments: Any, settings: Settings) -> ShellArguments:
        """Read them.

        Raises:
            Refused: If one cannot be used.
        """
        background = _value(arguments, "background", default=False)
        if not isinstance(background, bool):
            raise Refused(f"background must be true or false, not {background!r:.40}")
        default = None if background else min(settings.timeout, settings.max_timeout)
        return cls(
            command=_command(arguments),
            cwd=_text(arguments, "cwd") if _value(arguments, "cwd") is not None else None,
            timeout=_seconds(arguments, "timeout", default, settings.max_timeout),
            background=background,
        )


@dataclass(frozen=True, slots=True)
class OutputArguments:
    """The arguments of `shell_output`."""

    id: str
    offset: int
    wait: float

    @classmethod
    def read(cls, arguments: Any) -> OutputArguments:
        """Read them.

        Raises:
            Refused: If one cannot be used.
        """
        offset = _value(arguments, "offset", default=0)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise Refused(f"offset must be a number of bytes from 0 on, not {offset!r:.40}")
        return cls(job_id(arguments), offset, _seconds(arguments, "wait", 0.0, MAX_WAIT) or 0.0)


def job_id(arguments: Any) -> str:
    """Return the id of the command that a call is about.

    Raises:
        Refused: If it is no text.
    """
    return _text(arguments, "id")


def _command(arguments: Any) -> str:
    command = _text(arguments, "command")
    if "\0" in command:
        raise Refused("the command has a NUL character in it, which no program takes: write it without")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise Refused("the command has half a surrogate pair in it, which is no character") from None
    if size > MAX_COMMAND:
        raise Refused(
            f"the command has {size:,} bytes, and {MAX_COMMAND:,} are allowed: "
            "write it into a file and run that"
        )
    return command


def _seconds(arguments: Any, key: str, default: float | None, most: float) -> float | None:
    value = _value(arguments, key, default=default)
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise Refused(f"{key} must be a number of seconds, not {value!r:.40}")
    if value > most:
        raise Refused(f"{key} may be {most:g} seconds at most, not {value:g}")
    return float(value)


def _text(arguments: Any, key: str) -> str:
    value = _value(arguments, key)
    if not isinstance(value, str) or not value:
        raise Refused(f"{key} must be a text that is not empty, not {value!r:.40}")
    return value


def _value(arguments: Any, key: str, *, default: Any = None) -> Any:
    value = arguments.get(key) if isinstance(arguments, Mapping) else None
    return default if value is None else value
