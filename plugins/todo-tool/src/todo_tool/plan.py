"""A plan: what is to be done, and how far it has come. Values and rules, nothing that stores them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from agent_core.clean_text import one_line

State = Literal["pending", "in_progress", "done", "dropped"]
"""How far an item has come; one that is dropped will not be done."""

STATES: Final[tuple[State, ...]] = get_args(State)
MOST_ITEMS: Final = 50
LONGEST_TEXT: Final = 300
EMPTY: Final = "There is no plan."

_BOXES: Final[Mapping[str, str]] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "dropped": "[-]"}
_WORDS: Final[Mapping[str, str]] = {"in_progress": "in progress"}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>!#|~&()])")


class PlanError(ValueError):
    """A plan cannot be kept as it is; the message tells the model what to change."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do."""

    text: str
    state: State = "pending"

    def to_dict(self) -> dict[str, str]:
        """Return the item as plain data."""
        return {"text": self.text, "state": self.state}


@dataclass(frozen=True, slots=True)
class Plan:
    """Things to do, in order."""

    items: tuple[Item, ...] = ()

    @classmethod
    def read(cls, data: Any) -> Plan:
        """Read a plan as a model writes it.

        Raises:
            PlanError: If it is none, is too large, or has two items in progress.
        """
        if not isinstance(data, (list, tuple)):
            raise PlanError("the plan must be a list of items, each with text and state")
        if len(data) > MOST_ITEMS:
            raise PlanError(
                f"{len(data)} items are too many: keep at most {MOST_ITEMS}, and leave out finished items"
            )
        plan = cls(tuple(_read_item(place, item) for place, item in enumerate(data, 1)))
        if plan.counts["in_progress"] > 1:
            raise PlanError("only one item can be in_progress: set the others to pending or done")
        return plan

    @classmethod
    def stored(cls, data: Any) -> Plan:
        """Return a plan that was kept; one that somebody has spoilt counts as none."""
        try:
            return cls.read(data)
        except PlanError:
            return cls()

    def to_list(self) -> list[dict[str, str]]:
        """Return the plan as plain data."""
        return [item.to_dict() for item in self.items]

    @property
    def counts(self) -> Counter[str]:
        """How many items are in each state."""
        return Counter(item.state for item in self.items)

    def summary(self) -> str:
        """Return how far it has come, in a line."""
        if not self.items:
            return EMPTY
        counts = self.counts
        states = [f"{counts[state]} {_WORDS.get(state, state)}" for state in STATES if counts[state]]
        return f"{len(self.items)} {'item' if len(self.items) == 1 else 'items'}: {', '.join(states)}"

    def checklist(self) -> str:
        """Return the plan for people, a line for each item."""
        return "\n".join(f"{_BOXES[item.state]} {item.text}" for item in self.items) or EMPTY

    def report(self) -> str:
        """Return the plan for a model, a line for each item."""
        return "\n".join(f"{item.state}: {item.text}" for item in self.items) or EMPTY

    def markdown(self) -> str:
        """Return the plan as a list of tasks; what the model wrote is text in it and nothing else."""
        return "\n".join(map(_markdown_line, self.items)) or EMPTY


def _read_item(place: int, item: Any) -> Item:
    if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
        raise PlanError(f"item {place} needs a text")
    text = one_line(item["text"])
    if not 0 < len(text) <= LONGEST_TEXT:
        raise PlanError(f"the text of item {place} must have 1 to {LONGEST_TEXT} characters, not {len(text)}")
    state = item.get("state", "pending")
    if state not in STATES:
        raise PlanError(f"the state of item {place} must be one of {', '.join(STATES)}")
    return Item(text, state)


def _markdown_line(item: Item) -> str:
    text = _MARKDOWN.sub(r"\\\1", item.text)
    match item.state:
        case "done":
            return f"- [x] {text}"
        case "dropped":
            return f"- [x] ~~{text}~~ (dropped)"
        case "in_progress":
            return f"- [ ] **{text}** (in progress)"
        case _:
            return f"- [ ] {text}"
