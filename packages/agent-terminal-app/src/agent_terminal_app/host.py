"""What a server asks the program that starts it: this user's settings and keys, and what the doctor finds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_app.catalogue import Key
from agent_terminal_app.application import open_quietly
from agent_terminal_app.health import checks, look_at_all
from agent_terminal_app.keys import KeyStore, clean_key
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.keypaths import leaves, spell
from agent_terminal_app.settings.plugins import set_checked
from agent_terminal_app.settings.secrets import is_secret_name
from agent_terminal_app.views.sessions import here

if TYPE_CHECKING:
    from agent_terminal_app.paths import Paths

HIDDEN = "(hidden)"


class UserHost:
    """The settings and keys of the user who runs `agent serve`.

    Args:
        paths: Where they are.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._keys = KeyStore(paths)

    def new_session(self) -> dict[str, Any]:
        """Return that sessions work in the folder in which the server was started, as those of a chat do."""
        return here()

    def settings(self) -> list[dict[str, Any]]:
        """Return the settings that hold now, each with its origin; what may be a secret is hidden."""
        settings = open_quietly().settings
        return [
            {
                "name": spell(way),
                "value": HIDDEN if any(is_secret_name(str(step)) for step in way) else value,
                "origin": settings.origins.get(spell(way)),
            }
            for way, value in leaves(settings.values)
        ]

    def change_setting(self, name: str, value: Any) -> dict[str, Any]:
        """Write a setting into the user's file, or take it out; it counts from the next start on."""
        path = unset_value(self._paths, name) if value is None else set_checked(self._paths, name, value)
        return {"name": name, "value": value, "origin": str(path), "applies": "restart"}

    def keys(self) -> list[dict[str, Any]]:
        """Return which keys are stored, and where."""
        return [{"name": name, "origin": self._keys.origin(name)} for name in self._keys.names()]

    def key_of(self, provider: str) -> Key | None:
        """Return the key that is stored for a provider."""
        value = self._keys.get(provider)
        return None if value is None else Key(value, self._keys.origin(provider) or "")

    def set_key(self, provider: str, key: str) -> str:
        """Store a key."""
        return self._keys.set(provider, clean_key(key))

    def remove_key(self, provider: str) -> bool:
        """Forget a key."""
        return self._keys.remove(provider)

    def doctor(self) -> list[dict[str, Any]]:
        """Look for what is wrong."""
        return [asdict(finding) for finding in look_at_all(checks())]
