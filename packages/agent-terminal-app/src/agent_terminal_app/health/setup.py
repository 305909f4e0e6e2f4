"""What people set: configuration, agents, keys, servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent_terminal_app.health.finding import Finding
from agent_terminal_app.key_lookup import KeyLookup
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.opening import Opened, open_quietly
from agent_terminal_app.settings.secrets import find_references, read_reference
from agent_terminal_app.settings.ways import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_terminal_app.first_run.connections import Connection


def check_configuration() -> Iterator[Finding]:
    """See whether the settings can be read."""
    from agent_terminal_app.plugin_settings import told_faults
    from agent_terminal_app.settings.loading import user_file

    opened = open_quietly()
    file = user_file(opened.paths)
    yield Finding("", "OK", f"{file} is read" if file.is_file() else f"there is no {file}: defaults hold")
    for warning in opened.settings.warnings:
        remedy = "run `agent config trust`" if opened.settings.untrusted else f"see {file}"
        yield Finding("", "WARN", warning, remedy)
    for fault in told_faults(opened.settings):
        yield Finding("", "WARN", fault, "correct it, or take it out with `agent config unset`")


def check_agents() -> Iterator[Finding]:
    """See whether every agent can run."""
    from agent_terminal_app.commands.agents import find_problems

    problems = find_problems(open_quietly())
    for problem in problems:
        yield Finding("", "FAIL", problem, "change the configuration (`agent config path` says where it is)")
    if not problems:
        yield Finding("", "OK", "all can run")


def check_keys() -> Iterator[Finding]:
    """See where the key of each model in use comes from, and that of each remote agent."""
    from agent_core.plugin.discovery import find_installed
    from agent_terminal_app.wiring import application_config

    opened = open_quietly()
    config = application_config(opened.settings)
    plugins = {one.name: one.plugin for one in find_installed(kinds=["providers"])}
    found = [
        _of_model(opened, label, own, getattr(plugins.get(str(own["provider"])), "key_variables", ()))
        for label, own in _models_in_use(config)
    ]
    yield from filter(None, found)
    yield from _of_remote_agents(opened)
    yield from _stored(opened)
    if not any(found):
        yield Finding("", "OK", "no model in use needs one")


def _models_in_use(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each model in use is called, and its settings over those of its provider, each once."""
    used = {agent["model"] for agent in config["agents"].values()}
    seen: list[dict[str, Any]] = []
    for name, model in config["models"].items():
        provider = model["provider"]
        own = {**config["plugins"].get(provider, {}), **model.get("config", {}), "provider": provider}
        if name in used and own not in seen:
            seen.append(own)
            yield (f"models.{name}" if model.get("config") else provider), own


def _of_model(
    opened: Opened, label: str, own: Mapping[str, Any], variables: tuple[str, ...]
) -> Finding | None:
    """Return where the key of a model is; None for one that needs none."""
    provider, store = str(own["provider"]), KeyStore(opened.paths)
    if "api_key" in own:
        return _of_setting(label, own["api_key"], KeyLookup(store))
    if not variables:
        return None
    if (where := store.origin(provider)) is not None:
        return Finding("", "OK", f"{label}: stored, {where}")
    if found := next((name for name in variables if os.environ.get(name, "").strip()), None):
        return Finding("", "OK", f"{label}: in the environment, {found}")
    if own.get("base_url"):
        return Finding("", "OK", f"{label}: none, which a server of your own may allow")
    remedy = f"run `agent keys set {provider}`, or set {variables[0]}"
    return Finding("", "FAIL", f"{label} is in use and has no key", remedy)


def _of_setting(label: str, value: Any, lookup: KeyLookup) -> Finding:
    reference = read_reference(value)
    if reference is None:
        return Finding("", "OK", f"{label}: none is sent")
    found = lookup.find(reference)
    if found.is_there:
        return Finding("", "OK", f"{label}: {found.origin}")
    remedy = f"run `agent keys set {reference.name}`" if reference.form == "stored" else f"see {reference}"
    return Finding("", "FAIL", f"{label}: {found.origin}", remedy)


def _of_remote_agents(opened: Opened) -> Iterator[Finding]:
    lookup = KeyLookup(KeyStore(opened.paths))
    for way, reference in find_references(opened.settings.values):
        if way[0] == "agents":
            yield _of_setting(spell(way), str(reference), lookup)


def _stored(opened: Opened) -> Iterator[Finding]:
    """Say how well stored keys are kept; a file that others can read fails by itself."""
    store = KeyStore(opened.paths)
    if names := store.names():
        mode = store.path.stat().st_mode & 0o777
        yield Finding("", "OK", f"{len(names)} stored, {store.path} (mode {mode:04o})")


def check_servers() -> Iterator[Finding]:
    """See which servers answer on this machine, and whether those in use do."""
    from agent_terminal_app.first_run.connections import SERVERS
    from agent_terminal_app.wiring import application_config

    config = application_config(open_quietly().settings)
    wanted = [_server(label, own) for label, own in _models_in_use(config) if _is_local(own)]
    there = _nearby([*wanted, *SERVERS])
    for one in wanted:
        if one not in there:
            remedy = "start it, or choose another model with `agent setup`"
            yield Finding("", "FAIL", f"{one.label} is in use, and nobody answers at {one.base_url}", remedy)
    listening = [one.label for one in SERVERS if one in there]
    names = ", ".join(listening) or f"none of {', '.join(one.label for one in SERVERS)}"
    yield Finding("", "OK", f"on this machine: {names}")


def _nearby(servers: list[Connection]) -> list[Connection]:
    import asyncio

    from agent_terminal_app.first_run.looking import servers_nearby

    return [found.connection for found in asyncio.run(servers_nearby(servers))]


def _is_local(own: Mapping[str, Any]) -> bool:
    from urllib.parse import urlsplit

    from agent_terminal_app.first_run.connections import COMPATIBLE
    from agent_terminal_app.first_run.looking import LOOPBACK

    address = urlsplit(str(own.get("base_url", "")))
    return own["provider"] == COMPATIBLE and address.hostname in LOOPBACK


def _server(label: str, own: Mapping[str, Any]) -> Connection:
    from agent_terminal_app.first_run.connections import own_server

    return own_server(str(own["base_url"]), label)
