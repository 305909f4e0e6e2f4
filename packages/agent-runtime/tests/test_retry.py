"""Asking again and asking another model, row by row of the table, with scripts and with real HTTP."""

from __future__ import annotations

import asyncio
import http.client
import os
import threading
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import httpx
import pytest
from hypothesis import example, given, settings, strategies as st

from agent_core import AgentCore, Cancellation, PluginError, ProviderError, Session
from agent_core.drivers import AsyncEventStream, EventStream, call
from agent_core.errors import ArgumentError, RequestCancelled
from agent_core.testing import Reply, ScriptedProvider
from agent_provider_kit import (
    ApiKey,
    ContextTooLong,
    Exchange,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    RequestRefused,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
)
from agent_runtime.errors import ModelUnavailable
from agent_runtime.executor import Answer, Executor, Inference, ProviderExecutor
from agent_runtime.health import HEALTH, HealthRegistry
from agent_runtime.retry import RetryingExecutor, delay, judge
from agent_runtime.specs import ModelSpec, RetryPolicy
from agent_runtime.testing import ManualClock
from agent_testing import (
    FAULTS,
    ScriptedServer,
    ServerReply,
    chat_chunk,
    chat_reply,
    error_reply,
    sse_reply,
)
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_core.testing.scripted import Line

Dicts = list[dict[str, Any]]
EXCHANGE = Exchange("scripted", "stream_api", "https://api.invalid/v1", ApiKey("sk-secret", "the test"))
EARLY = [Unreachable, Overloaded]
BROKEN = [StreamCutOff, StreamMalformed]
TAKEN_OVER = [KeyRefused, LimitReached, NotTheProvider]
PATIENCE = 60.0


def failure(kind: type[ProviderFailure], retry_after: float | None = None, **fields: Any) -> ProviderFailure:
    return kind(EXCHANGE, f"it is {kind.category}", retry_after=retry_after, **fields)


def late(error: Exception, text: str = "Half an ans") -> Reply:
    """An answer that begins and then fails."""
    return Reply(text=text, error=error)


class Outcome(NamedTuple):
    """What an ask came to."""

    answer: Answer | None
    error: Exception | None
    events: Dicts

    @property
    def text(self) -> str:
        assert self.answer is not None, self.error
        return str(self.answer.turn.messages[-1]["content"])

    @property
    def told(self) -> list[str]:
        """The retries and fallbacks, shortly, with what was shown between them."""
        return [_short(event) for event in self.events if event["type"] != "final"]

    def of_type(self, kind: str) -> Dicts:
        return [event for event in self.events if event["type"] == kind]


def _short(event: dict[str, Any]) -> str:
    if event["type"] == "partial":
        return str(event["message"]["content"])
    void = ", void" if event["discarded"] else ""
    if event["type"] == "retry":
        return f"retry {event['attempt']}/{event['of']} {event['category']}{void}"
    return f"{event['instead_of']} -> {event['model']}{void}"


@dataclass
class Asking:
    """One or more scripted models behind a retrying executor."""

    scripts: dict[str, Iterable[Line]]
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    windows: dict[str, int] = field(default_factory=dict)
    random: Callable[[], float] = lambda: 1.0
    clock: ManualClock = field(default_factory=lambda: ManualClock(auto_advance=True))
    health: HealthRegistry = field(default_factory=HealthRegistry)
    cancellation: Cancellation | None = field(default_factory=Cancellation)
    stream: bool = True

    def __post_init__(self) -> None:
        self.core = AgentCore()
        self.providers = {name: ScriptedProvider(script, name=name) for name, script in self.scripts.items()}
        for provider in self.providers.values():
            self.core.register_provider(provider)
        self.session = self.core.add_message(Session("s"), "user", "What is tea?")

    @property
    def executor(self) -> RetryingExecutor:
        targets = tuple(self.target(name) for name in self.scripts)
        return RetryingExecutor(targets, self.policy, self.health, self.random)

    def target(self, name: str) -> Executor:
        spec = ModelSpec(name, name, context_window=self.windows.get(name))
        return ProviderExecutor(self.core, spec, {"provider": name})

    @property
    def inference(self) -> Inference:
        return Inference(
            session=self.session, clock=self.clock, cancellation=self.cancellation, stream=self.stream
        )

    def asked(self) -> dict[str, int]:
        """How often each model was asked."""
        return {name: len(provider.requests) for name, provider in self.providers.items()}

    def run(self) -> Outcome:
        events = EventStream(self.executor.ask(self.inference))
        seen: Dicts = []
        try:
            seen.extend(events)
        except Exception as error:  # it is what the test is about
            return Outcome(None, error, seen)
        return Outcome(events.result, None, seen)

    def run_async(self) -> Outcome:
        async def collect() -> Outcome:
            events = AsyncEventStream(self.executor.ask(self.inference))
            seen: Dicts = []
            try:
                async for event in events:
                    seen.append(event)
            except Exception as error:  # it is what the test is about
                return Outcome(None, error, seen)
            return Outcome(events.result, None, seen)

        return asyncio.run(collect())


def asking(*script: Line, **settings_: Any) -> Asking:
    return Asking({"first": script}, **settings_)


