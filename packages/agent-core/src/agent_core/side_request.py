"""Asking a model a question on the side, from an action, in a session that nobody keeps.

The session's own core is asked, without tools; or an agent of the application, as it is declared. Such
a request runs lifecycles of its own, so its session is marked as temporary: actions that wait for
lifecycles leave temporary sessions alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_core.session import Session


TEMPORARY = "temporary"


class NotAnswered(Exception):
    """The model gave no answer; the message says why."""


def ask(context: Mapping[str, Any], agent: str | None, rules: str, question: str) -> str:
    """Return what a model answers, or an empty string if it says nothing.

    Args:
        context: The context that the action got.
        agent: The application's agent to ask; without an application, or if None, the same one.

    Raises:
        NotAnswered: If the agent's run failed.
        AgentError: If the model could not be asked.
    """
    core, app = context["core"], context.get("app")
    session: Session = core.create_session().with_metadata({TEMPORARY: True})
    session = core.add_message(session, "system", rules)
    session = core.add_message(session, "user", question)
    if app is None or agent is None:
        _, messages = core.send_request(session, {**context["config"], "allowed_tools": []})
        return _last_text(messages)
    return _ask_agent(app, agent, session)


def _ask_agent(app: Any, agent: str, session: Session) -> str:
    core, config, session = app.update_agent(agent, session)
    last: Mapping[str, Any] = {}
    for event in app.send_request(core, session, config, stream=False):
        last = event
    if last.get("type") == "final":
        return _last_text(last["messages"])
    problem = last.get("error") or {}
    raise NotAnswered(f"agent {agent!r} failed: {problem.get('message', 'it ended without an answer')}")


def _last_text(messages: Any) -> str:
    """Return the text of the last message, which is an answer only if it calls no tool."""
    last = messages[-1] if messages else {}
    fields = last if isinstance(last, Mapping) else last.to_dict()
    if fields.get("role") != "assistant" or (fields.get("metadata") or {}).get("tool_calls"):
        return ""
    content = fields.get("content")
    return content.strip() if isinstance(content, str) else ""
