"""Reading the transcript anew from native history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.errors import PluginError, SessionFormatError
from agent_core.messages import Message, fold_foreign_fields
from agent_core.native import NativeHistory, item_models, model_runs, renew_native, write_native
from agent_core.pipeline import chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.frozen import FrozenDict, FrozenList
    from agent_core.pipeline.request import Request
    from agent_core.session import Session


def readable_messages(
    request: Request,
    native: FrozenList,
    known: Sequence[Message],
    known_items: Sequence[FrozenDict],
    state: dict[str, Any],
    context: Any,
) -> list[Message]:
    """Return the messages that *native* stands for.

    A message of *known* whose native items are all still there is kept as it is, with its metadata;
    the others are made by the provider, extensions and features.
    """
    converted = chain.from_native(request.resolution, native, state, context)
    familiar = _by_items(known, known_items)
    messages = []
    for message, group in zip(converted.items, converted.groups, strict=True):
        found = None if group is None else familiar.get(tuple(id(native[index]) for index in group))
        made = read_message(request, message) if found is None else found
        messages.append(made.with_native_indices(group))
    return messages


def write_items(
    request: Request,
    session: Session,
    before: NativeHistory,
    messages: Sequence[Message],
    items: FrozenList,
    **written: Any,
) -> Session:
    """Return the session with changed native history; items that were there keep their model."""
    origin = {id(item): name for item, name in zip(before.items, item_models(before.models), strict=True)}
    models = model_runs(origin.get(id(item), request.resolution.model) for item in items)
    history, native = renew_native(before, session.history, messages, items, models)
    return write_native(session, history, native, **written)


def _by_items(messages: Sequence[Message], items: Sequence[FrozenDict]) -> dict[tuple[int, ...], Message]:
    listed = list(items)
    return {
        tuple(id(listed[index]) for index in message.native_indices): message
        for message in messages
        if message.native_indices and max(message.native_indices) < len(listed)
    }


def read_message(request: Request, message: Mapping[str, Any]) -> Message:
    """Return a plugin's readable message as a `Message`; fields that it lacks go into its metadata."""
    try:
        return Message.from_dict(fold_foreign_fields(message))
    except SessionFormatError as error:
        raise PluginError(request.resolution.provider.name, "from_native_messages", str(error)) from error