@pytest.fixture(params=[Asking.run, Asking.run_async], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Callable[[Asking], Outcome]:
    """Asks in this thread, or on an event loop."""
    runner: Callable[[Asking], Outcome] = request.param
    return runner


# A model that answers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cancellation", [None, Cancellation()])
def test_an_answer_passes_unchanged(
    run: Callable[[Asking], Outcome], stream: bool, cancellation: Cancellation | None
) -> None:
    reply = Reply(chunks=["Tea ", "is ", "a drink."])
    subject = asking(reply, stream=stream, cancellation=cancellation)
    outcome = run(subject)

    plain = asking(reply, stream=stream, cancellation=cancellation)
    bare = EventStream(plain.target("first").ask(plain.inference))
    assert [event.get("message") for event in outcome.events] == [event.get("message") for event in bare]
    assert bare.result is not None and outcome.answer is not None
    assert outcome.answer.turn.messages == bare.result.turn.messages
    assert outcome.answer.model == bare.result.model == subject.executor.model
    assert subject.clock.slept == []


@given(chunks=st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=8), watched=st.booleans())
@settings(deadline=None, max_examples=40)
def test_no_piece_is_lost_or_doubled_by_being_watched(chunks: list[str], watched: bool) -> None:
    subject = asking(Reply(chunks=chunks), cancellation=Cancellation() if watched else None)

    outcome = subject.run()

    assert [event["message"]["content"] for event in outcome.of_type("partial")] == chunks
    assert outcome.text == "".join(chunks)


def test_it_is_an_executor_with_the_name_and_model_of_the_first() -> None:
    executor = Asking({"first": [], "second": []}).executor

    assert (executor.id, executor.model.id) == ("first", "first")


def test_without_a_target_there_is_nobody_to_ask() -> None:
    with pytest.raises(ArgumentError, match="at least one target"):
        RetryingExecutor((), RetryPolicy())


def test_by_default_health_is_that_of_the_process_and_pauses_are_random() -> None:
    executor = RetryingExecutor(asking().executor.targets, RetryPolicy())

    assert executor.health is HEALTH
    assert len({executor.random() for _ in range(10)}) > 1
    assert all(0 <= executor.random() <= 1 for _ in range(100))


# The table


@pytest.mark.parametrize("kind", EARLY)
def test_a_failure_before_the_answer_is_tried_again(
    run: Callable[[Asking], Outcome], kind: type[ProviderFailure]
) -> None:
    subject = asking(failure(kind), failure(kind), "Tea.")

    outcome = run(subject)

    assert outcome.text == "Tea."
    assert outcome.told == [f"retry 1/4 {kind.category}", f"retry 2/4 {kind.category}", "Tea."]
    assert subject.clock.slept == [0.5, 1.0]


def test_a_retry_is_reported_before_the_pause() -> None:
    error = failure(Overloaded)
    [event] = asking(error, "Tea.").run().of_type("retry")

    assert event == {
        "type": "retry",
        "attempt": 1,
        "of": 4,
        "seconds": 0.5,
        "category": "transient",
        "message": str(error),
        "model": "first",
        "discarded": False,
    }


@pytest.mark.parametrize("kind", EARLY)
def test_after_the_last_retry_the_failure_is_raised(kind: type[ProviderFailure]) -> None:
    last = failure(kind)
    subject = asking(*[failure(kind)] * 4, last, "too late")

    outcome = subject.run()

    assert outcome.error is last
    assert subject.asked() == {"first": 5}
    assert subject.clock.slept == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("kind", [*BROKEN, *EARLY])
def test_a_failure_in_the_middle_of_an_answer_is_tried_again_from_the_beginning(
    run: Callable[[Asking], Outcome], kind: type[ProviderFailure]
) -> None:
    subject = asking(late(failure(kind)), "A whole answer.")

    outcome = run(subject)

    assert outcome.told == ["Half an ans", "retry 1/2 stream_broken, void", "A whole answer."]
    first, second = subject.providers["first"].requests
    assert second.native_messages == first.native_messages
    assert outcome.answer is not None
    assert [m.content for m in outcome.answer.turn.session.messages] == ["What is tea?", "A whole answer."]


@pytest.mark.parametrize("kind", [*BROKEN, *EARLY])
@pytest.mark.parametrize("cancellation", [None, Cancellation()])
def test_a_broken_answer_is_tried_twice_more_and_its_last_beginning_is_kept(
    kind: type[ProviderFailure], cancellation: Cancellation | None
) -> None:
    script = [late(failure(kind), text) for text in ("One", "Two", "Three")]
    subject = asking(*script, "too late", cancellation=cancellation)

    outcome = subject.run()

    assert isinstance(outcome.error, kind)
    assert outcome.error.partial is not None
    assert outcome.error.partial["messages"][0]["content"] == "Three"
    assert subject.asked() == {"first": 3}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_answer_counts_as_broken_also_where_none_was_shown(kind: type[ProviderFailure]) -> None:
    outcome = asking(failure(kind), "Tea.").run()

    assert outcome.told == ["retry 1/2 stream_broken, void", "Tea."]


@pytest.mark.parametrize("kind", [*TAKEN_OVER, ContextTooLong, RequestRefused])
@pytest.mark.parametrize("middle", [False, True])
def test_a_failure_that_stays_is_raised_at_once(kind: type[ProviderFailure], middle: bool) -> None:
    error = failure(kind, retry_after=1.0)
    subject = asking(late(error) if middle else error, "too late")

    outcome = subject.run()

    assert outcome.error is error
    assert subject.asked() == {"first": 1}
    assert outcome.of_type("retry") == []


