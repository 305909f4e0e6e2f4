"""How much a run may use."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from agent_runtime import fields
from agent_runtime.results import Reason

if TYPE_CHECKING:
    from agent_runtime.results import Usage

_CODE = "usage_limit"
Limit = Annotated[int, fields.Range(0)]


class OverLimit(Exception):  # ends the run where it is raised; it is never shown
    """The next request would go over a limit; `reason` is that of the run."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.detail)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimits:
    """How much a run may use, delegates and handoffs included; None: without a limit.

    A limit that the next request would break ends the run before that request is sent.

    Attributes:
        requests: How often a model may be asked.
        tool_calls: How many calls may run; the calls of an answer that would go over it are not run. The
            output of a run is none of them.
        input_tokens: How many tokens may be sent. What the next request will send is estimated.
        output_tokens: How many tokens may be received.
        total_tokens: How many tokens may be sent and received.
        cost: How much it may cost, in the currency of the models' prices. What the next request costs at
            least, for what it sends, is estimated.
    """

    requests: Limit | None = None
    tool_calls: Limit | None = None
    input_tokens: Limit | None = None
    output_tokens: Limit | None = None
    total_tokens: Limit | None = None
    cost: fields.Amount | None = None

    def __post_init__(self) -> None:
        fields.check(self)

    @property
    def counts_input(self) -> bool:
        """Whether it matters how long the next request is."""
        return not (self.input_tokens is None and self.total_tokens is None and self.cost is None)

    def reached(self, usage: Usage) -> Reason | None:
        """Return which limit is used up, so that there may be no further request."""
        for name in ("requests", "input_tokens", "output_tokens", "total_tokens", "cost"):
            limit, used = getattr(self, name), getattr(usage, name)
            if limit is not None and used >= limit:
                return Reason(_CODE, f"{name} is at {_number(used)}, of {_number(limit)} allowed")
        return None

    def left(self, usage: Usage) -> UsageLimits:
        """Return the limits for a run below one that has used so much already."""
        rest = {
            name: max(0, limit - getattr(usage, name))
            for name in self.__slots__
            if (limit := getattr(self, name)) is not None
        }
        return UsageLimits(**rest)

    def within(self, other: UsageLimits | None) -> UsageLimits:
        """Return the limits that keep to both."""
        if other is None:
            return self
        both = {name: (getattr(self, name), getattr(other, name)) for name in self.__slots__}
        least = {name: [limit for limit in limits if limit is not None] for name, limits in both.items()}
        return UsageLimits(**{name: min(limits) for name, limits in least.items() if limits})

    def before_calls(self, usage: Usage, count: int) -> Reason | None:
        """Return why *count* more calls of tools may not run."""
        if self.tool_calls is None or usage.tool_calls + count <= self.tool_calls:
            return None
        asked = f"{usage.tool_calls} ran and the model wants {count} more"
        return Reason(_CODE, f"tool_calls: {asked}, of {self.tool_calls} allowed")

    def before_request(self, usage: Usage, estimate: int, price: float) -> Reason | None:
        """Return why a request of about *estimate* tokens may not be sent, which cost about *price*."""
        if self.cost is not None and usage.cost + price > self.cost:
            return Reason(
                _CODE,
                f"cost: {_number(usage.cost)} was used and what the next request sends costs an estimated "
                f"{_number(price)}, of {_number(self.cost)} allowed",
            )
        for name, used in (("input_tokens", usage.input_tokens), ("total_tokens", usage.total_tokens)):
            limit = getattr(self, name)
            if limit is not None and used + estimate > limit:
                return Reason(
                    _CODE,
                    f"{name}: {used} were used and the next request has an estimated {estimate}, "
                    f"of {limit} allowed",
                )
        return None


def _number(value: float) -> str:
    """Return a count, or an amount of money in at most four digits that say something."""
    return f"{Decimal(f'{value:.4g}'):f}" if isinstance(value, float) else str(value)
