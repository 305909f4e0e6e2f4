"""A place in the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from files_tool.names import shown
from files_tool.protected import NOTHING, Protected


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the workspace, where something may be or not.

    Attributes:
        root: The folder of the workspace, an absolute path without links.
        parts: The way down from there; empty for the root itself.
        is_first: True in the workspace's first root, where names are relative.
        protected: What is no part of any workspace, wherever it is met on the way.
    """

    root: str
    parts: tuple[str, ...]
    is_first: bool = True
    protected: Protected = field(default=NOTHING, compare=False, repr=False)

    @property
    def path(self) -> str:
        """The way down as one text; empty for the root itself."""
        return "/".join(self.parts)

    @property
    def absolute(self) -> str:
        """The same from the top of the file system."""
        return "/".join((self.root.rstrip("/"), *self.parts)) or "/"

    @property
    def shown(self) -> str:
        """What answers call it: the name by which a tool takes it."""
        return shown((self.path or ".") if self.is_first else self.absolute)

    @property
    def folder(self) -> Place:
        """The folder that it is in."""
        return self.upto(len(self.parts) - 1)

    def upto(self, depth: int) -> Place:
        """Return the place after so many steps of the way."""
        return replace(self, parts=self.parts[:depth])

    def below(self, path: str) -> Place:
        """Return the place at a relative path from this root."""
        return replace(self, parts=tuple(part for part in path.split("/") if part))
