"""Stage 2: which plugins take part, whether their settings fit, and what they place into a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore, AgentError, ModelNotFoundError, PluginError
from agent_core.errors import DuplicatePluginError, PluginNotFoundError
from agent_core.plugin.feature import ExtensionWrapper
from agent_runtime import context, permissions
from agent_runtime.defaults import LoopActionHandlersPlugin, MaxRoundsPlugin
from agent_runtime.env import PluginRegistrar
from agent_runtime.errors import (
    EnvBuildError,
    InvalidPluginConfig,
    ModelNotFound,
    PluginNotFound,
    ResolveError,
)
from agent_runtime.handoffs import HandoffPlugin, declared_name
from agent_runtime.large_results import LargeResultsPlugin
from agent_runtime.registries import PluginEntry
from agent_runtime.resolve.lookup import find_target
from agent_runtime.sections import check_sections, core_settings, read_claims, tool_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_core import Decision, ModelDiscoveryCache, Resolution
    from agent_core.plugin.provider import ProviderWrapper
    from agent_runtime.env import RuntimePlugin
    from agent_runtime.registries import RegistrySet, ToolEntry
    from agent_runtime.resolve.lookup import Found, Target
    from agent_runtime.sections import Claim
    from agent_runtime.specs import AgentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The plugins of an agent, before it is known which of them are on.

    Attributes:
        declared: Those that the agent names, in its order.
        own: Those of the runtime: the defaults, then those that a setting implies.
        settings: What the sections hold for the core.
        warnings: What the declaration's author should know.
        unclaimed: Those of them that are about sections of no plugin.
        claims: The schemas by which the sections of declared plugins were checked.
    """

    declared: tuple[PluginEntry, ...]
    own: tuple[PluginEntry, ...]
    settings: Mapping[str, Any]
    warnings: tuple[str, ...]
    unclaimed: tuple[str, ...]
    claims: tuple[Claim, ...]

    @property
    def entries(self) -> tuple[PluginEntry, ...]:
        """All of them, in order."""
        return self.declared + self.own

    @property
    def required(self) -> tuple[str, ...]:
        """The plugins that nothing can switch off."""
        return tuple(entry.id for entry in self.entries if entry.required)


def build_chain(registries: RegistrySet, found: Found) -> Chain:
    """Return the plugins of an agent, their sections checked.

    Raises:
        PluginNotFound, InvalidPluginConfig, EnvBuildError: If that cannot be.
    """
    spec = found.spec
    _check_summary_model(registries, spec)
    declared = tuple(_declared(registries, spec, plugin) for plugin in dict.fromkeys(spec.plugin_ids))
    own = (*_defaults(spec), *_conditional(found, declared))
    entries = declared + own
    _check_unique(spec, entries)
    claims = read_claims(spec, declared)
    unclaimed = check_sections(spec, entries, (*claims, *read_claims(spec, own)))
    settings = core_settings(spec, entries)
    required = {entry.id for entry in entries if entry.required}
    settings, more = _without_disabled(settings, required)
    idle = [entry for entry in declared if not _has_a_place(registries, entry)]
    enabled = [entry.id for entry in declared if entry not in idle]
    settings["enabled_plugins"] = [*(settings.get("enabled_plugins") or ()), *enabled]
    warnings = (*unclaimed, *more, *_ignored(found), *(_goes_with_none(entry) for entry in idle))
    return Chain(
        declared=declared,
        own=own,
        settings=settings,
        warnings=warnings,
        unclaimed=tuple(unclaimed),
        claims=claims,
    )


def _check_summary_model(registries: RegistrySet, spec: AgentSpec) -> None:
    """Refuse a model for summaries that is not there; it would be missed only in a long conversation."""
    model = spec.section("compaction").get("model")
    if spec.context_policy is not None and isinstance(model, str):
        find_target(registries, spec.id, model, where="compaction model")


def _declared(registries: RegistrySet, spec: AgentSpec, plugin: str) -> PluginEntry:
    entry = registries.plugins.get(plugin)
    if entry is None:
        raise PluginNotFound(spec.id, plugin, registries.plugins)
    return entry


def _defaults(spec: AgentSpec) -> list[PluginEntry]:
    return [
        _required(LoopActionHandlersPlugin()),
        _required(MaxRoundsPlugin(spec.max_rounds, spec.stop_conditions)),
    ]


def _conditional(found: Found, declared: Sequence[PluginEntry]) -> list[PluginEntry]:
    spec, model = found.spec, found.target.model
    implied: list[RuntimePlugin] = []
    if "permissions" in spec.sections and not any(
        isinstance(entry.plugin, permissions.PermissionsPlugin) for entry in declared
    ):
        implied.append(permissions.PermissionsPlugin())
    if spec.handoffs:
        implied.append(HandoffPlugin({declared_name(handoff): handoff.agent for handoff in spec.handoffs}))
    if "results" in spec.sections:
        implied.append(LargeResultsPlugin())
    if spec.context_policy is not None:
        implied.append(context.CompactionPlugin(spec.context_policy, model))
        implied.append(context.ContextTransformPlugin(spec.context_policy, model))
    return [_required(plugin) for plugin in implied]


def _required(plugin: RuntimePlugin) -> PluginEntry:
    return PluginEntry.of(plugin.name, plugin, required=True)


