"""What of a conversation is sent, where a caller chooses: the session keeps everything all the same.

The caller sees the session's messages and returns those to send, in its order and with others among
them. A message of the session is sent in the provider's own form, which the session has already; any
other is converted for this request alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.errors import ArgumentTypeError
from agent_core.frozen import FrozenDict, FrozenList
from agent_core.messages import Message
from agent_core.pipeline.chain import to_native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.pipeline.native_view import NativeView
    from agent_core.pipeline.request import Request


def chosen_items(request: Request, view: NativeView, state: dict[str, Any], context: Any) -> FrozenList:
    """Return the native items of the messages that the request's `transform` chose."""
    assert request.transform is not None
    messages = view.session.history.to_list()
    chosen = _checked(request.transform(tuple(messages)))
    own = _own_items(messages, view.native.items.to_list())
    if own is None:
        return to_native(request.resolution, chosen, state, context).items
    front, items_of = own
    items = list(front)
    strangers: list[Message] = []
    for message in chosen:
        known = items_of.pop(id(message), None)
        if known is None:
            strangers.append(message)
            continue
        items += _converted(request, strangers, state, context)
        strangers = []
        items += known
    items += _converted(request, strangers, state, context)
    return FrozenList(items)


def _checked(chosen: Any) -> list[Message]:
    messages = list(chosen)
    for message in messages:
        if not isinstance(message, Message):
            raise ArgumentTypeError(f"transform must return messages, not {type(message).__name__}")
    return messages


def _own_items(
    messages: Sequence[Message], items: Sequence[FrozenDict]
) -> tuple[list[FrozenDict], dict[int, list[FrozenDict]]] | None:
    """Return the items in front of all messages, and those of each message by its identity.

    An item that several messages share goes with the first, one that belongs to nobody with the item
    before it. None if the items of some message are not known.
    """
    owner: dict[int, int] = {}
    for message in messages:
        if message.native_indices is None:
            return None
        for index in message.native_indices:
            owner.setdefault(index, id(message))
    front: list[FrozenDict] = []
    items_of: dict[int, list[FrozenDict]] = {id(message): [] for message in messages}
    current = None
    for index, item in enumerate(items):
        current = owner.get(index, current)
        (front if current is None else items_of[current]).append(item)
    return front, items_of


def _converted(
    request: Request, messages: list[Message], state: dict[str, Any], context: Any
) -> FrozenList | list[FrozenDict]:
    return to_native(request.resolution, messages, state, context).items if messages else []
