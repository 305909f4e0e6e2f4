"""Which exit code an error means, and how a person is told of it."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError
from agent_terminal_app.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import AgentError

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
    "max_rounds": Exit.LIMIT,
    "token_budget": Exit.LIMIT,
    "cost_budget": Exit.LIMIT,
}


_REFUSALS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG, errno.EMFILE}
)


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
    """Return the exit code for the reason why a run ended; a stop condition that was meant is no failure."""
    return _BY_REASON.get(reason, Exit.OK)


def told(error: AgentError) -> str:
    """Return what an error says, with the command that mends it if we know of one."""
    command = key_command({"type": type(error).__name__, "message": str(error), **vars(error)})
    return f"{error}, or {command}" if command else str(error)


def key_command(error: Mapping[str, Any]) -> str:
    """Return the command that stores the key which an error misses; empty if it names one, or misses none."""
    if error.get("type") != "KeyMissing" or "agent keys set" in error["message"]:
        return ""
    return f"run `agent keys set {error['plugin']}`"


def tell(error: AgentError) -> None:
    """Say on stderr what went wrong, with nothing in it that would move a cursor; the log has it too."""
    from agent_terminal_app.chat.markdown import clean
    from agent_terminal_app.logs import note_failure

    code = code_of(error)
    if code != Exit.USAGE:
        note_failure("command_failed", error, exit_code=int(code))
    for line in told(error).splitlines():
        print(clean(line if line.startswith(" ") else f"agent: {line}"), file=sys.stderr)


def is_of_the_system(error: OSError) -> bool:
    """Say whether the machine refused something that no program can help: a full disk, missing rights."""
    return error.errno in _REFUSALS


def tell_refusal(error: OSError) -> Exit:
    """Say on stderr what the machine refused; the log has the way to it."""
    from agent_terminal_app.logs import note_traceback
    from agent_terminal_app.tables import one_line, say

    note_traceback("refused_by_the_system", error)
    place = one_line(error.filename) if error.filename else "stdout, or a file that is needed,"
    say(f"agent: {place} cannot be used: {error.strerror}")
    return Exit.FAILURE


def tell_fault(error: Exception) -> Exit:
    """Say that the program itself is wrong: in a sentence on stderr, with the way to it in the log.

    What an error of any library says may hold anything, so secrets are taken out of the sentence.
    """
    from agent_app.redaction import Redactor
    from agent_terminal_app.logs import hidden, is_logging, note_traceback
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.tables import one_line, say

    note_traceback("unexpected_error", error)
    told = Redactor.from_environment(secrets=hidden()).text(f"{type(error).__name__}: {error}")
    where = f"what led to it is in {Paths.of_this_user().log}" if is_logging() else "nothing is logged"
    say(f"agent: a fault of this program, {one_line(told)}; {where}")
    return Exit.FAILURE
