"""The phases of a run: a closed list, always in this order.

::

    RUN_START
      STEP_START  BEFORE_INFERENCE  (the model)  AFTER_INFERENCE
        TOOL_GATE  BEFORE_TOOL_EXECUTE  (the tool)  AFTER_TOOL_EXECUTE     for each call
      STEP_END
    RUN_END                                                                in `finally`, whatever happened
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agent_core.frozen import EMPTY
from agent_runtime.run_context import RunContext
from agent_runtime.runs import TOOL_STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core import Message, Session
    from agent_runtime.policies import RunStats
    from agent_runtime.results import Reason, Usage
    from agent_runtime.runs import RunInfo
    from agent_runtime.specs import AgentSpec
    from agent_runtime.state import State
    from agent_runtime.suspension import Decision


class Phase(StrEnum):
    """Where in a run something happens."""

    RUN_START = "run_start"
    STEP_START = "step_start"
    BEFORE_INFERENCE = "before_inference"
    AFTER_INFERENCE = "after_inference"
    TOOL_GATE = "tool_gate"
    BEFORE_TOOL_EXECUTE = "before_tool_execute"
    AFTER_TOOL_EXECUTE = "after_tool_execute"
    STEP_END = "step_end"
    RUN_END = "run_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """A tool call, as gates and hooks see it.

    Attributes:
        id: The id by which the model knows the call.
        name: The tool.
        arguments: Its arguments, if they could be read; a freeform tool has a text.
        raw: The call as the model sent it.
        decision: What was decided about it, when a run goes on that had waited for this call; a gate
            sees only what was decided at its own request.
        tool: The tool plugin itself, or None if there is no such tool.
        contained: Whether the tool keeps the call inside a sandbox; the permission gate finds that out.
        roots: The folders that the session works in; the permission gate knows them.
    """

    id: str
    name: str
    arguments: Any
    raw: Mapping[str, Any]
    decision: Decision | None = None
    tool: Any = None
    contained: bool = False
    roots: tuple[str, ...] = ()

    @property
    def gives_output(self) -> bool:
        """Whether it is how the model gives the output of the run, which no limit of calls counts."""
        return getattr(self.tool, "gives_output", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """Everything that a hook may look at. It is a snapshot: nothing in it ever changes.

    Attributes:
        phase: Where the run is.
        run: Which run, agent and round this is, and what it may ask for (see `RunInfo`).
        spec: The agent's declaration.
        session: The session as of now, this step's messages included.
        state: The state keys.
        messages: What the model answered in this step; from AFTER_INFERENCE on.
        call: The tool call; in the three tool phases.
        result: The tool message; in AFTER_TOOL_EXECUTE.
        usage: What the run has used so far.
        stats: How far it has come, as stop conditions look at it.
        reason: Why the run ends; in RUN_END.
    """

    phase: Phase
    run: RunInfo
    spec: AgentSpec
    session: Session
    state: State
    messages: Sequence[Message] = ()
    call: CallView | None = None
    result: Mapping[str, Any] | None = None
    usage: Usage
    stats: RunStats
    reason: Reason | None = None

    @property
    def context(self) -> RunContext[Any]:
        """The run as tools see it: dependencies, session, usage."""
        run = self.run
        scope = run.context["run"]
        return RunContext(
            deps=scope.deps,
            session=self.session,
            usage=self.usage,
            run_id=run.run_id,
            agent=run.agent_id,
            model=run.model.id,
            round=run.round,
            retry=0 if self.call is None else scope.failures.get(self.call.name, 0),
            tool_call_id=None if self.call is None else self.call.id,
            state=self.state.get(TOOL_STATE) or EMPTY,
            parents=run.parents,
            cancellation=run.cancellation,
        )
