"""What a run is for, beyond text: the forms that an output may have, and how a model's answer becomes one.

An output type is read once into forms, one for each alternative. A form has a JSON Schema and a reader,
both made by the core's reader of annotations, so that dataclasses, TypedDicts, pydantic models, msgspec
structs and plain types are treated alike, and none of those libraries is needed. A function is a form as
well: its arguments are the schema, and what it returns is the output.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from agent_core import ArgumentTypeError, FunctionTool, ToolError
from agent_core.encoding import canonical, parse
from agent_core.errors import RegistrationError
from agent_core.frozen import JsonObject, freeze, thaw
from agent_core.functions.annotations import Shapes
from agent_core.functions.shapes import MismatchError, UnsupportedAnnotationError

OutputMode = Literal["auto", "tool", "native", "prompt"]
TOOL_NAME = "final_result"
_WRAPPER = "response"
_NONE_FITS = (None, types.NoneType, Any, object)
_UNIONS = (typing.Union, types.UnionType)
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class Refused(Exception):  # never leaves this layer: the model reads it
    """What the model gave is not an output; the message says why, in words for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputForm:
    """One alternative.

    Attributes:
        name: What its tool is called.
        description: What the model reads about it.
        schema: The schema of an object, always.
        wrapped: Whether the value is in a field of that object, since it is not an object itself.
        read: Makes the value of its JSON.
        read_begun: Does the same with JSON that is not complete yet, as far as the type allows it.
        function: The function whose arguments the object has, in place of a value.
    """

    name: str
    description: str
    schema: JsonObject
    wrapped: bool = False
    read: Callable[[Any], Any] = lambda value: value
    read_begun: Callable[[Any], Any] = lambda value: value
    function: FunctionTool[..., Any] | None = None

    def load(self, given: object, *, begun: bool = False) -> Any:
        """Return the value that a JSON object stands for.

        Args:
            begun: Whether the object is not complete yet.

        Raises:
            Refused: If it is none.
        """
        if self.wrapped:
            if not isinstance(given, Mapping) or _WRAPPER not in given:
                raise Refused(f"an object with the field {_WRAPPER!r} is needed")
            given = given[_WRAPPER]
        try:
            return (self.read_begun if begun else self.read)(thaw(freeze(given)))
        except MismatchError as error:
            raise Refused(str(error)) from error

    def bind(self, given: object, context: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for the form's function.

        Raises:
            Refused: If they do not fit.
        """
        assert self.function is not None
        arguments = given if isinstance(given, Mapping) else {}
        try:
            return self.function.bind(thaw(freeze(arguments)), {"context": context})
        except ToolError as error:
            raise Refused(error.problem) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputType:
    """Everything that an output may be.

    Attributes:
        forms: The alternatives that are not text.
        takes_text: Whether plain text is an output as well.
        may_be_none: Whether None is an output.
        words: What was asked for, in words.
    """

    forms: tuple[OutputForm, ...]
    takes_text: bool
    may_be_none: bool
    words: str

    @property
    def is_plain_text(self) -> bool:
        return self.takes_text and not self.forms

    @property
    def fits_a_schema(self) -> bool:
        """Whether a provider's own structured output can give it: one schema, and nothing but it."""
        return bool(self.forms) and not self.takes_text and all(form.function is None for form in self.forms)

    def form(self, tool: str) -> OutputForm | None:
        return next((form for form in self.forms if form.name == tool), None)

    def schema(self) -> JsonObject:
        """Return one schema for all forms, for models that answer without a tool."""
        if len(self.forms) == 1:
            return self.forms[0].schema
        definitions: JsonObject = {}
        options = []
        for form in self.forms:
            inner = dict(form.schema)
            definitions |= inner.pop("$defs", {})
            options.append(inner)
        schema: JsonObject = {
            "type": "object",
            "properties": {_WRAPPER: {"anyOf": options}},
            "required": [_WRAPPER],
            "additionalProperties": False,
        }
        return {**schema, "$defs": definitions} if definitions else schema

    def load(self, given: object, *, begun: bool = False) -> tuple[OutputForm, object]:
        """Return the form that takes a JSON value, and what it takes of it; the first one wins.

        Args:
            begun: Whether the value is not complete yet.

        Raises:
            Refused: If none does.
        """
        if len(self.forms) > 1:
            if not isinstance(given, Mapping) or _WRAPPER not in given:
                raise Refused(f"an object with the field {_WRAPPER!r} is needed")
            given = given[_WRAPPER]
        problems = []
        for form in self.forms:
            if form.function is not None:
                return form, given
            try:
                form.load(given, begun=begun)
            except Refused as refused:
                problems.append(str(refused))
            else:
                return form, given
        raise Refused("; or ".join(problems))


def read_output_type(given: object) -> OutputType:
    """Read what somebody wrote as `output_type`.

    Raises:
        ArgumentTypeError: If a part of it has no JSON Schema.
    """
    members = _members(given)
    others = [member for member in members if member is not str]
    try:
        forms = tuple(_form(member, alone=len(others) == 1) for member in others)
    except (UnsupportedAnnotationError, RegistrationError) as error:
        raise ArgumentTypeError(f"output_type cannot be used: {error}") from error
    names = [form.name for form in forms]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentTypeError(
                f"output_type has two alternatives that are called {name!r}: rename one of them"
            )
    words = " or ".join(_words(member) for member in members)
    may_be_none = any(_is_function(member) or member in _NONE_FITS for member in members)
    return OutputType(forms=forms, takes_text=str in members, may_be_none=may_be_none, words=words)


def _members(given: object) -> list[object]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise ArgumentTypeError("output_type is an empty list: name at least one type")
        return [inner for member in given for inner in _members(member)]
    if typing.get_origin(given) in _UNIONS:
        return [inner for member in typing.get_args(given) for inner in _members(member)]
    if isinstance(given, str):
        raise ArgumentTypeError(f"output_type must be a type or a function, not the text {given!r}")
    return [given]


def _form(member: Any, *, alone: bool) -> OutputForm:
    if _is_function(member):
        return _function_form(member, alone=alone)
    shapes = Shapes()
    shape = shapes.of(member)
    schema, about = dict(shape.schema), str(shape.schema.get("description") or "")
    wrapped = schema.get("type") != "object" and "$ref" not in schema
    if wrapped:
        schema = {
            "type": "object",
            "properties": {_WRAPPER: schema},
            "required": [_WRAPPER],
            "additionalProperties": False,
        }
    if shapes.defs:
        schema["$defs"] = shapes.defs
    words = _words(member)
    return OutputForm(
        name=TOOL_NAME if alone else _tool_name(words),
        description=f"Give the final answer{'' if alone else f' as {words}'}. {about}".strip(),
        schema=schema,
        wrapped=wrapped,
        read=shape.load,
        read_begun=_begun(member, shape.load),
    )


def _begun(member: Any, load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return how to read JSON of a type that is still being written."""
    if typing.is_typeddict(member):
        return partial(_fitting_fields, member)
    if typing.get_origin(member) is list:
        return partial(_fitting_items, Shapes().of((typing.get_args(member) or (Any,))[0]).load)
    if hasattr(member, "model_validate"):
        return partial(_partial_model, member)
    return load


def _fitting_fields(kind: Any, given: object) -> dict[str, Any]:
    """Return the fields of a TypedDict that are there and that fit."""
    if not isinstance(given, Mapping):
        raise MismatchError("it is not an object")
    made: dict[str, Any] = {}
    for name, load in _field_readers(kind).items():
        with suppress(MismatchError):
            made |= {name: load(given[name])} if name in given else {}
    return made


@lru_cache(maxsize=64)
def _field_readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    hints = typing.get_type_hints(kind, localns={kind.__name__: kind})
    return {name: _begun(hint, Shapes().of(hint).load) for name, hint in hints.items()}


def _fitting_items(load: Callable[[Any], Any], given: object) -> list[Any]:
    if not isinstance(given, list):
        raise MismatchError("it is not an array")
    read = [load(item) for item in given[:-1]]
    try:
        return [*read, load(given[-1])] if given else read
    except MismatchError:  # the last one is not complete
        return read


def _partial_model(kind: Any, given: object) -> Any:
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(kind).validate_python(given, experimental_allow_partial="trailing-strings")
    except ValueError as error:
        raise MismatchError(str(error)) from error


def _function_form(member: Any, *, alone: bool) -> OutputForm:
    function = member if isinstance(member, FunctionTool) else FunctionTool(member)
    inner = function.get_tool_schemas()[0]["function"]
    return OutputForm(
        name=TOOL_NAME if alone else _tool_name(function.name),
        description=inner["description"] or "Give the final answer.",
        schema=thaw(inner["parameters"]),
        function=function,
    )


def _is_function(member: object) -> bool:
    return callable(member) and not isinstance(member, type) and typing.get_origin(member) is None


def _tool_name(words: str) -> str:
    return f"{TOOL_NAME}_{_NOT_IN_A_NAME.sub('_', words).strip('_')}"[:64]


def _words(member: object) -> str:
    if typing.get_origin(member) is typing.Annotated:
        return _words(typing.get_args(member)[0])
    if typing.get_origin(member) is None:
        return str(getattr(member, "__name__", member))
    return str(member).replace("typing.", "")


def instructions_for(output: OutputType) -> str:
    """Return the instructions for a model that can give an answer in a form only by writing it."""
    schema = canonical(output.schema()).decode()
    return f"Answer with a JSON object and nothing else. It must fit this JSON Schema:\n{schema}"


def read_json(text: str) -> object:
    """Return the JSON value that an answer consists of, perhaps within a fence of Markdown.

    Raises:
        Refused: If it does not.
    """
    fenced = _FENCE.findall(text)
    for candidate in (text, *fenced, text[text.find("{") : text.rfind("}") + 1]):
        try:
            return parse(candidate.strip().encode())
        except ValueError:
            continue
    raise Refused("the answer is not a JSON object")


# Streamed outputs: what can be read of JSON that is not complete yet.


def read_partial_json(text: str) -> object:
    """Return what is there of a JSON value that is still being written; None if that is nothing yet.

    A text that has begun counts up to where it is. A number, a word or a key counts only when it is complete.
    """
    start = len(text) - len(text.lstrip())
    value, _ = _partial_value(text, start)
    return None if value is _NOTHING else value


_NOTHING: Any = object()
_SCALAR = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?=[\s,\]}])")
_SPACE = re.compile(r"\s*")


def _partial_value(text: str, at: int) -> tuple[Any, int]:
    """Return a value and where it ends; `_NOTHING` and the end of the text where there is none to use."""
    at = _after_space(text, at)
    if at >= len(text):
        return _NOTHING, len(text)
    if text[at] == "{":
        return _partial_object(text, at + 1)
    if text[at] == "[":
        return _partial_array(text, at + 1)
    if text[at] == '"':
        value, end, _ = _partial_text(text, at)
        return value, end
    found = _SCALAR.match(text, at)
    return (parse(found[1].encode()), found.end(1)) if found else (_NOTHING, len(text))


def _partial_object(text: str, at: int) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    while (at := _after_space(text, at)) < len(text) and text[at] != "}":
        if text[at] == ",":
            at += 1
            continue
        if text[at] != '"':
            return made, len(text)
        key, at, complete = _partial_text(text, at)
        at = _after_space(text, at)
        if not complete or at >= len(text) or text[at] != ":":
            return made, len(text)
        value, at = _partial_value(text, at + 1)
        if value is not _NOTHING:
            made[key] = value
    return made, min(at + 1, len(text))


def _partial_array(text: str, at: int) -> tuple[list[Any], int]:
    made: list[Any] = []
    while (at := _after_space(text, at)) < len(text) and text[at] != "]":
        if text[at] == ",":
            at += 1
            continue
        value, at = _partial_value(text, at)
        if value is not _NOTHING:
            made.append(value)
    return made, min(at + 1, len(text))


def _partial_text(text: str, at: int) -> tuple[str, int, bool]:
    """Return a text from its opening quote on, where it ends, and whether its closing quote is there."""
    end = at + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    complete = end < len(text)
    inner = text[at + 1 : min(end, len(text))]
    for cut in range(7):  # an escape, at most \uXXXX, may have been cut in the middle
        try:
            return str(parse(f'"{inner[: len(inner) - cut]}"'.encode())), min(end + 1, len(text)), complete
        except ValueError:
            continue
    return "", len(text), False


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
