"""What every operation of the application works with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_app.agents import build_agent_config, choose_agent, resolve_request_config
from agent_app.detached import DetachedRuns
from agent_app.store.pages import is_long
from agent_app.store.records import native_items, read_all
from agent_core import AgentError, Cancellation, ConfigError
from agent_core.context import LIFECYCLE_FACTS, RESERVED_KEYS, without_reserved
from agent_core.core.plugins import check_context
from agent_core.frozen import FrozenDict, freeze
from agent_core.log import get_logger
from agent_core.native import PROVENANCE
from agent_core.steps import Flow, run_blocking
from agent_runtime import ModelSpec
from agent_runtime.retry import RetryingExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_app.app_plugins import ApplicationPlugins
    from agent_app.assets import AssetStore
    from agent_app.events import EventHub
    from agent_app.piece_log import PieceLog
    from agent_app.store.base import SessionStore, Stored
    from agent_core import AgentCore, Session
    from agent_core.events import Event
    from agent_core.steps import Lane
    from agent_runtime import AgentRuntime, ResolvedAgent
    from agent_runtime.executor import Executor, ProviderExecutor
    from agent_runtime.registries import Registry

AGENT = "agent_id"
OVERRIDES = "overrides"
Readings = dict[str, dict[int, "Session"]]
"""The sessions that an action was given, by id and revision."""
_readings: ContextVar[Readings | None] = ContextVar("readings", default=None)
APPLICATION_KEYS: Final = frozenset({"app", "application", "base_config", "session_asset_store"})
"""The keys of the context that the application sets."""
REQUEST_FACTS: Final = frozenset({"reason", "title", "delete_reason"})
"""What the application says about lifecycles; the caller of a request cannot."""
_log = get_logger("app")


@dataclass(slots=True)
class ActiveRun:
    """A run that goes on in this process.

    Attributes:
        cancellation: Stops it.
        interrupted: True if a message arrived that should not wait for its end.
        is_run: Whether it is a run of an agent, and not something shorter, such as a save.
    """

    cancellation: Cancellation = field(default_factory=Cancellation)
    interrupted: bool = False
    is_run: bool = False


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


class RunningActions:
    """The actions of application plugins that are at work in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[tuple[str, str, Cancellation]] = []

    @contextmanager
    def running(self, plugin: str, action_id: str) -> Iterator[Cancellation]:
        """Have an action known while the block lasts, so that it can be cancelled."""
        entry = (plugin, action_id, Cancellation())
        with self._lock:
            self._running.append(entry)
        try:
            yield entry[2]
        finally:
            with self._lock:
                self._running.remove(entry)

    def cancel(self, plugin: str, action_id: str) -> bool:
        """Cancel an action wherever it is at work; False if it is nowhere."""
        with self._lock:
            found = [token for *name, token in self._running if name == [plugin, action_id]]
        for token in found:
            token.cancel()
        return bool(found)


class Origin(NamedTuple):
    """The stored version that a session is, or was made of.

    Attributes:
        recent: Whose it is: revisions of different applications cannot be compared.
    """

    recent: Recent
    revision: int


