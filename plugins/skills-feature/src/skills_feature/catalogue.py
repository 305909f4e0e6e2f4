"""The folders that have skills, and what is wrong with some of them.

Of two skills of one name the first counts: a project's own before the person's. The folders are looked
through for every request, so that a skill that was just written can be used; what has not changed since is
not read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from agent_core import AgentError
from skills_feature.skill import FILE, Skill, read_skill

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

_MOST_SKILLS = 200
_MOST_REMEMBERED = 1000
_HOW = (
    "You have skills: instructions for certain tasks. When a task fits one, load it first with load_skill, "
    "then follow it."
)
_read: dict[tuple[Place, int, int], Skill | str] = {}


class Place(NamedTuple):
    """A folder, and the project that it may not lead out of; None if it is the person's own."""

    folder: Path
    within: Path | None = None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What was found.

    Attributes:
        skills: The skills by name.
        problems: What is wrong with folders that look like skills, one sentence each.
        off: The skills that somebody has switched off.
    """

    skills: dict[str, Skill]
    problems: tuple[str, ...] = ()
    off: tuple[Skill, ...] = ()

    def without(self, names: Collection[str]) -> Catalogue:
        """Return the same with some skills switched off."""
        on = {name: skill for name, skill in self.skills.items() if name not in names}
        return replace(self, skills=on, off=tuple(self.skills[name] for name in self.skills if name in names))

    def text(self) -> str:
        """Return the catalogue as the model reads it; empty if there is nothing in it."""
        if not self.skills:
            return ""
        lines = [f"- {skill.name}: {skill.description}" for skill in self.skills.values()]
        return "\n".join([_HOW, *lines])


def find_skills(places: Sequence[Path | Place]) -> Catalogue:
    """Return the skills in folders, each of which has a folder for every skill."""
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for place in places:
        for candidate in _candidates(place if isinstance(place, Place) else Place(place)):
            found = _known(candidate)
            if isinstance(found, str):
                problems.append(found)
            elif len(skills) < _MOST_SKILLS:
                skills.setdefault(found.name, found)
    return Catalogue(dict(sorted(skills.items())), tuple(problems))


def _candidates(place: Place) -> Iterator[Place]:
    try:
        folders = sorted(place.folder.iterdir())
    except (OSError, ValueError):
        return
    for folder in folders[: _MOST_SKILLS * 2]:
        if not folder.name.startswith(".") and (folder / FILE).is_file():
            yield Place(folder, place.within)


def _known(place: Place) -> Skill | str:
    """Return a skill, or what is wrong with it, as it was read before if its file is the same."""
    try:
        about = (place.folder / FILE).stat()
    except OSError as error:
        return f"{place.folder / FILE}: {error.strerror}"
    key = (place, about.st_mtime_ns, about.st_size)
    if key not in _read:
        if len(_read) >= _MOST_REMEMBERED:
            _read.clear()
        _read[key] = _read_or_problem(place)
    return _read[key]


def _read_or_problem(place: Place) -> Skill | str:
    try:
        return read_skill(*place)
    except AgentError as error:
        return str(error)
