"""Stage 3: the tools that the model may call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from agent_core import interop
from agent_core.config import names
from agent_core.errors import AgentError, ArgumentError, PluginError, ToolIdConflictError
from agent_core.frozen import EMPTY, Dicts, FrozenDict, FrozenList, JsonObject, State, freeze
from agent_core.models import ToolDescriptor
from agent_core.plugin.hooks import calling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.interop import ToolInteropRegistry, ToolInteropTarget
    from agent_core.plugin.feature import FeatureWrapper
    from agent_core.plugin.tool import ToolWrapper
    from agent_core.resolve import Resolution


_REMEMBERED_SCHEMAS = 1024


@dataclass(frozen=True, slots=True)
class ToolBinding:
    """A tool that can be called: what the model sees, and the plugin that runs it."""

    descriptor: ToolDescriptor
    plugin: ToolWrapper
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """The tools of one request.

    Attributes:
        available: Everything that the enabled tool plugins offer.
        effective: What is left after allow and exclude lists and after features had their say.
        bindings: The effective ones by name, ready to be called.
        own_interop: The formats of calls, schemas and results, if plugins added some.
    """

    available: tuple[ToolDescriptor, ...]
    effective: tuple[ToolDescriptor, ...]
    bindings: Mapping[str, ToolBinding]
    own_interop: ToolInteropRegistry | None

    @property
    def interop(self) -> ToolInteropRegistry:
        """What knows the formats of calls, schemas and results."""
        return self.own_interop or _standard_interop()

    def schemas(self) -> Dicts:
        return [descriptor.schema for descriptor in self.effective]


def gather_tools(resolution: Resolution, context: object = None) -> ToolTable:
    """Collect the tools that plugins offer, as the features filter and describe them for the model."""
    if resolution.fixed_tools is not None:
        return resolution.fixed_tools
    interop = _added_interop(resolution)
    bound: dict[str, ToolBinding] = {}
    for plugin in resolution.tools:
        for binding in _offered(plugin, resolution, context, interop):
            _bind(bound, binding)
    available = tuple(binding.descriptor for binding in bound.values())
    effective = _apply_features(resolution, _allowed(available, resolution.config), context, interop)
    bindings = {
        tool.name: ToolBinding(tool, bound[tool.name].plugin, bound[tool.name].state) for tool in effective
    }
    table = ToolTable(available=available, effective=effective, bindings=bindings, own_interop=interop)
    if (
        interop is None
        and all(plugin.stateless for plugin in resolution.tools)
        and not resolution.followers("prepare_tools")
    ):
        resolution.fix_tools(table)
    return table


def provider_config(resolution: Resolution, table: ToolTable) -> FrozenDict:
    """Return the configuration that the plugins of a request get: with the schemas of its tools."""
    fixed = table is resolution.fixed_tools
    return resolution.config_with(lambda: _provider_schemas(resolution, table), fixed=fixed)


_converted: dict[tuple[int, tuple[str, ...]], tuple[JsonObject, FrozenDict]] = {}


def _convert(
    table: ToolTable, schema: JsonObject, target: ToolInteropTarget, formats: tuple[str, ...]
) -> FrozenDict:
    """Return a schema in one of the formats; a frozen one in the standard formats is converted once."""
    key = (id(schema), formats)
    known = _converted.get(key) if table.own_interop is None else None
    if known is not None and known[0] is schema:
        return known[1]
    made: FrozenDict = freeze(
        table.interop.convert_tool_schema(schema, target=target, target_formats=formats)
    )
    if table.own_interop is None and isinstance(schema, FrozenDict):
        if len(_converted) >= _REMEMBERED_SCHEMAS:
            _converted.clear()  # most are of tools that are gone; the others are soon converted again
        _converted[key] = (schema, made)  # with its schema, so that no other object can get its id
    return made


def _offered(
    plugin: ToolWrapper, resolution: Resolution, context: object, added: ToolInteropRegistry | None
) -> tuple[ToolBinding, ...]:
    """Return the plugin's tools; one without state that always offers the same is asked once."""
    offer = plugin.offer if added is None else None
    if offer is None:
        state = plugin.init(resolution.config, context)
        interop = added or _standard_interop()
        schemas = plugin.get_tool_schemas(state, context)
        offer = tuple([_describe(plugin, schema, interop) for schema in schemas]), state
        if plugin.stateless and added is None:
            plugin.offer = offer
    tools, state = offer
    return tuple([ToolBinding(tool, plugin, state) for tool in tools])


