"""Lines above the prompt: they are inserted where they belong, and the prompt stays as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pyte
from hypothesis import given, strategies as st

from agent_terminal_app.chat.prompt.screen import Redraw, insertion

COLUMNS = 20
LINES = st.lists(st.text("abc", min_size=1, max_size=COLUMNS), min_size=1, max_size=8)


def everything(screen: Any) -> list[str]:
    """Return what was scrolled away and what is on the screen, without what is empty."""
    old = ["".join(row[n].data for n in range(COLUMNS)).rstrip() for row in screen.history.top]
    return [line for line in (*old, *(line.rstrip() for line in screen.display)) if line]


@given(
    rows=st.integers(6, 12),
    before=st.integers(0, 30),
    height=st.integers(1, 5),
    batches=st.lists(LINES, min_size=1, max_size=6),
    data=st.data(),
)
def test_lines_stand_between_what_was_there_and_the_prompt(
    rows: int, before: int, height: int, batches: list[list[str]], data: st.DataObject
) -> None:
    screen: Any = pyte.HistoryScreen(COLUMNS, rows, history=1000, ratio=0.5)
    stream: Any = pyte.Stream(screen)
    above = [f"old {number}" for number in range(before)]
    stream.feed("".join(f"{line}\r\n" for line in above))
    prompt = [f"prompt {number}" for number in range(height)]
    stream.feed("\r\n".join(prompt))
    row, column = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, COLUMNS - 1))
    if row < height - 1:
        stream.feed(f"\x1b[{height - 1 - row}A")
    stream.feed("\r" + (f"\x1b[{column}C" if column else ""))
    room = rows - height

    for lines in batches:
        stream.feed(insertion(lines[:room], height=height, cursor=(column, row)))
        above += lines[:room]

        assert everything(screen) == [*above, *prompt]
        assert screen.cursor.x == column
        assert screen.display[screen.cursor.y].startswith(f"prompt {row}")


def test_what_is_written_is_little_more_than_the_lines() -> None:
    lines = ["x" * 70] * 3

    assert len(insertion(lines, height=3, cursor=(10, 1))) < 1.2 * sum(map(len, lines))


# The rows around the prompt are drawn again if they are not what was drawn last, by whomever.


async def looked_at(*by_others: str) -> list[str]:
    """Return what is drawn at the end, after others have drawn what was seen before."""
    state, drawn, looked = "ready", list[str](), asyncio.Event()

    def seen() -> str:
        looked.set()
        return state

    redraw = Redraw(seen, lambda: drawn.append(state), lambda: False)
    redraw.is_drawn()
    for state in by_others:  # noqa: B007 - it is what `seen` returns
        redraw.is_drawn()
    looked.clear()
    state = "ready"
    redraw.look_again()
    await looked.wait()
    return drawn


def test_what_is_as_it_was_drawn_is_not_drawn_again() -> None:
    assert asyncio.run(looked_at()) == []


def test_what_a_key_has_drawn_in_between_does_not_stay() -> None:
    assert asyncio.run(looked_at("working")) == ["ready"]
