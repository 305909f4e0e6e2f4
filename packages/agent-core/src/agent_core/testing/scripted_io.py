"""Driving a flow by hand, step by step, without any world around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.steps import CloseStream, Emit, Flow, Step
from agent_core.testing.scripted import ScriptEnded

if TYPE_CHECKING:
    from collections.abc import Iterable


class ScriptedIO:
    """Answers a flow's steps from a list.

    An exception in the list is thrown into the flow; a function is called with the step, and what it
    returns or raises is the answer. Closing a stream needs no answer.

    Attributes:
        answers: Those that no step has asked for yet.
        steps: The steps that the flow asked for, in order.
        events: What it emitted.
    """

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.answers = list(answers)
        self.steps: list[Step[Any]] = []
        self.events: list[Any] = []

    def run(self, flow: Flow[Any]) -> Any:
        """Run the flow to its end and return its result.

        Raises:
            ScriptEnded: If the flow asks for more than there are answers.
        """
        resume, value = flow.send, None  # type: Any, Any
        while True:
            try:
                step = resume(value)
            except StopIteration as done:
                return done.value
            resume, value = self._answer(flow, step)

    def _answer(self, flow: Flow[Any], step: Step[Any]) -> tuple[Any, Any]:
        self.events += getattr(step, "events", ())
        if isinstance(step, Emit):
            return flow.send, None
        self.steps.append(step)
        if isinstance(step, CloseStream):
            return flow.send, None
        answer = self._next_answer(flow, step)
        try:
            answer = answer(step) if callable(answer) else answer
        except Exception as error:  # noqa: BLE001  # the flow decides what it means
            answer = error
        return (flow.throw if isinstance(answer, BaseException) else flow.send), answer

    def _next_answer(self, flow: Flow[Any], step: Step[Any]) -> Any:
        if not self.answers:
            flow.close()
            raise ScriptEnded(f"the flow asked for {type(step).__name__}, but there are no answers left")
        return self.answers.pop(0)
