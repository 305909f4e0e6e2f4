"""How much fits into a request: the window of the model and what an agent's policy says about it.

The smaller of the two windows counts. If neither is known, no limit is guessed to be one: nothing is
left out or summarised unasked, since that could take something from a model that had room for it. When
the provider then says that a request is too long, old messages are summarised, for which a window of
common size is assumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_runtime.errors import SpecError

if TYPE_CHECKING:
    from agent_runtime.specs import ContextPolicy, ModelSpec

ASSUMED_WINDOW = 128_000
"""The window of a model about which nothing is known."""


class Limits(NamedTuple):
    """What a request may hold, in tokens.

    Attributes:
        window: The request and its answer together.
        reserve: What is kept free for the answer.
        known: False if the window is only assumed.
    """

    window: int
    reserve: int
    known: bool

    @property
    def budget(self) -> int:
        """What is left for messages and tools."""
        return self.window - self.reserve


def limits(policy: ContextPolicy, model: ModelSpec) -> Limits:
    """Return what a request to *model* may hold; there is always room for something."""
    windows = [window for window in (policy.max_tokens, model.context_window) if window]
    window = min(windows, default=ASSUMED_WINDOW)
    return Limits(window, _reserve(policy, model, window), known=bool(windows))


def check_limits(policy: ContextPolicy, model: ModelSpec) -> None:
    """Refuse a policy that leaves no room for a prompt.

    Raises:
        SpecError: If what is to be kept free is all of the window, or more.
    """
    window, _reserved, known = limits(policy, model)
    if known and policy.reserve_tokens is not None and policy.reserve_tokens >= window:
        raise SpecError(
            f"context_policy.reserve_tokens ({policy.reserve_tokens}) leaves nothing of the window of model "
            f"{model.id!r} ({window}): it must be below that",
            field="context_policy.reserve_tokens",
        )


def _reserve(policy: ContextPolicy, model: ModelSpec, window: int) -> int:
    if policy.reserve_tokens is not None:
        return min(policy.reserve_tokens, window - 1)
    # Nobody asked for this much: a model that could answer at length must not leave no room to ask.
    return min(model.max_output_tokens or window // 8, window // 2)
