"""Running a phase: hooks look at one snapshot, their commands come together in a fixed order.

All hooks of a phase see the state as it was when the phase began. A hook that updates an exclusive key
which an earlier hook has updated is asked once more, with everything up to there in sight; so the
outcome depends on the order of the plugins and on nothing else. Then the actions that were scheduled
are done, one by one, each on the newest state, until none is left; then the effects.
"""

from __future__ import annotations

from functools import partial
from inspect import isawaitable, isgenerator
from typing import TYPE_CHECKING, Any

from agent_core import PluginError
from agent_core.log import get_logger
from agent_core.steps import Emit, Flow, Run, Work, ask, run_blocking
from agent_runtime.commands import Action, Command, Effect
from agent_runtime.errors import PhaseLoopExceeded, StateError
from agent_runtime.phases import Phase
from agent_runtime.state import State, StateKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.events import WarningEvent
    from agent_runtime.env import ExecutionEnv
    from agent_runtime.phases import PhaseView

MOST_ROUNDS = 16
"""How often actions of one phase may schedule more before that counts as an endless loop."""

OWN_PLUGINS = frozenset({"handoffs", "loop_action_handlers", "max_rounds", "permissions"})
"""Plugins of ours whose hooks and gates only look: nothing need be stored before they are asked."""

_log = get_logger("runtime")

DEFERRED: StateKey[list[list[Any]]] = StateKey(
    "runtime.deferred", [], merge="commutative", reduce=lambda waiting, more: [*waiting, *more]
)
"""Actions that wait for a phase to come: `[phase, name, payload]` each."""


