"""Annotations to shapes: JSON Schema (draft 2020-12) one way, Python values the other."""

from __future__ import annotations

import types
import typing
from collections import abc
from dataclasses import MISSING, Field, dataclass, fields as dataclass_fields, is_dataclass
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from agent_core.functions.docstrings import Docstring, read_docstring
from agent_core.functions.shapes import (
    ANYTHING,
    PLAIN,
    MismatchError,
    Shape,
    UnsupportedAnnotationError,
    array,
    choice,
    constrained,
    enum_member,
    fixed_tuple,
    formatted_text,
    load_at,
    mapping,
    refused,
    resolving_hint,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_core.frozen import JsonObject


# Annotations whose JSON form is an object with named fields: dataclasses, TypedDicts, NamedTuples.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One field as its class declares it."""

    name: str
    annotation: Any
    required: bool
    default: Any
    description: str | None = None


def is_record(kind: type) -> bool:
    """Whether *kind* is a class with named, annotated fields that this module knows."""
    return is_dataclass(kind) or _is_typed_dict(kind) or _is_named_tuple(kind)


def record(kind: type, shape_of: Callable[[object], Shape]) -> Shape:
    """Return the shape of a record; *shape_of* is asked for its fields."""
    doc = _docstring(kind)
    entries = list(_entries(kind))
    shapes = {entry.name: _field_shape(entry, doc, shape_of) for entry in entries}
    required = [entry.name for entry in entries if entry.required]
    schema = object_schema({name: shape.schema for name, shape in shapes.items()}, required)
    if doc.description:
        schema = {"description": doc.description, **schema}
    return Shape(schema, _loader(kind, shapes, required))


def object_schema(properties: JsonObject, required: list[str], *, extra: object = False) -> JsonObject:
    """Return the schema of an object; *extra* says what its further properties may be."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": extra}


def described(shape: Shape, annotation: object, help_text: str | None) -> Shape:
    """Return the shape with *help_text*, unless the annotation itself brought a description."""
    own = any(isinstance(item, str) for item in getattr(annotation, "__metadata__", ()))
    return shape if own or not help_text else shape.extended({"description": help_text})


def _field_shape(entry: _Entry, doc: Docstring, shape_of: Callable[[object], Shape]) -> Shape:
    try:
        shape = shape_of(entry.annotation)
    except UnsupportedAnnotationError as error:
        raise UnsupportedAnnotationError(f"field {entry.name!r}: {error}") from error
    shape = described(shape, entry.annotation, entry.description or doc.parameters.get(entry.name))
    return shape if entry.default is MISSING else shape.defaulting_to(entry.default)


def _loader(kind: type, shapes: dict[str, Shape], required: list[str]) -> Callable[[object], object]:
    def load(value: object) -> object:
        if not isinstance(value, dict):
            raise refused(value, "an object")
        if surplus := value.keys() - shapes:
            raise MismatchError(f"unknown field {min(surplus)!r}")
        if missing := [name for name in required if name not in value]:
            raise MismatchError(f"field {missing[0]!r} is missing")
        read = {name: load_at(name, shapes[name].load, item) for name, item in value.items()}
        try:
            return kind(**read)
        except (TypeError, ValueError) as error:  # a __post_init__ may have rules of its own
            raise MismatchError(str(error)) from error

    return load


def _entries(kind: Any) -> Iterator[_Entry]:
    hints = _hints(kind)
    if is_dataclass(kind):
        return (_of_field(field, hints) for field in dataclass_fields(kind) if field.init)
    if _is_typed_dict(kind):
        return (_of_key(kind, name, hint) for name, hint in hints.items())
    return (_of_position(kind, name, hints) for name in kind._fields)


def _of_field(field: Field[Any], hints: JsonObject) -> _Entry:
    return _Entry(
        name=field.name,
        annotation=hints[field.name],
        required=field.default is MISSING and field.default_factory is MISSING,
        default=field.default,
        description=field.metadata.get("description"),
    )


def _of_key(kind: Any, name: str, hint: Any) -> _Entry:
    # With annotations as strings, 3.11 does not see the marks when it makes __required_keys__.
    marked = {Required: True, NotRequired: False}.get(get_origin(hint))
    if marked is None:
        required = name in kind.__required_keys__
        return _Entry(name=name, annotation=hint, required=required, default=MISSING)
    return _Entry(name=name, annotation=get_args(hint)[0], required=marked, default=MISSING)


def _of_position(kind: Any, name: str, hints: JsonObject) -> _Entry:
    default = kind._field_defaults.get(name, MISSING)
    return _Entry(name=name, annotation=hints.get(name, Any), required=default is MISSING, default=default)


def _hints(kind: type) -> JsonObject:
    try:
        return _own_hints(kind)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise UnsupportedAnnotationError(
            f"a field of {kind.__qualname__} has an annotation that cannot be resolved ({error}): "
            f"{resolving_hint(error)}"
        ) from error


def _own_hints(kind: type) -> JsonObject:
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError:
        # A class made inside a function is in no module, so its own name has to be offered.
        return get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)


def _docstring(kind: type) -> Docstring:
    doc = kind.__doc__ or ""
    # Python writes "Name(field: type, ...)" for who writes nothing.
    return read_docstring("" if doc.startswith(f"{kind.__name__}(") else doc)


def _is_typed_dict(kind: type) -> bool:
    return issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_field_defaults")


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
        self.defs: JsonObject = {}
        self._names: dict[Any, str] = {}
        self._open: set[Any] = set()
        self._done: dict[Any, Shape] = {}

    def of(self, annotation: object) -> Shape:
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

    def _of_form(self, annotation: object, origin: object, arguments: tuple[object, ...]) -> Shape:
        if origin is Annotated:
            return self._annotated(*arguments)
        if origin is Literal:
            return choice([(value, value) for value in arguments], _written(annotation))
        if origin in UNIONS:
            return union([self.of(member) for member in arguments])
        if origin in _QUALIFIERS:
            return self.of(arguments[0])
        return self._container(annotation, origin, arguments)

    def _container(self, annotation: object, kind: object, arguments: tuple[object, ...]) -> Shape:
        if kind in _ARRAYS:
            return array(_ARRAYS[kind], self._item(arguments))
        if kind is tuple:
            return self._tuple(annotation, arguments)
        if kind in _OBJECTS:
            return self._mapping(*(arguments or (str, Any)))
        raise _unsupported(annotation)

    def _of_class(self, kind: object) -> Shape:
        if kind in _ARRAYS or kind in _OBJECTS or kind is tuple:
            return self._container(kind, kind, ())
        if not isinstance(kind, type):
            return self._of_name(kind)
        if issubclass(kind, Enum):
            return enum_member(kind)
        if hasattr(kind, "model_json_schema") or hasattr(kind, "__struct_fields__"):
            foreign = self._model if hasattr(kind, "model_json_schema") else self._struct
            return self._shared(kind, lambda: foreign(kind))
        if is_record(kind):
            return self._shared(kind, lambda: record(kind, self.of))
        if text := formatted_text(kind):
            return text
        raise _unsupported(kind)

    def _of_name(self, named: object) -> Shape:
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

    def _shared(self, kind: object, make: Callable[[], Shape]) -> Shape:
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

        def load(value: object) -> object:
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
        return Shape(self._adopted(kind.model_json_schema()), _validator(kind))

    def _struct(self, kind: Any) -> Shape:
        """Take the schema of a msgspec struct, and let msgspec read its values."""
        import msgspec  # whoever made the struct has loaded it

        schema = msgspec.json.schema(kind)
        inner = schema["$defs"]
        own = schema["$ref"].removeprefix(_DEFS)
        if not any(_mentions(item, schema["$ref"]) for item in inner.values()):
            schema = inner.pop(own)  # not every provider takes a schema that begins with a reference

        def load(value: object) -> object:
            try:
                return msgspec.convert(value, kind)
            except msgspec.ValidationError as error:  # a ValueError only since msgspec 0.20
                raise MismatchError(str(error)) from error

        return Shape(self._adopted({**schema, "$defs": inner}), load)

    def _adopted(self, made: Mapping[str, Any]) -> JsonObject:
        """Return a schema that another library made, with its definitions among ours."""
        schema = dict(made)
        inner = schema.pop("$defs", {})
        names = {name: self._free_name(name) for name in inner}
        references = {_DEFS + name: _DEFS + free for name, free in names.items()}
        for name, free in names.items():
            self.defs[free] = _renamed(inner[name], references)
        adopted: JsonObject = _renamed(schema, references)
        return adopted

    def _annotated(self, base: object, *metadata: object) -> Shape:
        shape = self.of(base)
        for item in metadata:
            if isinstance(item, str):
                shape = shape.extended({"description": item})
            elif isinstance(item, abc.Mapping):
                shape = shape.extended(item)
            else:
                shape = constrained(shape, item)
        return shape

    def _item(self, arguments: tuple[object, ...]) -> Shape:
        return self.of(arguments[0]) if arguments else ANYTHING

    def _tuple(self, annotation: object, arguments: tuple[object, ...]) -> Shape:
        if annotation in (tuple, typing.Tuple):  # noqa: UP006 - the old spelling, bare
            return array(tuple, ANYTHING)
        if arguments[1:] == (Ellipsis,):
            return array(tuple, self.of(arguments[0]))
        return fixed_tuple([self.of(member) for member in arguments])

    def _mapping(self, key: object, value: object) -> Shape:
        keys, values = self.of(str if key is Any else key), self.of(value)
        if keys.schema.get("type") != "string":
            raise UnsupportedAnnotationError(
                f"the keys of a JSON object are strings, not {_written(key)}: use str keys or a list of pairs"
            )
        return mapping(keys, values)


def _validator(kind: Any) -> Callable[[object], object]:
    def load(value: object) -> object:
        try:
            return kind.model_validate(value)
        except ValueError as error:
            raise MismatchError(_problems(error)) from error

    return load


def _problems(error: ValueError) -> str:
    """Return what pydantic found, in a line: where and what, without addresses of its documentation."""
    listed = error.errors() if hasattr(error, "errors") else []
    found = [f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in listed]
    return "; ".join(found) or str(error)


def _mentions(schema: object, reference: str) -> bool:
    if isinstance(schema, abc.Mapping):
        return any(_mentions(item, reference) for item in schema.values())
    if isinstance(schema, list):
        return any(_mentions(item, reference) for item in schema)
    return schema == reference


def _renamed(schema: object, names: Mapping[str, str]) -> Any:
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, abc.Mapping):
        return {key: _renamed(item, names) for key, item in schema.items()}
    return [_renamed(item, names) for item in schema] if isinstance(schema, list) else schema


def _written(annotation: object) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)


def _unsupported(annotation: object) -> UnsupportedAnnotationError:
    return UnsupportedAnnotationError(
        f"{_written(annotation)} has no JSON Schema: use a dataclass, a TypedDict or plain types, "
        "or take a str and make the object inside the function"
    )
