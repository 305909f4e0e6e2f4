"""Record the chat as a picture: ``python docs/screens/record.py`` writes the SVG files next to it.

What is recorded is real: the `agent` command in a pseudo terminal, with the embedded model, and with a
scripted server where a better model is needed. Nothing of the picture is drawn by hand.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import pyte
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture asks nobody for anything
COLUMNS, ROWS = 96, 30
PATIENCE = 90.0
_STILL = 5  # reads in a row that bring nothing
CONFIG = """
model = "openai_compatible:scripted-model"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:SCRIPTED_KEY"
"""


class Recorder:
    """A chat in a terminal that remembers what is on its screen."""

    def __init__(self, folder: Path, **environment: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "agent_terminal_app", "chat"],
            cwd=str(folder / "project"),
            env={**kept, "HOME": str(folder), "TERM": "xterm-256color", **environment},
            encoding="utf-8",
            dimensions=(ROWS, COLUMNS),
        )

    def type(self, text: str) -> None:
        """Type a line."""
        self._child.send(f"{text}\r")

    def press(self, key: str) -> None:
        """Press a key."""
        self._child.send(key)

    def wait(self, words: str) -> None:
        """Wait until some words are on the screen, and nothing moves any more."""
        self._until(lambda: words in "\n".join(self._screen.display))

    def save(self, name: str, title: str) -> None:
        """Write what is on the screen."""
        console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: PTH123, SIM115
        last = max((row for row in range(ROWS) if self._screen.display[row].strip()), default=0)
        for row in range(last + 1):
            console.print(self._line(row), no_wrap=True, crop=True)
        picture = _FONTS.sub("", console.export_svg(title=title, unique_id=name))
        (HERE / f"{name}.svg").write_text(picture, encoding="utf-8")

    def close(self) -> None:
        """End the chat."""
        self._child.close(force=True)

    def _until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        quiet = 0
        while quiet < _STILL or not condition():
            if time.monotonic() > end:
                raise SystemExit("waited in vain; the screen was:\n" + "\n".join(self._screen.display))
            try:
                self._stream.feed(self._child.read_nonblocking(65536, 0.2))
                quiet = 0
            except pexpect.TIMEOUT:
                quiet += 1

    def _line(self, row: int) -> Text:
        cells = [self._screen.buffer[row][column] for column in range(COLUMNS)]
        line = Text()
        for style, run in groupby(cells, _style):
            line.append("".join(cell.data for cell in run), style)
        line.rstrip()
        return line


def _style(cell: Any) -> Style:
    color = None if cell.fg == "default" else _color(cell.fg)
    return Style(color=color, bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def _color(name: str) -> Color:
    names = {"brown": "yellow", "brightblack": "bright_black"}
    try:
        return Color.parse(names.get(name, name))
    except ValueError:
        return Color.parse(f"#{name}")


def record_first_start() -> None:
    """The first start: a model inside the program."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "project").mkdir()
        chat = Recorder(Path(folder))
        try:
            chat.wait("»")
            chat.type("What is the capital of France?")
            chat.wait("Paris")
            chat.type("/cost")
            chat.wait("session")
            chat.save("first-start", "agent chat")
        finally:
            chat.close()


def record_edit_and_undo() -> None:
    """An edit that is shown before it is made, and taken back afterwards."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as server:
        home = Path(folder)
        (home / ".config" / "agent").mkdir(parents=True)
        (home / ".config" / "agent" / "config.toml").write_text(CONFIG.format(url=server.url))
        (home / "project").mkdir()
        (home / "project" / "greet.py").write_text('def greet(name):\n    print("Hello " + name)\n')
        change = {"path": "greet.py", "old": 'print("Hello " + name)', "new": 'print(f"Hello, {name}!")'}
        server.play(
            chat_reply("I look at it first.", tool_calls=[ToolCall("read_file", {"path": "greet.py"}, "c1")]),
            chat_reply("An f-string reads better:", tool_calls=[ToolCall("edit_file", change, "c2")]),
            chat_reply("`greet.py` uses an f-string now."),
        )
        chat = Recorder(home, SCRIPTED_KEY="secret")
        try:
            chat.wait("»")
            chat.type("Make greet.py nicer.")
            chat.wait("your answer?")
            chat.save("edit", "agent chat")
            chat.press("y")
            chat.wait("uses an f-string now.")
            chat.type("/undo files")
            chat.wait("Enter takes back change 1")
            chat.save("undo", "agent chat")
        finally:
            chat.close()


def record_plan() -> None:
    """A plan that waits for an answer, with the checklist above the list of choices."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as server:
        home = Path(folder)
        (home / ".config" / "agent").mkdir(parents=True)
        (home / ".config" / "agent" / "config.toml").write_text(CONFIG.format(url=server.url))
        (home / "project").mkdir()
        (home / "project" / "greet.py").write_text('def greet(name):\n    print("Hello " + name)\n')
        steps = (
            "Return the greeting in place of printing it",
            "Print it where greet is called",
            "Add a test",
        )
        plan = {"items": [{"text": text} for text in steps]}
        server.play(
            chat_reply("", tool_calls=[ToolCall("read_file", {"path": "greet.py"}, "c1")]),
            chat_reply("", tool_calls=[ToolCall("write_todos", plan, "c2")]),
            chat_reply("`greet` prints, so it cannot be tested. I would split that in three steps."),
        )
        chat = Recorder(home, SCRIPTED_KEY="none")
        try:
            chat.wait("ready")
            chat.type("/plan Make greet testable.")
            chat.wait("What about this plan?")
            chat.save("plan", "agent chat")
        finally:
            chat.close()


if __name__ == "__main__":
    record_first_start()
    record_edit_and_undo()
    record_plan()
