"""What plugins have to tell a person before the first words: asked for when a session is opened."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from agent_terminal_app.tables import one_line

if TYPE_CHECKING:
    from agent_app import AgentApplication
    from agent_app.notices import Notice


def opening_notices(application: AgentApplication, session_id: str | None) -> list[Notice]:
    """Return what the plugins of a session's agent have to tell; may take as long as they need to know it.

    Args:
        session_id: The session; None for one that is not made yet.
    """
    from agent_app.notices import SESSION_OPEN, read_notices
    from agent_core import Session

    session = Session("") if session_id is None else application.load_session(session_id)
    _, results = application.run_session_lifecycle(SESSION_OPEN, session)
    return read_notices(results)


def in_chat(notice: Notice) -> str:
    """Return what is typed in a chat to deal with a notice; empty if there is nothing to do."""
    if not notice.action_id:
        return ""
    given = [shlex.quote(f"{name}={_written(value)}") for name, value in notice.params.items()]
    return one_line(" ".join([f"/{notice.plugin}.{notice.action_id}", *given]))


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
