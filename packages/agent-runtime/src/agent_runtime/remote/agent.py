"""A remote agent: how it is asked, what it replies, and how a model uses it as a tool.

Nothing here needs the A2A SDK; `load_calls` imports what does, when the first question is asked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from agent_core import AgentError, ToolSuspended
from agent_core.clean_text import clean
from agent_core.errors import ArgumentTypeError
from agent_core.frozen import EMPTY
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.specs import AgentSpec, RemoteEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from a2a.types import AgentCard

    from agent_core import Cancellation
    from agent_runtime.results import Usage
    from agent_runtime.runs import RunScope


Progress = dict[str, Any]
"""What a tool yields: ``{"part": …}`` while it runs, and a dict with `success` at its end."""
Talk = AsyncGenerator["Progress | RemoteReply", None]
"""Progress while the agent works and, last, its reply."""

_SDK = ("a2a", "google", "httpx")
_PROBLEMS = {
    "failed": "failed",
    "rejected": "refused the task",
    "canceled": "cancelled the task",
    "input_required": "asks for more before it continues",
    "auth_required": "asks for authorisation before it continues",
}
_LONGEST_DESCRIPTION = 1000
_GRACE = 10.0  # seconds: the agent's own limit is to end a call, with its better words


class RemoteAgentError(AgentError):
    """A remote agent cannot be asked, or what it answers cannot be used.

    A task that the remote agent itself gave up is not an error of this kind: see `RemoteReply.error`.

    Attributes:
        agent_id: The agent, as it is called here.
        url: Where it lives, without credentials or query.
        problem: What is wrong.
        hint: What to do about it.
        category: A stable word: unreachable, refused_address, too_large, timeout, protocol, auth or
            not_installed.
    """

    def __init__(self, agent_id: str, url: str, problem: str, *, hint: str, category: str) -> None:
        self.agent_id = agent_id
        self.url = url
        self.problem = problem
        self.hint = hint
        self.category = category
        super().__init__(f"Remote agent {agent_id!r} at {url}: {problem}; {hint}")


class RemoteTask(NamedTuple):
    """A task over there that waits for an answer.

    Attributes:
        task_id: The task's id.
        context_id: The conversation that it belongs to.
        question: The id of the question, so that it is not taken for a new one.
    """

    task_id: str
    context_id: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class RemoteReply:
    """How a remote agent's task ended.

    Attributes:
        text: Its result; if it has none, its words about why.
        state: The task's state: completed, failed, rejected, canceled, input_required or auth_required.
        task_id: The task's id over there; empty if it answered without making a task.
        usage: What it used, if it says so.
        waiting: The task, if it waits for an answer: see `RemoteAgent.send`.
    """

    text: str
    state: str
    task_id: str = ""
    usage: Usage | None = None
    waiting: RemoteTask | None = None

    @property
    def error(self) -> str | None:
        """The sentence that says why there is no result; None if there is one."""
        if self.state == "completed":
            return None
        problem = _PROBLEMS.get(self.state, f"ended as {self.state!r}")
        return f"the remote agent {problem}: {self.text or 'it gave no reason'}"

    def to_result(self) -> Progress:
        if self.error is not None:
            return {"success": False, "error": self.error}
        return {"success": True, "result": self.text}


@dataclass(frozen=True, slots=True)
class RemoteAgent:
    """An agent that lives elsewhere. Each question is a task of its own there, unless it answers one.

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
        task: RemoteTask | None = None,
        cancellation: Cancellation | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> RemoteReply:
        """Ask, and return the reply; `on_progress` is called with each part that comes before it.

        Args:
            task: The task to continue, `waiting` of an earlier reply; *prompt* is what it waits for.

        Raises:
            RemoteAgentError: If the agent cannot be asked, or its answer cannot be used.
            RequestCancelled: When *cancellation* is cancelled; the remote agent is asked to stop.
        """
        reply: RemoteReply | None = None
        async with aclosing(self.talk(prompt, task, cancellation)) as items:
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
        cancellation: Cancellation | None = None,
        on_usage: Callable[[Usage], object] | None = None,
        trace: Mapping[str, str] = EMPTY,
    ) -> AsyncGenerator[Progress, None]:
        """Ask as a tool does: yield ``{"part": …}`` as it goes, and at its end a dict with `success`.

        `on_usage` is called with what the agent used, if it says so. `trace` are headers that tie what the
        agent does to a trace of ours.

        Raises:
            RequestCancelled: When *cancellation* is cancelled; the remote agent is asked to stop.
        """
        try:
            async with aclosing(self.talk(prompt, None, cancellation, trace)) as items:
                async for item in items:
                    if not isinstance(item, RemoteReply):
                        yield item
                        continue
                    if on_usage is not None and item.usage is not None:
                        on_usage(item.usage)
                    yield item.to_result()
        except RemoteAgentError as error:
            yield {"success": False, "error": str(error)}

    def error(self, category: str, problem: str, hint: str) -> RemoteAgentError:
        url, problem = shown(self.endpoint.url), self.without_token(problem)
        return RemoteAgentError(self.agent_id, url, problem, hint=hint, category=category)

    def without_token(self, text: str) -> str:
        """Return *text*, which may come from a server that echoes what it was sent, without the token."""
        token = self.endpoint.token
        return text if token is None else text.replace(token, "***")

    def talk(
        self,
        prompt: str,
        task: RemoteTask | None,
        cancellation: Cancellation | None,
        trace: Mapping[str, str] = EMPTY,
    ) -> Talk:
        """Ask, and return progress as it comes and, last, the reply; see `send`."""
        if not isinstance(prompt, str):
            raise ArgumentTypeError(f"prompt must be text, not {type(prompt).__name__}")
        return load_calls(self).converse(self, prompt, task, cancellation, trace)

    async def take_back(self, task: RemoteTask) -> None:
        """Ask the agent to cancel a task that nobody continues; one that cannot is left alone."""
        await load_calls(self).cancel(self, task)


