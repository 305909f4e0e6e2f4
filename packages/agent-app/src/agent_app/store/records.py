"""Sessions as rows: what is written of a message, an item and a session, and how it is read back.

A message is kept without its native indices, which belong to its place in one session and not to what
it says; they stand next to the reference. So does the link of the core's integrity chain: a session that
is read back is known to be whole without being hashed anew.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar, overload

import orjson

from agent_app.errors import StoreDamaged
from agent_core import AgentError, ArgumentError, History, Message, Session
from agent_core.frozen import EMPTY, FrozenDict, freeze, thaw
from agent_core.messages import NATIVE_INDICES, ROLES, check_message_dict
from agent_core.native import INTEGRITY, NATIVE_MESSAGES, PROVENANCE, read_native
from agent_core.native.record import Seal

R = TypeVar("R")
_UNUSUAL = b" "
_NONE: History[Any] = History()
_PLAIN = 3  # role, content and metadata: a message with more is looked at more closely
_SOME: list[Any] = []  # stands for a native history, whose items have rows of their own
_WORD = re.compile(r"[^\W_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Strings of a message's parts that nobody has said: their kind, their number, their bytes.
_NO_TEXT = frozenset({"type", "id", "role", "data", "mime_type", "media_type", "encoding", "detail"})


class Row(NamedTuple):
    """One reference of a list, with the content that it refers to.

    Attributes:
        body: The content as JSON.
        hash: What the content is known by.
        text: What a search looks at; None for what is not searched.
        note: What belongs to the place: native indices as JSON, or nothing.
        link: The link of the core's integrity chain, if there is one.
    """

    body: bytes
    hash: bytes
    text: str | None = None
    note: bytes | None = None
    link: bytes | None = None


class Mark(NamedTuple):
    """What belongs to the place of a message and not to what it says; see `Row`."""

    note: bytes | None
    link: bytes | None


def content_row(
    value: Any, *, text: str | None = None, note: bytes | None = None, link: bytes | None = None
) -> Row:
    """Return plain data as a row."""
    body = encode(value)
    return Row(body, sha256(body).digest(), text, note, link)


def encode(value: Any) -> bytes:
    """Return plain data as JSON that `decode` reads back as it was, keys in their order.

    Raises:
        ArgumentError: If it is not plain data.
    """
    try:
        body = _usual(value)
        return _UNUSUAL + _any_json(thaw(value)) if body is None else body
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"only plain data can be stored: {error}") from error
    except RecursionError as error:
        raise ArgumentError("data that is nested this deeply cannot be stored") from error


def decode(body: bytes) -> Any:
    """Return data from JSON."""
    if body[:1] == _UNUSUAL:
        return json.loads(body)
    return orjson.loads(body)


def decode_stored(body: bytes) -> Any:
    """Return data from the JSON of a row.

    Raises:
        StoreDamaged: If it is none.
    """
    try:
        return decode(body)
    except (ValueError, TypeError) as error:
        raise StoreDamaged(f"a row cannot be read ({error}): nothing was changed; check the store") from error


def _usual(value: Any) -> bytes | None:
    """Return JSON by the fast encoder, or None for what it cannot keep as it is."""
    try:
        body = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return None  # an integer past 64 bits, half a surrogate pair, much nesting, or no plain data
    return None if b"null" in body and _has_odd_number(thaw(value)) else body


def _plain(value: Any) -> Any:
    """Return as a list what only looks like one: the encoder reads frozen dicts and lists by itself."""
    plain = thaw(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} is not plain data")
    return plain


def _any_json(plain: Any) -> bytes:

    return json.dumps(plain, separators=(",", ":")).encode()


def _has_odd_number(value: Any) -> bool:
    """Say whether there is a number in *value* that is none or has no end."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_odd_number, value.values()))
    return isinstance(value, list) and any(map(_has_odd_number, value))


class Rows(Sequence[R]):
    """Rows of a session that are made when they are looked at: of a long one, some at a time."""

    def __init__(
        self,
        make: Callable[[Any, bytes | None], R],
        items: History[Any],
        links: History[bytes],
        start: int,
        end: int,
    ) -> None:
        self._make, self._items, self._links = make, items, links
        self._places = range(start, end)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        if isinstance(index, int):
            place = self._places[index]
            link = self._links[place] if place < len(self._links) else None
            return self._make(self._items[place], link)
        places = self._places[index]
        start, end = places.start, places.stop
        linked = zip_longest(self._items[start:end], self._links[start:end])
        return [self._make(item, link) for item, link in linked]


