"""The runs of a session and what each did when, from the stored events alone.

A log can be long, and most of it is text. So it is read from its end, page by page, and only as far as it
takes: to the runs that are listed, or to the beginning of the run that is drawn.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_core.clean_text import one_line
from agent_core.steps import Flow, run_blocking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_app.services import Services

Kind = Literal["run", "step", "model", "tool", "retry", "fallback", "handoff", "wait"]
_PAGE: Final = 1000
_ENDS: Final = ("run_end", "error", "final", "turn_end")


@dataclass(slots=True)
class Part:
    """Something that took a while.

    Attributes:
        kind: What it is.
        name: The agent, the number of the step, the model, the tool; empty for others.
        depth: How far it is indented: 0 is the run.
        begin: When it began, in seconds since 1970.
        end: When it ended; None if it never did.
        note: What else is known of it: tokens, costs, failures.
        first: When the first token of an answer came; None if that is not known, or it is not an answer.
    """

    kind: Kind
    name: str
    depth: int
    begin: float
    end: float | None = None
    note: str = ""
    first: float | None = None


@dataclass(slots=True)
class TracedRun:
    """One run of a session.

    Attributes:
        parts: The run, its steps, its answers and its calls, in the order in which they began. A run that
            waited for a decision has a part for each time that it went on.
    """

    run_id: str
    agent: str
    model: str
    parts: list[Part] = field(default_factory=list)
    _open: dict[str, Part] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        parts = [asdict(part) for part in self.parts]
        return {"run_id": self.run_id, "agent": self.agent, "model": self.model, "parts": parts}

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
            self._begin("run", Part("run", event["agent_id"], 0, at))
        elif kind == "step_start":
            self._begin("step", Part("step", str(event["round"]), 1, at))
            self._begin("model", Part("model", self.model, 2, at))
        elif kind == "tool_call_start":
            self._begin(event["call_id"], Part("tool", event["name"], 2, at))
        elif kind in ("retry", "fallback"):
            self.parts.append(Part(kind, "", 3, at, at, one_line(event["message"])))
        elif kind == "handoff":
            self.parts.append(Part("handoff", event["to_agent"], 1, at, at))
        elif kind == "suspended":
            self.parts.append(Part("wait", "", 1, at, at))

    def _end_part(self, event: Mapping[str, Any], at: float) -> None:
        kind = event["type"]
        if kind == "usage" and not event.get("beside"):
            self._end("model", at, self._answered(event))
        elif kind == "tool_call_result":
            self._end(event["call_id"], at, "failed" if event["is_error"] else "")
        elif kind == "step_end":
            self._end("model", at)
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
        used, part, first_at = _used(event["usage"]), self._open.get("model"), event.get("first_at")
        if part is None or not isinstance(first_at, (int, float)):
            return used
        part.first = first_at
        return f"{used}, first token after {shown_time(first_at - part.begin)}"

    def _end_run(self, event: Mapping[str, Any], at: float) -> None:
        reason, usage = event.get("reason") or {}, event.get("usage") or {}
        self._end("run", at, ", ".join(part for part in (reason.get("code"), _used(usage)) if part))

    def _begin(self, key: str, part: Part) -> None:
        self.parts.append(part)
        self._open[key] = part

    def _end(self, key: str, at: float, note: str = "") -> None:
        part = self._open.pop(key, None)
        if part is not None:
            part.end, part.note = at, note

    @property
    def last(self) -> float:
        """When the last thing happened that is known."""
        return max((part.end or part.begin for part in self.parts), default=0.0)


def traced_runs(events: Iterable[Mapping[str, Any]]) -> list[TracedRun]:
    """Return the runs of a log, or of a piece of it, that have times."""
    runs: dict[str, TracedRun] = {}
    run: TracedRun | None = None
    for event in events:
        if event.get("type") == "run_start":
            new = TracedRun(event["run_id"], event["agent_id"], event["model"])
            run = runs.setdefault(event["run_id"], new)
        if run is not None:
            run.add(event)
    return [run for run in runs.values() if run.parts]


def list_runs(services: Services, session_id: str, before: int | None, limit: int) -> Flow[dict[str, Any]]:
    """Return the last runs of a session, the latest first."""
    return (yield from run_blocking(partial(_list_runs, services, session_id, before, limit)))


def _list_runs(services: Services, session_id: str, before: int | None, limit: int) -> dict[str, Any]:
    services.store.info(session_id)
    found: dict[str, dict[str, Any]] = {}
    end: Mapping[str, Any] = {}
    for event in _backwards(services, session_id, before):
        if event["type"] in _ENDS and not end:
            end = event
        if event["type"] != "run_start":
            continue
        known = found.get(event["run_id"])
        if known is None and len(found) == limit:
            return {"items": list(found.values()), "before": min(one["seq"] for one in found.values())}
        if known is None:
            reason = "error" if end.get("type") == "error" else (end.get("reason") or {}).get("code")
            about = {"run_id": event["run_id"], "agent_id": event["agent_id"], "model": event["model"]}
            known = found[event["run_id"]] = {**about, "reason": reason}
        known["at"], known["seq"], end = event.get("at"), event["seq"], {}
    return {"items": list(found.values()), "before": None}


def read_trace(services: Services, session_id: str, run_id: str) -> Flow[dict[str, Any] | None]:
    """Return what one run of a session did when; None if its times are not in the log."""
    return (yield from run_blocking(partial(_read_trace, services, session_id, run_id)))


def _read_trace(services: Services, session_id: str, run_id: str) -> dict[str, Any] | None:
    services.store.info(session_id)
    segment: list[Mapping[str, Any]] = []
    found: list[Mapping[str, Any]] = []
    for event in _backwards(services, session_id, None):
        if "at" in event or event["type"] in _ENDS:
            segment.append(event)
        if event["type"] != "run_start":
            continue
        if event["run_id"] == run_id:
            found += segment
            if not event.get("resumed"):
                break
        segment = []
    runs = traced_runs(reversed(found))
    return runs[0].to_dict() if runs else None


def _backwards(services: Services, session_id: str, before: int | None) -> Iterator[dict[str, Any]]:
    while page := services.store.last_events(session_id, before=before, limit=_PAGE):
        yield from page
        before = page[-1]["seq"]


def shown_time(seconds: float) -> str:
    """Return a length of time for people."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _used(usage: Mapping[str, Any]) -> str:
    cost = usage.get("cost") or 0
    about = " (estimated)" if usage.get("cost_is_estimate") else ""
    money = f", cost {cost:.4f}{about}" if cost else ""
    return f"{usage.get('input_tokens', 0)} in, {usage.get('output_tokens', 0)} out{money}"
