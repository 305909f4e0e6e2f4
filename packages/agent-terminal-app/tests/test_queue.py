"""Messages that wait, and the meters: what a person is told about them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app.store.base import Waiting
from agent_terminal_app.chat.queue import MessageQueue
from agent_terminal_app.chat.usage import Meters, short


def stored(seq: int, text: str, mode: Any = "queue") -> Waiting:
    return Waiting(seq=seq, session_id="s", message={"role": "user", "content": text}, mode=mode, created=0.0)


def numbers(meters: Meters) -> list[str]:
    return [text for name in ("context", "session", "cost") if (text := meters.part(name))]


def test_a_message_is_queued_then_delivered_then_answered() -> None:
    line = MessageQueue()

    assert line.refresh([stored(1, "one"), stored(2, "two", "steer")], held=False) == []
    assert line.lines() == ["⧗ queued: one", "⧗ after this step: two"]
    delivered = line.refresh([stored(1, "one")], held=False, step=3)
    assert [one.text for one in delivered] == ["two"]
    assert line.lines() == ["⧗ delivered, step 3: two", "⧗ queued: one"]
    assert line.refresh([stored(1, "one")], held=False, step=4) == []
    line.answered()
    assert line.lines() == ["⧗ queued: one"]
    assert len(line) == 1


def test_what_is_held_says_how_it_is_sent_or_taken_back() -> None:
    line = MessageQueue()
    line.refresh([stored(1, "one"), stored(2, "two")], held=True)

    assert line.held
    assert line.lines() == [
        "⧗ held: one",
        "⧗ held: two",
        "  held until you press Enter; Alt+Up takes it back",
    ]
    last = line.last()
    assert last is not None and last.text == "two"
    line.forget(last.seq)
    assert len(line) == 1


def test_of_many_the_last_are_shown_and_how_many_more_there_are() -> None:
    line = MessageQueue()
    line.refresh([stored(n, f"m{n}") for n in range(8)], held=False)

    assert line.lines()[:2] == ["⧗ 3 more", "⧗ queued: m3"]
    assert len(line.lines()) == 6


def usage(sent: int, received: int, cost: float = 0.0) -> dict[str, Any]:
    return {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received, "cost": cost}


def test_three_numbers_that_are_not_the_same() -> None:
    meters = Meters()

    meters.count(usage(900, 100, 0.01), 10_000)
    meters.count(usage(1400, 100, 0.02), 10_000)

    assert numbers(meters) == ["context 1.5k (15%)", "session 2.5k tokens", "0.0300 spent"]


def test_what_the_provider_has_not_counted_is_marked_as_an_estimate() -> None:
    meters = Meters()

    meters.count(usage(0, 0), None)
    meters.estimate(["x" * 360])
    assert numbers(meters) == ["context ~100", "session ~100 tokens"]
    meters.count(usage(50, 50), None)
    assert numbers(meters) == ["context 100", "session ~200 tokens"]


def test_an_estimate_is_never_more_than_the_window_since_more_is_not_sent() -> None:
    meters = Meters(window=50)

    meters.count(usage(0, 0), 50)
    meters.estimate(["x" * 360])

    assert numbers(meters)[0] == "context ~50 (100%)"


def test_money_is_an_estimate_if_some_of_it_has_no_price() -> None:
    meters = Meters()

    meters.count(usage(1, 1, 0.5), None)
    meters.count(usage(1, 1), None)
    meters.count_delegate(usage(10, 10, 0.25))

    assert numbers(meters)[1:] == ["session 24 tokens", "~0.7500 spent"]


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1000, "1.0k"), (999_949, "999.9k"), (1_200_000, "1.2M")]
)
def test_numbers_are_short(number: int, text: str) -> None:
    assert short(number) == text
