"""What people can do about skills: see what there is and what is wrong with some, and switch one off or on.

Which skills are off stands in a file among the person's own skills, one name per line. It counts for all
projects and sessions: a skill that somebody does not want is not wanted under another folder either.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skills_feature.catalogue import Catalogue
    from skills_feature.skill import Skill

PLUGIN: Final = "skills"
LIST, SWITCH = "list_skills", "switch_skill"
_OFF_FILE: Final = ".off"
ACTIONS: Final[list[dict[str, Any]]] = [
    {"id": LIST, "label": "Skills", "description": "Lists the skills that agents can load.", "inputs": {}},
    {
        "id": SWITCH,
        "label": "Switch a skill on or off",
        "description": "Counts for all projects, from the next request on.",
        "inputs": {
            "item_id": {"type": "string", "required": True, "description": "Its name."},
            "enabled": {"type": "boolean", "required": True, "description": "Whether agents can load it."},
        },
    },
]
ELEMENTS: Final[list[dict[str, Any]]] = [
    {
        "ui_type": "collection",
        "label": "Skills",
        "description": "Instructions that an agent loads when a task fits them.",
        "action_id": LIST,
        "item_actions": [SWITCH],
    }
]


def names_off(folder: Path) -> frozenset[str]:
    """Return the skills that somebody has switched off."""
    try:
        return frozenset((folder / _OFF_FILE).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def list_skills(found: Catalogue, left_out: Sequence[str]) -> dict[str, Any]:
    """Return all skills, and why others are left out."""
    skills = [*found.skills.values(), *found.off]
    items = [_item(skill, is_on=skill.name in found.skills) for skill in skills]
    items.sort(key=lambda item: str(item["id"]))
    broken = [
        {"id": f"problem {place}", "problem": problem, "actions": []}
        for place, problem in enumerate((*left_out, *found.problems))
    ]
    lines = [f"- **{one['title']}** ({'on' if one['enabled'] else 'off'}): {one['text']}" for one in items]
    lines += [f"- left out: {one['problem']}" for one in broken]
    body = "\n".join(lines) or "There are no skills yet: put a folder with a SKILL.md into .agent/skills."
    return {
        "items": [*items, *broken],
        "display": {"format": "markdown", "title": "Skills", "body": body},
    }


def _item(skill: Skill, *, is_on: bool) -> dict[str, Any]:
    return {
        "id": skill.name,
        "title": skill.name,
        "text": skill.description,
        "origin": str(skill.folder),
        "enabled": is_on,
    }


def switch_skill(folder: Path, known: Catalogue, params: Mapping[str, Any]) -> dict[str, Any]:
    """Switch a skill off or on, and offer to undo that."""
    name, enabled = params["item_id"], params["enabled"]
    if name not in {*known.skills, *(skill.name for skill in known.off)}:
        return {"error": {"type": "unknown_skill", "message": f"there is no skill {name!r}"}}
    off = names_off(folder)
    _write(folder, off - {name} if enabled else off | {name})
    undo = {"item_id": name, "enabled": not enabled}
    button = {"kind": "run_action", "id": "undo", "label": "Undo", "plugin": PLUGIN}
    return {
        "display": {
            "body": f"{name} is {'on' if enabled else 'off'}.",
            "display_id": "switched",
            "actions": [{**button, "action_id": SWITCH, "params": undo}],
        }
    }


def _write(folder: Path, names: frozenset[str]) -> None:
    file = folder / _OFF_FILE
    if names:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
    else:
        with suppress(FileNotFoundError):
            file.unlink()
