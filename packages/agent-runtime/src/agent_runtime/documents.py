"""JSON, TOML and YAML as data that remembers where everything stands.

A text becomes a `Document`: its data, and the place of everything in it, a mapping from the path to a value
(`("agents", "helper", "max_rounds")`) to the offset where its key begins. Whoever refuses a value looks its
place up; what has no place of its own, such as a missing field, is reported at the nearest thing around it.

The standard library's parsers decide what is valid JSON and TOML, but they keep no places. A small walker
goes over the same text and only notes where keys begin. PyYAML's nodes bring their places along.

All formats keep the same rules: no key twice, whole numbers of 64 bits, finite numbers, no dates, and limits
for depth and size that no honest file reaches. The limits refuse a hostile file before it costs time or
memory: PyYAML and `tomllib` are written in Python, and each takes about a second for a million characters,
PyYAML another for some ten thousand values.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yaml.nodes import MappingNode, Node, ScalarNode

KeyPath = tuple[str | int, ...]
"""The keys and list positions that lead from the top of the data to a value."""
Places = dict[KeyPath, int]
"""Where everything in a text begins, as an offset."""

MAX_BYTES = 1_000_000
"""How large a file may be."""
MAX_VALUES = 20_000
"""How many values a file may hold; those that YAML aliases repeat are counted each time."""
MAX_DEPTH = 100
"""How deep the values of a file may be nested; keeps the stack from running out."""
MAX_DIGITS = 1_000
"""How many characters a number may have: PyYAML takes quadratic time for one in base 60."""

_TOO_LONG = "a whole number that does not fit into 64 bits"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Wrong(Exception):
    """Something in a text that cannot be used, before anyone knows which file the text is from.

    Attributes:
        at: The offset where it stands, if that is known.
        problem: What is wrong, and what to do about it.
        field: The path to it, as errors write it.
    """

    def __init__(self, at: int | None, problem: str, field: str | None = None) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.field = field


def line_of(text: str, at: int | None) -> int | None:
    """Return the line of an offset, counted from one."""
    return None if at is None else text.count("\n", 0, at) + 1


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a text and where everything in it stands."""

    data: Any
    places: Places

    def locate(self, path: KeyPath) -> int | None:
        """Return where the value at *path* begins, or the nearest thing around it that has a place."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path)


# Paths. Specs name a field as `stop_conditions[0].seconds`. A key may itself contain dots or brackets, so
# such a name is not split: it is followed through the data, along the keys that are there.


def spell(path: KeyPath) -> str:
    """Return a path as errors write it: `agents.helper.stop_conditions[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def join(outer: str, field: str) -> str:
    """Return the path of a field of something, or of the thing itself if *field* is empty."""
    return f"{outer}.{field}".rstrip(".") if not field.startswith("[") else outer + field


def inside(value: Any, path: KeyPath) -> Any:
    """Return the value at *path* in nested data."""
    for step in path:
        value = value[step]
    return value


def follow(value: object, field: str) -> KeyPath:
    """Return the path that a field's name takes through *value*, as far as it goes."""
    if isinstance(value, dict):
        return _follow_key(value, field)
    number = re.match(r"\[(\d+)\]\.?", field) if isinstance(value, list) else None
    if not isinstance(value, list) or number is None or int(number[1]) >= len(value):
        return ()
    return (int(number[1]), *follow(value[int(number[1])], field[number.end() :]))


def _follow_key(value: dict[str, object], field: str) -> KeyPath:
    for key in sorted(value, key=len, reverse=True):  # a key may contain a dot, so longer ones go first
        for spelt in (key, f"[{key!r}]"):
            rest = field.removeprefix(spelt)
            if len(rest) < len(field) and rest[:1] in {"", ".", "["}:
                return (key, *follow(value[key], rest.removeprefix(".")))
    return ()


def unusable(data: object) -> Iterator[tuple[KeyPath, str]]:
    """Find the values that some format can write and others cannot, each with what is wrong with it."""
    waiting: list[tuple[KeyPath, object]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        problem = _flaw(path[-1] if path else None) or _flaw(value)
        if problem:
            yield path, problem
        if isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend(((*path, place), item) for place, item in reversed(list(enumerate(value))))


def _flaw(value: object) -> str | None:
    if value is None or isinstance(value, (bool, dict, list)):
        return None
    if isinstance(value, str):
        return "has half a surrogate pair, which is not a character" if _SURROGATE.search(value) else None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else f"is {_TOO_LONG}"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"must be a finite number, not {value}"
    return f"is a {type(value).__name__}: put it in quotes"


class _Notes:
    """The places of a document as they are found; enforces the limits for depth and number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: Places = {(): 0}

    def note(self, path: KeyPath, at: int) -> None:
        if len(path) > MAX_DEPTH:
            raise _too_deep(at)
        if len(self.places) > MAX_VALUES:
            raise _too_many(at)
        self.places[path] = at

    def repeated(self, path: KeyPath, at: int) -> Wrong:
        """Return the problem of a key that its mapping has already."""
        first = line_of(self.text, self.places[path])
        return Wrong(at, f"the key {path[-1]!r} is in line {first} already: remove one of them", spell(path))


def _too_deep(at: int) -> Wrong:
    return Wrong(at, f"is nested deeper than {MAX_DEPTH} levels")


def _too_many(at: int) -> Wrong:
    return Wrong(at, f"holds more than {MAX_VALUES:,} values: split the file into several")


def parse_json(text: str) -> Document:
    """Return the document that a JSON text holds.

    Raises:
        Wrong: If the text is not valid, or a key stands in it twice.
    """
    walker = _Walker(text, json.loads)
    walker.walk()
    data = _checked(json.loads, text, "JSON")
    if walker.duplicate is not None:
        raise walker.duplicate
    return Document(data, walker.places)


def parse_toml(text: str) -> Document:
    """Return the document that a TOML text holds.

    Raises:
        Wrong: If the text is not valid.
    """
    walker = _TomlWalker(text, lambda token: str(tomllib.loads(f"key = {token}")["key"]))
    walker.walk()
    return Document(_checked(tomllib.loads, text, "TOML"), walker.places)


def _checked(loads: Callable[[str], Any], text: str, language: str) -> Any:
    """Return what a parser of the standard library reads; its refusal becomes `Wrong` with a place."""
    try:
        return loads(text)
    except ValueError as error:
        problem = re.sub(r" \(at .*\)$|: line \d+ column \d+ \(char \d+\)$", "", str(error))
        if "set_int_max_str_digits" in problem:  # advice for programmers, not for authors of files
            problem = _TOO_LONG
        raise Wrong(_stop_of(error, text), f"is not valid {language}: {problem}") from error


def _stop_of(error: ValueError, text: str) -> int | None:
    """Return where a parser stopped.

    JSON has a field for it and TOML puts it into the message. A number with too many digits has no place at
    all, so the first such number is looked for.
    """
    if isinstance(error, json.JSONDecodeError):
        return error.pos
    place = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    if place is None:
        number = re.search(r"\d[\d_]{4000,}", text)
        return None if number is None else number.start()
    lines = text.split("\n")
    return len(text) if place[1] is None else sum(len(line) + 1 for line in lines[: int(place[1]) - 1])


# A group is never repeated possessively: before Python 3.11.5, `(?:...)*+` loses its place (gh-106052).
_STRING = r'''(?x:
    """[^"\\]*+(?:(?:\\[\s\S]|"{1,2}(?!"))[^"\\]*+)*"{3,5}
  | "[^"\\]*+(?:\\.[^"\\]*+)*"
  | \'\'\'[^\']*+(?:\'{1,2}(?!\')[^\']*+)*\'{3,5}
  | \'[^\']*+\'
)'''


class _Walker(_Notes):
    """Goes over JSON and notes where keys and items begin, before the parser has said that it is valid.

    So the limits are checked before any of the data is made. Where the text is not valid the walk ends
    silently, since the parser ends at the same place and has the better message.

    The values of TOML have the same shape except for comments, dotted keys and more kinds of strings, none
    of which can be mistaken in JSON; so both are walked alike.
    """

    _blank = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*")
    _string = re.compile(_STRING)
    _bare_key = re.compile(r"[A-Za-z0-9_-]+")
    _bare_value = re.compile(r"[^,\]}\n#]+")

    def __init__(self, text: str, unquote: Callable[[str], str]) -> None:
        super().__init__(text)
        self.duplicate: Wrong | None = None
        self._at = 0
        self._unquote = unquote

    def walk(self) -> None:
        """Go over the text as far as it is valid."""
        with suppress(ValueError):
            self.blank()
            self.document()

    def document(self) -> None:
        self.value(())

    def blank(self) -> None:
        """Skip blanks and comments."""
        self._take(self._blank)

    def value(self, path: KeyPath) -> None:
        """Go over one value and the blanks behind it."""
        opening = self.text[self._at : self._at + 1]
        if opening == "{":
            self._each("}", lambda _place: self.member(path))
        elif opening == "[":
            self._each("]", lambda place: self._item((*path, place)))
        else:
            self._take(self._string if opening in {'"', "'"} else self._bare_value)
        self.blank()

    def member(self, path: KeyPath) -> None:
        """Go over a key and its value."""
        start = self._at
        *outer, own = self.key()
        for step in outer:
            path = (*path, step)
            self.note(path, self.places.get(path, start))
        path = (*path, own)
        if path in self.places:
            self.duplicate = self.duplicate or self.repeated(path, start)
        self.note(path, start)
        self._skip_sign()
        self.value(path)

    def key(self) -> KeyPath:
        """Go over a key, dotted or not, and return its parts."""
        parts = [self._key_part()]
        while self.text.startswith(".", self._at) and len(parts) <= MAX_DEPTH:  # more are refused anyway
            self._skip_sign()
            parts.append(self._key_part())
        return tuple(parts)

    def _key_part(self) -> str:
        quoted = self.text[self._at : self._at + 1] in {'"', "'"}
        token = self._take(self._string if quoted else self._bare_key)
        self.blank()
        return self._unquote(token) if quoted else token

    def _item(self, path: KeyPath) -> None:
        self.note(path, self._at)
        self.value(path)

    def _each(self, end: str, walk: Callable[[int], None]) -> None:
        self._skip_sign()
        place = 0
        while not self.text.startswith(end, self._at):
            walk(place)
            place += 1
            if self.text.startswith(",", self._at):
                self._skip_sign()
        self._at += 1

    def _skip_sign(self) -> None:
        self._at += 1
        self.blank()

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self._at)
        if found is None:
            raise ValueError(f"expected {pattern.pattern} at {self._at}")
        self._at = found.end()
        return found[0]


class _TomlWalker(_Walker):
    """Goes over TOML: tables, arrays of tables, and the keys in them."""

    def __init__(self, text: str, unquote: Callable[[str], str]) -> None:
        super().__init__(text, unquote)
        self._last: Places = {}  # of each array of tables, the position of the table that is being filled

    def document(self) -> None:
        table: KeyPath = ()
        while self._at < len(self.text):
            if self.text.startswith("[", self._at):
                table = self._header()
            else:
                self.member(table)
            self.blank()

    def _header(self) -> KeyPath:
        start, repeated = self._at, self.text.startswith("[[", self._at)
        self._at += 1 + repeated
        self.blank()
        *outer, own = self.key()
        self._at += 1 + repeated
        path: KeyPath = ()
        for step in outer:
            path = self._entered((*path, step), start)
        path = (*path, own)
        if repeated:
            self._last[path] = self._last.get(path, -1) + 1
            path = self._entered(path, start)
        self.note(path, start)
        return path

    def _entered(self, path: KeyPath, start: int) -> KeyPath:
        self.note(path, self.places.get(path, start))
        return (*path, self._last[path]) if path in self._last else path


# YAML. PyYAML makes nodes, which know their places, and a small tree walk makes plain data of them. Only what
# JSON can say as well is read: no tags, no merge keys, and no keys but texts.

_TAG = "tag:yaml.org,2002:"
_TEXTS = {f"{_TAG}str", f"{_TAG}value"}  # the second is a lone "="
_SCALARS = {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float")}


def parse_yaml(text: str) -> Document:
    """Return the document that a YAML text holds.

    Raises:
        Wrong: If the text is not valid, holds what declarations do not use, or PyYAML is missing.
    """
    try:
        import yaml
    except ImportError as error:
        raise Wrong(None, "needs PyYAML to be read: pip install 'keelwork-runtime[yaml]'") from error

    class BoundedLoader(yaml.SafeLoader):
        """Makes nodes within the limits: a node takes a hundred times the memory of its text."""

        made = depth = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            self.made += 1
            self.depth += 1
            if self.depth > MAX_DEPTH + 1:
                raise _too_deep(self.index)
            if self.made > 2 * MAX_VALUES:
                raise _too_many(self.index)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    try:
        loader = BoundedLoader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        raise Wrong(error.position, f"is not valid YAML: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise Wrong(mark.index if mark else None, f"is not valid YAML: {problem}") from error
    tree = _YamlTree(text, yaml.nodes, yaml.constructor.SafeConstructor())
    return Document(None if root is None else tree.value(root, ()), tree.places)


class _YamlTree(_Notes):
    """Makes plain data of nodes; an alias is followed as often as it is used."""

    def __init__(self, text: str, nodes: Any, constructor: Any) -> None:
        super().__init__(text)
        self._nodes = nodes
        self._constructor = constructor

    def value(self, node: Node, path: KeyPath) -> Any:
        if isinstance(node, self._nodes.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, path)
        if isinstance(node, self._nodes.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self._item(child, (*path, place)) for place, child in enumerate(node.value)]
        if isinstance(node, self._nodes.ScalarNode) and node.tag in _TEXTS | _SCALARS:
            return self._scalar(node, path)
        shown = node.tag.removeprefix(_TAG)
        problem = f"{spell(path)} is tagged as {shown}, which declarations do not use: put a text in quotes"
        raise Wrong(node.start_mark.index, problem.lstrip(), spell(path))

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        data = {}
        for key_node, child in node.value:
            key = self._key(key_node)
            if (*path, key) in self.places:
                raise self.repeated((*path, key), key_node.start_mark.index)
            self.note((*path, key), key_node.start_mark.index)
            data[key] = self.value(child, (*path, key))
        return data

    def _key(self, node: Node) -> str:
        if node.tag in _TEXTS and isinstance(node.value, str):
            return node.value
        if node.tag == f"{_TAG}merge":
            raise Wrong(node.start_mark.index, "the merge key << is not read: write the fields out")
        kind = node.tag.removeprefix(_TAG)
        shown = (
            f"the key {node.value!r} is read as {kind}"
            if isinstance(node.value, str)
            else f"a {kind} cannot be a key"
        )
        raise Wrong(node.start_mark.index, f"{shown}: put it in quotes")

    def _item(self, node: Node, path: KeyPath) -> Any:
        self.note(path, node.start_mark.index)
        return self.value(node, path)

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        if node.tag in _TEXTS:
            return node.value
        if len(node.value) > MAX_DIGITS:
            raise self._unreadable(node, path, _TOO_LONG if node.tag == f"{_TAG}int" else "it is too long")
        try:
            return self._constructor.construct_object(node)
        except (ValueError, LookupError, OverflowError) as error:
            raise self._unreadable(node, path, str(error)) from error

    def _unreadable(self, node: ScalarNode, path: KeyPath, problem: str) -> Wrong:
        message = f"{spell(path)} cannot be read as {node.tag.removeprefix(_TAG)}: {problem}"
        return Wrong(node.start_mark.index, message.lstrip(), spell(path))
