"""Registering plugins, and deciding which of them a configuration means.

Every other part of `AgentCore` is built on this one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from agent_core import functions
from agent_core.config import ConfigKey, config_key, read_config
from agent_core.context import LIFECYCLE_FACTS, RESERVED_KEYS, Context, build_context, without_reserved
from agent_core.errors import (
    AgentError,
    ArgumentError,
    ArgumentTypeError,
    PluginNotFoundError,
    RegistrationError,
)
from agent_core.frozen import EMPTY, FrozenDict, JsonObject, freeze
from agent_core.log import get_logger
from agent_core.messages import ROLES
from agent_core.models import ModelDiscoveryCache
from agent_core.pipeline.request import Request
from agent_core.plugin.discovery import (
    FoundPlugins,
    InstalledPlugin,
    find_in_modules,
    find_installed,
    installed_names,
)
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.registry import Registry
from agent_core.plugin.tool import ToolWrapper
from agent_core.resolve import Resolution, resolve
from agent_core.session import Session
from agent_core.steps import Flow, run_blocking

if TYPE_CHECKING:
    from agent_core.plugin.base import PluginWrapper


# Checking what callers pass to public methods.


def check_session(session: object) -> Session:
    if not isinstance(session, Session):
        raise ArgumentTypeError(f"session must be a Session, not {type(session).__name__}")
    return session


def check_context(context: object) -> Mapping[str, object] | None:
    """Return the caller's context, frozen."""
    if context is not None and not isinstance(context, (dict, Mapping)):
        raise ArgumentTypeError(f"context must be a dict, not {type(context).__name__}")
    return context if isinstance(context, Context) or context is None else freeze(dict(context))


def read_context(
    context: object,
    known: Mapping[str, object],
    session: Session,
    *,
    in_lifecycle: bool = False,
) -> Mapping[str, object] | None:
    """Return the caller's context, frozen, without the keys that are the core's.

    Args:
        known: What the core will say under some of them.
        in_lifecycle: Whether the caller runs a lifecycle, and so may say what it is about.
    """
    extra = check_context(context)
    if not extra:
        return extra
    if "session" in extra:  # compared only then: a conversation can be long
        known = {**known, "session": session.frozen_dict()}
    if not in_lifecycle:
        return without_reserved(extra, known=known)
    extra = without_reserved(extra, RESERVED_KEYS - LIFECYCLE_FACTS, known, from_above=_OF_LIFECYCLES)
    return build_context({key: extra[key] for key in LIFECYCLE_FACTS if key in extra}, extra)


def check_role(role: object) -> str:
    if role not in ROLES:
        raise ArgumentError(f"role must be one of {list(ROLES)}, not {role!r}")
    return str(role)


