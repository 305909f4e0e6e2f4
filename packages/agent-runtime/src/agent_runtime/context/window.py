"""What is sent of a conversation: as much as fits into the window, summaries in place of what they cover.

The session is not touched. Messages that are sent as they are remain the same objects, so that the
provider's own form of them is used.

The window is the smaller of the model's and the policy's. If neither is known, no limit is guessed: nothing
is left out or summarised unasked, since that could take something from a model that had room for it. When
the provider then says that a request is too long, old messages are summarised, for which a window of common
size is assumed.

Truncation never leaves out the system messages at the front, the last messages, and the last thing that the
user said, even where a long series of tool calls lies between that and the end. Everything else goes group
by group, the oldest first, until the rest fits. If what must stay does not fit either, excerpts of the
longest messages are sent (see `excerpts`).

The action `shorten_request` halves what is sent for the rest of the run: the loop schedules it when a
provider refuses a request for its length and no summary can make it shorter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core import Message
from agent_runtime.commands import Command
from agent_runtime.context.excerpts import with_excerpts
from agent_runtime.context.records import COMPACTIONS, compacted, current, find_cut, read_records
from agent_runtime.env import Prompt
from agent_runtime.errors import SpecError
from agent_runtime.phases import Phase
from agent_runtime.state import StateKey
from agent_runtime.summary import groups, last_user_turn, prefix_length, recent_start
from agent_runtime.tokens import CALIBRATION, counter_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView
    from agent_runtime.specs import ContextPolicy, ModelSpec
    from agent_runtime.tokens import TokenCounter


ASSUMED_WINDOW = 128_000
"""The window of a model about which nothing is known."""

MOST_TOKENS: StateKey[int] = StateKey("context.most_tokens", 0)
"""How many tokens this run may send at most, since the provider refused more; 0 if it refused nothing."""


class Limits(NamedTuple):
    """What a request may hold, in tokens.

    Attributes:
        window: The request and its answer together.
        reserve: What is kept free for the answer.
        known: False if the window is only assumed.
    """

    window: int
    reserve: int
    known: bool

    @property
    def budget(self) -> int:
        """What is left for messages and tools."""
        return self.window - self.reserve


def limits(policy: ContextPolicy, model: ModelSpec) -> Limits:
    """Return what a request to *model* may hold; there is always room for something."""
    windows = [window for window in (policy.max_tokens, model.context_window) if window]
    window = min(windows, default=ASSUMED_WINDOW)
    return Limits(window, _reserve(policy, model, window), known=bool(windows))


def check_limits(policy: ContextPolicy, model: ModelSpec) -> None:
    """Refuse a policy that leaves no room for a prompt.

    Raises:
        SpecError: If what is to be kept free is all of the window, or more.
    """
    window, _reserved, known = limits(policy, model)
    if known and policy.reserve_tokens is not None and policy.reserve_tokens >= window:
        raise SpecError(
            f"context_policy.reserve_tokens ({policy.reserve_tokens}) leaves no room in the window of model "
            f"{model.id!r} ({window}): it must be below that",
            field="context_policy.reserve_tokens",
        )


def _reserve(policy: ContextPolicy, model: ModelSpec, window: int) -> int:
    if policy.reserve_tokens is not None:
        return min(policy.reserve_tokens, window - 1)
    # Nobody asked for this much: a model that could answer at length must not leave no room to ask.
    return min(model.max_output_tokens or window // 8, window // 2)


class Truncated(NamedTuple):
    """What is left of a conversation.

    Attributes:
        kept: The messages to send, each the same object as before.
        dropped: Those that were left out.
        tokens: The estimate for the kept ones; above the budget if even the least does not fit.
    """

    kept: tuple[Message, ...]
    dropped: tuple[Message, ...]
    tokens: int


def truncate(
    messages: Sequence[Message], budget: int, counter: TokenCounter, keep_recent: int, *, pinned: int = 0
) -> Truncated:
    """Leave out the oldest groups until the rest fits into *budget* tokens.

    Args:
        messages: The conversation.
        budget: How many tokens the messages may have.
        counter: Estimates them.
        keep_recent: How many of the last messages stay in any case, with their whole groups.
        pinned: How many of the first messages stay as well, besides leading system messages.
    """
    weights = [counter.weight(message) for message in messages]
    total, dropped = sum(weights), set[int]()
    if counter.tokens(total) > budget:
        for group in _droppable(messages, keep_recent, pinned):
            dropped.update(group)
            total -= sum(weights[place] for place in group)
            if counter.tokens(total) <= budget:
                break
    return Truncated(
        kept=tuple(message for place, message in enumerate(messages) if place not in dropped),
        dropped=tuple(message for place, message in enumerate(messages) if place in dropped),
        tokens=counter.tokens(total),
    )


def _droppable(messages: Sequence[Message], keep_recent: int, pinned: int) -> list[range]:
    """Return the groups that may be left out, the oldest first."""
    found = groups(messages, max(pinned, prefix_length(messages)))
    recent = recent_start(messages, found, keep_recent)
    turn = last_user_turn(messages)
    return [
        group
        for group in found
        if group.stop <= recent and (group.stop <= turn.start or group.start >= turn.stop)
    ]


CACHE = "cache"
"""The setting that asks a provider to mark what it should cache between requests."""
CACHE_KEY = "prompt_cache_key"
"""The setting that says which requests begin alike."""


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
        for key in (CALIBRATION, MOST_TOKENS):
            registrar.state_key(key)
        registrar.request_transform(self.transform)
        registrar.phase_hook(Phase.AFTER_INFERENCE, self._learn)
        registrar.action_handler("shorten_request", self.shorten_request)

    def transform(self, prompt: Prompt, view: PhaseView) -> Prompt:
        """Return the prompt with what is to be sent of its messages."""
        messages = self._sent(prompt, view.session.messages, view)
        return replace(
            prompt,
            messages=messages,
            config=self._with_cache(prompt.config, view.run.model),
            warnings=(*prompt.warnings, *self._warnings(prompt, messages, view)),
        )

    def shorten_request(self, _payload: object, view: PhaseView) -> Command | None:
        """Send half as much from now on, until the run ends."""
        if not self.policy.truncate:
            return None
        counter = counter_for(view.state, view.run.model.id, view.session)
        prompt = Prompt([*_system(view), *view.session.messages], view.run.tools, {})
        refused = counter.messages(self._sent(prompt, view.session.messages, view))
        return Command().update(MOST_TOKENS, (refused + counter.tools(prompt.tools)) // 2)

    def _sent(self, prompt: Prompt, session: Sequence[Message], view: PhaseView) -> Sequence[Message]:
        messages, pinned = _summarised(prompt.messages, session, view)
        return self._fitting(messages, pinned, prompt, view) if self.policy.truncate else messages

    def _fitting(
        self, messages: Sequence[Message], pinned: int, prompt: Prompt, view: PhaseView
    ) -> Sequence[Message]:
        most = self._most_tokens(view)
        if most is None:
            return messages
        counter = counter_for(view.state, view.run.model.id, view.session)
        budget = most - counter.tools(prompt.tools)
        if counter.messages(messages) <= budget:
            return messages
        budget -= counter.message(_note(len(messages)))
        kept, dropped, tokens = truncate(messages, budget, counter, self.policy.keep_recent, pinned=pinned)
        front = prefix_length(kept)
        if tokens > budget:
            kept = with_excerpts(kept, budget, counter, start=front)
        return (*kept[:front], _note(len(dropped)), *kept[front:]) if dropped else kept

    def _most_tokens(self, view: PhaseView) -> int | None:
        """Return how many tokens a request may have; None if nobody knows."""
        allowed, refused = limits(self.policy, view.run.model), view.state.read(MOST_TOKENS)
        known = [allowed.budget] if allowed.known else []
        return min([*known, *([refused] if refused else [])], default=None)

    def _with_cache(self, config: Mapping[str, Any], model: ModelSpec) -> Mapping[str, Any]:
        if not self.policy.prompt_cache:
            return {**config, CACHE: False, CACHE_KEY: None}
        # A setting of one's own says more than the policy: how long to remember, or not at all.
        return config if CACHE in config or CACHE in model.config else {**config, CACHE: True}

    def _learn(self, view: PhaseView) -> Command | None:
        counted = _counted_input(view)
        if counted is None:
            return None
        model = view.run.model.id
        counter = counter_for(view.state, model, view.session)
        asked = _before_answer(view)
        prompt = Prompt([*_system(view), *asked], view.run.tools, {})
        estimated = counter.messages(self._sent(prompt, asked, view)) + counter.tools(prompt.tools)
        ratio = round(counter.calibrated(estimated, counted).ratio, 4)
        return None if ratio == counter.ratio else Command().update(CALIBRATION, {model: ratio})

    def _warnings(self, prompt: Prompt, sent: Sequence[Message], view: PhaseView) -> tuple[str, ...]:
        """Return what to say if a message was too long to be sent whole."""
        if sent is prompt.messages:
            return ()
        whole = {id(message) for message in prompt.messages}
        shortened = [message for message in sent if message.role != "system" and id(message) not in whole]
        pinned = _summarised(prompt.messages, view.session.messages, view)[1] > 0
        # The summary itself is not a message of the session.
        return (_EXCERPT_WARNING.format(model=view.run.model.id),) if len(shortened) > int(pinned) else ()


_EXCERPT_WARNING = (
    "a message is longer than the window of {model!r}: its middle is left out of the request. "
    "The session keeps it whole. Send it in smaller parts, or choose a model with a larger window"
)


def _summarised(
    messages: Sequence[Message], session: Sequence[Message], view: PhaseView
) -> tuple[Sequence[Message], int]:
    """Return the messages with the summary that counts, if one does, and how many of the first must stay."""
    record = current(read_records(view.state.read(COMPACTIONS)), session, view.session.memory)
    cut = None if record is None else find_cut(messages, session, record.upto)
    if record is None or cut is None:
        return messages, 0
    sent = compacted(messages, cut, record.summary)
    return sent, min(cut, prefix_length(messages)) + 1


def _counted_input(view: PhaseView) -> int | None:
    """Return how many tokens the provider says that it was sent, if it says so."""
    for message in reversed(view.messages):
        counted = (message.usage or {}).get("input_tokens")
        if isinstance(counted, int):
            return counted
    return None


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
