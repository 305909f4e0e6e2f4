"""Who answers in a conversation: the agent, its model, its settings, and the tools that suit the model.

An agent that names no plugins is offered tools by a rule that depends on its model. At the start the model
is known before the agent is built. In a chat another model may answer from some message on, or a session
is resumed that asks for another; the agent is then rebuilt by the same rule.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_app.agents import choose_agent, resolve_request_config
from agent_app.services import AGENT, own_overrides
from agent_core import AgentError
from agent_terminal_app.application import catalogue_of, open_quietly
from agent_terminal_app.views.sessions import unsaid_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_core import AgentCore, Session
    from agent_runtime import ModelSpec, ResolvedAgent
    from agent_terminal_app.chat.conversation import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Responder:
    """What the next request would be made with.

    Attributes:
        session: The session; an empty one if nothing was said yet.
        agent: The agent as it was declared.
        model: The model that answers; another than the agent's if the session asks for it.
        core: Runs the requests.
        config: Their settings, those of the session among them.
    """

    session: Session
    agent: ResolvedAgent
    model: ModelSpec
    core: AgentCore
    config: Mapping[str, Any]


async def who_answers(conversation: Conversation) -> Responder:
    """Return who answers next.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    app, session_id = conversation.app, conversation.session_id
    session = unsaid_session() if session_id is None else await app.load_session_async(session_id)
    agent_id = agent_of(app, session)
    core, config, _ = await app.update_agent_async(agent_id, session)
    agent = await asyncio.to_thread(app.runtime.resolve, agent_id)
    own = dict(own_overrides(session))
    asked = agent.models.get(own.get("model", ""))
    if asked is not None:
        del own["model"]  # the settings are those of this model already
    model = agent.model if asked is None else asked.model
    settings = {key: value for key, value in config.items() if key != AGENT}
    return Responder(
        session=session, agent=agent, model=model, core=core, config=resolve_request_config(settings, own, {})
    )


def agent_of(app: AgentApplication, session: Session | None) -> str:
    """Return the agent that a session belongs to, or the one that a new session would.

    Raises:
        AgentError: If there is none.
    """
    return _meant(app, None if session is None else session.metadata.get(AGENT))


def agent_of_stored(app: AgentApplication, session_id: str | None) -> str:
    """Return the same for a session by its id, without reading it.

    Raises:
        AgentError: If there is none.
    """
    return _meant(app, None if session_id is None else app.session_info(session_id).agent_id)


def _meant(app: AgentApplication, own: object) -> str:
    known = own if isinstance(own, str) and own in app.config.get("agents", {}) else None
    chosen = choose_agent(app.config, known)
    if chosen is None:
        raise AgentError("no agent is selected: set default_agent (`agent config set default_agent NAME`)")
    return chosen


async def follow_model(conversation: Conversation) -> str:
    """Offer the agent what fits the model that answers now, and return a line about it if that is new.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    who = await who_answers(conversation)
    return await asyncio.to_thread(_follow, conversation.app, who.agent.spec.id, who.model.id)


def _follow(app: AgentApplication, agent_id: str, model: str) -> str:
    values = _settings()
    if values is None:
        return ""
    change = catalogue_of(app).fit_agent(agent_id, model, values)
    if change.gained:
        return f"The agent has tools now, from {', '.join(change.gained)}; /tools lists them."
    if change.lost:
        return f"The embedded model is too small for tools: {', '.join(change.lost)} are off now."
    return ""


def _settings() -> Mapping[str, Any] | None:
    """Return the settings as they are now; None if they cannot be read any more."""
    with suppress(AgentError):
        return open_quietly().settings.values
    return None
