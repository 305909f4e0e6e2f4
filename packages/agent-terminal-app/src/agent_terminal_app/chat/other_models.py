"""Models beside those that are declared: found by PROVIDER:MODEL, with the key that is stored for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.answering import agent_of
from agent_terminal_app.chat.words import one_line
from agent_terminal_app.exits import told
from agent_terminal_app.offered import offered_models
from agent_terminal_app.wiring import DEFAULT_MODEL, SHORT_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication
    from agent_runtime import ModelSpec
    from agent_runtime.registries import RegistrySet


def find_provider(app: AgentApplication, name: str) -> str | None:
    """Return the provider that is meant by a name, unless it is that of a model."""
    registries = app.runtime.registries
    full = SHORT_NAMES.get(name, name)
    is_model = name in registries.models or name == DEFAULT_MODEL
    return full if full in registries.providers and not is_model else None


def declare(app: AgentApplication, name: str) -> ModelSpec:
    """Return the model that is meant, declared for as long as this program runs.

    Raises:
        AgentError: If there is no such model, and no such provider.
    """
    registries = app.runtime.registries
    spec = registries.models.get(name) or _read(registries, name)
    short, _, model = name.partition(":")
    if short in SHORT_NAMES:  # a session must be able to name it at another start
        spec = replace(spec, id=f"{SHORT_NAMES[short]}:{model}")
    registries.models.replace(spec.id, spec)
    lend_key(app, spec.provider)
    return spec


def check(app: AgentApplication, agent_id: str, model: ModelSpec) -> None:
    """Refuse a model that an agent could not use; this may ask its provider.

    Raises:
        AgentError: If its provider does not offer it, or cannot say.
    """
    resolved = app.runtime.resolve(agent_id)
    resolved.core.resolve(dict(resolved.models[model.id].config))


def offered_by(app: AgentApplication, provider: str) -> list[Mapping[str, Any]]:
    """Return the models that a provider offers.

    Raises:
        AgentError: If it cannot be asked.
    """
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.told_windows import keep_windows

    lend_key(app, provider)
    agent = app.runtime.resolve(agent_of(app, None))
    entry = app.runtime.registries.providers.get(provider)
    settings = {} if entry is None else entry.config
    try:
        offered = offered_models(agent.core, {**settings, "provider": provider})
    except AgentError as error:
        raise AgentError(told(error)) from error
    keep_windows(Paths.of_this_user(), provider, str(settings.get("base_url") or ""), offered)
    return offered


def lend_key(app: AgentApplication, provider: str) -> None:
    """Give a provider that was not in use when the program started the key that is stored for it."""
    from agent_core.frozen import freeze
    from agent_terminal_app.keys import KeyStore
    from agent_terminal_app.paths import Paths

    providers = app.runtime.registries.providers
    entry = providers.get(provider)
    if entry is None or "api_key" in entry.config:
        return
    keys = KeyStore(Paths.of_this_user())
    key = keys.get(provider)
    if key is not None:
        known = {**entry.config, "api_key": key, "api_key_origin": keys.origin(provider)}
        providers.replace(provider, replace(entry, config=freeze(known)))


def lend_key_of_session(app: AgentApplication, session_id: str) -> None:
    """Do the same for the model that a session asks for."""
    from agent_app.services import own_overrides

    wanted = own_overrides(app.load_session(session_id)).get("model")
    if isinstance(wanted, str):
        spec = app.runtime.registries.models.get(wanted)
        lend_key(app, wanted.partition(":")[0] if spec is None else spec.provider)


def _read(registries: RegistrySet, name: str) -> ModelSpec:
    from agent_runtime import ModelSpec
    from agent_runtime.errors import nearest

    short, colon, model = name.partition(":")
    provider = SHORT_NAMES.get(short, short)
    if provider not in registries.providers:
        known = nearest(short, dict.fromkeys([*registries.models, *registries.providers]))
        problem = "there is no such provider" if colon else "there is no such model"
        end = "" if known.endswith("?") else "."
        raise AgentError(f"{one_line(name, 80)!r}: {problem}: {known}{end} /model lists the models")
    return ModelSpec(f"{provider}:{model}", provider, model)
