"""Sessions and their agents: made, read, listed, branched, moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import operations
from agent_app.labels import wanted_keys
from agent_app.services import ApplicationBase
from agent_core.drivers import call, call_async

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from agent_app.store.base import Lease, Page, SessionInfo
    from agent_app.transfer import ImportedSession
    from agent_core import AgentCore, Message, Session


class Sessions(ApplicationBase):
    """Sessions that are kept, and whose they are."""

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
        return self._services.given(call(operations.create(self._services, agent_id, session_id, metadata)))

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
        known = self._services.at_hand(session_id)
        found = call(operations.load(self._services, session_id)) if known is None else known.session
        return self._services.given(found)

    async def load_session_async(self, session_id: str) -> Session:
        """Do what `load_session` does, on the running event loop."""
        known = self._services.at_hand(session_id)  # mostly; then there is nothing to wait for
        if known is not None:
            return known.session
        return await call_async(operations.load(self._services, session_id))

    def read_messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Return some messages of a session, the last ones or those before an index, without the rest."""
        return call(operations.read_messages(self._services, session_id, before, limit))

    async def read_messages_async(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[Message]:
        """Do what `read_messages` does, on the running event loop."""
        return await call_async(operations.read_messages(self._services, session_id, before, limit))

    def list_sessions(
        self,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        *,
        folder: str | None = None,
        tag: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
    ) -> Page:
        """Return stored sessions by pages, the last changed first; with a query those that have its words.

        Args:
            folder: Only those in a folder.
            tag: Only those with a tag.
            archived: Only those in the archive, or only those that are not.
            pinned: Only those that are pinned, or only the others.
        """
        keys = wanted_keys(folder, tag, archived, pinned)
        return call(operations.list_sessions(self._services, query, cursor, limit, *keys))

    async def list_sessions_async(
        self,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        *,
        folder: str | None = None,
        tag: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
    ) -> Page:
        """Do what `list_sessions` does, on the running event loop."""
        keys = wanted_keys(folder, tag, archived, pinned)
        return await call_async(operations.list_sessions(self._services, query, cursor, limit, *keys))

    def label_session(
        self,
        session_id: str,
        *,
        folder: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
    ) -> dict[str, Any]:
        """Put a session into a folder or the archive, pin it, give it tags; what is None stays.

        Returns:
            `folder`, `tags`, `archived` and `pinned` as they are now.

        Raises:
            SessionBusy, SessionHeld: If the session is in use.
        """
        return call(operations.label(self._services, session_id, folder, tags, archived, pinned))

    async def label_session_async(
        self,
        session_id: str,
        *,
        folder: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
    ) -> dict[str, Any]:
        """Do what `label_session` does, on the running event loop."""
        work = operations.label(self._services, session_id, folder, tags, archived, pinned)
        return await call_async(work)

    def session_labels(self, session_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the labels of sessions, by id, all in one question."""
        return call(operations.session_labels(self._services, session_ids))

    async def session_labels_async(self, session_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Do what `session_labels` does, on the running event loop."""
        return await call_async(operations.session_labels(self._services, session_ids))

    def labels_in_use(self) -> dict[str, Any]:
        """Return the `folders` and `tags` that sessions have, and how many are `archived`."""
        return call(operations.labels_in_use(self._services))

    async def labels_in_use_async(self) -> dict[str, Any]:
        """Do what `labels_in_use` does, on the running event loop."""
        return await call_async(operations.labels_in_use(self._services))

    def find_sessions(self, given: str, limit: int = 50) -> Sequence[SessionInfo]:
        """Return the sessions whose id begins with a text, then those whose title it is.

        Args:
            limit: How many of each kind at most.
        """
        return call(operations.find_sessions(self._services, given, limit))

    async def find_sessions_async(self, given: str, limit: int = 50) -> Sequence[SessionInfo]:
        """Do what `find_sessions` does, on the running event loop."""
        return await call_async(operations.find_sessions(self._services, given, limit))

    def first_messages(self, session_ids: Sequence[str]) -> dict[str, Message]:
        """Return how sessions begin: the first message of each that has one, by id, all in one question."""
        return call(operations.first_messages(self._services, session_ids))

    async def first_messages_async(self, session_ids: Sequence[str]) -> dict[str, Message]:
        """Do what `first_messages` does, on the running event loop."""
        return await call_async(operations.first_messages(self._services, session_ids))

    def session_info(self, session_id: str) -> SessionInfo:
        """Return what `list_sessions` shows of one session, without what plugins add.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        return call(operations.session_info(self._services, session_id))

    async def session_info_async(self, session_id: str) -> SessionInfo:
        """Do what `session_info` does, on the running event loop."""
        return await call_async(operations.session_info(self._services, session_id))

    def branches(self, session_id: str) -> Sequence[SessionInfo]:
        """Return a session with everything that it was forked from, and the forks of all of these.

        The oldest comes first; `parent_id` says which was forked from which.
        """
        return call(operations.branches(self._services, session_id))

    async def branches_async(self, session_id: str) -> Sequence[SessionInfo]:
        """Do what `branches` does, on the running event loop."""
        return await call_async(operations.branches(self._services, session_id))

    def holder(self, session_id: str) -> Lease | None:
        """Return who may write a session now, here or in another process; None if nobody uses it."""
        return call(operations.holder(self._services, session_id))

    async def holder_async(self, session_id: str) -> Lease | None:
        """Do what `holder` does, on the running event loop."""
        return await call_async(operations.holder(self._services, session_id))

    def rename_session(self, session_id: str, title: str) -> SessionInfo:
        """Give a session another title."""
        return call(operations.rename(self._services, session_id, title))

    async def rename_session_async(self, session_id: str, title: str) -> SessionInfo:
        """Do what `rename_session` does, on the running event loop."""
        return await call_async(operations.rename(self._services, session_id, title))

    def save_session(self, session: Session, *, replace: bool = False) -> Session:
        """Store what is new in a session, or all of an ephemeral one, after a last look of its plugins.

        Args:
            replace: Whether it takes the place of what is stored, also if messages there are lost by that.

        Raises:
            SessionBusy, SessionHeld: If the session is in use, here or in another process.
            SessionOutdated: If messages that are stored would be lost: others have come since it was loaded.
        """
        return self._services.given(call(operations.save(self._services, session, replace=replace)))

    async def save_session_async(self, session: Session, *, replace: bool = False) -> Session:
        """Do what `save_session` does, on the running event loop."""
        return await call_async(operations.save(self._services, session, replace=replace))

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
        self, session_id: str, path: str | PathLike[str], *, redact: bool = True, events: bool = False
    ) -> None:
        """Write a session with its attachments to a file; secrets are taken out unless *redact* is False.

        Raises:
            SessionNotFound: If there is none of that id.
        """
        call(operations.export(self._services, session_id, path, redact=redact, events=events))

    async def export_session_async(
        self, session_id: str, path: str | PathLike[str], *, redact: bool = True, events: bool = False
    ) -> None:
        """Do what `export_session` does, on the running event loop."""
        await call_async(operations.export(self._services, session_id, path, redact=redact, events=events))

    def import_session(
        self,
        source: PathLike[str] | bytes | str,
        *,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        allow_system: bool | Sequence[str] = False,
    ) -> ImportedSession:
        """Store a session from a file, its bytes, or JSON, under ids of its own: what a person sees of it.

        Args:
            source: A `Path`, the bytes of a file, or JSON. A string is always JSON and never a path: what a
                stranger sends must not name a file of this machine.
            metadata: What the session has here, such as `workspace_roots`; a file cannot say where to work.
            allow_system: Whether system messages of the file are taken over; or the texts of those that
                somebody has read and agreed to, as `SystemMessagesRefused.texts` has them.

        Raises:
            ImportRefused: If it is not a session, is damaged, or is larger than allowed; nothing was kept.
            SystemMessagesRefused: If it has system messages that nobody has agreed to; nothing was kept.
        """
        return call(operations.import_file(self._services, source, agent_id, metadata or {}, allow_system))

    async def import_session_async(
        self,
        source: PathLike[str] | bytes | str,
        *,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        allow_system: bool | Sequence[str] = False,
    ) -> ImportedSession:
        """Do what `import_session` does, on the running event loop."""
        flow = operations.import_file(self._services, source, agent_id, metadata or {}, allow_system)
        return await call_async(flow)

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
        return self._services.given(call(operations.switch_agent(self._services, session_id, agent_id)))

    async def switch_agent_async(self, session_id: str, agent_id: str) -> Session:
        """Do what `switch_agent` does, on the running event loop."""
        return await call_async(operations.switch_agent(self._services, session_id, agent_id))
