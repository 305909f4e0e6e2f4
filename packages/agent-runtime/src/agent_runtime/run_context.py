"""What the functions that make up an agent may know about the run that calls them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from agent_core import AgentError
from agent_core.frozen import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import TypeVar

    from agent_core import CancellationToken, Session
    from agent_runtime.results import Usage

    DepsT_co = TypeVar("DepsT_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    DepsT_co = TypeVar("DepsT_co", covariant=True)


class ModelRetry(AgentError):
    """Raised by a tool, an output function or a validator: the model reads why, and tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(Generic[DepsT_co]):
    """The run as of now, for tools, instructions, validators, guardrails and hooks.

    Attributes:
        deps: What the caller of the run passed as `deps`. Delegates and handoffs get the same.
        session: The conversation so far.
        usage: What the run has used so far, delegates included.
        run_id: The run's id.
        agent: The name of the agent that runs.
        model: The id of the model that answers.
        round: How often the model has been asked.
        retry: How often in a row this tool failed, or the output was sent back, before now.
        tool_call_id: The call that a tool answers; None outside of tools.
        state: What tools of this session left to be kept, by name (see `ToolReturn`).
        parents: The agents that delegated to this one, outermost first.
        cancellation: Cancelled when the run should stop.
    """

    is_run_context: ClassVar[bool] = True

    deps: DepsT_co
    session: Session
    usage: Usage
    run_id: str
    agent: str
    model: str
    round: int = 0
    retry: int = 0
    tool_call_id: str | None = None
    state: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    parents: tuple[str, ...] = ()
    cancellation: CancellationToken | None = None

    # A context is of its moment and not for keeping. The annotation also tells type checkers a context from
    # an argument that a model can send, by which `Agent.tool` notices the wrong type of dependencies.
    __reduce__: None = None  # type: ignore[assignment]
