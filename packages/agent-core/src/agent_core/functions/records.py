"""Annotations whose JSON form is an object with named fields: dataclasses, TypedDicts, NamedTuples."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields as dataclass_fields, is_dataclass
from typing import TYPE_CHECKING, Any, NotRequired, Required, get_args, get_origin, get_type_hints

from agent_core.functions.docstrings import Docstring, read_docstring
from agent_core.functions.shapes import (
    MismatchError,
    Shape,
    UnsupportedAnnotationError,
    load_at,
    refused,
    resolving_hint,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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


def record(kind: type, shape_of: Callable[[Any], Shape]) -> Shape:
    """Return the shape of a record; *shape_of* is asked for its fields."""
    doc = _docstring(kind)
    entries = list(_entries(kind))
    shapes = {entry.name: _field_shape(entry, doc, shape_of) for entry in entries}
    required = [entry.name for entry in entries if entry.required]
    schema = object_schema({name: shape.schema for name, shape in shapes.items()}, required)
    if doc.description:
        schema = {"description": doc.description, **schema}
    return Shape(schema, _loader(kind, shapes, required))


def object_schema(properties: dict[str, Any], required: list[str], *, extra: Any = False) -> dict[str, Any]:
    """Return the schema of an object; *extra* says what its further properties may be."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": extra}


def described(shape: Shape, annotation: Any, help_text: str | None) -> Shape:
    """Return the shape with *help_text*, unless the annotation itself brought a description."""
    own = any(isinstance(item, str) for item in getattr(annotation, "__metadata__", ()))
    return shape if own or not help_text else shape.extended({"description": help_text})


def _field_shape(entry: _Entry, doc: Docstring, shape_of: Callable[[Any], Shape]) -> Shape:
    try:
        shape = shape_of(entry.annotation)
    except UnsupportedAnnotationError as error:
        raise UnsupportedAnnotationError(f"field {entry.name!r}: {error}") from error
    shape = described(shape, entry.annotation, entry.description or doc.parameters.get(entry.name))
    return shape if entry.default is MISSING else shape.defaulting_to(entry.default)


def _loader(kind: type, shapes: dict[str, Shape], required: list[str]) -> Callable[[Any], Any]:
    def load(value: Any) -> Any:
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


def _of_field(field: Field[Any], hints: dict[str, Any]) -> _Entry:
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


def _of_position(kind: Any, name: str, hints: dict[str, Any]) -> _Entry:
    default = kind._field_defaults.get(name, MISSING)
    return _Entry(name=name, annotation=hints.get(name, Any), required=default is MISSING, default=default)


def _hints(kind: type) -> dict[str, Any]:
    try:
        return _own_hints(kind)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise UnsupportedAnnotationError(
            f"a field of {kind.__qualname__} has an annotation that cannot be resolved ({error}): "
            f"{resolving_hint(error)}"
        ) from error


def _own_hints(kind: type) -> dict[str, Any]:
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