def check_name(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be a non-empty string")


def check_list(name: str, value: object) -> None:
    if not isinstance(value, list):
        raise ArgumentTypeError(f"{name} must be a list, not {type(value).__name__}")


def check_format(format_name: str) -> None:
    """Refuse formats other than JSON."""
    if format_name != "json":
        raise ArgumentError(f"Unsupported format {format_name!r}: only 'json' is known")


def check_triggers(trigger: str | Sequence[str]) -> list[str]:
    triggers = [trigger] if isinstance(trigger, str) else trigger
    named = isinstance(triggers, (list, tuple)) and all(isinstance(name, str) and name for name in triggers)
    if not named or not triggers:
        raise ArgumentError("trigger must be a non-empty string, or a list of such")
    return list(triggers)


_REGISTERED_KINDS = ("providers", "features", "tools")
_REMEMBERED_CONFIGS = 128
_LONGEST_TOOL_NAME = 64
_OF_LIFECYCLES = frozenset({"trigger_source", "lifecycle"})  # what a layer above may set
_log = get_logger("core")


class CoreBase:
    """Registered plugins, and the decision which of them a configuration means."""

    def __init__(self, model_cache: ModelDiscoveryCache | None = None) -> None:
        self._registered = Registry()
        self._functions: dict[str, FunctionType] = {}
        self._model_cache = ModelDiscoveryCache() if model_cache is None else model_cache
        self._lock = threading.Lock()
        self._names: frozenset[str] = frozenset()
        self._resolutions: dict[tuple[ConfigKey, bool], Resolution] = {}
        # The key of the configuration that was asked for last: most requests have the one before.
        self._last_key: tuple[object, ConfigKey] = (None, (b"", ()))

    def register_provider(self, plugin_class: object, extensions: Sequence[object] | None = None) -> None:
        """Register a provider, with its extensions; each a class or an object.

        Raises:
            RegistrationError: If a name is taken, or a hook has a signature that is not documented.
            PluginError: If a class cannot be instantiated.
        """
        if extensions is not None and not isinstance(extensions, (list, tuple)):
            raise ArgumentTypeError(f"extensions must be a list, not {type(extensions).__name__}")
        self._register(ProviderWrapper(plugin_class, extensions or ()))

    def register_feature(self, plugin_class: object) -> None:
        """Register a feature, a class or an object.

        Raises:
            RegistrationError: If its name is taken, or a hook has a signature that is not documented.
            PluginError: If the class cannot be instantiated.
        """
        self._register(FeatureWrapper(plugin_class))

    def register_tool(self, plugin_class: object) -> None:
        """Register a tool plugin, a class or an object, or any typed function as a tool.

        Raises:
            RegistrationError: If its name is taken, or a hook has a signature that is not documented.
            PluginError: If the class cannot be instantiated.
        """
        if not self._defer(plugin_class):
            self._register(_tool_wrapper(plugin_class))

    def register_wrapped(self, *wrappers: PluginWrapper) -> None:
        """Register plugins that are wrapped already, all or none, for layers that build many cores of them.

        Raises:
            DuplicatePluginError: If a name is taken.
        """
        self._register(*wrappers)

    def discover_and_register(self, modules: list[str]) -> dict[str, list[str]]:
        """Register the plugins that the given modules define, telling kinds by their methods.

        The first provider found is registered, with every extension found; all features and tools
        are. Nothing is registered if any of them cannot be.

        Returns:
            The names of what was registered, under providers, features, tools and extensions.
        """
        wrappers = _wrap_found(find_in_modules(modules))
        self._register(*wrappers)
        new = list(Registry().with_plugins(wrappers))
        kinds = ("provider", "feature", "tool", "extension")
        return {f"{kind}s": [wrapper.name for wrapper in new if wrapper.kind == kind] for kind in kinds}

    def register_installed(
        self, names: Sequence[str] | None = None, *, kinds: Sequence[str] = ("providers", "features", "tools")
    ) -> list[InstalledPlugin]:
        """Register the plugins that installed packages announce by entry point.

        Extensions come with providers: each goes to the registered providers that its `providers`
        attribute names, or to all. One that cannot be loaded or registered is reported and leaves the
        others working.

        Args:
            names: Only these; by default the environment variable AGENT_LOAD_PLUGINS decides.
            kinds: Only these kinds.

        Returns:
            Every plugin found, with its problem if it has one.

        Raises:
            ArgumentError: If a kind is not one that the core registers.
            PluginNotFoundError: If no installed package announces one of the names; nothing is registered.
        """
        for kind in kinds:
            if kind not in _REGISTERED_KINDS:
                raise ArgumentError(f"kinds must be among {list(_REGISTERED_KINDS)}, not {kind!r}")
        extensions = find_installed(names, ["extensions"]) if "providers" in kinds else []
        found = [*(find_installed(names, kinds)), *extensions]
        known = installed_names([*_REGISTERED_KINDS, "extensions"]) if names else []
        for name in names or ():
            if name not in known:
                raise PluginNotFoundError(name, known, where=" (no installed package has it)")
        return [self._register_found(plugin) for plugin in found]

    def resolve(self, config: JsonObject, *, required: Sequence[str] = ()) -> Resolution:
        """Decide who takes part in requests with this configuration.

        Args:
            required: Names of plugins that no setting can switch off.
        """
        if not required:
            return self._resolve(config)
        return resolve(self._registry, read_config(config), self._model_cache, required=required)

    def _register(self, *wrappers: PluginWrapper) -> None:
        """Add all of them, or none."""
        self._change_registry(lambda registry: registry.with_plugins(wrappers))

    def _defer(self, function: object) -> bool:
        """Note a plain function, to be wrapped when the registry is first looked at.

        Programs register many and use few at once. Nothing can go wrong later: a function with an
        ordinary name that is not taken always makes a tool.
        """
        if not isinstance(function, FunctionType) or not function.__name__.isidentifier():
            return False
        name = function.__name__
        with self._lock:
            if name in self._functions or name in self._names or len(name) > _LONGEST_TOOL_NAME:
                return False
            self._functions[name] = function
        return True

    @property
    def _registry(self) -> Registry:
        if self._functions:
            self._change_registry(lambda registry: registry)
        return self._registered

    def _change_registry(self, change: Callable[[Registry], Registry]) -> None:
        with self._lock:
            waiting = [_tool_wrapper(function) for function in self._functions.values()]
            self._registered = change(self._registered.with_plugins(waiting))
            self._names = frozenset(self._registered.names())
            self._functions = {}
            self._resolutions = {}

    def _register_found(self, found: InstalledPlugin) -> InstalledPlugin:
        if found.problem is not None:
            return found
        register: dict[str, Callable[[Any], None]] = {
            "providers": self.register_provider,
            "features": self.register_feature,
            "tools": self.register_tool,
            "extensions": self._attach_extension,
        }
        try:
            register[found.kind](found.plugin)
        except Exception as error:  # a plugin's class may raise anything when looked at
            reason = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
            return replace(found, plugin=None, problem=reason)
        return found

    def _attach_extension(self, plugin: object) -> None:
        """Add an extension to every registered provider that it wants."""
        wanted = getattr(plugin, "providers", None)
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        names = [p.name for p in self._registry.providers if wanted is None or p.name in wanted]
        if not names:
            there = "no provider is" if wanted is None else f"none of its providers {list(wanted)} is"
            raise RegistrationError(ExtensionWrapper(plugin).name, f"{there} registered")
        placed = [(name, ExtensionWrapper(plugin)) for name in names]
        self._change_registry(lambda registry: registry.with_extensions(placed))

    def _resolve(self, config: JsonObject, *, provider_optional: bool = False) -> Resolution:
        """Return the decision for a configuration; made once while nothing changes."""
        key, known = self._recall(config, provider_optional=provider_optional)
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

    def _resolving(self, config: JsonObject, *, provider_optional: bool = False) -> Flow[Resolution]:
        """Resolve as part of a flow: asking a server for its models must not block an event loop."""
        _key, known = self._recall(config, provider_optional=provider_optional)
        if known is not None:
            return known
        return (yield from run_blocking(partial(self._resolve, config, provider_optional=provider_optional)))

    def _recall(
        self, config: JsonObject, *, provider_optional: bool
    ) -> tuple[tuple[ConfigKey, bool], Resolution | None]:
        last, found = self._last_key
        if last is not config:
            if not isinstance(config, (dict, Mapping)):
                read_config(config)
            found = config_key(config)
            if config.__class__ is FrozenDict:  # any other may be changed between two requests
                self._last_key = config, found
        key = (found, provider_optional)
        known = self._resolutions.get(key)
        if known is None or not self._model_cache.is_current(known.snapshot.key, known.snapshot):
            return key, None
        return key, known

    def _request(
        self,
        operation: str,
        session: Session,
        resolution: Resolution,
        context: JsonObject | None,
        *,
        in_lifecycle: bool = False,
        known: Mapping[str, object] = EMPTY,
        **more: Any,
    ) -> Request:
        """Return a request; *more* are fields that only some have."""
        known = {"core": self, "config": resolution.config, "trigger_source": "core", **known}
        return Request(
            core=self,
            resolution=resolution,
            session=check_session(session),
            operation=operation,
            extra=read_context(context, known, session, in_lifecycle=in_lifecycle),
            **more,
        )

    def _edit_request(
        self, operation: str, session: Session, config: JsonObject, context: JsonObject | None
    ) -> Request:
        return self._request(operation, session, self._resolve(config), context)


def _tool_wrapper(plugin: Any) -> ToolWrapper:
    if isinstance(plugin, type) or hasattr(plugin, "get_tool_schemas"):
        return ToolWrapper(plugin)
    return ToolWrapper(functions.tool(plugin))


def _wrap_found(found: FoundPlugins) -> list[PluginWrapper]:
    if not found.providers and found.extensions:
        _log.warning("extensions_without_provider", extensions=[e.__name__ for e in found.extensions])
    if len(found.providers) > 1:
        _log.warning("only_first_provider_registered", ignored=[p.__name__ for p in found.providers[1:]])
    return [
        *(ProviderWrapper(provider, found.extensions) for provider in found.providers[:1]),
        *map(FeatureWrapper, found.features),
        *map(ToolWrapper, found.tools),
    ]
