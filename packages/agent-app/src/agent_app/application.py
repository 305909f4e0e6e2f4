"""The public face: sessions that are kept, talked to, forked, searched; each method in two forms.

Every operation is one flow. A plain method runs it and waits; its twin with `_async` runs the same flow
on the running event loop.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from agent_app import operations, permissions, run
from agent_app.agents import build_runtime, check_config, find_plugins, unused_settings
from agent_app.app_plugins import ApplicationPlugins, Problem
from agent_app.events import EventHub
from agent_app.run import Request
from agent_app.services import Services
from agent_app.store import open_store
from agent_app.store.leases import this_process
from agent_core import ArgumentError, AsyncEventStream, EventStream
from agent_core.drivers import call, call_async
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, ask, run_blocking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from agent_app.assets import SessionAssetStore
    from agent_app.store.base import (
        Approval,
        Grant,
        GrantEffect,
        GrantScope,
        InputMode,
        Page,
        SessionInfo,
        SessionStore,
        Waiting,
    )
    from agent_core import AgentCore, Message, Session
    from agent_runtime import AgentRuntime, Checkpoint


class AgentApplication:
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

    # Sessions

    def create_session(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Make a session, let plugins set it up, and store it.

        Raises:
            ArgumentError: If the agent is not declared.
            SessionExists: If the id is taken.
        """
        return call(operations.create(self._services, agent_id, session_id, metadata))

    async def create_session_async(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Do what `create_session` does, on the running event loop."""
        return await call_async(operations.create(self._services, agent_id, session_id, metadata))

    def create_session_ephemeral(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Make a session and let plugins set it up; it is not stored."""
        return call(operations.create_ephemeral(self._services, agent_id, session_id, metadata))

    async def create_session_ephemeral_async(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Do what `create_session_ephemeral` does, on the running event loop."""
        return await call_async(operations.create_ephemeral(self._services, agent_id, session_id, metadata))

    def load_session(self, session_id: str) -> Session:
        """Return a stored session.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        return call(operations.load(self._services, session_id))

    async def load_session_async(self, session_id: str) -> Session:
        """Do what `load_session` does, on the running event loop."""
        return await call_async(operations.load(self._services, session_id))

    def read_messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Return some messages of a session, the last ones or those before an index, without the rest."""
        return call(operations.read_messages(self._services, session_id, before, limit))

    async def read_messages_async(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        """Do what `read_messages` does, on the running event loop."""
        return await call_async(operations.read_messages(self._services, session_id, before, limit))

    def list_sessions(self, query: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
        """Return stored sessions by pages, the last changed first; with a query those that have its words."""
        return call(operations.list_sessions(self._services, query, cursor, limit))

    async def list_sessions_async(
        self, query: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page:
        """Do what `list_sessions` does, on the running event loop."""
        return await call_async(operations.list_sessions(self._services, query, cursor, limit))

    def rename_session(self, session_id: str, title: str) -> SessionInfo:
        """Give a session another title."""
        return call(operations.rename(self._services, session_id, title))

    async def rename_session_async(self, session_id: str, title: str) -> SessionInfo:
        """Do what `rename_session` does, on the running event loop."""
        return await call_async(operations.rename(self._services, session_id, title))

    def save_session(self, session: Session) -> Session:
        """Store what is new in a session, or all of an ephemeral one, after a last look of its plugins.

        Raises:
            SessionBusy, SessionHeld: If the session is in use, here or in another process.
        """
        return call(operations.save(self._services, session))

    async def save_session_async(self, session: Session) -> Session:
        """Do what `save_session` does, on the running event loop."""
        return await call_async(operations.save(self._services, session))

    def delete_session(self, session_id: str, reason: str = "user_request") -> None:
        """Delete a session; a run of it in this process is cancelled."""
        call(operations.delete(self._services, session_id, reason))

    async def delete_session_async(self, session_id: str, reason: str = "user_request") -> None:
        """Do what `delete_session` does, on the running event loop."""
        await call_async(operations.delete(self._services, session_id, reason))

    def fork_session(self, session_id: str, *, upto_index: int, agent_id: str | None = None) -> Session:
        """Make a session that begins like another and ends with message *upto_index*."""
        return call(operations.fork(self._services, session_id, upto_index, agent_id))

    async def fork_session_async(
        self, session_id: str, *, upto_index: int, agent_id: str | None = None
    ) -> Session:
        """Do what `fork_session` does, on the running event loop."""
        return await call_async(operations.fork(self._services, session_id, upto_index, agent_id))

    def edit_message(self, session_id: str, index: int, content: str) -> Session:
        """Make a branch that ends with another version of a message; the session stays as it is."""
        return call(operations.edit_message(self._services, session_id, index, content))

    async def edit_message_async(self, session_id: str, index: int, content: str) -> Session:
        """Do what `edit_message` does, on the running event loop."""
        return await call_async(operations.edit_message(self._services, session_id, index, content))

    def regenerate(self, session_id: str, index: int) -> Session:
        """Make a branch that ends before an answer; `chat` on it asks the model again."""
        return call(operations.regenerate(self._services, session_id, index))

    async def regenerate_async(self, session_id: str, index: int) -> Session:
        """Do what `regenerate` does, on the running event loop."""
        return await call_async(operations.regenerate(self._services, session_id, index))

    def export_session(
        self, session_id: str, path: Path, *, redact: bool = True, events: bool = False
    ) -> None:
        """Write a session with its attachments to a file; secrets are taken out unless told otherwise.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        call(operations.export(self._services, session_id, path, redact=redact, events=events))

    async def export_session_async(
        self, session_id: str, path: Path, *, redact: bool = True, events: bool = False
    ) -> None:
        """Do what `export_session` does, on the running event loop."""
        await call_async(operations.export(self._services, session_id, path, redact=redact, events=events))

    def import_session(self, source: Path | bytes | str, *, agent_id: str | None = None) -> SessionInfo:
        """Store a session from a file, its bytes, or JSON, under ids of its own.

        Raises:
            ImportRefused: If it is no session, is damaged, or is larger than allowed; nothing was kept.
        """
        return call(operations.import_file(self._services, source, agent_id))

    async def import_session_async(
        self, source: Path | bytes | str, *, agent_id: str | None = None
    ) -> SessionInfo:
        """Do what `import_session` does, on the running event loop."""
        return await call_async(operations.import_file(self._services, source, agent_id))

    # Agents

    def update_agent(self, agent_id: str, session: Session) -> tuple[AgentCore, dict[str, Any], Session]:
        """Return an agent's core and base configuration, and the session as its own; nothing is stored."""
        return call(operations.update_agent(self._services, agent_id, session))

    async def update_agent_async(
        self, agent_id: str, session: Session
    ) -> tuple[AgentCore, dict[str, Any], Session]:
        """Do what `update_agent` does, on the running event loop."""
        return await call_async(operations.update_agent(self._services, agent_id, session))

    def switch_agent(self, session_id: str, agent_id: str) -> Session:
        """Give a stored session to another agent."""
        return call(operations.switch_agent(self._services, session_id, agent_id))

    async def switch_agent_async(self, session_id: str, agent_id: str) -> Session:
        """Do what `switch_agent` does, on the running event loop."""
        return await call_async(operations.switch_agent(self._services, session_id, agent_id))

    # Talking

    def send_request(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None = None,
        *,
        stream: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> EventStream[Session]:
        """Run an agent on a session that the caller keeps, with what `update_agent` returned.

        The last event is `final` with `session` and `messages`, or `error`.
        """
        return EventStream(self._send(core, session, base_config, overrides, stream=stream, context=context))

    def send_request_async(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None = None,
        *,
        stream: bool = True,
        context: Mapping[str, Any] | None = None,
    ) -> AsyncEventStream[Session]:
        """Do what `send_request` does, on the running event loop."""
        flow = self._send(core, session, base_config, overrides, stream=stream, context=context)
        return AsyncEventStream(flow)

    def chat(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        kept: Callable[[Checkpoint], object] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> EventStream[Session]:
        """Say something in a stored session; yield what happens, and last `final` or `error`.

        Without a text it goes on with what was decided or enqueued meanwhile. With *take_over* it takes the
        session from another process that has it, which cannot write it any more then. With a *run_id*
        another process can go on where this one stopped: it asks again, without a text, under the same id.
        *kept* is called with each checkpoint, once it is stored. *limits* are the run's `timeout`,
        `token_budget` and `cost_budget`.

        Raises:
            SessionBusy, SessionHeld: If the session is running, here or elsewhere; at the first event.
        """
        request = _request(text, attachments, stream, overrides, context, take_over, run_id, kept, limits)
        return EventStream(run.chat(self._services, session_id, request))

    def chat_async(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        stream: bool = True,
        overrides: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        take_over: bool = False,
        run_id: str | None = None,
        kept: Callable[[Checkpoint], object] | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> AsyncEventStream[Session]:
        """Do what `chat` does, on the running event loop."""
        request = _request(text, attachments, stream, overrides, context, take_over, run_id, kept, limits)
        return AsyncEventStream(run.chat(self._services, session_id, request))

    def enqueue(self, session_id: str, text: str, mode: InputMode = "steer") -> Waiting:
        """Say something while a run goes on: between two steps, after it, or in place of it.

        The message is safe when this returns. Without a run it waits for the next `chat`.
        """
        return call(operations.enqueue(self._services, session_id, text, mode))

    async def enqueue_async(self, session_id: str, text: str, mode: InputMode = "steer") -> Waiting:
        """Do what `enqueue` does, on the running event loop."""
        return await call_async(operations.enqueue(self._services, session_id, text, mode))

    def cancel(self, session_id: str) -> bool:
        """Stop the run of a session in this process; what it produced is kept. False if there is none."""
        active = self._services.active.get(session_id)
        if active is not None:
            active.cancellation.cancel()
        return active is not None

    async def cancel_async(self, session_id: str) -> bool:
        """Do what `cancel` does, which never waits."""
        return self.cancel(session_id)

    def approvals(self, session_id: str | None = None) -> Sequence[Approval]:
        """Return the decisions that runs wait for."""
        return call(operations.approvals(self._services, session_id))

    async def approvals_async(self, session_id: str | None = None) -> Sequence[Approval]:
        """Do what `approvals` does, on the running event loop."""
        return await call_async(operations.approvals(self._services, session_id))

    def decide(self, approval_id: str, decision: Any, *, session_id: str | None = None) -> Approval:
        """Keep a decision: True or False, or a dict with `approved`, `value` and `reason`.

        `chat` without a text goes on with it. With `grant`, a dict of `scope` and `pattern`, it counts for
        later calls as well; both are kept, or neither.

        Args:
            session_id: The session that must have asked, if the caller may answer for that one only.

        Raises:
            DecisionNotAccepted: If nobody waits for it, it was decided already, it is none, or what shall
                be granted is not about the call.
        """
        return call(operations.decide(self._services, approval_id, decision, session_id))

    async def decide_async(
        self, approval_id: str, decision: Any, *, session_id: str | None = None
    ) -> Approval:
        """Do what `decide` does, on the running event loop."""
        return await call_async(operations.decide(self._services, approval_id, decision, session_id))

    def grant(
        self,
        pattern: str,
        *,
        scope: GrantScope,
        session_id: str | None = None,
        project: str | PathLike[str] | None = None,
        effect: GrantEffect = "allow",
    ) -> Grant:
        """Let the calls that fit a pattern run from now on, or forbid them: here, in a project, or always.

        What waits for just that is decided with it. What the configuration denies, or asks for always, no
        grant lets run. A grant that says the contrary of an earlier one takes its place.

        Args:
            scope: "session" needs *session_id*; "project" needs *project* or a session that has one.

        Raises:
            SpecError: If the pattern cannot be read.
            ArgumentError: If the session or project is missing.
            SessionNotFound: If there is no such session.
        """
        return call(permissions.give(self._services, pattern, scope, session_id, project, effect))

    async def grant_async(
        self,
        pattern: str,
        *,
        scope: GrantScope,
        session_id: str | None = None,
        project: str | PathLike[str] | None = None,
        effect: GrantEffect = "allow",
    ) -> Grant:
        """Do what `grant` does, on the running event loop."""
        flow = permissions.give(self._services, pattern, scope, session_id, project, effect)
        return await call_async(flow)

    def grants(
        self, session_id: str | None = None, project: str | PathLike[str] | None = None
    ) -> Sequence[Grant]:
        """Return what was granted and counts in a session or a project; without both, all there is."""
        return call(permissions.find(self._services, session_id, project))

    async def grants_async(
        self, session_id: str | None = None, project: str | PathLike[str] | None = None
    ) -> Sequence[Grant]:
        """Do what `grants` does, on the running event loop."""
        return await call_async(permissions.find(self._services, session_id, project))

    def revoke(self, grant_id: str) -> bool:
        """Take a grant back; it does not count for the next call any more. False if there is none."""
        return call(permissions.take_back(self._services, grant_id))

    async def revoke_async(self, grant_id: str) -> bool:
        """Do what `revoke` does, on the running event loop."""
        return await call_async(permissions.take_back(self._services, grant_id))

    # Actions and lifecycles

    def get_actions(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Return the actions of application plugins and, for a session, of its agent's plugins."""
        return call(operations.actions(self._services, session_id))

    async def get_actions_async(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Do what `get_actions` does, on the running event loop."""
        return await call_async(operations.actions(self._services, session_id))

    def execute_session_action(
        self,
        session_id: str,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, dict[str, Any]]:
        """Run an action of the session's agent, store what it changes, and return both."""
        return call(operations.session_action(self._services, session_id, plugin, action_id, params, context))

    async def execute_session_action_async(
        self,
        session_id: str,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, dict[str, Any]]:
        """Do what `execute_session_action` does, on the running event loop."""
        flow = operations.session_action(self._services, session_id, plugin, action_id, params, context)
        return await call_async(flow)

    def execute_application_action(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run an action of an application plugin, carry out its mutations, and return its result."""
        return call(operations.application_action(self._services, plugin, action_id, params, context))

    async def execute_application_action_async(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Do what `execute_application_action` does, on the running event loop."""
        flow = operations.application_action(self._services, plugin, action_id, params, context)
        return await call_async(flow)

    def run_session_lifecycle(
        self,
        name: str,
        session: Session,
        config: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, list[dict[str, Any]]]:
        """Run a lifecycle of any name; return the session and what each action came to. Nothing is stored."""
        outcome = call(operations.lifecycle(self._services, name, session, config=config, context=context))
        return outcome.session, list(outcome.results)

    async def run_session_lifecycle_async(
        self,
        name: str,
        session: Session,
        config: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, list[dict[str, Any]]]:
        """Do what `run_session_lifecycle` does, on the running event loop."""
        flow = operations.lifecycle(self._services, name, session, config=config, context=context)
        outcome = await call_async(flow)
        return outcome.session, list(outcome.results)

    def get_ui_elements(self) -> list[dict[str, Any]]:
        """Return what application plugins want shown."""
        return self._services.plugins.ui_elements(self.config)

    async def get_ui_elements_async(self) -> list[dict[str, Any]]:
        """Do what `get_ui_elements` does, on the running event loop."""
        elements = partial(self._services.plugins.ui_elements, self.config)
        return await call_async(run_blocking(elements))

    # Events

    def subscribe(self, session_id: str, after: int = 0) -> EventStream[None]:
        """Yield the logged events of a session behind a number, then those to come, until it is closed.

        Raises:
            SessionNotFound: If there is no such session; if it is deleted later, the events end.
            ArgumentError: If its log has no event of that number.
        """
        return EventStream(self._follow(session_id, after))

    def subscribe_async(self, session_id: str, after: int = 0) -> AsyncEventStream[None]:
        """Do what `subscribe` does, on the running event loop."""
        return AsyncEventStream(self._follow(session_id, after))

    def _follow(self, session_id: str, after: int) -> Flow[None]:
        reader = yield from ask(OpenStream(self._services.hub.follow(session_id, after)))
        read = Read(reader)
        try:
            while (events := (yield read)) is not None:
                yield Emit(events)
        finally:
            yield CloseStream(reader)

    def _send(
        self,
        core: AgentCore,
        session: Session,
        base_config: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        *,
        stream: bool,
        context: Mapping[str, Any] | None,
    ) -> Flow[Session]:
        if not hasattr(core, "append_messages"):
            raise ArgumentError("core must be the first thing that update_agent() returned")
        request = Request(overrides=overrides or {}, stream=stream, context=context)
        return run.send(self._services, session, base_config, request)


def _request(
    text: str,
    attachments: Sequence[Mapping[str, Any]],
    stream: bool,  # noqa: FBT001 - one of several that are passed on
    overrides: Mapping[str, Any] | None,
    context: Mapping[str, Any] | None,
    take_over: bool,  # noqa: FBT001
    run_id: str | None,
    kept: Callable[[Checkpoint], object] | None,
    limits: Mapping[str, Any] | None,
) -> Request:
    return Request(
        messages=operations.user_message(text, attachments),
        overrides=overrides or {},
        stream=stream,
        context=context,
        take_over=take_over,
        run_id=run_id,
        kept=kept,
        limits=limits or {},
    )


def _open_assets(assets: SessionAssetStore | Path | str | None) -> SessionAssetStore | None:
    if assets is None or not isinstance(assets, (str, Path)):
        return assets
    from agent_app.assets import SessionAssetStore

    return SessionAssetStore(Path(assets))
