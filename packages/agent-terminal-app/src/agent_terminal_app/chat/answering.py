"""Who answers in a conversation: the agent, its model, and the settings that hold for both."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_core import AgentCore
    from agent_runtime import ModelSpec, ResolvedAgent
    from agent_terminal_app.chat.conversation import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
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


async def who_answers(conversation: Conversation) -> Answering:
    """Return who answers next.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    from agent_app.agents import resolve_request_config
    from agent_app.services import AGENT, own_overrides

    app, session_id = conversation.app, conversation.session_id
    session = Session("") if session_id is None else await app.load_session_async(session_id)
    agent_id = agent_of(app, session)
    core, config, _ = await app.update_agent_async(agent_id, session)
    agent = await asyncio.to_thread(app.runtime.resolve, agent_id)
    own = dict(own_overrides(session))
    asked = agent.models.get(own.get("model", ""))
    if asked is not None:
        del own["model"]  # the settings are those of this model already
    model = agent.model if asked is None else asked.model
    settings = {key: value for key, value in config.items() if key != AGENT}
    return Answering(
        session=session, agent=agent, model=model, core=core, config=resolve_request_config(settings, own, {})
    )


def agent_of(app: AgentApplication, session: Session | None) -> str:
    """Return the agent that a session belongs to, or the one that a new session would.

    Raises:
        AgentError: If there is none.
    """
    from agent_app.services import AGENT

    return _meant(app, None if session is None else session.metadata.get(AGENT))


def agent_of_stored(app: AgentApplication, session_id: str | None) -> str:
    """Return the same for a session by its id, without reading it.

    Raises:
        AgentError: If there is none.
    """
    return _meant(app, None if session_id is None else app.store.info(session_id).agent_id)


def _meant(app: AgentApplication, own: object) -> str:
    from agent_app.agents import choose_agent

    known = own if isinstance(own, str) and own in app.config.get("agents", {}) else None
    chosen = choose_agent(app.config, known)
    if chosen is None:
        raise AgentError("no agent is meant: set default_agent (`agent config set default_agent NAME`)")
    return chosen
