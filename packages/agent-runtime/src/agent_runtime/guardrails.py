"""Guardrails: functions that look at what goes into a run or comes out of it, and may end it.

An input guardrail runs before the model is asked, or at the same time (`parallel=True`): then the answer
is not used before the guardrail has spoken, and a tripped one cancels the request that is under way. An
output guardrail looks at an output that all validators have let pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_runtime.agent_functions import ask_function, misused

if TYPE_CHECKING:
    from agent_core.steps import Flow
    from agent_runtime.results import RunResult
    from agent_runtime.run_context import RunContext

Guard = Callable[..., "str | Awaitable[str | None] | None"]
"""Looks at the user's text or at an output, and returns why the run must end, or None.

It may take the `RunContext` first."""


class GuardrailTripped(AgentError):
    """A guardrail ended a run.

    Attributes:
        guardrail: Which one.
        why: What it said.
        result: What the run had come to.
    """

    def __init__(self, guardrail: str, why: str, result: RunResult[Any] | None = None) -> None:
        self.guardrail = guardrail
        self.why = why
        self.result = result
        super().__init__(f"the guardrail {guardrail!r} ended the run: {why}")


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A guardrail with its name.

    Attributes:
        kind: "input_guardrail" or "output_guardrail".
        check: The function.
        parallel: Whether an input guardrail runs while the model answers.
    """

    kind: str
    name: str
    check: Guard
    parallel: bool = False

    def look(self, context: RunContext[Any], at: object) -> Flow[GuardrailTripped | None]:
        """Ask the guardrail; what it raises ends the run as a failure."""
        why = yield from ask_function(self.kind, self.check, context, at)
        if why is None:
            return None
        if not isinstance(why, str):
            raise misused(self.kind, self.check, f"it returns why the run must end, or None, not {why!r}")
        return GuardrailTripped(self.name, why)