def message_rows(session: Session, start: int) -> Rows[Row]:
    """Return the rows of the messages from *start* on; one that cannot be read back is refused."""
    return Rows(_message_row, session.history, message_links(session), start, len(session.history))


def message_marks(session: Session, start: int, end: int) -> Rows[Mark]:
    """Return what belongs to the places of some messages."""
    return Rows(_mark, session.history, message_links(session), start, end)


def item_rows(session: Session, start: int) -> Rows[Row]:
    """Return the rows of the native items from *start* on."""
    items = native_items(session)
    return Rows(_item_row, items, item_links(session), start, len(items))


def _item_row(item: Any, link: bytes | None) -> Row:
    return content_row(item, link=link)


def _mark(message: Message, link: bytes | None) -> Mark:
    indices = message.metadata.get(NATIVE_INDICES)
    return Mark(None if indices is None else encode(indices), link)


def native_items(session: Session) -> History[Any]:
    """Return the session's native history."""
    items = session.metadata.get(NATIVE_MESSAGES)
    return items if type(items) is History else _NONE


def _message_row(message: Message, link: bytes | None) -> Row:
    data: dict[str, Any] = message.frozen_dict()
    metadata, note = message.metadata, None
    if len(data) > _PLAIN or message.role not in ROLES or type(metadata) is not FrozenDict:
        check_message_dict(data)
    if metadata and NATIVE_INDICES in metadata:
        note = encode(metadata[NATIVE_INDICES])
        data = {**data, "metadata": {key: metadata[key] for key in metadata if key != NATIVE_INDICES}}
    return content_row(data, text=text_of(message), note=note, link=link)


def text_of(message: Message) -> str:
    """Return the words of a message, for searching."""
    return _text(message.content, message.multipart_content)


def text_in(body: bytes) -> str:
    """Return the words of a message from its row.

    Raises:
        ValueError, TypeError, LookupError: If it is damaged.
    """
    data = decode(body)
    return _text(data["content"], data.get("multipartContent") if len(data) > _PLAIN else None)


def _text(content: Any, parts: Any) -> str:
    if isinstance(content, str) and parts is None:
        return _whole(content)
    return " ".join(_said([content, parts]))


