"""What a run came to: text, messages, why it ended, what it used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core import Message, Session
    from agent_runtime.specs import ModelSpec
    from agent_runtime.suspension import Suspension

_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
_MILLION = 1_000_000


class Reason(NamedTuple):
    """Why a run ended.

    Attributes:
        code: natural_end, max_rounds, cancelled, suspended, error, or that of the stop condition or
            plugin that ended it.
        detail: The same as a sentence; may be empty.
    """

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money; adding two gives their sum.

    Attributes:
        requests: How often a model was asked.
        input_tokens: Everything that was sent, cached or not.
        cost: In the currency of the models' prices; tokens of models without prices cost nothing here.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float = 0.0

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
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) - getattr(other, name) for name in Usage.__slots__})

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
            "total_tokens": self.total_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Usage:
        """Read the dict form; what is no number counts as 0."""
        counts = {name: data.get(name, 0) for name in cls.__slots__}
        known: dict[str, Any] = {n: c if isinstance(c, (int, float)) else 0 for n, c in counts.items()}
        return cls(**known)

    @classmethod
    def of_answer(cls, counts: Mapping[str, Any] | None, model: ModelSpec) -> Usage:
        """Return what one answer used, by the provider's own count and the model's prices."""
        known = {name: n for name in _COUNTS if isinstance(n := (counts or {}).get(name), int)}
        usage = cls(requests=1, **known)
        cost = _cost(usage, model)
        return replace(usage, cost=cost) if cost else usage


def _cost(usage: Usage, model: ModelSpec) -> float:
    sent, received = model.input_price or 0.0, model.output_price or 0.0
    cached = sent if model.cached_input_price is None else model.cached_input_price
    fresh = max(0, usage.input_tokens - usage.cached_input_tokens)
    return (fresh * sent + usage.cached_input_tokens * cached + usage.output_tokens * received) / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run came to.

    Attributes:
        text: The model's last words.
        added: The messages that the run added, the request's own included.
        messages: The same as dicts.
        session: The session with all of them; a suspended run is resumed from it.
        reason: Why the run ended.
        usage: What it used, delegates included.
        rounds: How often the model answered.
        run_id: The run's id; it stays the same when the run is resumed.
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
    suspended: tuple[Suspension, ...] = ()
    error: Exception | None = field(default=None, repr=False)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that the run added, as dicts."""
        return [message.to_dict() for message in self.added]

    def raise_for_error(self) -> RunResult:
        """Return the result itself, unless the run failed: then raise what it failed with."""
        if self.error is not None:
            raise self.error
        return self
