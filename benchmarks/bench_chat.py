"""How a chat feels: the first prompt, the echo of a key, Esc, and what an answer costs in bytes.

A real `agent chat --demo` runs in a pseudo terminal. Milliseconds are those of this machine, with everything
else that it does; the echo of a key includes two trips through the pseudo terminal.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = 200
WORDS = 4000
PAUSE = 0.02
LETTERS = "QXZJKVBY"
ESC, CTRL_U = "\x1b", "\x15"


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<44}{figure:>16}  {note}")


def start(folder: Path) -> Terminal:
    places = {f"XDG_{name}_HOME": str(folder / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    environment = {**os.environ, **places, "HOME": str(folder), "SHELL": "/bin/sh"}
    command = [sys.executable, "-m", "agent_terminal_app", "chat", "--demo"]
    return Terminal(command, environment=environment, folder=folder, fresh=True)


def first_prompt(folder: Path) -> None:
    times = []
    for _ in range(5):
        began = time.monotonic()
        with start(folder) as terminal:
            terminal.expect("»")
            times.append(time.monotonic() - began)
    line("first prompt", f"{min(times) * 1000:.0f} ms", "target: under 500 ms")


def echoes(terminal: Terminal, still: Callable[[], bool] = lambda: True) -> list[float]:
    """Return how long each key took until it was seen, in milliseconds."""
    times = []
    for number, letter in zip(range(KEYS), itertools.cycle(LETTERS), strict=False):
        if not still():
            break
        times.append(terminal.time_until(letter, letter.encode()) * 1000)
        if number % 40 == 39:
            terminal.type(CTRL_U)
        terminal.read(PAUSE)
    terminal.type(CTRL_U)
    return times


def show_echo(what: str, times: list[float]) -> None:
    times.sort()
    late = times[min(len(times) - 1, round(len(times) * 0.99))]
    note = f"99 of 100 within {late:.1f} ms, {len(times)} keys; target: under 50 ms"
    line(f"echo of a key, {what}", f"{statistics.median(times):.1f} ms", note)


def measure_echo(terminal: Terminal) -> None:
    show_echo("at rest", echoes(terminal))
    before, began = len(terminal.raw), time.monotonic()
    terminal.type(f"stream {WORDS}\r")
    terminal.wait(lambda: b"word1 " in terminal.raw)
    show_echo("500 tokens per second", echoes(terminal, lambda: f"word{WORDS} ".encode() not in terminal.raw))
    terminal.wait(lambda: f"word{WORDS} ".encode() in terminal.raw)
    terminal.until_quiet()
    text = sum(len(f"word{number} ") for number in range(1, WORDS + 1))
    pace = WORDS / (time.monotonic() - began)
    line(
        "bytes written for an answer",
        f"{(len(terminal.raw) - before) / text:.2f}x",
        f"its text, at {pace:.0f} words/s",
    )
    terminal.type("!yes\r")
    terminal.read(0.5)
    show_echo("a command prints without end", echoes(terminal))
    terminal.type(ESC)
    terminal.expect("stopped, ")


def measure_escape(terminal: Terminal) -> None:
    for what, words in (("while it speaks", "stream 9999"), ("while a tool runs", "count to 900")):
        times = []
        for _ in range(10):
            terminal.type(f"{words}\r")
            terminal.expect_line("working")
            terminal.read(0.3)
            times.append(terminal.time_until(ESC, b"stopping", b"interrupted") * 1000)
            terminal.expect_line("ready")
        line(
            f"Esc, {what}",
            f"{statistics.median(times):.0f} ms",
            f"at most {max(times):.0f} ms; target: under 100 ms",
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first_prompt(folder)
        with start(folder) as terminal:
            terminal.expect_line("ready")
            measure_echo(terminal)
            measure_escape(terminal)


if __name__ == "__main__":
    main()
