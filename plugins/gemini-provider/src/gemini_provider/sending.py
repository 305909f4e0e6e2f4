"""What is sent of the items: the system instruction apart, roles in turns, results with their calls.

Items stay as they are, one per message, so that edits of messages find theirs. Only here, on the way
out, consecutive items of one role become one content. Everything depends on the items alone, so the
same history is always sent the same way.
"""

from __future__ import annotations

from operator import itemgetter
from sys import maxsize
from typing import Any, NamedTuple

from gemini_provider.calls import Call, calls_in, find_call, own_id
from gemini_provider.kinds import METADATA, Part, Parts, is_call, is_response, says_something
from gemini_provider.signatures import sendable_parts, with_sentinels

Dicts = list[dict[str, Any]]

_OPENING = {"role": "user", "parts": [{"text": "(The conversation continues here.)"}]}
_MODEL, _RESULTS, _PERSON = "model", "results", "person"
_AT_THE_END = maxsize


class Outgoing(NamedTuple):
    """What is sent of a history; `system` is None where there is no system instruction."""

    system: dict[str, Any] | None
    contents: Dicts


def compose(items: Dicts, *, sentinels: bool) -> Outgoing:
    """Return the items as the API takes them.

    Args:
        items: The native history.
        sentinels: Whether calls of the current turn that lack a signature get the word for it.
    """
    told = [part for item in items if item.get("role") == "system" for part in _speaking(item)]
    contents = _Contents()
    for item in items:
        if item.get("role") != "system":
            contents.take(item, _speaking(item))
    sent = contents.all()
    return Outgoing({"parts": told} if told else None, with_sentinels(sent) if sentinels else sent)


def _speaking(item: dict[str, Any]) -> Parts:
    return [part for part in sendable_parts(item) if says_something(part)]


class _Contents:
    """Puts contents together: the model's, results of tools, and what a person says, each by themselves."""

    def __init__(self) -> None:
        self._contents: Dicts = []
        self._kind = ""
        self._waiting: list[tuple[int, Call]] = []  # calls of the model's last content, and their places
        self._results: list[tuple[int, Part]] = []  # the answers to them so far

    def take(self, item: dict[str, Any], parts: Parts) -> None:
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

    def _add(self, kind: str, item: dict[str, Any], parts: Parts) -> None:
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
        """Return a result and the place of its call: where calls have no ids, only the order tells.

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
