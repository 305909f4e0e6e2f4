"""What can go wrong between a user and the application, and the exit code that scripts get for it."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


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


_BY_CATEGORY = {
    "auth": Exit.NOT_CONFIGURED,
    "transport": Exit.PROVIDER,
    "transient": Exit.PROVIDER,
    "stream_broken": Exit.PROVIDER,
    "unavailable": Exit.PROVIDER,
    "not_the_provider": Exit.PROVIDER,
    "rejected": Exit.PROVIDER,
    "window": Exit.LIMIT,
    "limit": Exit.LIMIT,
}
_BY_REASON = {
    "natural_end": Exit.OK,
    "suspended": Exit.APPROVAL,
    "cancelled": Exit.INTERRUPTED,
    "timeout": Exit.TIMEOUT,
    "length": Exit.LIMIT,
    "max_rounds": Exit.LIMIT,
    "token_budget": Exit.LIMIT,
    "cost_budget": Exit.LIMIT,
    "usage_limit": Exit.LIMIT,
    "max_handoffs": Exit.LIMIT,
    "consecutive_errors": Exit.LIMIT,
    "repeated_calls": Exit.LIMIT,
    "tool_retries": Exit.LIMIT,
    "output_retries": Exit.LIMIT,
}
_STOP_CONDITIONS = ("timeout", "token_budget", "cost_budget", "consecutive_errors", "repeated_calls")


class CommandError(AgentError):
    """A command cannot do what was asked.

    Attributes:
        code: The exit code.
        hint: What to do about it.
        field: The setting that is wrong, by its dotted key, if it is one.
    """

    def __init__(
        self, problem: str, *, code: Exit = Exit.FAILURE, hint: str = "", field: str | None = None
    ) -> None:
        self.code = code
        self.hint = hint
        self.field = field
        between = " " if problem.endswith("?") else "; "
        super().__init__(f"{problem}{between}{hint}" if hint else problem)


class SettingsError(CommandError):
    """A configuration file cannot be used; `path` and `line` say where."""

    def __init__(self, path: str, line: int | None, problem: str, *, hint: str = "") -> None:
        self.path = path
        self.line = line
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}", code=Exit.NOT_CONFIGURED, hint=hint)


def code_of(error: AgentError) -> int:
    """Return the exit code that an error means."""
    own = getattr(error, "code", None)
    if isinstance(own, Exit):
        return own
    if isinstance(error, ConfigError):
        return Exit.NOT_CONFIGURED
    return category_code(getattr(error, "category", None))


def category_code(category: object) -> Exit:
    """Return the exit code for a category of failures, as events and errors carry it."""
    return _BY_CATEGORY.get(str(category), Exit.FAILURE)


def reason_code(reason: str) -> Exit:
    """Return the exit code for the reason why a run ended.

    A reason that is not listed comes from a stop condition that was asked for, which is not a failure.
    """
    return _BY_REASON.get(reason, Exit.OK)


def is_limit(reason: str) -> bool:
    """Say whether a limit has stopped a run, so that there is something to continue."""
    return reason_code(reason) in (Exit.LIMIT, Exit.TIMEOUT)


def limit_setting(agent_id: str, reason: str) -> str:
    """Return the setting that a limit comes from, as a clause; empty if no setting changes it."""
    agent = f"agents.{agent_id}"
    if reason == "length":
        return "max_tokens in the settings of the model, or of its provider, allows longer answers"
    if reason == "max_rounds":
        return f"`agent config set {agent}.max_rounds NUMBER` changes the limit"
    if reason in _STOP_CONDITIONS:
        return f"{reason} in the setting {agent}.stop_conditions changes the limit"
    return ""


def limit_lines(agent_id: str, reason: Mapping[str, Any]) -> list[str]:
    """Say which limit has stopped a run, that Enter continues, and which setting changes the limit."""
    code = str(reason["code"])
    setting = limit_setting(agent_id, code)
    return [f"stopped: {reason['detail'] or code}", f"Enter continues{f'; {setting}' if setting else ''}"]


def error_text(error: AgentError) -> str:
    """Return an error's message, followed by the command that fixes it if we know one."""
    command = key_command({"type": type(error).__name__, "message": str(error), **vars(error)})
    return f"{error}, or {command}" if command else str(error)


def key_command(error: Mapping[str, Any]) -> str:
    """Return the command that stores the key whose lack an error reports.

    It is empty if the error is about something else, or names the command itself.
    """
    if error.get("type") != "KeyMissing" or "agent keys set" in error["message"]:
        return ""
    return f"run `agent keys set {error['plugin']}`"
