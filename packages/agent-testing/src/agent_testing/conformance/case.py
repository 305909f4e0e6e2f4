"""A plugin under test: what its author said about it, the sample conversation, and what the checks found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core.core import AgentCore
from agent_core.errors import ArgumentError
from agent_core.frozen import freeze, thaw
from agent_core.functions import tool
from agent_core.models import ToolDescriptor
from agent_core.plugin.feature import ExtensionWrapper, FeatureWrapper
from agent_core.plugin.provider import ProviderWrapper
from agent_core.plugin.tool import ToolWrapper
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core.plugin.base import PluginWrapper
    from agent_core.session import Session
    from agent_provider_kit import Config, Dicts, JsonObject

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"word":"tea"}'},
}
ANSWER = {"role": "assistant", "content": "It is a drink.", "metadata": {}}
_CONVERSATION = freeze(
    [
        {"role": "system", "content": "Be brief.", "metadata": {}},
        {"role": "user", "content": "What is tea?", "metadata": {}},
        {"role": "assistant", "content": "Let me look.", "metadata": {"tool_calls": [CALL]}},
        {
            "role": "tool",
            "content": "tea: a drink",
            "metadata": {"tool_call_id": "call_1", "tool_name": "look_up"},
            "tool_result": {"type": "tool_result", "text": "tea: a drink"},
        },
        ANSWER,
        {"role": "user", "content": "Thank you.", "metadata": {}},
    ]
)
PARTS = {
    "role": "user",
    "content": "What is this?",
    "metadata": {},
    "multipartContent": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAADs="}},
    ],
}
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


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a plugin does wrong.

    Attributes:
        check: The check that found it.
        hook: The hook in which it shows.
        problem: What is wrong, in words that help to fix it.
        plugin: The plugin's name.
    """

    check: str
    hook: str
    problem: str
    plugin: str = ""

    def __str__(self) -> str:
        return f"Plugin {self.plugin!r}, hook {self.hook!r}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that was not made, and why."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """The outcome of all checks that there are for a kind of plugin; each is in one of three lists.

    Attributes:
        plugin: The plugin's name.
        kind: provider, extension, feature or tool.
        findings: What is wrong; a check may find several things.
        skipped: The checks that do not apply, each with its reason.
        passed: The names of the checks that found nothing.
    """

    plugin: str
    kind: str
    findings: list[Finding]
    skipped: list[Skipped]
    passed: list[str]

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        wrong = [f"  {finding.check}: {finding}" for finding in self.findings]
        skipped = [f"  {skip.check}: not checked, {skip.reason}" for skip in self.skipped]
        counts = f"{len(self.passed)} passed, {len(self.skipped)} skipped, {len(self.findings)} findings"
        return "\n".join([f"{self.kind} {self.plugin!r}: {counts}", *wrong, *skipped])


class Fault(NamedTuple):
    """What a check yields; the finding will say which check that was."""

    hook: str
    problem: str


Faults = Iterator[Fault]


class Tried(NamedTuple):
    """What calling a hook came to: its answer, or what it raised."""

    answer: Any
    error: Exception | None

    def __str__(self) -> str:
        return f"raised {type(self.error).__name__}: {self.error}"


class NotApplicable(Exception):  # not an error: the check is skipped
    """Raised by a check that has nothing to check here; its text is the reason."""


class Flaw(Exception):  # a verdict that is collected, not a failure of ours
    """Something wrong with a hook.

    Attributes:
        aspect: What it is wrong about: answers, inputs, varies, json or actions.
    """

    def __init__(self, aspect: str, hook: str, problem: str) -> None:
        super().__init__(problem)
        self.aspect = aspect
        self.hook = hook
        self.problem = problem


def conversation() -> Dicts:
    """Return a message of every role, a tool call and its structured result, as plain dicts."""
    messages: Dicts = thaw(_CONVERSATION)
    return messages


def descriptors() -> list[ToolDescriptor]:
    """Return two tools, as features see them."""
    return [_descriptor("look_up", "Look a word up."), _descriptor("sum_up", "Sum a text up.")]


def _descriptor(name: str, description: str) -> ToolDescriptor:
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    function = {"name": name, "description": description, "parameters": parameters}
    schema: Any = {"type": "function", "function": function}
    return ToolDescriptor(
        name=name, schema=schema, plugin="library", description=description, metadata={}, prepared={}
    )


def neighbour() -> ScriptedProvider:
    """Return the provider with which extensions and features are checked: it calls and streams."""
    reply = Reply(chunks=["One ", "two ", "three."], usage={"output_tokens": 3})
    return ScriptedProvider(repeat(reply), name="conformance_provider")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question to which the provider has an answer without a network.

    Any number of requests may be sent in one exchange, and all must be answered alike.

    Attributes:
        messages: The conversation that is sent, as dicts with role and content.
        config: What the configuration needs besides, for example the address of a local server.
    """

    messages: Sequence[Mapping[str, Any]] = ({"role": "user", "content": "Count to three, please."},)
    config: Config = field(default_factory=dict)


Exchanging = Exchange | AbstractContextManager[Exchange] | None


@dataclass(kw_only=True)
class Case:
    """Everything that the checks need to know.

    Attributes:
        any_provider: Whether the author left the provider to the kit.
        flaws: What is wrong with single hooks, once they have been examined; several checks ask for it.
    """

    kind: str
    make_plugin: Callable[[], Any]
    make_provider: Callable[[], Any]
    exchange: Callable[[], Exchanging]
    config: Config
    action_params: Mapping[str, Config | None]
    tool_calls: Mapping[str, Any]
    any_provider: bool = True
    flaws: list[Flaw] | None = field(default=None, init=False)

    @cached_property
    def wrapper(self) -> PluginWrapper:
        """The plugin as the pipeline sees it, one and the same for all checks of single hooks."""
        return WRAPPERS[self.kind](as_plugin(self.kind, self.make_plugin()))

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.wrapper.name

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
        """Return a core with a new plugin and, if that is not a provider, with one more that is."""
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

    def request_config(self, exchange: Exchange | None = None) -> JsonObject:
        """Return a configuration with which the plugin is on."""
        config = {**self.config, **(exchange.config if exchange else {})}
        if self.kind != "provider":
            config["force_enabled_plugins"] = [*config.get("force_enabled_plugins", ()), self.name]
        return config

    def try_hook(self, hook: str, *given: Any) -> Tried:
        """Call one of the plugin's hooks, which may raise anything."""
        try:
            return Tried(self.wrapper.hook(hook)(*given), None)  # type: ignore[misc]  # it is there
        except Exception as error:  # a stranger's code
            return Tried(None, error)

    def require(self, *hooks: str) -> None:
        """Go on only if the plugin wrote one of the hooks.

        Raises:
            NotApplicable: If it did not.
        """
        if not any(self.wrapper.has(hook) for hook in hooks):
            possible = [spec.name for spec in self.wrapper.hooks if spec.name in hooks]
            raise NotApplicable(f"the plugin does not write {_either(possible)}")


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
