"""Declarations: agents, models and their settings as plain data.

A spec says nothing but what somebody wrote down; whether the things that it names exist is decided by
`agent_runtime.resolve`. Everything here can be written as a dict, and so as TOML, YAML or JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

from agent_core.frozen import EMPTY
from agent_runtime import fields
from agent_runtime.errors import SpecError
from agent_runtime.fields import Amount, Count, Name, Range, Text
from agent_runtime.policies import StopCondition, read_condition, tool_patterns

HARD_CAP = 1000
"""The loop asks a model at most so often in one run, whatever a spec says."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model under a name of one's own: which provider, and what the provider calls it.

    Attributes:
        id: What agents call the model.
        provider: The id under which the provider is registered.
        model: The name that the provider's API knows; empty for a provider that has only one.
        context_window: How many tokens fit into a request and its answer.
        max_output_tokens: How many tokens an answer may have; kept free in the window.
        input_price: What a million tokens sent cost.
        output_price: What a million tokens received cost.
        cached_input_price: What a million tokens sent cost when the provider had them cached.
        config: Settings for requests to this model, over those of its provider.
    """

    id: Name
    provider: Name
    model: str = ""
    _: KW_ONLY
    context_window: Count | None = None
    max_output_tokens: Count | None = None
    input_price: Amount | None = None
    output_price: Amount | None = None
    cached_input_price: Amount | None = None
    config: Mapping[str, Any] = field(default_factory=lambda: EMPTY, repr=False)  # may have a key in it

    def __post_init__(self) -> None:
        fields.check(self)
        if self.context_window and self.max_output_tokens and self.max_output_tokens >= self.context_window:
            raise SpecError("max_output_tokens must be below context_window", field="max_output_tokens")

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is as it is by default."""
        return fields.write(self)

    @classmethod
    def from_dict(cls, data: object) -> ModelSpec:
        """Read the dict form.

        Raises:
            SpecError: If a field is missing, unknown or wrong.
        """
        return fields.read(cls, data, where="model", outermost=True)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long apart, a failing model is asked again.

    Attributes:
        max_retries: How often a request is repeated that failed before an answer began; with 0 every model is
            asked once.
        stream_retries: How often one is repeated whose answer broke off in the middle; not at all if
            `max_retries` is 0.
        base_delay: The longest first pause in seconds; each next one may be twice as long.
        max_delay: The longest pause of all.
        max_retry_after: The longest pause that a server may ask for; above it the failure is reported.
        deadline: Seconds after which a step is not tried again, whatever is left of the retries.
        fallback_models: Models to continue with, in order, when the agent's own cannot answer.
    """

    _: KW_ONLY
    max_retries: Annotated[int, Range(0, 20)] = 4
    stream_retries: Annotated[int, Range(0, 20)] = 2
    base_delay: Amount = 0.5
    max_delay: Amount = 8.0
    max_retry_after: Amount = 60.0
    deadline: Amount | None = None
    fallback_models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fields.check(self)

    @property
    def does_something(self) -> bool:
        """True if a request can be made more than once."""
        return bool(self.max_retries or self.fallback_models)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is as it is by default."""
        return fields.write(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """How the tools of an agent run: its section "tools".

    Attributes:
        concurrency: How many calls of one step may run at once, of those that may at all.
        timeout: Seconds after which a call is given up, where its tool says nothing else.
        timeouts: The same for single tools, by name; stronger than what the tool says.
    """

    concurrency: Annotated[int, Range(1, 256)] = 8
    timeout: Annotated[float, Range(0.001)] | None = None
    timeouts: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        fields.check(self)
        for name, seconds in (self.timeouts or {}).items():
            fields.check_number(f"timeouts.{name}", seconds, least=0.001)


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """How a conversation is kept within a model's window.

    Attributes:
        max_tokens: The window to stay in; by default, and at most, the model's own.
        reserve_tokens: How much of it is kept free for the answer; by default the model's
            `max_output_tokens`, or an eighth of the window.
        keep_recent: How many of the last messages are never left out or summarised.
        compact_at: At which share of the window old messages are replaced by a summary; None: never.
            False is read as None, for formats that have no null.
        truncate: Whether the oldest messages are left out of a request that would not fit. The session
            keeps them all.
        prompt_cache: Whether providers are asked to cache the part of a prompt that stays the same.
    """

    _: KW_ONLY
    max_tokens: Count | None = None
    reserve_tokens: Annotated[int, Range(0)] | None = None
    keep_recent: Count = 10
    compact_at: Annotated[float, Range(0.1, 1, off=True)] | None = 0.8
    truncate: bool = True
    prompt_cache: bool = True

    def __post_init__(self) -> None:
        fields.check(self)
        if self.max_tokens and self.reserve_tokens and self.reserve_tokens >= self.max_tokens:
            raise SpecError("reserve_tokens must be below max_tokens", field="reserve_tokens")

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is as it is by default."""
        return fields.write(self)


@dataclass(frozen=True, slots=True)
class RemoteEndpoint:
    """Where an agent lives that is not run here.

    Attributes:
        url: Its A2A address: the server's base, or that of its agent card.
        token: A bearer token for it.
        timeout: Seconds for a whole call.
        max_bytes: How large its answer may be.
        allow_private: Whether the address may be on this machine or in a private network.
    """

    url: Annotated[str, Text("^https?://", "must start with http:// or https://")]
    _: KW_ONLY
    token: Name | None = field(default=None, repr=False)
    timeout: Annotated[float, Range(0.001)] = 300.0
    max_bytes: Count = 1_000_000
    allow_private: bool = False

    def __post_init__(self) -> None:
        fields.check(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the endpoint as plain data; the token is left out, like every secret."""
        return {key: value for key, value in fields.write(self).items() if key != "token"}


@dataclass(frozen=True, slots=True)
class HandoffSpec:
    """An agent that may take over a conversation, as somebody wrote it down.

    Attributes:
        agent: The id of the agent that takes over.
        description: When to hand over to it; by default its own description.
        sees: What it sees of the conversation so far: "all", or "without_tools" for what was said alone.
        tool_name: What the tool is called; by default "transfer_to_" and the agent's id.
    """

    agent: Name
    _: KW_ONLY
    description: str = ""
    sees: Annotated[str, Text("^(all|without_tools)$", 'must be "all" or "without_tools"')] = "all"
    tool_name: (
        Annotated[str, Text("^[A-Za-z0-9_-]{1,64}$", "must be 1 to 64 letters, digits, _ or -")] | None
    ) = None

    def __post_init__(self) -> None:
        fields.check(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is as it is by default."""
        return fields.write(self)


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent as somebody wrote it down.

    Attributes:
        id: Its name; a delegate's becomes part of a tool's name.
        model: The id of a declared model.
        system_prompt: The instructions that the model reads first. It is sent, not stored.
        description: One sentence for agents that may delegate to this one.
        max_rounds: How often the model is asked in one run, at most.
        plugin_ids: The plugins that take part, of any kind, in order.
        delegates: Agents that this one may hand a task to; each becomes a tool.
        handoffs: Agents that may take over the conversation, by id or as `HandoffSpec`; each becomes a tool.
        allowed_tools: Only these tools, by name or pattern; None for all.
        excluded_tools: Never these, even if allowed.
        context_policy: How the conversation is kept within the window; None leaves it alone.
        stop_conditions: When to end a run besides `max_rounds`.
        endpoint: Where the agent lives, if not here.
        sections: Settings for plugins and the runtime, by section.
    """

    id: Name
    model: str = ""
    _: KW_ONLY
    system_prompt: str = ""
    description: str = ""
    max_rounds: Annotated[int, Range(1, HARD_CAP)] = 100
    plugin_ids: tuple[str, ...] = ()
    delegates: tuple[str, ...] = ()
    handoffs: tuple[HandoffSpec, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    excluded_tools: tuple[str, ...] = ()
    context_policy: ContextPolicy | None = None
    stop_conditions: tuple[StopCondition, ...] = ()
    endpoint: RemoteEndpoint | None = None
    sections: Mapping[str, Any] = field(default_factory=lambda: EMPTY, repr=False)  # may have keys in it

    def __post_init__(self) -> None:
        fields.check(self)
        self._set("endpoint", None if self.endpoint is None else _read_endpoint(self.endpoint))
        if not self.model and self.endpoint is None:
            raise SpecError(f"agent {self.id!r} needs a model, or an endpoint where it lives", field="model")
        for name in ("allowed_tools", "excluded_tools"):
            if getattr(self, name) is not None:
                tool_patterns(name, getattr(self, name))
        if self.context_policy is not None:
            policy = fields.read(ContextPolicy, self.context_policy, where="context_policy")
            self._set("context_policy", policy)
        self._set("stop_conditions", fields.each("stop_conditions", self.stop_conditions, read_condition))
        self._set("handoffs", fields.each("handoffs", self.handoffs, _read_handoff))
        self._check_handoffs()

    def _check_handoffs(self) -> None:
        seen = {self.id: "an agent cannot hand over to itself"}
        for place, handoff in enumerate(self.handoffs):
            if handoff.agent in seen:
                problem = f"handoffs[{place}] names {handoff.agent!r}: {seen[handoff.agent]}"
                raise SpecError(problem, field=f"handoffs[{place}]")
            seen[handoff.agent] = "it is in the list already"

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def section(self, name: str) -> Mapping[str, Any]:
        """Return one section; missing counts as empty."""
        found = self.sections.get(name)
        return found if isinstance(found, Mapping) else EMPTY

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is as it is by default and without secrets."""
        return fields.write(self)

    @classmethod
    def from_dict(cls, data: object) -> AgentSpec:
        """Read the dict form.

        Raises:
            SpecError: If a field is missing, unknown or wrong.
        """
        return fields.read(cls, data, where="agent", outermost=True)


def _read_endpoint(value: object) -> RemoteEndpoint:
    data = {"url": value} if isinstance(value, str) else value
    return fields.read(RemoteEndpoint, data, where="endpoint")


def _read_handoff(where: str, value: object) -> HandoffSpec:
    return fields.read(HandoffSpec, {"agent": value} if isinstance(value, str) else value, where=where)
