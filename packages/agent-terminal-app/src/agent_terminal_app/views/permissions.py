"""Every permission rule in force, and where it comes from: a line of a file, or a grant on a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_app.restrictions import RESTRICTING
from agent_terminal_app.output import moment
from agent_terminal_app.settings.keypaths import spell
from agent_terminal_app.settings.layers import Origins

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_app import AgentApplication, Grant
    from agent_terminal_app.settings import Settings
    from agent_terminal_app.settings.keypaths import Way

ANYTHING_ELSE = "(anything else)"
"""Stands for the calls that no rule is about."""
_STRICTEST_FIRST = ("deny", "always_ask", "ask", "allow")
_SHORT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRow:
    """One rule.

    Attributes:
        effect: What it does: "deny", "always_ask", "ask" or "allow".
        pattern: Which calls it is about.
        scope: Where it counts.
        origin: Where it was declared, or when it was granted.
        id: By what a grant is revoked; empty for what is declared.
    """

    effect: str
    pattern: str
    scope: str
    origin: str
    id: str = ""


def permission_rows(
    app: AgentApplication, settings: Settings | None, session_id: str | None, project: Path | None = None
) -> list[PermissionRow]:
    """Return the rules that count in a session or a project, or without both all; the strictest first.

    Args:
        settings: Know in which file and line a rule was declared; without them that is not shown.
    """
    whose = _agents(app, session_id)
    declared = [*_shared(app, settings, whose), *(row for one in whose for row in _own(app, settings, one))]
    granted = [_granted(grant) for grant in app.grants(session_id, project)]
    rows = [row for row in [*declared, *granted] if row.pattern != ANYTHING_ELSE]
    rows.sort(key=lambda row: _STRICTEST_FIRST.index(row.effect))
    return [*rows, *(row for row in declared if row.pattern == ANYTHING_ELSE)]


def _agents(app: AgentApplication, session_id: str | None) -> list[str | None]:
    """Return whose declarations count: the session's agent, or all; None for those without their own."""
    agents = app.config.get("agents", {})
    own = [name for name in agents if _has_own(app, name)]
    if session_id is None:
        return [None, *own] if len(own) < len(agents) or not agents else [*own]
    agent = app.session_info(session_id).agent_id
    return [agent if agent in own else None]


def _has_own(app: AgentApplication, agent: str) -> bool:
    return app.config["agents"][agent].get("sections", {}).get("permissions") is not None


def _shared(
    app: AgentApplication, settings: Settings | None, whose: Iterable[str | None]
) -> Iterator[PermissionRow]:
    """Yield what all agents share: what restricts them, and what is allowed to those without their own."""
    section, way = app.config.get("permissions", {}), ("permissions",)
    for effect in RESTRICTING:
        yield from _listed(settings, way, section, effect, "everywhere")
    if None in whose:
        some = "other agents" if any(_has_own(app, name) for name in app.config.get("agents", {})) else ""
        yield from _listed(settings, way, section, "allow", some or "everywhere")
        default, origin = _default(settings, way, section)
        scope = some if some and default != "deny" else "everywhere"
        yield PermissionRow(effect=default, pattern=ANYTHING_ELSE, scope=scope, origin=origin)


def _own(app: AgentApplication, settings: Settings | None, agent: str | None) -> Iterator[PermissionRow]:
    """Yield the rules of an agent's own section; its default counts unless the shared one denies."""
    if agent is None:
        return
    way: Way = ("agents", agent, "sections", "permissions")
    section, scope = app.config["agents"][agent]["sections"]["permissions"], f"agent {agent}"
    for effect in _STRICTEST_FIRST:
        yield from _listed(settings, way, section, effect, scope)
    shared = app.config.get("permissions", {})
    if shared.get("default") == "deny":
        way, section = ("permissions",), shared
    default, origin = _own_default(settings, way, section)
    yield PermissionRow(effect=default, pattern=ANYTHING_ELSE, scope=scope, origin=origin)


def _listed(
    settings: Settings | None, way: Way, section: Mapping[str, Any], effect: str, scope: str
) -> Iterator[PermissionRow]:
    """Yield the rules of one list of a section."""
    for pattern, origin in _patterns(settings, (*way, effect), section.get(effect, ())):
        yield PermissionRow(effect=effect, pattern=pattern, scope=scope, origin=origin)


def _patterns(settings: Settings | None, way: Way, patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield patterns with the place of each, the later place if several layers say the same."""
    places: dict[str, str] = {}
    if settings is not None and isinstance(settings.origins, Origins):
        places = dict(settings.origins.entries(way))
    for pattern in patterns:
        yield pattern, places.get(pattern, _unwritten(settings))


def _unwritten(settings: Settings | None) -> str:
    """Return the origin of a rule that is in no file."""
    return "configuration" if settings is None else "default"


def _default(settings: Settings | None, way: Way, section: Mapping[str, Any]) -> tuple[str, str]:
    if not section:
        return "allow", "no permissions are declared"
    return _own_default(settings, way, section)


def _own_default(settings: Settings | None, way: Way, section: Mapping[str, Any]) -> tuple[str, str]:
    if "default" not in section:
        return "ask", "default"
    places = {} if settings is None else settings.origins
    return section["default"], places.get(spell((*way, "default")), _unwritten(settings))


def _granted(grant: Grant) -> PermissionRow:
    scopes = {
        "session": f"session {grant.key[:_SHORT]}",
        "project": f"project {grant.key}",
        "always": "always",
    }
    origin = f"granted {moment(grant.created)}"
    return PermissionRow(
        effect=grant.effect, pattern=grant.pattern, scope=scopes[grant.scope], origin=origin, id=grant.id
    )
