"""How far a setting reaches: what it can run, read or send that its author should be trusted with.

The rule stands on the schema of settings and is turned round: a setting is harmless if it is known to be, and
everything else is marked. So one that is new, and every setting of a plugin that nobody here knows, is marked
until somebody has thought about it. The table has an entry for each place of the schema; a star stands for a
name that people choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_terminal_app.settings.secrets import is_secret_name

if TYPE_CHECKING:
    from agent_terminal_app.settings.ways import Way

Judge = Callable[[Any], str]

UNKNOWN = "may change what runs, what is read or what is sent"
"""What is said of a setting that nobody here knows."""
_ALLOWS, _ALLOWS_ALL = "lets these run without asking you", "lets everything run without asking you"
_SENDS = "sends what you say, and keys, to this address"
_ANSWERS = "sends what you say to this model"
_TOOLS = "gives models these tools"
_SPEAKS = "tells the model what to do, in your name"


def danger(way: Way, value: Any) -> str:
    """Say what a setting can do that its author should be trusted with; empty if that is little."""
    names = tuple(step.lower() for step in way if isinstance(step, str))
    for place, judge in PLACES.items():
        if _is_at(names, place):
            return judge(value)
    return _of_a_plugin(names) if _is_free(names) else UNKNOWN


def _is_at(names: tuple[str, ...], place: tuple[str, ...]) -> bool:
    return len(names) == len(place) and all(
        step in ("*", name) for name, step in zip(names, place, strict=True)
    )


def _is_free(names: tuple[str, ...]) -> bool:
    """Say whether a setting is one that plugins and providers understand, not this program."""
    match names:
        case ("plugins", _, _, *_) | ("models", _, "config", _, *_) | ("agents", _, "sections", _, _, *_):
            return True
        case ("agents", _, "endpoint", *_):
            return True
    return False


def _of_a_plugin(names: tuple[str, ...]) -> str:
    if names[-1] in HARMLESS_OF_PLUGINS:
        return ""
    return next((told for told, is_so in _BY_NAME.items() if is_so(names)), UNKNOWN)


def _harmless(_value: Any) -> str:
    return ""


def _always(told: str) -> Judge:
    return lambda _value: told


def _if_any(told: str) -> Judge:
    return lambda value: told if value else ""


def _default(value: Any) -> str:
    return "" if value in ("ask", "deny") else _ALLOWS_ALL


def _model(value: Any) -> str:
    return "" if value == "local" else _ANSWERS


_RULES: dict[str, Judge] = {
    "allow": _if_any(_ALLOWS),
    "default": _default,
    "ask": _harmless,
    "deny": _harmless,
    "always_ask": _harmless,
    "on_ask": _harmless,
}
_OF_AGENTS: dict[tuple[str, ...], Judge] = {
    ("model",): _model,
    ("system_prompt",): _always(_SPEAKS),
    ("description",): _always(_SPEAKS),
    ("max_rounds",): _harmless,
    ("plugin_ids",): _if_any(_TOOLS),
    ("delegates",): _if_any("lets the agent hand work to these"),
    ("allowed_tools",): _always(_TOOLS),
    ("excluded_tools",): _harmless,  # they add up
    ("stop_conditions",): _always("changes when a run ends"),
    ("endpoint",): _always(_SENDS),
    **{("context_policy", name): _harmless for name in ("max_tokens", "reserve_tokens", "keep_recent")},
    **{("context_policy", name): _harmless for name in ("compact_at", "truncate", "prompt_cache")},
    ("sections", "retry", "fallback_models"): _if_any(_ANSWERS),
    **{("sections", "retry", name): _harmless for name in ("max_retries", "stream_retries", "base_delay")},
    **{("sections", "retry", name): _harmless for name in ("max_delay", "max_retry_after", "deadline")},
    ("sections", "tools", "concurrency"): _harmless,
    ("sections", "tools", "timeout"): _harmless,
    ("sections", "tools", "timeouts", "*"): _harmless,
    **{("sections", "permissions", name): judge for name, judge in _RULES.items()},
}
_OF_MODELS: dict[str, Judge] = {
    "provider": _always("sends what you say to this provider"),
    "model": _always(_ANSWERS),
    "context_window": _harmless,
    "max_output_tokens": _harmless,
    "input_price": _harmless,
    "output_price": _harmless,
    "cached_input_price": _harmless,
}
PLACES: dict[tuple[str, ...], Judge] = {
    ("ui", "plain"): _harmless,
    ("ui", "theme"): _harmless,
    ("model",): _model,
    ("default_agent",): _always("chooses the agent, and with it tools and rules"),
    ("tools",): _if_any(_TOOLS),
    **{("permissions", name): judge for name, judge in _RULES.items()},
    **{("agents", "*", *place): judge for place, judge in _OF_AGENTS.items()},
    **{("models", "*", name): judge for name, judge in _OF_MODELS.items()},
}
"""What becomes of each place of the schema; the settings of plugins are judged by their names."""

HARMLESS_OF_PLUGINS = frozenset(
    {
        "temperature", "top_p", "top_k", "seed", "stop", "stop_sequences", "max_tokens", "max_output_tokens",
        "max_completion_tokens", "presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity",
        "connect_timeout", "first_byte_timeout", "idle_timeout", "context_size", "threads",
        "compaction_trigger", "compaction_threshold", "compaction_keep",
    }
)  # fmt: skip
"""Settings of plugins and models that change how an answer is made and nothing else."""

_ADDRESSES = {"base_url", "url", "endpoint", "proxy"}
_RUNS = {"command", "commands", "args", "script", "shell", "shell_bash", "exec", "hooks"}
_ENVIRONMENT = {"env", "shell_env", "shell_env_allow", "shell_env_deny"}
_LOADS = {"model_path", "plugin_path", "path", "paths", "file", "files", "folder", "folders", "roots"}
_BY_NAME: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "uses a key or a file of yours": lambda names: is_secret_name(names[-1]),
    _SENDS: lambda names: names[-1] in _ADDRESSES,
    "runs a program": lambda names: not _RUNS.isdisjoint(names[2:]),
    "changes what programs get of your environment": lambda names: not _ENVIRONMENT.isdisjoint(names[2:]),
    "opens these files": lambda names: names[-1] in _LOADS,
    "goes along with every request": lambda names: "extra_headers" in names or "headers" in names,
    "switches plugins on or off": lambda names: names[-1].endswith("_plugins"),
}
"""What can be said of a setting by its name alone; one that fits none of these is marked all the same."""
