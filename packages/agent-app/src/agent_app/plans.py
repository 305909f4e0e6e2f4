"""The plan of a session, as the agent has written it down, and plan mode.

In plan mode an agent looks and plans, and changes nothing: the plugin that keeps the plan lets reading calls
through and no others. It is a mark in the session's metadata, so every front end knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_runtime.suspension import STATE

if TYPE_CHECKING:
    from agent_core import Session

PLAN_MODE: Final = "plan_mode"
"""The key of the mark in the metadata of a session."""
WRITE_PLAN: Final = "write_todos"
"""The tool by which an agent writes its plan."""
CARRY_OUT: Final = "Carry out the plan, step by step. Keep it up to date as you go."
"""What is said to the agent when a person has approved its plan."""
_KEY: Final = "todo_tool.items"
_DONE: Final = ("done", "dropped")


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One thing to do.

    Attributes:
        text: What.
        state: `pending`, `in_progress`, `done` or `dropped`.
    """

    text: str
    state: str = "pending"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do about it."""
        return self.state in _DONE


Plan = tuple[PlanItem, ...]


def read_plan(items: Any) -> Plan:
    """Return a plan from the items that an agent has written; what is not an item is left out."""
    if not isinstance(items, (list, tuple)):
        return ()
    written = (one for one in items if isinstance(one, Mapping) and isinstance(one.get("text"), str))
    return tuple(PlanItem(one["text"], str(one.get("state", "pending"))) for one in written)


def plan_of(session: Session) -> Plan:
    """Return the plan that a session keeps."""
    state = session.metadata.get(STATE)
    return read_plan(state.get(_KEY)) if isinstance(state, Mapping) else ()


def in_plan_mode(session: Session) -> bool:
    """Say whether the agent of a session may only look and plan."""
    return session.metadata.get(PLAN_MODE) is True


def with_plan_mode(session: Session, *, on: bool) -> Session:
    """Return a session whose agent may only look and plan, or may work again."""
    return session.with_metadata({PLAN_MODE: on})
