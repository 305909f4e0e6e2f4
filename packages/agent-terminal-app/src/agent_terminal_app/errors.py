"""What can go wrong between a person and the application, and the exit code that scripts get for it."""

from __future__ import annotations

from enum import IntEnum

from agent_core import AgentError


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_CONFIGURED = 3
    PROVIDER = 4
    APPROVAL = 5
    LIMIT = 6
    TIMEOUT = 124
    INTERRUPTED = 130
    TERMINATED = 143


class CommandError(AgentError):
    """A command cannot do what was asked.

    Attributes:
        code: The exit code.
        hint: What to do about it.
    """

    def __init__(self, problem: str, *, code: Exit = Exit.FAILURE, hint: str = "") -> None:
        self.code = code
        self.hint = hint
        super().__init__(f"{problem}; {hint}" if hint else problem)


class SettingsError(CommandError):
    """A configuration file cannot be used; `path` and `line` say where."""

    def __init__(self, path: str, line: int | None, problem: str, *, hint: str = "") -> None:
        self.path = path
        self.line = line
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}", code=Exit.NOT_CONFIGURED, hint=hint)
