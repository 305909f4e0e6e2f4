"""From the application's configuration to a runtime, and to the settings of one request.

The configuration has `agents` (id to the fields of an `AgentSpec`, and settings), `models` (id to the fields
of a `ModelSpec`), `plugins` (id to settings), `default_agent` and `permissions`, which hold for every agent;
`restrictions` says how, where an agent has a section of its own. An agent without `plugin_ids` has every
plugin that is on by itself, and those of its `more_plugins` that are there.

What is not a field of an agent is one of its settings: the section of a plugin, or anything that plugins look
up in the configuration of a request. With `provider`, `model` is what that provider calls it. So an agent can
be written as one flat dict. Plugins find every section in the configuration again, under its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from agent_app.app_plugins import ApplicationPlugin
from agent_app.restrictions import PROTECTED, check_not_configured, combined_permissions, plugin_paths
from agent_core import ArgumentError, ConfigError
from agent_core.errors import closest, nearest
from agent_core.plugin.discovery import (
    ENTRY_POINT_GROUPS,
    InstalledPlugin,
    find_installed,
    kind_of,
)
from agent_runtime import AgentRuntime, AgentRuntimeBuilder, AgentSpec, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_runtime.registries import RegistrySet

MORE_PLUGINS = "more_plugins"
"""The key of an agent without `plugin_ids` that names plugins which are off by themselves."""
KEYS = ("agents", "default_agent", "models", "plugins", "permissions")
"""What the configuration of an application has."""
_FIELDS = tuple(field.name for field in fields(AgentSpec))
_SECTIONS = ("config", "retry", "tools", "permissions", "results", "compaction")
"""Sections that belong to the runtime itself."""
_MISTAKE = 0.8  # what looks so much like a field was meant to be it


@dataclass(frozen=True, slots=True)
class Plugins:
    """Plugins by what becomes of them.

    Attributes:
        providers: By the id under which models name them.
        others: Extensions, features, tools and runtime plugins, by id.
        kinds: What each of those is: extension, feature or tool.
        applications: Those that serve the application itself.
        problems: Installed ones that could not be loaded.
    """

    providers: Mapping[str, Any]
    others: Mapping[str, Any]
    kinds: Mapping[str, str]
    applications: tuple[Any, ...]
    problems: tuple[InstalledPlugin, ...]


def find_plugins(given: Sequence[Any] | Mapping[str, Sequence[Any]], *, installed: bool) -> Plugins:
    """Sort the given plugins, and those found by entry point, by kind.

    Raises:
        RegistrationError: If a plugin does not say its kind, and its hooks leave it open.
        ArgumentError: If a group is none.
    """
    found = find_installed(kinds=ENTRY_POINT_GROUPS) if installed else []
    usable = [(one.name, one.plugin, one.kind.removesuffix("s")) for one in found if one.problem is None]
    providers, applications = dict[str, Any](), list[Any]()
    others, kinds = dict[str, Any](), dict[str, str]()
    for name, plugin, kind in (*usable, *_sorted(given)):
        if kind == "provider":
            providers[name] = plugin
        elif kind == "application":
            applications.append(plugin)
        else:
            others[name], kinds[name] = plugin, kind
    problems = tuple(one for one in found if one.problem)
    return Plugins(providers, others, kinds, tuple(applications), problems)


def _sorted(given: Sequence[Any] | Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any, str]]:
    """Yield the plugins that were given, each with its name and kind."""
    if not isinstance(given, Mapping):
        for plugin in given:
            serves = _serves_the_application(plugin)
            yield _name_of(plugin), plugin, kind_of(plugin, serves_application=serves)
        return
    groups = {group: kind.removesuffix("s") for kind, group in ENTRY_POINT_GROUPS.items()}
    groups |= {kind: kind.removesuffix("s") for kind in ENTRY_POINT_GROUPS}
    for group, plugins in given.items():
        if group not in groups:
            raise ArgumentError(f"plugins has the group {group!r}: {nearest(group, ENTRY_POINT_GROUPS)}")
        for plugin in plugins:
            yield _name_of(plugin), plugin, groups[group]


def unused_settings(config: Mapping[str, Any], plugins: Plugins) -> dict[str, str]:
    """Return the plugins that have settings but are not there, each with what may have been meant."""
    applications = (_name_of(plugin) for plugin in plugins.applications)
    known = [*plugins.providers, *plugins.others, *applications]
    wanted = config.get("plugins", {})
    return {
        name: f"it has settings, but is not there: {nearest(name, known)}"
        for name in wanted
        if name not in known
    }


def _name_of(plugin: Any) -> str:
    return str(getattr(plugin, "name", None) or getattr(plugin, "__name__", type(plugin).__name__))


def _serves_the_application(plugin: Any) -> bool:
    """Say whether a plugin is written for the application: its actions, or its `init`, take that."""
    if ApplicationPlugin in getattr(plugin, "__mro__", type(plugin).__mro__):
        return True
    return _takes(plugin, "execute_action", "app") or _takes(plugin, "init", "app_config")


def _takes(plugin: Any, hook: str, argument: str) -> bool:

    try:
        return argument in list(signature(getattr(plugin, hook)).parameters)[:2]
    except (AttributeError, TypeError, ValueError):
        return False


def check_config(config: Any) -> dict[str, Any]:
    """Return the configuration, after a look at its keys.

    Raises:
        ConfigError: If it is not a mapping, has a key that nobody knows, or a default agent that is none.
    """
    if not isinstance(config, Mapping):
        raise ConfigError(f"the configuration must be a mapping, not {type(config).__name__}")
    for key in config:
        if key not in KEYS:
            raise ConfigError(f"the configuration has no {key!r}: {nearest(str(key), KEYS)}", field=str(key))
    for key in ("agents", "models", "plugins", "permissions"):
        _check_mapping(config.get(key, {}), key)
    for key in ("agents", "models"):
        for name, value in config.get(key, {}).items():
            _check_mapping(value, f"{key}.{name}")
    _check_default(config.get("default_agent"), config.get("agents", {}))
    check_not_configured(config)
    return dict(config)


def _check_mapping(value: Any, field: str) -> None:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{field} must be a mapping, not {type(value).__name__}", field=field)


def _check_default(default: Any, agents: Mapping[str, Any]) -> None:
    if default is not None and default not in agents:
        problem = f"default_agent {default!r} is not declared: {nearest(str(default), agents)}"
        raise ConfigError(problem, field="default_agent")


def build_runtime(config: Mapping[str, Any], plugins: Plugins, protected: Sequence[str] = ()) -> AgentRuntime:
    """Return a runtime with every agent of the configuration, all of them checked.

    Args:
        protected: The paths that no tool touches, besides those of files that plugins keep.

    Raises:
        BuildError: With everything that is wrong.
    """
    builder = AgentRuntimeBuilder()
    settings = config.get("plugins", {})
    # With the settings of providers it reaches every agent, delegates too, and is part of no declaration.
    fixed = _fixed(config, plugins, protected)
    for name, provider in plugins.providers.items():
        builder.with_provider(name, provider, config=_with(settings.get(name), fixed))
    for name, plugin in plugins.others.items():
        builder.with_plugin(name, plugin, kind=plugins.kinds[name])
    models, agents = _models_and_agents(config, plugins)
    for model_id, model in models.items():
        builder.with_model({**model, "id": model_id})
    for agent_id, agent in agents.items():
        builder.with_agent_spec(_spec(agent_id, agent, config, plugins))
    return builder.build()


def replace_agents(runtime: AgentRuntime, config: Mapping[str, Any], plugins: Plugins) -> None:
    """Give a runtime the agents and models of another configuration, all of them or none.

    A run that goes on keeps the agent that it began with. Plugins and providers stay as they are, and so do
    models that somebody has asked for in the meantime.

    Raises:
        ConfigError: If a declaration cannot be used; `field` names what is wrong.
        ResolveError: If an agent could not run.
    """
    declared, agents = _models_and_agents(config, plugins)
    models = [ModelSpec.from_dict({**model, "id": model_id}) for model_id, model in declared.items()]
    specs = [AgentSpec.from_dict(_spec(name, agent, config, plugins)) for name, agent in agents.items()]
    trial = runtime.registries.copy()
    _put(trial, models, specs)
    tried = AgentRuntime(trial)
    for spec in specs:
        if spec.endpoint is None:
            tried.resolve(spec.id)
    _put(runtime.registries, models, specs)


def _put(registries: RegistrySet, models: Sequence[ModelSpec], specs: Sequence[AgentSpec]) -> None:
    for model in models:
        registries.models.replace(model.id, model)
    for spec in specs:
        registries.agents.replace(spec.id, spec)
    for gone in {*registries.agents} - {spec.id for spec in specs}:
        registries.agents.remove(gone)


def _models_and_agents(
    config: Mapping[str, Any], plugins: Plugins
) -> tuple[dict[str, Mapping[str, Any]], dict[str, dict[str, Any]]]:
    """Return all models, and the agents as declarations that name one of them."""
    models: dict[str, Mapping[str, Any]] = dict(config.get("models", {}))
    agents: dict[str, dict[str, Any]] = {}
    for agent_id, entry in config.get("agents", {}).items():
        agent = _unflattened(entry, plugins)
        if "provider" in agent:
            agent["model"] = _model_of(agent_id, agent.pop("provider"), agent.get("model", ""), models)
        agents[agent_id] = agent
    return models, agents


def _unflattened(entry: Mapping[str, Any], plugins: Plugins) -> dict[str, Any]:
    """Return an agent's entry with its settings in sections.

    A key that looks like a field is left where it is, so that the builder says what was meant.
    """
    agent: dict[str, Any] = {}
    sections: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, value in entry.items():
        if key in (*_FIELDS, "provider", MORE_PLUGINS):
            agent[key] = value
        elif key in plugins.others or key in _SECTIONS:
            sections[key] = value  # the runtime refuses one that is not a mapping
        elif closest(key, [*_FIELDS, MORE_PLUGINS], cutoff=_MISTAKE) is None:
            settings[key] = value
        else:
            agent[key] = value
    own = agent.get("sections", {})
    if not isinstance(own, Mapping) or not (sections or settings):
        return agent
    sections = {**sections, **own}
    if settings and isinstance(sections.get("config", {}), Mapping):
        sections["config"] = {**settings, **sections.get("config", {})}
    return {**agent, "sections": sections}


def _model_of(agent_id: str, provider: str, model: str, models: dict[str, Mapping[str, Any]]) -> str:
    """Return the id of the model that an agent's `provider` and `model` name; it is declared if it was not.

    Raises:
        ConfigError: If one of them is not text.
    """
    for name, value in (("provider", provider), ("model", model)):
        if not isinstance(value, str):
            field = f"agents.{agent_id}.{name}"
            raise ConfigError(f"{field} must be text, not {type(value).__name__}", field=field)
    if model in models and models[model].get("provider") == provider:
        return model
    model_id = f"{provider}:{model}" if model else provider
    models.setdefault(model_id, {"provider": provider, **({"model": model} if model else {})})
    return model_id


def _fixed(config: Mapping[str, Any], plugins: Plugins, protected: Sequence[str]) -> dict[str, Any]:
    """Return the settings that no request, no session and no agent changes."""
    members = {**plugins.providers, **plugins.others, **{_name_of(one): one for one in plugins.applications}}
    paths = dict.fromkeys([*protected, *plugin_paths(config, members)])
    return {PROTECTED: list(paths)} if paths else {}


def _with(settings: Any, fixed: Mapping[str, Any]) -> Any:
    """Return settings with the fixed ones; what is not a mapping is returned as it is, to be refused."""
    return {**(settings or {}), **fixed} if settings is None or isinstance(settings, Mapping) else settings


def _spec(
    agent_id: str, agent: Mapping[str, Any], config: Mapping[str, Any], plugins: Plugins
) -> dict[str, Any]:
    """Return an agent's declaration, with what holds for all agents where it says nothing itself."""
    more = agent.get(MORE_PLUGINS, ())
    on = [
        name
        for name, plugin in plugins.others.items()
        if name in more or getattr(plugin, "default_enabled", True)
    ]
    own = {key: value for key, value in agent.items() if key != MORE_PLUGINS}
    spec = {"plugin_ids": on, **own, "id": agent_id}
    wanted = spec["plugin_ids"]
    settings = {name: value for name, value in config.get("plugins", {}).items() if name in wanted}
    sections = {**settings, **spec.get("sections", {})}
    rules = combined_permissions(config.get("permissions", {}), sections.get("permissions"))
    return {**spec, "sections": {**sections, "permissions": rules}}


