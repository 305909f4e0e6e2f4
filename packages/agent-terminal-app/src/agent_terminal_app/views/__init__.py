"""What `agent` commands and the commands of the chat both show, one module per subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_terminal_app.views.sessions import find_session, last_session_here

__all__ = ["find_session", "last_session_here"]

# The start of a chat needs them if a session is continued.
HOMES = {"agent_terminal_app.views.sessions": ("find_session", "last_session_here")}
__getattr__ = lazy_names(__name__, HOMES)
