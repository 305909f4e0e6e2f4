"""What is sent of the items: everything to the server that wrote it, and only the standard to any other.

Servers add fields of their own to their answers: thoughts, signatures, annotations. Some want them back,
and most refuse them from elsewhere. So an answer remembers its server, and only that server gets its fields.
If even that one complains about a field, the request is made again without it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from agent_provider_kit.chat.messages import (
    CALL_FIELDS,
    REASONING_FIELDS,
    STANDARD_FIELDS,
    own_fields,
    text_of,
)
from agent_provider_kit.memory import encoded

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_provider_kit.wire import Dicts, EncodedJson, JsonObject, State

SERVER = "server"
"""Where `_metadata` says which server wrote an item."""
REFUSED_FIELDS = "refused_fields"
"""Where `_metadata` keeps the names of fields that their own server did not take back."""
THOUGHTS = (*REASONING_FIELDS, "reasoning_details")
_SEE_BELOW = "[The image of this result is in the next message.]"


def compose(items: Dicts, server: str, without: Collection[str] = ()) -> Dicts:
    """Return the items as *server* takes them.

    Args:
        items: The native history.
        server: The host that is asked, as `Exchange.server` names it.
        without: Names of fields that it does not get.
    """
    left_out = set(without)
    sent = [_sendable(item, server, left_out) for item in items]
    return _with_images_apart(sent) if any(map(_has_images, sent)) else sent


def compose_encoded(
    items: Dicts, server: str, left_out: Collection[str], memory: State | None
) -> EncodedJson | Dicts:
    """Return the same for a request's body; what an earlier request had encoded is taken as it was."""
    gone = set(left_out)

    def alone(item: JsonObject) -> JsonObject:
        if _has_images(item) or item.get("audio"):
            raise _NotAloneError
        return _sendable(item, server, gone)

    try:
        return encoded(items, memory, f"{server} without {sorted(gone)}", alone)
    except _NotAloneError:
        return compose(items, server, without=gone)


class _NotAloneError(Exception):
    """How an item is sent depends on its neighbours, or on the time."""


def refused_fields(items: Dicts, server: str, complaint: str, before: Collection[str]) -> frozenset[str]:
    """Return the fields that a complaint is about: extra fields of earlier answers that it names."""
    extra = {field for item in compose(items, server, without=before) for field in own_fields(item)}
    return frozenset(
        field for field in extra if re.search(rf"(?<![\w]){re.escape(field)}(?![\w])", complaint)
    )


def remember_refused(items: Dicts, fields: Collection[str]) -> tuple[Dicts, list[int]]:
    """Return items that know which of their fields were refused, and the places of those that do."""
    places = [place for place, item in enumerate(items) if not own_fields(item).isdisjoint(fields)]
    marked = list(items)
    for place in places:
        about = items[place].get("_metadata") or {}
        known = {*(about.get(REFUSED_FIELDS) or ()), *fields}
        marked[place] = {**items[place], "_metadata": {**about, REFUSED_FIELDS: sorted(known)}}
    return marked, places


def _sendable(item: JsonObject, server: str, left_out: set[str]) -> JsonObject:
    about = item.get("_metadata") or {}
    if item.get("role") != "assistant":
        return {key: value for key, value in item.items() if key != "_metadata"} if about else item
    own = about.get(SERVER) == server
    gone = {*left_out, *(about.get(REFUSED_FIELDS) or ()), "_metadata", "audio"}
    sent = {
        key: value
        for key, value in item.items()
        if key not in gone and (key in STANDARD_FIELDS or (own and value not in ([], None)))
    }
    if sent.get("tool_calls"):
        sent["tool_calls"] = [_plain_call(call, gone, own=own) for call in sent["tool_calls"]]
    return _with_audio(sent, item["audio"], own=own) if isinstance(item.get("audio"), dict) else sent


def _plain_call(call: JsonObject, gone: set[str], *, own: bool) -> JsonObject:
    if own and call.keys().isdisjoint(gone):
        return call
    return {key: value for key, value in call.items() if key in CALL_FIELDS or (own and key not in gone)}


def _with_audio(item: JsonObject, audio: JsonObject, *, own: bool) -> JsonObject:
    """Refer to a spoken answer by its id while its server keeps it; afterwards its words stand for it."""
    expires = audio.get("expires_at")
    kept = own and audio.get("id") and (not isinstance(expires, (int, float)) or expires > time.time())
    if kept:
        return {**item, "audio": {"id": audio["id"]}}
    return {**item, "content": item.get("content") or audio.get("transcript") or ""}


# A tool's result is text here. Images go to the model in a message behind the results of the turn.


def _has_images(item: JsonObject) -> bool:
    return item.get("role") == "tool" and isinstance(item.get("content"), list)


def _with_images_apart(items: Dicts) -> Dicts:
    sent: Dicts = []
    waiting: Dicts = []
    for item in items:
        if waiting and item.get("role") != "tool":
            sent.append({"role": "user", "content": waiting})
            waiting = []
        text, images = _text_and_images(item) if _has_images(item) else (item, [])
        waiting += images
        sent.append(text)
    return [*sent, {"role": "user", "content": waiting}] if waiting else sent


def _text_and_images(item: JsonObject) -> tuple[JsonObject, Dicts]:
    parts: list[Any] = item["content"]
    images = [part for part in parts if part.get("type") == "image_url"]
    texts = [text_of(part) or _named(part) for part in parts if part not in images]
    if images:
        about = {"type": "text", "text": f"From the result of call {item.get('tool_call_id')}:"}
        return {**item, "content": "\n".join([*filter(None, texts), _SEE_BELOW])}, [about, *images]
    return {**item, "content": "\n".join(filter(None, texts))}, []


def _named(part: JsonObject) -> str:
    return f"[{part.get('type') or 'part'} left out: a tool's result can only have text and images here]"
