"""A shell to call, in a workspace of its own."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from shell_tool import ShellTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Items = list[dict[str, Any]]
PATIENCE = 60.0


class Shell:
    """The tool with a workspace; settings may be changed before it is called."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.tool = ShellTool()
        self.config: dict[str, Any] = {"roots": [str(workspace)], "shell_grace": 0.5, "sandbox": "off"}

    def stream(
        self,
        name: str = "shell",
        *,
        session: str = "s",
        cancellation: Any = None,
        store: Any = None,
        **arguments: Any,
    ) -> Iterator[dict[str, Any]]:
        context = {"session_id": session, "session_asset_store": store}
        state = self.tool.init(self.config)
        return self.tool.stream_tool(name, arguments, state, cancellation=cancellation, context=context)

    def __call__(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Run a command, and return its result."""
        return list(self.stream(command=command, **arguments))[-1]

    def start(self, command: str, **arguments: Any) -> str:
        """Run a command in the background, and return its id."""
        job: str = self(command, background=True, **arguments)["id"]
        return job

    def about(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call one of the other tools, and return its result."""
        [result] = self.stream(name, **arguments)
        return result


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.tool.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so, for as long as is bearable."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be removed does not."""
    with suppress(OSError):
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - one line
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


@pytest.fixture
def gone() -> Callable[[int], None]:
    """Return a function that waits for the end of a process."""
    return lambda pid: wait_until(lambda: not is_running(pid))


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    return wait_until
