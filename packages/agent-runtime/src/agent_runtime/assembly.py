"""From the parts of an `Agent` to a runtime that runs it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from agent_core import ArgumentError, ArgumentTypeError, FunctionTool
from agent_core.config import Itself, config_key
from agent_core.errors import nearest
from agent_core.plugin.discovery import find_installed
from agent_core.plugin.provider import API_HOOKS
from agent_runtime.agent_plugin import AgentParts, AgentPlugin
from agent_runtime.builder import AgentRuntimeBuilder
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.env import Successor
from agent_runtime.errors import PACKAGES
from agent_runtime.foreign_tools import from_other_library, speaks_mcp, tools_of_mcp
from agent_runtime.handoffs import HandoffPlugin, HandoffTool
from agent_runtime.health import HealthRegistry
from agent_runtime.options import check_config
from agent_runtime.specs import AgentSpec, ModelSpec
from agent_runtime.tool_sets import Condition, DynamicToolbox, DynamicTools, ToolSet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from agent_runtime.agent_plugin import Instructions, Validator
    from agent_runtime.env import ResolvedAgent, Sees
    from agent_runtime.guardrails import Guardrail
    from agent_runtime.outputs import OutputMode, OutputType
    from agent_runtime.runtime import AgentRuntime

_SHORT_NAMES = {"local": "local_llama", "openai": "openai_responses"}
_OWN = ("allowed_tools", "config", "models", "plugins", "plugin_ids", "sections")
_FAMILIES = {"gpt": "openai", "claude": "anthropic", "gemini": "gemini"}
"""Who makes the models whose names begin so, for those who leave the provider out."""
_MOST_KEPT = 32
_kept: dict[Hashable, Assembly] = {}
"""Plain agents that were assembled: a program that makes its agent for each request makes the same one."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """An agent that may take over, with what it sees and what the model reads about it.

    Attributes:
        agent: The `Agent` that takes over.
        description: When to hand over to it; by default its own description.
        sees: What it sees of the conversation so far: a function from messages to messages, such as
            `without_tools`. By default it sees all.
        tool_name: What the tool is called; by default "transfer_to_" and the agent's name.
    """

    agent: Any
    description: str = ""
    sees: Sees | None = None
    tool_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What an `Agent` was given, by its arguments and by decorators."""

    name: str
    model: object
    system_prompt: str
    instructions: tuple[Instructions, ...] = ()
    tools: tuple[object, ...] = ()
    delegates: tuple[Any, ...] = ()
    output: OutputType
    output_mode: OutputMode
    output_retries: int
    validators: tuple[Validator, ...] = ()
    input_guardrails: tuple[Guardrail, ...] = ()
    output_guardrails: tuple[Guardrail, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A runtime built of the parts of an agent, for one model.

    Attributes:
        runtime: Runs the agent under its name.
        parts: What takes part in its runs.
        spec: The agent's declaration.
        sees: What each agent sees of the conversation that it takes over, by name.
        tool_names: The tools that the model is offered.
    """

    runtime: AgentRuntime
    parts: AgentParts
    spec: AgentSpec
    sees: Mapping[str, Sees | None]
    tool_names: tuple[str, ...]
    clock: Clock = SYSTEM_CLOCK

    @property
    def model_id(self) -> str:
        return self.spec.model

    def resolved(self, find: Callable[[str], ResolvedAgent]) -> ResolvedAgent:
        """Return the agent ready to run; *find* returns those that take over, by name."""
        handoffs = {name: Successor(partial(find, name), sees) for name, sees in self.sees.items()}
        return replace(self.runtime.resolve(self.spec.id), handoffs=handoffs)


def assemble(parts: Parts, handoffs: tuple[Handoff, ...]) -> Assembly:
    """Build a runtime; what the same parts came to before is not decided again.

    Raises:
        BuildError: With everything that is wrong.
        ArgumentError: If no installed plugin provides the model.
    """
    key = None if handoffs else _plain_key(parts)
    if key is None:
        return _assembled(parts, handoffs)
    known = _kept.get(key)
    if known is None:
        known = _assembled(parts, handoffs)
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[key] = known
    # Nobody gets the kept runtime itself: agents can be added to a runtime.
    return replace(known, runtime=known.runtime.copy())


def _plain_key(parts: Parts) -> Hashable | None:
    """Return what is equal for agents that are the same; None for one that has state or objects of its own.

    A function with a closure may hold on to what belongs to one request, so it must not be kept.
    """
    functions = (parts.instructions, parts.validators, parts.input_guardrails, parts.output_guardrails)
    if not isinstance(parts.model, str) or parts.delegates or parts.output.forms or any(functions):
        return None
    if any(one in parts.settings for one in ("plugins", "plugin_ids", "models")):
        return None
    tools: list[Hashable] = []
    for given in parts.tools:
        function = given.__wrapped__ if isinstance(given, FunctionTool) else given
        if type(function) is not FunctionType or function.__closure__ is not None:
            return None
        tools.append(function if function is given else Itself(given))
    written = (parts.name, parts.model, parts.system_prompt, parts.output_mode, parts.output_retries)
    return *written, find_provider(parts.model)[0], tuple(tools), config_key(parts.settings)


def _assembled(parts: Parts, handoffs: tuple[Handoff, ...]) -> Assembly:
    settings = parts.settings
    tools, conditions, dynamic = _tools(parts)
    agent_parts = AgentParts(
        instructions=parts.instructions,
        output=parts.output,
        validators=parts.validators,
        output_retries=parts.output_retries,
        input_guardrails=parts.input_guardrails,
        output_guardrails=parts.output_guardrails,
        conditions=conditions,
        dynamic=dynamic,
    )
    handoff_tools = [
        HandoffTool(one.agent.name, one.description or one.agent.description, one.tool_name)
        for one in handoffs
    ]
    builder, model = _with_models(parts)
    own = AgentPlugin(agent_parts)
    plugins = {**_installed(parts), **(settings.get("plugins") or {})}
    others = [*tools, *handoff_tools, *([DynamicToolbox()] if dynamic else [])]
    own.parts = agent_parts = replace(agent_parts, mode=_mode(parts, model, alone=not others))
    if agent_parts.does_something:
        plugins["agent"] = own
    if handoff_tools:
        plugins["handoffs"] = HandoffPlugin({tool.name: tool.agent for tool in handoff_tools})
    outputs = own.output_tools() if agent_parts.mode == "tool" else []
    others += outputs
    sections = {"retry": {}, **(settings.get("sections") or {})}
    allowed = settings.get("allowed_tools")
    if isinstance(allowed, (list, tuple)):  # it does not mean what the agent was given by other options
        allowed = (*allowed, *(tool.name for tool in handoff_tools), *(tool.name for tool in outputs))
    spec = AgentSpec(
        parts.name,
        model,
        system_prompt=parts.system_prompt,
        plugin_ids=tuple(dict.fromkeys([*settings.get("plugin_ids", ()), *plugins])),
        sections=sections,
        allowed_tools=allowed,
        **{key: value for key, value in settings.items() if key not in _OWN},
    )
    builder.with_agent_spec(spec)
    for plugin_id, plugin in plugins.items():
        builder.with_plugin(plugin_id, plugin)
    for tool in others:
        builder.with_tool(_name_of(tool), tool)
    runtime = builder.build()
    return Assembly(
        runtime=runtime,
        parts=agent_parts,
        spec=spec,
        sees={one.agent.name: one.sees for one in handoffs},
        tool_names=tuple(tool.name for tool in runtime.resolve(spec.id).descriptors),
    )


def _tools(parts: Parts) -> tuple[list[object], dict[str, tuple[Condition, ...]], tuple[DynamicTools, ...]]:
    """Return the tools, when each is offered, and the sets that are made for each step."""
    tools: list[object] = []
    conditions: dict[str, tuple[Condition, ...]] = {}
    dynamic = []
    for given in parts.tools:
        if isinstance(given, ToolSet):
            tools += given.tools
            conditions |= given.conditions
        elif isinstance(given, DynamicTools):
            dynamic.append(given)
        elif speaks_mcp(given):
            dynamic.append(DynamicTools(tools_of_mcp(given)))
        else:
            tools.append(_own_or_foreign(given))
    tools += [agent.as_tool(f"delegate_{agent.name}") for agent in parts.delegates]
    return tools, conditions, tuple(dynamic)


def _own_or_foreign(given: object) -> object:
    if isinstance(given, FunctionTool) or hasattr(given, "get_tool_schemas"):
        return given
    return from_other_library(given) or given


def _with_models(parts: Parts) -> tuple[AgentRuntimeBuilder, str]:
    """Return a builder with the models and providers of an agent, and the id of the model that it asks."""
    # Two agents may ask one model at two addresses, so each has its own record of which models are down.
    builder = AgentRuntimeBuilder().with_health(HealthRegistry())
    declared = {model.id: model for model in parts.settings.get("models") or ()}
    config = parts.settings.get("config")
    registered: set[str] = set()
    if isinstance(parts.model, str) and parts.model in declared:
        model_id = parts.model
        own = declared[model_id].provider
    else:
        provider, name = find_provider(parts.model)
        check_config(config, provider)
        # Native history is kept by the provider's id: a session may get an agent of another provider.
        own = _name_of(provider)
        model_id = f"{own}:{name}" if name else own
        builder.with_model(ModelSpec(model_id, own, name))
        builder.with_provider(own, provider, config=config)
        registered.add(own)
    for model in declared.values():
        builder.with_model(model)
        if model.provider not in registered:
            registered.add(model.provider)
            found, _ = find_provider(model.provider)
            check_config(config if model.provider == own else None, found)
            builder.with_provider(model.provider, found, config=config if model.provider == own else None)
    return builder, model_id


def provider_id(parts: Parts, model: object) -> str | None:
    """Return the id of the provider that a model of an agent has, if the model is given by its name."""
    if not isinstance(model, str):
        return None
    declared = {one.id: one.provider for one in parts.settings.get("models") or ()}
    named = declared.get(model) or model.partition(":")[0]
    return _SHORT_NAMES.get(named, named)


def _mode(parts: Parts, model: str, *, alone: bool) -> OutputMode:
    """Return by which way the model gives its output: what was asked for, or what it can do best."""
    if parts.output_mode != "auto" or not parts.output.forms:
        return parts.output_mode if parts.output_mode != "auto" else "tool"
    probe = _with_models(parts)[0].with_agent_spec(AgentSpec(parts.name, model)).build_unchecked()
    resolved = probe.resolve(parts.name)
    tags = resolved.core.resolve(dict(resolved.config)).tags
    if "structured_output" in tags and alone and parts.output.fits_a_schema:
        return "native"
    return "prompt" if tags and "tools" not in tags and parts.output.fits_a_schema else "tool"


def find_provider(model: object) -> tuple[object, str]:
    """Return the provider that *model* means, and what the provider calls the model.

    Raises:
        ArgumentError: If no installed plugin provides it.
        ArgumentTypeError: If it is neither a name nor a provider.
    """
    if not isinstance(model, str):
        if any(hasattr(model, hook) for hook in API_HOOKS):
            return model, ""
        raise ArgumentTypeError(f"model must be a name or a provider, not {type(model).__name__}")
    prefix, _, name = model.partition(":")
    provider = _SHORT_NAMES.get(prefix, prefix)
    found = {plugin.name: plugin for plugin in find_installed(kinds=["providers"])}
    chosen = found.get(provider)
    if chosen is None:
        if provider in PACKAGES:
            raise ArgumentError(
                f"no installed plugin provides the model {model!r}: install it with "
                f"`pip install {PACKAGES[provider]}`"
            )
        if guess := _with_provider(model):
            raise ArgumentError(
                f"a model is written with its provider: write {guess!r} in place of {model!r}"
            )
        known = nearest(provider, [*_SHORT_NAMES, *found])
        named = "" if ":" in model else f"; the name of an agent is given as name={model!r}"
        write = " Write" if known.endswith("?") else "; write"
        raise ArgumentError(
            f"no installed plugin provides the model {model!r}: {known}{write} "
            f'"provider:model", for example "anthropic:claude-sonnet-5"{named}'
        )
    if chosen.problem is not None:
        raise ArgumentError(f"the plugin of {model!r} cannot be loaded: {chosen.problem}")
    return chosen.plugin, name


def _with_provider(model: str) -> str:
    """Return a model as it is written here, if its name or another library's spelling tells the provider."""
    prefix, slash, name = model.partition("/")
    if slash and prefix in _FAMILIES.values():
        return f"{prefix}:{name}"
    family = model.partition("-")[0]
    return f"{_FAMILIES[family]}:{model}" if ":" not in model and family in _FAMILIES else ""


def _installed(parts: Parts) -> dict[str, object]:
    """Return the installed plugins that `plugin_ids` names.

    Raises:
        ArgumentError: If one of them cannot be loaded.
    """
    wanted = set(parts.settings.get("plugin_ids") or ()) - set(parts.settings.get("plugins") or ())
    if not wanted:
        return {}
    found = [one for one in find_installed(kinds=("extensions", "features", "tools")) if one.name in wanted]
    for one in found:
        if one.problem is not None:
            raise ArgumentError(f"the plugin {one.name!r} cannot be loaded: {one.problem}")
    return {one.name: one.plugin for one in found}


def _name_of(tool: object) -> str:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return str(name)
