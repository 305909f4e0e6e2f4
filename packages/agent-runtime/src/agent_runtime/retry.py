"""Asking again, and asking another model: what is done about a model that does not answer.

Each failure has a category, and the category decides:

================  ============  ===========================  ===============
category          asked again   another model may take over  the health tells
================  ============  ===========================  ===============
transport         yes           any                          yes
transient         yes           any                          yes
stream_broken     yes, rarely   any                          yes
limit             no            any                          yes
not_the_provider  no            any                          yes
auth              no            any                          no
unavailable       no            any                          no
window            no            one with a larger window     no
rejected          no            none                         no
================  ============  ===========================  ===============

Categories are read from the exception (`category`, `retryable`, `retry_after`, `partial`), whoever made its
class: from what the provider's own code raised as well as from an error of the platform. One that says only
that it is `retryable`, or when to come back, counts as *transient*. An exception that says nothing of this
kind is a bug of a plugin and is not asked for twice, except when a connection failed or timed out beneath it.

A failure after the answer began counts as *stream_broken*, whatever it is called. What had arrived is
dropped, the question is asked anew with the session as it was, and the event says that what was shown is
void. Nothing is done twice by that: tools run only after an answer is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan
from random import random
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from agent_core import PluginError, ProviderError
from agent_core.errors import ArgumentError, RequestCancelled
from agent_core.events import Fallback, Retry
from agent_core.steps import Emit, Flow, Read, Relay, relay
from agent_runtime.clock import pause
from agent_runtime.errors import ModelUnavailable
from agent_runtime.executor import Answer
from agent_runtime.health import HEALTH, HealthRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.steps import Step
    from agent_runtime.executor import Executor, Inference
    from agent_runtime.specs import ModelSpec, RetryPolicy

R = TypeVar("R")
_DEEPEST_CAUSE = 8


class _Fate(NamedTuple):
    """What a category means; see the table above."""

    again: bool = False
    onward: Literal["any", "larger", "none"] = "none"
    counts: bool = False


_FATES = {
    "transport": _Fate(again=True, onward="any", counts=True),
    "transient": _Fate(again=True, onward="any", counts=True),
    "stream_broken": _Fate(again=True, onward="any", counts=True),
    "limit": _Fate(onward="any", counts=True),
    "not_the_provider": _Fate(onward="any", counts=True),
    "auth": _Fate(onward="any"),
    "unavailable": _Fate(onward="any"),
    "window": _Fate(onward="larger"),
    "rejected": _Fate(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a model did not answer, and what may be done about it.

    Attributes:
        error: What was raised.
        category: One word for it; empty if the error says none.
        begun: Whether the answer had begun.
        again: Whether the same model may be asked once more.
        onward: Which other models may be asked: "any", only one with a "larger" window, or "none".
        counts: Whether it speaks against the model's health.
        retry_after: The shortest pause that the provider wants, in seconds.
    """

    error: Exception
    category: str
    begun: bool
    again: bool
    onward: Literal["any", "larger", "none"]
    counts: bool
    retry_after: float | None = None


def judge(error: Exception, *, shown: bool = False) -> Failure:
    """Return what *error* means for the next try.

    Args:
        shown: Whether a piece of the answer has reached the caller.
    """
    category, retryable = _category(error), _said(error, "retryable")
    begun = shown or _said(error, "partial") is not None or category == "stream_broken"
    fate = _FATES.get(category) or _FATES["transient" if retryable is True else "rejected"]
    return Failure(
        error=error,
        category="stream_broken" if begun and fate.again else category,
        begun=begun,
        again=fate.again and retryable is not False,
        onward=fate.onward,
        counts=fate.counts,
        retry_after=_seconds(_said(error, "retry_after")),
    )


def _said(error: Exception, name: str) -> Any:
    """Return what an error, or what a provider raised beneath it, says in one of the documented fields."""
    beneath = error.__cause__ if isinstance(error, PluginError) else None
    own = getattr(error, name, None)
    return getattr(beneath, name, None) if own is None else own


def _category(error: Exception) -> str:
    category = _said(error, "category")
    if isinstance(category, str):
        return category
    if isinstance(error, ProviderError) and _is_broken_connection(error.__cause__):
        return "transport"
    if _said(error, "retryable") is None and _seconds(_said(error, "retry_after")) is not None:
        return "transient"
    return ""


