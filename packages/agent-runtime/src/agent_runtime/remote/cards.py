"""Agent cards: what a remote agent says of itself, read and narrowed to what we are ready to use.

A card is written by a stranger, and it says where to send the question. Only interfaces at the origin of
the endpoint are used: whoever declared the endpoint chose that place, and the token is meant for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol

from agent_runtime.remote.transport import origin

if TYPE_CHECKING:
    from agent_runtime.remote.agent import RemoteAgent

BINDINGS = [str(TransportProtocol.JSONRPC.value), str(TransportProtocol.HTTP_JSON.value)]


def card_url(url: str) -> str:
    """Return where the agent card is: at the well-known path, unless *url* is that of a card."""
    parsed = httpx.URL(url)
    if parsed.path.endswith(".json"):
        return url
    return str(parsed.copy_with(path=parsed.path.rstrip("/") + AGENT_CARD_WELL_KNOWN_PATH))


async def read_card(agent: RemoteAgent, client: httpx.AsyncClient) -> AgentCard:
    """Return the agent's card, with only the interfaces that may be used.

    Raises:
        RemoteAgentError: If none is left.
        A2AClientError: If there is no card, or it cannot be read.
    """
    resolver = A2ACardResolver(client, card_url(agent.endpoint.url))
    return narrowed(agent, await resolver.get_agent_card(relative_card_path="/"))


def narrowed(agent: RemoteAgent, card: AgentCard) -> AgentCard:
    """Return a copy of *card* with only the interfaces that may be used."""
    spoken = [one for one in card.supported_interfaces if one.protocol_binding in BINDINGS]
    if not spoken:
        offered = ", ".join(sorted({one.protocol_binding for one in card.supported_interfaces})) or "none"
        problem = (
            f"its card offers no interface that is spoken here ({offered}; spoken are {', '.join(BINDINGS)})"
        )
        raise agent.error("protocol", problem, "check that endpoint.url is an A2A agent")
    own = [one for one in spoken if _is_at(one.url, agent.endpoint.url)]
    if not own:
        raise agent.error(
            "refused_address",
            f"its card sends callers to another place, {spoken[0].url[:200]}",
            "declare that address as endpoint.url if you trust it",
        )
    copy = AgentCard()
    copy.CopyFrom(card)
    del copy.supported_interfaces[:]
    copy.supported_interfaces.extend(own)
    return copy


def _is_at(url: str, endpoint: str) -> bool:
    try:
        return origin(url) == origin(endpoint)
    except httpx.InvalidURL:
        return False
