"""What a tool call costs beside the tool itself: the gate, the intent, the result, the events, the records.

A model makes many calls in one answer, through the whole application with permissions on. The same tool is
called by hand as often in the same run. Figures are processor time of the whole process, threads included:
waiting for a disk is not in them, handing it something is. The least and the median of all calls are given,
since whatever else the machine does makes single calls slower, and none faster.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from files_tool import FilesTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS, ROUNDS = 100, 5
TARGET = 1.0
PERMISSIONS = {"default": "ask", "allow": ["note", "read_file", "edit_file"]}


class Note:
    """A tool that does nothing."""

    name = "note"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
        return [{"name": "note", "description": "Note it.", "input_schema": schema}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "noted"}


def notes(count: int) -> list[ToolCall]:
    return [ToolCall("note", {"text": f"number {number}"}) for number in range(count)]


def reads(count: int) -> list[ToolCall]:
    return [ToolCall("read_file", {"path": "poem.txt"}) for _ in range(count)]


def edits(count: int) -> list[ToolCall]:
    colours = ("red", "blue")
    pairs = [(colours[number % 2], colours[(number + 1) % 2]) for number in range(count)]
    return [ToolCall("edit_file", {"path": "poem.txt", "old": old, "new": new}) for old, new in pairs]


class Bench:
    """One tool, by hand and through an application."""

    def __init__(self, folder: Path, store: str, calls: Callable[[int], list[ToolCall]]) -> None:
        self.folder = folder
        self._work = folder / "work"
        self._work.mkdir(parents=True, exist_ok=True)
        self._store = store
        self._calls = calls
        self._tool: Any = cast("Any", Note()) if calls is notes else FilesTool()
        self._settings = {"roots": [str(self._work)], "journal": str(folder / "journal")}
        self._state: Any = None if calls is notes else self._tool.init(self._settings)

    def by_hand(self) -> list[float]:
        """Return the milliseconds of each call without anybody in between."""
        self._write()
        spent = []
        for call in self._calls(CALLS):
            began = time.process_time()
            if self._calls is notes:
                self._tool.execute_tool(call.name, call.arguments)
            else:
                about = {"session_id": "bench"}
                self._tool.execute_tool(call.name, call.arguments, self._state, context=about)
            spent.append((time.process_time() - began) * 1000)
        return spent

    def through_application(self) -> list[float]:
        """Return the milliseconds of each call, from the result of the one before to its own.

        Calls that run beside each other have no such thing: of these, their share of the time of all.
        """
        self._write()
        config = {
            "agents": {"a": {"model": "m", "plugin_ids": [self._tool.name]}},
            "models": {"m": {"provider": "scripted"}},
            "plugins": {"files_tool": self._settings},
            "permissions": PERMISSIONS,
        }
        plugins = [ScriptedProvider([Reply(tool_calls=self._calls(CALLS)), "Done."]), self._tool]
        with AgentApplication(config, store=self._store, plugins=plugins, installed=False) as app:
            began, *results, ended = self._moments(app)
        if self._calls is reads:
            return [(ended - began) * 1000 / CALLS]
        return [(end - before) * 1000 for before, end in pairwise(results)]

    def _moments(self, app: AgentApplication) -> Iterator[float]:
        for event in app.chat(app.create_session().session_id, "Go on."):
            if event["type"] in ("step_start", "tool_call_result"):
                assert not event.get("is_error"), event
                yield time.process_time()

    def _write(self) -> None:
        (self._work / "poem.txt").write_text("roses are red\n" + "violets are here\n" * 50)


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<52}{figure:>12}  {note}")


def measure(what: str, bench: Bench, rounds: int) -> None:
    """Print what a call costs, in turns with the tool by hand."""
    hand: list[float] = []
    through: list[float] = []
    for _ in range(rounds):
        hand += bench.by_hand()
        through += bench.through_application()
    least, usual = (figure(through) - figure(hand) for figure in (min, median))
    note = f"median {usual:.2f} ms; by hand {min(hand):.2f} ms more; target: under {TARGET:g} ms"
    line(what, f"{least:.2f} ms", note)


def main() -> None:
    rounds = 2 if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kept, store in (("in memory", "sqlite://"), ("in a file", f"sqlite:///{folder}/app.db")):
            for what, calls in (("does nothing", notes), ("reads a file", reads), ("edits a file", edits)):
                bench = Bench(folder, store, calls)
                measure(f"around a call that {what}, session {kept}", bench, rounds)


if __name__ == "__main__":
    main()
