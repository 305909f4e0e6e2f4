"""What a run came to: text, messages, why it ended, what it used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

from agent_core import AgentError
from agent_core.dict_form import DictForm, whole
from agent_runtime.errors import describe
from agent_runtime.habits import missing
from agent_runtime.json_form import to_data
from agent_runtime.prices import list_price

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from typing_extensions import TypeVar

    from agent_core import Message, Session
    from agent_runtime.specs import ModelSpec
    from agent_runtime.suspension import Suspension

    OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    OutputT_co = TypeVar("OutputT_co", covariant=True)

GOOD_ENDS = frozenset({"natural_end", "stop_on_tool", "content_match"})
"""The reasons of runs that came to their end and were not cut short."""

LIMITS = frozenset(
    {
        "max_rounds",
        "max_handoffs",
        "timeout",
        "token_budget",
        "cost_budget",
        "usage_limit",
        "consecutive_errors",
        "repeated_calls",
        "tool_retries",
        "output_retries",
    }
)
"""The reasons of runs that had not come to their end."""

_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
_MILLION = 1_000_000


class Reason(NamedTuple):
    """Why a run ended.

    Attributes:
        code: natural_end, length (the last answer is cut off at the model's output limit), max_rounds,
            cancelled, suspended, error, or that of the stop condition or plugin that ended it.
        detail: The same as a sentence; may be empty.
    """

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money; adding two gives their sum.

    Attributes:
        requests: How often a model was asked.
        tool_calls: How many calls of tools were answered by their tools.
        input_tokens: Everything that was sent, cached or not.
        cost: In the currency of the models' prices; tokens of models without prices cost nothing here.
        cost_is_estimate: Whether some of the cost comes from a public list of prices and not from the
            prices that were declared with the model.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0
    tool_calls: int = 0
    cost_is_estimate: bool = False

    @property
    def total_tokens(self) -> int:
        """All tokens that were sent and received."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        # Written out, since it is done several times in each step.
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=self.cost + other.cost,
            tool_calls=self.tool_calls + other.tool_calls,
            cost_is_estimate=self.cost_is_estimate or other.cost_is_estimate,
        )

    def __sub__(self, other: Usage) -> Usage:
        counts: dict[str, Any] = {n: getattr(self, n) - getattr(other, n) for n in Usage.__slots__}
        return Usage(**{**counts, "cost_is_estimate": self.cost_is_estimate})

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, with the total."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cost": self.cost,
            "tool_calls": self.tool_calls,
            "cost_is_estimate": self.cost_is_estimate,
            "total_tokens": self.total_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        """Read the dict form; what is not a number counts as 0."""
        counts = {name: data.get(name, 0) for name in cls.__slots__}
        known: dict[str, Any] = {n: c if isinstance(c, (int, float)) else 0 for n, c in counts.items()}
        return cls(**known)

    @classmethod
    def of_answer(cls, counts: Mapping[str, Any] | None, model: ModelSpec) -> Usage:
        """Return what one answer used, by the provider's own count and the model's prices."""
        known = {name: n for name in _COUNTS if isinstance(n := (counts or {}).get(name), int)}
        usage = cls(requests=1, **cast("Any", known))
        if model.input_price is model.output_price is model.cached_input_price is None:
            listed = list_price(model, known)
            return usage if listed is None else replace(usage, cost=listed, cost_is_estimate=True)
        cost = _cost(usage, model)
        return replace(usage, cost=cost) if cost else usage


def _cost(usage: Usage, model: ModelSpec) -> float:
    sent, received = model.input_price or 0.0, model.output_price or 0.0
    cached = sent if model.cached_input_price is None else model.cached_input_price
    fresh = max(0, usage.input_tokens - usage.cached_input_tokens)
    return (fresh * sent + usage.cached_input_tokens * cached + usage.output_tokens * received) / _MILLION


class _AsText:
    """Stands for an output that is the model's last words."""


class _Missing:
    """Stands for an output that a run should have had, and has not."""


AS_TEXT, MISSING = _AsText(), _Missing()


