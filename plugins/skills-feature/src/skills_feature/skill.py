"""One skill: a folder with a SKILL.md, whose head says what it is for and whose body says how it is done."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skills_feature.errors import SkillError, SkillFileError
from skills_feature.files import read_file
from skills_feature.head import read_head

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)", re.DOTALL | re.MULTILINE)
_MOST_BYTES = 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that can be used.

    Attributes:
        name: By what the model asks for it: that of its folder.
        description: What it is for, and when.
        instructions: How it is done.
        folder: Where it lies.
        within: The project that it comes with, and may not lead out of; None if it is the person's own.
        tools: The tools that its author names. A wish, and never a permission.
        license: Under what terms it may be used.
        compatibility: What it needs.
        metadata: What else its author says, where it is text.
    """

    name: str
    description: str
    instructions: str
    folder: Path
    within: Path | None = None
    tools: tuple[str, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_skill(folder: Path, within: Path | None = None) -> Skill:
    """Read a folder as a skill; one that comes with a project must lie inside of it.

    Raises:
        SkillError: If it is none, with what is wrong.
    """
    try:
        text = read_file(folder, FILE, limit=_MOST_BYTES, within=within).decode()
    except SkillFileError as error:
        raise SkillError(f"{folder}: {error}") from None
    except UnicodeDecodeError:
        raise SkillError(f"{folder / FILE} is not UTF-8") from None
    found = _HEAD.fullmatch(text)
    if found is None:
        raise SkillError(f"{folder / FILE} must begin with a head between two lines of ---")
    try:
        head = read_head(found[1])
    except SkillError as error:
        raise SkillError(f"{folder / FILE} {error}") from None
    _check_name(folder, head.name)
    return Skill(
        name=head.name,
        description=" ".join(head.description.split()),
        instructions=found[2].strip(),
        folder=folder,
        within=within,
        tools=head.tools,
        license=head.license,
        compatibility=head.compatibility,
        metadata=head.metadata,
    )


def _check_name(folder: Path, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SkillError(
            f"{name!r} is no name for a skill: use lower-case letters, digits and single hyphens"
        )
    if name != folder.name:
        raise SkillError(f"the skill {name!r} stands in a folder {folder.name!r}: give both the same name")
