"""Removes secrets from exports, reports and logs.

It looks for two things: known values (from the environment, or passed by the caller), wherever they are; and
known shapes (keys of the large services, tokens of HTTP headers, private keys, passwords in URLs). Findings
that overlap are joined, and each is replaced by one mark.

What secrets look like is in `agent_plugin_kit.secrets`, with the bounds that keep hostile text from making
this slow. What is done with them is decided here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from agent_core import ArgumentError
from agent_plugin_kit.secrets import SECRET_FIELDS, SHAPES, Shape

MARK = "[redacted]"
_SHORTEST = 4
_TOGETHER = 100  # items of a list that are looked at together before each of them is
_SHORTEST_IN_ENVIRONMENT = 8  # anything shorter is a word or a number, not a secret
_SECRET_VARIABLE = re.compile(
    r"(?:(?:_|^)(?:API)?KEY|(?:_|^)TOKEN|(?:_|^)SECRET|(?:_|^)CREDENTIALS?)$|PASSWORD|PASSWD|PASSPHRASE",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """A finding in a text: the range that shows it, and within that the secret."""

    start: int
    end: int
    secret: tuple[int, int]


class Redactor:
    """Removes secrets from text and JSON values.

    Args:
        secrets: Known values.
        shapes: The shapes of other secrets.

    Raises:
        ArgumentError: If a secret is so short that ordinary text may contain it.
    """

    def __init__(self, secrets: Iterable[str] = (), *, shapes: tuple[Shape, ...] = SHAPES) -> None:
        self._values = _spellings(secrets)
        self._shapes = shapes
        self._begins = (*self._values, *(begin for shape in shapes for begin in shape.starts))

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> Redactor:
        """Return a redactor that knows the values of variables with names like `API_KEY` or `PASSWORD`.

        Args:
            environment: The variables; those of this process by default.
            secrets: Further values.
        """
        variables = os.environ if environment is None else environment
        found = [
            value
            for name, value in variables.items()
            if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_IN_ENVIRONMENT
        ]
        return cls([*found, *secrets])

    def text(self, text: str) -> str:
        """Return *text* with a mark in the place of each secret; the same string if there is none."""
        pieces = self._pieces(text, 0)
        return _marked(text, pieces, 0, len(text)) if pieces else text

    def data(self, value: Any) -> Any:
        """Return JSON values without the secrets in their strings, keys included.

        A string under a name such as `password` is always removed. A value without secrets is returned as the
        same object.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value) if self._may_have(value) else value
        if isinstance(value, (list, tuple)):
            made: list[Any] = []
            for start in range(0, len(value), _TOGETHER):
                some = value[start : start + _TOGETHER]
                made += map(self.data, some) if self._may_have(some) else some
            return value if all(map(_same, made, value)) else made
        return value

    def _may_have(self, value: Any) -> bool:
        """Say whether there may be a secret somewhere in a value; a short look at all its strings at once."""
        strings: list[str] = []
        if _collect(value, strings):
            return True
        whole = "\0".join(strings)
        return any(begin in whole for begin in self._begins)

    def stream(self) -> RedactingStream:
        """Return a redactor for text that comes in pieces, which may cut a secret anywhere."""
        return RedactingStream(self)

    def known_only(self) -> Redactor:
        """Return a redactor for the known values only, for binary data."""
        made = Redactor(shapes=())
        made._values = made._begins = self._values
        return made

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        made: dict[Any, Any] = {}
        for key, item in value.items():
            made[_free(made, self.data(key))] = self._field(key, item)
        same = all(map(_same, made, value)) and all(map(_same, made.values(), value.values()))
        return value if same else made

    def _field(self, key: Any, item: Any) -> Any:
        named = isinstance(key, str) and _is_secret_name(key)
        return MARK if named and isinstance(item, str) and item else self.data(item)

    def found(self, text: str, start: int = 0) -> Iterator[Found]:
        """Yield every secret from *start* on, in no particular order; the text before it is context."""
        for value in self._values:
            place = text.find(value, start)
            while place >= 0:
                yield Found(place, place + len(value), (place, place + len(value)))
                place = text.find(value, place + len(value))
        for shape in self._shapes:
            for begin in shape.starts:
                yield from _shaped(shape.expression, begin, text, start)

    def unfinished(self, text: str, start: int) -> int:
        """Return the first position at which a secret may have begun that later text completes."""
        end = len(text)
        places = [end, *(_overlap(text, value, start) for value in self._values)]
        for shape in self._shapes:
            for begin in shape.starts:
                place = text.find(begin, max(start, end - shape.reach))
                places.append(place if place >= 0 else _overlap(text, begin, start))
        return min(places)

    def _pieces(self, text: str, start: int) -> list[tuple[int, int]]:
        return joined(one.secret for one in self.found(text, start))


