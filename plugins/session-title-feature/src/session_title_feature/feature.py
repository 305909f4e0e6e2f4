"""The plugin: a title once, after the first exchange, and another whenever somebody asks for one.

The title stands in the session's metadata, and `title_by` says whose it is: "model" for one made here, by
a model or from the first words, and "person" for one that somebody chose. A person's title is never
replaced; one without `title_by` counts as a person's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError, plugin_config
from agent_core.side_request import TEMPORARY
from agent_plugin_kit.settings import read_settings, settings_schema
from session_title_feature.titles import Settings, first_exchange, make_title

if TYPE_CHECKING:
    from agent_core import Session
    from session_title_feature.titles import Title

Dicts = list[dict[str, Any]]
TITLE = "title"
TITLE_BY = "title_by"
MAKE = "make_title"
ENSURE = "ensure_title"


class SessionTitleFeature:
    """Gives sessions titles.

    It asks a model once per session, which costs something, so it is on only where it is listed.
    """

    name = "session_title"
    version = "0.1.0"
    default_enabled = False

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return settings_schema(Settings)

    def get_ui_elements(self, config: dict[str, Any]) -> Dicts:
        """Return a button for a new title."""
        return [{"ui_type": "session_action", "label": "New title", "action_id": MAKE}]

    def get_actions(self) -> Dicts:
        """Offer a new title, and ensure one after the first exchange."""
        return [
            {
                "id": MAKE,
                "label": "New title",
                "description": "Give the session another title, unless a person chose the one it has.",
                "inputs": {},
            },
            {
                "id": ENSURE,
                "label": "Ensure title",
                "description": "Give the session a title after its first exchange, if it has none.",
                "inputs": {},
                "trigger": ["request_complete"],
                "idempotent": True,
            },
        ]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a title for the session's metadata, or say why there is none."""
        if action_id not in (MAKE, ENSURE):
            return _failed(native_messages, "unknown_action", f"there is no action {action_id!r}")
        if not isinstance(context, Mapping) or context.get("core") is None:
            return _failed(native_messages, "missing_core", "the context must have the core")
        try:
            settings = read_settings(Settings, plugin_config(context.get("config") or {}, self.name))
        except ConfigError as error:
            return _failed(native_messages, "config", str(error))
        return {"native_messages": native_messages, **_answer(action_id, session, context, settings)}


def _answer(
    action_id: str, session: Session, context: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    asked, answer = first_exchange(session.messages)
    reason = _reason_against(action_id, session.metadata)
    if reason is None and action_id == ENSURE and answer is None:
        reason = "the first exchange is not complete"
    if reason is None and asked is None:
        reason = "nobody has said anything yet"
    if reason is not None or asked is None:
        return {"status": "noop", "message": reason}
    title = make_title(context, settings, asked, answer)
    return _titled(title) if title.text else {"status": "noop", "message": "nothing in it makes a title"}


def _reason_against(action_id: str, metadata: Mapping[str, Any]) -> str | None:
    """Say why a session should not get a title, or return None."""
    if not metadata.get(TITLE):
        return "the session is a temporary one" if metadata.get(TEMPORARY) else None
    if metadata.get(TITLE_BY) != "model":
        return "a person chose the title, so it stays"
    return "the session has a title" if action_id == ENSURE else None


def _titled(title: Title) -> dict[str, Any]:
    body = f"The session is now called: {title.text}"
    answer: dict[str, Any] = {
        "session_metadata": {TITLE: title.text, TITLE_BY: "model"},
        "status": "ok",
        "title": title.text,
        "source": title.source,
        "display": {
            "format": "text",
            "title": "New title",
            "body": body,
            "variant": "success",
            "presentation": "inline",
            "dismissible": True,
            "display_id": "session-title",
        },
    }
    return answer if title.problem is None else {**answer, "problem": title.problem}


def _failed(native: Dicts, kind: str, message: str) -> dict[str, Any]:
    return {"native_messages": native, "status": "error", "error": {"type": kind, "message": message}}
