"""What a configuration file may say: unknown keys, values of the wrong type and secrets are refused.

The sections that `agent_runtime` declares (agents, models, permission rules) are checked by its own readers,
which are loaded with the first such section: most starts have none. They report a problem by its offset in a
text; here every value gets its number as the offset, so the key comes back and no text is needed.
`settings_schema` has the same rules as JSON Schema, for editors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.errors import nearest
from agent_terminal_app import lazy
from agent_terminal_app.errors import SettingsError
from agent_terminal_app.settings.keypaths import Way, every_way, spell, value_at
from agent_terminal_app.settings.secrets import find_secret, owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_terminal_app.settings.files import ConfigFile

_NAMES = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}
_COUNT = {"type": "integer", "minimum": 1}
THEMES = ("auto", "dark", "light", "none")
"""The colours that the terminal can have."""
SECTIONS = {
    "model": "Which model answers: provider:model, local, or the id of one in [models].",
    "default_agent": "Which agent answers, by its id.",
    "plugin_ids": "The plugins of agents that have no plugin_ids of their own; an empty list for none.",
    "more_plugins": "More plugins for these agents, in addition to the default ones.",
    "agents": "Agents by their ids.",
    "models": "Models by their ids.",
    "plugins": "Settings of plugins by their names.",
    "permissions": "Which calls of tools run, wait for you, or never run.",
    "sandbox": "What confines programs that a model starts: strict, workspace or off; or a table with more.",
    "ui": "How the terminal looks.",
}
"""The keys at the top level, and what each is for."""
SANDBOXES = ("strict", "workspace", "off")
"""What confines programs, the strictest first."""
SANDBOX: dict[str, dict[str, Any]] = {
    "mode": {"enum": list(SANDBOXES), "default": "workspace", "description": "How strict it is."},
    "auto": {
        "type": "boolean",
        "default": False,
        "description": "Whether commands that stay inside the sandbox run without approval.",
    },
    "write": {**_NAMES, "description": "Folders outside the workspace that programs may write."},
    "show": {**_NAMES, "description": "Hidden files to show after all: a name such as .env, or a path."},
    "hosts": {**_NAMES, "description": "Hosts that programs may reach."},
    "memory": {**_COUNT, "description": "Megabytes of memory for a process."},
    "processes": {**_COUNT, "description": "Processes at once."},
    "open_files": {**_COUNT, "description": "Files that a process may have open."},
    "file_size": {**_COUNT, "description": "Megabytes that a file may have."},
}
"""The keys of [sandbox]; an agent has the same, but for `auto`."""
UI = ("plain", "theme", "status_line", "notify")
"""The keys of [ui]."""
NOTIFY = ("unfocused", "always", "never")
"""When the desktop shows that the agent is done, or asks something."""
STATUS_PARTS = ("mode", "state", "model", "context", "session", "cost", "folder", "branch")
"""What the status line can show."""
_TABLES = ("agents", "models", "plugins", "permissions", "ui")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong, before its line is known."""

    way: Way
    problem: str
    hint: str = ""


def find_fault(values: Mapping[str, Any]) -> Fault | None:
    """Return the first thing that is wrong with settings, or None; a missing field is not wrong yet."""
    finders = (
        _unknown,
        _secret,
        _not_text,
        _not_names,
        _not_table,
        _ui,
        _sandbox,
        _declarations,
        _permissions,
    )
    for find in finders:
        fault = find(values)
        if fault is not None:
            return fault
    return None


def find_gap(values: Mapping[str, Any]) -> Fault | None:
    """Return what settings lack before they can be used, or None."""
    for name, model in values.get("models", {}).items():
        if "provider" not in model:
            way = ("models", name)
            return Fault(
                way, f"{spell(way)} has no provider", f"run `agent config set {spell(way)}.provider NAME`"
            )
    return None


def checked(file: ConfigFile, find: Callable[[Mapping[str, Any]], Fault | None]) -> ConfigFile:
    """Return the file if nothing is wrong with it.

    Raises:
        SettingsError: With the line of what is wrong.
    """
    fault = find(file.values)
    if fault is None:
        return file
    raise SettingsError(str(file.path), file.line(fault.way), fault.problem, hint=fault.hint)


_SERVERS = "MCP servers are in plugins.mcp_tools.servers; `agent mcp add` writes them there"
_ELSEWHERE = {"tools": "it is called plugin_ids", "mcp_servers": _SERVERS, "mcpServers": _SERVERS}
"""Settings that people look for at the top, and where they are."""
_OF_AN_AGENT = ("allowed_tools", "excluded_tools", "max_rounds", "system_prompt", "context_policy")


def _unknown(values: Mapping[str, Any]) -> Fault | None:
    for key in values:
        if key not in SECTIONS:
            of_agent = f"it is a field of an agent: agents.assistant.{key}" if key in _OF_AN_AGENT else ""
            hint = _ELSEWHERE.get(key) or of_agent or nearest(key, SECTIONS)
            return Fault((key,), f"there is no setting {key!r}", hint)
    return None