def shown(url: str) -> str:
    """Return *url* without what may be secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class Calls(NamedTuple):
    """What needs the SDK: see `agent_runtime.remote.protocol`."""

    converse: Callable[[RemoteAgent, str, RemoteTask | None, Cancellation | None, Mapping[str, str]], Talk]
    cancel: Callable[[RemoteAgent, RemoteTask], Awaitable[None]]
    fetch_card: Callable[[RemoteAgent], Awaitable[AgentCard]]


def load_calls(agent: RemoteAgent) -> Calls:
    """Return what talks to the agent; importing it takes the SDK, and half a second.

    Raises:
        RemoteAgentError: If the SDK is not installed, or the endpoint cannot be used.
    """
    _check_credentials(agent)
    try:
        from agent_runtime.remote.protocol import cancel, converse, fetch_card
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _SDK:
            raise
        problem = f"asking it needs a package that is not installed ({error.name})"
        raise agent.error("not_installed", problem, "run: pip install 'keelwork-runtime[a2a]'") from error
    return Calls(converse, cancel, fetch_card)


def _check_credentials(agent: RemoteAgent) -> None:
    if "@" in agent.endpoint.url.split("/")[2]:
        raise agent.error("auth", "its URL carries a name or password", "use endpoint.token instead")
    token = agent.endpoint.token
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        problem = "its token has characters that no request can carry"
        raise agent.error("auth", problem, "correct endpoint.token; a line break at its end is a common one")


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
        SpecError: If *url* or a limit cannot be used.
        RemoteAgentError: If there is no card, or none that can be used.
    """
    for_card = RemoteEndpoint(url, token=token, timeout=timeout, allow_private=allow_private)
    asked = RemoteAgent(name, for_card)
    card = await load_calls(asked).fetch_card(asked)
    endpoint = RemoteEndpoint(url, token=token, allow_private=allow_private)
    return [AgentSpec(name, description=_description(card), endpoint=endpoint)]


def _description(card: AgentCard) -> str:
    """Return what the card says of the agent; a stranger's words, so they are kept short and plain."""
    text = clean(card.description or card.name)
    return " ".join(text.split())[:_LONGEST_DESCRIPTION]


class RemoteDelegateTool:
    """Hands tasks to a remote agent.

    Attributes:
        name: The name of the tool, `delegate_<id>`, and of the plugin.
        agent: Who is asked.
        parallel: Calls do not disturb each other.
        stateless: It always offers the same.
        timeout: A little more than a call to the agent may take.
    """

    version = "1.0"
    parallel = True
    stateless = True
    takes_refusals = True  # of the agent's own questions: its task is taken back

    def __init__(self, name: str, agent: RemoteAgent) -> None:
        self.name = name
        self.agent = agent
        self.timeout = agent.endpoint.timeout + _GRACE

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool: a prompt, and nothing else."""
        about = self.agent.description or f"The remote agent {self.agent.agent_id!r}."
        prompt = {
            "type": "string",
            "description": "The task, with everything the agent needs to know; it sees nothing else.",
        }
        parameters = {
            "type": "object",
            "properties": {"prompt": prompt},
            "required": ["prompt"],
            "additionalProperties": False,
        }
        function = {
            "name": self.name,
            "description": f"Hand a task to another agent and get its result. {about}",
            "parameters": parameters,
        }
        return [{"type": "function", "function": function}]

    async def stream_tool_async(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        cancellation: Cancellation | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Progress]:
        """Ask the agent, showing what it says on the way; what it used is counted by the run above.

        Raises:
            ToolSuspended: If the agent asks something; the answer goes to the same task.
        """
        about = context or {}
        run: RunScope | None = about.get("run")
        task, prompt = _answered(about, arguments["prompt"])
        if task is not None and prompt is None:
            await self.agent.take_back(task)
            reason = getattr(about.get("decision"), "reason", "") or "nobody said why"
            yield {"success": False, "error": f"the agent's question was not answered: {reason}"}
            return
        assert prompt is not None
        trace = EMPTY if run is None else run.trace_of(about.get("tool_call_id"))
        try:
            async with aclosing(self.agent.talk(prompt, task, cancellation, trace)) as items:
                async for item in items:
                    yield item if not isinstance(item, RemoteReply) else _result(item, run)
        except RemoteAgentError as error:
            yield {"success": False, "error": str(error)}


def _answered(context: Mapping[str, Any], prompt: str) -> tuple[RemoteTask | None, str | None]:
    """Return the task that the call continues, if it waited, and what to say; None for a refusal."""
    decision, data = context.get("decision"), context.get("suspended") or {}
    if decision is None or "task_id" not in data:
        return None, prompt
    task = RemoteTask(*(str(data.get(name, "")) for name in RemoteTask._fields))
    if not decision.approved:
        return task, None
    return task, decision.value if isinstance(decision.value, str) else json.dumps(decision.value)


def _result(reply: RemoteReply, run: RunScope | None) -> Progress:
    if run is not None and reply.usage is not None:
        run.report(reply.usage)
    if reply.waiting is not None:
        raise ToolSuspended(
            reply.text or "The remote agent asks for more.",
            action="answer",
            response_schema={"type": "string"},
            data=reply.waiting._asdict(),
        )
    return reply.to_result()