def choose_agent(config: Mapping[str, Any], agent_id: str | None) -> str | None:
    """Return the agent that is meant: the one named, the default, the one called so, or the only one.

    Raises:
        ArgumentError: If the named one is not declared.
    """
    agents = config.get("agents", {})
    if agent_id is None:
        agent_id = config.get("default_agent") or _usual_agent(agents)
    if agent_id is not None and agent_id not in agents:
        raise ArgumentError(f"agent {agent_id!r} is not declared: {nearest(agent_id, agents)}")
    return agent_id


def _usual_agent(agents: Mapping[str, Any]) -> str | None:
    """Return the agent of a configuration that names no default."""
    if "default" in agents:
        return "default"
    return next(iter(agents)) if len(agents) == 1 else None


def build_agent_config(base: Mapping[str, Any], agent_id: str | None) -> dict[str, Any]:
    """Return the configuration of an agent's requests, with the agent that it is for."""
    return {**base, "agent_id": agent_id}


def resolve_request_config(
    base_config: Mapping[str, Any],
    session_overrides: Mapping[str, Any] | None,
    overrides: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the settings of one request: the agent's, then the session's own, then the caller's.

    What is protected is the agent's alone.
    """
    changed = {**(session_overrides or {}), **(overrides or {})}
    return {**base_config, **{key: value for key, value in changed.items() if key != PROTECTED}}