def _secret(values: Mapping[str, Any]) -> Fault | None:
    way = find_secret(values)
    if way is None:
        return None
    name = owner(values, way)
    hint = f'run `agent keys set {name}`; "stored:NAME", "env:NAME" or "file:PATH" can be written here'
    return Fault(way, f"{spell(way)} is a secret and must not be in this file", hint)


def _not_text(values: Mapping[str, Any]) -> Fault | None:
    for key in ("model", "default_agent"):
        value = values.get(key, "some")
        if not isinstance(value, str) or not value.strip():
            return Fault((key,), f"{key} must be a text that is not empty, not {value!r}")
    return None


def _not_names(values: Mapping[str, Any]) -> Fault | None:
    """Check the lists of plugins, for all and for single agents."""
    places: list[Way] = [("plugin_ids",), ("more_plugins",)]
    agents = values.get("agents", {})
    if isinstance(agents, Mapping):
        places += [
            ("agents", name, "more_plugins") for name, one in agents.items() if isinstance(one, Mapping)
        ]
    for way in places:
        try:
            names = value_at(values, way)
        except LookupError:
            continue
        if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
            return Fault(way, f"{spell(way)} must be a list of names of plugins, not {names!r}")
    return None


def _not_table(values: Mapping[str, Any]) -> Fault | None:
    for key in _TABLES:
        section = values.get(key, {})
        if not isinstance(section, Mapping):
            hint = "names of plugins belong to plugin_ids" if key == "plugins" else ""
            return Fault((key,), f"{key} must be a table, not {_kind(section)}", hint)
        if key in {"agents", "models", "plugins"}:
            for name, entry in section.items():
                if not isinstance(entry, Mapping):
                    way = (key, name)
                    return Fault(way, f"{spell(way)} must be a table, not {_kind(entry)}")
    return None


def _ui(values: Mapping[str, Any]) -> Fault | None:
    section = values.get("ui", {})
    for key in section:
        if key not in UI:
            return Fault(("ui", key), f"ui has no setting {key!r}", nearest(key, UI))
    if not isinstance(section.get("plain", False), bool):
        return Fault(("ui", "plain"), f"ui.plain must be true or false, not {section['plain']!r}")
    theme = section.get("theme", "auto")
    if theme not in THEMES:
        return Fault(
            ("ui", "theme"), f"ui.theme must be one of {', '.join(THEMES)}, not {theme!r}", _close(theme)
        )
    if section.get("notify", "never") not in NOTIFY:
        problem = f"ui.notify must be one of {', '.join(NOTIFY)}, not {section['notify']!r}"
        return Fault(("ui", "notify"), problem)
    return _status_line(section.get("status_line", []))


def _status_line(parts: Any) -> Fault | None:
    way = ("ui", "status_line")
    if not isinstance(parts, list):
        return Fault(way, f"ui.status_line must be a list of parts, not {_kind(parts)}")
    for part in parts:
        if part not in STATUS_PARTS:
            return Fault(way, f"ui.status_line has no part {part!r}", nearest(part, STATUS_PARTS))
    return None


def _sandbox(values: Mapping[str, Any]) -> Fault | None:
    """Check what is said about the sandbox, for all and for single agents."""
    places: list[tuple[Way, Any]] = [(("sandbox",), values["sandbox"])] if "sandbox" in values else []
    agents = values.get("agents", {}).items()
    places += [(("agents", name, "sandbox"), one["sandbox"]) for name, one in agents if "sandbox" in one]
    return next((fault for way, given in places if (fault := _wrong_sandbox(way, given)) is not None), None)


def _wrong_sandbox(way: Way, given: Any) -> Fault | None:
    table = given if isinstance(given, Mapping) else {"mode": given}
    for key, value in table.items():
        where = (*way, key) if isinstance(given, Mapping) else way
        known = SANDBOX if len(way) == 1 else [name for name in SANDBOX if name != "auto"]
        if key not in known:
            return Fault(where, f"{spell(way)} has no setting {key!r}", nearest(key, known))
        if key == "mode" and value not in SANDBOXES:
            return Fault(where, f"{spell(where)} must be one of {', '.join(SANDBOXES)}, not {value!r}")
        if key == "auto" and not isinstance(value, bool):
            return Fault(where, f"{spell(where)} must be true or false, not {value!r}")
        if SANDBOX[key].get("type") == "integer" and (type(value) is not int or value < 1):
            return Fault(where, f"{spell(where)} must be a whole number from 1 on, not {value!r}")
        is_list = isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)
        if SANDBOX[key].get("type") == "array" and not is_list:
            return Fault(where, f"{spell(where)} must be a list of texts, not {value!r}")
    return None


def _declarations(values: Mapping[str, Any]) -> Fault | None:
    if not any(values.get(key) for key in ("agents", "models", "plugins", "permissions")):
        return None
    problem = find_problem(values)
    return None if problem is None else Fault(*problem)


def _permissions(values: Mapping[str, Any]) -> Fault | None:
    """Have the rules read that hold for all, and those of single agents."""
    for way, section in _rules(values):
        fault = _wrong_rules(way, section)
        if fault is not None:
            return fault
    return None


