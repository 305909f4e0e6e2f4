"""Which exit code an error means, and how a person is told of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agent_core import ConfigError
from agent_terminal_app.errors import Exit

if TYPE_CHECKING:
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


def tell(error: AgentError) -> None:
    """Say on stderr what went wrong, with nothing in it that would move a cursor."""
    from agent_terminal_app.chat.markdown import clean

    for line in str(error).splitlines():
        print(clean(line if line.startswith(" ") else f"agent: {line}"), file=sys.stderr)
