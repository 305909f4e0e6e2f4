"""Replacing the oldest messages by a summary before a conversation outgrows the window.

Before the model is asked, the prompt is estimated. Above the policy's share of the budget, the oldest
groups are summarised by a model, an earlier summary included, and a record of it goes into the session's
state; `ContextTransformPlugin` sends the summary from then on. A summary is taken only if it saves
enough. One that does not, or a model that fails, is reported as a warning and counts as a failed attempt,
of which a run makes at most two; truncation keeps the requests within the window all the same.

The action `compact` with ``{"force": True}`` does it at once, whatever the estimate: the loop schedules
it when a provider says that a request is too long. The action `undo_compaction` takes the newest summary
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from agent_core import Message
from agent_core.steps import Emit, Flow
from agent_runtime import fields
from agent_runtime.commands import Command
from agent_runtime.context.records import (
    COMPACTIONS,
    Record,
    compacted,
    current,
    digest,
    read_records,
    undo,
    write_records,
)
from agent_runtime.context.window import limits
from agent_runtime.engine import warn
from agent_runtime.fields import Count, Name, Range
from agent_runtime.phases import Phase
from agent_runtime.schema import object_schema
from agent_runtime.state import StateKey
from agent_runtime.summary import (
    PROMPT,
    groups,
    prefix_length,
    quote_within,
    recent_start,
    summary_question,
    summary_rules,
)
from agent_runtime.tokens import counter_for

if TYPE_CHECKING:
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView
    from agent_runtime.specs import AgentSpec, ContextPolicy, ModelSpec
    from agent_runtime.tokens import TokenCounter

SECTION = "compaction"
MOST_FAILURES = 2
"""After so many failed attempts a run makes no other."""

FAILURES: StateKey[int] = StateKey(
    "context.failed_compactions", 0, merge="commutative", reduce=lambda count, more: count + more
)
"""How many attempts of this run came to nothing."""

LEAST_SUMMARY = 16
"""Fewer tokens than this say nothing."""

_PART_OF_WINDOW = 4  # a summary takes at most such a part of it
_WORDS_PER_TOKEN = 0.75
_LEAST_ROOM = 64
_TOO_LONG = 2  # estimates are rough: a summary may be so many times as long as it was asked to be


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """The section `compaction` of an agent.

    Attributes:
        model: The id of the model that summarises; by default the agent's own.
        prompt: Its instructions; rules about quoted text and length are added in any case.
        max_summary_tokens: How long a summary should be, at most a quarter of the window; one of more
            than twice that is not taken.
        min_saving: Which share of the conversation a summary must save at least.
        keep_recent: How many of the last messages are not summarised; by default as the policy says.
    """

    model: Name | None = None
    prompt: Name = PROMPT
    max_summary_tokens: Annotated[int, Range(LEAST_SUMMARY)] = 1024
    min_saving: Annotated[float, Range(0, 0.95)] = 0.3
    keep_recent: Count | None = None

    def __post_init__(self) -> None:
        fields.check(self)


SCHEMA = object_schema(CompactionSettings)
"""What the section may hold, as JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is about to be summarised.

    Attributes:
        messages: The session's.
        upto: How many of them the summary will stand for.
        covered: How many the record before stands for, or the number of leading system messages.
        earlier: The summary of that record.
        tokens: The estimate for the conversation as it is sent now.
        room: How much the request for the summary may hold.
    """

    messages: Sequence[Message]
    upto: int
    covered: int
    earlier: str | None
    tokens: int
    room: int
    settings: CompactionSettings
    counter: TokenCounter

    def saving(self, summary: str) -> float:
        """Return which share of the conversation a summary would save."""
        return 1 - self.tokens_with(summary) / max(1, self.tokens)

    def tokens_with(self, summary: str) -> int:
        """Return the estimate for the conversation with a summary."""
        return self.counter.messages(compacted(self.messages, self.upto, summary))


class CompactionPlugin:
    """Summarises old messages when a conversation nears the window.

    Attributes:
        policy: What the agent says about its context.
        model: The agent's own model; while a fallback answers, that one's window counts.
    """

    name = "context_compaction"
    version = "1"

    def __init__(self, policy: ContextPolicy, model: ModelSpec) -> None:
        self.policy = policy
        self.model = model

    def config_schemas(self) -> list[tuple[str, dict[str, Any]]]:
        return [(SECTION, SCHEMA)]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the hook, the two actions, and the state keys.

        Raises:
            SpecError: If the section has a wrong field.
        """
        _settings(registrar.spec)
        registrar.state_key(COMPACTIONS)
        registrar.state_key(FAILURES)
        registrar.phase_hook(Phase.BEFORE_INFERENCE, self.before_inference)
        registrar.action_handler("compact", self.compact)
        registrar.action_handler("undo_compaction", self.undo)

    def before_inference(self, view: PhaseView) -> Flow[Command | None]:
        """Forget summaries that are not true any more; make one if the prompt grows too long."""
        records, command = yield from self._true_records(view)
        if self._is_due(view, current(records, view.session.messages, view.session.memory)):
            command = yield from self._compact(view, records, command, forced=False)
        return command

    def compact(self, payload: object, view: PhaseView) -> Flow[Command | None]:
        """Make a summary now if the prompt is too long, or with ``{"force": True}`` in any case."""
        if self.policy.compact_at is None:
            yield from warn("old messages are not summarised: context_policy.compact_at is none", self.name)
            return None
        forced = isinstance(payload, Mapping) and payload.get("force") is True
        records, command = yield from self._true_records(view)
        if forced or self._is_due(view, current(records, view.session.messages, view.session.memory)):
            command = yield from self._compact(view, records, command, forced=forced)
        return command

    def undo(self, _payload: object, view: PhaseView) -> Command | None:
        """Take the newest summary back: what it stood for is sent again."""
        records = read_records(view.state.read(COMPACTIONS))
        return Command().update(COMPACTIONS, write_records(undo(records))) if records else None

    def _true_records(self, view: PhaseView) -> Flow[tuple[list[Record], Command | None]]:
        """Return the records that fit the history, and what forgets the others."""
        saved = view.state.read(COMPACTIONS)
        messages, memory = view.session.messages, view.session.memory
        records = [record for record in read_records(saved) if record.is_valid(messages, memory)]
        if write_records(records) == saved:
            return records, None
        message = "the conversation was edited; a summary of its earlier form is not used any more"
        yield from warn(message, self.name)
        return records, Command().update(COMPACTIONS, write_records(records))

    def _is_due(self, view: PhaseView, record: Record | None) -> bool:
        allowed = limits(self.policy, view.run.model)
        if self.policy.compact_at is None or not allowed.known:
            return False
        counter = counter_for(view.state, view.run.model.id, view.session)
        tokens = counter.messages(_as_sent(view.session.messages, record)) + _around(view, counter)
        return tokens > self.policy.compact_at * allowed.budget

    def _compact(
        self, view: PhaseView, records: list[Record], command: Command | None, *, forced: bool
    ) -> Flow[Command | None]:
        plan = self._plan(view, current(records, view.session.messages, view.session.memory), forced=forced)
        if plan is None or view.state.read(FAILURES) >= MOST_FAILURES:
            return command
        command = command or Command()
        summary, problem = yield from _summarise(view, plan)
        if problem:
            yield from warn(f"old messages could not be summarised: {problem}", self.name)
            return command.update(FAILURES, 1)
        record = _record(view, plan, summary)
        yield Emit([_event(record)])
        return command.update(COMPACTIONS, write_records([*records, record]))

    def _plan(self, view: PhaseView, record: Record | None, *, forced: bool) -> _Plan | None:
        """Return what to summarise, or None if no summary could save enough."""
        settings = self._settings_for(view)
        keep = settings.keep_recent or self.policy.keep_recent
        # A prompt that was refused must become shorter, even if hardly anything is left but the last turn.
        for keep_recent in (keep, 1) if forced else (keep,):
            plan = self._plan_keeping(view, record, settings, keep_recent, forced=forced)
            if plan.upto > plan.covered and plan.saving("") >= settings.min_saving:
                return plan
        return None

    def _settings_for(self, view: PhaseView) -> CompactionSettings:
        """Return the section, with a summary that is short enough for the model's window."""
        settings, window = _settings(view.spec), limits(self.policy, view.run.model).window
        most = max(LEAST_SUMMARY, window // _PART_OF_WINDOW)
        return replace(settings, max_summary_tokens=min(settings.max_summary_tokens, most))

    def _plan_keeping(
        self,
        view: PhaseView,
        record: Record | None,
        settings: CompactionSettings,
        keep_recent: int,
        *,
        forced: bool,
    ) -> _Plan:
        messages, counter = view.session.messages, counter_for(view.state, view.run.model.id, view.session)
        front = prefix_length(messages)
        tokens = counter.messages(_as_sent(messages, record))
        return _Plan(
            messages=messages,
            upto=recent_start(messages, groups(messages, front), keep_recent),
            covered=front if record is None else record.upto,
            earlier=None if record is None else record.summary,
            tokens=tokens,
            room=self._room(view, settings, tokens + _around(view, counter), forced=forced),
            settings=settings,
            counter=counter,
        )

    def _room(self, view: PhaseView, settings: CompactionSettings, tokens: int, *, forced: bool) -> int:
        allowed = limits(self.policy, view.run.model)
        room = min(allowed.budget, allowed.window - settings.max_summary_tokens)
        # The window may be smaller than anybody said, if the provider refused this many tokens.
        return min(room, tokens // 2) if forced else room


def _summarise(view: PhaseView, plan: _Plan) -> Flow[tuple[str, str]]:
    """Return a summary, and what is wrong with it if it cannot be used."""
    old = plan.messages[plan.covered : plan.upto]
    room = plan.room
    while True:
        request = summary_request(old, plan.earlier, plan.settings, plan.counter, room)
        try:
            text = yield from view.run.ask(request, model=plan.settings.model, config={})
        except Exception as error:  # whatever it is, the run can go on without a summary
            room //= 2
            if getattr(error, "category", None) != "window":
                return "", f"the model failed with {type(error).__name__}: {error}"
            if room <= _LEAST_ROOM:
                return "", "even a small part of them is too long for the model"
            continue  # the window is smaller than anybody said
        summary = text.strip()
        return summary, _problem(plan, summary)


def summary_request(
    messages: Sequence[Message],
    earlier: str | None,
    settings: CompactionSettings,
    counter: TokenCounter,
    room: int,
) -> list[Message]:
    """Return the messages that ask for a summary, within *room* tokens.

    Args:
        messages: What is to be summarised. Long ones are shortened, and the oldest are left out, if there
            is no room for them.
        earlier: The summary of what came before, if there is one; the new one is to include it.
    """
    words = int(settings.max_summary_tokens * _WORDS_PER_TOKEN)
    rules = Message("system", summary_rules(settings.prompt, words=words))
    frame = counter.messages([rules, Message("user", summary_question([]))])
    lines = quote_within(messages, earlier, counter.text, max(_LEAST_ROOM, room - frame))
    return [rules, Message("user", summary_question(lines))]


def _problem(plan: _Plan, summary: str) -> str:
    most, tokens = plan.settings.max_summary_tokens, plan.counter.text(summary)
    if not summary:
        return "the model's summary is empty"
    if tokens > _TOO_LONG * most:
        return f"the model's summary has about {tokens} tokens, where {most} were asked for"
    if plan.saving(summary) < plan.settings.min_saving:
        saved, least = max(0.0, plan.saving(summary)), plan.settings.min_saving
        return f"the summary saves {saved:.0%} of the conversation, and compaction.min_saving is {least:.0%}"
    return ""


def _record(view: PhaseView, plan: _Plan, summary: str) -> Record:
    return Record(
        upto=plan.upto,
        digest=digest(plan.messages[: plan.upto]),
        summary=summary,
        tokens_before=plan.tokens,
        tokens_after=plan.tokens_with(summary),
        model=plan.settings.model or view.run.model.id,
        at_round=view.run.round,
    )


def _event(record: Record) -> dict[str, Any]:
    return {
        "type": "compaction",
        "messages": record.upto,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
    }


def _as_sent(messages: Sequence[Message], record: Record | None) -> Sequence[Message]:
    return messages if record is None else compacted(messages, record.upto, record.summary)


def _around(view: PhaseView, counter: TokenCounter) -> int:
    """Return the tokens of what every request has besides the conversation."""
    prompt = view.spec.system_prompt
    return (counter.message(Message("system", prompt)) if prompt else 0) + counter.tools(view.run.tools)


def _settings(spec: AgentSpec) -> CompactionSettings:
    return fields.read(CompactionSettings, dict(spec.section(SECTION)), where=SECTION)