def _rules(values: Mapping[str, Any]) -> Iterator[tuple[Way, Any]]:
    if values.get("permissions"):
        yield ("permissions",), values["permissions"]
    for name, agent in values.get("agents", {}).items():
        if "permissions" in agent.get("sections", {}):
            yield ("agents", name, "sections", "permissions"), agent["sections"]["permissions"]


def _wrong_rules(way: Way, section: Any) -> Fault | None:
    if not isinstance(section, Mapping):
        return Fault(way, f"{spell(way)} must be a table, not {_kind(section)}")
    problem = find_wrong_rule(way, section)
    if problem is not None:
        return Fault(*problem)
    if section.get("on_ask", "suspend") not in ("suspend", "deny"):
        way = (*way, "on_ask")
        return Fault(way, f"{spell(way)} must be suspend or deny, not {section['on_ask']!r}")
    return None


Problem = tuple[Way, str]
"""The key of a value that is wrong, and what is wrong with it."""


def find_problem(values: Mapping[str, Any]) -> Problem | None:
    """Return the first thing that is wrong with agents and models, or that no section can hold."""
    sections = {key: values[key] for key in ("agents", "models", "plugins", "permissions") if values.get(key)}
    for way, problem in lazy.unusable(sections):
        return way, f"{spell(way)} {problem}"
    data = {"agents": _filled(values, "agents"), "models": _filled(values, "models")}
    ways = list(every_way(data))
    try:
        lazy.entries(lazy.Document(data, {way: number for number, way in enumerate(ways)}))
    except lazy.Wrong as wrong:
        return ways[wrong.at or 0], wrong.problem
    return None


def _filled(values: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """Return declarations with what another layer may say: the model of an agent, the provider of a model."""
    key = "model" if section == "agents" else "provider"
    # What confines an agent's programs, and plugins besides the usual ones, are settings of an application.
    ours = ("sandbox", "more_plugins") if section == "agents" else ()
    read = {
        name: {field: value for field, value in entry.items() if field not in ours}
        for name, entry in values.get(section, {}).items()
    }
    return {
        name: entry if key in entry or "endpoint" in entry else {**entry, key: "-"}
        for name, entry in read.items()
    }


def find_wrong_rule(way: Way, section: Mapping[str, Any]) -> Problem | None:
    """Return the first thing that is wrong with a section of permissions, which stands at a key."""
    try:
        lazy.Permissions.from_section(section)
    except lazy.SpecError as error:
        place = lazy.follow({"permissions": section}, error.field or "")
        return (*way, *place[1:]), str(error)
    return None


def _close(theme: object) -> str:
    hint = nearest(theme, THEMES)
    return hint if hint.startswith("did you mean") else ""


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")


def settings_schema() -> dict[str, Any]:
    """Return the schema of a configuration file."""
    parts = lazy.spec_schema()["$defs"]
    parts = {name: part for name, part in parts.items() if name not in {"agent", "model"}}
    parts["named_agent"].pop("anyOf", None)  # an agent that names no model has the usual one
    parts["named_agent"]["properties"]["sandbox"] = _sandbox_schema(of_agent=True)
    parts["named_agent"]["properties"]["more_plugins"] = {**_NAMES, "description": SECTIONS["more_plugins"]}
    [(_, permissions)] = lazy.PermissionsPlugin.config_schemas()
    return {
        "$schema": lazy.DIALECT,
        "title": "Settings of the agent command",
        "type": "object",
        "properties": {name: {"description": said} | _section_schema(name) for name, said in SECTIONS.items()}
        | {"permissions": {"description": SECTIONS["permissions"], **permissions}},
        "additionalProperties": False,
        "$defs": parts,
    }


def _section_schema(name: str) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {
        "plugin_ids": _NAMES,
        "more_plugins": _NAMES,
        "agents": _by_name({"$ref": "#/$defs/named_agent"}),
        "models": _by_name({"$ref": "#/$defs/named_model"}),
        "plugins": _by_name({"type": "object"}),
        "sandbox": _sandbox_schema(of_agent=False),
        "ui": {
            "type": "object",
            "properties": {
                "plain": {
                    "type": "boolean",
                    "default": False,
                    "description": "No colours, no boxes, nothing that moves.",
                },
                "theme": {"enum": list(THEMES), "default": "auto", "description": "The colours."},
                "status_line": {
                    "type": "array",
                    "items": {"enum": list(STATUS_PARTS)},
                    "description": "The parts of the last line, in order.",
                },
                "notify": {
                    "enum": list(NOTIFY),
                    "default": "unfocused",
                    "description": "When the desktop shows that the agent is done, or asks something.",
                },
            },
            "additionalProperties": False,
        },
    }
    return sections.get(name, {"type": "string", "pattern": r"\S"})


def _sandbox_schema(*, of_agent: bool) -> dict[str, Any]:
    keys = {name: one for name, one in SANDBOX.items() if not (of_agent and name == "auto")}
    table = {"type": "object", "properties": keys, "additionalProperties": False}
    return {"anyOf": [{"enum": list(SANDBOXES)}, table]}


def _by_name(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"pattern": r"\S"}, "additionalProperties": entry}
