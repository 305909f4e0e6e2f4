"""What plugins have to tell a person when a session is opened.

A front end that opens a session runs the lifecycle `SESSION_OPEN` on it, and shows the notices among what the
actions return: each one line, with the action that deals with it. So a plugin whose doings wait for somebody
need not wait until somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SESSION_OPEN: Final = "session_open"
"""The lifecycle that front ends run when a person begins or continues a session."""

MOST_NOTICES: Final = 20
LONGEST_NOTICE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that a person should know.

    Attributes:
        plugin: Who tells it.
        text: One line.
        action_id: The action of this plugin that deals with it; empty if there is none.
        params: What to run it with.
        is_problem: False if it only says what is so.
    """

    plugin: str
    text: str
    action_id: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    is_problem: bool = True


def read_notices(results: Sequence[Mapping[str, Any]]) -> list[Notice]:
    """Return the notices in what the actions of a lifecycle came to; what is none is left out.

    Args:
        results: What `run_session_lifecycle` returns with the session.
    """
    found: list[Notice] = []
    for record in results:
        listed_by = (record.get("result") or {}).get("notices")
        listed = listed_by if isinstance(listed_by, Sequence) and not isinstance(listed_by, str) else ()
        notices = (_notice(str(record.get("plugin")), one) for one in listed[:MOST_NOTICES])
        found += [one for one in notices if one is not None]
    return found


def _notice(plugin: str, given: Any) -> Notice | None:
    fields = given if isinstance(given, Mapping) else {"text": given}
    text, action, params = fields.get("text"), fields.get("action_id", ""), fields.get("params", {})
    if not isinstance(text, str) or not text.strip():
        return None
    line = " ".join(text.split())
    short = line if len(line) <= LONGEST_NOTICE else f"{line[:LONGEST_NOTICE]}…"
    is_problem = fields.get("is_problem") is not False
    if not isinstance(action, str) or not isinstance(params, Mapping):
        return Notice(plugin=plugin, text=short, is_problem=is_problem)
    return Notice(plugin=plugin, text=short, action_id=action, params=params, is_problem=is_problem)
