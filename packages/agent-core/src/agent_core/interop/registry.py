"""The one place that knows how tool calls, schemas and results look, and turns one into another.

Reading asks the formats in turn, the latest registered first, so that a plugin can refine what is
built in. Converting leaves alone what is in a wanted format already. Anything else is built in the
first wanted format that expresses it as it is; failing that, in the first that can carry it in
another form: a text call wrapped in JSON or unwrapped from it, a result without its pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_core.errors import ArgumentError, ArgumentTypeError, RegistrationError, ToolError
from agent_core.frozen import FrozenDict, JsonObject, thaw
from agent_core.interop import anthropic, gemini, openai_chat, openai_responses
from agent_core.interop.core_text import CORE_TEXT, build_core_text, read_anything
from agent_core.interop.parts import text_only
from agent_core.interop.wire import outline, unwrap_call, unwrap_schema, wrap_call, wrap_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_core.interop.formats import (
        InspectedSchema,
        ToolCallFormat,
        ToolInteropTarget,
        ToolResultFormat,
        ToolSchemaFormat,
    )
    from agent_core.values import ToolCall, ToolResult


# Ordered sets of formats: who is asked first, and who is known by which id.


F = TypeVar("F", bound="ToolCallFormat | ToolSchemaFormat | ToolResultFormat")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FormatTable(Generic[F]):
    """The formats of one family ("call", "schema", "result"), the one to ask first in front."""

    family: str
    formats: tuple[F, ...] = ()

    def ids(self) -> tuple[str, ...]:
        """Return the ids in the order in which formats are asked."""
        return tuple(each.id for each in self.formats)

    def adding(self, new: F) -> FormatTable[F]:
        """Return a table that asks *new* before all others.

        Raises:
            RegistrationError: If its id is empty or taken.
        """
        if not new.id:
            raise RegistrationError(new.id, f"a tool {self.family} format needs an id")
        if new.id in self.ids():
            raise RegistrationError(new.id, f"there is a tool {self.family} format of that id already")
        return replace(self, formats=(new, *self.formats))

    def find_reader(self, value: object) -> F | None:
        """Return the first format that recognises *value*.

        Raises:
            ToolError: If a format broke while it looked.
        """
        for each in self.formats:
            try:
                if each.matches(value):
                    return each
            except ToolError:
                raise
            except Exception as error:
                raise _broken(each.id, error) from error
        return None

    def need_reader(self, value: object) -> F:
        """Return the first format that recognises *value*.

        Raises:
            ToolError: If there is none; the message tells the keys of *value* and nothing in it.
        """
        reader = self.find_reader(value)
        if reader is not None:
            return reader
        expected = ", ".join(self.ids()) or "none is registered"
        problem = f"expected a tool {self.family} in a known format ({expected}), got {outline(value)}"
        raise ToolError(None, problem)

    def select(self, ids: Iterable[str]) -> tuple[F, ...]:
        """Return the formats that a conversion may end in.

        Raises:
            ArgumentError: If there is none, or one is unknown; the message has the known ids.
        """
        if isinstance(ids, str):
            raise ArgumentTypeError(f"target_formats must be a list of ids, got the text {ids!r}")
        known = {each.id: each for each in self.formats}
        listing = f"known are {', '.join(map(repr, known))}"
        wanted = tuple(ids)
        if not wanted:
            raise ArgumentError(f"target_formats names no tool {self.family} format: {listing}")
        if unknown := [each for each in wanted if each not in known]:
            raise ArgumentError(f"Unknown tool {self.family} format {unknown[0]!r}: {listing}")
        return tuple(known[each] for each in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatTables:
    """The three families together."""

    calls: FormatTable[ToolCallFormat] = field(default_factory=lambda: FormatTable("call"))
    schemas: FormatTable[ToolSchemaFormat] = field(default_factory=lambda: FormatTable("schema"))
    results: FormatTable[ToolResultFormat] = field(default_factory=lambda: FormatTable("result"))


def ask(format_id: str, function: Callable[..., R], *values: object) -> R:
    """Call one of a format's functions.

    Raises:
        ToolError: What the function itself raised, or one that says which format broke.
    """
    try:
        return function(*values)
    except ToolError:
        raise
    except Exception as error:
        raise _broken(format_id, error) from error


def _broken(format_id: str, error: Exception) -> ToolError:
    """Name the format and the kind of error alone: a plugin may bring it, and its words could be private."""
    return ToolError(None, f"the format {format_id!r} failed: {type(error).__name__}")


# The steps of a conversion: leave it alone, or build the best version that a wanted format takes.

V = TypeVar("V", bound="ToolCall | InspectedSchema | ToolResult")


def signed(inspected: V, format_id: str) -> V:
    """Return *inspected* as read by that format, even if the format borrowed another's reader."""
    return inspected if inspected.format_id == format_id else replace(inspected, format_id=format_id)


