"""What every operation of the application works with."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_app.agents import choose_agent
from agent_core import AgentError, Cancellation, ConfigError
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_app.app_plugins import ApplicationPlugins
    from agent_app.assets import SessionAssetStore
    from agent_app.events import EventHub
    from agent_app.store.base import SessionStore, Stored
    from agent_core import Session
    from agent_runtime import AgentRuntime, ResolvedAgent

AGENT = "agent_id"
OVERRIDES = "overrides"
_log = get_logger("app")


@dataclass(slots=True)
class ActiveRun:
    """A run that goes on in this process.

    Attributes:
        cancellation: Stops it.
        interrupted: True if a message came that shall not wait for its end.
    """

    cancellation: Cancellation = field(default_factory=Cancellation)
    interrupted: bool = False


class ActiveRuns:
    """The runs of this process, one per session at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, ActiveRun] = {}

    def begin(self, session_id: str) -> ActiveRun | None:
        """Note a run; None if the session has one."""
        with self._lock:
            if session_id in self._runs:
                return None
            run = self._runs[session_id] = ActiveRun()
            return run

    def end(self, session_id: str) -> None:
        """Forget a run."""
        with self._lock:
            self._runs.pop(session_id, None)

    def get(self, session_id: str) -> ActiveRun | None:
        """Return the run of a session, if it has one."""
        with self._lock:
            return self._runs.get(session_id)


class Recent:
    """The sessions that were stored or read last."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._stored: dict[str, Stored] = {}

    def get(self, session_id: str) -> Stored | None:
        """Return what was last stored of a session, as far as this process knows."""
        with self._lock:
            return self._stored.get(session_id)

    def keep(self, stored: Stored) -> Stored:
        """Remember a session, and forget the one that was used least recently if there are too many."""
        session_id = stored.session.session_id
        with self._lock:
            self._stored.pop(session_id, None)
            self._stored[session_id] = stored
            if len(self._stored) > self._size:
                del self._stored[next(iter(self._stored))]
        return stored

    def forget(self, session_id: str) -> None:
        """Forget a session."""
        with self._lock:
            self._stored.pop(session_id, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that belongs to one application.

    Attributes:
        app: The application itself, for plugins.
        owner: What this process is called in leases.
        clock: The time, in seconds since 1970.
        recent: What was last stored of the sessions in use, so that only what is new is written.
    """

    app: Any
    config: Mapping[str, Any]
    runtime: AgentRuntime
    store: SessionStore
    assets: SessionAssetStore | None
    plugins: ApplicationPlugins
    hub: EventHub
    owner: str
    clock: Callable[[], float]
    active: ActiveRuns = field(default_factory=ActiveRuns)
    recent: Recent = field(default_factory=Recent)

    def agent_of(self, session: Session) -> str | None:
        """Return the agent that a session belongs to, or the default one."""
        own = session.metadata.get(AGENT)
        known = own if isinstance(own, str) and own in self.config.get("agents", {}) else None
        return choose_agent(self.config, known)

    def resolve(self, session: Session, agent_id: str | None = None) -> ResolvedAgent:
        """Return the agent of a session, or the one that is named, ready to run.

        Raises:
            ConfigError: If there is none.
            ResolveError: If it cannot run as it is declared.
        """
        agent_id = agent_id or self.agent_of(session)
        if agent_id is None:
            raise ConfigError(
                "no agent is meant: declare agents, and default_agent if there are several",
                field="default_agent",
            )
        return self.runtime.resolve(agent_id)

    def resolve_if_possible(self, session: Session) -> ResolvedAgent | None:
        """Return the agent of a session; None if it cannot be had, which must not keep a session closed."""
        try:
            return self.resolve(session)
        except AgentError as error:
            if self.agent_of(session) is not None:
                _log.warning("agent_not_resolved", session=session.session_id, error=str(error))
            return None

    def forget(self, session_id: str) -> None:
        """Let go of a session that was deleted, and tell those who follow it."""
        self.recent.forget(session_id)
        self.hub.wake(session_id)

    def read(self, session_id: str) -> Stored:
        """Return a session as it is stored now; what is known of it already is not read again."""
        known = self.recent.get(session_id)
        if known is not None and known.revision == self.store.info(session_id).revision:
            return known
        return self.recent.keep(self.store.load(session_id))
