"""Stop conditions: when a run ends although the model would go on. Each is one small pure function.

`before_tools` is asked when the model has answered and its calls have not run yet; `after_step` when a
step is over. Calls that are not run any more are answered as such, so that the history stays whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from agent_core.errors import nearest
from agent_runtime import fields
from agent_runtime.errors import SpecError
from agent_runtime.patterns import Glob


class Stop(NamedTuple):
    """Why a run ends: as a stable word and as a sentence."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """How far a run has come.

    Attributes:
        rounds: How often the model was asked and answered.
        seconds: For how long the run has been going, pauses for decisions not counted.
        tokens: All tokens that were sent and received, including those of delegates.
        cost: What that cost, as far as prices are known.
        errors: How many tool results in a row, up to now, were errors.
        text: What the model said in this step.
        called: The names of the tools that ran in this step.
        succeeded: Those among them whose result is not an error.
        repeats: How often in a row the model made the same call with the same arguments; the most
            of all calls of this step.
        repeated: Which tool that was.
    """

    rounds: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    errors: int = 0
    text: str = ""
    called: tuple[str, ...] = ()
    succeeded: tuple[str, ...] = ()
    repeats: int = 0
    repeated: str = ""


def tool_patterns(where: str, value: object) -> tuple[str, ...]:
    """Return a list of tools, by name or pattern, as a tuple.

    Raises:
        SpecError: If it is not a list of strings, or one of them is not a pattern.
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

    def before_tools(self, stats: RunStats) -> Stop | None:
        """Return why the run ends now, before the calls of this step run; None if it goes on."""
        return None

    def after_step(self, stats: RunStats) -> Stop | None:
        """Return why the run ends after this step; None if it goes on."""
        return self.before_tools(stats)

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as it stands in files."""
        return {"type": self.type, **fields.write(self)}


@dataclass(frozen=True, slots=True)
class MaxRounds(StopCondition):
    """Ask the model at most so many times; the calls of the last answer still run."""

    type: ClassVar[str] = "max_rounds"
    rounds: fields.Count

    def __post_init__(self) -> None:
        fields.check(self)

    def after_step(self, stats: RunStats) -> Stop | None:
        if stats.rounds < self.rounds:
            return None
        return Stop(self.type, f"the model was asked {stats.rounds} times, as often as max_rounds allows")


@dataclass(frozen=True, slots=True)
class Timeout(StopCondition):
    """Stop after so many seconds; what is under way then is cancelled. None or false: no limit."""

    type: ClassVar[str] = "timeout"
    seconds: Annotated[float, fields.Range(0.001, off=True)] | None

    def __post_init__(self) -> None:
        fields.check(self)

    def before_tools(self, stats: RunStats) -> Stop | None:
        if self.seconds is None or stats.seconds < self.seconds:
            return None
        return Stop(self.type, f"the run took longer than {self.seconds:g} seconds")


@dataclass(frozen=True, slots=True)
class TokenBudget(StopCondition):
    """Stop when so many tokens were sent and received."""

    type: ClassVar[str] = "token_budget"
    tokens: fields.Count

    def __post_init__(self) -> None:
        fields.check(self)

    def before_tools(self, stats: RunStats) -> Stop | None:
        if stats.tokens < self.tokens:
            return None
        return Stop(self.type, f"{stats.tokens} tokens were used, of {self.tokens} allowed")


@dataclass(frozen=True, slots=True)
class CostBudget(StopCondition):
    """Stop when the run has cost so much, in the currency of the models' prices."""

    type: ClassVar[str] = "cost_budget"
    amount: fields.Amount

    def __post_init__(self) -> None:
        fields.check(self)

    def before_tools(self, stats: RunStats) -> Stop | None:
        if stats.cost < self.amount:
            return None
        return Stop(self.type, f"the run cost {stats.cost:.4f}, of {self.amount:g} allowed")


@dataclass(frozen=True, slots=True)
class ConsecutiveErrors(StopCondition):
    """Stop when so many tool results in a row were errors."""

    type: ClassVar[str] = "consecutive_errors"
    count: fields.Count = 3

    def __post_init__(self) -> None:
        fields.check(self)

    def after_step(self, stats: RunStats) -> Stop | None:
        if stats.errors < self.count:
            return None
        return Stop(self.type, f"{stats.errors} tool calls in a row failed")


@dataclass(frozen=True, slots=True)
class StopOnTool(StopCondition):
    """Stop when one of these tools has run and its result is not an error; patterns are allowed."""

    type: ClassVar[str] = "stop_on_tool"
    tools: tuple[str, ...]

    def __post_init__(self) -> None:
        listed = (self.tools,) if isinstance(self.tools, str) else self.tools
        object.__setattr__(self, "tools", tool_patterns("tools", listed))

    def after_step(self, stats: RunStats) -> Stop | None:
        hit = next(filter(self.names, stats.succeeded), None)
        return None if hit is None else Stop(self.type, f"the tool {hit!r} has run")

    def names(self, tool: str) -> bool:
        """Say whether *tool* is one of these."""
        return any(Glob.parse(pattern).matches(tool) for pattern in self.tools)


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
        fields.check(self)
        if bool(self.text) == bool(self.pattern):
            raise SpecError("content_match needs either text or pattern", field="text")
        if self.pattern:
            Glob.parse(self.pattern)

    def before_tools(self, stats: RunStats) -> Stop | None:
        if self.text:
            return Stop(self.type, f"the model said {self.text!r}") if self.text in stats.text else None
        found = Glob.parse(self.pattern).matches(stats.text)
        return Stop(self.type, f"the answer fits {self.pattern!r}") if found else None


@dataclass(frozen=True, slots=True)
class RepeatedCalls(StopCondition):
    """Stop when the model makes the same call with the same arguments so many times in a row."""

    type: ClassVar[str] = "repeated_calls"
    count: Annotated[int, fields.Range(2)] = 3

    def __post_init__(self) -> None:
        fields.check(self)

    def before_tools(self, stats: RunStats) -> Stop | None:
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


def read_condition(where: str, data: object) -> StopCondition:
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
