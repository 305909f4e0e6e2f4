"""A key under which a provider caches the beginning of a session's prompts.

Requests of one session begin alike. A provider that knows which belong together finds what it has
already read much more often. The key is made when a session is created, and before a request for
sessions that are older than this plugin; it stands in the session's overrides, where an application
takes request settings from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_core import plugin_config

if TYPE_CHECKING:
    from agent_core import Session

KEY = "prompt_cache_key"
ACTION = "ensure_prompt_cache_key"


class PromptCacheExtension:
    """Ensures that every session has a prompt cache key, and never changes one."""

    name = "prompt_cache"
    version = "0.1.0"
    providers = ("openai_compatible", "openai_responses")

    def required_tags(self) -> list[str]:
        """Stay off where the provider says nothing of a prompt cache."""
        return ["prompt_cache"]

    def get_config_schema(self) -> dict[str, Any]:
        """Return the one setting: a key that all sessions share."""
        return {
            KEY: {"type": "string", "description": "One key for all sessions; by default each has its own."}
        }

    def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """Give the provider the key that stands in this plugin's own section."""
        own, of_provider = config.get(KEY), state.get("config")
        if not own or not isinstance(of_provider, Mapping) or of_provider.get(KEY) == own:
            return state
        return {**state, "config": {**of_provider, KEY: own}}

    def get_actions(self) -> list[dict[str, Any]]:
        """Offer the one action, run when a session is created or used."""
        return [
            {
                "id": ACTION,
                "label": "Ensure prompt cache key",
                "description": "Give the session a prompt cache key of its own, if it has none.",
                "inputs": {},
                "trigger": ["session_create", "request_prepare"],
                "idempotent": True,
            }
        ]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: dict[str, Any],
        context: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the key for the session's overrides, unless it has one."""
        if action_id != ACTION:
            unknown = {"type": "unknown_action", "message": f"there is no action {action_id!r}"}
            return {"native_messages": native_messages, "error": unknown}
        config = plugin_config((context or {}).get("config") or {}, self.name)
        if (session.metadata.get("overrides") or {}).get(KEY) or config.get(KEY):
            return {"native_messages": native_messages, "status": "noop"}
        return {
            "native_messages": native_messages,
            "session_metadata": {"overrides": {KEY: uuid4().hex}},
            "status": "ok",
        }
