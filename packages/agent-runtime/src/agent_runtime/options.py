"""The options of `Agent` and of its runs, and what to write in place of those that do not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from agent_core import ArgumentError, ArgumentTypeError, ConfigError, Session
from agent_core.config import CORE_KEYS
from agent_core.errors import closest
from agent_runtime.limits import UsageLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core import CancellationToken
    from agent_runtime.permissions import Rule
    from agent_runtime.policies import StopCondition
    from agent_runtime.runs import Checkpoint
    from agent_runtime.specs import ContextPolicy, ModelSpec
    from agent_runtime.suspension import Decision

OnLimit = Literal["raise", "return"]


class AgentOptions(TypedDict, total=False):
    """What `Agent` takes besides what its class documents.

    Attributes:
        name: Its name, for handoffs, delegates, traces and logs.
        description: One sentence for agents that may hand over or delegate to this one.
        system_prompt: The same as `instructions`, when that is a text.
        plugins: Plugins of any kind, by the id that each gets.
        config: Settings of the provider, such as its key or a temperature.
        models: Other models by the ids that `model=` and fallbacks may name.
        limits: How much each run may use.
        on_limit: Whether a run that reaches a limit raises `LimitReached` or returns its result.
        max_rounds: How often the model is asked in one run, at most.
        plugin_ids: Installed plugins by name, and those in `plugins` if their order matters.
        allowed_tools: Only these tools, by name or pattern.
        excluded_tools: Never these, even if allowed.
        context_policy: How the conversation is kept within the window.
        stop_conditions: When to end a run besides `max_rounds`.
        sections: Settings for plugins and the runtime. Failed requests are repeated unless there is a
            section "retry".
    """

    name: str
    description: str
    system_prompt: str
    plugins: Mapping[str, object]
    config: Mapping[str, Any]
    models: Sequence[ModelSpec]
    limits: UsageLimits | None
    on_limit: OnLimit
    max_rounds: int
    plugin_ids: Sequence[str]
    allowed_tools: Sequence[str] | None
    excluded_tools: Sequence[str]
    context_policy: ContextPolicy | Mapping[str, Any] | None
    stop_conditions: Sequence[StopCondition | Mapping[str, Any]]
    sections: Mapping[str, Any]


class RunOptions(TypedDict, total=False):
    """What a run of an `Agent` takes besides messages and dependencies; most are fields of `RunRequest`.

    Attributes:
        session: The conversation so far; `result.session` of the last run continues it.
        model: Another model for this run: "provider:model", the id of a declared one, or a provider.
        limits: How much this run may use.
        on_limit: Whether reaching a limit raises `LimitReached` or returns the result.
    """

    session: Session | None
    model: object
    limits: UsageLimits | None
    on_limit: OnLimit
    config: Mapping[str, Any]
    decisions: Sequence[Decision | Mapping[str, Any]]
    run_id: str | None
    timeout: float | Literal["default"] | None
    token_budget: int | None
    cost_budget: float | None
    cancellation: CancellationToken | None
    context: Mapping[str, Any] | None
    checkpoint: Callable[[Checkpoint], object] | None
    pauses: bool
    resumable: bool
    inbox: Callable[[], Any] | None
    granted: Callable[[Session], Sequence[Rule]] | None
    parents: tuple[str, ...]


_CHOICES = {"on_limit": ("raise", "return"), "output_mode": ("auto", "tool", "native", "prompt")}
_KEPT = "result.session has what was said: save it with `AgentApplication.save_session`"
_INSTEAD = {
    "system": "write instructions=... for what the model reads first",
    "system_message": "write instructions=... for what the model reads first",
    "prompt": "write instructions=... for what the model reads first",
    "instruction": "write instructions=... for what the model reads first",
    "api_key": 'write config={"api_key": ...}, or better set it in the environment',
    "base_url": 'write config={"base_url": "https://..."}',
    "temperature": 'write config={"temperature": ...}',
    "max_tokens": 'write config={"max_tokens": ...}',
    "model_settings": "write config={...} with the settings of the model",
    "provider": 'write it before the model: Agent("provider:model")',
    "result_type": "write output_type=...",
    "response_format": "write output_type=...",
    "response_model": "write output_type=...",
    "output": "write output_type=...",
    "deps": "write deps_type=... here, and deps=... when you run the agent",
    "retries": "write output_retries=... for outputs; a tool has its own: @agent.tool(retries=2)",
    "usage_limits": "write limits=UsageLimits(...)",
    **dict.fromkeys(("max_turns", "max_steps", "max_iterations"), "write max_rounds=..."),
    "mcp_servers": "put connected MCP clients into tools=[...]",
    "toolsets": "put them into tools=[...]",
    "input_guardrails": "write @agent.input_guardrail above a function",
    "output_guardrails": "write @agent.output_guardrail above a function",
    "handoff_description": "write description=...",
    "checkpointer": _KEPT,
    "memory": _KEPT,
    "store": _KEPT,
    "message_history": "write session=result.session of the run before",
    "messages": "give them as the first argument",
    "history": "write session=result.session of the run before",
}
_PER_RUN = "write limits=UsageLimits(requests=...) here, or max_rounds=... when you make the agent"
_OF_A_RUN = {
    **dict.fromkeys(("prompt", "text", "message", "input"), 'give the text first: agent.run("...")'),
    **dict.fromkeys(("max_turns", "max_rounds"), _PER_RUN),
    "stream": "write agent.stream(...)",
    "thread_id": "write session=result.session of the run before",
    "session_id": "write session=result.session of the run before",
}
"""What a run has in place of an option; the rest is as for an agent."""


_OF_A_TOOL = {
    "needs_approval": "write requires_approval=...",
    "name_override": "write name=...",
    "description_override": "write description=...",
    "takes_ctx": "a first parameter of type RunContext is enough",
}
_TOOL_OPTIONS = (
    "name",
    "description",
    "timeout",
    "parallel",
    "blocking",
    "idempotent",
    "retries",
    "requires_approval",
    "tags",
)


def check_options(given: Mapping[str, object], known: Any, owner: str, also: Sequence[str] = ()) -> None:
    """Refuse options that do not exist.

    Raises:
        ArgumentTypeError: With what to write in their place.
    """
    instead = _INSTEAD if owner == "Agent" else {**_INSTEAD, **_OF_A_RUN}
    _refuse_unknown(owner, given, [*sorted(known.__optional_keys__), *also], instead)


def check_tool_options(given: Mapping[str, object]) -> None:
    """Refuse options of a tool that do not exist.

    Raises:
        ArgumentTypeError: With what to write in their place.
    """
    _refuse_unknown("a tool", given, _TOOL_OPTIONS, _OF_A_TOOL)


def _refuse_unknown(
    owner: str, given: Mapping[str, object], names: Sequence[str], instead: Mapping[str, str]
) -> None:
    for name in given:
        if name in names:
            continue
        close = closest(name, names)
        hint = instead.get(name) or (f"did you mean {close!r}?" if close else f"known are {', '.join(names)}")
        raise ArgumentTypeError(f"{owner} has no option {name!r}: {hint}")


def check_values(given: Mapping[str, Any]) -> None:
    """Refuse values of options that would be noticed only in the middle of a run, or never.

    Raises:
        ArgumentTypeError: If `limits` are no `UsageLimits`, or `plugins` or `plugin_ids` have another form.
        ArgumentError: If another one has a value that it cannot have.
    """
    _check_plugins(given)
    limits = given.get("limits")
    if limits is not None and not isinstance(limits, UsageLimits):
        raise ArgumentTypeError(f"limits must be UsageLimits(...), not {type(limits).__name__}")
    for name, choices in _CHOICES.items():
        if (chosen := given.get(name, choices[0])) not in choices:
            *others, last = (f'"{choice}"' for choice in choices)
            raise ArgumentError(f"{name} is {', '.join(others)} or {last}, not {chosen!r}")
    retries = given.get("output_retries", 0)
    if not isinstance(retries, int) or retries < 0:
        raise ArgumentError(f"output_retries is a number from 0 on, not {retries!r}")


def _check_plugins(given: Mapping[str, object]) -> None:
    plugins, names = given.get("plugins"), given.get("plugin_ids")
    if plugins is not None and not isinstance(plugins, Mapping):
        raise ArgumentTypeError(
            f"plugins must be a dict, not {type(plugins).__name__}: write "
            'plugins={"name": plugin}, or plugin_ids=["name"] for installed ones'
        )
    if isinstance(names, str):
        raise ArgumentTypeError(f"plugin_ids must be a list: write plugin_ids=[{names!r}]")


def check_session(session: object) -> None:
    """Refuse what is not a session.

    Raises:
        ArgumentTypeError: With where to get one.
    """
    if session is not None and not isinstance(session, Session):
        raise ArgumentTypeError(
            f"session must be a Session, not {type(session).__name__}: "
            "give result.session of the run before, or nothing to begin a new one"
        )


def check_config(config: object, provider: object) -> None:
    """Refuse settings that look like a mistake.

    Raises:
        ArgumentTypeError: If it is not a mapping.
        ConfigError: If a key is misspelt, or `base_url` is not an address.
    """
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise ArgumentTypeError(f"config must be a dict of settings, not {type(config).__name__}")
    address = config.get("base_url")
    if isinstance(address, str) and not address.startswith(("http://", "https://")):
        rest = address.rpartition("://")[2]
        scheme = "http" if rest.startswith(("localhost", "127.", "[::1]")) else "https"
        raise ConfigError(
            f"config['base_url'] must begin with http:// or https://: write {f'{scheme}://{rest}'!r}",
            field="base_url",
        )
    known = _known_settings(provider)
    for key in config:
        if known and key not in known and (close := closest(key, known, 0.8)) is not None:
            raise ConfigError(f"config has no setting {key!r}: did you mean {close!r}?", field=str(key))


def _known_settings(provider: Any) -> set[str]:
    """Return the settings that a provider declares, with the core's own; nothing if it declares none."""
    try:
        made = provider() if isinstance(provider, type) else provider
        declared = made.get_config_schema()
    except Exception:  # one that cannot say what it takes is not asked
        return set()
    fields = declared.get("properties", declared) if isinstance(declared, Mapping) else {}
    return {*fields, *CORE_KEYS} if fields else set()