@whole
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunResult(DictForm, Generic[OutputT_co]):
    """What a run came to.

    Attributes:
        output: What the run was for: of an `Agent` with an `output_type` an object of that type, otherwise
            the model's last words. Reading it raises `OutputNotProduced` if the run has none.
        text: The model's last words.
        added: The messages that the run added, the request's own included.
        messages: The same as dicts.
        session: The session with all of them; a suspended run is resumed from it.
        reason: Why the run ended.
        usage: What it used, delegates included.
        rounds: How often the model answered.
        run_id: The run's id; it stays the same when the run is resumed.
        agent: The name of the agent that ended the run; after a handoff not the one that began it.
        suspended: What the run waits for, if it does.
        error: What went wrong, if `reason.code` is "error".
    """

    text: str
    added: Sequence[Message]
    session: Session
    reason: Reason
    usage: Usage
    rounds: int
    run_id: str = ""
    agent: str = ""
    suspended: tuple[Suspension, ...] = ()
    error: Exception | None = None
    produced: object = AS_TEXT

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that the run added, as dicts."""
        return [message.to_dict() for message in self.added]

    @property
    def output(self) -> OutputT_co:
        """What the run was for.

        Raises:
            OutputNotProduced: If the run ended without: at a limit, cancelled, waiting, or with no words.
        """
        if self.produced is AS_TEXT:
            ended_early = self.reason.code in LIMITS or self.reason.code == "cancelled"
            if not self.text.strip() or self.suspended or ended_early or self.error is not None:
                raise OutputNotProduced(self)
            return cast("OutputT_co", self.text)
        if self.produced is MISSING:
            raise OutputNotProduced(self)
        return cast("OutputT_co", self.produced)

    @property
    def has_output(self) -> bool:
        """Whether `output` can be read."""
        try:
            self.output  # noqa: B018 - reading it is the question
        except OutputNotProduced:
            return False
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data; `output` is there if the run has one."""
        produced = {"output": to_data(self.output)} if self.has_output else {}
        failed = {} if self.error is None else {"error": describe(self.error)}
        return {
            **produced,
            "text": self.text,
            "reason": {"code": self.reason.code, "detail": self.reason.detail},
            "agent": self.agent,
            "run_id": self.run_id,
            "rounds": self.rounds,
            "usage": self.usage.to_dict(),
            "suspended": [one.to_dict() for one in self.suspended],
            **failed,
            "messages": self.messages,
            "session": self.session.to_dict(),
        }

    if not TYPE_CHECKING:  # a type checker finds out by itself

        def __getattr__(self, name: str) -> object:
            raise missing("RunResult", name)

    def raise_for_error(self) -> Self:
        """Return the result itself, unless the run failed: then raise what it failed with."""
        if isinstance(self.error, AgentError):
            # Its message says what is wrong, and its cause has its own frames; those of the loop hide both.
            raise self.error.with_traceback(None)
        if self.error is not None:
            raise self.error
        return self

    def __repr__(self) -> str:
        about = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"RunResult({about})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the answer, and below it how the run went."""
        answer = self.output if self.has_output else self.reason.detail or self.reason.code
        shown = answer if isinstance(answer, str) else repr(answer)
        return f"<div><pre style='white-space: pre-wrap'>{escape(shown)}</pre>{table(self)}</div>"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield what a person wants to see of it, for `repr` and for rich."""
        if self.has_output:
            yield "output", self.output
        yield "reason", self.reason.code
        if self.reason.detail:
            yield "detail", self.reason.detail
        if self.agent:
            yield "agent", self.agent
        if self.suspended:
            yield "waits_for", [one.message for one in self.suspended]
        yield "rounds", self.rounds
        yield "messages", len(self.added)
        yield "tokens", self.usage.total_tokens
        if self.usage.cost:
            yield "estimated_cost" if self.usage.cost_is_estimate else "cost", round(self.usage.cost, 6)


def table(result: RunResult[Any]) -> str:
    """Return how a run went, without its output, as a table of one row."""
    about = {name: value for name, value in result.__rich_repr__() if name != "output"}
    cells = "".join(f"<td><b>{escape(str(k))}</b> {escape(str(v))}</td>" for k, v in about.items())
    return f"<table><tr>{cells}</tr></table>"


class OutputNotProduced(AgentError):
    """A run has no output; `result` has everything that it came to.

    Attributes:
        result: The run's result: its session, messages and usage.
    """

    def __init__(self, result: RunResult[Any], problem: str = "") -> None:
        self.result = result
        super().__init__(problem or _why_no_output(result))


class LimitReached(OutputNotProduced):
    """A run ended at a limit before it was done; `result` has everything up to there."""


def unfinished(about: Mapping[str, Any]) -> str:
    """Return why an answer is none, by what the provider says of it (its metadata); empty if it is one."""
    endings = (about.get("ending"), about.get("finish_reason"))
    if "refusal" in endings or about.get("refusal"):
        return f"the model refused: {about.get('refusal') or 'it does not say why'}"
    return "the answer was cut off at the model's limit for answers" if "length" in endings else ""


def _why_no_output(result: RunResult[Any]) -> str:
    code, detail = result.reason
    if result.suspended:
        asked = "; ".join(one.message for one in result.suspended)
        return (
            f"the run has no output yet, since it waits for a decision: {asked} "
            "(run again with session=result.session and decisions=[...])"
        )
    if result.error is not None:
        return f"the run has no output, since it failed: {result.error}"
    if code in LIMITS:
        why = detail or code
        return (
            f"the run reached a limit ({code}): {why}; `result` of this error has what was done up to there"
        )
    if code == "cancelled":
        return f"the run has no output, since it was cancelled: {detail or 'the caller left'}"
    if result.produced is AS_TEXT:
        why = unfinished(result.added[-1].metadata) if result.added else ""
        return f"the run has no output: {why or 'the model ended without a word'}"
    return f"the run has no output ({code}{': ' + detail if detail else ''})"