def is_older(session: Session, other: Session) -> bool:
    """Say whether a session is known to be made of an earlier version than another one."""
    mine, theirs = session.origin, other.origin
    if not isinstance(mine, Origin) or not isinstance(theirs, Origin) or mine.recent is not theirs.recent:
        return False
    return mine.revision < theirs.revision


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
        stored.session.with_origin(Origin(self, stored.revision))
        with self._lock:
            self._stored.pop(session_id, None)
            self._stored[session_id] = stored
            if len(self._stored) > self._size:
                del self._stored[next(iter(self._stored))]
        return stored

    def origin(self, session: Session) -> int | None:
        """Return the revision that a session was made of; None if that is not known."""
        origin = session.origin
        return origin.revision if isinstance(origin, Origin) and origin.recent is self else None

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
        pieces: Logs the pieces of answers.
        lane: Has threads write and read sessions, a few at a time: more would only wait for the database.
        recent: What was last stored of the sessions in use, so that only what is new is written.
    """

    app: Any
    config: Mapping[str, Any]
    runtime: AgentRuntime
    store: SessionStore
    assets: AssetStore | None
    plugins: ApplicationPlugins
    hub: EventHub
    pieces: PieceLog
    lane: Lane
    owner: str
    clock: Callable[[], float]
    active: ActiveRuns = field(default_factory=ActiveRuns)
    detached: DetachedRuns = field(default_factory=DetachedRuns)
    actions: RunningActions = field(default_factory=RunningActions)
    recent: Recent = field(default_factory=Recent)
    _bases: dict[str, tuple[object, FrozenDict]] = field(default_factory=dict)

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
        return self._with_own_model(self.runtime.resolve(agent_id), session)

    def _with_own_model(self, agent: ResolvedAgent, session: Session) -> ResolvedAgent:
        """Return the agent with the model that its session asks for; an unknown model is left alone.

        The session's overrides name a declared model, PROVIDER:MODEL, or SERVER:MODEL of a server that has a
        name. Anything else under that key is a setting of the agent's own provider.
        """
        wanted = own_overrides(session).get("model")
        if not isinstance(wanted, str):
            return agent
        provider, colon, model = wanted.partition(":")
        models, registries = agent.models, self.runtime.registries
        if colon and wanted not in models:
            spec = served_model(registries.models, wanted)
            if spec is None and provider in registries.providers:
                spec = ModelSpec(wanted, provider, model)
            if spec is not None:
                registries.models.replace(wanted, spec)
                models = self.runtime.resolve(agent.spec.id).models
        return _asking(agent, models[wanted]) if wanted in models else agent

    def resolve_if_possible(self, session: Session) -> ResolvedAgent | None:
        """Return the agent of a session; None if it cannot be had, which must not keep a session closed."""
        try:
            return self.resolve(session)
        except AgentError as error:
            if self.agent_of(session) is not None:
                _log.warning("agent_not_resolved", session=session.session_id, error=str(error))
            return None

    def base_config(self, agent: ResolvedAgent | None) -> Mapping[str, Any]:
        """Return what plugins find as `base_config`: the application's configuration and an agent's, flat."""
        if agent is None:
            return self.config
        known = self._bases.get(agent.spec.id)
        if known is None or known[0] is not agent.config:  # it is the same one from request to request
            flat = {**self.config, **build_agent_config(agent.config, agent.spec.id)}
            known = self._bases[agent.spec.id] = (agent.config, freeze(flat))
        return known[1]

    def given(self, session: Session) -> Session:
        """Return a session that a caller gets; if that is an action, note which revision it has seen."""
        readings = _readings.get()
        if readings is not None:
            known = self.recent.get(session.session_id)
            if known is not None and known.session is session:
                readings.setdefault(session.session_id, {})[known.revision] = session
        return session

    def forget(self, session_id: str) -> None:
        """Let go of a session that was deleted, and tell those who follow it."""
        self.recent.forget(session_id)
        self.hub.wake(session_id)

    def at_hand(self, session_id: str) -> Stored | None:
        """Return a session as it is stored now, if that is known without waiting."""
        known = self.recent.get(session_id)
        return known if known is not None and self.store.is_current(known) else None

    @property
    def agents_act(self) -> bool:
        """Whether a plugin of any agent has actions that lifecycles could run."""
        registries = self.runtime.registries
        return any(entry.wrapper.has("get_actions") for _, entry in registries.plugins.items()) or any(
            one.has("get_actions")
            for _, entry in registries.providers.items()
            for one in entry.wrapper.extensions
        )

    def last_event(self, session_id: str) -> int:
        """Return the number of a session's last event, 0 if it has none."""
        last = self.store.last_events(session_id, limit=1)
        return int(last[0]["seq"]) if last else 0

    def read(self, session_id: str, revision: int | None = None) -> Stored:
        """Return a session as it is stored now; what is known of it already is not read again.

        Args:
            revision: Its revision, for a caller who knows that nobody changes it.
        """
        known = self.recent.get(session_id)
        if known is not None:
            now = self.store.info(session_id).revision if revision is None else revision
            if known.revision == now:
                return known
        return self.recent.keep(self.store.load(session_id))


class ApplicationBase:
    """What every part of an application is made of.

    Attributes:
        config: The configuration.
    """

    config: dict[str, Any]
    _services: Services


