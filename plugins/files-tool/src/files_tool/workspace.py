"""The workspace: the folders that the tools may work in, and which place in them a name means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from files_tool.gitignore import Rules
from files_tool.places import Place, Protected, Refused, is_protected, parts_of, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from files_tool.settings import Settings

_NO_ROOTS = (
    "this session has no workspace: set workspace_roots in its metadata, or roots in the settings of "
    "files_tool"
)


class Workspace:
    """The roots of one session."""

    def __init__(self, roots: Sequence[str], settings: Settings) -> None:
        self._given = [(os.path.normpath(root), os.path.realpath(root)) for root in roots]
        self._settings = settings
        self._protected = Protected.of(settings.protected)
        self._excluded: dict[str, Rules] = {}

    @classmethod
    def of(cls, context: Mapping[str, Any] | None, settings: Settings) -> Workspace:
        """Return the workspace of the session that a tool is called in, else that of the settings.

        Raises:
            Refused: If neither names a folder, or one that is none.
        """
        metadata = (context or {}).get("session_metadata") or {}
        given = metadata.get("workspace_roots") or settings.roots
        if not isinstance(given, (list, tuple)) or not given:
            raise Refused(_NO_ROOTS)
        for root in given:
            if not isinstance(root, str) or not root.startswith("/"):
                raise Refused(f"the workspace root {root!r} must be an absolute path")
            if not Path(root).is_dir():
                raise Refused(f"the workspace root {root!r} is not a folder: create it, or name another")
        workspace = cls(given, settings)
        for place in workspace.roots:
            if workspace.protects(place):
                raise is_protected(place)
        return workspace

    @property
    def roots(self) -> list[Place]:
        """The roots themselves, each once."""
        return [self._place(root) for root in dict.fromkeys(real for _, real in self._given)]

    def locate(self, name: str) -> Place:
        """Return the place that a name means: from the first root down, or absolute in any root.

        Raises:
            Refused: If it is not a name, is outside the workspace, or is excluded.
        """
        parts = parts_of(name)
        place = self._absolute(name, parts) if name.startswith("/") else self._place(self._given[0][1], parts)
        if self.protects(place):
            raise is_protected(place)
        if place.parts and self.excluded(place).leave_out(place.path):
            raise Refused(f"{place.shown} is excluded from the workspace by its settings: do without it")
        return place

    def protects(self, place: Place) -> bool:
        """Say whether a place belongs to the program that runs the tools, by its name."""
        return self._protected.covers(place.absolute)

    def excluded(self, place: Place) -> Rules:
        """Return the rules for what no tool touches in a place's root; what is protected is part of it."""
        found = self._excluded.get(place.root)
        if found is None:
            rules = [*self._settings.excluded, *self._protected.rules_in(place.root)]
            found = self._excluded[place.root] = Rules(rules)
        return found

    def _absolute(self, name: str, parts: tuple[str, ...]) -> Place:
        for spelling, root in sorted(
            ((spelling, pair[1]) for pair in self._given for spelling in pair), key=lambda two: -len(two[0])
        ):
            start = tuple(part for part in spelling.split("/") if part)
            if parts[: len(start)] == start:
                return self._place(root, parts[len(start) :])
        where = " or ".join(root for _, root in self._given)
        raise Refused(f"{shown(name)} is outside the workspace: name something in {shown(where)}")

    def _place(self, root: str, parts: tuple[str, ...] = ()) -> Place:
        return Place(root, parts, root == self._given[0][1], self._protected)
