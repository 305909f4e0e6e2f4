"""Ordered sets of formats: who is asked first, and who is known by which id."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_core.errors import ArgumentError, ArgumentTypeError, RegistrationError, ToolError
from agent_core.interop.fields import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_core.interop.formats import ToolCallFormat, ToolResultFormat, ToolSchemaFormat

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

    def find_reader(self, value: Any) -> F | None:
        """Return the first format that recognises *value*."""
        for each in self.formats:
            if ask(each.id, each.matches, value):
                return each
        return None

    def need_reader(self, value: Any) -> F:
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


def ask(format_id: str, function: Callable[..., R], *values: Any) -> R:
    """Call one of a format's functions.

    Raises:
        ToolError: What the function itself raised, or one that says which format broke.
    """
    try:
        return function(*values)
    except ToolError:
        raise
    # A format may be a stranger's; its error could quote what it was given, so only its kind is told.
    except Exception as error:
        raise ToolError(None, f"the format {format_id!r} failed: {type(error).__name__}") from error
