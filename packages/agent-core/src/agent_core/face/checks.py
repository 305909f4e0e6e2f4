"""Checking what callers pass to public methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_core.context import Context
from agent_core.errors import ArgumentError, ArgumentTypeError
from agent_core.frozen import freeze
from agent_core.messages import ROLES
from agent_core.session import Session


def check_session(session: Any) -> Session:
    """Return *session* if it is one."""
    if not isinstance(session, Session):
        raise ArgumentTypeError(f"session must be a Session, not {type(session).__name__}")
    return session


def check_context(context: Any) -> Mapping[str, Any] | None:
    """Return the caller's context, frozen."""
    if context is not None and not isinstance(context, Mapping):
        raise ArgumentTypeError(f"context must be a dict, not {type(context).__name__}")
    return context if isinstance(context, Context) or context is None else freeze(dict(context))


def check_role(role: Any) -> str:
    """Return *role* if a message can have it."""
    if role not in ROLES:
        raise ArgumentError(f"role must be one of {list(ROLES)}, not {role!r}")
    return str(role)


def check_name(name: str, value: Any) -> None:
    """Refuse what is no name."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be a non-empty string")


def check_list(name: str, value: Any) -> None:
    """Refuse what is no list."""
    if not isinstance(value, list):
        raise ArgumentTypeError(f"{name} must be a list, not {type(value).__name__}")


def check_format(format_name: str) -> None:
    """Refuse formats other than JSON."""
    if format_name != "json":
        raise ArgumentError(f"Unsupported format {format_name!r}: only 'json' is known")


def check_triggers(trigger: str | Sequence[str]) -> list[str]:
    """Return one trigger or several as a list."""
    triggers = [trigger] if isinstance(trigger, str) else trigger
    named = isinstance(triggers, (list, tuple)) and all(isinstance(name, str) and name for name in triggers)
    if not named or not triggers:
        raise ArgumentError("trigger must be a non-empty string, or a list of such")
    return list(triggers)
