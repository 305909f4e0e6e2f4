"""From a function's signature to its tool schema, and from JSON arguments to a call."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from inspect import Parameter
from types import SimpleNamespace
from typing import Any

from agent_core.errors import RegistrationError, ToolError
from agent_core.frozen import Dicts, JsonObject, freeze
from agent_core.functions.annotations import UNIONS, Shapes, described, object_schema
from agent_core.functions.docstrings import Docstring, read_docstring
from agent_core.functions.function_tool import bound_names, doc_of, underlying
from agent_core.functions.shapes import (
    ANYTHING,
    MismatchError,
    Shape,
    UnsupportedAnnotationError,
    load_at,
    resolving_hint,
)

_LENT = frozenset({"context", "cancellation", "tool_call"})
_CONTEXT_TYPES = (dict, Mapping, MutableMapping, Any)
_CONTEXT_WORDS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "Any"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One parameter: filled from an argument, or (`shape` is None) lent by the platform."""

    name: str
    shape: Shape | None
    default: Any = Parameter.empty
    positional: bool = False
    takes_run: bool = False

    @property
    def required(self) -> bool:
        """Whether a call must bring a value."""
        return self.shape is not None and self.default is Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a function: its schemas, and how arguments become a call."""

    tool: str
    description: str
    schemas: Dicts
    slots: tuple[Slot, ...]
    extra: Shape | None

    def bind(
        self, arguments: Mapping[str, object], lent: Mapping[str, object]
    ) -> tuple[list[Any], JsonObject]:
        """Return positional and keyword arguments for the call.

        Raises:
            ToolError: If an argument is missing, unknown, or not what its annotation asks for.
        """
        positional: list[Any] = []
        named = self._surplus(arguments)
        for slot in self.slots:
            value = self._value(slot, arguments, lent)
            if slot.positional:
                positional.append(value)
            else:
                named[slot.name] = value
        return positional, named

    def _value(self, slot: Slot, arguments: Mapping[str, object], lent: Mapping[str, object]) -> object:
        if slot.takes_run:
            return self._run_context(slot, lent["context"])
        if slot.shape is None:
            return lent[slot.name]
        if slot.name in arguments:
            return self._load(slot.name, slot.shape, arguments[slot.name])
        if slot.required:
            raise ToolError(self.tool, f"argument {slot.name!r} is missing")
        return slot.default

    def _run_context(self, slot: Slot, context: Any) -> object:
        """Return what the run of an agent tells its tools; the runtime makes it when it is wanted."""
        run: Any = (context or {}).get("run")
        if not hasattr(run, "run_context"):
            raise ToolError(self.tool, f"{slot.name!r} is a RunContext, which only the run of an agent has")
        made: object = run.run_context(context)
        return made

    def _surplus(self, arguments: Mapping[str, object]) -> JsonObject:
        """Return what is left for ``**kwargs``; no model may set what the platform lends."""
        shapes = {slot.name: slot.shape for slot in self.slots}
        surplus = [name for name in arguments if shapes.get(name) is None]
        for name in surplus:
            if self.extra is None or name in shapes:
                raise ToolError(self.tool, f"there is no argument {name!r}")
        return {name: self._load(name, self.extra or ANYTHING, arguments[name]) for name in surplus}

    def _load(self, name: str, shape: Shape, value: object) -> object:
        try:
            return load_at(name, shape.load, value)
        except MismatchError as error:
            raise ToolError(self.tool, f"argument {error}") from error


def read_plan(tool: str, function: object, description: str | None) -> Plan:
    """Read a function's signature, annotations and docstring.

    Raises:
        RegistrationError: If a parameter cannot be described in JSON Schema; it names the parameter.
    """
    reader = _Reader(tool, function)
    slots = tuple(reader.slots())
    extra = reader.extra()
    text = reader.doc.description if description is None else description
    called = {"name": tool, "description": text, "parameters": reader.schema(slots, extra)}
    schemas = freeze([{"type": "function", "function": called}])
    return Plan(tool=tool, description=text, schemas=schemas, slots=slots, extra=extra)


class _Reader:
    """Reads one function; the shapes of its parameters share their definitions."""

    def __init__(self, tool: str, function: object) -> None:
        self._tool = tool
        self._shapes = Shapes()
        self._globals = getattr(inspect.unwrap(underlying(function)), "__globals__", {})
        self._parameters = [
            parameter
            for parameter in _parameters(tool, function)
            # What a partial has fixed must not reach the model: it may be a key.
            if parameter.name not in bound_names(function)
        ]
        self.doc: Docstring = read_docstring(doc_of(function))

    def slots(self) -> Iterator[Slot]:
        for parameter in self._parameters:
            if parameter.kind is Parameter.VAR_POSITIONAL:
                raise self._problem(parameter, "JSON arguments have names: take a list instead of *args")
            if parameter.kind is not Parameter.VAR_KEYWORD:
                yield self._slot(parameter)

    def extra(self) -> Shape | None:
        """Return the shape of what ``**kwargs`` takes, or None without it."""
        for parameter in self._parameters:
            if parameter.kind is Parameter.VAR_KEYWORD:
                return self._shape(parameter)
        return None

    def schema(self, slots: tuple[Slot, ...], extra: Shape | None) -> JsonObject:
        properties = {slot.name: slot.shape.schema for slot in slots if slot.shape is not None}
        required = [slot.name for slot in slots if slot.required]
        more = False if extra is None else extra.schema or True
        schema = object_schema(properties, required, extra=more)
        return {**schema, "$defs": self._shapes.defs} if self._shapes.defs else schema

    def _slot(self, parameter: Parameter) -> Slot:
        if self._is_run_context(parameter):
            positional = parameter.kind is Parameter.POSITIONAL_ONLY
            return Slot(name=parameter.name, shape=None, positional=positional, takes_run=True)
        shape = None if self._is_lent(parameter) else self._shape(parameter)
        if shape is not None and parameter.default is not Parameter.empty:
            shape = shape.defaulting_to(parameter.default)
        positional = parameter.kind is Parameter.POSITIONAL_ONLY
        return Slot(name=parameter.name, shape=shape, default=parameter.default, positional=positional)

    def _shape(self, parameter: Parameter) -> Shape:
        annotation = self._resolved(parameter)
        try:
            shape = self._shapes.of(annotation)
        except (UnsupportedAnnotationError, NameError) as error:  # a `type` statement is evaluated late
            raise self._problem(parameter, str(error)) from error
        return described(shape, annotation, self.doc.parameters.get(parameter.name))

    def _is_run_context(self, parameter: Parameter) -> bool:
        """Say whether the annotation is the runtime's `RunContext`, which the core knows only by name."""
        if parameter.annotation is Parameter.empty:
            return False
        try:
            annotation = self._resolved(parameter)
        except RegistrationError:  # imported for type checkers only, most likely
            return str(parameter.annotation).partition("[")[0].rpartition(".")[2] == "RunContext"
        kind = typing.get_origin(annotation) or annotation
        return getattr(kind, "is_run_context", False) is True

    def _is_lent(self, parameter: Parameter) -> bool:
        if parameter.name not in _LENT:
            return False
        return parameter.name != "context" or self._takes_mapping(parameter)

    def _takes_mapping(self, parameter: Parameter) -> bool:
        try:
            annotation = self._resolved(parameter)
        except RegistrationError:
            # Imported for type checkers only, most likely: the word has to do.
            word = str(parameter.annotation).partition("[")[0].partition("|")[0]
            return word.strip().rpartition(".")[2] in _CONTEXT_WORDS
        members = typing.get_args(annotation) if typing.get_origin(annotation) in UNIONS else (annotation,)
        return any((typing.get_origin(member) or member) in _CONTEXT_TYPES for member in members)

    def _resolved(self, parameter: Parameter) -> object:
        if parameter.annotation is Parameter.empty:
            return Any
        one = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
        try:
            return typing.get_type_hints(one, self._globals, include_extras=True)[parameter.name]
        except (NameError, AttributeError, SyntaxError, TypeError) as error:
            written = f"its annotation {parameter.annotation!r} cannot be resolved ({error})"
            raise self._problem(parameter, f"{written}: {resolving_hint(error)}") from error

    def _problem(self, parameter: Parameter, problem: str) -> RegistrationError:
        return RegistrationError(self._tool, f"parameter {parameter.name!r}: {problem}")


def _parameters(tool: str, function: object) -> list[Parameter]:
    try:
        parameters = list(_signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise RegistrationError(tool, f"its signature cannot be read ({error}): wrap it in a def") from error
    if parameters and parameters[0].name == "self":
        raise RegistrationError(tool, "it is a method without its object: use tool(instance.method)")
    return parameters


def _signature(function: Any) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        # Annotations are evaluated on demand there; one that cannot be must not spoil the others.
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