# What common clients raise when a connection fails or takes too long, by the package that they come from:
# these are no `OSError`, and none of the packages is needed here.
_BROKEN_CONNECTIONS = {
    "httpx": {"TimeoutException", "NetworkError", "RemoteProtocolError"},
    "httpcore": {"TimeoutException", "NetworkError", "RemoteProtocolError"},
    "aiohttp": {"ClientConnectionError", "ClientPayloadError", "ServerTimeoutError"},
    "urllib3": {"TimeoutError", "ProtocolError", "NewConnectionError", "MaxRetryError"},
    "http": {"RemoteDisconnected", "IncompleteRead"},
    "openai": {"APIConnectionError"},
    "anthropic": {"APIConnectionError"},
    "botocore": {"ConnectionError", "HTTPClientError"},
    "websockets": {"ConnectionClosedError"},
}


def _is_broken_connection(error: BaseException | None) -> bool:
    """Say whether an exception, or one that led to it, is that of a connection which failed or timed out."""
    seen = 0
    while error is not None and seen < _DEEPEST_CAUSE:
        if isinstance(error, OSError):  # time-outs of sockets and of asyncio among them
            return True
        for base in type(error).__mro__:
            package = base.__module__.partition(".")[0]
            if base.__name__ in _BROKEN_CONNECTIONS.get(package, ()):
                return True
        error, seen = error.__cause__, seen + 1
    return False


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or isnan(value):
        return None
    return max(0.0, float(value))


def _any_number() -> float:

    return random()  # noqa: S311 - spreads requests over time, keeps no secret


def delay(policy: RetryPolicy, retries: int, number: float, retry_after: float | None = None) -> float:
    """Return the pause before the next try, in seconds.

    Clients that failed together must not come back together, so the pause is anything between none and
    a limit that doubles each time ("full jitter").

    Args:
        retries: How many retries there were before.
        number: A random number from 0 to 1.
        retry_after: The shortest pause that the provider wants.
    """
    limit = min(policy.max_delay, policy.base_delay * 2.0**retries)
    return max(number * limit, retry_after or 0.0)


class Retries:
    """Counts the tries of one model, and decides whether there is another one."""

    __slots__ = ("_begun", "_early", "_policy", "_random", "_until")

    def __init__(self, policy: RetryPolicy, until: float | None, random: Callable[[], float]) -> None:
        self._policy = policy
        self._until = until
        self._random = random
        self._early = 0
        self._begun = 0

    def next(self, failure: Failure, now: float) -> tuple[int, int, float] | None:
        """Return which retry comes next, of how many, and after which pause; None if there is none."""
        made, of = self._count(failure)
        too_long = (failure.retry_after or 0.0) > self._policy.max_retry_after
        if not failure.again or too_long or made >= of:
            return None
        seconds = delay(self._policy, self._early + self._begun, self._random(), failure.retry_after)
        if self._until is not None and now + seconds > self._until:
            return None
        self._begun += failure.begun
        self._early += not failure.begun
        return made + 1, of, seconds

    def _count(self, failure: Failure) -> tuple[int, int]:
        if failure.begun and self._policy.max_retries:
            return self._begun, self._policy.stream_retries
        return self._early, self._policy.max_retries


class _Failed(NamedTuple):
    """A target that has been given up."""

    model: ModelSpec
    failure: Failure


