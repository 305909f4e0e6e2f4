"""The folders that have skills, and what is wrong with some of them.

Of two skills of one name the first counts: a project's own before the person's. The folders are looked
through for every request, so that a skill that was just written can be used; what has not changed since is
not read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_core import AgentError
from skills_feature.skill import FILE, Skill, read_skill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_MOST_SKILLS = 200
_MOST_REMEMBERED = 1000
_HOW = (
    "You have skills: instructions for certain tasks. When a task fits one, load it first with load_skill, "
    "then follow it."
)
_read: dict[tuple[Path, int, int], Skill | str] = {}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What was found.

    Attributes:
        skills: The skills by name.
        problems: What is wrong with folders that look like skills, one sentence each.
    """

    skills: dict[str, Skill]
    problems: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the catalogue as the model reads it; empty if there is nothing in it."""
        if not self.skills:
            return ""
        lines = [f"- {skill.name}: {skill.description}" for skill in self.skills.values()]
        return "\n".join([_HOW, *lines])


def find_skills(folders: Sequence[Path]) -> Catalogue:
    """Return the skills in folders, each of which has a folder for every skill."""
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder in folders:
        for place in _candidates(folder):
            found = _known(place)
            if isinstance(found, str):
                problems.append(found)
            elif len(skills) < _MOST_SKILLS:
                skills.setdefault(found.name, found)
    return Catalogue(dict(sorted(skills.items())), tuple(problems))


def _candidates(folder: Path) -> Iterator[Path]:
    try:
        places = sorted(folder.iterdir())
    except (OSError, ValueError):
        return
    for place in places[: _MOST_SKILLS * 2]:
        if not place.name.startswith(".") and (place / FILE).is_file():
            yield place


def _known(folder: Path) -> Skill | str:
    """Return a skill, or what is wrong with it, as it was read before if its file is the same."""
    try:
        about = (folder / FILE).stat()
    except OSError as error:
        return f"{folder / FILE}: {error.strerror}"
    key = (folder, about.st_mtime_ns, about.st_size)
    if key not in _read:
        if len(_read) >= _MOST_REMEMBERED:
            _read.clear()
        _read[key] = _read_or_problem(folder)
    return _read[key]


def _read_or_problem(folder: Path) -> Skill | str:
    try:
        return read_skill(folder)
    except AgentError as error:
        return str(error)