@pytest.mark.parametrize("kind", TAKEN_OVER)
@pytest.mark.parametrize("middle", [False, True])
def test_a_failure_of_the_account_or_the_way_there_goes_to_the_next_model(
    run: Callable[[Asking], Outcome], kind: type[ProviderFailure], middle: bool
) -> None:
    error = failure(kind)
    subject = Asking({"first": [late(error, "Half") if middle else error], "second": ["Tea."]})

    outcome = run(subject)

    begun = ["Half", "first -> second, void"] if middle else ["first -> second"]
    assert outcome.told == [*begun, "Tea."]
    assert outcome.answer is not None and outcome.answer.model.id == "second"
    assert outcome.of_type("fallback")[0]["message"] == str(error)


@pytest.mark.parametrize("kind", [*EARLY, *BROKEN])
def test_when_the_retries_are_used_up_the_next_model_is_asked(kind: type[ProviderFailure]) -> None:
    policy = RetryPolicy(max_retries=1, stream_retries=1)
    subject = Asking({"first": [failure(kind)] * 2, "second": ["Tea."]}, policy)

    outcome = subject.run()

    assert outcome.text == "Tea."
    assert len(outcome.of_type("retry")) == len(outcome.of_type("fallback")) == 1
    assert subject.asked() == {"first": 2, "second": 1}


def test_a_request_that_was_refused_is_not_sent_to_other_models() -> None:
    error = failure(RequestRefused)
    subject = Asking({"first": [error], "second": ["Tea."]})

    assert subject.run().error is error
    assert subject.asked() == {"first": 1, "second": 0}


def test_each_model_has_retries_of_its_own() -> None:
    down = [failure(Overloaded)] * 2
    subject = Asking({"first": down, "second": [*down[:1], "Tea."]}, RetryPolicy(max_retries=1))

    outcome = subject.run()

    assert outcome.told == [
        "retry 1/1 transient",
        "first -> second",
        "retry 1/1 transient",
        "Tea.",
    ]
    assert subject.clock.slept == [0.5, 0.5]


def test_if_nobody_answers_the_first_model_says_why_and_the_others_are_noted() -> None:
    refused, spent, lost = failure(KeyRefused), failure(LimitReached), failure(NotTheProvider)
    subject = Asking({"first": [refused], "second": [spent], "third": [lost]})

    outcome = subject.run()

    assert outcome.error is refused
    assert refused.__notes__ == [
        f"Model 'second' did not answer: {spent}",
        f"Model 'third' did not answer: {lost}",
    ]
    assert outcome.told == ["first -> second", "second -> third"]


def test_what_only_the_caller_can_mend_is_raised_before_what_the_first_model_said() -> None:
    down, too_long = failure(LimitReached), failure(ContextTooLong)
    outcome = Asking({"first": [down], "second": [too_long]}).run()

    assert outcome.error is too_long
    assert too_long.__notes__ == [f"Model 'first' did not answer: {down}"]


# A conversation that is too long


def test_a_conversation_that_is_too_long_goes_to_the_next_model_with_a_larger_window() -> None:
    scripts: dict[str, Iterable[Line]] = {
        "first": [failure(ContextTooLong)],
        "equal": ["no"],
        "unknown": ["no"],
        "large": [failure(ContextTooLong)],
        "between": ["no"],
        "huge": ["Tea."],
    }
    windows = {"first": 1000, "equal": 1000, "large": 5000, "between": 4000, "huge": 9000}
    outcome = Asking(scripts, windows=windows).run()

    assert outcome.told == ["first -> large", "large -> huge", "Tea."]


@pytest.mark.parametrize("windows", [{}, {"first": 1000}, {"second": 1000}, {"first": 2, "second": 1}])
def test_without_a_window_known_to_be_larger_the_caller_has_to_shorten_it(windows: dict[str, int]) -> None:
    error = failure(ContextTooLong)
    subject = Asking({"first": [error], "second": ["no"]}, windows=windows)

    assert subject.run().error is error
    assert subject.asked()["second"] == 0


def test_it_stays_too_long_if_the_larger_model_fails_in_another_way() -> None:
    error = failure(ContextTooLong)
    windows = {"first": 1000, "large": 5000, "small": 500}
    subject = Asking({"first": [error], "large": [failure(KeyRefused)], "small": ["no"]}, windows=windows)

    assert subject.run().error is error
    assert subject.asked() == {"first": 1, "large": 1, "small": 0}


# Errors that say nothing about themselves


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("missing"), PluginError("p", "h", "bug")])
@pytest.mark.parametrize("middle", [False, True])
def test_a_bug_is_neither_tried_again_nor_elsewhere(error: Exception, middle: bool) -> None:
    subject = Asking({"first": [late(error) if middle else error], "second": ["Tea."]})

    outcome = subject.run()

    assert isinstance(outcome.error, PluginError)
    assert subject.asked() == {"first": 1, "second": 0}


@pytest.mark.parametrize(
    "error",
    [ConnectionError("refused"), ConnectionResetError("reset"), TimeoutError("slow"), OSError("no route")],
)
def test_a_connection_that_fails_beneath_any_provider_counts_as_transport(error: Exception) -> None:
    early, middle = asking(error, "Tea.").run(), asking(late(error), "Tea.").run()

    assert early.told == ["retry 1/4 transport", "Tea."]
    assert middle.told == ["Half an ans", "retry 1/2 stream_broken, void", "Tea."]


