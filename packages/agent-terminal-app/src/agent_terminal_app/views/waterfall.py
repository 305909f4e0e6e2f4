"""Runs as a waterfall: what happened when and for how long, from a session's stored events alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_terminal_app.output import moment, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NAME_WIDTH = 34
_LEAST_BAR = 10


@dataclass(slots=True)
class Bar:
    """One line: something that took a while.

    Attributes:
        depth: How far it is indented.
        begin: When it began, in seconds since 1970.
        end: When it ended; None if it never did.
        note: What else is known of it: tokens, costs, failures.
        first: When the first token of an answer came; None if that is not known, or it is no answer.
    """

    depth: int
    name: str
    begin: float
    end: float | None = None
    note: str = ""
    first: float | None = None


@dataclass(slots=True)
class TracedRun:
    """One run of a session.

    Attributes:
        bars: The run, its steps, its answers and its calls, in the order in which they began.
    """

    run_id: str
    agent: str
    model: str
    bars: list[Bar] = field(default_factory=list)
    _open: dict[str, Bar] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in the next event of the run."""
        at = event.get("at")
        if event["type"] in ("final", "turn_end"):  # how an application ends what a run ends with run_end
            self._end_run(event, self.last)
        elif isinstance(at, (int, float)):
            self._begin_part(event, at)
            self._end_part(event, at)

    def _begin_part(self, event: Mapping[str, Any], at: float) -> None:
        kind = event["type"]
        if kind == "run_start":
            self._begin("run", Bar(0, f"run of {self.agent}", at))
        elif kind == "step_start":
            self._begin("step", Bar(1, f"step {event['round']}", at))
            self._begin("chat", Bar(2, f"model {self.model}", at))
        elif kind == "tool_call_start":
            self._begin(event["call_id"], Bar(2, f"tool {event['name']}", at))
        elif kind in ("retry", "fallback"):
            self.bars.append(Bar(3, kind, at, at, one_line(event["message"])))
        elif kind == "handoff":
            self.bars.append(Bar(1, f"handoff to {event['to_agent']}", at, at))
        elif kind == "suspended":
            self.bars.append(Bar(1, "waits for a decision", at, at))

    def _end_part(self, event: Mapping[str, Any], at: float) -> None:
        kind = event["type"]
        if kind == "usage" and not event.get("beside"):
            self._end("chat", at, self._answered(event))
        elif kind == "tool_call_result":
            self._end(event["call_id"], at, "failed" if event["is_error"] else "")
        elif kind == "step_end":
            self._end("chat", at)
            self._end("step", at)
        elif kind == "run_end":
            self._end_run(event, at)
        elif kind == "error":  # how an application ends a run that failed
            run = self._open.get("run")
            for key in list(self._open):
                self._end(key, at)
            if run is not None:
                run.note = f"failed: {one_line(event['error']['message'])}"

    def _answered(self, event: Mapping[str, Any]) -> str:
        used, bar, first_at = _used(event["usage"]), self._open.get("chat"), event.get("first_at")
        if bar is None or not isinstance(first_at, (int, float)):
            return used
        bar.first = first_at
        return f"{used}, first token after {_time(first_at - bar.begin)}"

    def _end_run(self, event: Mapping[str, Any], at: float) -> None:
        reason, usage = event.get("reason") or {}, event.get("usage") or {}
        self._end("run", at, ", ".join(part for part in (reason.get("code"), _used(usage)) if part))

    def _begin(self, key: str, bar: Bar) -> None:
        self.bars.append(bar)
        self._open[key] = bar

    def _end(self, key: str, at: float, note: str = "") -> None:
        bar = self._open.pop(key, None)
        if bar is not None:
            bar.end, bar.note = at, note

    @property
    def last(self) -> float:
        """When the last thing happened that is known."""
        return max((bar.end or bar.begin for bar in self.bars), default=0.0)


def traced_runs(events: Iterable[Mapping[str, Any]]) -> list[TracedRun]:
    """Return the runs of a session's log that have times."""
    runs: list[TracedRun] = []
    for event in events:
        if event.get("type") == "run_start":
            runs.append(TracedRun(event["run_id"], event["agent_id"], event["model"]))
        if runs:
            runs[-1].add(event)
    return [run for run in runs if run.bars]


def waterfall(run: TracedRun, width: int) -> Iterator[str]:
    """Yield the lines of a run: names, times, and bars that show when each part was busy."""
    begin, whole = run.bars[0].begin, max(run.last - run.bars[0].begin, 0.001)
    space = max(_LEAST_BAR, width - _NAME_WIDTH - 12)
    yield f"{run.run_id}  {moment(begin)}  {run.agent} on {run.model}"
    for bar in run.bars:
        seconds = (bar.end or run.last) - bar.begin
        name = f"{'  ' * bar.depth}{one_line(bar.name)}"[:_NAME_WIDTH]
        left = min(space - 1, int((bar.begin - begin) / whole * space))
        length = max(1, min(space - left, round(seconds / whole * space)))
        waited = 0 if bar.first is None else min(length - 1, round((bar.first - bar.begin) / whole * space))
        drawn = f"{' ' * left}{'▁' * waited}{('▇' if bar.end is not None else '░') * (length - waited)}"
        note = f"  {bar.note}" if bar.note else "" if bar.end is not None else "  not ended"
        yield f"{name:<{_NAME_WIDTH}} {_time(seconds):>8}  {drawn}{note}"


def _used(usage: Mapping[str, Any]) -> str:
    cost = usage.get("cost") or 0
    about = " (estimated)" if usage.get("cost_is_estimate") else ""
    money = f", cost {cost:.4f}{about}" if cost else ""
    return f"{usage.get('input_tokens', 0)} in, {usage.get('output_tokens', 0)} out{money}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
