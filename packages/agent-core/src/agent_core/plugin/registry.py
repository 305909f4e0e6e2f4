"""What is registered, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core.errors import DuplicatePluginError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_core.plugin.base import PluginWrapper
    from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
    from agent_core.plugin.provider import ProviderWrapper
    from agent_core.plugin.tool import ToolWrapper


@dataclass(frozen=True, slots=True)
class Registry:
    """All registered plugins. Registering gives a new one, so requests under way keep theirs."""

    providers: tuple[ProviderWrapper, ...] = ()
    features: tuple[FeatureWrapper, ...] = ()
    tools: tuple[ToolWrapper, ...] = ()

    def with_plugins(self, wrappers: Iterable[PluginWrapper]) -> Registry:
        """Return the registry with these providers (each with its extensions), features and tools."""
        taken: dict[str, list[PluginWrapper]] = {}
        for there in self:
            taken.setdefault(there.name, []).append(there)
        added: dict[str, list[PluginWrapper]] = {"provider": [], "feature": [], "tool": []}
        for wrapper in wrappers:
            _check_family(wrapper)
            family = (wrapper, *getattr(wrapper, "extensions", ()))
            for plugin in family:
                _check_new(plugin, taken.get(plugin.name, ()))
            for plugin in family:
                taken.setdefault(plugin.name, []).append(plugin)
            added[wrapper.kind].append(wrapper)
        places = {f"{kind}s": (*getattr(self, f"{kind}s"), *new) for kind, new in added.items() if new}
        return replace(self, **places)

    def with_extensions(self, placed: Iterable[tuple[str, ExtensionWrapper]]) -> Registry:
        """Return the registry with one more extension for each of the named providers."""
        extensions = dict(placed)
        for extension in extensions.values():
            _check_new(extension, self)
        providers = [
            provider.with_extension(extensions[provider.name]) if provider.name in extensions else provider
            for provider in self.providers
        ]
        for provider in providers:
            _check_family(provider)
        return replace(self, providers=tuple(providers))

    def __iter__(self) -> Iterator[PluginWrapper]:
        for provider in self.providers:
            yield provider
            yield from provider.extensions
        yield from self.features
        yield from self.tools

    def names(self) -> list[str]:
        """Return the names of all plugins, each once, in order."""
        return list(dict.fromkeys(wrapper.name for wrapper in self))


def _check_new(wrapper: PluginWrapper, others: Iterable[PluginWrapper]) -> None:
    for other in others:
        if other.name == wrapper.name and not _same_extension(other, wrapper):
            raise DuplicatePluginError(wrapper.name, _clash(wrapper, other))


def _check_family(provider: PluginWrapper) -> None:
    """Within one provider every extension stands once."""
    family = {provider.name: provider}
    for extension in getattr(provider, "extensions", ()):
        if extension.name in family:
            raise DuplicatePluginError(extension.name, _clash(extension, family[extension.name]))
        family[extension.name] = extension


def _same_extension(one: PluginWrapper, other: PluginWrapper) -> bool:
    """One extension class may serve several providers."""
    return one.kind == other.kind == "extension" and one.plugin_class is other.plugin_class


def _clash(wrapper: PluginWrapper, other: PluginWrapper) -> str:
    return f"{_describe(wrapper)} has the name of the {other.kind} {_describe(other)}"


def _describe(wrapper: PluginWrapper) -> str:
    """Return where a plugin's code is: its class, or the function behind a tool."""
    named = hasattr(wrapper.registered, "__qualname__")
    code: Any = wrapper.registered if named else wrapper.plugin_class
    return f"{code.__module__}.{code.__qualname__}"
