"""What the model wanted of a call that was never begun: no event tells it, the session does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import AgentError, ToolInteropRegistry

if TYPE_CHECKING:
    from agent_app import AgentApplication


def wanted_arguments(app: AgentApplication, session_id: str, call_id: str) -> Any:
    """Return the arguments of a call, as a session has them; None if it has no such call.

    Called in a thread. Arguments that cannot be read are returned as they were written.

    Raises:
        AgentError: If the session cannot be read.
    """
    formats = ToolInteropRegistry.default()
    for message in reversed(app.load_session(session_id).messages):
        for call in message.metadata.get("tool_calls") or ():
            try:
                found = formats.inspect_call(call)
            except AgentError:  # another call, in a form that only its provider knows
                continue
            if found.call_id == call_id:
                return found.payload
    return None
