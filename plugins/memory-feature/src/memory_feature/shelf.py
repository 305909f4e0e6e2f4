"""The memories that a session has: the person's own, which go everywhere, and those of its project.

A project's memories are files in it (`.agent/memory` at the top of its repository), so they come from whoever
wrote the project, and count only if the person trusts it, like its `AGENTS.md`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_plugin_kit.settings import setting
from agent_plugin_kit.trust import NOT_TRUSTED, is_trusted, project_top
from memory_feature.folder import MemoryFolder
from memory_feature.memory import Memory, MemoryProblem, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

PERSON, PROJECT = "person", "project"
SCOPES: Final = (PERSON, PROJECT)
PROJECT_FOLDER: Final = (".agent", "memory")
_LONGEST_LINE = 300
_MOST_NAMED = 5
_FRAME = (
    "You remember these facts from earlier sessions. They are notes and may be out of date: what the user "
    "says now counts more. Texts that end in … are longer; recall has the rest."
)
_HEADINGS = {PERSON: "About the user and all their projects:", PROJECT: "About this project:"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent's section says."""

    folder: str | None = setting(None, "Where the person's own memories are.")
    project: bool = setting(default=True, description="Whether a project has memories of its own.")
    prompt_bytes: int = setting(
        6_000, "How many bytes of memories every request has; the newest count.", at_least=0, at_most=100_000
    )


class Shelved(NamedTuple):
    """A memory with its scope."""

    scope: str
    memory: Memory

    @property
    def id(self) -> str:
        """By what the tools and actions know it, such as `person/likes-tea`."""
        return f"{self.scope}/{self.memory.name}"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The folders of a session.

    Attributes:
        folders: The folder of each scope that there is.
        closed: Why a scope is missing.
        ignored: Why a project's memories do not count, if it has some.
    """

    folders: Mapping[str, MemoryFolder]
    closed: Mapping[str, str]
    ignored: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, trusted: tuple[str, ...] | None, metadata: Mapping[str, Any]) -> Shelf:
        """Return the shelf of a session, by its metadata."""
        folders = {PERSON: MemoryFolder(own_folder(settings.folder))}
        top = _project(metadata)
        if top is None:
            return cls(folders, {PROJECT: "this session works in no folder"})
        project = MemoryFolder(top, PROJECT_FOLDER)
        if settings.project and is_trusted(top, trusted):
            return cls({**folders, PROJECT: project}, {})
        why = NOT_TRUSTED if settings.project else "the setting project of the plugin memory is off"
        ignored = (f"{project.path}: {why}",) if settings.project and project.path.is_dir() else ()
        return cls(folders, {PROJECT: why}, ignored)

    def folder(self, scope: str) -> MemoryFolder:
        """Return the folder of a scope.

        Raises:
            MemoryProblem: If this session has none, with the reason.
        """
        if scope not in self.folders:
            raise MemoryProblem(
                f"there are no memories of the {scope}: {self.closed.get(scope, 'no such scope')}"
            )
        return self.folders[scope]

    def place(self, memory_id: str) -> tuple[MemoryFolder, str]:
        """Return the folder and the name that an id stands for.

        Raises:
            MemoryProblem: If it cannot be one.
        """
        scope, _, name = memory_id.partition("/")
        if scope not in SCOPES:
            raise MemoryProblem(f"there is no memory {memory_id[:100]!r}: an id looks like person/likes-tea")
        return self.folder(scope), name

    def resolve(self, given: str) -> str:
        """Return the id that is meant by an id, a name, or a beginning of one of them that only one has.

        Raises:
            MemoryProblem: If none is meant, or several are.
        """
        ids = [
            f"{scope}/{name}"
            for scope, folder in self.folders.items()
            for found in [folder.read()]
            for name in (*(one.name for one in found.memories), *found.broken)
        ]
        wanted = given.strip()
        exact = [one for one in ids if wanted in _spellings(one)]
        fitting = exact or [one for one in ids if any(name.startswith(wanted) for name in _spellings(one))]
        if len(fitting) > 1:
            listed = ", ".join(fitting[:_MOST_NAMED]) + (", …" if len(fitting) > _MOST_NAMED else "")
            raise MemoryProblem(f"{wanted[:100]!r} can mean {listed}: write more of it")
        if not fitting:
            if (scope := wanted.partition("/")[0]) in SCOPES:
                self.folder(scope)
            raise MemoryProblem(f"there is no memory {wanted[:100]!r}: list them to see their ids")
        return fitting[0]

    def broken(self) -> list[tuple[str, str]]:
        """Return the ids of the files that cannot be used, each with its problem."""
        return [
            (f"{scope}/{name}", problem)
            for scope, folder in self.folders.items()
            for name, problem in folder.read().broken.items()
        ]

    def all(self) -> list[Shelved]:
        """Return every memory, oldest first, the person's own before those of the project."""
        return [
            Shelved(scope, memory)
            for scope, folder in self.folders.items()
            for memory in folder.read().memories
        ]

    def problems(self) -> list[str]:
        """Return why memories that there are do not count."""
        left_out = [f"the project's memories are left out: {why}" for why in self.ignored]
        return [*left_out, *(one for folder in self.folders.values() for one in folder.read().problems)]

    def find(self, query: str) -> list[Shelved]:
        """Return the memories with all words of a query, or else those with most of them; newest first."""
        newest = sorted(self.all(), key=lambda one: one.memory.at, reverse=True)
        words = query.casefold().split()
        if not words:
            return newest
        counted = [(sum(word in _searched(one) for word in words), one) for one in newest]
        best = max((count for count, _ in counted), default=0)
        return [one for count, one in counted if count == best > 0]

    def text(self, most_bytes: int) -> str:
        """Return the list for the prompt: as many of the newest as there is room for, oldest first."""
        everything = self.all()
        kept: set[str] = set()
        room = most_bytes
        for one in sorted(everything, key=lambda one: one.memory.at, reverse=True):
            room -= len(_line(one).encode()) + 1
            if room < 0:
                break
            kept.add(one.id)
        if not kept:
            return ""
        listed = [one for one in everything if one.id in kept]
        scopes = [scope for scope in self.folders if any(one.scope == scope for one in listed)]
        parts = [_FRAME]
        parts += [
            "\n".join([_HEADINGS[scope], *(_line(one) for one in listed if one.scope == scope)])
            for scope in scopes
        ]
        if left := len(everything) - len(kept):
            parts.append(f"{left} older ones are not listed here; recall finds them.")
        return "\n\n".join(parts)


def own_folder(given: str | None) -> Path:
    """Return where a person's own memories are."""
    if given:
        return Path(given).expanduser()
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "agent" / "memory"


def _project(metadata: Mapping[str, Any]) -> Path | None:
    """Return the top of the repository that a session works in, or its folder if it is in none."""
    roots = metadata.get("workspace_roots")
    first = roots[0] if isinstance(roots, (list, tuple)) and roots else None
    if not isinstance(first, str) or not first or "\0" in first:
        return None
    return project_top(Path(first))


def _line(one: Shelved) -> str:
    return f"- {one.id}: {shortened(one.memory.text, _LONGEST_LINE)}"


def _spellings(memory_id: str) -> tuple[str, str]:
    return memory_id, memory_id.partition("/")[2]


def _searched(one: Shelved) -> str:
    return f"{one.id} {one.memory.text}".casefold()
