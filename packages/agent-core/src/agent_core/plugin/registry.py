"""What is registered, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core.errors import DuplicatePluginError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.plugin.base import PluginWrapper
    from agent_core.plugin.feature import FeatureWrapper
    from agent_core.plugin.provider import ProviderWrapper
    from agent_core.plugin.tool import ToolWrapper


@dataclass(frozen=True, slots=True)
class Registry:
    """All registered plugins. Registering gives a new one, so requests under way keep theirs."""

    providers: tuple[ProviderWrapper, ...] = ()
    features: tuple[FeatureWrapper, ...] = ()
    tools: tuple[ToolWrapper, ...] = ()

    def with_provider(self, wrapper: ProviderWrapper) -> Registry:
        """Return the registry with one more provider and its extensions."""
        self._check_new(wrapper)
        for place, extension in enumerate(wrapper.extensions):
            self._check_new(extension, beside=(wrapper, *wrapper.extensions[:place]))
        return replace(self, providers=(*self.providers, wrapper))

    def with_feature(self, wrapper: FeatureWrapper) -> Registry:
        """Return the registry with one more feature."""
        self._check_new(wrapper)
        return replace(self, features=(*self.features, wrapper))

    def with_tool(self, wrapper: ToolWrapper) -> Registry:
        """Return the registry with one more tool plugin."""
        self._check_new(wrapper)
        return replace(self, tools=(*self.tools, wrapper))

    def __iter__(self) -> Iterator[PluginWrapper]:
        for provider in self.providers:
            yield provider
            yield from provider.extensions
        yield from self.features
        yield from self.tools

    def names(self) -> list[str]:
        """Return the names of all plugins, each once, in order."""
        return list(dict.fromkeys(wrapper.name for wrapper in self))

    def _check_new(self, wrapper: PluginWrapper, beside: tuple[PluginWrapper, ...] = ()) -> None:
        for other in (*self, *beside):
            if other.name == wrapper.name and not _same_extension(other, wrapper):
                raise DuplicatePluginError(wrapper.name, _clash(wrapper, other))


def _same_extension(one: PluginWrapper, other: PluginWrapper) -> bool:
    """One extension class may serve several providers; within one provider it stands once."""
    return one.kind == other.kind == "extension" and one.plugin_class is other.plugin_class


def _clash(wrapper: PluginWrapper, other: PluginWrapper) -> str:
    here, there = _describe(wrapper.plugin_class), _describe(other.plugin_class)
    return f"{here} has the name of the {other.kind} {there}"


def _describe(plugin_class: type[Any]) -> str:
    return f"{plugin_class.__module__}.{plugin_class.__qualname__}"
