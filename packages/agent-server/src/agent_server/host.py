"""What only the program knows that starts the server: settings, keys, and the state of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_app.catalogue import Key


class Host(Protocol):
    """The program that starts the server. All methods but the first may block; they are called in threads."""

    def new_session(self) -> dict[str, Any]:
        """Return the metadata of sessions that are made on this server, such as their workspace."""

    def settings(self) -> Sequence[dict[str, Any]]:
        """Return the settings that hold: `name`, `value` and `origin` of each, secrets left out."""

    def change_setting(self, name: str, value: Any) -> dict[str, Any]:
        """Change a setting of the user and return it, with `applies`: "now" or "restart"; None removes it."""

    def settings_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the settings."""

    def plugin_settings(self, plugin: str) -> tuple[dict[str, Any], list[str]]:
        """Return the settings of a plugin as they are now, with its keys in place, and the agents with it."""

    def agents(self) -> Sequence[dict[str, Any]]:
        """Return what the settings say of agents: `id`, `declared`, `own` and `origins` of each.

        `declared` has its fields as they hold, `own` those that can be changed here or None, and `origins`
        where each field stands. What may be a secret is hidden, and stays as it is if it comes back so.
        """

    def draft_agent(
        self, agent_id: str, declared: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], Callable[[], str]]:
        """Return the application's configuration with another declaration of an agent, and what saves it.

        Nothing is saved yet. None takes the declaration away.
        """

    def connections(self) -> dict[str, Any]:
        """Return what could answer: `items`, the found ones first, and `needed` if nobody has chosen yet."""

    def offered_models(self, choice: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        """Ask what was chosen for its models: `id` and `recommended` of each, the best first."""

    def connect(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """Save a choice whole or not at all: `text` for people, the `model` as declared, the `settings`."""

    def keys(self) -> Sequence[dict[str, Any]]:
        """Return which providers have a key: `name` and `origin` of each, never the key."""

    def key_of(self, provider: str) -> Key | None:
        """Return the key that is stored for a provider."""

    def set_key(self, provider: str, key: str) -> str:
        """Store a key, and return where it is now."""

    def remove_key(self, provider: str) -> bool:
        """Forget a key; False if there is none."""

    def doctor(self) -> Sequence[dict[str, Any]]:
        """Look for what is wrong: `check`, `status`, `detail` and `remedy` of each finding."""


class NoHost:
    """A program that has nothing of this: the application was made in code."""

    def new_session(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def settings(self) -> Sequence[dict[str, Any]]:
        """Return none."""
        return []

    def change_setting(self, name: str, value: Any) -> dict[str, Any]:
        """Refuse it."""
        raise _not_here("settings")

    def settings_schema(self) -> dict[str, Any]:
        """Return one that allows nothing."""
        return {"type": "object", "properties": {}}

    def plugin_settings(self, plugin: str) -> tuple[dict[str, Any], list[str]]:
        """Refuse it."""
        raise _not_here("settings")

    def agents(self) -> Sequence[dict[str, Any]]:
        """Return none."""
        return []

    def draft_agent(
        self, agent_id: str, declared: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], Callable[[], str]]:
        """Refuse it."""
        raise _not_here("settings")

    def connections(self) -> dict[str, Any]:
        """Return none."""
        return {"needed": False, "items": []}

    def offered_models(self, choice: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        """Refuse it."""
        raise _not_here("connections")

    def connect(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse it."""
        raise _not_here("connections")

    def keys(self) -> Sequence[dict[str, Any]]:
        """Return none."""
        return []

    def key_of(self, provider: str) -> Key | None:
        """Return none."""
        return None

    def set_key(self, provider: str, key: str) -> str:
        """Refuse it."""
        raise _not_here("keys")

    def remove_key(self, provider: str) -> bool:
        """Say that there is none."""
        return False

    def doctor(self) -> Sequence[dict[str, Any]]:
        """Find nothing."""
        return []


def _not_here(what: str) -> Problem:
    return Problem(
        409, "not-here", f"This server keeps no {what}", "Change them where the application is made."
    )
