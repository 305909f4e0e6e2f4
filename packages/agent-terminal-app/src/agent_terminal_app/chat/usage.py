"""What a session uses: the size of the last request, the tokens in all, and their cost.

The provider's own counts are the truth. Where it gives none they are estimated from the text, and marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_runtime.results import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_app import AgentApplication

_CHARACTERS_PER_TOKEN = 3.6
_THOUSAND, _MILLION = 1_000, 1_000_000


@dataclass(slots=True)
class Meters:
    """What a session uses.

    Attributes:
        context: How many tokens the last request and its answer had.
        window: How many fit into the model, if that is known.
        tokens: What the session has used.
        cost: What that cost, as far as prices are known.
        is_counted: Whether the provider has counted the last answer.
        is_estimate: Whether it has not counted some answer of the session.
        is_partly_priced: Whether some of the tokens have no price.
    """

    context: int = 0
    window: int | None = None
    tokens: int = 0
    cost: float = 0.0
    is_counted: bool = True
    is_estimate: bool = False
    is_partly_priced: bool = False

    def count(self, usage: Mapping[str, Any], window: int | None) -> None:
        """Count one answer, by the numbers of its provider."""
        self.is_counted = bool(usage["total_tokens"])
        if not self.is_counted:
            self.is_estimate = True
            return
        self.context, self.window = usage["total_tokens"], window
        self.tokens += usage["total_tokens"]
        self.cost += usage["cost"]
        self.is_partly_priced = self.is_partly_priced or not usage["cost"]

    def count_delegate(self, usage: Mapping[str, Any]) -> None:
        """Count what a delegate used."""
        self.tokens += usage["total_tokens"]
        self.cost += usage["cost"]

    def estimate(self, texts: Iterable[str]) -> None:
        """Count what a provider has not counted: what was said in the conversation up to now."""
        said = round(sum(map(len, texts)) / _CHARACTERS_PER_TOKEN)
        self.context = said if self.window is None else min(said, self.window)  # more is never sent
        self.tokens += self.context

    def part(self, name: str) -> str:
        """Return a number as people read it: `context`, `session` or `cost`; empty if nothing was spent."""
        if name == "context":
            share = f" ({self.context / self.window:.0%})" if self.window else ""
            return f"context {_about(is_estimate=not self.is_counted)}{short(self.context)}{share}"
        if name == "session":
            return f"session {_about(is_estimate=self.is_estimate)}{short(self.tokens)} tokens"
        about = _about(is_estimate=self.is_estimate or self.is_partly_priced)
        return f"{about}{self.cost:.4f} spent" if self.cost else ""


def _about(*, is_estimate: bool) -> str:
    return "~" if is_estimate else ""


def short(number: int) -> str:
    """Return a number in at most five characters."""
    if number < _THOUSAND:
        return str(number)
    if round(number / _THOUSAND, 1) < _THOUSAND:
        return f"{number / _THOUSAND:.1f}k"
    return f"{number / _MILLION:.1f}M"


def used_by_model(app: AgentApplication, session_id: str) -> dict[str, Usage]:
    """Return what each model has used in a session; the model that was asked last is last."""
    return {one["model"]: Usage.from_dict(one) for one in app.session_usage(session_id)["models"]}
