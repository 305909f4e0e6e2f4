"""The stop conditions, each with one small pure function.

`before_tools` is asked when the model has answered and its calls have not run yet; `after_step` when a
step is over. Calls that are not run any more are answered as such, so that the history stays whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agent_runtime import fields
from agent_runtime.errors import SpecError, nearest
from agent_runtime.patterns import Glob
from agent_runtime.policies.stats import RunStats, Stop


def tool_patterns(where: str, value: Any) -> tuple[str, ...]:
    """Return a list of tools, by name or pattern, as a tuple.

    Raises:
        SpecError: If it is no list of strings, or one of them is no pattern.
    """
    listed = fields.names(where, value)
    for place, pattern in enumerate(listed):
        try:
            Glob.parse(pattern)
        except SpecError as error:
            raise SpecError(f"{where}[{place}]: {error}", field=f"{where}[{place}]") from error
    return listed


@dataclass(frozen=True, slots=True)
class StopCondition:
    """One reason to end a run; its subclasses are what `AgentSpec.stop_conditions` may list."""

    type: ClassVar[str] = ""

    def before_tools(self, stats: RunStats) -> Stop | None:  # noqa: ARG002 - most have nothing to say
        """Return why the run shall end now, before the calls of this step run."""
        return None

    def after_step(self, stats: RunStats) -> Stop | None:
        """Return why the run shall end after this step."""
        return self.before_tools(stats)

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as it stands in files."""
        return {"type": self.type, **fields.write(self)}


@dataclass(frozen=True, slots=True)
class MaxRounds(StopCondition):
    """Ask the model at most so many times; the calls of the last answer still run."""

    type: ClassVar[str] = "max_rounds"
    rounds: int

    def __post_init__(self) -> None:
        fields.check_number("rounds", self.rounds, least=1, whole=True)

    def after_step(self, stats: RunStats) -> Stop | None:
        """Stop when the rounds are used up."""
        if stats.rounds < self.rounds:
            return None
        return Stop(self.type, f"the model was asked {stats.rounds} times, as often as allowed")


@dataclass(frozen=True, slots=True)
class Timeout(StopCondition):
    """Stop after so many seconds; what is under way then is cancelled."""

    type: ClassVar[str] = "timeout"
    seconds: float

    def __post_init__(self) -> None:
        fields.check_number("seconds", self.seconds, least=0.001)

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Stop when the time is over."""
        if stats.seconds < self.seconds:
            return None
        return Stop(self.type, f"the run took longer than {self.seconds:g} seconds")


@dataclass(frozen=True, slots=True)
class TokenBudget(StopCondition):
    """Stop when so many tokens were sent and received."""

    type: ClassVar[str] = "token_budget"
    tokens: int

    def __post_init__(self) -> None:
        fields.check_number("tokens", self.tokens, least=1, whole=True)

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Stop when the tokens are used up."""
        if stats.tokens < self.tokens:
            return None
        return Stop(self.type, f"{stats.tokens} tokens were used, of {self.tokens} allowed")


@dataclass(frozen=True, slots=True)
class CostBudget(StopCondition):
    """Stop when the run has cost so much, in the currency of the models' prices."""

    type: ClassVar[str] = "cost_budget"
    amount: float

    def __post_init__(self) -> None:
        fields.check_number("amount", self.amount, least=0)

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Stop when the money is used up."""
        if stats.cost < self.amount:
            return None
        return Stop(self.type, f"the run cost {stats.cost:.4f}, of {self.amount:g} allowed")


@dataclass(frozen=True, slots=True)
class ConsecutiveErrors(StopCondition):
    """Stop when so many tool results in a row were errors."""

    type: ClassVar[str] = "consecutive_errors"
    count: int = 3

    def __post_init__(self) -> None:
        fields.check_number("count", self.count, least=1, whole=True)

    def after_step(self, stats: RunStats) -> Stop | None:
        """Stop when nothing works any more."""
        if stats.errors < self.count:
            return None
        return Stop(self.type, f"{stats.errors} tool calls in a row failed")


@dataclass(frozen=True, slots=True)
class StopOnTool(StopCondition):
    """Stop when one of these tools has run; patterns are allowed."""

    type: ClassVar[str] = "stop_on_tool"
    tools: tuple[str, ...]

    def __post_init__(self) -> None:
        listed = (self.tools,) if isinstance(self.tools, str) else self.tools
        object.__setattr__(self, "tools", tool_patterns("tools", listed))

    def after_step(self, stats: RunStats) -> Stop | None:
        """Stop when the tool has given its result."""
        globs = [Glob.parse(pattern) for pattern in self.tools]
        hit = next((name for name in stats.called if any(glob.matches(name) for glob in globs)), None)
        return None if hit is None else Stop(self.type, f"the tool {hit!r} has run")


@dataclass(frozen=True, slots=True)
class ContentMatch(StopCondition):
    """Stop when the model says something that contains this text, or fits this pattern.

    Attributes:
        text: The text to look for.
        pattern: A glob that the whole answer must fit; give one of the two.
    """

    type: ClassVar[str] = "content_match"
    text: str = ""
    pattern: str = ""

    def __post_init__(self) -> None:
        fields.check_text("text", self.text)
        fields.check_text("pattern", self.pattern)
        if bool(self.text) == bool(self.pattern):
            raise SpecError("content_match needs either text or pattern", field="text")
        if self.pattern:
            Glob.parse(self.pattern)

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Stop when it was said."""
        if self.text:
            return Stop(self.type, f"the model said {self.text!r}") if self.text in stats.text else None
        found = Glob.parse(self.pattern).matches(stats.text)
        return Stop(self.type, f"the answer fits {self.pattern!r}") if found else None


@dataclass(frozen=True, slots=True)
class RepeatedCalls(StopCondition):
    """Stop when the model makes the same call with the same arguments so many times in a row."""

    type: ClassVar[str] = "repeated_calls"
    count: int = 3

    def __post_init__(self) -> None:
        fields.check_number("count", self.count, least=2, whole=True)

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Stop before the call runs once more."""
        if stats.repeats < self.count:
            return None
        return Stop(
            self.type, f"the model called {stats.repeated!r} {stats.repeats} times with the same arguments"
        )


CONDITIONS: dict[str, type[StopCondition]] = {
    kind.type: kind
    for kind in (
        MaxRounds,
        Timeout,
        TokenBudget,
        CostBudget,
        ConsecutiveErrors,
        StopOnTool,
        ContentMatch,
        RepeatedCalls,
    )
}
"""Every stop condition by the name that files and reasons use."""


def read_condition(where: str, data: Any) -> StopCondition:
    """Return the condition that *data* declares: a mapping with `type`, or a condition itself.

    Raises:
        SpecError: If there is no such condition, or a field of it is wrong.
    """
    if isinstance(data, StopCondition):
        return data
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        raise SpecError(f"{where} must be a mapping with a type, one of {sorted(CONDITIONS)}", field=where)
    kind = CONDITIONS.get(data["type"])
    if kind is None:
        raise SpecError(
            f"{where}: there is no stop condition {data['type']!r}: {nearest(data['type'], CONDITIONS)}",
            field=f"{where}.type",
        )
    return fields.read(kind, {key: value for key, value in data.items() if key != "type"}, where=where)
