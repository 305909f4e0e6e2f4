"""What a provider offers: it is asked, though requests do without that, and not for long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import AgentCore

PATIENCE = 10.0
"""How many seconds a provider has for its list."""
_ASKING: Mapping[str, Any] = {
    "discover_models": True,
    **dict.fromkeys(("connect_timeout", "first_byte_timeout", "idle_timeout"), PATIENCE),
}


def offered_models(core: AgentCore, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the models that the provider of a configuration offers.

    Raises:
        AgentError: If it cannot be asked, or does not answer.
    """
    return list(core.resolve({**config, **_ASKING}).models)
