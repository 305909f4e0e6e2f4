"""The plugin: the catalogue of skills in the prompt, and the tools that load them.

The tools only read, and only inside the skill's folder. A script of a skill is run by the agent's other
tools, if it has any and their permissions allow it: nothing that stands in a skill grants anything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, plugin_config
from agent_plugin_kit.settings import read_settings, section_schema, setting
from agent_plugin_kit.trust import NOT_TRUSTED, is_trusted, trusted_folders
from skills_feature.actions import ACTIONS, ELEMENTS, LIST, SWITCH, list_skills, names_off, switch_skill
from skills_feature.catalogue import Catalogue, Place, find_skills
from skills_feature.skill import FILE, list_files, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core import Session
    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView
    from skills_feature.catalogue import Catalogue
    from skills_feature.skill import Skill

SECTION = "skills"
PROJECT_FOLDERS = (".agent/skills", ".agents/skills", ".claude/skills")
"""Where a project keeps its skills, in the session's folders."""

_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an agent's section says."""

    folders: tuple[str, ...] = setting((), "More folders with a folder for each skill.", shown_default=None)
    project: bool = setting(default=True, description="Whether the skills that come with a project count.")


class SkillsFeature:
    """Lets agents use skills."""

    name = "skills"
    version = "0.1.0"
    default_enabled = False

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, section_schema(Settings))]

    def __init__(self) -> None:
        self._warned: set[tuple[str, str]] = set()

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the catalogue and the tools."""
        settings = read_settings(Settings, registrar.spec.section(SECTION))
        trusted = trusted_folders(registrar.spec.section("config"))
        tools = _tools(settings, trusted)
        registrar.request_transform(partial(_with_catalogue, tools.catalogue))
        registrar.phase_hook("run_start", partial(_warn, tools.catalogue, settings, trusted, self._warned))
        registrar.tool("skill_tools", tools)

    def get_actions(self) -> list[dict[str, Any]]:
        """Offer to see the skills, and to switch one."""
        return ACTIONS

    def get_ui_elements(self, _config: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Have them shown as a collection."""
        return ELEMENTS

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: Mapping[str, Any],
        context: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Run one of them for the folders of a session."""
        config = context["config"]
        settings, trusted = read_settings(Settings, plugin_config(config, SECTION)), trusted_folders(config)
        found = _catalogue(settings, trusted, session.metadata)
        if action_id == SWITCH:
            return switch_skill(user_folder(), found, params)
        if action_id != LIST:
            return {"error": {"type": "unknown_action", "message": f"there is no action {action_id!r}"}}
        return list_skills(found, _not_trusted(settings, trusted, session.metadata))


@lru_cache(maxsize=64)  # the same object each time: of a new one everything about its agent is decided anew
def _tools(settings: Settings, trusted: tuple[str, ...] | None = None) -> SkillTools:
    return SkillTools(partial(_catalogue, settings, trusted))


def user_folder() -> Path:
    """Return where a person's own skills are."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "agent" / "skills"


def _project_places(settings: Settings, metadata: Mapping[str, Any]) -> list[Place]:
    """Return where the projects of a session may have skills."""
    roots = metadata.get("workspace_roots") if settings.project else None
    texts = [one for one in roots if isinstance(one, str)] if isinstance(roots, (list, tuple)) else []
    return [Place(Path(root) / folder, Path(root)) for root in texts for folder in PROJECT_FOLDERS]


def _catalogue(settings: Settings, trusted: tuple[str, ...] | None, metadata: Mapping[str, Any]) -> Catalogue:
    places = _project_places(settings, metadata)
    own = [place for place in places if place.within is None or is_trusted(place.within, trusted)]
    found = find_skills([*own, *(Path(one).expanduser() for one in settings.folders), user_folder()])
    return found.without(names_off(user_folder()))


def _not_trusted(
    settings: Settings, trusted: tuple[str, ...] | None, metadata: Mapping[str, Any]
) -> list[str]:
    """Return what is said of folders with skills that nobody has trusted."""
    return [
        f"the skills in {place.folder} are left out: {NOT_TRUSTED}"
        for place in _project_places(settings, metadata)
        if place.within is not None and not is_trusted(place.within, trusted) and place.folder.is_dir()
    ]


def _warn(
    look: Any,
    settings: Settings,
    trusted: tuple[str, ...] | None,
    warned: set[tuple[str, str]],
    view: PhaseView,
) -> Flow[None]:
    """Warn of folders that look like skills and are left out; of each problem once in a session."""
    from agent_runtime.engine import warn

    found = _not_trusted(settings, trusted, view.session.metadata)
    found += [f"a skill is left out: {one}" for one in look(view.session.metadata).problems[:_MOST_WARNINGS]]
    for problem in found:
        if (view.session.session_id, problem) not in warned:
            warned.add((view.session.session_id, problem))
            yield from warn(problem, SkillsFeature.name)


def _with_catalogue(look: Any, prompt: Prompt, view: PhaseView) -> Prompt:
    """Return the prompt with the list of skills behind its system message; without skills, without tools."""
    text = look(view.session.metadata).text()
    if not text:
        return replace(prompt, tools=tuple(tool for tool in prompt.tools if tool.name not in (LOAD, READ)))
    return prompt.with_system(text)


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
        return f"Load the skill {about}" if tool_name == LOAD else f"Read {about} of the skills"


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
