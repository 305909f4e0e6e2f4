"""What a server asks the program that starts it: this user's settings and keys, and what the doctor finds."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_app.catalogue import Key, context_window, ranked
from agent_app.defaults import read_model
from agent_terminal_app.application import application_config, open_quietly
from agent_terminal_app.errors import CommandError
from agent_terminal_app.first_run.connections import (
    installed_connections,
    keys_in_environment,
    keys_in_store,
    servers_nearby,
)
from agent_terminal_app.first_run.dialogue import draft_from, without_asking
from agent_terminal_app.first_run.draft import save
from agent_terminal_app.first_run.models import offered_models
from agent_terminal_app.first_run.welcome import is_first_run
from agent_terminal_app.health import checks, look_at_all
from agent_terminal_app.keys import KeyLookup, KeyStore, clean_key, store_secrets, with_keys
from agent_terminal_app.settings import settings_schema, unset_value
from agent_terminal_app.settings.keypaths import leaves, read_way, spell
from agent_terminal_app.settings.plugins import set_checked
from agent_terminal_app.settings.secrets import is_secret_name
from agent_terminal_app.views.sessions import here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.connections import Connection
    from agent_terminal_app.first_run.draft import Draft
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
        match read_way(name):
            case ("plugins", "mcp_tools", "servers", server) if isinstance(value, dict):
                value, _secrets = store_secrets(self._keys, server, value)
        path = unset_value(self._paths, name) if value is None else set_checked(self._paths, name, value)
        return {"name": name, "value": value, "origin": str(path), "applies": "restart"}

    def settings_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of configuration files."""
        return settings_schema()

    def plugin_settings(self, plugin: str) -> tuple[dict[str, Any], list[str]]:
        """Return the settings of a plugin as they are now, with its keys in place, and the agents with it."""
        config = self._config()
        named = {
            name: (*one.get("plugin_ids", ()), *one.get("more_plugins", ()))
            for name, one in config["agents"].items()
        }
        agents = [name for name, plugins in named.items() if plugin in plugins]
        return dict(config.get("plugins", {}).get(plugin, {})), agents

    def _config(self) -> dict[str, Any]:
        lookup = KeyLookup(self._keys)
        config: dict[str, Any] = with_keys(application_config(open_quietly().settings, titles=True), lookup)
        return config

    def connections(self) -> dict[str, Any]:
        """Return what could answer: keys and servers that are here, then what can be connected."""
        installed = installed_connections()
        found = [
            *keys_in_store(self._keys, installed),
            *keys_in_environment(connections=installed),
            *asyncio.run(servers_nearby()),
        ]
        seen = {one.connection.name: one for one in reversed(found)}
        others = [one for one in installed if one.name not in seen]
        items = [_described(one.connection, one.seen) for one in reversed(seen.values())]
        items += [_described(one, None) for one in others]
        own = {"name": "", "label": "", "found": None, "needs_key": False, "needs_address": True}
        embedded = {**own, "name": "local", "label": "local", "needs_address": False}
        return {"needed": is_first_run(open_quietly().settings), "items": [*items, own, embedded]}

    def offered_models(self, choice: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Ask what was chosen for its models."""
        opened = open_quietly()
        draft = _draft(opened, choice)
        offered = asyncio.run(offered_models(draft, opened))
        models, recommended = ranked(offered, draft.chosen.recommended)
        return [
            {
                "id": str(model["id"]),
                "recommended": place < recommended,
                "context_window": context_window(model),
            }
            for place, model in enumerate(models)
        ]

    def connect(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """Check a choice, and write all of it or nothing."""
        opened = open_quietly()
        draft = _draft(opened, choice)
        if not draft.embedded:
            draft = asyncio.run(without_asking(opened, draft))
        outcome = save(draft, opened)
        config, values = self._config(), opened.again().settings.values
        declared = config["models"].get(outcome.model) or read_model(outcome.model, config["models"])
        return {"text": outcome.in_words(), "model": {**declared, "id": outcome.model}, "settings": values}

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


def _described(connection: Connection, seen: str | None) -> dict[str, Any]:
    return {
        "name": connection.name,
        "label": connection.label,
        "found": seen,
        "needs_key": connection.needs_key and seen is None,
        "needs_address": False,
    }


def _draft(opened: Opened, choice: Mapping[str, Any]) -> Draft:
    """Return what was chosen.

    Raises:
        CommandError: If there is no such connection, or its key is missing.
    """
    key = None if choice.get("key") is None else clean_key(choice["key"])
    name, url, model = choice.get("name"), choice.get("url"), choice.get("model")
    draft = draft_from(opened, name, url, model, key=key, check=bool(choice.get("check", True)))
    if draft.connection is None and not draft.embedded:
        raise CommandError("nothing was chosen", hint="name a connection, or give an address")
    if not draft.embedded and draft.key is None and not draft.reference:
        raise CommandError(f"there is no key of {draft.chosen.label}", hint="type one")
    return draft
