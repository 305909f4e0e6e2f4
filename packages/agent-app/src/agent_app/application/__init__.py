"""`AgentApplication`: each part of it is a module here.

Every operation is one flow. A plain method runs it and waits; its twin with `_async` runs the same flow
on the running event loop.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from agent_app.agents import KEYS, build_runtime, check_config, find_plugins, replace_agents, unused_settings
from agent_app.app_plugins import ApplicationPlugins, Problem
from agent_app.application.actions import Actions
from agent_app.application.approvals import Approvals
from agent_app.application.chat import Chat
from agent_app.application.front_ends import FrontEnds
from agent_app.application.sessions import Sessions
from agent_app.assets import open_assets
from agent_app.events import EventHub
from agent_app.piece_log import PieceLog
from agent_app.restrictions import protected_paths
from agent_app.services import Recent, Services
from agent_app.store import open_store
from agent_app.store.leases import this_process
from agent_core.io.workers import NarrowLane
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_app.assets import AssetStore
    from agent_app.store.base import SessionStore
    from agent_core.plugin.base import PluginWrapper, Problems
    from agent_runtime import AgentRuntime, ModelSpec

IN_MEMORY = "sqlite://"
_STORE_THREADS = 8
"""How many threads may use the sessions for callers on an event loop: more would wait for the database."""
_log = get_logger("app")


class AgentApplication(Sessions, Chat, Approvals, Actions, FrontEnds):
    """Sessions, agents and plugins of one application.

    Args:
        config: `agents` (id to settings), `default_agent`, `models`, `plugins`, `permissions`.
        store: Where sessions live: a store, or the URL of one; in memory by default.
        assets: Where attachments and long tool results live: an asset store, a folder for one, or the
            ``postgresql://…`` URL of a database. By default they live with the sessions if these are in
            PostgreSQL, so that every machine has them; otherwise there are none.
        protected: Files and folders that no tool touches, besides those that the application keeps itself.
        plugins: Plugins of any kind, classes or objects, besides the installed ones. A plugin says its kind
            by its attribute `kind`, or by the group under which it stands, as for entry points:
            ``{"features": [One], "tools": [Another]}``. Otherwise its hooks show it.
        installed: Whether plugins that are installed take part.
        clock: The time, in seconds since 1970.

    Attributes:
        config: The configuration.
        runtime: Resolves and runs the agents.
        store: Where sessions live.

    Raises:
        ConfigError: If the configuration has a key that nobody knows.
        BuildError: If an agent cannot be resolved; with everything that is wrong.
        StoreError: If the store cannot be used.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        store: SessionStore | str = IN_MEMORY,
        assets: AssetStore | PathLike[str] | str | None = None,
        protected: Sequence[PathLike[str] | str] = (),
        plugins: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
        installed: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = check_config(config)
        found = self._found = find_plugins(plugins, installed=installed)
        kept = protected_paths(protected, store, assets)
        self.runtime: AgentRuntime = build_runtime(self.config, found, kept)
        self._is_view = False
        self._made = [name for name, plugin in found.others.items() if isinstance(plugin, type)]
        self.store, self._own_assets = _open_stores(store, assets)
        given = None if isinstance(assets, (str, PathLike)) else assets
        members = ApplicationPlugins(found.applications, self.config)
        self._broken = [Problem(one.name, str(one.problem)) for one in found.problems]
        self._unused = [Problem(*one) for one in unused_settings(self.config, found).items()]
        self._services = Services(
            app=self,
            config=self.config,
            runtime=self.runtime,
            store=self.store,
            assets=self._own_assets if given is None else given,
            plugins=members,
            hub=EventHub(self.store),
            pieces=PieceLog(self.store),
            lane=NarrowLane(_STORE_THREADS),
            owner=f"application {uuid4().hex[:4]} of {this_process()}",
            clock=clock,
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with plugins: those that cannot be used, and what others did wrong so far."""
        found = (*self._broken, *self._services.plugins.problems, *self._unused)
        return (*found, *_mistakes(self.runtime))

    @property
    def is_ephemeral(self) -> bool:
        """Whether sessions are in memory only, and gone when the application is closed."""
        return self.store.url == IN_MEMORY

    @property
    def models(self) -> Mapping[str, ModelSpec]:
        """The declared models, by id."""
        return dict(self.runtime.registries.models.items())

    @property
    def providers(self) -> tuple[str, ...]:
        """The ids of the providers that agents can use."""
        return tuple(self.runtime.registries.providers)

    def use_agents(self, config: Mapping[str, Any]) -> None:
        """Have the agents and models of another configuration from now on, all of them or none.

        A run that is under way ends with the agent that it began with. If a session's agent is gone, it
        continues with the default one. Plugins, providers and their keys are those that the application was
        made with.

        Raises:
            ConfigError: If a declaration cannot be used; `field` names what is wrong.
            ResolveError: If an agent could not run.
        """
        new = check_config(config)
        replace_agents(self.runtime, new, self._found)
        for key in KEYS:
            self.config.pop(key, None)
        self.config.update(new)

    def of_tenant(self, tenant: str) -> AgentApplication:
        """Return this application with the sessions of one tenant alone; the empty name is the default.

        It shares agents, runs and connections with this one, and is closed with it.
        """
        view, store = copy(self), self.store.of_tenant(tenant)
        hub, assets = self._services.hub.of_store(store), self._services.assets
        services = replace(
            self._services, app=view, store=store, hub=hub, recent=Recent(), _bases={},
            assets=None if assets is None else assets.of_tenant(tenant),
        )  # fmt: skip
        vars(view).update(store=store, _services=services, _is_view=True)
        return view

    def close(self) -> None:
        """Let go of the store, and of the assets it was not given; those who follow sessions hear of it.

        Detached runs are cancelled before, and tools that were made for this application end their work: what
        they keep needs a place. Runs on an event loop need it to go on: `stop_runs_async` waits for them.
        """
        if self._is_view:
            return
        self._services.detached.stop(self.cancel)
        self._services.hub.close()
        _close_tools(self.runtime, self._made)
        if self._own_assets is not None:
            self._own_assets.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _mistakes(runtime: AgentRuntime) -> Iterator[Problem]:
    """Yield what plugins of agents did wrong so far; their settings are asked for, which costs nothing."""
    registries = runtime.registries
    providers = [entry.wrapper for _, entry in registries.providers.items()]
    extensions = [extension for provider in providers for extension in provider.extensions]
    others = [entry.wrapper for _, entry in registries.plugins.items()]
    wrappers: list[PluginWrapper] = [*others, *providers, *extensions]
    for wrapper in wrappers:
        mistakes: Problems = []
        wrapper.get_config_schema(mistakes)
        for mistake in mistakes:
            wrapper.log_once(mistake)
        yield from (Problem.of(wrapper.name, mistake) for mistake in wrapper.problems)


def _close_tools(runtime: AgentRuntime, names: Sequence[str]) -> None:
    """Have tools end what they still do; an object that somebody gave may serve others as well."""
    for name in names:
        entry = runtime.registries.plugins.get(name)
        close = getattr(entry.plugin, "close", None) if entry and entry.wrapper.kind == "tool" else None
        try:
            if callable(close):
                close()
        except Exception as error:  # a stranger's code, and the store must be closed
            _log.warning("tool_not_closed", tool=name, error=str(error))


def _open_stores(
    store: SessionStore | str, assets: AssetStore | PathLike[str] | str | None
) -> tuple[SessionStore, AssetStore | None]:
    """Open the stores that were not given; what was opened is closed if the rest cannot be."""
    sessions = open_store(store) if isinstance(store, str) else store
    try:
        return sessions, _open_assets(assets, sessions)
    except BaseException:
        if sessions is not store:
            sessions.close()
        raise


def _open_assets(assets: AssetStore | PathLike[str] | str | None, store: SessionStore) -> AssetStore | None:
    """Open the assets of a place, or of the sessions' own; None if there are none, or others opened them."""
    shared = store.url.startswith(("postgresql:", "postgres:"))
    where = store.url if assets is None and shared else assets
    if not isinstance(where, (str, PathLike)):
        return None

    return open_assets(where)
