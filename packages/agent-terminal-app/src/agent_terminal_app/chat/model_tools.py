"""Tools follow the model: what an agent that names no plugins is offered, by the rule of every start.

At a start the model is known before the agent is built. In a chat another one may answer from some message
on, or a session is resumed that asks for another, and the agent is built anew then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.answering import who_answers
from agent_terminal_app.opening import open_quietly
from agent_terminal_app.wiring import DEFAULT_MODEL, SHORT_NAMES, TITLES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_runtime import AgentSpec
    from agent_terminal_app.chat.conversation import Conversation

_EMBEDDED = (DEFAULT_MODEL, f"{SHORT_NAMES[DEFAULT_MODEL]}:")
"""The ids of the embedded model: at the start, and when it is asked for later."""


async def follow_model(conversation: Conversation) -> str:
    """Offer the agent what fits the model that answers now, and return a line about it if that is new.

    Raises:
        AgentError: If no agent is declared, or it cannot run.
    """
    who = await who_answers(conversation)
    return await asyncio.to_thread(_follow, conversation.app, who.agent.spec.id, who.model.id)


def is_embedded(model: str) -> bool:
    """Say whether a model is the embedded one, which is too small to use tools well."""
    return model in _EMBEDDED


def _follow(app: AgentApplication, agent_id: str, model: str) -> str:
    agents = app.runtime.registries.agents
    before, values = agents.get(agent_id), _settings()
    if before is None or values is None or not _is_by_rule(app, agent_id, values):
        return ""
    now = _fitting(app, before, values, model)
    if now == before:
        return ""
    agents.replace(agent_id, now)
    try:
        app.runtime.resolve(agent_id)
    except AgentError:
        agents.replace(agent_id, before)
        raise
    return _Change.between(before, now).told()


def _settings() -> Mapping[str, Any] | None:
    """Return the settings as they are now; None if they cannot be read any more."""
    with suppress(AgentError):
        return open_quietly().settings.values
    return None


def _is_by_rule(app: AgentApplication, agent_id: str, values: Mapping[str, Any]) -> bool:
    """Say whether nobody has said which tools an agent has."""
    return "tools" not in values and "plugin_ids" not in app.config["agents"].get(agent_id, {})


def _fitting(app: AgentApplication, spec: AgentSpec, values: Mapping[str, Any], model: str) -> AgentSpec:
    """Return an agent with what it would have been given at a start with another model."""
    wanted = () if is_embedded(model) else TOOLS
    ids = tuple(
        name
        for name, entry in app.runtime.registries.plugins.items()
        if (
            name in spec.plugin_ids if name not in TOOLS else name in wanted or _is_on_by_itself(entry.plugin)
        )
    )
    settings = {name: value for name, value in app.config.get("plugins", {}).items() if name in ids}
    kept = {name: value for name, value in spec.sections.items() if name not in TOOLS or name in ids}
    sections = {**settings, **kept}
    if TITLES in sections and "title_model" not in _said_of_titles(values, spec.id):
        sections[TITLES] = {**sections[TITLES], "title_model": not is_embedded(model)}
    return replace(spec, plugin_ids=ids, sections=sections)


def _is_on_by_itself(plugin: Any) -> bool:
    return bool(getattr(plugin, "default_enabled", True))


def _said_of_titles(values: Mapping[str, Any], agent_id: str) -> Mapping[str, Any]:
    own = values.get("agents", {}).get(agent_id, {}).get("sections", {}).get(TITLES, {})
    return {**values.get("plugins", {}).get(TITLES, {}), **own}


@dataclass(frozen=True, slots=True)
class _Change:
    """Which tools an agent has that it had not before, and the other way round."""

    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @classmethod
    def between(cls, before: AgentSpec, now: AgentSpec) -> _Change:
        gained = tuple(name for name in now.plugin_ids if name not in before.plugin_ids)
        return cls(gained, tuple(name for name in before.plugin_ids if name not in now.plugin_ids))

    def told(self) -> str:
        if self.gained:
            return f"The agent has tools now, from {', '.join(self.gained)}; /tools lists them."
        if self.lost:
            return f"The embedded model is too small for tools: {', '.join(self.lost)} are off now."
        return ""
