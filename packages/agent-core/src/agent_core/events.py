"""What a caller sees while a request runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from agent_core.session import Session


class PartialEvent(TypedDict):
    """A piece of the answer, as soon as the provider sent it."""

    type: Literal["partial"]
    message: dict[str, Any]


class FinalEvent(TypedDict):
    """The end of a request: the new session and the messages that this turn added."""

    type: Literal["final"]
    session: Session
    messages: list[dict[str, Any]]
    interrupted: NotRequired[bool]


Event = PartialEvent | FinalEvent
