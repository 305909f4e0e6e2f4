"""One declaration being read, and the way from what is wrong with it back to its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agent_runtime.errors import SpecError
from agent_runtime.files.problems import Wrong
from agent_runtime.files.ways import Way, follow, inside, join, spell

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_runtime.files.documents import Document

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reader:
    """One declaration being read: what it says, and the way to it."""

    document: Document
    way: Way
    item: Any

    @property
    def kind(self) -> str:
        """What it is: "agent" or "model"."""
        return str(self.way[0]).removesuffix("s")

    @property
    def name(self) -> str:
        """What errors call it: by its id, or by its way where it has none."""
        given = self.item.get("id") if isinstance(self.item, dict) else None
        name = self.way[-1] if isinstance(self.way[-1], str) else given
        return f"{self.kind} {name!r}" if isinstance(name, str) else spell(self.way)

    def fields(self) -> Any:
        """Return what is declared; a declaration that stands under its id gets it from there."""
        if not isinstance(self.item, dict):
            return self.item
        if isinstance(self.way[-1], int):
            return dict(self.item)
        if "id" in self.item:
            raise self.wrong(
                SpecError(f"{self.name} has its id from its key: remove the field", field="id"), ()
            )
        return {"id": self.way[-1], **self.item}

    def read(self, read: Callable[[str, Any], T], *inner: str | int) -> T:
        """Read a part of the declaration, or all of it; what cannot be used is told with its place."""
        try:
            return read(spell(inner) or self.kind, inside(self.item, inner))
        except SpecError as error:
            raise self.wrong(error, inner) from error

    def wrong(self, error: SpecError, inner: Way) -> Wrong:
        """Return *error* with its place; fields are named from the part that was read or from the whole."""
        where, value = spell(inner) or self.kind, inside(self.item, inner)
        field = (error.field or "").removeprefix(f"{where}.")
        if field == where and (inner or not isinstance(value, dict)):
            field = ""
        at = self.document.locate((*self.way, *inner, *follow(value, field)))
        return Wrong(at, self._told(error, inner), join(spell((*self.way, *inner)), field))

    def _told(self, error: SpecError, inner: Way) -> str:
        message, where = str(error), spell(inner)
        if message.startswith(self.name):
            return message
        if not inner and (error.field or "").startswith(f"{self.kind}."):
            return self.name + message.removeprefix(self.kind)
        return f"{self.name}: {message}" if message.startswith(where) else f"{self.name}: {where}: {message}"
