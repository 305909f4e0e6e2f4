"""Stage 3: the tools that the model may call."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agent_core.config import names
from agent_core.errors import AgentError, PluginError, ToolIdConflictError
from agent_core.frozen import FrozenDict, FrozenList, freeze
from agent_core.interop import ToolInteropRegistry, ToolInteropTarget
from agent_core.models import ToolDescriptor
from agent_core.plugin.hooks import calling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.plugin.feature import FeatureWrapper
    from agent_core.plugin.tool import ToolWrapper
    from agent_core.resolve import Resolution


@dataclass(frozen=True, slots=True)
class ToolBinding:
    """A tool that can be called: what the model sees, and the plugin that runs it."""

    descriptor: ToolDescriptor
    plugin: ToolWrapper
    state: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """The tools of one request.

    Attributes:
        available: Everything that the enabled tool plugins offer.
        effective: What is left after allow and exclude lists and after features had their say.
        bindings: The effective ones by name, ready to be called.
        interop: Knows the formats of calls, schemas and results.
    """

    available: tuple[ToolDescriptor, ...]
    effective: tuple[ToolDescriptor, ...]
    bindings: Mapping[str, ToolBinding]
    interop: ToolInteropRegistry

    def schemas(self) -> list[FrozenDict]:
        """Return the schemas of the effective tools."""
        return [descriptor.schema for descriptor in self.effective]


def gather_tools(resolution: Resolution, context: Any = None) -> ToolTable:
    """Ask the tool plugins what they offer and the features what of it the model shall see."""
    interop = tool_interop(resolution)
    bound: dict[str, ToolBinding] = {}
    for plugin in resolution.tools:
        state = plugin.init(resolution.config, context)
        for schema in plugin.get_tool_schemas(state, context):
            _bind(bound, ToolBinding(_describe(plugin, schema, interop), plugin, state))
    available = tuple(binding.descriptor for binding in bound.values())
    effective = _apply_features(resolution, _allowed(available, resolution.config), context)
    bindings = {
        tool.name: ToolBinding(tool, bound[tool.name].plugin, bound[tool.name].state) for tool in effective
    }
    return ToolTable(available=available, effective=effective, bindings=bindings, interop=interop)


def provider_schemas(resolution: Resolution, table: ToolTable) -> FrozenList:
    """Return the effective schemas in the first format that the provider says it takes."""
    formats = resolution.provider.provider.tool_schema_formats
    if not formats:
        return FrozenList(table.schemas())
    target = ToolInteropTarget(resolution.provider.name)
    return FrozenList(
        freeze(table.interop.convert_tool_schema(schema, target=target, target_formats=list(formats)))
        for schema in table.schemas()
    )


def tool_interop(resolution: Resolution) -> ToolInteropRegistry:
    """Return the formats of tool calls, with those that plugins of this request add."""
    participants = (resolution.provider.provider, *resolution.tools)
    adding = [plugin for plugin in participants if plugin.has("register_tool_formats")]
    if not adding:
        return _STANDARD
    registry = _STANDARD.copy()
    for plugin in adding:
        hook = plugin.hook("register_tool_formats")
        with calling(plugin.name, "register_tool_formats"):
            assert hook is not None
            hook(registry)
    return registry


_STANDARD = ToolInteropRegistry.default()


def _describe(plugin: ToolWrapper, schema: dict[str, Any], interop: ToolInteropRegistry) -> ToolDescriptor:
    try:
        inspected = interop.inspect_schema(schema)
    except AgentError as error:
        raise PluginError(plugin.name, "get_tool_schemas", str(error)) from error
    return ToolDescriptor(
        name=inspected.name, schema=freeze(schema), plugin=plugin.name, description=inspected.description
    )


def _bind(bound: dict[str, ToolBinding], binding: ToolBinding) -> None:
    name = binding.descriptor.name
    if name in bound:
        raise ToolIdConflictError(name, (bound[name].plugin.name, binding.plugin.name))
    bound[name] = binding


def _allowed(tools: Sequence[ToolDescriptor], config: FrozenDict) -> tuple[ToolDescriptor, ...]:
    """Apply the lists of the configuration; patterns are allowed, and excluding wins."""
    allowed, excluded = config.get("allowed_tools"), names(config, "excluded_tools")
    return tuple(
        tool
        for tool in tools
        if (allowed is None or _matches(tool.name, allowed)) and not _matches(tool.name, excluded)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _apply_features(
    resolution: Resolution, tools: tuple[ToolDescriptor, ...], context: Any
) -> tuple[ToolDescriptor, ...]:
    known = {tool.name for tool in tools}
    for feature in resolution.features:
        if feature.has("prepare_tools"):
            tools = tuple(feature.prepare_tools(tools, resolution.config, context))
            _check_known(feature, tools, known)
    return tools


def _check_known(feature: FeatureWrapper, tools: Sequence[ToolDescriptor], known: set[str]) -> None:
    for tool in tools:
        if tool.name not in known:
            raise PluginError(
                feature.name, "prepare_tools", f"offers {tool.name!r}, which no tool plugin runs"
            )