class Engine:
    """The phases of one run: its environment, and the state as of now."""

    __slots__ = ("_active", "_env", "state")

    def __init__(self, env: ExecutionEnv, state: State) -> None:
        self._env = env
        self.state = state
        self._active = frozenset(env.phase_hooks)

    def is_idle(self, phase: Phase) -> bool:
        """Say whether nobody has anything to do in that phase, so that it need not be run."""
        return phase not in self._active and not self.state.read(DEFERRED)

    def run(self, phase: Phase, view: Callable[[State], PhaseView]) -> Flow[None]:
        """Run all hooks of a phase, then the actions and effects that they asked for.

        Raises:
            PluginError: If a hook raised, or answered with something else than a command.
            StateError: If a command updates a key that does not exist.
            PhaseLoopExceeded: If actions keep scheduling each other.
        """
        if self.is_idle(phase):
            return
        actions, effects = self._take_deferred(phase), list[Effect]()
        begun, touched = self.state, set[str]()
        failures: list[PluginError] = []
        for plugin, hook in self._env.phase_hooks.get(phase, ()):
            try:
                command = yield from self.call(plugin, phase.value, hook, view(begun))
                if touched and not touched.isdisjoint(self._exclusive(command)):
                    command = yield from self.call(plugin, phase.value, hook, view(self.state))
            except PluginError as error:
                if phase is not Phase.RUN_END:
                    raise
                failures.append(error)  # the others have waited for the end as well
                continue
            if command is None:
                continue
            touched.update(self._exclusive(command))
            self._apply(command, phase, actions, effects)
        if actions:
            yield from self._do_actions(phase, view, actions, effects)
        yield from self._do_effects(view, effects)
        if failures:
            raise failures[0]

    def do(self, phase: Phase, view: Callable[[State], PhaseView], command: Command | None) -> Flow[None]:
        """Carry out a command that came from elsewhere than a hook of the phase."""
        actions, effects = list[Action](), list[Effect]()
        self._apply(command, phase, actions, effects)
        yield from self._do_actions(phase, view, actions, effects)
        yield from self._do_effects(view, effects)

    def can_do(self, action: str) -> bool:
        """Say whether somebody handles the actions of that name."""
        return action in self._env.scheduled_action_handlers

    def call(
        self, plugin: str, place: str, function: Callable[..., Any], *given: Any
    ) -> Flow[Command | None]:
        """Call something of a plugin's that answers with a command or None.

        Raises:
            PluginError: If it raised, or answered with something else; *place* says where.
        """
        try:
            answer = yield from finish(function, *given)
        except PluginError:
            raise
        except Exception as error:
            raise _named(plugin, place, error) from error
        if answer is not None and not isinstance(answer, Command):
            problem = f"must return a Command or None, not {type(answer).__name__}"
            raise PluginError(plugin, place, problem)
        return answer

    def _exclusive(self, command: Command | None) -> set[str]:
        if command is None:
            return set()
        return {update.key for update in command.updates if self.state.is_exclusive(update.key)}

    def _apply(
        self, command: Command | None, phase: Phase, actions: list[Action], effects: list[Effect]
    ) -> None:
        if command is None:
            return
        for update in command.updates:
            self.state = self.state.updated(update.key, update.value)
        later = [action for action in command.actions if action.phase not in (None, phase)]
        if later:
            deferred = [[str(action.phase), action.name, action.payload] for action in later]
            self.state = self.state.updated(DEFERRED.name, deferred)
        actions += [action for action in command.actions if action.phase in (None, phase)]
        effects += command.effects

    def _take_deferred(self, phase: Phase) -> list[Action]:
        waiting = self.state.read(DEFERRED)
        if not waiting:
            return []
        due = [Action(name, payload) for at, name, payload in waiting if at == phase]
        self.state = self.state.replaced(DEFERRED.name, [entry for entry in waiting if entry[0] != phase])
        return due

    def _do_actions(
        self, phase: Phase, view: Callable[[State], PhaseView], actions: list[Action], effects: list[Effect]
    ) -> Flow[None]:
        for _ in range(MOST_ROUNDS):
            if not actions:
                return
            due, actions[:] = list(actions), []
            for action in due:
                yield from self._do_action(phase, view, action, actions, effects)
        if actions:
            raise PhaseLoopExceeded(phase.value, sorted({action.name for action in actions}))

    def _do_action(
        self,
        phase: Phase,
        view: Callable[[State], PhaseView],
        action: Action,
        actions: list[Action],
        effects: list[Effect],
    ) -> Flow[None]:
        tagged = self._env.scheduled_action_handlers.get(action.name)
        if tagged is None:
            known = sorted(self._env.scheduled_action_handlers)
            yield from warn(f"nobody handles the action {action.name!r}; there are {known}")
            return
        place = f"action {action.name!r}"
        try:
            command = yield from self.call(
                tagged.plugin, place, tagged.handler, action.payload, view(self.state)
            )
            self._apply(command, phase, actions, effects)
        except (PluginError, StateError) as error:
            yield from warn(str(error), tagged.plugin)

    def _do_effects(self, view: Callable[[State], PhaseView], effects: list[Effect]) -> Flow[None]:
        for effect in effects:
            tagged = self._env.effect_handlers.get(effect.name)
            if tagged is None:
                known = sorted(self._env.effect_handlers)
                yield from warn(f"nobody handles the effect {effect.name!r}; there are {known}")
                continue
            try:
                yield from finish_slowly(partial(tagged.handler, effect.payload, view(self.state)))
            except Exception as error:  # a stranger's side effect must not cost the run
                yield from warn(str(_named(tagged.plugin, f"effect {effect.name!r}", error)), tagged.plugin)


def finish(function: Callable[..., Any], *given: Any) -> Flow[Any]:
    """Call a hook, whatever it is: a function, a coroutine function, or a generator of steps."""
    answer = function(*given)
    if answer is None:  # as most of them say
        return None
    if isgenerator(answer):
        return (yield from answer)
    if isawaitable(answer):
        return (yield from ask(Run(Work(awaitable=lambda: answer))))
    return answer


def finish_slowly(work: Callable[[], Any]) -> Flow[Any]:
    """Do something that may take long: in a worker thread where the caller must not wait for it."""
    answer = yield from run_blocking(work)
    return (yield from ask(Run(Work(awaitable=lambda: answer)))) if isawaitable(answer) else answer


def warn(message: str, plugin: str | None = None) -> Flow[None]:
    """Tell whoever watches, and the log, of something that does not end the run."""
    _log.warning("run_warning", message=message, plugin=plugin)
    event: WarningEvent = {"type": "warning", "message": message}
    if plugin is not None:
        event["plugin"] = plugin
    yield Emit([event])


def _named(plugin: str, place: str, error: Exception) -> PluginError:
    if isinstance(error, PluginError):
        return error
    return PluginError(plugin, place, f"{type(error).__name__}: {error}")
