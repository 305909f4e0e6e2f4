"""What is sent of the items: the system instruction apart, roles in turns, results with their calls.

Items stay as they are, one per message, so that edits of messages find theirs. Only here, on the way out,
consecutive items of one role become one content. Everything depends on the items alone, so the same
history is always sent the same way.
"""

from __future__ import annotations

import re
from functools import partial
from operator import itemgetter
from sys import maxsize
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_provider_kit import EncodedJson, grown, last_turn
from gemini_provider.messages import (
    METADATA,
    SIGNATURE,
    Call,
    Part,
    Parts,
    about,
    calls_in,
    find_call,
    is_call,
    is_response,
    own_id,
    parts_of,
    says_something,
)

if TYPE_CHECKING:
    from agent_provider_kit import Dicts, JsonObject, State

_OPENING = {"role": "user", "parts": [{"text": "(The conversation continues here.)"}]}
_BEGINNING = {"role": "user", "parts": [{"text": "(The conversation begins here.)"}]}
_MODEL, _RESULTS, _PERSON = "model", "results", "person"
_AT_THE_END = maxsize
SENTINEL = "skip_thought_signature_validator"
REFUSED = "signatures_refused"
"""Where `_metadata` says that the API did not take an item's signatures back; the item keeps them."""
_UNSIGNED_MODELS = re.compile(r"gemini-[12]([.-]|$)|gemini-pro$|gemma|learnlm")
_SPELLINGS = (SIGNATURE, "thought_signature")


class Outgoing(NamedTuple):
    """What is sent of a history; `system` is None where there is no system instruction."""

    system: JsonObject | None
    contents: Dicts


def compose(items: Dicts, *, sentinels: bool) -> Outgoing:
    """Return the items as the API takes them.

    Args:
        items: The native history.
        sentinels: Whether calls of the current turn that lack a signature get the word for it.
    """
    system = [part for item in items if item.get("role") == "system" for part in _speaking(item)]
    contents = _Contents()
    for item in items:
        if item.get("role") != "system":
            contents.take(item, _speaking(item))
    sent = contents.all() or ([_BEGINNING] if items else [])
    return Outgoing({"parts": system} if system else None, with_sentinels(sent) if sentinels else sent)


def compose_encoded(items: Dicts, memory: State | None, *, sentinels: bool) -> tuple[JsonObject | None, Any]:
    """Return the same for a request's body: the contents of turns that are over are encoded only once."""
    if memory is None:
        return compose(items, sentinels=sentinels)
    start = last_turn(items, begins_turn)
    system, contents = compose(items[start:], sentinels=sentinels)
    if not start:
        return system, contents
    may_cut = partial(begins_turn, items)
    sent = grown(items[:start], memory, "contents", _encode, _Encoded.joined, may_cut=may_cut)
    parts = [*sent.system, *(system["parts"] if system else ())]
    whole = sent.joined(_Encoded([], orjson.dumps(contents)[1:-1]))
    return {"parts": parts} if parts else None, EncodedJson(b"[" + whole.contents + b"]")


class _Encoded(NamedTuple):
    """Turns as they are sent: parts of the system instruction, and contents as JSON without the brackets."""

    system: Parts
    contents: bytes

    def joined(self, more: _Encoded) -> _Encoded:
        return _Encoded([*self.system, *more.system], b",".join([self.contents, more.contents]))


def _encode(items: Dicts) -> _Encoded:
    system, contents = compose(items, sentinels=False)  # only the last turn has any
    return _Encoded(system["parts"] if system else [], orjson.dumps(contents)[1:-1])


def begins_turn(items: Dicts, place: int) -> bool:
    """Say whether a turn begins here: a person speaks, behind an answer of the model that calls nothing.

    Where two items of the model stand together, they are sent as one, and no turn is cut off there.
    """
    if items[place].get("role") != "user" or place < 1 or items[place - 1].get("role") != "model":
        return False
    said, answered = _speaking(items[place]), _speaking(items[place - 1])
    alone = place == 1 or items[place - 2].get("role") == "user"
    return (
        bool(said and answered and alone)
        and not any(map(is_response, said))
        and not calls_in(items[place - 1])
    )


def _speaking(item: JsonObject) -> Parts:
    return [part for part in sendable_parts(item) if says_something(part)]


