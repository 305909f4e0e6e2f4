"""What a server asks the program that starts it: this user's settings and keys, and what the doctor finds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app.catalogue import Key, ranked
from agent_app.context_windows import context_window
from agent_app.defaults import DEFAULT_AGENT, read_model
from agent_terminal_app.application import configuration, open_quietly
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
from agent_terminal_app.first_run.weights import try_embedded
from agent_terminal_app.first_run.welcome import is_first_run
from agent_terminal_app.health import checks, look_at_all
from agent_terminal_app.keys import KeyStore, clean_key, store_secrets
from agent_terminal_app.settings import load_settings, settings_schema, unset_value
from agent_terminal_app.settings.changes import Change
from agent_terminal_app.settings.keypaths import leaves, read_way, spell
from agent_terminal_app.settings.plugins import check_plugins, set_checked
from agent_terminal_app.settings.secrets import is_secret_name
from agent_terminal_app.views.sessions import here

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.connections import Connection
    from agent_terminal_app.first_run.draft import Draft
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.settings import Settings

HIDDEN = "(hidden)"


class UserHost:
    """The settings and keys of the user who runs `agent serve`.

    Args:
        paths: Where they are.
        model: The model that all agents have, by a flag.
        database: The URL of another store than the user's own.
    """

    def __init__(self, paths: Paths, *, model: str | None = None, database: str | None = None) -> None:
        self._paths = paths
        self._keys = KeyStore(paths)
        self._model = model
        self._database = database

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

    def agents(self) -> list[dict[str, Any]]:
        """Return what the settings say of each agent, with the origin of every field."""
        settings = open_quietly().settings
        own = Change.of(self._paths, {}).values.get("agents", {})
        return [
            {
                "id": agent_id,
                "declared": masked(declared),
                "own": masked(own[agent_id]) if agent_id in own else None,
                "origins": _origins(settings, agent_id, declared),
            }
            for agent_id, declared in settings.values.get("agents", {}).items()
        ]

    def draft_agent(
        self, agent_id: str, declared: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], Callable[[], str]]:
        """Return the configuration with another declaration in the user's file, and what writes it."""
        key = spell(("agents", agent_id))
        now = open_quietly().settings.values.get("agents", {})
        if declared is None:
            change = Change.without(self._paths, key)
        else:
            said = {name: value for name, value in declared.items() if value is not None}
            # Without any declaration there is an assistant; the first one must not take its place.
            usual: dict[str, Any] = (
                {} if now or agent_id == DEFAULT_AGENT else {spell(("agents", DEFAULT_AGENT)): {}}
            )
            values = {**usual, key: unmasked(said, now.get(agent_id, {}))}
            change = check_plugins(Change.of(self._paths, values), key)
        settings = load_settings(self._paths, project=Path.cwd(), user=change.file)
        _check_that_it_counts(settings, agent_id, change.values.get("agents", {}).get(agent_id))
        return self._config(settings), lambda: str(change.save())

    def _config(self, settings: Settings | None = None) -> dict[str, Any]:
        """Return the configuration of the application, by the settings as they are or as they are given."""
        opened = open_quietly(model=self._model)
        if settings is not None:
            opened = replace(opened, settings=settings)
        asked = opened.with_model(self._model).settings
        return configuration(asked, self._paths, database=self._database, titles=True)

    def connections(self) -> dict[str, Any]:
        """Return what could answer: keys and servers that are here, the embedded model, then the others."""
        installed = installed_connections()
        found = [
            *keys_in_store(self._keys, installed),
            *keys_in_environment(connections=installed),
            *asyncio.run(servers_nearby()),
        ]
        seen = {one.connection.name: one for one in reversed(found)}
        others = [one for one in installed if one.name not in seen]
        here = [_described(one.connection, one.seen) for one in reversed(seen.values())]
        own = {"name": "", "label": "", "found": None, "needs_key": False, "needs_address": True}
        embedded = {**own, "name": "local", "label": "local", "needs_address": False}
        items = [*here, embedded, *(_described(one, None) for one in others), own]
        return {"needed": is_first_run(open_quietly().settings), "items": items}

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
        elif choice.get("check", True):
            try_embedded(opened.settings.values.get("plugins", {}).get("local_llama"))
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


def masked(value: Any) -> Any:
    """Return a value in which everything that may be a secret, by its name, is hidden."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if is_secret_name(str(key)) else masked(one) for key, one in value.items()}
    return [masked(one) for one in value] if isinstance(value, list) else value


def unmasked(value: Any, known: Any) -> Any:
    """Return a value with what was hidden in it as it is in the one that is known.

    Raises:
        CommandError: If it is not known: a hidden value cannot be copied.
    """
    if value == HIDDEN and known is None:
        raise CommandError("a hidden value cannot be copied", hint="write env:NAME or stored:NAME instead")
    if value == HIDDEN:
        return known
    if isinstance(value, Mapping):
        inside = known if isinstance(known, Mapping) else {}
        return {key: unmasked(one, inside.get(key)) for key, one in value.items()}
    if isinstance(value, list):
        # By what else is in it, and not by its place: a token must not move to another server.
        before = known if isinstance(known, list) else []
        return [unmasked(one, next((item for item in before if masked(item) == one), None)) for one in value]
    return value


def _origins(settings: Settings, agent_id: str, declared: Mapping[str, Any]) -> dict[str, str]:
    """Return where each field of an agent stands; a table may stand in several places."""
    places: dict[str, dict[str, None]] = {}
    for way, _value in leaves(declared):
        origin = settings.origins.get(spell(("agents", agent_id, *way)))
        if origin is not None:
            places.setdefault(str(way[0]), {})[origin] = None
    return {field: ", ".join(found) for field, found in places.items()}


def _check_that_it_counts(settings: Settings, agent_id: str, own: Mapping[str, Any] | None) -> None:
    """Refuse a change of the user's file that a project's file, which is stronger, leaves without effect.

    Raises:
        CommandError: With the place of what counts.
    """
    held = settings.values.get("agents", {}).get(agent_id)
    places = {} if held is None else _origins(settings, agent_id, held)
    if own is None and held is not None:
        where = next(iter(places.values()), "another file")
        raise CommandError(f"{agent_id} is declared in {where}, too", hint="take it out there")
    for field, value in (own or {}).items():
        if not isinstance(value, Mapping) and field != "excluded_tools" and (held or {}).get(field) != value:
            key = spell(("agents", agent_id, field))
            raise CommandError(
                f"{places.get(field)} sets {key}, and counts", field=key, hint="change it there"
            )


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
