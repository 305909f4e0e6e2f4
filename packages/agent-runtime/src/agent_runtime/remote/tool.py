"""A remote agent as a tool: the model writes a task, the agent's reply is the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from agent_core import CancellationToken
    from agent_runtime.remote.agent import RemoteAgent
    from agent_runtime.runs import RunScope

_GRACE = 10.0  # seconds: the agent's own limit is to end a call, with its better words


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
        tool_name: str,  # noqa: ARG002 - a hook's name and order of arguments are given
        arguments: Mapping[str, Any],
        *,
        cancellation: CancellationToken | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Ask the agent, showing what it says on the way; what it used is counted by the run above."""
        from contextlib import aclosing

        run: RunScope | None = (context or {}).get("run")
        stream = self.agent.stream(
            arguments["prompt"], cancellation=cancellation, on_usage=None if run is None else run.report
        )
        async with aclosing(stream) as items:
            async for item in items:
                yield item