def _check_unique(spec: AgentSpec, entries: Iterable[PluginEntry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise EnvBuildError(
                spec.id,
                entry.id,
                "its id is that of a plugin of the runtime",
                hint="register it under another id",
            )
        seen.add(entry.id)


def _without_disabled(settings: dict[str, Any], required: set[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings with required plugins taken off the list of disabled ones."""
    disabled = settings.get("disabled_plugins") or []
    if required.isdisjoint(disabled):
        return settings, []
    names = [name for name in disabled if name in required]
    kept = [name for name in disabled if name not in required]
    warnings = [f"plugin {name!r} cannot be disabled: the runtime needs it" for name in names]
    return {**settings, "disabled_plugins": kept}, warnings


def _ignored(found: Found) -> list[str]:
    """Return warnings for settings that fields of the declaration decide."""
    fields = {"provider": "model", "allowed_tools": "allowed_tools"}
    if found.target.model.model:
        fields["model"] = "model"
    return [
        f"config[{key!r}] of agent {found.spec.id!r} is ignored: its field {field!r} decides that"
        for key, field in fields.items()
        if key in found.spec.section("config")
    ]


def _has_a_place(registries: RegistrySet, entry: PluginEntry) -> bool:
    providers = (provider.wrapper for _, provider in registries.providers.items())
    return not isinstance(entry.wrapper, ExtensionWrapper) or any(
        _goes_with(entry.wrapper, provider) for provider in providers
    )


def _goes_with_none(entry: PluginEntry) -> str:
    names = _providers_of(entry.plugin)
    return f"extension {entry.id!r} does nothing: none of the providers it is for is registered ({names!r})"


def request_config(chain: Chain, spec: AgentSpec, target: Target) -> dict[str, Any]:
    """Return the configuration of requests to a model: provider, model, then the agent's own settings."""
    tools = tool_settings(spec)
    config = {
        **target.provider.config,
        **target.model.config,
        **chain.settings,
        "provider": target.provider.id,
    }
    config.pop("allowed_tools", None)  # the agent's field of that name decides
    if target.model.model:
        config["model"] = target.model.model
    if tools.timeout is not None:
        config["tool_timeout"] = tools.timeout
    if tools.timeouts:
        config["tool_timeouts"] = dict(tools.timeouts)
    return config


def build_core(
    registries: RegistrySet,
    spec: AgentSpec,
    chain: Chain,
    tools: Sequence[ToolEntry],
    models: ModelDiscoveryCache,
) -> AgentCore:
    """Return a core with all providers, the agent's plugins and the given tools."""
    core = AgentCore(models)
    extensions = [entry.wrapper for entry in chain.entries if isinstance(entry.wrapper, ExtensionWrapper)]
    providers = [_extended(provider.wrapper, extensions) for _, provider in registries.providers.items()]
    others = [entry.wrapper for entry in chain.entries if not isinstance(entry.wrapper, ExtensionWrapper)]
    try:
        core.register_wrapped(*providers, *others, *(tool.wrapper for tool in tools))
    except DuplicatePluginError as error:
        raise EnvBuildError(
            spec.id, error.plugin, error.problem, hint="give one of the two another id"
        ) from error
    return core


def _extended(provider: ProviderWrapper, extensions: Sequence[ExtensionWrapper]) -> ProviderWrapper:
    for extension in extensions:
        if _goes_with(extension, provider):
            provider = provider.with_extension(extension)
    return provider


def _goes_with(extension: ExtensionWrapper, provider: ProviderWrapper) -> bool:
    names = _providers_of(extension.plugin)
    own_name = getattr(provider.plugin, "name", None)
    return names is None or provider.name in names or own_name in names


def _providers_of(extension: object) -> Any:
    """Return the providers that an extension is for, by id or own name; None for all."""
    names = getattr(extension, "providers", None)
    return (names,) if isinstance(names, str) else names


def enable(core: AgentCore, spec: AgentSpec, chain: Chain, config: dict[str, Any]) -> Resolution:
    """Let tags and the plugins' own opinions decide who is on.

    Raises:
        ModelNotFound, PluginNotFound, InvalidPluginConfig, EnvBuildError: If that cannot be decided.
    """
    try:
        return core.resolve(config, required=chain.required)
    except ModelNotFoundError as error:
        raise ModelNotFound(spec.id, str(error.name), error.known, where="the provider's model") from error
    except PluginNotFoundError as error:
        raise PluginNotFound(spec.id, str(error.name), error.known) from error
    except PluginError as error:
        hint = "correct the plugin or its settings"
        raise EnvBuildError(spec.id, error.plugin, f"{error.hook} {error.problem}", hint=hint) from error
    except AgentError as error:
        if isinstance(error, ResolveError):
            raise
        raise InvalidPluginConfig(spec.id, "core", "config", str(error)) from error


def enabled_entries(chain: Chain, decisions: Iterable[Decision]) -> tuple[PluginEntry, ...]:
    """Return the plugins that are on, in the order of the chain."""
    on = {decision.plugin for decision in decisions if decision.enabled}
    return tuple(entry for entry in chain.entries if entry.id in on)


def place(spec: AgentSpec, entries: Sequence[PluginEntry]) -> PluginRegistrar:
    """Let every plugin place what it wants into the agent's runs.

    Raises:
        EnvBuildError: If a plugin's `register` fails, with its name.
        ToolIdConflict: If two plugins place a tool of one id.
    """
    registrar = PluginRegistrar(spec)
    for entry in entries:
        register = getattr(entry.plugin, "register", None)
        if register is None:
            continue
        registrar.plugin = entry.id
        try:
            register(registrar)
        except ResolveError:
            raise
        except Exception as error:
            raise EnvBuildError(spec.id, entry.id, f"{type(error).__name__}: {error}") from error
    return registrar
