"""What stands around the prompt is drawn again if it is not what was drawn last, by whomever."""

from __future__ import annotations

import asyncio

from agent_terminal_app.chat.redrawing import Redrawing


async def looked_at(*by_others: str) -> list[str]:
    """Return what is drawn at the end, after others have drawn what was seen before."""
    state, drawn, looked = "ready", list[str](), asyncio.Event()

    def seen() -> str:
        looked.set()
        return state

    redrawing = Redrawing(seen, lambda: drawn.append(state), lambda: False)
    redrawing.is_drawn()
    for state in by_others:  # noqa: B007 - it is what `seen` returns
        redrawing.is_drawn()
    looked.clear()
    state = "ready"
    redrawing.look_again()
    await looked.wait()
    return drawn


def test_what_is_as_it_was_drawn_is_not_drawn_again() -> None:
    assert asyncio.run(looked_at()) == []


def test_what_a_key_has_drawn_meanwhile_does_not_stay() -> None:
    assert asyncio.run(looked_at("working")) == ["ready"]
