"""What no layer may say: unknown keys, values of the wrong kind, secrets.

The sections that `agent_runtime` declares are read by its own readers. They tell where something is wrong by
an offset in a text; here every value gets its number as the offset, so that the way to it comes back and no
text is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_terminal_app.settings.secrets import find_secret, owner
from agent_terminal_app.settings.ways import Way, every_way, spell

THEMES = ("auto", "dark", "light", "none")
"""The colours that the terminal can have."""
SECTIONS = {
    "model": "Which model answers: provider:model, local, or the id of one in [models].",
    "default_agent": "Which agent answers, by its id.",
    "tools": "The tools of agents that name no plugins: a list of plugins; an empty one for none.",
    "agents": "Agents by their ids.",
    "models": "Models by their ids.",
    "plugins": "Settings of plugins by their names.",
    "permissions": "Which calls of tools run, wait for you, or never run.",
    "ui": "How the terminal looks.",
}
"""The keys at the top, and what each is for."""
UI = ("plain", "theme")
"""The keys of [ui]."""
_TABLES = ("agents", "models", "plugins", "permissions", "ui")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong, before anyone knows in which line it stands."""

    way: Way
    problem: str
    hint: str = ""


def find_fault(values: Mapping[str, Any]) -> Fault | None:
    """Return the first thing that is wrong with settings, or None; fields that are missing are no fault."""
    for find in (_unknown, _secret, _not_text, _not_names, _not_table, _ui, _declarations, _permissions):
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


def _unknown(values: Mapping[str, Any]) -> Fault | None:
    for key in values:
        if key not in SECTIONS:
            return Fault((key,), f"there is no setting {key!r}", _nearest(key, SECTIONS))
    return None


def _secret(values: Mapping[str, Any]) -> Fault | None:
    way = find_secret(values)
    if way is None:
        return None
    name = owner(values, way)
    hint = f'run `agent keys set {name}`; "stored:NAME", "env:NAME" or "file:PATH" may stand here'
    return Fault(way, f"{spell(way)} is a secret and must not stand here", hint)


def _not_text(values: Mapping[str, Any]) -> Fault | None:
    for key in ("model", "default_agent"):
        value = values.get(key, "some")
        if not isinstance(value, str) or not value.strip():
            return Fault((key,), f"{key} must be a text that is not empty, not {value!r}")
    return None


def _not_names(values: Mapping[str, Any]) -> Fault | None:
    tools = values.get("tools", [])
    if isinstance(tools, list) and all(isinstance(name, str) and name.strip() for name in tools):
        return None
    return Fault(("tools",), f"tools must be a list of names of plugins, not {tools!r}")


def _not_table(values: Mapping[str, Any]) -> Fault | None:
    for key in _TABLES:
        section = values.get(key, {})
        if not isinstance(section, Mapping):
            return Fault((key,), f"{key} must be a table, not {_kind(section)}")
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
            return Fault(("ui", key), f"ui has no setting {key!r}", _nearest(key, UI))
    if not isinstance(section.get("plain", False), bool):
        return Fault(("ui", "plain"), f"ui.plain must be true or false, not {section['plain']!r}")
    theme = section.get("theme", "auto")
    if theme not in THEMES:
        return Fault(
            ("ui", "theme"), f"ui.theme must be one of {', '.join(THEMES)}, not {theme!r}", _close(theme)
        )
    return None


def _declarations(values: Mapping[str, Any]) -> Fault | None:
    """Have agents and models read, and what cannot be kept in any section refused."""
    sections = {key: values[key] for key in ("agents", "models", "plugins", "permissions") if values.get(key)}
    if not sections:
        return None
    from agent_runtime.files.declarations import entries
    from agent_runtime.files.documents import Document
    from agent_runtime.files.problems import Wrong
    from agent_runtime.files.values import unusable

    for way, problem in unusable(sections):
        return Fault(way, f"{spell(way)} {problem}")
    data = {"agents": _filled(values, "agents"), "models": _filled(values, "models")}
    ways = list(every_way(data))
    try:
        entries(Document(data, {way: number for number, way in enumerate(ways)}))
    except Wrong as wrong:
        return Fault(ways[wrong.at or 0], wrong.problem)
    return None


def _filled(values: Mapping[str, Any], section: str) -> dict[str, dict[str, Any]]:
    """Return declarations with what another layer may say: the model of an agent, the provider of a model."""
    key = "model" if section == "agents" else "provider"
    return {
        name: dict(entry) if key in entry or "endpoint" in entry else {**entry, key: "-"}
        for name, entry in values.get(section, {}).items()
    }


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
    from agent_runtime import SpecError
    from agent_runtime.files.ways import follow
    from agent_runtime.permissions import Permissions

    try:
        Permissions.from_section(section)
    except SpecError as error:
        place = follow({"permissions": section}, error.field or "")
        return Fault((*way, *place[1:]), str(error))
    if section.get("on_ask", "suspend") not in ("suspend", "deny"):
        way = (*way, "on_ask")
        return Fault(way, f"{spell(way)} must be suspend or deny, not {section['on_ask']!r}")
    return None


def _nearest(name: object, known: Iterable[str]) -> str:
    from agent_runtime.errors import nearest

    return nearest(name, known)


def _close(theme: object) -> str:
    hint = _nearest(theme, THEMES)
    return hint if hint.startswith("did you mean") else ""


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), f"a {type(value).__name__}")
