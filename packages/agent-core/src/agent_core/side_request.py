"""Asking a model a question on the side, from an action, in a session that nobody keeps.

The session's own core is asked, without tools; or an agent of the application, as it is declared. Such
a request runs lifecycles of its own, so its session is marked as temporary: actions that wait for
lifecycles leave temporary sessions alone.

The tokens count for the session that the action is about: whoever runs the action may put a function into
its context, under `COUNT_USAGE`, that takes what each answer used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_core.session import Session


TEMPORARY = "temporary"
COUNT_USAGE = "count_usage"
"""The key of an action's context for the function that counts what answers use.

It takes the usage of an answer and the id of its model; None means the model of the session's own agent, and
the usage is then the provider's count of tokens.
"""


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
        if (used := _usage(messages)) is not None:
            _count(context, used, None)
        return _last_text(messages)
    return _ask_agent(app, agent, session, context)


def _ask_agent(app: Any, agent: str, session: Session, context: Mapping[str, Any]) -> str:
    core, config, session = app.update_agent(agent, session)
    last: Mapping[str, Any] = {}
    for event in app.send_request(core, session, config, stream=False):
        if event["type"] == "usage":
            _count(context, event["usage"], event["model"])
        last = event
    if last.get("type") == "final":
        return _last_text(last["messages"])
    problem = last.get("error") or {}
    raise NotAnswered(f"agent {agent!r} failed: {problem.get('message', 'it ended without an answer')}")


def _count(context: Mapping[str, Any], used: Mapping[str, Any], model: str | None) -> None:
    count = context.get(COUNT_USAGE)
    if callable(count):
        count(used, model)


def _usage(messages: Any) -> Mapping[str, Any] | None:
    """Return how many tokens the provider has counted for an answer, if it did."""
    for message in reversed(messages):
        used = (_fields(message).get("metadata") or {}).get("usage")
        if isinstance(used, Mapping):
            return used
    return None


def _fields(message: Any) -> Mapping[str, Any]:
    return message if isinstance(message, Mapping) else message.to_dict()


def _last_text(messages: Any) -> str:
    """Return the text of the last message, which is an answer only if it calls no tool."""
    fields = _fields(messages[-1]) if messages else {}
    if fields.get("role") != "assistant" or (fields.get("metadata") or {}).get("tool_calls"):
        return ""
    content = fields.get("content")
    return content.strip() if isinstance(content, str) else ""