class _Contents:
    """Puts contents together: the model's, results of tools, and what a person says, each by themselves."""

    def __init__(self) -> None:
        self._contents: Dicts = []
        self._kind = ""
        self._waiting: list[tuple[int, Call]] = []  # calls of the model's last content, and their places
        self._results: list[tuple[int, Part]] = []  # the answers to them so far

    def take(self, item: JsonObject, parts: Parts) -> None:
        """Add what an item says; one that says nothing does not come between calls and results."""
        if not parts:
            return
        if item.get("role") == "model":
            self._wait_for(calls_in(item))
            self._add(_MODEL, item, parts)
            return
        answers = [self._addressed(part) for part in parts if is_response(part)]
        if answers:
            before = self._results if self._kind == _RESULTS else []
            self._results = sorted([*before, *answers], key=itemgetter(0))
            self._add(_RESULTS, item, [part for _place, part in self._results])
        self._add(_PERSON, item, [part for part in parts if not is_response(part)])

    def all(self) -> Dicts:
        """Return the contents; a call must never be the first thing that is said."""
        begins_with_call = (
            bool(self._contents)
            and self._contents[0]["role"] == "model"
            and any(map(is_call, self._contents[0]["parts"]))
        )
        return [_OPENING, *self._contents] if begins_with_call else self._contents

    def _wait_for(self, calls: list[Call]) -> None:
        if self._kind != _MODEL:
            self._waiting = []
        count = len(self._waiting)
        self._waiting += [(count + number, call) for number, call in enumerate(calls)]

    def _add(self, kind: str, item: JsonObject, parts: Parts) -> None:
        if not parts:
            return
        fields = {key: value for key, value in item.items() if key != METADATA}
        if kind == self._kind:
            before = self._contents.pop()
            fields = {**before, **fields}
            parts = parts if kind == _RESULTS else [*before["parts"], *parts]
        role = "model" if kind == _MODEL else "user"
        self._contents.append({**fields, "role": role, "parts": parts})
        self._kind = kind

    def _addressed(self, part: Part) -> tuple[int, Part]:
        """Return a result and the place of its call: where calls have no ids, only the order says which.

        It goes under its call's name, and under an id only if the call has one on the wire.
        """
        call = find_call(part, [call for _place, call in self._waiting])
        if call is None:
            return _AT_THE_END, part
        place = next(place for place, each in self._waiting if each is call)
        self._waiting = [pair for pair in self._waiting if pair[0] != place]
        body = part["functionResponse"]
        if body.get("name") == call.name and (call.numbered or own_id(part) is None):
            return place, part
        fields = {key: value for key, value in body.items() if key != "id" or call.numbered}
        return place, {**part, "functionResponse": {**fields, "name": call.name}}


# Thought signatures: the model's own state, which the API wants back exactly as it came. Of the current
# turn, which is everything since a person spoke, the API also demands them: the first call of each step
# must have one. A call that another provider's model made, or that nobody but us knows of, has none; for
# these the API documents one word that replaces a signature, and only that is sent. See
# https://ai.google.dev/gemini-api/docs/thought-signatures.


def demands_signatures(model: Any) -> bool:
    """Whether a model refuses calls without signatures: those before Gemini 3 never did."""
    return _UNSIGNED_MODELS.match(str(model or "").rpartition("/")[2]) is None


def is_about_signatures(complaint: str) -> bool:
    """Whether the API complains about a signature."""
    return bool(re.search(r"thought[ _]?signature", complaint, re.IGNORECASE))


def is_signed(part: Part) -> bool:
    """Whether a part carries a signature."""
    return any(part.get(name) for name in _SPELLINGS)


def sendable_parts(item: JsonObject) -> Parts:
    """Return an item's parts, without signatures that the API refused once."""
    parts = parts_of(item)
    if not about(item).get(REFUSED):
        return parts
    return [{key: value for key, value in part.items() if key not in _SPELLINGS} for part in parts]


def refusing(items: Dicts) -> tuple[Dicts, list[int]]:
    """Return the items with all signatures marked as refused, and the numbers of those that have any."""
    places = [
        index
        for index, item in enumerate(items)
        if not about(item).get(REFUSED) and any(map(is_signed, parts_of(item)))
    ]
    marked = [
        {**item, METADATA: {**about(item), REFUSED: True}} if index in places else item
        for index, item in enumerate(items)
    ]
    return marked, places


def with_sentinels(contents: Dicts) -> Dicts:
    """Return contents in which the first call of every step of the current turn is signed."""
    start = _current_turn(contents)
    return [*contents[:start], *map(_signed, contents[start:])]


def _current_turn(contents: Dicts) -> int:
    spoken = (
        index
        for index, content in enumerate(contents)
        if content["role"] == "user" and any(not is_response(part) for part in content["parts"])
    )
    return max(spoken, default=-1) + 1


def _signed(content: JsonObject) -> JsonObject:
    parts = content["parts"]
    place = next((place for place, part in enumerate(parts) if is_call(part)), None)
    if place is None or content["role"] != "model" or is_signed(parts[place]):
        return content
    signed = {**parts[place], SIGNATURE: SENTINEL}
    return {**content, "parts": [*parts[:place], signed, *parts[place + 1 :]]}
