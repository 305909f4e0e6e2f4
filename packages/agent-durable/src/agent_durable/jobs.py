"""Jobs: what is to be run, who is able to run it, and what became of it.

Who is able to run a job is named by a capability: the agent's id with a hash of everything that decides how
it behaves, its declaration, its model, and its plugins with their versions. A worker of another version of
the application has other capabilities, and so never picks up a run that it could not resolve, or would
resolve to something else.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent_core import AgentError
from agent_core.encoding import canonical
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_runtime import ResolvedAgent

RUN_ID_DIGITS = 16
Status = Literal["waiting", "running", "suspended", "done", "failed", "cancelled"]
"""The state of a run: in the queue, at work, waiting for decisions, or over in one of three ways."""


SILENT_SECONDS = 6.0
"""How long a worker may be silent before others take its runs."""

FAILURES = frozenset({"error", "workers_lost"})
"""The codes of runs that failed."""


def agent_of(capability: str) -> str:
    """Return the agent that a capability is for."""
    return capability.rpartition(".")[0]


def run_id_for(session_id: str, what: object) -> str:
    """Return the id of the run that answers something in a session: always the same for the same thing.

    So a second submission, by someone who cannot know about the first, changes nothing.
    """
    digest = sha256(f"{session_id}\0{what}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"run-{digest[:RUN_ID_DIGITS]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a session: it answers the messages in its inbox, or acts on a decision.

    Attributes:
        run_id: Its id, the same for every attempt.
        session_id: The session. A session has one job running at a time.
        capability: What a worker must be able to run, see the top of this module.
        tenant: Whose it is, for limits; may be empty.
        provider: The model provider, for limits.
        priority: Smaller is sooner; 0 comes before all others.
        deadline: When it must be done, in seconds since 1970, however often it changes its worker.
        tokens: How many tokens it may use.
        cost: How much it may cost.
        overrides: Settings for its requests.
        person: Who asked for it, if a server knows; a worker may have settings for that person.
        submitted: When it was submitted, in seconds since 1970.
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
    person: str = ""
    submitted: float = 0.0

    @property
    def agent_id(self) -> str:
        return agent_of(self.capability)

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON values."""
        return {**asdict(self), "overrides": dict(self.overrides)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """Read what `to_dict` of this or another version returned; unknown fields are ignored."""
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one step of a run.

    Attributes:
        units: What was done, in order: "model" and "tool NAME CALL"; empty if there was nothing left to do.
        over: Whether the run is over.
        code: Why it is over: the reason's code, "error" if it failed, "workers_lost" if its workers died.
        text: The answer, or what went wrong.
        approvals: The approvals that it waits for.
    """

    units: tuple[str, ...] = ()
    over: bool = False
    code: str = ""
    text: str = ""
    approvals: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        if not self.over:
            return "running"
        if self.code in ("suspended", "cancelled"):
            return "suspended" if self.code == "suspended" else "cancelled"
        return "failed" if self.code in FAILURES else "done"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values, as an engine stores it."""
        return {**asdict(self), "units": list(self.units), "approvals": list(self.approvals)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(**{**data, "units": tuple(data["units"]), "approvals": tuple(data["approvals"])})


class Tries(NamedTuple):
    """How often workers began a job, and how many of them died with it."""

    begun: int = 0
    losses: int = 0


NEVER_TRIED = Tries()


class Queue(NamedTuple):
    """How many jobs wait, and for how many seconds the oldest has waited."""

    waiting: int
    oldest: float


class Bounds(NamedTuple):
    """How many jobs may wait: in all, and of each named tenant."""

    total: int = 10_000
    tenant: int = 2_500


class QueueFull(AgentError):
    """Too many jobs wait to accept another; nothing was written.

    Attributes:
        queue: Which queue is full: "all runs", or "tenant:NAME".
        bound: How many may wait.
        waiting: How many wait.
        next_step: What the user can do.
    """

    category = "limit"

    def __init__(self, queue: str, bound: int, waiting: int) -> None:
        self.queue = queue
        self.bound = bound
        self.waiting = waiting
        option = "--most-waiting" if queue == "all runs" else "--most-waiting-of-tenant"
        self.next_step = (
            "try again later, start more workers, cancel runs that nobody needs, or start a worker with a "
            f"larger {option}"
        )
        super().__init__(
            f"the queue of {queue} is full: {waiting} wait, and at most {bound} may; nothing was submitted: "
            f"{self.next_step}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """A job and its state.

    Attributes:
        worker: The worker that has it, or had it last.
        attempts: How often a worker began it.
        losses: How many workers died with it.
        created: When it was submitted, in seconds since 1970.
        updated: When something last changed.
        steps: How many steps are done.
        last: What the last of them did.
        code: Why it ended, as in `Outcome`; empty before that.
        text: The answer, or what went wrong.
        obstacle: Why no worker can begin it while it waits; empty if one can, or if this was not checked.
    """

    job: Job
    status: Status
    worker: str = ""
    attempts: int = 0
    losses: int = 0
    created: float = 0.0
    updated: float = 0.0
    steps: int = 0
    last: str = ""
    code: str = ""
    text: str = ""
    obstacle: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.status not in ("waiting", "running")


_DIGITS = 12


def capability(app: AgentApplication, agent_id: str) -> str:
    """Return the capability that a worker needs to run an agent.

    Raises:
        ResolveError: If the agent cannot be resolved here either.
    """
    return _named(app.runtime.resolve(agent_id))


def capabilities(app: AgentApplication) -> dict[str, str]:
    """Return what this application can run, by agent, without the agents that cannot be resolved."""
    found = {}
    for agent_id in app.config.get("agents", {}):
        try:
            found[agent_id] = capability(app, agent_id)
        except AgentError:
            continue
    return found


def provider_of(app: AgentApplication, agent_id: str) -> str:
    """Return the provider of an agent's first model."""
    return app.runtime.resolve(agent_id).model.provider


def _named(agent: ResolvedAgent) -> str:
    plugins = {
        decision.plugin: _version(agent, decision.plugin) for decision in agent.decisions if decision.enabled
    }
    about: dict[str, Any] = {
        "spec": agent.spec.to_dict(),
        "model": agent.model.to_dict(),
        "plugins": plugins,
        "tools": sorted(agent.tools),
    }
    digest = sha256(canonical(freeze(about))).hexdigest()
    return f"{agent.spec.id}.{digest[:_DIGITS]}"


def _version(agent: ResolvedAgent, plugin_id: str) -> str:
    owners = (plugin for plugin in agent.env.plugins if getattr(plugin, "name", "") == plugin_id)
    return str(getattr(next(owners, None), "version", ""))
