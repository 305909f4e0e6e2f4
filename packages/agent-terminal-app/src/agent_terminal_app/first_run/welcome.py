"""What a user reads first: which model answers, and what is there that could answer better.

The first lines are shown at once, from what the environment says. Servers nearby and the embedded model's
file are looked for while the user types already, and shown when they are known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_app.defaults import DEFAULT_MODEL, is_embedded
from agent_core import AgentError
from agent_core.plugin.discovery import find_installed
from agent_plugin_kit.credentials import is_reference
from agent_terminal_app.application import application_config, with_stored_keys
from agent_terminal_app.errors import error_text
from agent_terminal_app.first_run.connections import keys_in_environment, servers_nearby
from agent_terminal_app.first_run.weights import (
    NOT_INSTALLED,
    SIZE,
    ensure_weights,
    have_weights,
    is_installed,
)
from agent_terminal_app.paths import Paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from agent_terminal_app.settings import Settings

_EMBEDDED = (
    "You are talking to SmolLM2, a small model inside this program. /help lists the commands.",
    "It needs no key and no network. It is often wrong and has no tools: no files, no shell, no web.",
)
_NOBODY = ("No model is connected yet. /help lists the commands.",)
_HOW = "/setup, or `agent setup`, connects"


def greeting(settings: Settings) -> list[str]:
    """Return what is shown before the first prompt."""
    model = settings.values.get("model") or "local"
    if model != "local":
        return [f"You are talking to {_spoken(settings, model)}. /help lists the commands."]
    lines, other = (_EMBEDDED, "a better one") if is_installed() else (_NOBODY, "one")
    if not is_first_run(settings):
        return list(lines)
    found = [f"{one.seen}: {_HOW} {one.connection.label}." for one in keys_in_environment()]
    return [*lines, *(found or [f"{_HOW} {other}."])]


def _spoken(settings: Settings, name: str) -> str:
    """Return what a model is called: as its server calls it, with the name of the settings behind that."""
    declared = settings.values.get("models", {}).get(name)
    called = declared.get("model") if isinstance(declared, dict) else None
    return f"{called} ({name})" if isinstance(called, str) and called not in ("", name) else str(name)


async def later(settings: Settings) -> AsyncIterator[str]:
    """Yield what is found out while the user types."""
    if line := await asyncio.to_thread(missing_key, settings):
        yield line
    if not is_first_run(settings):
        return
    for one in await servers_nearby():
        yield f"{one.seen}: {_HOW} it."
    line = await asyncio.to_thread(missing_weights, settings)
    if line:
        yield line


def missing_weights(settings: Settings) -> str:
    """Return a warning if the embedded model should answer and has no file; else empty."""
    if (settings.values.get("model") or "local") != "local":
        return ""
    if not is_installed():
        return f"! {NOT_INSTALLED}."
    if have_weights(settings.values.get("plugins", {}).get("local_llama")):
        return ""
    size = f"{SIZE >> 20} MB"
    return f"! Its file (about {size}) is not here yet: `agent models pull`, or /setup, gets it."


def ensure_model(settings: Settings, agent: str | None = None) -> None:
    """Get the embedded model's file if the agent needs it and nobody can be asked.

    Raises:
        CommandError: If it cannot be had.
    """
    try:
        config = application_config(settings)
        model = config["agents"][agent or config["default_agent"]]["model"]
    except (AgentError, LookupError):  # the application reports what is wrong there when it opens
        return
    if is_embedded(model):
        ensure_weights(settings.values.get("plugins", {}).get("local_llama"))


def missing_key(settings: Settings) -> str:
    """Return a warning if the model that should answer needs a key and has none; else empty."""
    try:
        config = application_config(settings)
        model = config["agents"][config["default_agent"]]["model"]
        error = None if model == DEFAULT_MODEL else _missing_key(config, model)
    except (AgentError, LookupError):  # the application reports what is wrong there when it opens
        return ""
    return "" if error is None else f"! {error_text(error)}, or /setup."


def _missing_key(config: Mapping[str, Any], model: str) -> AgentError | None:
    """Ask the provider of a model what a request would fail with without a key."""
    known = with_stored_keys(config, Paths.of_this_user())
    asked = known["models"][model]
    own = {**known["plugins"].get(asked["provider"], {}), **asked.get("config", {})}
    if is_reference(own.get("api_key")):
        return None  # the plugin that knows about logins starts with the application
    for found in find_installed(names=[asked["provider"]], kinds=["providers"]):
        provider = found.plugin() if isinstance(found.plugin, type) else found.plugin
        error: AgentError | None = provider.missing_key(own) if hasattr(provider, "missing_key") else None
        return error
    return None


def is_first_run(settings: Settings) -> bool:
    """Say whether no model and no agent has been chosen yet."""
    return not settings.values.get("model") and not settings.values.get("agents")
