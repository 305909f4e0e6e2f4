"""A plugin under examination, with what its author said about how."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent_core.core import AgentCore
from agent_core.errors import ArgumentError
from agent_core.functions import tool
from agent_core.plugin.extension import ExtensionWrapper
from agent_core.plugin.feature import FeatureWrapper
from agent_core.plugin.provider import API_HOOKS, ProviderWrapper
from agent_core.plugin.tool import RUN_HOOKS, ToolWrapper
from agent_core.testing.conformance.report import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_core.plugin.base import PluginWrapper
    from agent_core.session import Session
    from agent_core.testing.conformance.examine import Flaw

WRAPPERS: Mapping[str, Callable[[Any], PluginWrapper]] = {
    "provider": ProviderWrapper,
    "extension": ExtensionWrapper,
    "feature": FeatureWrapper,
    "tool": ToolWrapper,
}
_LISTED = 4
_NO_EXCHANGE = (
    "no exchange was given, so no request can be sent and get_models, process_chunk and finalize are not "
    "looked at: say how the provider is answered without a network"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question to which the provider has an answer without a network.

    Any number of requests may be sent in one exchange, and all must be answered alike.

    Attributes:
        messages: The conversation that is sent, as dicts with role and content.
        config: What the configuration needs besides, for example the address of a local server.
    """

    messages: Sequence[Mapping[str, Any]] = ({"role": "user", "content": "Count to three, please."},)
    config: Mapping[str, Any] = field(default_factory=dict)


Exchanging = Exchange | AbstractContextManager[Exchange] | None


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything that the checks need to know."""

    kind: str
    make_plugin: Callable[[], Any]
    make_provider: Callable[[], Any]
    exchange: Callable[[], Exchanging]
    config: Mapping[str, Any]
    action_params: Mapping[str, Mapping[str, Any] | None]
    tool_calls: Mapping[str, Any]

    @cached_property
    def wrapper(self) -> PluginWrapper:
        """The plugin as the pipeline sees it, one and the same for all checks of single hooks."""
        return WRAPPERS[self.kind](as_plugin(self.kind, self.make_plugin()))

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.wrapper.name

    @cached_property
    def flaws(self) -> list[Flaw]:
        """What is wrong with single hooks; several checks ask for it."""
        from agent_core.testing.conformance.examine import examine

        return examine(self)

    @contextmanager
    def answered(self) -> Iterator[Exchange]:
        """Hold an exchange open.

        Raises:
            NotApplicable: If the author gave none.
        """
        given = self.exchange()
        if given is None:
            raise NotApplicable(_NO_EXCHANGE)
        with nullcontext(given) if isinstance(given, Exchange) else given as exchange:
            yield exchange

    def core(self, plugin: Any = None) -> AgentCore:
        """Return a core with a new plugin and, if that is no provider, with a provider beside it."""
        core = AgentCore()
        plugin = as_plugin(self.kind, self.make_plugin()) if plugin is None else plugin
        if self.kind == "provider":
            core.register_provider(plugin)
            return core
        core.register_provider(self.make_provider(), [plugin] if self.kind == "extension" else [])
        if self.kind == "feature":
            core.register_feature(plugin)
        elif self.kind == "tool":
            core.register_tool(plugin)
        return core

    def request_config(self, exchange: Exchange | None = None) -> dict[str, Any]:
        """Return a configuration with which the plugin is on."""
        config = {**self.config, **(exchange.config if exchange else {})}
        if self.kind != "provider":
            config["force_enabled_plugins"] = [*config.get("force_enabled_plugins", ()), self.name]
        return config

    def require(self, *hooks: str) -> None:
        """Go on only if the plugin wrote one of the hooks.

        Raises:
            NotApplicable: If it did not.
        """
        if not any(self.wrapper.has(hook) for hook in hooks):
            possible = [spec.name for spec in self.wrapper.hooks if spec.name in hooks]
            raise NotApplicable(f"the plugin does not write {_either(possible)}")

    def trust(self, *hooks: str) -> None:
        """Go on only if nothing is wrong with these hooks, as another check will have told.

        Raises:
            NotApplicable: If something is.
        """
        for flaw in self.flaws:
            if flaw.hook in hooks:
                raise NotApplicable(f"{flaw.hook} has to be mended first: it {flaw.problem}")


def _either(hooks: Sequence[str]) -> str:
    return " or ".join(hooks) if len(hooks) <= _LISTED else "any of the hooks that this is about"


def session_of(core: AgentCore, messages: Sequence[Mapping[str, Any]]) -> Session:
    """Return a session with these messages, the same each time."""
    session = core.create_session("conformance")
    for message in messages:
        session = core.add_message(
            session,
            message["role"],
            message["content"],
            dict(message.get("metadata") or {}),
            tool_result=message.get("tool_result"),
        )
    return session


def kind_of(plugin: Any) -> str:
    """Tell a plugin's kind by its methods, as `discover_and_register` does; a function is a tool."""
    if any(hasattr(plugin, hook) for hook in API_HOOKS):
        return "provider"
    is_function = callable(plugin) and not isinstance(plugin, type) and not hasattr(plugin, "name")
    if is_function or (hasattr(plugin, "get_tool_schemas") and any(hasattr(plugin, h) for h in RUN_HOOKS)):
        return "tool"
    return "extension" if hasattr(plugin, "process_chunk") else "feature"


def check_kind(kind: str) -> str:
    """Return *kind* if it is one."""
    if kind not in WRAPPERS:
        raise ArgumentError(f"kind must be one of {list(WRAPPERS)}, not {kind!r}")
    return kind


def as_plugin(kind: str, made: Any) -> Any:
    """Return what the author made as something to register: plain functions become tools."""
    is_plugin = isinstance(made, type) or hasattr(made, "get_tool_schemas")
    return made if kind != "tool" or is_plugin else tool(made)


def instance_of(plugin: Any) -> Any:
    """Return a new object of a class, or the object itself."""
    return plugin() if isinstance(plugin, type) else plugin
