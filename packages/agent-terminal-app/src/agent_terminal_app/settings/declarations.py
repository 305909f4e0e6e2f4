"""The sections of a configuration file that `agent_runtime` reads: agents, models, permission rules.

This is the only module of the settings that needs the runtime, and it is loaded with the first such section
or mistake: most starts have none. The runtime's readers report a problem by its
offset in a text; here every value gets its number as the offset, so the key comes back and no text is
needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_terminal_app import lazy as runtime
from agent_terminal_app.settings.keypaths import Way, every_way, spell

if TYPE_CHECKING:
    from collections.abc import Mapping

Problem = tuple[Way, str]
"""The key of a value that is wrong, and what is wrong with it."""


def find_problem(values: Mapping[str, Any]) -> Problem | None:
    """Return the first thing that is wrong with agents and models, or that no section can hold."""
    sections = {key: values[key] for key in ("agents", "models", "plugins", "permissions") if values.get(key)}
    for way, problem in runtime.unusable(sections):
        return way, f"{spell(way)} {problem}"
    data = {"agents": _filled(values, "agents"), "models": _filled(values, "models")}
    ways = list(every_way(data))
    try:
        runtime.entries(runtime.Document(data, {way: number for number, way in enumerate(ways)}))
    except runtime.Wrong as wrong:
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
        runtime.Permissions.from_section(section)
    except runtime.SpecError as error:
        place = runtime.follow({"permissions": section}, error.field or "")
        return (*way, *place[1:]), str(error)
    return None


def find_line(text: str, way: Way) -> int | None:
    """Return the line of a value in a TOML text, or of the nearest thing around it."""
    try:
        return runtime.line_of(text, runtime.parse_toml(text).locate(way))
    except runtime.Wrong as wrong:
        return runtime.line_of(text, wrong.at)


def find_syntax_error(text: str) -> tuple[int | None, str] | None:
    """Return the line and the problem of a text that is not TOML; None if nothing is found."""
    try:
        runtime.parse_toml(text)
    except runtime.Wrong as wrong:
        return runtime.line_of(text, wrong.at), wrong.problem
    return None
