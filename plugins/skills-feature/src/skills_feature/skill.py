"""One skill: a folder with a SKILL.md, whose head says what it is for and whose body says how it is done."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from skills_feature.files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)", re.DOTALL | re.MULTILINE)
_LONGEST = {"name": 64, "description": 1024, "compatibility": 500}
_MOST_BYTES = 256_000


class SkillError(AgentError):
    """A folder is no skill; the message says why, and what a skill needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that can be used.

    Attributes:
        name: By what the model asks for it: that of its folder.
        description: What it is for, and when.
        instructions: How it is done.
        tools: The tools that its author names. A wish, and never a permission.
        license: Under what terms it may be used.
        compatibility: What it needs.
        metadata: What else its author says.
    """

    name: str
    description: str
    instructions: str
    folder: Path
    tools: tuple[str, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_skill(folder: Path) -> Skill:
    """Read a folder as a skill.

    Raises:
        SkillError: If it is none, with what is wrong.
    """
    try:
        text = read_file(folder, FILE, limit=_MOST_BYTES).decode()
    except UnicodeDecodeError:
        raise SkillError(f"{folder / FILE} is not UTF-8") from None
    found = _HEAD.fullmatch(text)
    if found is None:
        raise SkillError(f"{folder / FILE} must begin with a head between two lines of ---")
    head = _read_head(folder, found[1])
    _check_name(folder, head["name"])
    return Skill(
        name=head["name"],
        description=" ".join(head["description"].split()),
        instructions=found[2].strip(),
        folder=folder,
        tools=_names(head.get("allowed-tools")),
        license=str(head.get("license") or ""),
        compatibility=str(head.get("compatibility") or ""),
        metadata=_metadata(head.get("metadata")),
    )


def _read_head(folder: Path, text: str) -> dict[str, Any]:
    import yaml

    try:
        head = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SkillError(f"the head of {folder / FILE} cannot be read: {_first_line(error)}") from None
    except RecursionError:
        raise SkillError(f"the head of {folder / FILE} is nested too deep") from None
    if not isinstance(head, dict):
        raise SkillError(f"the head of {folder / FILE} must have fields: name and description")
    for field_name in ("name", "description"):
        if not isinstance(head.get(field_name), str) or not head[field_name].strip():
            raise SkillError(f"the head of {folder / FILE} needs a text under {field_name!r}")
    for field_name, longest in _LONGEST.items():
        if len(str(head.get(field_name) or "")) > longest:
            raise SkillError(f"{field_name!r} in {folder / FILE} has more than {longest} characters")
    return head


def _check_name(folder: Path, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SkillError(
            f"{name!r} is no name for a skill: use lower-case letters, digits and single hyphens"
        )
    if name != folder.name:
        raise SkillError(f"the skill {name!r} stands in a folder {folder.name!r}: give both the same name")


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _metadata(value: Any) -> dict[str, str]:
    return {str(key): str(one) for key, one in value.items()} if isinstance(value, dict) else {}


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
