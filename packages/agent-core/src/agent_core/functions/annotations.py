"""Annotations to shapes: JSON Schema (draft 2020-12) one way, Python values the other."""

from __future__ import annotations

import types
import typing
from collections import abc
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from agent_core.functions.containers import array, fixed_tuple, mapping, union
from agent_core.functions.records import is_record, record
from agent_core.functions.scalars import PLAIN, choice, enum_member, formatted_text
from agent_core.functions.shapes import ANYTHING, MismatchError, Shape, UnsupportedAnnotationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ARRAYS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}
_OBJECTS = frozenset({dict, abc.Mapping, abc.MutableMapping})
_DEFS = "#/$defs/"
UNIONS = frozenset({Union, types.UnionType})
# What they say about a field is read where the field is; here only the type inside counts.
_QUALIFIERS = frozenset(
    getattr(typing, name)
    for name in ("Required", "NotRequired", "ReadOnly", "Final")
    if hasattr(typing, name)
)


class Shapes:
    """The shapes of one tool's annotations.

    Attributes:
        defs: What goes into the schema's ``$defs``: the types that contain themselves. Others are
            written out where they are used, since not every provider follows references.
    """

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}
        self._names: dict[Any, str] = {}
        self._open: set[Any] = set()
        self._done: dict[Any, Shape] = {}

    def of(self, annotation: Any) -> Shape:
        """Return the shape of *annotation*.

        Raises:
            UnsupportedAnnotationError: If there is no JSON for it.
        """
        origin = get_origin(annotation)
        if origin is not None:
            return self._of_form(annotation, origin, get_args(annotation))
        if type(annotation).__hash__ is None:
            raise _unsupported(annotation)
        return PLAIN.get(annotation) or self._of_class(annotation)

    def _of_form(self, annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Shape:
        if origin is Annotated:
            return self._annotated(*arguments)
        if origin is Literal:
            return choice([(value, value) for value in arguments], _written(annotation))
        if origin in UNIONS:
            return union([self.of(member) for member in arguments])
        if origin in _QUALIFIERS:
            return self.of(arguments[0])
        return self._container(annotation, origin, arguments)

    def _container(self, annotation: Any, kind: Any, arguments: tuple[Any, ...]) -> Shape:
        if kind in _ARRAYS:
            return array(_ARRAYS[kind], self._item(arguments))
        if kind is tuple:
            return self._tuple(annotation, arguments)
        if kind in _OBJECTS:
            return self._mapping(*(arguments or (str, Any)))
        raise _unsupported(annotation)

    def _of_class(self, kind: Any) -> Shape:
        if kind in _ARRAYS or kind in _OBJECTS or kind is tuple:
            return self._container(kind, kind, ())
        if not isinstance(kind, type):
            return self._of_name(kind)
        if issubclass(kind, Enum):
            return enum_member(kind)
        if hasattr(kind, "model_json_schema"):
            return self._shared(kind, lambda: self._model(kind))
        if is_record(kind):
            return self._shared(kind, lambda: record(kind, self.of))
        if text := formatted_text(kind):
            return text
        raise _unsupported(kind)

    def _of_name(self, named: Any) -> Shape:
        """Return the shape behind a NewType, a ``type`` statement or a type variable."""
        if hasattr(named, "__supertype__"):
            return self.of(named.__supertype__)
        if hasattr(named, "__value__"):
            return self._shared(named, lambda: self.of(named.__value__))
        if not isinstance(named, typing.TypeVar):
            raise _unsupported(named)
        if named.__constraints__:
            return union([self.of(member) for member in named.__constraints__])
        return self.of(named.__bound__ or Any)

    def _shared(self, kind: Any, make: Callable[[], Shape]) -> Shape:
        """Make the shape of a type that may contain itself, once."""
        if kind in self._done:
            return self._done[kind]
        if kind in self._open:
            return self._reference(kind)
        self._open.add(kind)
        self._done[kind] = shape = make()
        if kind in self._names:
            self.defs[self._names[kind]] = shape.schema
            self._done[kind] = Shape(self._reference(kind).schema, shape.load)
        return self._done[kind]

    def _reference(self, kind: Any) -> Shape:
        if kind not in self._names:
            self._names[kind] = self._free_name(kind.__name__)

        def load(value: Any) -> Any:
            if kind not in self._done:  # a field's default is tried while its class is being read
                raise MismatchError("its type is not known yet")
            return self._done[kind].load(value)

        return Shape({"$ref": _DEFS + self._names[kind]}, load)

    def _free_name(self, wanted: str) -> str:
        stem = wanted if wanted.isascii() else "Type"  # a $ref is a URI
        name, count = stem, 1
        while name in self.defs:
            count += 1
            name = f"{stem}_{count}"
        self.defs[name] = {}  # taken, until its schema is known
        return name

    def _model(self, kind: Any) -> Shape:
        """Take the schema of a class that makes its own, as pydantic's models do."""
        schema = dict(kind.model_json_schema())
        inner = schema.pop("$defs", {})
        names = {name: self._free_name(name) for name in inner}
        references = {_DEFS + name: _DEFS + free for name, free in names.items()}
        for name, free in names.items():
            self.defs[free] = _renamed(inner[name], references)
        return Shape(_renamed(schema, references), _validator(kind))

    def _annotated(self, base: Any, *metadata: Any) -> Shape:
        shape = self.of(base)
        for item in metadata:
            if isinstance(item, str):
                shape = shape.extended({"description": item})
            elif isinstance(item, abc.Mapping):
                shape = shape.extended(item)
        return shape

    def _item(self, arguments: tuple[Any, ...]) -> Shape:
        return self.of(arguments[0]) if arguments else ANYTHING

    def _tuple(self, annotation: Any, arguments: tuple[Any, ...]) -> Shape:
        if annotation in (tuple, typing.Tuple):  # noqa: UP006 - the old spelling, bare
            return array(tuple, ANYTHING)
        if len(arguments) == 2 and arguments[1] is Ellipsis:  # noqa: PLR2004 - X and "..."
            return array(tuple, self.of(arguments[0]))
        return fixed_tuple([self.of(member) for member in arguments])

    def _mapping(self, key: Any, value: Any) -> Shape:
        keys, values = self.of(str if key is Any else key), self.of(value)
        if keys.schema.get("type") != "string":
            raise UnsupportedAnnotationError(
                f"the keys of a JSON object are strings, not {_written(key)}: use str keys or a list of pairs"
            )
        return mapping(keys, values)


def _validator(kind: Any) -> Callable[[Any], Any]:
    def load(value: Any) -> Any:
        try:
            return kind.model_validate(value)
        except ValueError as error:
            raise MismatchError(str(error)) from error

    return load


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, abc.Mapping):
        return {key: _renamed(item, names) for key, item in schema.items()}
    return [_renamed(item, names) for item in schema] if isinstance(schema, list) else schema


def _written(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)


def _unsupported(annotation: Any) -> UnsupportedAnnotationError:
    return UnsupportedAnnotationError(
        f"{_written(annotation)} has no JSON Schema: use a dataclass, a TypedDict or plain types, "
        "or take a str and make the object inside the function"
    )
