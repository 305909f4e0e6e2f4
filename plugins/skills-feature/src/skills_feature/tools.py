"""The tools by which the model loads a skill, and files that belong to it.

They only read, and only inside the skill's folder. A script of a skill is run by the agent's other tools,
if it has any and their permissions allow it: nothing that stands in a skill grants anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from skills_feature.files import list_files, read_file
from skills_feature.skill import FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skills_feature.catalogue import Catalogue
    from skills_feature.skill import Skill

LOAD, READ = "load_skill", "read_skill_file"
_MOST_BYTES = 1_000_000


class SkillTools:
    """Loads skills of a catalogue that is looked up for each call.

    Args:
        catalogue: Returns the skills of a session, by its metadata.
    """

    name = "skill_tools"
    version = "0.1.0"
    parallel = True
    idempotent = True

    def __init__(self, catalogue: Callable[[Mapping[str, Any]], Catalogue]) -> None:
        self.catalogue = catalogue

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the two tools."""
        skill = {"type": "string", "description": "The skill's name, as in the list of skills."}
        path = {"type": "string", "description": "A file that the skill lists, such as references/api.md."}
        return [
            _schema(LOAD, "Load the instructions of a skill.", {"name": skill}),
            _schema(READ, "Read a file that belongs to a skill.", {"name": skill, "path": path}),
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Load a skill or one of its files."""
        given = context or {}
        skills = self.catalogue(given.get("session_metadata") or {}).skills
        skill = skills.get(arguments["name"])
        if skill is None:
            known = ", ".join(skills) or "none"
            return _failed(f"there is no skill {arguments['name']!r}; there are: {known}")
        try:
            return {
                "success": True,
                "result": _loaded(skill) if tool_name == LOAD else _file(skill, arguments),
            }
        except (AgentError, UnicodeDecodeError) as error:
            return _failed(str(error))

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        """Return the skill, or its file, that the call is about."""
        name = str(arguments.get("name", ""))
        return [name if tool_name == LOAD else f"{name}/{arguments.get('path', '')}"]

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Say which skill is loaded, or which of its files."""
        about = self.permission_subjects(tool_name, arguments)[0]
        return f"load the skill {about}" if tool_name == LOAD else f"read {about} of the skills"


def _loaded(skill: Skill) -> str:
    parts = [f"# The skill {skill.name}", skill.instructions]
    if skill.compatibility:
        parts.append(f"It needs: {skill.compatibility}")
    if files := list_files(skill.folder, FILE, skill.within):
        listed = "\n".join(f"- {name}" for name in files)
        parts.append(
            f"Files of the skill, to be read with {READ}; they are in {skill.folder}, in case that one of "
            f"them is to be run:\n{listed}"
        )
    return "\n\n".join(parts)


def _file(skill: Skill, arguments: Mapping[str, Any]) -> str:
    data = read_file(skill.folder, arguments["path"], limit=_MOST_BYTES, within=skill.within)
    if b"\0" in data:
        return f"{arguments['path']} is not text: {len(data)} bytes in {skill.folder / arguments['path']}"
    return data.decode()


def _failed(text: str) -> dict[str, Any]:
    return {"success": False, "error": text}


def _schema(name: str, about: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}
