"""The tools as the model sees them, and the arguments of its calls; what does not fit is refused in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.sandbox import Host
from shell_tool.environment import Refused

if TYPE_CHECKING:
    from shell_tool.settings import Settings


SHELL, JOBS, OUTPUT, STOP = "shell", "shell_jobs", "shell_output", "shell_stop"
MAX_WAIT = 60
_ID = {"type": "string", "description": "The id of the command."}


_ABOUT = (
    "Run a command in bash, in the workspace. Each call is a shell of its own: a changed folder or variable "
    "lasts to the end of the call. There is no standard input. Output is standard output and standard error "
    "together."
)
_ABOUT_SANDBOX = (
    " It runs in a sandbox: it can write the workspace and /tmp, has no network, and nothing that it starts "
    "outlives it."
)
_REQUESTS: dict[str, Any] = {
    "hosts": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "maxItems": 20,
        "description": "Hosts that it must reach, such as api.example.com; a person is asked about each.",
    },
    "outside_sandbox": {
        "type": "boolean",
        "description": "Run it without the sandbox. A person is asked; only for what cannot work inside it.",
    },
}


def tool_schemas(settings: Settings, *, confined: bool) -> list[dict[str, Any]]:
    """Return the schemas of the four tools.

    Args:
        confined: Whether commands run in a sandbox.
    """
    return [_shell(settings, confined=confined), *_OTHERS]


def _shell(settings: Settings, *, confined: bool) -> dict[str, Any]:
    may_ask = confined and settings.sandbox.requests and settings.sandbox.mode != "strict"
    return _schema(
        SHELL,
        _ABOUT + (_ABOUT_SANDBOX if confined else ""),
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
            **(_REQUESTS if may_ask else {}),
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
    hosts: tuple[str, ...] = ()
    outside_sandbox: bool = False

    @classmethod
    def read(cls, arguments: Any, settings: Settings) -> ShellArguments:
        """Read them.

        Raises:
            Refused: If one cannot be used.
        """
        background = _flag(arguments, "background")
        hosts, outside = asked_hosts(arguments), _flag(arguments, "outside_sandbox")
        may_ask = settings.sandbox.requests and settings.sandbox.mode == "workspace"
        if (hosts or outside) and not may_ask and settings.sandbox.mode != "off":
            raise Refused("the settings do not let a call ask for hosts, or to run outside the sandbox")
        default = None if background else min(settings.timeout, settings.max_timeout)
        return cls(
            command=_command(arguments),
            cwd=_text(arguments, "cwd") if _value(arguments, "cwd") is not None else None,
            timeout=_seconds(arguments, "timeout", default, settings.max_timeout),
            background=background,
            hosts=hosts,
            outside_sandbox=outside,
        )


def asked_hosts(arguments: Any) -> tuple[str, ...]:
    """Return the hosts that a call asks for.

    Raises:
        Refused: If they are not a list of hosts.
    """
    hosts = _value(arguments, "hosts", default=[])
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
        raise Refused(f"hosts must be a list of hosts, not {hosts!r:.40}")
    try:
        for host in hosts:
            Host.read(host)
    except ValueError as error:
        raise Refused(str(error)) from None
    return tuple(dict.fromkeys(host.strip().lower() for host in hosts))


def _flag(arguments: Any, key: str) -> bool:
    value = _value(arguments, key, default=False)
    if not isinstance(value, bool):
        raise Refused(f"{key} must be true or false, not {value!r:.40}")
    return value


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
        Refused: If it is not text.
    """
    return _text(arguments, "id")


def _command(arguments: Any) -> str:
    command = _text(arguments, "command")
    if "\0" in command:
        raise Refused("the command has a NUL character in it, which no program takes: write it without")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise Refused("the command has half a surrogate pair in it, which is not a character") from None
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
