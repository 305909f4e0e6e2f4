"""What an application action wants done to sessions, read and checked before any of it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import PluginError, Session, SessionFormatError
from agent_core.log import get_logger

if TYPE_CHECKING:
    from agent_app.app_plugins import ApplicationPlugins

_log = get_logger("app")
_KEYS = ("created", "updated", "deleted")


@dataclass(frozen=True, slots=True)
class Mutations:
    """Sessions to store anew, sessions to change, and ids of sessions to delete."""

    created: tuple[Session, ...] = ()
    updated: tuple[Session, ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def read(cls, plugin: str, result: Mapping[str, Any]) -> Mutations:
        """Return the mutations of an action's result.

        Raises:
            PluginError: If they are not what they should be; none of them is carried out then.
        """
        given = result.get("mutations") or {}
        if not isinstance(given, Mapping) or not set(given) <= set(_KEYS):
            raise _wrong(plugin, f"mutations must be a dict with {', '.join(_KEYS)}")
        deleted = given.get("deleted") or ()
        if not isinstance(deleted, (list, tuple)) or not all(isinstance(one, str) for one in deleted):
            raise _wrong(plugin, "mutations.deleted must be a list of session ids")
        return cls(
            _sessions(plugin, "created", given.get("created")),
            _sessions(plugin, "updated", given.get("updated")),
            tuple(deleted),
        )

    def of(self, session: Session) -> Session:
        """Return the session as these mutations leave it, if they change it."""
        changed = [one for one in self.updated if one.session_id == session.session_id]
        return changed[-1] if changed else session

    def ids(self) -> dict[str, list[str]]:
        """Return which sessions were made, changed and deleted, for front ends."""
        return {
            "created": [one.session_id for one in self.created],
            "updated": [one.session_id for one in self.updated],
            "deleted": list(self.deleted),
        }


def public_result(plugins: ApplicationPlugins, plugin: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what front ends see of a result: mutations as ids, `display` and `ui_effects` checked."""
    public = {
        key: value for key, value in result.items() if key not in ("mutations", "display", "ui_effects")
    }
    if result.get("mutations"):
        public["mutations"] = Mutations.read(plugin, result).ids()
    if "display" in result and (display := _display(plugins, plugin, result["display"])) is not None:
        public["display"] = display
    if "ui_effects" in result and _are_effects(plugin, result["ui_effects"]):
        public["ui_effects"] = result["ui_effects"]
    return public


def _display(plugins: ApplicationPlugins, plugin: str, given: Any) -> dict[str, Any] | None:
    from agent_core import validate_display

    report = validate_display(given, runnable=plugins.is_runnable)
    for warning in report.warnings:
        _log.warning("display_changed", plugin=plugin, what=warning)
    return report.display


def _are_effects(plugin: str, given: Any) -> bool:
    """Say whether a front end can read these effects: a list of objects that JSON can carry."""
    import json

    good = isinstance(given, list) and all(isinstance(one, Mapping) for one in given)
    try:
        json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        good = False
    if not good:
        _log.warning("ui_effects_dropped", plugin=plugin, hint="they must be a list of dicts of plain data")
    return good


def _sessions(plugin: str, key: str, given: Any) -> tuple[Session, ...]:
    if given is not None and not isinstance(given, (list, tuple)):
        raise _wrong(plugin, f"mutations.{key} must be a list of sessions")
    return tuple(_session(plugin, key, one) for one in given or ())


def _session(plugin: str, key: str, given: Any) -> Session:
    if isinstance(given, Session):
        return given
    try:
        return Session.from_dict(given)
    except SessionFormatError as error:
        raise _wrong(plugin, f"mutations.{key}: {error}") from error


def _wrong(plugin: str, problem: str) -> PluginError:
    return PluginError(plugin, "execute_action", problem)