def addressed(call: ToolCall, target: ToolInteropTarget) -> ToolCall:
    """Return *call* under the id and tool name of the target's call."""
    known = target.call
    if known is None:
        return call
    return replace(call, call_id=known.call_id or call.call_id, tool_name=known.tool_name)


def answering(result: ToolResult, target: ToolInteropTarget) -> ToolResult:
    """Return *result* as the answer to the target's call."""
    if target.call is None or target.call.call_id is None:
        return result
    return replace(result, call_id=target.call.call_id)


def call_versions(call: ToolCall) -> list[ToolCall]:
    """Return *call*, and then the call with its text wrapped in JSON, or unwrapped from it."""
    other = wrap_call(call) if call.payload_kind == "text" else unwrap_call(call)
    return [call] if other is None else [call, other]


def schema_versions(schema: InspectedSchema) -> list[InspectedSchema]:
    """Return *schema*, and then the tool with its text wrapped in JSON, or unwrapped from it."""
    other = wrap_schema(schema) if schema.payload_kind == "text" else unwrap_schema(schema)
    return [schema] if other is None else [schema, other]


def result_versions(result: ToolResult) -> list[ToolResult]:
    """Return *result*, and then the result with notes instead of what is not text."""
    if not result.parts:
        return [result]
    return [result, replace(result, text=text_only(result.parts), parts=())]


def own_format(wanted: Iterable[F], inspected: V) -> F | None:
    """Return the wanted format that the value is in already."""
    return next((each for each in wanted if each.id == inspected.format_id), None)


def sendable(own: Any, inspected: V) -> JsonObject:
    """Return a value that is in its own format: the same object, unless it has to be put right."""
    raw: Any = inspected.raw
    tidy: Any = raw if own.tidy is None else ask(own.id, own.tidy, inspected)
    sent: JsonObject = raw if tidy is raw else thaw(dict(tidy))
    return sent


def first_built(
    wanted: Iterable[Any], versions: Iterable[V], *more: object, tool: str | None, target: ToolInteropTarget
) -> JsonObject:
    """Return the first version that a wanted format can build, in the first format that can.

    Args:
        wanted: The formats, the best first.
        versions: The value, the best first.
        more: What `build` takes in addition to the value.
        tool: The tool in question, for the message.
        target: Whom it is for, for the message.

    Raises:
        ToolError: If none can; the message has everyone's reason.
    """
    problems: dict[str, None] = {}
    for version in versions:
        for each in wanted:
            try:
                return dict(thaw(ask(each.id, each.build or _refuse, version, *more)))
            except ToolError as error:
                problems[f"{each.id}: {error.problem}"] = None
    raise ToolError(tool, f"cannot be converted for {target.name!r}; {'; '.join(problems)}")


def _refuse(*_values: object) -> JsonObject:
    raise ToolError(None, "this format can only be read")


# The formats that every registry starts with.

BUILT_IN = FormatTables(
    calls=FormatTable(
        "call",
        (
            *openai_chat.CALL_FORMATS,
            *openai_responses.CALL_FORMATS,
            *anthropic.CALL_FORMATS,
            *gemini.CALL_FORMATS,
        ),
    ),
    schemas=FormatTable(
        "schema",
        (
            *openai_chat.SCHEMA_FORMATS,
            *openai_responses.SCHEMA_FORMATS,
            *anthropic.SCHEMA_FORMATS,
            *gemini.SCHEMA_FORMATS,
        ),
    ),
    results=FormatTable(
        "result",
        (
            CORE_TEXT,
            *openai_chat.RESULT_FORMATS,
            *openai_responses.RESULT_FORMATS,
            *anthropic.RESULT_FORMATS,
            *gemini.RESULT_FORMATS,
        ),
    ),
)


_REMEMBERED_SCHEMAS = 1024


