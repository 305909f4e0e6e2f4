"""One pure decision: everything that a request needs, from values alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.provider import BoundProvider
from agent_core.plugin.tool import ToolWrapper
from agent_core.resolve.enable import Decision, Settled, admit, settle
from agent_core.resolve.lookup import (
    check_keys,
    check_model,
    check_names,
    discover_models,
    select_provider,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from agent_core.frozen import FrozenList
    from agent_core.messages import Message
    from agent_core.models import ModelDiscoveryCache, ModelSnapshot
    from agent_core.plugin.feature import NativeSideWrapper
    from agent_core.plugin.registry import Registry
    from agent_core.resolve.tools import ToolTable

__all__ = ["Decision", "Resolution", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Who takes part in a request, and why.

    Attributes:
        config: The configuration, with the defaults of the plugins that are on.
        provider: The provider with the extensions that are on.
        features: In the order in which they run: by priority, then by registration.
        tools: The tool plugins that are on, ordered likewise.
        decisions: One for every registered plugin.
        warnings: What the configuration's author should know.
    """

    config: FrozenDict = field(repr=False)  # may have a key in it
    provider: BoundProvider
    features: tuple[FeatureWrapper, ...]
    tools: tuple[ToolWrapper, ...]
    tags: FrozenList
    snapshot: ModelSnapshot
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...] = field(default=())
    # What follows from the rest and is asked for at every request, found out at the first.
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def followers(self, hook: str) -> tuple[NativeSideWrapper, ...]:
        """Return the extensions and features that wrote a hook, in the order in which they are called."""
        found: tuple[NativeSideWrapper, ...] | None = self._known.get(hook)
        if found is None:
            plugins = (*self.provider.extensions, *self.features)
            found = self._known[hook] = tuple(plugin for plugin in plugins if plugin.has(hook))
        return found

    @property
    def converts_alike(self) -> bool:
        """Whether a message has the same native items in every request, since nobody looks at the state."""
        if "converts_alike" not in self._known:
            hook = "to_native_messages"
            sees = self.provider.provider.takes(hook, "state", "context")
            self._known["converts_alike"] = not sees and not self.followers(hook)
        return bool(self._known["converts_alike"])

    def front_items(
        self, front: tuple[Message, ...], convert: Callable[[], Sequence[FrozenDict]]
    ) -> Sequence[FrozenDict]:
        """Return the native items of what stands before a conversation, converted anew if it is another."""
        known: tuple[tuple[Message, ...], Sequence[FrozenDict]] | None = self._known.get("front")
        if known is None or known[0] != front:
            known = self._known["front"] = front, convert()
        return known[1]

    @property
    def needs_context(self) -> bool:
        """Whether any plugin looks at the context of a request; making it costs a little."""
        if "needs_context" not in self._known:
            plugins = (self.provider.provider, *self.provider.extensions, *self.features)
            self._known["needs_context"] = any(plugin.wants_context() for plugin in plugins) or any(
                tool.wants_context("init", "get_tool_schemas") for tool in self.tools
            )
        return bool(self._known["needs_context"])

    @property
    def fixed_tools(self) -> ToolTable | None:
        """The tools, once they were gathered, if no plugin's answer depends on the request."""
        return self._known.get("fixed_tools")

    def fix_tools(self, table: ToolTable) -> None:
        """Note that every request has these tools."""
        self._known["fixed_tools"] = table

    def config_with(self, tools: Callable[[], FrozenList], *, fixed: bool) -> FrozenDict:
        """Return the configuration with the schemas of tools, as plugins get it; made once if fixed."""
        config: FrozenDict | None = self._known.get("config_with_tools") if fixed else None
        if config is None:
            config = FrozenDict({**self.config, "tools": tools()})
            if fixed:
                self._known["config_with_tools"] = config
        return config

    @property
    def models(self) -> FrozenList:
        """The models that the provider offers."""
        return self.snapshot.models

    @property
    def model(self) -> str | None:
        """The model that the configuration asks for."""
        return self.config.get("model")


def resolve(
    registry: Registry,
    config: FrozenDict,
    cache: ModelDiscoveryCache,
    *,
    required: Collection[str] = (),
    provider_optional: bool = False,
) -> Resolution:
    """Decide everything that a request with this configuration needs.

    Args:
        cache: Where discovered models are remembered; discovery is the only part that may touch
            the network.
        required: Names of plugins that no setting can switch off.
        provider_optional: Whether it will do if none is registered; tools can run without.
    """
    provider = select_provider(registry, config, optional=provider_optional)
    warnings = [*check_names(registry, config, required), *check_keys(registry, config)]
    offered = (*provider.extensions, *registry.features, *registry.tools)
    candidates, refused = admit(offered, config, required)
    on_native_side = [plugin for plugin in candidates if not isinstance(plugin, ToolWrapper)]
    about_models, _ = with_defaults(config, [provider, *on_native_side])
    snapshot = discover_models(provider, candidates, about_models, cache)
    check_model(provider, config, snapshot)
    usual, _ = with_defaults(config, [provider, *candidates])
    settled = settle(provider, candidates, usual, snapshot.models, required)
    config, disputed = with_defaults(config, [provider, *settled.plugins])
    return Resolution(
        config=config,
        provider=BoundProvider(provider, _of_kind(settled, ExtensionWrapper)),
        features=_by_priority(_of_kind(settled, FeatureWrapper)),
        tools=_by_priority(_of_kind(settled, ToolWrapper)),
        tags=settled.tags,
        snapshot=snapshot,
        decisions=_in_order(registry, provider, [*refused, *settled.decisions]),
        warnings=(*warnings, *disputed, *settled.warnings),
    )


def _of_kind(settled: Settled, kind: type[Any]) -> tuple[Any, ...]:
    return tuple(plugin for plugin in settled.plugins if isinstance(plugin, kind))


def _by_priority(plugins: tuple[object, ...]) -> tuple[Any, ...]:
    return tuple(sorted(plugins, key=lambda plugin: plugin.priority))


def _in_order(registry: Registry, chosen: Any, decided: list[Decision]) -> tuple[Decision, ...]:
    """Return one decision per plugin, in the order of registration."""
    by_name = {(decision.kind, decision.plugin): decision for decision in decided}
    decisions: list[Decision] = []
    for provider in registry.providers:
        decisions.append(_about_provider(provider.name, chosen.name))
        for extension in provider.extensions:
            known = by_name.get(("extension", extension.name)) if provider is chosen else None
            decisions.append(known or _of_other_provider(extension.name, provider.name))
    decisions += [by_name[plugin.kind, plugin.name] for plugin in (*registry.features, *registry.tools)]
    return tuple(decisions)


def _about_provider(name: str, chosen: str) -> Decision:
    on = name == chosen
    detail = "the configuration selects it" if on else f"the configuration selects {chosen!r}"
    reason = "selected" if on else "not_selected"
    return Decision(plugin=name, kind="provider", enabled=on, reason=reason, detail=detail, round=0)


def _of_other_provider(name: str, provider: str) -> Decision:
    return Decision(
        plugin=name, kind="extension", enabled=False, reason="not_selected", round=0,
        detail=f"its provider {provider!r} is not selected",
    )  # fmt: skip
