"""Runs as a waterfall: what happened when and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_app.trace import shown_time
from agent_terminal_app.output import moment, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.trace import Part, TracedRun

_NAME_WIDTH = 34
_LEAST_BAR = 10
_WORDS: Final = {"run": "run of", "handoff": "handoff to", "wait": "waits for a decision"}


def waterfall(run: TracedRun, width: int) -> Iterator[str]:
    """Yield the lines of a run: names, times, and bars that show when each part was busy."""
    begin, whole = run.parts[0].begin, max(run.last - run.parts[0].begin, 0.001)
    space = max(_LEAST_BAR, width - _NAME_WIDTH - 12)
    yield f"{run.run_id}  {moment(begin)}  {run.agent} on {run.model}"
    for part in run.parts:
        seconds = (part.end or run.last) - part.begin
        name = f"{'  ' * part.depth}{_label(part)}"[:_NAME_WIDTH]
        left = min(space - 1, int((part.begin - begin) / whole * space))
        length = max(1, min(space - left, round(seconds / whole * space)))
        waited = (
            0 if part.first is None else min(length - 1, round((part.first - part.begin) / whole * space))
        )
        drawn = f"{' ' * left}{'▁' * waited}{('▇' if part.end is not None else '░') * (length - waited)}"
        note = f"  {part.note}" if part.note else "" if part.end is not None else "  not ended"
        yield f"{name:<{_NAME_WIDTH}} {shown_time(seconds):>8}  {drawn}{note}"


def _label(part: Part) -> str:
    return one_line(f"{_WORDS.get(part.kind, part.kind)} {part.name}")
