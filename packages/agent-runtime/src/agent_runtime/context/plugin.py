"""What is sent of a conversation: the summary in place of what it covers, and what fits of the rest.

The session is not touched. Messages that are sent as they are remain the same objects, so that the
provider's own form of them is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core import Message
from agent_runtime.commands import Command
from agent_runtime.context.calibration import CALIBRATION, counted_input, counter_for
from agent_runtime.context.groups import prefix_length
from agent_runtime.context.records import COMPACTIONS, compacted, current, find_cut, read_records
from agent_runtime.context.truncation import truncate
from agent_runtime.context.window import check_limits, limits
from agent_runtime.env import Prompt
from agent_runtime.phases import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_runtime.phases import PhaseView
    from agent_runtime.registrar import PluginRegistrar
    from agent_runtime.specs import ContextPolicy, ModelSpec

CACHE = "cache"
"""The setting by which a provider is told to mark what it shall remember between requests."""
CACHE_KEY = "prompt_cache_key"
"""The setting by which a provider is told which requests begin alike."""


class ContextTransformPlugin:
    """Keeps every request within the window, and learns how the model counts.

    Attributes:
        policy: What the agent says about its context.
        model: The agent's own model; while a fallback answers, that one's window counts.
    """

    name = "context_transform"
    version = "1"

    def __init__(self, policy: ContextPolicy, model: ModelSpec) -> None:
        self.policy = policy
        self.model = model

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the transform, and the hook that learns from the provider's own count.

        Raises:
            SpecError: If the policy leaves no room for a prompt.
        """
        check_limits(self.policy, self.model)
        registrar.state_key(CALIBRATION)
        registrar.request_transform(self.transform)
        registrar.phase_hook(Phase.AFTER_INFERENCE, self._learn)

    def transform(self, prompt: Prompt, view: PhaseView) -> Prompt:
        """Return the prompt with what is to be sent of its messages."""
        messages = self._sent(prompt, view.session.messages, view)
        return replace(prompt, messages=messages, config=self._with_cache(prompt.config, view.run.model))

    def _sent(self, prompt: Prompt, session: Sequence[Message], view: PhaseView) -> Sequence[Message]:
        messages, pinned = _summarised(prompt.messages, session, view)
        return self._fitting(messages, pinned, prompt, view) if self.policy.truncate else messages

    def _fitting(
        self, messages: Sequence[Message], pinned: int, prompt: Prompt, view: PhaseView
    ) -> Sequence[Message]:
        allowed = limits(self.policy, view.run.model)
        counter = counter_for(view.state, view.run.model.id)
        budget = allowed.budget - counter.tools(prompt.tools)
        if not allowed.known or counter.messages(messages) <= budget:
            return messages
        budget -= counter.message(_note(len(messages)))
        kept, dropped, _tokens = truncate(messages, budget, counter, self.policy.keep_recent, pinned=pinned)
        if not dropped:
            return messages
        front = prefix_length(kept)
        return (*kept[:front], _note(len(dropped)), *kept[front:])

    def _with_cache(self, config: Mapping[str, Any], model: ModelSpec) -> Mapping[str, Any]:
        if not self.policy.prompt_cache:
            return {**config, CACHE: False, CACHE_KEY: None}
        # A setting of one's own says more than the policy: how long to remember, or not at all.
        return config if CACHE in config or CACHE in model.config else {**config, CACHE: True}

    def _learn(self, view: PhaseView) -> Command | None:
        counted = counted_input(view)
        if counted is None:
            return None
        model = view.run.model.id
        counter = counter_for(view.state, model)
        asked = _before_answer(view)
        prompt = Prompt([*_system(view), *asked], view.run.tools, {})
        estimated = counter.messages(self._sent(prompt, asked, view)) + counter.tools(prompt.tools)
        ratio = round(counter.calibrated(estimated, counted).ratio, 4)
        return None if ratio == counter.ratio else Command().update(CALIBRATION, {model: ratio})


def _summarised(
    messages: Sequence[Message], session: Sequence[Message], view: PhaseView
) -> tuple[Sequence[Message], int]:
    """Return the messages with the summary that counts, if one does, and how many of the first must stay."""
    record = current(read_records(view.state.read(COMPACTIONS)), session)
    cut = None if record is None else find_cut(messages, session, record.upto)
    if record is None or cut is None:
        return messages, 0
    sent = compacted(messages, cut, record.summary)
    return sent, min(cut, prefix_length(messages)) + 1


def _before_answer(view: PhaseView) -> list[Message]:
    """Return the conversation as it was when the model was asked for the answer that a view shows."""
    messages = list(view.session.messages)
    answer = [message.content for message in view.messages]
    if answer and [message.content for message in messages[-len(answer) :]] == answer:
        del messages[-len(answer) :]
    return messages


def _system(view: PhaseView) -> list[Message]:
    return [Message("system", view.spec.system_prompt)] if view.spec.system_prompt else []


def _note(count: int) -> Message:
    what = "message of this conversation is" if count == 1 else "messages of this conversation are"
    return Message("system", f"{count} earlier {what} left out here to save room.")
