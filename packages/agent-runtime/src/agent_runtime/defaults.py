"""The plugins that every agent has: actions that steer the loop, and stop conditions.

Hooks steer the loop by scheduling actions:

| action | payload | what it does |
|---|---|---|
| `stop` | `{"code", "detail"}` | ends the run after this step, or before the model is asked again |
| `add_message` | `{"role", "content", "keep"}` | adds a message to the next request, `keep`: for good |
| `go_on` | a text | has the model read it and answer again, where it would have ended the run |
| `override` | settings | changes the configuration of the next request |
| `exclude_tools` | names or patterns | hides tools from the next request |
| `only_tools` | names or patterns | offers only these in the next request |
| `warn` | a text | shows a warning event |

Each handler only updates a state key that the loop reads, so that a run which waits for a decision
loses nothing of it.

`MaxRoundsPlugin` ends a run by `max_rounds` and by the stop conditions that the agent declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_runtime.commands import Command
from agent_runtime.engine import DEFERRED, warn
from agent_runtime.patterns import Glob
from agent_runtime.phases import Phase
from agent_runtime.policies import MaxRounds, StopCondition
from agent_runtime.runs import TOOL_STATE
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView
    from agent_runtime.policies import Stop


_ROLES = ("system", "user", "assistant")

ADDED_BY_HOOK = "added_by_hook"
"""In the metadata of a message that a hook has added: nobody typed it, whatever its role is."""

STOP: StateKey[dict[str, str] | None] = StateKey(
    "runtime.stop", None, merge="commutative", reduce=lambda first, more: first or more
)
"""Why the run ends; the first who asks gives the reason."""

MESSAGES: StateKey[list[dict[str, Any]]] = StateKey(
    "runtime.messages", [], merge="commutative", reduce=lambda messages, more: [*messages, more]
)
"""Messages for the next request."""

OVERRIDES: StateKey[dict[str, Any]] = StateKey(
    "runtime.overrides", {}, merge="commutative", reduce=lambda settings, more: {**settings, **more}
)
"""Settings for the next request; of two for one key the later plugin's counts."""

HIDDEN_TOOLS: StateKey[list[str]] = StateKey(
    "runtime.hidden_tools", [], merge="commutative", reduce=lambda names, more: [*names, *more]
)
"""Patterns of tools that the next request does not offer."""

OFFERED_TOOLS: StateKey[list[list[str]]] = StateKey(
    "runtime.offered_tools", [], merge="commutative", reduce=lambda lists, more: [*lists, more]
)
"""Lists of patterns: the next request offers only tools that fit something of each list."""

KEPT_BY_TOOLS: StateKey[dict[str, Any]] = StateKey(
    TOOL_STATE, {}, scope="session", merge="commutative", reduce=lambda kept, more: {**kept, **more}
)
"""What tools left to be kept in the session, by name."""

GO_ON: StateKey[bool] = StateKey(
    name="runtime.go_on",
    default=False,
    merge="commutative",
    reduce=lambda wanted, more: wanted or more,
)
"""Whether the model is asked again although it called nothing."""

FOR_NEXT_REQUEST = (MESSAGES, OVERRIDES, HIDDEN_TOOLS, OFFERED_TOOLS)


class LoopActionHandlersPlugin:
    """Lets hooks steer the loop; see the module for the actions."""

    name = "loop_action_handlers"
    version = "1"

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the handlers, and the state keys by which the loop learns of them."""
        for key in (DEFERRED, STOP, GO_ON, KEPT_BY_TOOLS, *FOR_NEXT_REQUEST):
            registrar.state_key(key)
        registrar.action_handler("stop", _stop)
        registrar.action_handler("add_message", _add_message)
        registrar.action_handler("go_on", _go_on)
        registrar.action_handler("override", _override)
        registrar.action_handler("exclude_tools", _exclude_tools)
        registrar.action_handler("only_tools", _only_tools)
        registrar.action_handler("warn", _warn)


def _stop(payload: object, _view: PhaseView) -> Command:
    reason = payload if isinstance(payload, Mapping) else {}
    code, detail = str(reason.get("code") or "stopped"), str(reason.get("detail") or "")
    return Command().update(STOP, {"code": code, "detail": detail})


def _add_message(payload: object, _view: PhaseView) -> Command:
    if not isinstance(payload, Mapping) or payload.get("role") not in _ROLES:
        raise ValueError(f"add_message needs role (one of {', '.join(_ROLES)}) and content, got {payload!r}")
    message = {"role": payload["role"], "content": str(payload.get("content", ""))}
    return Command().update(MESSAGES, {**message, "keep": payload.get("keep") is True})


def _go_on(payload: object, _view: PhaseView) -> Command:
    if not isinstance(payload, str) or not payload.strip():
        raise ValueError(f"go_on needs a text for the model to read, got {payload!r}")
    note = {"role": "user", "content": payload, "keep": True}
    return Command().update(MESSAGES, note).update(GO_ON, True)  # noqa: FBT003 - the value of a state key


def _override(payload: object, _view: PhaseView) -> Command:
    settings = dict(payload) if isinstance(payload, Mapping) else None
    if settings is None:
        raise ValueError(f"override needs settings, a mapping, got {payload!r}")
    return Command().update(OVERRIDES, settings)


def _exclude_tools(payload: object, _view: PhaseView) -> Command:
    return Command().update(HIDDEN_TOOLS, _names(payload))


def _only_tools(payload: object, _view: PhaseView) -> Command:
    return Command().update(OFFERED_TOOLS, _names(payload))


def _warn(payload: object, _view: PhaseView) -> Flow[None]:
    yield from warn(str(payload))


def _names(payload: object) -> list[str]:
    names = [payload] if isinstance(payload, str) else payload
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"a list of tool names or patterns is needed, got {payload!r}")
    for name in names:
        Glob.parse(name)  # here, where the error still reaches whoever made the mistake
    return list(names)


class MaxRoundsPlugin:
    """Asks the stop conditions of an agent after each answer and after each step.

    Attributes:
        conditions: `MaxRounds` first, then those that the agent declares.
    """

    name = "max_rounds"
    version = "1"

    def __init__(self, max_rounds: int, conditions: Iterable[StopCondition] = ()) -> None:
        self.conditions = (MaxRounds(max_rounds), *conditions)

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the two hooks; the first only if some condition may end a run before its calls."""
        if any(
            type(condition).before_tools is not StopCondition.before_tools for condition in self.conditions
        ):
            registrar.phase_hook(Phase.AFTER_INFERENCE, self._before_tools)
        registrar.phase_hook(Phase.STEP_END, self._after_step)

    def _before_tools(self, view: PhaseView) -> Command | None:
        return _first(condition.before_tools(view.stats) for condition in self.conditions)

    def _after_step(self, view: PhaseView) -> Command | None:
        return _first(condition.after_step(view.stats) for condition in self.conditions)


def _first(stops: Iterable[Stop | None]) -> Command | None:
    stop = next((stop for stop in stops if stop is not None), None)
    return None if stop is None else Command().stop(*stop)
