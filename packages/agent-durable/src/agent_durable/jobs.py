"""What is to be run, and what became of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_ID_DIGITS = 16
Status = Literal["waiting", "running", "suspended", "done", "failed", "cancelled"]
"""Where a run is: in the queue, at work, waiting for decisions, or over in one of three ways."""


def run_id_for(session_id: str, what: object) -> str:
    """Return the id of the run that answers something in a session: always the same for the same thing.

    So whoever submits it once more, not knowing whether it was submitted, changes nothing.
    """
    digest = sha256(f"{session_id}\0{what}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"run-{digest[:RUN_ID_DIGITS]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a session: what waits in its inbox, or what was decided, is answered.

    Attributes:
        run_id: What it is called; the same for every try at it.
        session_id: The session. Of one session, one job runs at a time.
        capability: What a worker must be able to do for it, see `agent_durable.capability`.
        tenant: Whose it is, for limits; empty for nobody's.
        provider: Who answers, for limits.
        priority: The smaller, the sooner; 0 before all others.
        deadline: Until when it must be done, in seconds since 1970, however often it changes its worker.
        tokens: How many tokens it may use.
        cost: How much it may cost.
        overrides: Settings for its requests.
        submitted: When it was asked for, in seconds since 1970.
    """

    run_id: str
    session_id: str
    capability: str
    tenant: str = ""
    provider: str = ""
    priority: int = 0
    deadline: float | None = None
    tokens: int | None = None
    cost: float | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    submitted: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain data."""
        return {**asdict(self), "overrides": dict(self.overrides)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """Read what `to_dict` made, of this or of another version: fields that nobody knows are left out."""
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one step of a run came to.

    Attributes:
        units: What was done: "model", or "tool NAME CALL", several if they ran at the same time; empty if
            nothing was left to do.
        over: Whether the run is over.
        code: Why it is: the reason's code, "error" if it failed.
        text: The answer, or what went wrong.
        approvals: What it waits for.
    """

    units: tuple[str, ...] = ()
    over: bool = False
    code: str = ""
    text: str = ""
    approvals: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """What that means for the job."""
        if not self.over:
            return "running"
        known: dict[str, Status] = {"error": "failed", "suspended": "suspended", "cancelled": "cancelled"}
        return known.get(self.code, "done")

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data, as an engine remembers it."""
        return {**asdict(self), "units": list(self.units), "approvals": list(self.approvals)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        """Read what `to_dict` made."""
        return cls(**{**data, "units": tuple(data["units"]), "approvals": tuple(data["approvals"])})


class Queue(NamedTuple):
    """How many jobs wait, and for how many seconds the oldest of them."""

    waiting: int
    oldest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """What is known of a job.

    Attributes:
        worker: Who has it, or had it last.
        attempts: How often somebody began with it.
        created: When it was submitted, in seconds since 1970.
        updated: When something last changed.
        steps: How many steps are done.
        last: What the last of them did.
        code: Why it ended: the reason's code, "error" if it failed; empty while it has not.
        text: The answer, or what went wrong.
    """

    job: Job
    status: Status
    worker: str = ""
    attempts: int = 0
    created: float = 0.0
    updated: float = 0.0
    steps: int = 0
    last: str = ""
    code: str = ""
    text: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.status not in ("waiting", "running")
