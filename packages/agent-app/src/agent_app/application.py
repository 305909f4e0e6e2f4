"""`AgentApplication`, the public face: each part of it is a module of `agent_app.face`.

Every operation is one flow. A plain method runs it and waits; its twin with `_async` runs the same flow
on the running event loop.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from agent_app.agents import build_runtime, check_config, find_plugins, unused_settings
from agent_app.app_plugins import ApplicationPlugins, Problem
from agent_app.events import EventHub
from agent_app.face.actions import Actions
from agent_app.face.deciding import Deciding
from agent_app.face.following import Following
from agent_app.face.sessions import Sessions
from agent_app.face.talking import Talking
from agent_app.services import Services
from agent_app.store import open_store
from agent_app.store.leases import this_process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_app.assets import SessionAssetStore
    from agent_app.store.base import SessionStore
    from agent_runtime import AgentRuntime


class AgentApplication(Sessions, Talking, Deciding, Actions, Following):
    """Sessions, agents and plugins of one application.

    Args:
        config: `agents` (id to settings), `default_agent`, `models`, `plugins`, `permissions`.
        store: Where sessions live: a store, or the URL of one; in memory by default.
        assets: Where attachments live: a store, or a folder for one; none by default.
        plugins: Plugins of any kind, classes or objects, beside the installed ones.
        installed: Whether plugins that are installed take part.
        clock: The time, in seconds since 1970.

    Attributes:
        config: The configuration.
        runtime: Resolves and runs the agents.
        store: Where sessions live.
        problems: Plugins that could not be loaded or set up, and why.

    Raises:
        ConfigError: If the configuration has a key that nobody knows.
        BuildError: If an agent cannot be resolved; with everything that is wrong.
        StoreError: If the store cannot be used.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        store: SessionStore | str = "sqlite://",
        assets: SessionAssetStore | Path | str | None = None,
        plugins: Sequence[Any] = (),
        installed: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = check_config(config)
        found = find_plugins(plugins, installed=installed)
        self.runtime: AgentRuntime = build_runtime(self.config, found)
        self.store: SessionStore = open_store(store) if isinstance(store, str) else store
        members = ApplicationPlugins(found.applications, self.config)
        broken = [Problem(one.name, str(one.problem)) for one in found.problems]
        unused = [Problem(*one) for one in unused_settings(self.config, found).items()]
        self.problems: tuple[Problem, ...] = (*broken, *members.problems, *unused)
        self._services = Services(
            app=self,
            config=self.config,
            runtime=self.runtime,
            store=self.store,
            assets=_open_assets(assets),
            plugins=members,
            hub=EventHub(self.store),
            owner=f"application {uuid4().hex[:4]} of {this_process()}",
            clock=clock,
        )

    def close(self) -> None:
        """Let go of the store; those who follow sessions are told."""
        self._services.hub.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _open_assets(assets: SessionAssetStore | Path | str | None) -> SessionAssetStore | None:
    if assets is None or not isinstance(assets, (str, Path)):
        return assets
    from agent_app.assets import SessionAssetStore

    return SessionAssetStore(Path(assets))
