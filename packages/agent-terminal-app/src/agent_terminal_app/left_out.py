"""Plugins that are installed and take no part in an agent at all, each with the reason.

Of those that do, the agent knows itself why they are on or off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_terminal_app.wiring import DEFAULT_MODEL, TOOLS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_app import AgentApplication


def left_out(
    app: AgentApplication, agent_id: str, decided: Collection[str], *, model: str | None = None
) -> list[dict[str, Any]]:
    """Return decisions about the plugins that an agent is not even offered, in the form of all others.

    Args:
        model: The model that answers, if that is not the one which the agent declares.
    """
    agent: Mapping[str, Any] = app.config["agents"].get(agent_id, {})
    if model is not None:
        agent = {**agent, "model": model}
    return [
        {
            "plugin": name,
            "kind": entry.wrapper.kind,
            "enabled": False,
            "reason": "not_named",
            "detail": _why(name, agent),
            "round": 0,
        }
        for name, entry in app.runtime.registries.plugins.items()
        if name not in decided
    ]


def _why(name: str, agent: Mapping[str, Any]) -> str:
    if "plugin_ids" in agent:
        return "plugin_ids of the agent do not name it"
    if name not in TOOLS:
        return "it is off unless plugin_ids of the agent, or the setting tools, name it"
    if agent.get("model") == DEFAULT_MODEL:
        return "the embedded model has no tools, unless the setting tools names some"
    return "the setting tools does not name it"
