"""What is opened above the prompt: it fits, it can be scrolled, and the older ones can be opened too."""

from __future__ import annotations

from agent_terminal_app.chat.prompt.layout import Pane
from agent_terminal_app.chat.rendering.folds import Folds
from agent_terminal_app.chat.rendering.text import unstyled
from agent_terminal_app.rows import cells


def folds(lines: int) -> Folds:
    made = Folds()
    made.think().text.add("an older thought")
    made.think().text.add("\n\n".join(f"line {number}" for number in range(lines)))
    return made


def test_the_last_fold_opens_first_then_the_older_ones_then_none() -> None:
    pane, made = Pane(), folds(1)

    assert not pane.is_open and pane.lines(40, 10, color=False) == []
    pane.open_next(made)
    assert pane.lines(60, 10, color=False) == [
        "[2] thinking, 6 characters",
        "line 0",
        "Ctrl+O older, PgUp PgDn scroll, Esc closes",
    ]
    pane.open_next(made)
    assert pane.lines(60, 10, color=False)[1] == "an older thought"
    pane.open_next(made)
    assert not pane.is_open


def test_a_long_fold_is_scrolled_within_its_bounds() -> None:
    pane = Pane()
    pane.open_next(folds(50))

    assert pane.lines(60, 12, color=False)[1] == "line 0"
    assert pane.lines(60, 12, color=False)[-1].startswith("lines 1-10 of 99 · ")
    pane.scroll(10)
    assert pane.lines(60, 12, color=False)[1] == "line 5"
    pane.scroll(1000)
    assert pane.lines(60, 12, color=False)[-2] == "line 49"
    pane.scroll(-1000)
    assert pane.lines(60, 12, color=False)[1] == "line 0"


def test_what_is_added_is_seen_and_what_is_wide_is_cut() -> None:
    pane, made = Pane(), Folds()
    thought = made.think()
    pane.open_next(made)
    assert len(pane.lines(20, 12, color=True)) == 2

    thought.text.add("x" * 50)

    rows = pane.lines(20, 12, color=True)[1:-1]
    assert [cells(unstyled(row)) for row in rows] == [20, 20, 10]
    assert all(row.startswith("\x1b[2m") for row in rows)
