"""Ending runs that would go on: `max_rounds`, and the stop conditions that an agent declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime.commands import Command
from agent_runtime.phases import Phase
from agent_runtime.policies.conditions import MaxRounds, StopCondition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_runtime.phases import PhaseView
    from agent_runtime.policies.stats import Stop
    from agent_runtime.registrar import PluginRegistrar


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
