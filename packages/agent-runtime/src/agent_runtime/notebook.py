"""A cell magic for notebooks: the cell is what is said to an agent.

::

    %load_ext agent_runtime.notebook

    %%agent anthropic:claude-sonnet-5
    What is in this data?

The argument is a model, or the name of a variable that holds an `Agent`; without one it is the agent of the
cell before. Cells with the same agent are one conversation; `%agent_new` begins another. The cell's value is
the `RunResult`: the next cell has it as `_`. Below the words of the answer, the cell shows how the run went.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agent_runtime.agent import Agent
from agent_runtime.results import RunResult, table

if TYPE_CHECKING:
    from agent_runtime.chat import Chat


class Cells:
    """The chat that the cells of a notebook share.

    Args:
        shell: The notebook's IPython shell, whose variables may hold agents.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._agent: Agent[Any, Any] | None = None
        self._name = ""
        self._chat: Chat[Any] | None = None
        self._printed: tuple[int, object] = (0, None)

    def ask(self, line: str, cell: str) -> RunResult[Any] | None:
        """Say a cell to an agent, show its words as they come, and return what the run came to."""
        chat = self._choose(line.strip())
        printed = ""
        for event in chat.stream(cell.strip()):
            if event["type"] == "text":
                sys.stdout.write(event["text"])
                printed += event["text"]
            elif event["type"] == "tool_call_start":
                sys.stdout.write(f"[{event['preview']}]\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
        result = chat.result
        if result is not None and result.has_output and str(result.output) in printed:
            self._printed = (self._shell.execution_count, result)
        return result

    def forget(self, _line: str = "") -> None:
        """Begin another conversation with the next cell."""
        self._chat = None

    def html(self, result: RunResult[Any]) -> str:
        """Return what a notebook shows of a result: without the words that the same cell has printed."""
        return f"<div>{table(result)}</div>" if self._has_printed(result) else result._repr_html_()

    def plain(self, result: RunResult[Any], printer: Any, _cycle: object) -> None:
        """Do the same where there is no HTML, as in a terminal."""
        about = dict(result.__rich_repr__())
        if self._has_printed(result):
            del about["output"]
        printer.text(f"RunResult({', '.join(f'{name}={value!r}' for name, value in about.items())})")

    def _has_printed(self, result: RunResult[Any]) -> bool:
        # By the number of the cell: a result that a later cell shows again is shown whole.
        cell, printed = self._printed
        return result is printed and cell == self._shell.execution_count

    def _choose(self, name: str) -> Chat[Any]:
        name = name or self._name
        found = self._shell.user_ns.get(name)  # looked up each time: its cell may have been run again
        agent = found if isinstance(found, Agent) else self._agent if name == self._name else None
        agent = agent or Agent(name or "local")
        if agent is not self._agent:
            self._agent, self._name, self._chat = agent, name, None
        if self._chat is None:
            self._chat = agent.chat()
        return self._chat


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; IPython calls this for `%load_ext agent_runtime.notebook`."""
    cells = Cells(shell)
    shell.register_magic_function(cells.ask, "cell", "agent")
    shell.register_magic_function(cells.forget, "line", "agent_new")
    shown_as = shell.display_formatter.formatters
    shown_as["text/html"].for_type(RunResult, cells.html)
    shown_as["text/plain"].for_type(RunResult, cells.plain)