@dataclass(frozen=True, slots=True)
class RetryingExecutor:
    """Asks until somebody answers: the first target several times, then the next.

    Attributes:
        targets: The agent's own model and its fallbacks, in order.
        policy: How often and how long apart.
        health: Remembers models that are down.
        random: Numbers from 0 to 1, which the pauses are made of.
    """

    targets: tuple[Executor, ...]
    policy: RetryPolicy
    health: HealthRegistry = field(default=HEALTH, repr=False)
    random: Callable[[], float] = field(default=_any_number, repr=False)

    def __post_init__(self) -> None:
        if not self.targets:
            raise ArgumentError("RetryingExecutor needs a model to ask: give it at least one target")

    @property
    def id(self) -> str:
        """The provider that is asked first."""
        return self.targets[0].id

    @property
    def model(self) -> ModelSpec:
        """The model that is asked first."""
        return self.targets[0].model

    def ask(self, inference: Inference) -> Flow[Answer]:
        """Ask, and emit `retry` and `fallback` events besides what the models say.

        Raises:
            ModelUnavailable: If the first model is left alone for now, and no other one can answer.
            Exception: What the first model failed with last, if all fail. Its notes tell of the others.
            RequestCancelled: If the request is cancelled in a pause.
        """
        clock, deadline = inference.clock, self.policy.deadline
        until = None if deadline is None else clock.now() + deadline
        given_up: list[_Failed] = []
        for target in self.targets:
            if given_up:
                if not _may_take_over(target.model, given_up) or _is_over(until, clock.now()):
                    continue
                yield from _announce(target.model, given_up[-1], inference)
            outcome = yield from self._ask_if_healthy(target, inference, until)
            if isinstance(outcome, Answer):
                return outcome
            given_up.append(_Failed(target.model, outcome))
        raise _most_telling(given_up)

    def _ask_if_healthy(
        self, target: Executor, inference: Inference, until: float | None
    ) -> Flow[Answer | Failure]:
        """Ask one model unless it is known to be down, and report how it is doing."""
        try:
            admission = self.health.admit(health_key(target.model), inference.clock.now())
        except ModelUnavailable as error:
            return judge(error)
        try:
            outcome = yield from self._ask_repeatedly(target, inference, until)
        except BaseException:
            self.health.abandoned(admission)
            raise
        if isinstance(outcome, Failure) and outcome.counts:
            self.health.failed(admission, inference.clock.now())
        elif isinstance(outcome, Failure) or outcome.turn.interrupted:
            self.health.abandoned(admission)
        else:
            self.health.succeeded(admission)
        return outcome

    def _ask_repeatedly(
        self, target: Executor, inference: Inference, until: float | None
    ) -> Flow[Answer | Failure]:
        retries = Retries(self.policy, until, self.random)
        while True:
            shown: list[bool] = []
            try:
                return (yield from _watched(target.ask(inference), shown))
            except Exception as error:  # judged, and raised again unless it can be mended
                failure = judge(error, shown=bool(shown))
            following = retries.next(failure, inference.clock.now())
            if following is None:
                return failure
            attempt, of, seconds = following
            yield Emit([_retry_event(target.model, failure, attempt, of, seconds)])
            yield from pause(inference.clock, seconds, inference.cancellation)


def health_key(model: ModelSpec) -> str:
    """Return the key under which a model's health is known."""
    return f"{model.provider}/{model.id}"


def _may_take_over(model: ModelSpec, given_up: list[_Failed]) -> bool:
    """Say whether *model* could do better than those that have been given up."""
    return all(
        one.failure.onward == "any" or (one.failure.onward == "larger" and _is_larger(model, one.model))
        for one in given_up
    )


def _is_larger(model: ModelSpec, other: ModelSpec) -> bool:
    if model.context_window is None or other.context_window is None:
        return False
    return model.context_window > other.context_window


def _is_over(until: float | None, now: float) -> bool:
    return until is not None and now >= until


def _announce(model: ModelSpec, instead_of: _Failed, inference: Inference) -> Flow[None]:
    if inference.cancellation is not None and inference.cancellation.cancelled:
        raise RequestCancelled
    yield Emit(
        [
            Fallback(
                type="fallback",
                model=model.id,
                instead_of=instead_of.model.id,
                message=str(instead_of.failure.error),
                discarded=instead_of.failure.begun,
            )
        ]
    )


def _retry_event(model: ModelSpec, failure: Failure, attempt: int, of: int, seconds: float) -> Retry:
    return Retry(
        type="retry",
        attempt=attempt,
        of=of,
        seconds=seconds,
        category=failure.category,
        message=str(failure.error),
        model=model.id,
        discarded=failure.begun,
    )


def _most_telling(given_up: list[_Failed]) -> Exception:
    """Return what is raised in the end: what only the caller can mend, else what the first model said."""
    ours = (one for one in given_up if one.failure.onward != "any")
    chosen = next(ours, given_up[0])
    for other in given_up:
        if other is not chosen:
            chosen.failure.error.add_note(f"Model {other.model.id!r} did not answer: {other.failure.error}")
    return chosen.failure.error


def _watched(flow: Flow[R], shown: list[bool]) -> Flow[R]:
    """Pass a flow through, and note in *shown* when the caller gets to see something of an answer."""

    def note(step: Step[Any]) -> Relay | None:
        if not shown and not _shows(step):
            return None
        shown[:] = [True]
        return Relay.REST

    return relay(flow, note)


def _shows(step: Step[Any]) -> bool:
    """Say whether a step carries a piece of an answer; what a provider is busy with is none."""
    if not isinstance(step, (Emit, Read)) or not step.events:
        return False
    partials = (event["message"] for event in step.events if event.get("type") == "partial")
    return any("status" not in message for message in partials)
