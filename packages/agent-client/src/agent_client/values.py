"""What a server tells: sessions, events, decisions. Fields that this version does not know are left out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Value:
    """Something that a server tells."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read it from an answer."""
        return cls(**{one.name: data[one.name] for one in fields(cls) if one.name in data})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Value):
    """What is known of a session.

    Attributes:
        messages: How many there are.
        match: In a search: the text that was found.
        extra: What plugins add, by plugin.
    """

    id: str
    title: str = ""
    agent_id: str | None = None
    created: float = 0.0
    updated: float = 0.0
    messages: int = 0
    revision: int = 0
    parent_id: str | None = None
    match: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions, and the cursor of the next ones; None at the end."""

    sessions: tuple[Session, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a session.

    Attributes:
        id: By which a stream goes on behind it.
        type: What it is: "text", "tool_call_start", "final".
        data: All of it.
    """

    id: str
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Value):
    """What a run came to.

    Attributes:
        text: The answer.
        reason: Why it ended: `code` and `detail`.
        approvals: The decisions that it waits for.
        messages: What it added to the session.
    """

    session_id: str
    text: str = ""
    reason: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    approvals: tuple[str, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Value):
    """A message that waits to be delivered."""

    seq: int
    session_id: str
    message: Mapping[str, Any]
    mode: str
    created: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Value):
    """A decision that a run waits for; `suspension` says what is asked."""

    id: str
    session_id: str
    suspension: Mapping[str, Any]
    created: float = 0.0
    decision: Mapping[str, Any] | None = None
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Value):
    """A permission that was given, or refused, for longer than one call."""

    id: str
    pattern: str
    effect: str
    scope: str
    key: str = ""
    created: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset(Value):
    """A file of a session."""

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    session_id: str
    created: float = 0.0
