"""Reading a call's arguments; what does not fit is refused in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shell_tool.errors import Refused
from shell_tool.schemas import MAX_WAIT

if TYPE_CHECKING:
    from shell_tool.settings import Settings

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
