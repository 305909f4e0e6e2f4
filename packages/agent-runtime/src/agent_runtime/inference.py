"""One question to the model as a part of a run: what is sent, what is shown, what is kept."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from time import time
from typing import TYPE_CHECKING, Any, cast

from agent_core import AgentError, Message, PluginError
from agent_core.log import get_logger
from agent_core.pipeline.request import Frame
from agent_core.steps import Flow, with_events
from agent_runtime.commands import Command
from agent_runtime.defaults import ADDED_BY_HOOK, HIDDEN_TOOLS, MESSAGES, OFFERED_TOOLS, OVERRIDES
from agent_runtime.engine import warn
from agent_runtime.env import Prompt
from agent_runtime.executor import Inference
from agent_runtime.limits import OverLimit
from agent_runtime.patterns import Glob
from agent_runtime.phases import Phase
from agent_runtime.prices import has_price
from agent_runtime.results import Usage
from agent_runtime.side_request import usage_of
from agent_runtime.tokens import counter_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core import ToolDescriptor
    from agent_core.events import Event, UsageEvent
    from agent_core.history import History
    from agent_core.pipeline.finish import TurnResult
    from agent_runtime.executor import Answer, Transform
    from agent_runtime.limits import UsageLimits
    from agent_runtime.run import Run
    from agent_runtime.specs import ModelSpec

_ABSENT = object()
_log = get_logger("inference")
_FRONT = 16
"""Behind how many messages of others the conversation may begin and still be sent as a whole, at no cost."""
_SHORTER = frozenset({"context.compactions", "context.most_tokens"})
"""What changes in a run's state when a request becomes shorter."""
_TEXTS = frozenset({"text", "reasoning"})
"""The events whose texts add up."""
_MOST_JOINED = 32
"""How many texts are one event at most: an answer that comes all at once is still read piece by piece."""
MOST_COMPACTIONS = 2
"""How often a run may have its conversation summarised because the provider refuses its length."""
MOST_SHORTENINGS = 8
"""How often a run may make its requests shorter in all; each time but the first two it sends half as much."""


def infer(run: Run) -> Flow[TurnResult]:
    """Ask the model, and once more after shortening the conversation if the provider wants it shorter."""
    _keep_added_messages(run)
    if not run.rounds and run.request.limits is not None and run.request.limits.cost is not None:
        yield from _check_price(run.model)
    yield from run.settle()
    run.scope.asking = True
    try:
        answer = yield from _ask(run)
    finally:
        run.scope.asking = False
    run.next_request_done()
    yield from _take(run, answer)
    return answer.turn


def _check_price(model: ModelSpec) -> Flow[None]:
    """Say that a limit of cost means nothing for a model whose price nobody knows."""
    if not has_price(model):
        yield from warn(
            f"the limit of cost cannot be kept: the price of the model {model.id!r} is not known; declare it "
            "with ModelSpec(input_price=..., output_price=...), or install keelwork-runtime[prices]"
        )


def _ask(run: Run) -> Flow[Answer]:
    while True:
        try:
            translation = _Translation(stream=run.request.stream, timed=run.keeps)
            inference, warnings = _inference(run)
            for warning in warnings:
                if warning not in run.warned:
                    run.warned.add(warning)
                    yield from warn(warning)
            asking = run.agent.provider.ask(inference)
            # Without pieces there is nothing to translate: retries and fallbacks are shown as they are.
            quiet = not run.request.stream and not run.keeps
            answer = yield from asking if quiet else with_events(asking, translation.of_all)
        except AgentError as error:
            if not _can_shorten(run, error) or not (yield from _shorten(run, error)):
                raise
        else:
            run.first_piece_at = translation.first_at
            return answer


def _take(run: Run, answer: Answer) -> Flow[None]:
    run.session = answer.turn.session
    run.model = answer.model
    added = len(answer.turn.added)
    run.answer = tuple(run.session.history[len(run.session.history) - added :])
    run.rounds += 1
    used = Usage.of_answer(usage_of(answer.turn.added), answer.model)
    run.use(used)
    if run.shows:
        total = run.usage.to_dict()
        event: UsageEvent = {
            "type": "usage", "model": answer.model.id, "usage": used.to_dict(), "total": total,
        }  # fmt: skip
        if run.keeps and run.first_piece_at is not None:
            event["first_at"] = run.first_piece_at
        yield from run.tell(event)
    for problem in answer.turn.problems:
        yield from warn(
            f"action {problem['action_id']!r} failed: {problem['error']['message']}", problem["plugin"]
        )


