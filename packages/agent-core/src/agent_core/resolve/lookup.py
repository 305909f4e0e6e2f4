"""Stage 1: the provider that a configuration means, its models, and the plugins it may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core.config import CORE_KEYS, as_key, config_key, names
from agent_core.errors import (
    ModelNotFoundError,
    NoProviderError,
    PluginError,
    PluginNotFoundError,
    ProviderNotFoundError,
    closest,
)
from agent_core.frozen import Dicts, FrozenDict, FrozenList, freeze
from agent_core.models import ModelSnapshot
from agent_core.plugin.feature import NativeSideWrapper
from agent_core.plugin.hooks import frozen_dicts
from agent_core.plugin.provider import ProviderWrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_core.models import ModelDiscoveryCache
    from agent_core.plugin.base import PluginWrapper, Problems
    from agent_core.plugin.registry import Registry


class _AbsentProvider:
    """Stands in where tools and front ends are asked about without any provider."""

    name = "none"

    def call_api(self, native_messages: object, state: object) -> Any:
        raise NoProviderError


# No provider lists other models because of these, and asking it again may mean asking a server.
_ABOUT_TOOLS = frozenset({"allowed_tools", "excluded_tools", "tool_timeout", "tool_timeouts"})

ABSENT = ProviderWrapper(_AbsentProvider())


def select_provider(registry: Registry, config: FrozenDict, *, optional: bool = False) -> ProviderWrapper:
    """Return the provider that the configuration names, or the only one there is."""
    if not registry.providers:
        if optional:
            return ABSENT
        raise NoProviderError
    wanted = config.get("provider")
    if wanted is None and len(registry.providers) == 1:
        return registry.providers[0]
    for provider in registry.providers:
        if provider.name == wanted:
            return provider
    known = [provider.name for provider in registry.providers]
    where = "config['provider']" if wanted else "config['provider'] must name one of several"
    raise ProviderNotFoundError(wanted, known, where=f" ({where})")


def check_names(registry: Registry, config: FrozenDict, required: Iterable[str] = ()) -> list[str]:
    """Refuse plugins that must be there and are not; return a warning for other names that nobody has."""
    known = registry.names()
    wanted = ("config['enabled_plugins']", names(config, "enabled_plugins"))
    for where, listed in (wanted, ("required", required)):
        for name in listed:
            if name not in known:
                raise PluginNotFoundError(name, known, where=f" ({where})")
    return [
        f"config[{key!r}] names {name!r}, which is not registered{_nearest(name, known)}"
        for key in ("disabled_plugins", "force_enabled_plugins")
        for name in names(config, key)
        if name not in known
    ]


def _nearest(name: str, known: Sequence[str]) -> str:
    close = closest(name, known)
    return "" if close is None else f": did you mean {close!r}?"


def check_keys(registry: Registry, config: FrozenDict) -> list[str]:
    """Return a warning for each key that no plugin knows and that looks like one that some plugin does.

    Plugins need not describe their keys, so a key that resembles none may well be meant. A plugin that
    cannot describe its keys is named as well.
    """
    problems: Problems = []
    known = {*CORE_KEYS, *(key for plugin in registry for key in plugin.get_config_schema(problems))}
    sections = {plugin.name for plugin in registry}
    unknown = [key for key in config if isinstance(key, str) and key not in known | sections]
    close = {key: closest(key, known, cutoff=0.8) for key in unknown}
    misspelt = [
        f"config[{key!r}] is not known: did you mean {near!r}?" for key, near in close.items() if near
    ]
    return [*map(str, problems), *misspelt]


def with_defaults(config: FrozenDict, plugins: Iterable[PluginWrapper]) -> tuple[FrozenDict, list[str]]:
    """Return the configuration with the defaults that plugins declare for keys that it does not have.

    A key that the section of a plugin sets is left alone, since a section counts less than the key itself.
    Plugins share one configuration. If two declare different defaults for one key, neither is filled in and
    a warning says so: each then falls back on what its own code does without the key.
    """
    found: dict[str, tuple[object, str]] = {}
    disputed: dict[str, str] = {}
    in_sections: set[str] = set()
    for plugin in plugins:
        for key, about in plugin.get_config_schema([]).items():
            default = about.get("default")
            if default is None or key in config or key in CORE_KEYS:
                continue
            section = config.get(plugin.name)
            if isinstance(section, Mapping) and key in section:
                in_sections.add(key)
            first, owner = found.setdefault(key, (default, plugin.name))
            if first != default:
                disputed[key] = (
                    f"config[{key!r}] has the default {first!r} in plugin {owner!r} and {default!r} in "
                    f"plugin {plugin.name!r}: neither is filled in, so set it"
                )
    left_alone = {*disputed, *in_sections}
    filled = {key: freeze(default) for key, (default, _) in found.items() if key not in left_alone}
    return (FrozenDict({**filled, **config}) if filled else config), list(disputed.values())


def discover_models(
    provider: ProviderWrapper,
    plugins: Sequence[PluginWrapper],
    config: FrozenDict,
    cache: ModelDiscoveryCache,
) -> ModelSnapshot:
    """Return the provider's models as extensions and features changed them, asking at most once."""
    chain = (provider, *(plugin for plugin in plugins if isinstance(plugin, NativeSideWrapper)))
    about = {name: value for name, value in config.items() if name not in _ABOUT_TOOLS}
    key = (*((plugin.name, as_key(plugin.registered)) for plugin in chain), config_key(about))

    def discover() -> ModelSnapshot:
        models = _checked(provider, provider.get_models(config))
        for plugin in plugins:
            if isinstance(plugin, NativeSideWrapper):
                models = _checked(plugin, plugin.get_models(config, models))
        return ModelSnapshot(models, key)

    return cache.get(key, discover)


def _checked(plugin: PluginWrapper, models: Dicts) -> FrozenList:
    for model in models:
        if not isinstance(model.get("id", model.get("name")), str):
            raise PluginError(plugin.name, "get_models", "must return models that have an id, a string")
    return FrozenList(frozen_dicts(plugin.name, "get_models", models))


def check_model(provider: ProviderWrapper, config: FrozenDict, snapshot: ModelSnapshot) -> None:
    """Refuse a model that is not among those that the provider lists.

    A provider that lists none, or says that its list is not complete, takes any.
    """
    model = config.get("model")
    if model is None or provider.accepts_unlisted_models or not snapshot.models:
        return
    if model not in snapshot.ids():
        raise ModelNotFoundError(model, snapshot.ids(), where=f" for provider {provider.name!r}")
