"""Driving a flow by hand, step by step, without any world around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.steps import Emit, Flow, Step

if TYPE_CHECKING:
    from collections.abc import Iterable


class ScriptedIO:
    """Answers a flow's steps from a list; an exception in the list is thrown into the flow.

    Attributes:
        steps: The steps that the flow asked for, in order.
        events: What it emitted.
    """

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.steps: list[Step[Any]] = []
        self.events: list[Any] = []
        self._answers = list(answers)

    def run(self, flow: Flow[Any]) -> Any:
        """Run the flow to its end and return its result."""
        resume, value = flow.send, None  # type: Any, Any
        while True:
            try:
                step = resume(value)
            except StopIteration as done:
                return done.value
            resume, value = self._answer(flow, step)

    def _answer(self, flow: Flow[Any], step: Step[Any]) -> tuple[Any, Any]:
        if isinstance(step, Emit):
            self.events += step.events
            return flow.send, None
        self.steps.append(step)
        answer = self._answers.pop(0) if self._answers else None
        return (flow.throw if isinstance(answer, BaseException) else flow.send), answer
