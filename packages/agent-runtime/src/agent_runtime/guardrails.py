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
from agent_runtime.engine import finish_slowly

if TYPE_CHECKING:
    from agent_core.steps import Flow
    from agent_runtime.results import RunResult
    from agent_runtime.run_context import RunContext

Guard = Callable[["RunContext[Any]", Any], "str | Awaitable[str | None] | None"]
"""Looks at the user's text or at an output, and returns why the run must end, or None."""


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
        check: The function.
        parallel: Whether an input guardrail runs while the model answers.
    """

    name: str
    check: Guard
    parallel: bool = False

    def look(self, context: RunContext[Any], at: object) -> Flow[GuardrailTripped | None]:
        """Ask the guardrail; what it raises ends the run as a failure."""
        why = yield from finish_slowly(lambda: self.check(context, at))
        return None if why is None else GuardrailTripped(self.name, str(why))

    async def look_async(self, context: RunContext[Any], at: object) -> GuardrailTripped | None:
        """Do what `look` does, in a task of its own."""
        import asyncio

        why = await asyncio.to_thread(self.check, context, at)
        if isinstance(why, Awaitable):
            why = await why
        return None if why is None else GuardrailTripped(self.name, str(why))
