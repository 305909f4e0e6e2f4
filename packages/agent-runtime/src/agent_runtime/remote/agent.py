"""A remote agent as something that can be asked."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from agent_core.errors import ArgumentTypeError
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.remote.errors import RemoteAgentError
from agent_runtime.remote.reply import RemoteReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from agent_core import CancellationToken
    from agent_runtime.results import Usage
    from agent_runtime.specs import RemoteEndpoint

_SDK = ("a2a", "google", "httpx")


class Calls(NamedTuple):
    """What needs the SDK: see `agent_runtime.remote.calls`."""

    converse: Callable[..., AsyncGenerator[dict[str, Any] | RemoteReply, None]]
    fetch_card: Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """An agent that lives elsewhere. Each question is a task of its own there.

    Attributes:
        agent_id: How it is called here.
        endpoint: Where it lives, and the limits of a call.
        description: What it can do, for the model that may ask it.
        clock: By which pauses are made while it is polled.
    """

    agent_id: str
    endpoint: RemoteEndpoint
    description: str = ""
    clock: Clock = field(default=SYSTEM_CLOCK, repr=False, compare=False)

    async def send(
        self,
        prompt: str,
        *,
        cancellation: CancellationToken | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> RemoteReply:
        """Ask, and return the reply; `on_progress` is called with each part that comes before it.

        Raises:
            RemoteAgentError: If the agent cannot be asked, or its answer cannot be used.
            RequestCancelled: When *cancellation* is cancelled; the remote agent is told.
        """
        reply: RemoteReply | None = None
        async with aclosing(self._converse(prompt, cancellation)) as items:
            async for item in items:
                if isinstance(item, RemoteReply):
                    reply = item
                elif on_progress is not None:
                    on_progress(item)
        assert reply is not None  # the last item is one, or there was an error
        return reply

    async def stream(
        self,
        prompt: str,
        *,
        cancellation: CancellationToken | None = None,
        on_usage: Callable[[Usage], Any] | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Ask as a tool does: yield ``{"part": …}`` as it goes, and at its end a dict with `success`.

        `on_usage` is called with what the agent used, if it tells.

        Raises:
            RequestCancelled: When *cancellation* is cancelled; the remote agent is told.
        """
        try:
            async with aclosing(self._converse(prompt, cancellation)) as items:
                async for item in items:
                    if isinstance(item, RemoteReply):
                        if on_usage is not None and item.usage is not None:
                            on_usage(item.usage)
                        item = item.to_result()  # noqa: PLW2901 - the same thing as a tool says it
                    yield item
        except RemoteAgentError as error:
            yield {"success": False, "error": str(error)}

    def error(self, category: str, problem: str, hint: str) -> RemoteAgentError:
        """Return an error of this agent."""
        url, told = shown(self.endpoint.url), self.without_token(problem)
        return RemoteAgentError(self.agent_id, url, told, hint=hint, category=category)

    def without_token(self, text: str) -> str:
        """Return *text*, which may come from a server that echoes what it was sent, without the token."""
        token = self.endpoint.token
        return text if token is None else text.replace(token, "***")

    def _converse(
        self, prompt: str, cancellation: CancellationToken | None
    ) -> AsyncGenerator[dict[str, Any] | RemoteReply, None]:
        if not isinstance(prompt, str):
            raise ArgumentTypeError(f"prompt must be text, not {type(prompt).__name__}")
        return load_calls(self).converse(self, prompt, cancellation)


def load_calls(agent: RemoteAgent) -> Calls:
    """Return what talks to the agent; importing it takes the SDK, and half a second.

    Raises:
        RemoteAgentError: If the SDK is not installed, or the endpoint cannot be used.
    """
    _check_credentials(agent)
    try:
        from agent_runtime.remote.calls import converse, fetch_card
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _SDK:
            raise
        problem = f"asking it needs a package that is not installed ({error.name})"
        raise agent.error("not_installed", problem, "run: pip install agent-runtime[a2a]") from error
    return Calls(converse, fetch_card)


def _check_credentials(agent: RemoteAgent) -> None:
    if "@" in agent.endpoint.url.split("/")[2]:
        raise agent.error("auth", "its URL carries a name or password", "use endpoint.token instead")
    token = agent.endpoint.token
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        problem = "its token has characters that no request can carry"
        raise agent.error("auth", problem, "correct endpoint.token; a line break at its end is a common one")


def shown(url: str) -> str:
    """Return *url* without what may be secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
