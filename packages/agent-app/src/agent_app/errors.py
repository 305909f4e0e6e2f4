"""Every exception that `agent_app` raises on purpose, in one tree below that of `agent_core`.

::

    agent_core.AgentError
    ├── StoreError                     something about stored sessions; `url` says where
    │   ├── SessionNotFound            (also KeyError)
    │   ├── SessionExists              an id is taken
    │   ├── StoreTooNew                a newer version of the platform wrote the database
    │   ├── StoreDamaged               the database is not what it should be; nothing was changed
    │   └── StoreUnavailable           disk full, read-only, locked, connection lost
    ├── WriteRefused                   somebody else has written, or may write, this session
    │   ├── SessionBusy                this process runs it already
    │   ├── SessionHeld                another process holds it; `holder` says who
    │   ├── LeaseLost                  we held it, and somebody has taken over
    │   └── RevisionConflict           it was changed since it was read
    └── DecisionNotAccepted            an approval is unknown, decided already, or of another session
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Holder(Protocol):
    """Who may write a session; a `Lease` is one."""

    @property
    def owner(self) -> str:
        """Who it is, for people."""

    @property
    def expires(self) -> float:
        """Until when, in seconds since 1970."""


class StoreError(AgentError):
    """Something about stored sessions is not as it must be."""


class SessionNotFound(StoreError, KeyError):
    """No session of that id is stored."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"Session {session_id!r} is not stored here; list_sessions() has those that are")


class SessionExists(StoreError):
    """A session of that id is stored already."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"Session {session_id!r} exists already; load it, or choose another id")


class StoreTooNew(StoreError):
    """A newer version of the platform wrote the database; this one leaves it alone."""

    def __init__(self, place: str, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"{place} has format {found}, and this version knows formats up to {known}: "
            "update the platform; nothing was changed"
        )


class StoreDamaged(StoreError):
    """The database is not what it should be; nothing was changed."""


class StoreUnavailable(StoreError):
    """The database cannot be written or reached now; what was acknowledged before is safe."""


class WriteRefused(StoreError):
    """Somebody else has written, or may write, this session; this change was not written."""


class SessionBusy(WriteRefused):
    """This process runs the session already."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"Session {session_id!r} is running: enqueue the message, wait for the run, or cancel it"
        )


class SessionHeld(WriteRefused):
    """Another process is writing this session; `holder` says who, and until when."""

    def __init__(self, session_id: str, holder: Holder) -> None:
        self.session_id = session_id
        self.holder = holder
        super().__init__(
            f"Session {session_id!r} is in use by {holder.owner}: wait, read it only, or take it over"
        )


class LeaseLost(WriteRefused):
    """We held the session, and somebody else has taken it over since."""

    def __init__(self, session_id: str, owner: str) -> None:
        self.session_id = session_id
        self.owner = owner
        super().__init__(
            f"Session {session_id!r} is not held by {owner} any more: somebody took it over, load it again"
        )


class RevisionConflict(WriteRefused):
    """The session was changed since it was read."""

    def __init__(self, session_id: str, expected: int, found: int) -> None:
        self.session_id = session_id
        self.expected = expected
        self.found = found
        super().__init__(
            f"Session {session_id!r} was changed in between (revision {found}, not {expected}): load it again"
        )


class SessionOutdated(WriteRefused):
    """The session that was to be stored lacks messages that are stored, or has other ones in their places."""

    def __init__(
        self,
        session_id: str,
        hint: str = "load it again, make a branch with fork_session or edit_message, "
        "or say replace=True to lose them",
    ) -> None:
        self.session_id = session_id
        super().__init__(f"Session {session_id!r} has stored messages that this one lacks: {hint}")


class InputWithdrawn(WriteRefused):
    """A message that was about to be delivered has been taken back; `seqs` says which."""

    def __init__(self, session_id: str, seqs: Sequence[int]) -> None:
        self.session_id = session_id
        self.seqs = tuple(seqs)
        super().__init__(
            f"Session {session_id!r} was not saved: the waiting messages {list(self.seqs)} were taken back "
            "before they were delivered; look at the waiting messages, and continue without them"
        )


class DecisionNotAccepted(AgentError, ValueError):
    """An approval is unknown, was decided already, or belongs to another session."""
