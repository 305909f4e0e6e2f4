"""From what httpx and the SDK raise to one error that says whose side it is and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from a2a.client import AgentCardResolutionError
from a2a.utils.errors import A2AError

from agent_core.display.text import clean
from agent_runtime.remote.errors import RemoteAgentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_runtime.remote.agent import RemoteAgent

_LONGEST = 500
_DENIED = {401, 403, 407}


def as_remote_error(agent: RemoteAgent, error: Exception) -> RemoteAgentError:
    """Return *error* in our terms."""
    found = (_from_transport(agent, one) for one in _causes(error))
    known = next((one for one in found if one is not None), None)
    return known or _from_protocol(agent, error)


def _from_transport(agent: RemoteAgent, error: BaseException) -> RemoteAgentError | None:
    if isinstance(error, RemoteAgentError):
        return error
    if isinstance(error, httpx.HTTPStatusError):
        return _from_status(agent, error.response.status_code)
    if isinstance(error, httpx.InvalidURL):
        return agent.error("protocol", f"its URL cannot be used: {_words(error)}", "correct endpoint.url")
    if isinstance(error, httpx.TransportError):
        problem = f"it cannot be reached: {_words(error)}"
        return agent.error("unreachable", problem, "check endpoint.url, and that the agent is running")
    return None


def _from_protocol(agent: RemoteAgent, error: Exception) -> RemoteAgentError:
    if isinstance(error, TimeoutError):
        problem = f"it gave no answer within {agent.endpoint.timeout:g} seconds and was given up"
        return agent.error("timeout", problem, "ask for less, or raise endpoint.timeout")
    if isinstance(error, AgentCardResolutionError):
        problem = "what it sent is no agent card"
        return agent.error("protocol", problem, "check that endpoint.url is an A2A agent, or its card")
    if isinstance(error, A2AError):
        return agent.error("protocol", f"it answered with an error: {_words(error)}", "tell its owner")
    problem = f"its answer cannot be read ({type(error).__name__}: {_words(error)})"
    return agent.error("protocol", problem, "check that it speaks A2A 0.3 or 1.0")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _from_status(agent: RemoteAgent, status: int) -> RemoteAgentError:
    if status in _DENIED:
        problem = f"it does not let us in (HTTP {status})"
        had = "renew endpoint.token" if agent.endpoint.token else "set endpoint.token"
        return agent.error("auth", problem, had)
    if httpx.codes.is_redirect(status):
        problem = f"it sends callers elsewhere (HTTP {status}), which is not followed"
        return agent.error("protocol", problem, "declare the address behind it as endpoint.url")
    hint = (
        "check the path of endpoint.url"
        if status == httpx.codes.NOT_FOUND
        else "try again, or tell its owner"
    )
    return agent.error("protocol", f"it answered HTTP {status}", hint)


def _words(error: BaseException) -> str:
    text = clean(str(error)) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
