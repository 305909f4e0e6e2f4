"""What one run of an `Agent` carries with it: Python objects that neither session nor state can hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_runtime.results import MISSING

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Mapping

    from agent_core import FunctionTool, PluginError
    from agent_runtime.guardrails import GuardrailTripped

KEY = "agent_run"
"""Where the context of a run has it."""


@dataclass(slots=True)
class AgentRun:
    """One run of an `Agent`, handoffs included.

    Attributes:
        output: What the run produced, once it has.
        refused: How often the output was sent back in a row.
        tripped: The guardrail that ended the run, if one did.
        failed: What a function of the agent did wrong, which ends the run as well.
        looking: The guardrails that look at the input while the model answers.
        toolbox: The tools of dynamic tool sets for the current step, by name.
    """

    output: object = MISSING
    refused: int = 0
    tripped: GuardrailTripped | None = None
    failed: PluginError | None = None
    looking: list[Task[GuardrailTripped | None]] = field(default_factory=list)
    toolbox: dict[str, FunctionTool[..., Any]] = field(default_factory=dict)


def agent_run(context: Mapping[str, Any] | None) -> AgentRun:
    """Return what the run carries; of a run that no `Agent` began, something that is forgotten at once."""
    found = (context or {}).get(KEY)
    return found if isinstance(found, AgentRun) else AgentRun()
