"""What every part of `AgentCore` needs: the registered plugins, and who of them takes part."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.config import config_key, read_config
from agent_core.errors import AgentError
from agent_core.face.checks import check_context, check_session
from agent_core.functions import tool as as_tool
from agent_core.log import get_logger
from agent_core.pipeline.request import Request
from agent_core.plugin.discovery import FoundPlugins, InstalledPlugin, find_in_modules, find_installed
from agent_core.plugin.feature import FeatureWrapper
from agent_core.plugin.model_cache import ModelDiscoveryCache
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.registry import Registry
from agent_core.plugin.tool import ToolWrapper
from agent_core.resolve import Resolution, resolve
from agent_core.steps import Flow, run_blocking

if TYPE_CHECKING:
    from agent_core.session import Session

_REMEMBERED_CONFIGS = 128
_log = get_logger("core")


class CoreBase:
    """Registered plugins, and the decision which of them a configuration means."""

    def __init__(self, model_cache: ModelDiscoveryCache | None = None) -> None:
        self._registry = Registry()
        self._model_cache = model_cache or ModelDiscoveryCache()
        self._lock = threading.Lock()
        self._resolutions: dict[tuple[bytes, bool], Resolution] = {}

    def register_provider(self, plugin_class: type, extensions: list[type] | None = None) -> None:
        """Register a provider, with the extensions that stand beside it.

        Raises:
            RegistrationError: If a name is taken, or a hook has a signature that is not documented.
        """
        wrapper = ProviderWrapper(plugin_class, extensions or ())
        self._register(self._registry.with_provider(wrapper))

    def register_feature(self, plugin_class: type) -> None:
        """Register a feature.

        Raises:
            RegistrationError: If its name is taken, or a hook has a signature that is not documented.
        """
        self._register(self._registry.with_feature(FeatureWrapper(plugin_class)))

    def register_tool(self, plugin_class: Any) -> None:
        """Register a tool plugin, or any typed function as a tool.

        Raises:
            RegistrationError: If its name is taken, or a hook has a signature that is not documented.
        """
        self._register(self._registry.with_tool(_tool_wrapper(plugin_class)))

    def discover_and_register(self, modules: list[str]) -> dict[str, list[str]]:
        """Register the plugins that the given modules define, telling kinds by their methods.

        The first provider found is registered, with every extension found; all features and tools
        are. Nothing is registered if any of them cannot be.

        Returns:
            The names of what was registered, under providers, features, tools and extensions.
        """
        found = find_in_modules(modules)
        registry, before = _add_found(self._registry, found), set(self._registry)
        self._register(registry)
        new = [wrapper for wrapper in registry if wrapper not in before]
        kinds = ("provider", "feature", "tool", "extension")
        return {f"{kind}s": [wrapper.name for wrapper in new if wrapper.kind == kind] for kind in kinds}

    def register_installed(
        self, names: Sequence[str] | None = None, *, kinds: Sequence[str] = ("providers", "features", "tools")
    ) -> list[InstalledPlugin]:
        """Register the plugins that installed packages announce by entry point.

        An extension goes to the providers that its `providers` attribute names, or to all. One that
        cannot be loaded or registered is reported and leaves the others working.

        Args:
            names: Only these; by default the environment variable AGENT_LOAD_PLUGINS decides.
            kinds: Only these kinds.

        Returns:
            Every plugin found, with its problem if it has one.
        """
        extensions = find_installed(names, ["extensions"]) if "providers" in kinds else []
        usable = [found.plugin for found in extensions if found.problem is None]
        reports = [self._register_found(found, usable) for found in find_installed(names, kinds)]
        return [*reports, *extensions]

    def resolve(self, config: dict[str, Any], *, required: Sequence[str] = ()) -> Resolution:
        """Decide who takes part in requests with this configuration.

        Args:
            required: Names of plugins that no setting can switch off.
        """
        if not required:
            return self._resolve(config)
        return resolve(self._registry, read_config(config), self._model_cache, required=required)

    def _register(self, registry: Registry) -> None:
        with self._lock:
            self._registry = registry
            self._resolutions = {}

    def _register_found(self, found: InstalledPlugin, extensions: Sequence[Any]) -> InstalledPlugin:
        if found.problem is not None:
            return found
        try:
            if found.kind == "providers":
                own = [e for e in extensions if found.name in getattr(e, "providers", (found.name,))]
                self.register_provider(found.plugin, own)
            elif found.kind == "features":
                self.register_feature(found.plugin)
            else:
                self.register_tool(found.plugin)
        except AgentError as error:
            return replace(found, plugin=None, problem=str(error))
        return found

    def _resolve(self, config: dict[str, Any], *, provider_optional: bool = False) -> Resolution:
        """Return the decision for a configuration; made once while nothing changes."""
        key, known = self._recall(config, provider_optional)
        if known is not None:
            return known
        resolutions = self._resolutions
        resolution = resolve(
            self._registry, read_config(config), self._model_cache, provider_optional=provider_optional
        )
        with self._lock:
            resolutions.pop(key, None)
            resolutions[key] = resolution
            if len(resolutions) > _REMEMBERED_CONFIGS:
                del resolutions[next(iter(resolutions))]
        for warning in resolution.warnings:
            _log.warning("plugins_resolved", warning=warning)
        return resolution

    def _resolving(self, config: dict[str, Any], *, provider_optional: bool = False) -> Flow[Resolution]:
        """Resolve as part of a flow: asking a server for its models must not block an event loop."""
        _key, known = self._recall(config, provider_optional)
        if known is not None:
            return known
        return (yield from run_blocking(partial(self._resolve, config, provider_optional=provider_optional)))

    def _recall(
        self,
        config: dict[str, Any],
        provider_optional: bool,  # noqa: FBT001
    ) -> tuple[tuple[bytes, bool], Resolution | None]:
        if not isinstance(config, Mapping):
            read_config(config)
        key = (config_key(config), provider_optional)
        known = self._resolutions.get(key)
        if known is None or not self._model_cache.is_current(known.snapshot.key, known.snapshot):
            return key, None
        return key, known

    def _request(
        self, operation: str, session: Session, resolution: Resolution, context: dict[str, Any] | None
    ) -> Request:
        return Request(
            core=self,
            resolution=resolution,
            session=check_session(session),
            operation=operation,
            extra=check_context(context),
        )

    def _edit_request(
        self, operation: str, session: Session, config: dict[str, Any], context: dict[str, Any] | None
    ) -> Request:
        return self._request(operation, session, self._resolve(config), context)


def _tool_wrapper(plugin: Any) -> ToolWrapper:
    is_plugin = isinstance(plugin, type) or hasattr(plugin, "get_tool_schemas")
    return ToolWrapper(plugin if is_plugin else as_tool(plugin))


def _add_found(registry: Registry, found: FoundPlugins) -> Registry:
    if found.providers:
        registry = registry.with_provider(ProviderWrapper(found.providers[0], found.extensions))
    elif found.extensions:
        _log.warning("extensions_without_provider", extensions=[e.__name__ for e in found.extensions])
    if len(found.providers) > 1:
        _log.warning("only_first_provider_registered", ignored=[p.__name__ for p in found.providers[1:]])
    for feature in found.features:
        registry = registry.with_feature(FeatureWrapper(feature))
    for plugin in found.tools:
        registry = registry.with_tool(ToolWrapper(plugin))
    return registry
