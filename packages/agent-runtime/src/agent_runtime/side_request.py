"""A question outside the conversation: for summaries, judgements, titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, Message, Session
from agent_core.errors import nearest
from agent_core.steps import with_events
from agent_runtime.executor import Executor, Inference
from agent_runtime.results import Usage

if TYPE_CHECKING:
    from agent_core.events import UsageEvent
    from agent_core.steps import Flow
    from agent_runtime.run import Run


def ask_beside(
    run: Run,
    messages: Sequence[Message | Mapping[str, Any]],
    *,
    model: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Flow[str]:
    """Ask a model something that does not become part of the conversation, and return its words.

    No tools are offered and no words are shown to the caller; what it uses counts for the run.

    Args:
        model: The id of a declared model; by default the agent's own, retries included.

    Raises:
        AgentError: If the model is not declared, cannot answer, or the run was cancelled.
    """
    asked = [item if isinstance(item, Message) else Message.from_dict(dict(item)) for item in messages]
    core = run.agent.core
    inference = Inference(
        session=core.append_messages(Session(f"{run.run_id}-beside"), asked),
        clock=run.clock,
        config={**(config or {}), "allowed_tools": []},
        stream=False,
        cancellation=run.token,
        context=run.context(),
    )
    answer = yield from with_events(_executor(run, model).ask(inference), lambda _events: [])
    used = Usage.of_answer(usage_of(answer.turn.added), answer.model)
    run.use(used)
    event: UsageEvent = {
        "type": "usage",
        "model": answer.model.id,
        "usage": used.to_dict(),
        "total": run.usage.to_dict(),
        "beside": True,
    }
    yield from run.tell(event)
    run.check()
    return "".join(str(message["content"]) for message in answer.turn.added)


def _executor(run: Run, model: str | None) -> Executor:
    if model is None or model == run.agent.model.id:
        return run.agent.provider
    found = run.agent.models.get(model)
    if found is None:
        raise AgentError(f"model {model!r} is not declared; {nearest(model, run.agent.models)}")
    return found


def usage_of(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the token counts that the provider gave with its answer, if it did."""
    for message in reversed(messages):
        usage = (message.get("metadata") or {}).get("usage")
        if isinstance(usage, Mapping):
            return usage
    return None
