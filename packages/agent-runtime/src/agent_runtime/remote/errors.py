"""What can go wrong on the way to a remote agent."""

from __future__ import annotations

from agent_core import AgentError


class RemoteAgentError(AgentError):
    """A remote agent cannot be asked, or what it answers cannot be used.

    A task that the remote agent itself gave up is no error of this kind: see `RemoteReply.error`.

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
