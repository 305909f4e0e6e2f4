"""Finding out which agent is behind an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime.remote.agent import RemoteAgent, load_calls
from agent_runtime.specs import AgentSpec, RemoteEndpoint

if TYPE_CHECKING:
    from a2a.types import AgentCard

_LONGEST = 1000


async def discover(
    name: str,
    url: str,
    *,
    token: str | None = None,
    timeout: float = 10.0,  # noqa: ASYNC109 - a limit of the endpoint that it makes
    allow_private: bool = False,
) -> list[AgentSpec]:
    """Return the agents at *url*, ready to be delegates: A2A has one per card, and *name* becomes its id.

    The card is read again by every call, so the spec keeps *url* itself and not what the card says.

    Args:
        timeout: Seconds for reading the card. Calls have the limits of `RemoteEndpoint`.

    Raises:
        SpecError: If *url* or a limit is none.
        RemoteAgentError: If there is no card, or none that can be used.
    """
    for_card = RemoteEndpoint(url, token=token, timeout=timeout, allow_private=allow_private)
    asked = RemoteAgent(name, for_card)
    card = await load_calls(asked).fetch_card(asked)
    endpoint = RemoteEndpoint(url, token=token, allow_private=allow_private)
    return [AgentSpec(name, description=_description(card), endpoint=endpoint)]


def _description(card: AgentCard) -> str:
    """Return what the card says of the agent; a stranger's words, so they are kept short and plain."""
    from agent_core.display.text import clean

    text = clean(card.description or card.name)
    return " ".join(text.split())[:_LONGEST]