def _inference(run: Run) -> tuple[Inference, tuple[str, ...]]:
    """Return the question, the conversation as system prompt, hooks and plugins leave it, and warnings."""
    frame = _frame(run)
    transform: Transform | None
    config = _settings(run)
    warnings: tuple[str, ...] = ()
    if run.agent.env.request_transforms:
        own = run.session.history
        prompt = _transformed(run, Prompt(frame(own), _offered(run), {**run.agent.config, **config}))
        if run.request.limits is not None:
            _check_limits(run, run.request.limits, lambda: prompt)
        config, transform = _config(run, prompt, config), _transform(prompt.messages, own)
        warnings = prompt.warnings
    else:
        if run.request.limits is not None:
            _check_limits(
                run, run.request.limits, lambda: Prompt(frame(run.session.history), _offered(run), config)
            )
        config = _with_offer(run, config, _offered(run))
        transform = frame if frame.front or frame.back else None
    inference = Inference(
        session=run.session,
        clock=run.clock,
        config=config,
        transform=transform,
        stream=run.request.stream,
        cancellation=run.token,
        context=run.context(),
    )
    return inference, warnings


def _transform(chosen: Sequence[Message], own: History[Message]) -> Transform:
    """Return how the core finds the chosen messages: as a frame, if all of the conversation is among them."""
    listed, kept = list(chosen), own.to_list()
    for front in range(min(_FRONT, len(listed) - len(kept) + 1) if kept else 0):
        if listed[front] is kept[0] and listed[front : front + len(kept)] == kept:
            return Frame(tuple(listed[:front]), tuple(listed[front + len(kept) :]))
    return partial(_chosen, listed, kept)


def _check_limits(run: Run, limits: UsageLimits, prompt: Callable[[], Prompt]) -> None:
    """Raise `OverLimit` if the request would go over one."""
    reason = limits.reached(run.usage)
    if reason is None and limits.counts_input:
        counter, sent = counter_for(run.state, run.model.id, run.session), prompt()
        estimate = counter.messages(sent.messages) + counter.tools(sent.tools)
        # Where the provider caches at all, perhaps all of it is cached: a run must not end for a guess.
        cached = estimate if run.usage.cached_input_tokens else 0
        price = Usage.of_answer({"input_tokens": estimate, "cached_input_tokens": cached}, run.model).cost
        reason = limits.before_request(run.usage, estimate, price)
    if reason is not None:
        raise OverLimit(reason)


def _chosen(
    chosen: Sequence[Message], own: Sequence[Message], messages: Sequence[Message]
) -> Sequence[Message]:
    """Return the chosen messages with the core's own in place of those of the session.

    The core may have made a message anew, to note its native form; its place is still the same.
    """
    place = {id(message): number for number, message in enumerate(own)}
    return [messages[place[id(one)]] if id(one) in place else one for one in chosen]


def _settings(run: Run) -> dict[str, Any]:
    """Return the settings that the request and the hooks want, over those of the agent."""
    overrides = run.state.read(OVERRIDES)
    return {**run.request.config, **overrides}