class ToolInteropRegistry:
    """Formats by id, and conversions between them.

    A new registry is empty; `default` has the built-in formats. `copy` costs next to nothing, and
    what is registered on a copy stays there.
    """

    __slots__ = ("_known_schemas", "_tables")

    def __init__(self, tables: FormatTables | None = None) -> None:
        self._tables = FormatTables() if tables is None else tables
        self._known_schemas: dict[int, tuple[FrozenDict, InspectedSchema]] = {}

    @classmethod
    def default(cls) -> ToolInteropRegistry:
        """Return a new registry with every built-in format."""
        return cls(BUILT_IN)

    def copy(self) -> ToolInteropRegistry:
        """Return a registry that starts with the same formats and then goes its own way."""
        return type(self)(self._tables)

    def register_call_format(self, call_format: ToolCallFormat) -> None:
        """Ask *call_format* before all others from now on.

        Raises:
            RegistrationError: If its id is taken.
        """
        self._tables = replace(self._tables, calls=self._tables.calls.adding(call_format))

    def register_schema_format(self, schema_format: ToolSchemaFormat) -> None:
        """Ask *schema_format* before all others from now on.

        Raises:
            RegistrationError: If its id is taken.
        """
        self._tables = replace(self._tables, schemas=self._tables.schemas.adding(schema_format))
        self._known_schemas = {}

    def register_result_format(self, result_format: ToolResultFormat) -> None:
        """Ask *result_format* before all others from now on.

        Raises:
            RegistrationError: If its id is taken.
        """
        self._tables = replace(self._tables, results=self._tables.results.adding(result_format))

    def call_formats(self) -> tuple[str, ...]:
        """Return the ids of the call formats, in the order in which they are asked."""
        return self._tables.calls.ids()

    def schema_formats(self) -> tuple[str, ...]:
        """Return the ids of the schema formats, in the order in which they are asked."""
        return self._tables.schemas.ids()

    def result_formats(self) -> tuple[str, ...]:
        """Return the ids of the result formats, in the order in which they are asked."""
        return self._tables.results.ids()

    def inspect_call(self, call: object) -> ToolCall:
        """Read a tool call.

        Arguments that are not a JSON object do not raise: `ToolCall.problem` tells of them.

        Raises:
            ToolError: If no format recognises the call, or a field has the wrong type.
        """
        reader = self._tables.calls.need_reader(call)
        return signed(ask(reader.id, reader.inspect, call), reader.id)

    def inspect_schema(self, schema: object) -> InspectedSchema:
        """Read a tool schema; a frozen one, which cannot change, is read only once.

        Raises:
            ToolError: If no format recognises the schema, or a field has the wrong type.
        """
        known = self._known_schemas.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        reader = self._tables.schemas.need_reader(schema)
        inspected = signed(ask(reader.id, reader.inspect, schema), reader.id)
        if isinstance(schema, FrozenDict):
            self._remember(schema, inspected)
        return inspected

    def _remember(self, schema: FrozenDict, inspected: InspectedSchema) -> None:
        if len(self._known_schemas) >= _REMEMBERED_SCHEMAS:
            self._known_schemas = {}
        # The schema is kept with its id, since the id of an object that is gone may be given to another.
        self._known_schemas[id(schema)] = (schema, inspected)

    def inspect_result(self, result: object) -> ToolResult:
        """Read a tool result; what no format recognises is read as core text.

        Raises:
            ToolError: If a format recognises it and a field has the wrong type.
        """
        reader = self._tables.results.find_reader(result)
        if reader is None:
            return read_anything(result)
        return signed(ask(reader.id, reader.inspect, result), reader.id)

    def as_core_text(self, inspected: ToolResult) -> JsonObject:
        """Return a result that was read as the platform's own; itself if it has that shape already."""
        if inspected.format_id == CORE_TEXT.id:
            return sendable(CORE_TEXT, inspected)
        return build_core_text(inspected)

    def convert_tool_call(
        self, call: object, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> JsonObject:
        """Return *call* in one of *target_formats*: itself if it is in one already, or a new dict.

        Raises:
            ToolError: If the call cannot be read, or none of the formats can express it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.calls.select(target_formats)
        inspected = addressed(self.inspect_call(call), target)
        own = own_format(wanted, inspected)
        if own is not None:
            return sendable(own, inspected)
        versions = call_versions(inspected)
        return first_built(wanted, versions, tool=inspected.tool_name, target=target)

    def convert_tool_schema(
        self, schema: object, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> JsonObject:
        """Return *schema* in one of *target_formats*: itself if it is in one already, or a new dict.

        Raises:
            ToolError: If the schema cannot be read, or none of the formats can express it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.schemas.select(target_formats)
        inspected = self.inspect_schema(schema)
        own = own_format(wanted, inspected)
        if own is not None:
            return sendable(own, inspected)
        versions = schema_versions(inspected)
        return first_built(wanted, versions, tool=inspected.name, target=target)

    def convert_tool_result(
        self, result: object, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> JsonObject:
        """Return *result* in one of *target_formats*: itself if it is in one already, or a new dict.

        Content that none of them can carry is replaced by a note in the text.

        Raises:
            ToolError: If the result cannot be read, or the target has no call and a format needs it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.results.select(target_formats)
        inspected = answering(self.inspect_result(result), target)
        own = own_format(wanted, inspected)
        if own is not None:
            return sendable(own, inspected)
        versions = result_versions(inspected)
        tool = None if target.call is None else target.call.tool_name
        return first_built(wanted, versions, target, tool=tool, target=target)
