"""The five-line way in: one agent, one model, some tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import ArgumentError, ArgumentTypeError
from agent_core.errors import nearest
from agent_core.plugin.discovery import find_installed
from agent_core.plugin.provider import API_HOOKS
from agent_runtime.builder import AgentRuntimeBuilder
from agent_runtime.health import HealthRegistry
from agent_runtime.runs import RunRequest
from agent_runtime.specs import AgentSpec, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core import AsyncEventStream, EventStream, Session
    from agent_runtime.results import RunResult

_SHORT_NAMES = {"local": "local_llama", "openai": "openai_responses"}
_ID = "agent"


class Agent:
    """One agent, ready to talk: a thin layer on `AgentRuntimeBuilder`.

    Args:
        model: "local" for the embedded model, "provider:model" for any installed provider
            ("anthropic:claude-sonnet-5"), or a provider class or object.
        tools: Typed functions and tool plugins.
        system_prompt: The instructions that the model reads first.
        plugins: Plugins of any kind, by the id that each gets.
        config: Settings of the provider, such as its key or a temperature.
        options: Any other field of `AgentSpec`. Failed requests are repeated unless `sections` has a
            retry section of its own.

    Attributes:
        runtime: The runtime behind it, for everything that this class does not offer.
    """

    def __init__(
        self,
        model: object = "local",
        *,
        tools: Sequence[object] = (),
        system_prompt: str = "",
        plugins: Mapping[str, object] | None = None,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        provider, name = _provider(model)
        # Native history is kept by the provider's id: a session may go on with an agent of another provider.
        provider_id = _name_of(provider)
        model_id = f"{provider_id}:{name}" if name else provider_id
        sections = {"retry": {}, **options.pop("sections", {})}
        plugin_ids = (*options.pop("plugin_ids", ()), *(plugins or {}))
        spec = AgentSpec(
            _ID, model_id, system_prompt=system_prompt, plugin_ids=plugin_ids, sections=sections, **options
        )
        # Two agents may ask one model at two addresses, so each has its own record of which models are down.
        builder = AgentRuntimeBuilder().with_agent_spec(spec).with_health(HealthRegistry())
        builder.with_model(ModelSpec(model_id, provider_id, name))
        builder.with_provider(provider_id, provider, config=config)
        for plugin_id, plugin in (plugins or {}).items():
            builder.with_plugin(plugin_id, plugin)
        for tool in tools:
            builder.with_tool(_name_of(tool), tool)
        self.runtime = builder.build()

    def run(self, messages: object, *, session: Session | None = None, **options: Any) -> RunResult:
        """Run the agent on a text or on messages, and return what it came to.

        Args:
            session: The conversation so far; `result.session` of the last run continues it.
            options: Any other field of `RunRequest`.

        Raises:
            AgentError: If the run failed; its `partial` may have what was produced up to then.
        """
        request = RunRequest(_ID, messages, session, stream=False, **options)
        return self.runtime.run_to_completion(request).raise_for_error()

    async def run_async(
        self, messages: object, *, session: Session | None = None, **options: Any
    ) -> RunResult:
        """Do what `run` does, on the running event loop."""
        request = RunRequest(_ID, messages, session, stream=False, **options)
        return (await self.runtime.run_to_completion_async(request)).raise_for_error()

    def stream(
        self, messages: object, *, session: Session | None = None, **options: Any
    ) -> EventStream[RunResult]:
        """Run the agent and yield its events; the stream's `result` is what it came to."""
        return self.runtime.run(RunRequest(_ID, messages, session, **options))

    def stream_async(
        self, messages: object, *, session: Session | None = None, **options: Any
    ) -> AsyncEventStream[RunResult]:
        """Do what `stream` does, on the running event loop."""
        return self.runtime.run_async(RunRequest(_ID, messages, session, **options))


def _provider(model: object) -> tuple[object, str]:
    """Return the provider that *model* means, and what the provider calls the model."""
    if not isinstance(model, str):
        if any(hasattr(model, hook) for hook in API_HOOKS):
            return model, ""
        raise ArgumentTypeError(f"model must be a name or a provider, not {type(model).__name__}")
    prefix, _, name = model.partition(":")
    provider = _SHORT_NAMES.get(prefix, prefix)
    found = {plugin.name: plugin for plugin in find_installed(kinds=["providers"])}
    chosen = found.get(provider)
    if chosen is None:
        known = nearest(provider, [*_SHORT_NAMES, *found])
        raise ArgumentError(
            f"no installed plugin provides the model {model!r}: {known}; "
            'write "provider:model", for example "anthropic:claude-sonnet-5"'
        )
    if chosen.problem is not None:
        raise ArgumentError(f"the plugin of {model!r} cannot be loaded: {chosen.problem}")
    return chosen.plugin, name


def _name_of(tool: object) -> str:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return str(name)