class RedactingStream:
    """Removes secrets from text that comes in pieces.

    The output as a whole is what `Redactor.text` returns for the input as a whole.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""  # one character of context, if there is any, and what is not certain yet
        self._start = 0
        self._look_again = 0

    def feed(self, piece: str) -> str:
        """Add a piece and return the output that is certain by now; it may be empty."""
        self._text += piece
        if len(self._text) < self._look_again:
            return ""
        found = list(self._redactor.found(self._text, self._start))
        cut = self._certain(found)
        out = self._take(found, cut)
        # While much is not certain, searching all of it again for each small piece would take long.
        pending = len(self._text) - self._start
        self._look_again = len(self._text) + (pending // 2 if pending > _EASILY_SEARCHED else 0)
        return out

    def close(self) -> str:
        """Return the rest of the output."""
        return self._take(list(self._redactor.found(self._text, self._start)), len(self._text))

    def _certain(self, found: list[Found]) -> int:
        """Return the position up to which later text cannot change the output."""
        end = len(self._text)
        cut = self._redactor.unfinished(self._text, self._start)
        for start, stop in reversed(joined((one.start, one.end) for one in found)):
            if start < cut and (stop > cut or stop == end):
                return start
        return cut

    def _take(self, found: list[Found], cut: int) -> str:
        pieces = joined(one.secret for one in found if one.end <= cut)
        out = _marked(self._text, pieces, self._start, cut)
        context = min(cut, 1)
        self._text, self._start = self._text[cut - context :], context
        return out


_EASILY_SEARCHED = 4_096


def joined(pieces: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pieces in order, those that overlap as one."""
    made: list[tuple[int, int]] = []
    for start, end in sorted(pieces):
        if made and start < made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


def _shaped(expression: re.Pattern[str], begin: str, text: str, start: int) -> Iterator[Found]:
    place = text.find(begin, start)
    while place >= 0:
        match = expression.match(text, place)
        if match is None:
            place = text.find(begin, place + 1)
            continue
        yield Found(place, match.end(), match.span(1))
        # Another one may begin within the last characters, and go on behind them.
        place = text.find(begin, max(place + 1, match.end() - len(begin) + 1))


def _overlap(text: str, value: str, start: int) -> int:
    """Return where the text ends with a beginning of *value*, or the text's length."""
    place = text.find(value[0], max(start, len(text) - len(value) + 1))
    while place >= 0 and not value.startswith(text[place:]):
        place = text.find(value[0], place + 1)
    return len(text) if place < 0 else place


def _marked(text: str, pieces: list[tuple[int, int]], start: int, end: int) -> str:
    parts, place = [], start
    for begin, stop in pieces:
        parts += [text[place:begin], MARK]
        place = stop
    return "".join([*parts, text[place:end]])


def _spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the secrets, and how they are written in JSON and in URLs, if that differs."""
    made: set[str] = set()
    for secret in secrets:
        if not isinstance(secret, str) or len(secret) < _SHORTEST:
            raise ArgumentError(
                f"a secret must be a string of at least {_SHORTEST} characters: ordinary text may contain a "
                "shorter one"
            )
        encoded = secret.encode("utf-8", "surrogatepass")
        made |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        made |= {quote(encoded, safe=""), quote_plus(encoded)}
    return tuple(sorted(made, key=lambda value: (-len(value), value)))


@lru_cache(maxsize=1024)
def _is_secret_name(key: str) -> bool:
    return key.lower().replace("-", "_") in SECRET_FIELDS


def _collect(value: Any, strings: list[str]) -> bool:
    """Add all strings of a value, keys included; True, and not all of them, if a key is a secret's name."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            strings.append(one)
        elif isinstance(one, Mapping):
            for key, item in one.items():
                if isinstance(key, str):
                    if _is_secret_name(key):
                        return True
                    strings.append(key)
                if item.__class__ is str:
                    strings.append(item)
                else:
                    waiting.append(item)
        elif isinstance(one, (list, tuple)):
            waiting += one
    return False


def _free(taken: Mapping[Any, Any], key: Any) -> Any:
    """Return the key, or a numbered one if it is taken: two keys of one mapping may have been secrets."""
    number, free = 2, key
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free


def _same(one: Any, other: Any) -> bool:
    return one is other