def _config(run: Run, prompt: Prompt, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from the agent's own settings: a fallback has others of its own."""
    before = {**run.agent.config, **settings}
    changed = {key: value for key, value in prompt.config.items() if before.get(key, _ABSENT) != value}
    return _with_offer(run, {**settings, **changed}, prompt.tools)


def _with_offer(run: Run, settings: dict[str, Any], tools: Sequence[ToolDescriptor]) -> dict[str, Any]:
    """Return the settings with the names of the tools that are offered, if those are not all."""
    all_of_them = tools is run.agent.descriptors or tools == run.agent.descriptors
    run.offered = None if all_of_them else [tool.name for tool in tools]
    return settings if run.offered is None else {**settings, "allowed_tools": run.offered}


def _frame(run: Run) -> Frame:
    """Return the system prompt, and what hooks added behind the conversation."""
    prompt, added = run.agent.spec.system_prompt, run.state.read(MESSAGES)
    return Frame(
        _system(prompt) if prompt else (),
        tuple([Message(entry["role"], entry["content"]) for entry in added]) if added else (),
    )


@lru_cache(maxsize=64)
def _system(prompt: str) -> tuple[Message, ...]:
    """Return a system prompt as messages, the same ones each time: the core knows their native form then."""
    return (Message("system", prompt),)


def _transformed(run: Run, prompt: Prompt) -> Prompt:
    view = run.view(Phase.BEFORE_INFERENCE, run.state)
    for plugin, transform in run.agent.env.request_transforms:
        try:
            changed = transform(prompt, view)
        except Exception as error:
            raise PluginError(plugin, "request_transform", f"{type(error).__name__}: {error}") from error
        if not isinstance(changed, Prompt):
            raise PluginError(plugin, "request_transform", f"must return a Prompt, not {changed!r}")
        prompt = changed
    return prompt


def _offered(run: Run) -> tuple[ToolDescriptor, ...]:
    hidden, offered = run.state.read(HIDDEN_TOOLS), run.state.read(OFFERED_TOOLS)
    if not hidden and not offered:
        return run.agent.descriptors
    return tuple(
        tool
        for tool in run.agent.descriptors
        if all(_matches(tool.name, only) for only in offered) and not _matches(tool.name, hidden)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(Glob.parse(pattern).matches(name) for pattern in patterns)


def _keep_added_messages(run: Run) -> None:
    """Put what hooks want kept into the session; the rest is only sent."""
    added = run.state.read(MESSAGES)
    mark = {ADDED_BY_HOOK: True}
    kept = [Message(entry["role"], entry["content"], metadata=mark) for entry in added if entry["keep"]]
    if kept:
        run.append(kept)
        sent = [entry for entry in added if not entry["keep"]]
        run.engine.state = run.state.replaced(MESSAGES.name, sent)


def _can_shorten(run: Run, error: AgentError) -> bool:
    wanted = getattr(error, "category", None) == "window"
    return wanted and run.compactions < MOST_SHORTENINGS and run.engine.can_do("compact")


def _shorten(run: Run, error: AgentError) -> Flow[bool]:
    """Have the conversation summarised, or less of it sent; say whether that changed what is sent."""
    if not run.compactions:
        _log.info("request_too_long", model=run.model.id, error=str(error))
        yield from warn(f"the conversation is too long for {run.model.id!r}, so less of it is sent")
    run.compactions += 1
    ways = [Command().schedule("shorten_request")]
    if run.can_compact and run.compactions <= MOST_COMPACTIONS:
        ways.insert(0, Command().schedule("compact", {"force": True}))
    for command in ways:
        before = run.state
        yield from run.engine.do(Phase.BEFORE_INFERENCE, partial(run.view, Phase.BEFORE_INFERENCE), command)
        if any(run.state[key] != before[key] for key in run.state if key in _SHORTER):
            return True
        run.can_compact = False  # no summary of these messages can be made later either
    return False


class _Translation:
    """Turns the core's events of one answer into those of a run.

    Args:
        timed: Whether retries and fallbacks get their time, for who reads the log later.
    """

    def __init__(self, *, stream: bool, timed: bool) -> None:
        self._timed = timed
        self._owes_text = stream  # a provider that sends no pieces still has said something in the end
        self.first_at: float | None = None

    def of_all(self, events: list[Event]) -> list[Event]:
        """Return what a run shows of the core's events; texts that one read brought are joined."""
        if len(events) == 1:
            one = self._of(events[0])
            shown = [] if one is None else [one]
        else:
            shown = _joined([one for event in events if (one := self._of(event)) is not None])
        if self.first_at is None and shown and events[0]["type"] == "partial":
            self.first_at = time()
        return shown

    def _of(self, event: Event) -> Event | None:
        if event["type"] == "partial":
            return self._of_partial(event["message"])
        if event["type"] == "final":
            return self._of_final(event["messages"])
        if event.get("discarded"):
            self._owes_text, self.first_at = True, None
        if self._timed and event["type"] in ("retry", "fallback"):
            event["at"] = time()
        return event

    def _of_partial(self, message: Mapping[str, Any]) -> Event | None:
        if text := message.get("content"):
            self._owes_text = False
            return {"type": "text", "text": text}
        if thought := message.get("reasoning"):
            return {"type": "reasoning", "text": thought}
        if piece := message.get("tool_call"):
            return {
                "type": "tool_call_args",
                "index": piece.get("index", 0),
                "call_id": piece.get("id"),
                "name": piece.get("name"),
                "arguments": piece.get("arguments") or "",
            }
        status = message.get("status")
        return {"type": "status", "text": str(status)} if status else None

    def _of_final(self, messages: Sequence[Mapping[str, Any]]) -> Event | None:
        text = "".join(str(message["content"]) for message in messages if message["content"])
        return {"type": "text", "text": text} if self._owes_text and text else None


def _joined(events: list[Event]) -> list[Event]:
    """Return the events with texts of a kind that follow each other as one, so many at a time."""
    joined: list[Any] = []
    for kind, same in groupby(cast("list[Any]", events), itemgetter("type")):
        if kind in _TEXTS:
            texts = [one["text"] for one in same]
            parts = (texts[at : at + _MOST_JOINED] for at in range(0, len(texts), _MOST_JOINED))
            joined += [{"type": kind, "text": "".join(part)} for part in parts]
        else:
            joined += same
    return joined
