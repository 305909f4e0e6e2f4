"""The one place that knows how tool calls, schemas and results look, and turns one into another.

Reading asks the formats in turn, the latest registered first, so that a plugin can refine what is
built in. Converting leaves alone what is in a wanted format already. Anything else is built in the
first wanted format that expresses it as it is; failing that, in the first that can carry it in
another form: a text call wrapped in JSON or unwrapped from it, a result without its pictures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict
from agent_core.interop import converting
from agent_core.interop.builtin import BUILT_IN
from agent_core.interop.core_text import read_anything
from agent_core.interop.table import FormatTables, ask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.interop.formats import ToolCallFormat, ToolResultFormat, ToolSchemaFormat
    from agent_core.interop.values import InspectedCall, InspectedResult, InspectedSchema, ToolInteropTarget


_REMEMBERED_SCHEMAS = 4096


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

    def inspect_call(self, call: Any) -> InspectedCall:
        """Read a tool call.

        Arguments that are not a JSON object do not raise: `InspectedCall.problem` tells of them.

        Raises:
            ToolError: If no format recognises the call, or a field has the wrong type.
        """
        reader = self._tables.calls.need_reader(call)
        return converting.signed(ask(reader.id, reader.inspect, call), reader.id)

    def inspect_schema(self, schema: Any) -> InspectedSchema:
        """Read a tool schema; a frozen one, which cannot change, is read only once.

        Raises:
            ToolError: If no format recognises the schema, or a field has the wrong type.
        """
        known = self._known_schemas.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        reader = self._tables.schemas.need_reader(schema)
        inspected = converting.signed(ask(reader.id, reader.inspect, schema), reader.id)
        if isinstance(schema, FrozenDict):
            self._remember(schema, inspected)
        return inspected

    def _remember(self, schema: FrozenDict, inspected: InspectedSchema) -> None:
        if len(self._known_schemas) >= _REMEMBERED_SCHEMAS:
            self._known_schemas = {}
        # The schema is kept beside its id, so that nobody else can get that id meanwhile.
        self._known_schemas[id(schema)] = (schema, inspected)

    def inspect_result(self, result: Any) -> InspectedResult:
        """Read a tool result; what no format recognises is read as core text.

        Raises:
            ToolError: If a format recognises it and a field has the wrong type.
        """
        reader = self._tables.results.find_reader(result)
        if reader is None:
            return read_anything(result)
        return converting.signed(ask(reader.id, reader.inspect, result), reader.id)

    def convert_tool_call(
        self, call: Any, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> dict[str, Any]:
        """Return *call* in one of *target_formats*: itself if it is in one already, or a new dict.

        Raises:
            ToolError: If the call cannot be read, or none of the formats can express it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.calls.select(target_formats)
        inspected = converting.addressed(self.inspect_call(call), target)
        own = converting.own_format(wanted, inspected)
        if own is not None:
            return converting.sendable(own, inspected)
        versions = converting.call_versions(inspected)
        return converting.first_built(wanted, versions, tool=inspected.tool_name, target=target)

    def convert_tool_schema(
        self, schema: Any, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> dict[str, Any]:
        """Return *schema* in one of *target_formats*: itself if it is in one already, or a new dict.

        Raises:
            ToolError: If the schema cannot be read, or none of the formats can express it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.schemas.select(target_formats)
        inspected = self.inspect_schema(schema)
        own = converting.own_format(wanted, inspected)
        if own is not None:
            return converting.sendable(own, inspected)
        versions = converting.schema_versions(inspected)
        return converting.first_built(wanted, versions, tool=inspected.name, target=target)

    def convert_tool_result(
        self, result: Any, *, target: ToolInteropTarget, target_formats: Iterable[str]
    ) -> dict[str, Any]:
        """Return *result* in one of *target_formats*: itself if it is in one already, or a new dict.

        Content that none of them can carry is replaced by a note in the text.

        Raises:
            ToolError: If the result cannot be read, or the target has no call and a format needs it.
            ArgumentError: If a format is unknown.
        """
        wanted = self._tables.results.select(target_formats)
        inspected = converting.answering(self.inspect_result(result), target)
        own = converting.own_format(wanted, inspected)
        if own is not None:
            return converting.sendable(own, inspected)
        versions = converting.result_versions(inspected)
        tool = None if target.call is None else target.call.tool_name
        return converting.first_built(wanted, versions, target, tool=tool, target=target)
