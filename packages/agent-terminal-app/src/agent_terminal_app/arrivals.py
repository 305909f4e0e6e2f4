"""Sessions that come from a file: where they work, and what was not taken over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.tables import one_line

if TYPE_CHECKING:
    from agent_app.transfer import ImportedSession

_MOST = 10
_LONGEST = 40


def here() -> dict[str, Any]:
    """Return the metadata of a session that is begun, or comes, in this folder."""
    return {"workspace_roots": [str(Path.cwd())]}


def told_of_arrival(info: ImportedSession) -> list[str]:
    """Return what a person should know of an import, a line each."""
    if not info.left_out:
        return []
    names = [one_line(name)[:_LONGEST] for name in info.left_out]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return [
        f"left out, since a file does not say what happens on this machine: {', '.join(names[:_MOST])}{more}",
        f"the session works in {one_line(Path.cwd())}",
    ]