def test_only_a_provider_can_lose_its_connection() -> None:
    error = PluginError("a_tool", "hook", "cannot read")
    error.__cause__ = OSError("disk")

    assert not judge(error).again
    assert judge(error).onward == "none"


class StrangeError(ProviderError):
    """What a provider of somebody else may raise."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)
        super().__init__("strange", "stream_api", "strange")


@pytest.mark.parametrize(
    ("error", "again", "onward"),
    [
        (StrangeError(category="busy", retryable=True), True, "any"),
        (StrangeError(category="busy", retryable=False), False, "none"),
        (StrangeError(category="busy"), False, "none"),
        (StrangeError(category="transient", retryable=False), False, "any"),
        (StrangeError(category="auth", retryable=True), False, "any"),
        (StrangeError(category=None, retryable=True), True, "any"),
        (StrangeError(retryable=True), True, "any"),
        (StrangeError(retryable=True, category=5), True, "any"),
        (StrangeError(retryable=False), False, "none"),
        (StrangeError(retry_after=3), True, "any"),
        (StrangeError(retry_after=3, retryable=False), False, "none"),
        (StrangeError(retry_after="soon"), False, "none"),
    ],
)
def test_fields_of_strangers_are_read_with_care(error: StrangeError, again: bool, onward: str) -> None:
    judged = judge(error)

    assert (judged.again, judged.onward) == (again, onward)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), (3, 3.0), (0.5, 0.5), (-1, 0.0), (nan, None), (inf, inf), ("3", None), (True, None)],
)
def test_only_a_number_is_a_time_to_wait(value: Any, seconds: float | None) -> None:
    assert judge(StrangeError(category="transient", retry_after=value)).retry_after == seconds


def test_what_a_provider_is_busy_with_is_no_answer() -> None:
    class Loading(ScriptedProvider):
        def process_chunk(self, chunk: Any, native_messages: Dicts, state: Any) -> Any:
            _, finals, native, state = super().process_chunk(chunk, native_messages, state)
            state["text"].clear()
            return [{"role": "assistant", "content": "", "status": "Loading"}], finals, native, state

    subject = asking()
    subject.providers["first"] = Loading([late(failure(Unreachable)), failure(Overloaded)], name="loading")
    subject.core.register_provider(subject.providers["first"])
    target = ProviderExecutor(subject.core, ModelSpec("m", "loading"), {"provider": "loading"})
    executor = RetryingExecutor((target,), RetryPolicy(max_retries=1), HealthRegistry())

    events = EventStream(executor.ask(subject.inference))
    seen: Dicts = []
    with pytest.raises(Overloaded):
        seen.extend(events)

    assert [_short(event) for event in seen] == ["", "retry 1/1 transport"]


def test_what_was_shown_is_void_even_if_nothing_of_it_could_be_kept() -> None:
    class Forgetful(ScriptedProvider):
        def finalize(self, native_messages: Dicts, state: Any) -> Any:
            if state["end"]:
                return super().finalize(native_messages, state)
            return [], native_messages, state

    subject = asking()
    whole = Reply(text="Tea.", usage={"total_tokens": 1})
    subject.core.register_provider(Forgetful([late(failure(Unreachable)), whole], name="forgetful"))
    target = ProviderExecutor(subject.core, ModelSpec("m", "forgetful"), {"provider": "forgetful"})
    executor = RetryingExecutor((target,), RetryPolicy(), HealthRegistry(), lambda: 0.0)

    events = list(EventStream(executor.ask(subject.inference)))

    assert [_short(e) for e in events[:-1]] == ["Half an ans", "retry 1/2 stream_broken, void", "Tea."]


# Pauses


@given(
    retries=st.integers(0, 20),
    number=st.floats(0, 1),
    base=st.floats(0, 1e6),
    most=st.floats(0, 1e6),
    retry_after=st.none() | st.floats(0, 1e6),
)
def test_a_pause_is_within_its_bounds(
    retries: int, number: float, base: float, most: float, retry_after: float | None
) -> None:
    policy = RetryPolicy(base_delay=base, max_delay=most)

    seconds = delay(policy, retries, number, retry_after)

    assert (retry_after or 0.0) <= seconds <= max(most, retry_after or 0.0)
    assert seconds <= max(base * 2.0**retries, retry_after or 0.0)


@given(
    retries=st.integers(0, 19), numbers=st.tuples(st.floats(0, 1), st.floats(0, 1)), base=st.floats(0.001, 10)
)
def test_a_pause_grows_with_the_retries_and_with_the_number_drawn(
    retries: int, numbers: tuple[float, float], base: float
) -> None:
    policy, (low, high) = RetryPolicy(base_delay=base), sorted(numbers)

    assert delay(policy, retries, low) <= delay(policy, retries, high)
    assert delay(policy, retries, high) <= delay(policy, retries + 1, high)
    assert delay(policy, retries, 0.0) == 0.0
    assert delay(policy, retries, 1.0) == min(policy.max_delay, base * 2.0**retries)


def test_pauses_are_drawn_anew_each_time() -> None:
    numbers = iter([0.25, 0.0, 1.0, 0.5])
    subject = asking(*[failure(Overloaded)] * 4, "Tea.", random=lambda: next(numbers))

    subject.run()

    assert subject.clock.slept == [0.125, 0.0, 2.0, 2.0]


def test_pauses_grow_with_every_retry_of_whatever_kind() -> None:
    subject = asking(failure(StreamCutOff), failure(Overloaded), failure(StreamCutOff), "Tea.")

    subject.run()

    assert subject.clock.slept == [0.5, 1.0, 2.0]


def test_a_server_that_says_when_to_come_back_is_not_asked_before() -> None:
    subject = asking(failure(Overloaded, 7.0), failure(Overloaded, 0.25), "Tea.")

    outcome = subject.run()

    assert subject.clock.slept == [7.0, 1.0]
    assert [event["seconds"] for event in outcome.of_type("retry")] == [7.0, 1.0]


@pytest.mark.parametrize(("retry_after", "asks"), [(60.0, 2), (60.1, 1), (inf, 1)])
def test_nobody_waits_longer_than_the_policy_allows(retry_after: float, asks: int) -> None:
    subject = asking(failure(Overloaded, retry_after), failure(RequestRefused))

    subject.run()

    assert subject.asked() == {"first": asks}


def test_a_fallback_is_asked_in_place_of_a_wait_that_is_too_long() -> None:
    subject = Asking({"first": [failure(Overloaded, 3600.0)], "second": ["Tea."]})

    outcome = subject.run()

    assert outcome.told == ["first -> second", "Tea."]
    assert subject.clock.slept == []


def test_no_pause_is_made_that_would_pass_the_deadline() -> None:
    subject = asking(*[failure(Overloaded)] * 5, policy=RetryPolicy(deadline=3.5))

    outcome = subject.run()

    assert isinstance(outcome.error, Overloaded)
    assert subject.clock.slept == [0.5, 1.0, 2.0]


def test_the_deadline_counts_from_the_question_and_not_from_the_first_failure() -> None:
    def slow(_messages: Dicts) -> Exception:
        subject.clock.advance(3.0)
        return failure(Overloaded)

    subject = asking(slow, "too late", policy=RetryPolicy(deadline=3.2))

    assert isinstance(subject.run().error, Overloaded)
    assert subject.asked() == {"first": 1}


@pytest.mark.parametrize(("deadline", "asked"), [(3.0, 0), (3.1, 1)])
def test_another_model_is_asked_until_the_deadline_is_over(deadline: float, asked: int) -> None:
    def slow(_messages: Dicts) -> Exception:
        subject.clock.advance(3.0)
        return failure(Overloaded)

    subject = Asking({"first": [slow], "second": ["Tea."]}, RetryPolicy(deadline=deadline))

    outcome = subject.run()

    assert subject.asked() == {"first": 1, "second": asked}
    assert (outcome.error is None) is bool(asked)


@given(
    script=st.lists(st.sampled_from([Unreachable, Overloaded, StreamCutOff]), max_size=10),
    middles=st.lists(st.booleans(), min_size=10, max_size=10),
    most=st.integers(0, 4),
    most_broken=st.integers(0, 4),
)
@example(script=[Unreachable, StreamCutOff] * 2, middles=[False] * 10, most=2, most_broken=2)
@settings(deadline=None, max_examples=60)
def test_the_two_kinds_of_retries_are_counted_apart(
    script: list[type[ProviderFailure]], middles: list[bool], most: int, most_broken: int
) -> None:
    broken = [kind is StreamCutOff or middle for kind, middle in zip(script, middles, strict=False)]
    lines = [late(failure(k)) if m else failure(k) for k, m in zip(script, middles, strict=False)]
    policy = RetryPolicy(max_retries=most, stream_retries=most_broken)
    subject = asking(*lines, "Tea.", policy=policy)
    fails_at = [
        place
        for place, is_broken in enumerate(broken)
        if broken[: place + 1].count(is_broken) > (most_broken if is_broken else most)
    ]

    outcome = subject.run()

    assert (outcome.error is None) is (not fails_at)
    assert subject.asked()["first"] == (fails_at[0] if fails_at else len(script)) + 1
    assert [event["discarded"] for event in outcome.of_type("retry")] == broken[: len(subject.clock.slept)]


# Being cancelled


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    outcome: list[Any] = []

    def run_it() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the test
            outcome.append(error)

    thread = threading.Thread(target=run_it, daemon=True)
    thread.start()
    return thread, outcome


def test_cancelling_ends_a_pause_at_once_and_asks_nobody_again(run: Callable[[Asking], Outcome]) -> None:
    token = Cancellation()
    subject = Asking(
        {"first": [failure(Overloaded), "no"], "second": ["no"]}, clock=ManualClock(), cancellation=token
    )
    thread, outcome = in_thread(lambda: run(subject))
    subject.clock.wait_for_sleepers()

    token.cancel()
    thread.join(PATIENCE)

    assert isinstance(outcome[0], RequestCancelled)
    assert subject.asked() == {"first": 1, "second": 0}


def test_a_pause_goes_on_when_its_time_has_come(run: Callable[[Asking], Outcome]) -> None:
    subject = asking(failure(Overloaded), "Tea.", clock=ManualClock())
    thread, outcome = in_thread(lambda: run(subject))
    subject.clock.wait_for_sleepers()

    subject.clock.advance(0.5)
    thread.join(PATIENCE)

    assert outcome[0].text == "Tea."


def test_an_answer_that_is_cancelled_is_kept_and_not_asked_for_again() -> None:
    token = Cancellation()
    subject = asking(Reply(chunks=["Tea ", "is"]), "no", cancellation=token)
    events = EventStream(subject.executor.ask(subject.inference))

    assert next(events)["message"]["content"] == "Tea "
    token.cancel()
    list(events)

    assert events.result is not None
    assert events.result.turn.interrupted
    assert events.result.turn.messages[0]["content"] == "Tea "
    assert subject.asked() == {"first": 1}


@pytest.mark.parametrize("cancellation", [None, Cancellation()])
def test_a_caller_that_leaves_keeps_what_was_said(cancellation: Cancellation | None) -> None:
    subject = asking(Reply(chunks=["Tea ", "is ", "good"]), cancellation=cancellation)

    with EventStream(subject.executor.ask(subject.inference)) as events:
        next(events)
        next(events)

    assert events.result is not None and events.result.turn.interrupted
    assert events.result.turn.messages[0]["content"].startswith("Tea is ")


def test_a_cancelled_request_does_not_go_to_another_model() -> None:
    token = Cancellation()

    def cancel_and_fail(_inference: Inference) -> Any:
        token.cancel()
        raise failure(KeyRefused)
        yield

    subject = Asking({"first": [], "second": ["no"]}, cancellation=token)
    first = replace(subject.executor, targets=(Failing(cancel_and_fail), subject.target("second")))

    with pytest.raises(RequestCancelled):
        call(first.ask(subject.inference))
    assert subject.asked()["second"] == 0


@dataclass(frozen=True)
class Failing:
    """An executor that does what a test wants."""

    ask: Callable[[Inference], Any]
    id: str = "failing"
    model: ModelSpec = field(default_factory=lambda: ModelSpec("failing", "failing"))


# Health


def test_a_model_that_keeps_failing_is_left_alone() -> None:
    subject = asking(*[failure(Overloaded)] * 10, policy=RetryPolicy(max_retries=1))
    errors = [subject.run().error for _ in range(6)]

    assert [type(error) for error in errors] == [Overloaded] * 5 + [ModelUnavailable]
    assert subject.asked() == {"first": 10}
    assert "'first/first'" in str(errors[-1])


def test_a_model_that_is_left_alone_is_skipped_for_the_next() -> None:
    subject = Asking({"first": repeat(failure(LimitReached)), "second": repeat("Tea.")})
    for _ in range(5):
        subject.run()

    outcome = subject.run()

    assert outcome.told == ["first -> second", "Tea."]
    assert "left alone for 30 seconds" in outcome.of_type("fallback")[0]["message"]
    assert subject.asked() == {"first": 5, "second": 6}


def test_if_everybody_is_left_alone_nothing_is_sent() -> None:
    subject = Asking({"first": repeat(failure(LimitReached)), "second": repeat(failure(LimitReached))})
    for _ in range(5):
        subject.run()

    error = subject.run().error

    assert isinstance(error, ModelUnavailable)
    assert "'second/second'" in error.__notes__[0]
    assert subject.asked() == {"first": 5, "second": 5}


def test_a_model_that_is_back_is_asked_as_before() -> None:
    subject = asking(*[failure(LimitReached)] * 5, "Tea.", "Tea.", "Tea.")
    for _ in range(5):
        subject.run()

    subject.clock.advance(30.0)

    assert [subject.run().text for _ in range(3)] == ["Tea."] * 3


@pytest.mark.parametrize("kind", [KeyRefused, RequestRefused, ContextTooLong])
def test_what_is_not_the_fault_of_a_model_does_not_count_against_it(kind: type[ProviderFailure]) -> None:
    subject = asking(*[failure(kind)] * 10)

    errors = [subject.run().error for _ in range(10)]

    assert all(type(error) is kind for error in errors)


def test_health_outlives_the_executor() -> None:
    first = asking(*[failure(LimitReached)] * 5)
    for _ in range(5):
        first.run()

    second = asking("Tea.", health=first.health)

    assert isinstance(second.run().error, ModelUnavailable)


def opened(*script: Line, **settings_: Any) -> Asking:
    """A model whose breaker is about to be tried."""
    health = HealthRegistry(failures=1)
    subject = asking(failure(LimitReached), *script, health=health, **settings_)
    subject.run()
    subject.clock.advance(30.0)
    return subject


def test_a_probe_that_is_cancelled_in_a_pause_makes_room() -> None:
    token = Cancellation()
    subject = opened(failure(Overloaded), "Tea.", clock=ManualClock(), cancellation=token)
    thread, outcome = in_thread(subject.run)
    subject.clock.wait_for_sleepers()
    assert isinstance(replace_token(subject).run().error, ModelUnavailable)

    token.cancel()
    thread.join(PATIENCE)

    assert isinstance(outcome[0], RequestCancelled)
    assert replace_token(subject).run().text == "Tea."


def replace_token(subject: Asking) -> Asking:
    subject.cancellation = Cancellation()
    return subject


def test_a_probe_whose_answer_is_cancelled_makes_room() -> None:
    token = Cancellation()
    subject = opened(Reply(chunks=["Tea ", "is"]), "Tea.", cancellation=token)
    events = EventStream(subject.executor.ask(subject.inference))
    next(events)
    token.cancel()
    list(events)

    assert subject.health.snapshot()["first/first"].state == "half_open"
    assert replace_token(subject).run().text == "Tea."


def test_a_probe_that_nobody_reads_any_more_makes_room() -> None:
    subject = opened("Tea.")

    flow = subject.executor.ask(subject.inference)
    next(flow)
    flow.close()

    assert subject.run().text == "Tea."


def test_a_probe_that_meets_a_refused_key_makes_room() -> None:
    subject = opened(failure(KeyRefused), "Tea.")

    assert isinstance(subject.run().error, KeyRefused)
    assert subject.run().text == "Tea."


# With a real server


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor proxies of whoever runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


class Served(Asking):
    """Models of a real server."""

    def __init__(self, server: ScriptedServer, *models: str, **settings_: Any) -> None:
        super().__init__(dict.fromkeys(models or ("first",), ()), **settings_)
        self.core.register_provider(OpenAICompatibleProvider())
        self.server = server

    def target(self, name: str) -> Executor:
        config = {
            "provider": "openai_compatible",
            "model": name,
            "base_url": self.server.url,
            "api_key": "sk-1",
        }
        return ProviderExecutor(self.core, ModelSpec(name, "openai_compatible", name), config)


GOOD = chat_reply("Tea is a drink.")
TRANSIENT = [408, 409, 429, 500, 502, 503, 504, 529]
STAYING = {
    401: "auth",
    403: "auth",
    402: "limit",
    413: "window",
    400: "rejected",
    404: "rejected",
    422: "rejected",
}


def in_the_middle(status: int) -> ServerReply:
    """An answer that began well, with an error where its end should be."""
    error = {"error": {"code": status, "message": f"this is a {status}"}}
    return sse_reply(chat_chunk({"role": "assistant", "content": "Te"}), error)


@pytest.mark.parametrize("status", TRANSIENT)
def test_a_status_that_passes_is_tried_again(run: Callable[[Asking], Outcome], status: int) -> None:
    with ScriptedServer(error_reply(status), GOOD) as server:
        outcome = run(Served(server))

    assert outcome.text == "Tea is a drink."
    assert outcome.told[0] == "retry 1/4 transient"
    assert server.requests[0].json == server.requests[1].json


@pytest.mark.parametrize("status", TRANSIENT)
def test_a_status_that_passes_is_tried_again_also_in_the_middle(
    run: Callable[[Asking], Outcome], status: int
) -> None:
    with ScriptedServer(in_the_middle(status), GOOD) as server:
        outcome = run(Served(server))

    assert outcome.text == "Tea is a drink."
    [retry] = outcome.of_type("retry")
    assert _short(retry) == "retry 1/2 stream_broken, void"


@pytest.mark.parametrize(("status", "category"), STAYING.items())
@pytest.mark.parametrize("middle", [False, True])
def test_a_status_that_stays_is_not_tried_again(status: int, category: str, middle: bool) -> None:
    reply = in_the_middle(status) if middle else error_reply(status)
    with ScriptedServer(reply, GOOD) as server:
        outcome = Served(server).run()

    assert getattr(outcome.error, "category", "") == category
    assert (len(server.requests), outcome.of_type("retry")) == (1, [])


@pytest.mark.parametrize(("status", "category"), STAYING.items())
@pytest.mark.parametrize("middle", [False, True])
def test_a_status_that_stays_goes_to_another_model_if_that_can_help(
    status: int, category: str, middle: bool
) -> None:
    reply = in_the_middle(status) if middle else error_reply(status)
    with ScriptedServer(reply, GOOD) as server:
        outcome = Served(server, "first", "second").run()

    taken_over = category in ("auth", "limit")
    assert [request.json["model"] for request in server.requests] == ["first", "second"][: 1 + taken_over]
    assert [event["discarded"] for event in outcome.of_type("fallback")] == [middle] * taken_over


WAYS = [
    (name, stream) for name, fault in FAULTS.items() for stream in (True, False)[: 2 - fault.streams_only]
]


@pytest.mark.parametrize(("name", "stream"), WAYS)
def test_every_fault_on_the_way_is_survived_or_reported(name: str, stream: bool) -> None:
    fault = FAULTS[name]
    with ScriptedServer(fault.apply(GOOD), GOOD) as server:
        outcome = Served(server, stream=stream).run()

    assert len(server.requests) == 1 + fault.failure.retryable
    if fault.failure.retryable:
        assert outcome.text == "Tea is a drink."
    else:
        assert type(outcome.error) is fault.failure


def test_a_busy_server_says_when_to_come_back(run: Callable[[Asking], Outcome]) -> None:
    with ScriptedServer(error_reply(429, "slow down", retry_after=7.0), GOOD) as server:
        subject = Served(server)
        outcome = run(subject)

    assert outcome.text == "Tea is a drink."
    assert subject.clock.slept == [7.0]
    assert "slow down" in outcome.of_type("retry")[0]["message"]


def test_a_stream_that_is_cut_is_asked_for_again_without_its_beginning(
    run: Callable[[Asking], Outcome],
) -> None:
    assert GOOD.stream is not None
    cut = GOOD.cut(GOOD.stream.index(b'"drink."'))
    with ScriptedServer(cut, GOOD) as server:
        outcome = run(Served(server))

    assert server.requests[0].json == server.requests[1].json
    shown, again = outcome.told.index("retry 1/2 stream_broken, void"), "Tea is a drink."
    assert again.startswith("".join(outcome.told[:shown]))
    assert "".join(outcome.told[shown + 1 :]) == outcome.text == again


def test_a_refused_key_is_reported_with_its_origin_and_not_tried_again() -> None:
    with ScriptedServer(error_reply(401, "no such key", code="invalid_api_key"), GOOD) as server:
        outcome = Served(server).run()

    assert isinstance(outcome.error, KeyRefused)
    assert "check the API key, which came from" in str(outcome.error)
    assert len(server.requests) == 1


def test_a_server_that_is_gone_is_tried_again_and_then_reported() -> None:
    with ScriptedServer() as server:
        pass
    subject = Served(server, policy=RetryPolicy(max_retries=2))

    outcome = subject.run()

    assert isinstance(outcome.error, Unreachable)
    assert outcome.told == ["retry 1/2 transport", "retry 2/2 transport"]


def test_a_model_of_another_provider_goes_on_with_the_same_conversation() -> None:
    with ScriptedServer(chat_reply("Hello."), error_reply(402)) as server:
        served = Served(server)
        first = served.run()
        assert first.answer is not None
        served.core.register_provider(ScriptedProvider(["A drink."], name="other"))
        asked = served.core.add_message(first.answer.turn.session, "user", "And tea?")
        other = ProviderExecutor(served.core, ModelSpec("other", "other"), {"provider": "other"})
        executor = RetryingExecutor((served.target("first"), other), RetryPolicy(), HealthRegistry())

        answer = call(executor.ask(Inference(session=asked, clock=served.clock)))

    assert answer.model.id == "other"
    said = [message.content for message in answer.turn.session.messages]
    assert said == ["What is tea?", "Hello.", "And tea?", "A drink."]


# Errors of others


class BusyError(Exception):
    """What the library of a provider may raise: it has the documented fields, and is not a class of ours."""

    category = "transient"
    retry_after = 2.0


class RetryableError(Exception):
    retryable = True


class HalfAnswerError(Exception):
    category = "stream_broken"


@pytest.mark.parametrize("error", [BusyError("busy"), RetryableError("later"), HalfAnswerError("cut")])
def test_what_an_error_of_others_says_counts(run: Callable[[Asking], Outcome], error: Exception) -> None:
    subject = asking(error, "Tea.")

    outcome = run(subject)

    assert outcome.text == "Tea."
    assert subject.asked() == {"first": 2}
    if isinstance(error, BusyError):
        assert subject.clock.slept == [2.0]


def test_an_error_of_others_that_says_nothing_is_not_asked_for_twice(
    run: Callable[[Asking], Outcome],
) -> None:
    subject = asking(ValueError("a bug"), "never")

    assert isinstance(run(subject).error, ProviderError)
    assert subject.asked() == {"first": 1}


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("read"),
        ConnectionResetError("reset"),
        httpx.ConnectTimeout("connect"),
        httpx.ReadTimeout("read"),
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("gone"),
        aiohttp.ServerTimeoutError("read"),
        aiohttp.ServerDisconnectedError("gone"),
        aiohttp.ClientPayloadError("cut"),
        http.client.IncompleteRead(b""),
        http.client.RemoteDisconnected("gone"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_a_connection_that_fails_or_takes_too_long_is_tried_again_whoever_says_so(
    run: Callable[[Asking], Outcome], error: Exception
) -> None:
    subject = asking(error, "Tea.")

    assert run(subject).text == "Tea."
    assert subject.asked() == {"first": 2}


def test_a_connection_that_failed_beneath_another_error_is_tried_again(
    run: Callable[[Asking], Outcome],
) -> None:
    wrapped = RuntimeError("the SDK's own words")
    wrapped.__cause__ = httpx.ReadTimeout("read")

    assert run(asking(wrapped, "Tea.")).text == "Tea."


@pytest.mark.parametrize("error", [httpx.UnsupportedProtocol("ftp"), httpx.InvalidURL("x"), KeyError("x")])
def test_an_error_that_no_second_try_can_mend_is_not_tried_again(
    run: Callable[[Asking], Outcome], error: Exception
) -> None:
    subject = asking(error, "never")

    assert run(subject).error is not None
    assert subject.asked() == {"first": 1}


# No retries


@pytest.mark.parametrize(
    "script",
    [failure(Overloaded), failure(StreamCutOff), late(failure(StreamCutOff)), late(failure(Overloaded))],
    ids=["early", "broken", "in the middle", "overloaded in the middle"],
)
def test_without_retries_a_model_is_asked_once(run: Callable[[Asking], Outcome], script: Any) -> None:
    subject = asking(script, "never", policy=RetryPolicy(max_retries=0))

    assert run(subject).error is not None
    assert subject.asked() == {"first": 1}


def test_without_retries_a_fallback_is_asked_once_as_well(run: Callable[[Asking], Outcome]) -> None:
    policy = RetryPolicy(max_retries=0, fallback_models=("second",))
    subject = Asking({"first": [failure(Overloaded)], "second": [failure(StreamCutOff)]}, policy)

    assert run(subject).error is not None
    assert subject.asked() == {"first": 1, "second": 1}
