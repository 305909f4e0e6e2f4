"""What the next request of a session would send, part by part, with about how many tokens each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agent_core import Message
from agent_runtime.asking import ask_beside
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.context.calibration import counter_for
from agent_runtime.env import Prompt
from agent_runtime.phases import Phase
from agent_runtime.running import Run
from agent_runtime.runs import RunRequest
from agent_runtime.state import State
from agent_runtime.suspension import STATE
from agent_terminal_app.chat.words import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Session
    from agent_runtime import ModelSpec, ResolvedAgent

_WHAT = {"user": "message", "assistant": "answer", "tool": "tool result", "system": "note to the model"}


class Part(NamedTuple):
    """Something that is sent, and about how many tokens it has."""

    what: str
    tokens: int


def parts_sent(agent: ResolvedAgent, model: ModelSpec, session: Session) -> list[Part]:
    """Return what would be sent to a model: the system prompt, the tools, and the messages by kind."""
    kept = session.metadata.get(STATE)
    state = State.restored(agent.env.keys, kept if isinstance(kept, Mapping) else {})
    counter = counter_for(state, model.id)
    prompt = _prompt(replace(agent, model=model), session)
    system, messages = _split(agent.spec.system_prompt, prompt.messages)
    parts = [Part("system prompt", counter.messages(system))] if system else []
    if prompt.tools:
        parts.append(Part(count(len(prompt.tools), "tool"), counter.tools(prompt.tools)))
    for role in dict.fromkeys(message.role for message in messages):
        said = [message for message in messages if message.role == role]
        parts.append(Part(count(len(said), _WHAT.get(role, role)), counter.messages(said)))
    return parts


def _split(system_prompt: str, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return the agent's own system prompt, if it is sent, and everything else."""
    first = list(messages[:1])
    if first and first[0].role == "system" and first[0].content == system_prompt:
        return first, list(messages[1:])
    return [], list(messages)


def _prompt(agent: ResolvedAgent, session: Session) -> Prompt:
    """Return the prompt as the agent's plugins would leave it: summaries in place, old messages left out."""
    own = agent.spec.system_prompt
    front = [Message("system", own)] if own else []
    prompt = Prompt([*front, *session.messages], agent.descriptors, agent.config)
    if not agent.env.request_transforms:
        return prompt
    run = Run(agent, RunRequest(agent.spec.id, session=session), SYSTEM_CLOCK, ask_beside)
    try:
        view = run.view(Phase.BEFORE_INFERENCE, run.state)
        for _plugin, transform in agent.env.request_transforms:
            prompt = transform(prompt, view)
    finally:
        run.end()
    return prompt
