"""Keeping secrets out of what leaves the house: exports, reports, logs.

Two things are looked for. Secrets whose value is known (from the environment, or named by the caller) are
found wherever they stand. Secrets of a known shape (keys of the large services, tokens of HTTP headers,
private keys, passwords in addresses) are found by it. What is found is joined where it overlaps, and each
piece gives one mark.

Hostile text must not make this slow. A shape is only tried where a fixed beginning was found by plain
search; a shape that fits is skipped as a whole, and one that does not fit fails after a bounded number of
characters. A shape has a longest length as well, so a stream need never hold back more than that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agent_core import ArgumentError

MARK = "[redacted]"
_SHORTEST = 4
_SHORTEST_IN_ENVIRONMENT = 8  # anything shorter is a word or a number, not a secret
_SECRET_VARIABLE = re.compile(
    r"(?:(?:_|^)(?:API)?KEY|(?:_|^)TOKEN|(?:_|^)SECRET|(?:_|^)CREDENTIALS?)$|PASSWORD|PASSWD|PASSPHRASE",
    re.IGNORECASE,
)
_SECRET_FIELDS = frozenset(
    [
        "api_key",
        "apikey",
        "x_api_key",
        "access_key",
        "secret_key",
        "private_key",
        "secret",
        "client_secret",
        "password",
        "passwd",
        "passphrase",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "authorization",
        "proxy_authorization",
    ]
)


class Shape(NamedTuple):
    """What a kind of secret looks like.

    Attributes:
        starts: What it begins with, one of these; plain text.
        expression: The whole; its group is what is taken out.
        reach: How many characters are needed to tell whether, and up to where, one has begun.
    """

    starts: tuple[str, ...]
    expression: re.Pattern[str]
    reach: int


def _key(starts: str, body: str, *, shortest: int, longest: int = 1024) -> Shape:
    """Return the shape of a key: a start that stands at the beginning of a word, and a body."""
    found = tuple(starts.split())
    either = "|".join(map(re.escape, found))
    # A "-" or "_" before it would put it into the middle of something longer, such as URL-safe base64.
    expression = rf"(?<![\w-])((?:{either}){body}{{{shortest},{longest}}}+)"
    return Shape(found, re.compile(expression), max(map(len, found)) + shortest)


_PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_LONGEST = 16_384
_PEM_BODY = (
    rf"(?:(?:[^-]|-(?!----)){{0,{_PEM_LONGEST}}}+-----END {_PEM}|[A-Za-z0-9+/=\s\\]{{0,{_PEM_LONGEST}}}+)"
)
_JWT_LONGEST = 4_096
_JWT_PART = rf"\.[A-Za-z0-9_-]{{4,{_JWT_LONGEST}}}+"

SHAPES: tuple[Shape, ...] = (
    # A digit among the first characters tells a key from words with hyphens between them.
    Shape(("sk-",), re.compile(r"(?<![\w-])(sk-(?=[A-Za-z_-]{0,63}[0-9])[A-Za-z0-9_-]{16,1024}+)"), 70),
    _key("sk_live_ sk_test_ rk_live_ rk_test_ whsec_", "[A-Za-z0-9]", shortest=16),
    _key("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "[A-Za-z0-9_]", shortest=20),
    _key("glpat- xoxa- xoxb- xoxp- xoxr- xoxs-", "[A-Za-z0-9_-]", shortest=16),
    _key("hf_ npm_", "[A-Za-z0-9]", shortest=30),
    _key("AIza", "[A-Za-z0-9_-]", shortest=35),
    Shape(("AKIA", "ASIA"), re.compile(r"(?<![A-Za-z0-9])(A[KS]IA[A-Z0-9]{16})(?![A-Za-z0-9])"), 21),
    Shape(
        ("eyJ",),
        re.compile(rf"(?<![\w-])(eyJ[A-Za-z0-9_-]{{8,{_JWT_LONGEST}}}+(?:{_JWT_PART}){{1,2}})"),
        3 * _JWT_LONGEST + 5,
    ),
    # Words of lower case are no credentials: "basic characteristics".
    Shape(
        ("Bearer ", "bearer ", "BEARER ", "Basic ", "basic ", "BASIC "),
        re.compile(r"(?<![\w-])[A-Za-z]{5,6} ((?=[a-z./-]{0,63}[A-Z0-9+=_~])[A-Za-z0-9._~+/=-]{16,4096}+)"),
        72,
    ),
    Shape(("://",), re.compile(r"://[^\s/@:\"'<>]{0,128}+:([^\s/@\"'<>]{1,128}+)@"), 261),
    Shape(("-----BEGIN ",), re.compile(f"(-----BEGIN {_PEM}{_PEM_BODY})"), _PEM_LONGEST + 200),
)
"""What secrets look like that nobody told us of."""


class Found(NamedTuple):
    """A secret in a text: from where to where it was told by, and within that what is taken out."""

    start: int
    end: int
    secret: tuple[int, int]


class Redactor:
    """Takes secrets out of text and data.

    Args:
        secrets: Values that must not be seen, wherever they stand.
        shapes: What other secrets look like.

    Raises:
        ArgumentError: If a secret is too short to be told from ordinary text.
    """

    def __init__(self, secrets: Iterable[str] = (), *, shapes: tuple[Shape, ...] = SHAPES) -> None:
        self._values = _spellings(secrets)
        self._shapes = shapes

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, secrets: Iterable[str] = ()
    ) -> Redactor:
        """Return a redactor that knows the values of variables whose names say that they are secret.

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
        """Return plain data with the secrets taken out of every string, keys included.

        A string under a name such as `password` is taken out whatever it looks like. What has no secret
        in it comes back as the same object.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, (list, tuple)):
            made = [self.data(item) for item in value]
            return value if all(map(_same, made, value)) else made
        return value

    def stream(self) -> RedactingStream:
        """Return a redactor for text that comes in pieces: a secret may be cut anywhere."""
        return RedactingStream(self)

    def known_only(self) -> Redactor:
        """Return a redactor for the known values alone, for data that is no text."""
        made = Redactor(shapes=())
        made._values = self._values
        return made

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        made: dict[Any, Any] = {}
        for key, item in value.items():
            made[_free(made, self.data(key))] = self._field(key, item)
        same = all(map(_same, made, value)) and all(map(_same, made.values(), value.values()))
        return value if same else made

    def _field(self, key: Any, item: Any) -> Any:
        named = isinstance(key, str) and key.lower().replace("-", "_") in _SECRET_FIELDS
        return MARK if named and isinstance(item, str) and item else self.data(item)

    def found(self, text: str, start: int = 0) -> Iterator[Found]:
        """Yield every secret from *start* on, in no particular order; what stands before it is context."""
        for value in self._values:
            place = text.find(value, start)
            while place >= 0:
                yield Found(place, place + len(value), (place, place + len(value)))
                place = text.find(value, place + len(value))
        for shape in self._shapes:
            for begin in shape.starts:
                yield from _shaped(shape.expression, begin, text, start)

    def unfinished(self, text: str, start: int) -> int:
        """Return where the first secret could begin of which more text may be to come."""
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
    """Takes secrets out of text that comes in pieces.

    The pieces that come out, put together, are what `Redactor.text` makes of the pieces that went in.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""  # one character of context, if there is any, and what is held back
        self._start = 0
        self._look_again = 0

    def feed(self, piece: str) -> str:
        """Take a piece and return what is certain by now; it may be empty."""
        self._text += piece
        if len(self._text) < self._look_again:
            return ""
        found = list(self._redactor.found(self._text, self._start))
        cut = self._certain(found)
        out = self._take(found, cut)
        # While much is held back, looking at all of it again for each small piece would take long.
        held = len(self._text) - self._start
        self._look_again = len(self._text) + (held // 2 if held > _HELD_EASILY else 0)
        return out

    def close(self) -> str:
        """Return the rest."""
        return self._take(list(self._redactor.found(self._text, self._start)), len(self._text))

    def _certain(self, found: list[Found]) -> int:
        """Return up to where nothing that is to come can change anything."""
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


_HELD_EASILY = 4_096


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
    """Return the secrets, and how they look within JSON and within addresses, if that differs."""
    import json
    from urllib.parse import quote, quote_plus

    made: set[str] = set()
    for secret in secrets:
        if not isinstance(secret, str) or len(secret) < _SHORTEST:
            raise ArgumentError(
                f"a secret must be a string of at least {_SHORTEST} characters: a shorter one cannot be told "
                "from ordinary text"
            )
        encoded = secret.encode("utf-8", "surrogatepass")
        made |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        made |= {quote(encoded, safe=""), quote_plus(encoded)}
    return tuple(sorted(made, key=lambda value: (-len(value), value)))


def _free(taken: Mapping[Any, Any], key: Any) -> Any:
    """Return the key, or another one if it is taken: two secrets may have been keys of one mapping."""
    number, free = 2, key
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free


def _same(one: Any, other: Any) -> bool:
    return one is other
