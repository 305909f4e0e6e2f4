"""A cell magic for notebooks: the cell is what is said to an agent.

::

    %load_ext agent_runtime.notebook

    %%agent anthropic:claude-sonnet-5
    What is in this data?

The argument is a model, or the name of a variable that holds an `Agent`; without one it is the agent of the
cell before. Cells with the same agent are one conversation; `%agent_new` begins another. The cell's value is
the `RunResult`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_runtime.agent import Agent

if TYPE_CHECKING:
    from agent_core import Session
    from agent_runtime.results import RunResult


class Conversation:
    """What the cells of a notebook share.

    Args:
        shell: The notebook's IPython shell, whose variables may hold agents.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._agent: Agent[Any, Any] | None = None
        self._name = ""
        self._session: Session | None = None

    def ask(self, line: str, cell: str) -> RunResult[Any] | None:
        """Say a cell to an agent, show its words as they come, and return what the run came to."""
        self._choose(line.strip())
        assert self._agent is not None
        stream = self._agent.stream(cell.strip(), session=self._session)
        for event in stream:
            if event["type"] == "text":
                sys.stdout.write(event["text"])
            elif event["type"] == "tool_call_start":
                sys.stdout.write(f"[{event['preview']}]\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
        if stream.result is not None:
            self._session = stream.result.session
        return stream.result

    def forget(self, _line: str = "") -> None:
        """Begin another conversation with the next cell."""
        self._session = None

    def _choose(self, name: str) -> None:
        if self._agent is not None and name in ("", self._name):
            return
        held = self._shell.user_ns.get(name)
        self._agent = held if isinstance(held, Agent) else Agent(name or "local")
        self._name, self._session = name, None


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; IPython calls this for `%load_ext agent_runtime.notebook`."""
    conversation = Conversation(shell)
    shell.register_magic_function(conversation.ask, "cell", "agent")
    shell.register_magic_function(conversation.forget, "line", "agent_new")