def _provider_schemas(resolution: Resolution, table: ToolTable) -> FrozenList:
    """Return the effective schemas in the first format that the provider says it takes."""
    formats = resolution.provider.provider.tool_schema_formats
    if not formats or not table.effective:
        return FrozenList(table.schemas())
    target = interop.ToolInteropTarget(resolution.provider.name)
    try:
        return FrozenList(_convert(table, schema, target, formats) for schema in table.schemas())
    except ArgumentError as error:
        raise PluginError(resolution.provider.name, "tool_schema_formats", str(error)) from error


def _added_interop(resolution: Resolution) -> ToolInteropRegistry | None:
    """Return the formats of tool calls with those that plugins of this request add, if any do."""
    participants = (resolution.provider.provider, *resolution.tools)
    adding = [plugin for plugin in participants if plugin.has("register_tool_formats")]
    if not adding:
        return None
    registry = _standard_interop().copy()
    for plugin in adding:
        hook = plugin.hook("register_tool_formats")
        with calling(plugin.name, "register_tool_formats"):
            assert hook is not None
            hook(registry)
    return registry


@cache
def _standard_interop() -> ToolInteropRegistry:
    """Return the formats that everyone knows; loaded when the first tool is looked at."""
    return interop.ToolInteropRegistry.default()


def _describe(plugin: ToolWrapper, schema: JsonObject, interop: ToolInteropRegistry) -> ToolDescriptor:
    try:
        inspected, frozen = interop.inspect_schema(schema), freeze(schema)
    except AgentError as error:
        raise PluginError(plugin.name, "get_tool_schemas", str(error)) from error
    except RecursionError:
        raise PluginError(plugin.name, "get_tool_schemas", "a schema is nested too deeply") from None
    return ToolDescriptor(
        name=inspected.name, schema=frozen, plugin=plugin.name, description=inspected.description
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
    resolution: Resolution,
    tools: tuple[ToolDescriptor, ...],
    context: object,
    interop: ToolInteropRegistry | None,
) -> tuple[ToolDescriptor, ...]:
    for feature in resolution.features:
        if feature.has("prepare_tools"):
            offered = {tool.name: tool for tool in tools}
            answer = feature.prepare_tools(tools, resolution.config, context)
            _check_known(feature, answer, offered)
            formats = interop or _standard_interop()
            tools = tuple(_agreeing(feature, tool, offered[tool.name], formats) for tool in answer)
    return tools


def _check_known(
    feature: FeatureWrapper, tools: Sequence[ToolDescriptor], offered: Mapping[str, ToolDescriptor]
) -> None:
    names = [tool.name for tool in tools]
    for name in names:
        if name not in offered:
            raise _misprepared(feature, f"offers {name!r}, which is not among the tools that it was given")
        if names.count(name) > 1:
            raise _misprepared(feature, f"offers {name!r} more than once")


def _agreeing(
    feature: FeatureWrapper, tool: ToolDescriptor, before: ToolDescriptor, interop: ToolInteropRegistry
) -> ToolDescriptor:
    """Return the tool with its schema and its description saying the same, whichever is new."""
    if tool is before:
        return tool
    schema: FrozenDict = freeze(tool.schema)
    if tool.description != before.description and schema == before.schema:
        schema = freeze(_redescribed(schema, tool.description))
    try:
        inspected = interop.inspect_schema(schema)
    except AgentError as error:
        raise _misprepared(feature, str(error)) from error
    if inspected.name != tool.name:
        raise _misprepared(feature, f"gave {tool.name!r} a schema of {inspected.name!r}")
    return replace(
        tool, schema=schema, description=inspected.description, prepared=freeze(tool.prepared or EMPTY)
    )


def _redescribed(schema: FrozenDict, description: str) -> JsonObject:
    for inner in ("function", "custom"):
        if isinstance(schema.get(inner), dict):
            return {**schema, inner: {**schema[inner], "description": description}}
    return {**schema, "description": description}


def _misprepared(feature: FeatureWrapper, problem: str) -> PluginError:
    return PluginError(feature.name, "prepare_tools", problem)
