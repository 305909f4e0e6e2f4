"""One skill: a folder with a SKILL.md, whose head says what it is for and whose body says how it is done.

The head is a few fields in YAML, from whoever wrote the skill.

YAML can say in a few lines what takes all memory to hold: a part that is named once and put in many times,
and those again. So the head is short, flat and without such names, and every value is a text, or a list or
a mapping of texts, before anything is made of it. Numbers and dates stay as they are written.

Files are read in the skill's folder only. No link is followed on the way (`agent_plugin_kit.safe_files`). The
folder of a skill that comes with a project may itself be reached by a link, but only by one that stays inside
the project: where it ends is found out first, and then walked to from the project in the same manner.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_plugin_kit.safe_files import FOLDER, NotOpened, Outside, open_file, open_folder, steps_inside, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import yaml


class SkillError(AgentError):
    """A folder is not a skill; the message says why, and what a skill needs."""


class SkillFileError(AgentError):
    """A file of a skill cannot be read; the message says why."""


_MOST_LISTED = 200
_DEEPEST_FOLDER = 4


def read_file(folder: Path, name: str, *, limit: int, within: Path | None = None) -> bytes:
    """Return a file of a skill's folder.

    Raises:
        SkillFileError: If there is none, if it is outside, is not a regular file or is too large.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
        raise SkillFileError(f"{name!r} is not a path inside the skill: name a file that the skill lists")
    try:
        here = walk(_open_folder(folder, within), parts[:-1])
        try:
            descriptor = open_file(here, parts[-1])
        finally:
            os.close(here)
    except NotOpened as error:
        raise SkillFileError(f"{name!r} of the skill is not read: {error}") from None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise SkillFileError(f"{name!r} of the skill is too large: {size} bytes, {limit} at most")
        return file.read(limit)


def list_files(folder: Path, leave_out: str, within: Path | None = None) -> list[str]:
    """Return the plain files of a skill's folder, sorted; so many at most, and not too deep."""
    try:
        here = _open_folder(folder, within)
    except (NotOpened, SkillFileError):
        return []
    try:
        names = (name for name in _files(here, "", _DEEPEST_FOLDER) if name != leave_out)
        return list(islice(names, _MOST_LISTED))
    finally:
        os.close(here)


def _open_folder(folder: Path, within: Path | None) -> int:
    if within is None:
        return open_folder(os.path.realpath(folder))
    try:
        base, steps = steps_inside(within, folder)
    except Outside:
        raise SkillFileError(f"{folder} leads out of the project {within}: it is not followed") from None
    return open_folder(base, steps)


def _files(folder: int, prefix: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            here = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in here:
        if entry.name.startswith("."):
            continue
        if entry.is_file(follow_symlinks=False):
            yield prefix + entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _files_below(folder, entry.name, prefix, depth - 1)


def _files_below(folder: int, name: str, prefix: str, depth: int) -> Iterator[str]:
    try:
        below = os.open(name, FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _files(below, f"{prefix}{name}/", depth)
    finally:
        os.close(below)


# The head

LONGEST_HEAD = 16_000
_DEEPEST = 8
_LONGEST = {"name": 64, "description": 1024, "compatibility": 500, "license": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the head says; see `Skill` for what the fields mean."""

    name: str
    description: str
    tools: tuple[str, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_head(text: str) -> Head:
    """Read a head.

    Raises:
        SkillError: If it is none; the text goes on after the name of the file.
    """
    if len(text) > LONGEST_HEAD:
        raise SkillError(f"has a head of {len(text)} characters, and {LONGEST_HEAD} are the most")
    fields = _fields(text)
    texts = {name: _text(fields, name) for name in _LONGEST}
    for name in ("name", "description"):
        if not texts[name]:
            raise SkillError(f"needs a text under {name!r} in its head")
    return Head(**texts, tools=_tools(fields.get("allowed-tools")), metadata=_metadata(fields))


def _fields(text: str) -> dict[str, Any]:
    import yaml  # most runs read no skill

    try:
        depth = 0
        # What makes much out of little is refused before anything is built.
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise SkillError(
                    "has an anchor (&) or alias (*) in its head, and none may be there: write it out"
                )
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise SkillError(f"has a head that is nested more than {_DEEPEST} deep")
        fields = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it knows texts, lists and mappings only
    except yaml.YAMLError as error:
        raise SkillError(f"has a head that cannot be read: {_reason(error)}") from None
    if not isinstance(fields, dict):
        raise SkillError("must have fields in its head: name and description")
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise SkillError(f"needs a text under {name!r} in its head, not a {_kind(value)}")
    if len(value) > _LONGEST[name]:
        raise SkillError(f"has more than {_LONGEST[name]} characters under {name!r} in its head")
    return value.strip()


def _tools(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return tuple(value or ())
    raise SkillError("needs a text or a list of texts under 'allowed-tools' in its head")


def _metadata(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return what is text; authors keep all sorts of things for other programs there."""
    value = fields.get("metadata") or {}
    if not isinstance(value, dict):
        raise SkillError(f"needs names and texts under 'metadata' in its head, not a {_kind(value)}")
    return {key: one for key, one in value.items() if isinstance(key, str) and isinstance(one, str)}


def _kind(value: Any) -> str:
    return "list" if isinstance(value, list) else "mapping" if isinstance(value, dict) else "text"


def _reason(error: yaml.YAMLError) -> str:
    """Return what is wrong, with the line of the file: the first is the mark before the head."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is not None and problem:
        return f"line {mark.line + 2}, {problem}"
    return " ".join(str(error).split())[:200]


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
    """Read a folder as a skill; one that comes with a project must lie inside it.

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
            f"{name!r} is not a name for a skill: use lower-case letters, digits and single hyphens"
        )
    if name != folder.name:
        raise SkillError(f"the skill {name!r} is in a folder {folder.name!r}: give both the same name")