def read_whole(session: Session) -> Flow[None]:
    """Have a long session read before it is looked through, where waiting for the store holds nobody up."""
    if is_long(session.messages, native_items(session)):
        yield from run_blocking(partial(read_all, session))


def read_for_request(
    session: Session, agent: ResolvedAgent, tell: Callable[[list[Event]], Flow[None]]
) -> Flow[None]:
    """Have of a long session read what a request of an agent sends, where that holds nobody up.

    Mostly these are the native items alone: their messages are known by the links of the integrity chain.
    Where there are none of this provider, all messages are read and converted, which takes seconds.
    """
    items = native_items(session)
    if not is_long(session.messages, items):
        return
    made_by = session.metadata.get(PROVENANCE)
    provider = made_by.get("provider") if isinstance(made_by, Mapping) else None
    has_items = session.seal is not None and provider == agent.model.provider and len(items)
    if not has_items:
        text = f"preparing {len(session.messages):,} messages for the model, once"
        yield from tell([{"type": "status", "text": text}])
    if has_items and agent.spec.context_policy is None:
        yield from run_blocking(items.read)
    else:
        yield from run_blocking(partial(read_all, session))


@contextmanager
def noting_readings() -> Iterator[Readings]:
    """Note the revisions of sessions that whoever runs in this block is given by the application."""
    readings: Readings = {}
    token = _readings.set(readings)
    try:
        yield readings
    finally:
        _readings.reset(token)


def caller_context(
    services: Services, context: object, *, lifecycle: str | None = None, is_request: bool = False
) -> Mapping[str, Any]:
    """Return what a caller adds for plugins without the platform's own keys; one warning names those.

    This is done once, where the context comes in, however many lifecycles and requests it is for.

    Args:
        lifecycle: The lifecycle that the caller runs, and of which it may say what it is about.
        is_request: Whether it is the caller of a request, which has lifecycles that the application runs.

    Raises:
        ArgumentTypeError: If it is not a mapping.
    """
    extra = check_context(context) or {}
    known = {"app": services.app, "application": services.app, "trigger_source": "application"}
    reserved = RESERVED_KEYS | APPLICATION_KEYS
    if is_request:
        reserved |= REQUEST_FACTS
    if lifecycle is not None:
        reserved -= LIFECYCLE_FACTS
        known["lifecycle"] = lifecycle
    return without_reserved(extra, reserved, known)


def core_of(services: Services, session: Session) -> tuple[AgentCore, dict[str, Any]]:
    """Return the core of a session's agent, and the settings of its requests."""
    agent = services.resolve(session)
    return agent.core, effective_config(agent, session, {})


def effective_config(agent: ResolvedAgent, session: Session, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request: the agent's, the session's own, then the caller's."""
    return resolve_request_config(agent.config, own_settings(agent, session), overrides)


def own_settings(agent: ResolvedAgent, session: Session) -> dict[str, Any]:
    """Return the session's own settings; a model of ours that it asks for is the agent's already."""
    own = own_overrides(session)
    return {key: value for key, value in own.items() if (key, value) != ("model", agent.model.id)}


def own_overrides(session: Session) -> Mapping[str, Any]:
    """Return the settings that a session has of its own."""
    own = session.metadata.get(OVERRIDES)
    return own if isinstance(own, Mapping) else {}


def _asking(agent: ResolvedAgent, asked: ProviderExecutor) -> ResolvedAgent:
    """Return an agent that asks another model first; retries and fallbacks stay."""
    provider: Executor = asked
    if isinstance(agent.provider, RetryingExecutor):
        others = [one for one in agent.provider.targets[1:] if one.model.id != asked.model.id]
        provider = replace(agent.provider, targets=(asked, *others))
    return replace(agent, model=asked.model, provider=provider, config=asked.config)


def served_model(models: Registry[ModelSpec], wanted: str) -> ModelSpec | None:
    """Return the model SERVER:MODEL of a server that was set up under a name; None if there is none.

    A declared model with an address of its own is such a server: its other models are asked in the same way.
    """
    server, colon, model = wanted.partition(":")
    spec = models.get(server)
    if not colon or spec is None or not spec.config.get("base_url"):
        return None
    return ModelSpec(wanted, spec.provider, model, config=spec.config)