def _said(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield _whole(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _NO_TEXT:
                yield from _said(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _said(inner)


def _whole(text: str) -> str:
    """Return a text without halves of pairs, which no database keeps."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def words(text: str) -> list[str]:
    """Return the words of a text or a query."""
    return _WORD.findall(unicodedata.normalize("NFC", text))


def folded(text: str) -> str:
    """Return a text as it is compared: without case and accents."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def message_links(session: Session) -> History[bytes]:
    """Return the links of the messages, as far as they are known."""
    return session.seal.messages if isinstance(session.seal, Seal) else _NONE


def item_links(session: Session) -> History[bytes]:
    """Return the links of the native items, as far as they are known."""
    return session.seal.native if isinstance(session.seal, Seal) else _NONE


def know_integrity(session: Session) -> None:
    """Have the core look at a session whose integrity it does not know, so that the links can be written."""
    if session.seal is None:
        read_native(session)


def metadata_rows(session: Session) -> dict[str, Any]:
    """Return the session's metadata, each key by itself; of the native history only that there is one."""
    values = dict(session.metadata)
    if isinstance(values.get(NATIVE_MESSAGES), History):
        values[NATIVE_MESSAGES] = _SOME
    return values


def read_message(body: bytes, note: bytes | None) -> Message:
    """Return a message from its row."""
    data = decode(body)
    if note is not None:
        data["metadata"] = {**data.get("metadata", {}), NATIVE_INDICES: decode(note)}
    if len(data) == _PLAIN and type(data.get("content")) is str and type(data.get("metadata")) is dict:
        # As most are. What is frozen is not looked through: it was data, and must always be readable.
        return Message(data["role"], data["content"], freeze(data["metadata"]) or EMPTY)
    return Message.from_dict(freeze(data))


def read_stored_message(body: bytes) -> Message:
    """Return a message from its row, without what belongs to its place in a session.

    Raises:
        StoreDamaged: If it cannot be read.
    """
    try:
        return read_message(body, None)
    except (ValueError, TypeError, AgentError) as error:
        raise StoreDamaged(f"a message cannot be read ({error}): check the store") from error


def read_item(body: bytes) -> Any:
    """Return a native item from its row."""
    return freeze(decode(body))


def read_session(
    session_id: str,
    history: History[Message],
    native: History[Any],
    metadata: Mapping[str, Any],
    links: Callable[[int], tuple[History[bytes] | None, History[bytes] | None]],
) -> Session:
    """Return a session from its parts; its integrity is known if the links lead to what it says.

    Args:
        links: Returns the links of so many messages, and those of the native items, as far as they are known.
    """
    kept: dict[str, Any] = dict(freeze(dict(metadata)))
    if kept.get(NATIVE_MESSAGES) == []:
        kept[NATIVE_MESSAGES] = native
    session = Session(session_id, history, FrozenDict(kept))
    integrity = kept.get(INTEGRITY)
    covered = integrity.get("messages") if isinstance(integrity, Mapping) else None
    if not isinstance(covered, int) or not 0 <= covered <= len(history):
        return session
    provenance = kept.get(PROVENANCE)
    in_order = isinstance(provenance, Mapping) and provenance.get("in_order") is True
    return session.sealed(_seal(integrity, *links(covered), in_order=in_order))


def _seal(
    integrity: Any, links: History[bytes] | None, native: History[bytes] | None, *, in_order: bool
) -> Seal | None:
    """Return the seal that the links make, if they lead to the heads that the session has."""
    if links is None or native is None:
        return None
    seal = Seal(links, native, in_order=in_order)
    return seal if seal.to_dict() == thaw(integrity) else None


def same_messages(now: Session, before: Session) -> int:
    """Return how many messages both sessions begin with, the very same ones and equally linked."""
    links, old_links = message_links(now), message_links(before)
    linked = _same_links(links, old_links)
    if linked < max(len(links), len(old_links)):
        return linked
    return _same_from(linked, now.history, before.history)


def same_parts(now: Session, before: Session) -> tuple[int, int]:
    """Return how many messages and native items both sessions begin with, as far as that is easily seen."""
    messages = now.history.shared_length(before.history)
    return messages, native_items(now).shared_length(native_items(before))


def alike_from(now: Session, before: Session, start: int) -> tuple[int, int]:
    """Say how the messages of two sessions go on from a place, up to where they differ.

    Returns:
        How many stand at the same place of native history and are linked equally, and how many say the same
        after these, wherever they stand.
    """
    equal = alike = 0
    marks, old_marks = (message_marks(one, start, len(one.history)) for one in (now, before))
    pairs = zip(now.history[start:], before.history[start:], strict=False)
    for place, (message, was) in enumerate(pairs):
        if not _say_the_same(message, was):
            break
        if not alike and marks[place] == old_marks[place]:
            equal += 1
        else:
            alike += 1
    return equal, alike


def _say_the_same(one: Message, other: Message) -> bool:
    """Say whether the rows of two messages have the same body; mostly the same objects are in both."""
    same = one.role == other.role and one.content is other.content and one.extra is other.extra
    if same and one.multipart_content is other.multipart_content and one.tool_result is other.tool_result:
        mine, theirs = (
            [(key, id(value)) for key, value in message.metadata.items() if key != NATIVE_INDICES]
            for message in (one, other)
        )
        if mine == theirs:
            return True
    return _message_row(one, None).body == _message_row(other, None).body


def read_all(session: Session) -> None:
    """Read what of a session is still to be read."""
    session.history.read()
    native_items(session).read()


def same_items(now: Session, before: Session) -> int:
    """Return how many native items both sessions begin with, the very same ones and equally linked."""
    items, links, old_links = native_items(now), item_links(now), item_links(before)
    if items is native_items(before) and links is old_links:
        return len(items)
    linked = _same_links(links, old_links)
    if linked < max(len(links), len(old_links)):
        return linked
    return _same_from(linked, native_items(now), native_items(before))


def _same_from(known: int, one: History[Any], other: History[Any]) -> int:
    """Return how long both are the same, of which *known* is known although the objects may be others."""
    same = len(one) if one is other else one.shared_length(other)
    if same >= known:
        return same
    return known + one[known:].shared_length(other[known:])


def _same_links(one: History[bytes], other: History[bytes]) -> int:
    """Return how many links both begin with: an equal link says that all before it are equal too."""
    length = min(len(one), len(other))
    if one is other or not length or one[length - 1] == other[length - 1]:
        return length
    same = one.shared_length(other)
    for mine, theirs in zip(one[same:], other[same:], strict=False):
        if mine != theirs:
            break
        same += 1
    return same
