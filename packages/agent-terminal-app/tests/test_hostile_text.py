"""Text that wants to be more than text: escape sequences in messages, tool output, file names and titles.

Only what the program itself writes may reach the terminal: styles, and the few movements of its prompt.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ENDS = ("\x07", "\x1b\\", "\x9c", "")
_OSC = (
    "0;owned", "2;owned", "52;c;b3duZWQ=", "8;;http://evil.example", "9;owned", "777;notify;a;b",
    "1337;File=:AA", "4;1;rgb:ff/00/00", "10;#ff0000", "104", "133;A", "7;file://evil/",
)  # fmt: skip
_CSI = (
    "2J", "3J", "H", "10;10H", "5A", "5B", "5C", "5D", "2K", "1L", "1M", "2P", "3@", "5X", "6n", "c",
    ">c", "=c", "?1049h", "?25l", "?2004l", "?1000h", "?7l", "?1h", "s", "u", "r", "5;10r", "4h",
    "20h", "!p", "3g", "i", "5i", "8;10;10t", "21t", "31m", "0;1;5m", "38;5;1m", "?6h", "2 q", "1;2'z",
    ">4;2m", "?2026h", "99999999A",
)  # fmt: skip
_STRINGS = ("P1$r0m", "_apc", "^pm", "Xsos", "P+q544e", "k", "Ptmux;\x1b\x1b]0;x\x07")
_PLAIN = (
    "\x1bc", "\x1b#8", "\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1bH", "\x1b=", "\x1b>",
    "\x1b(0", "\x1bN", "\x1bO", "\x1b%G", "\x1bZ", "\x07", "\x08" * 30, "\x0b", "\x0c", "\x0e", "\x0f",
    "\x05", "\x00", "\x7f", "\x18", "\x1a", "\x84", "\x85", "\x8d", "\x90x\x9c", "\x9b2J",
    "\x9d0;owned\x9c", "\x9e", "\x9f", "\x98", "\r", "a\rb", "\u202e", "\u202d", "\u2066", "\u2067",
    "\u2068", "\u2069", "\u200e", "\u200f", "\u061c", "\u2028", "\u2029", "\ufeff", "\U000e0041",
    "\U000e007f", "\x1b", "\x1b\x1b[2J", "\x1b[", "\x1b]", "\x1b[\x1b[2J",
)  # fmt: skip


def sequences() -> list[str]:
    """Return what has been tried on terminals."""
    osc = [f"{begin}{body}{end}" for begin, body, end in itertools.product(("\x1b]", "\x9d"), _OSC, _ENDS)]
    csi = [f"{begin}{body}" for begin, body in itertools.product(("\x1b[", "\x9b"), _CSI)]
    strings = [f"\x1b{body}{end}" for body, end in itertools.product(_STRINGS, _ENDS)]
    found = [*csi, *_PLAIN, *strings, *osc]
    pairs = (f"{one}{other}" for one, other in zip(_PLAIN, reversed(csi), strict=False))
    return list(dict.fromkeys([*found, *pairs]))


EVIL = sequences()
_OURS = re.compile(
    rb"\x1b\[(?:[0-9;]*m|[0-9]*[ABCDL]|[JK])|\x1b\[\?(?:1|7|12|25|1004|2004)[hl]|\x1b\[2J\x1b\[0;0H"
)
_UNSEEN = re.compile(
    "[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
PROGRAM = """
import asyncio, itertools, sys
from pathlib import Path
from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt
from agent_terminal_app.demo import ThoughtfulReply, DemoProvider

folder = Path(sys.argv[1])
evil = (folder / "evil").read_bytes().decode("utf-8", "surrogatepass").split("\\x01")
shown = [f"<{n}:{one}:{n}>" for n, one in enumerate(evil)]

def answer(messages):
    last = messages[-1]
    said = str(last["content"])
    if last["role"] == "tool":
        return "Done with it."
    if "tool" in said:
        return Reply(tool_calls=[ToolCall("evil", {"text": one}) for one in shown[:3]])
    if "fail" in said:
        return RuntimeError("".join(shown[:50]))
    return ThoughtfulReply(text="\\n".join(["", *shown, "", "That was all."]), thoughts="\\n".join(shown))

class Evil(DemoProvider):
    name = "evil"
    def __init__(self):
        ScriptedProvider.__init__(self, itertools.repeat(answer), name="evil")

class Tool:
    name = "tool"
    version = "1"
    def get_tool_schemas(self):
        text = {"type": "object", "properties": {"text": {"type": "string"}}}
        return [{"name": "evil", "input_schema": text}]
    def stream_tool(self, tool_name, arguments):
        for one in shown:
            yield {"part": one}
        yield {"success": True, "result": arguments["text"] + "".join(shown[:10])}
    def format_tool_call_preview(self, tool_name, arguments):
        return arguments["text"]
    def format_tool_call_display(self, tool_name, arguments):
        return {"type": "diff", "content": "+" + "\\n+".join(shown[:20])}

def open_app():
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "evil"}},
              "permissions": {"ask": ["evil"]}}
    app = AgentApplication(config, plugins=[Evil, Tool], installed=False)
    for n, one in enumerate(shown[:19]):
        app.rename_session(app.create_session().session_id, one)
    return app

async def sit():
    return await run_prompt(Chat(open_app, PromptScreen(color=True)), None)

sys.exit(asyncio.run(sit()))
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "evil").write_bytes("\x01".join(EVIL).encode("utf-8", "surrogatepass"))
    (tmp_path / "program.py").write_text(PROGRAM)
    files = tmp_path / "files"
    files.mkdir()
    (files / "harmless").touch()
    for number, one in enumerate(EVIL):
        if "/" not in one and "\0" not in one:
            (files / f"<{number}{one}").touch()
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/sh"}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    with Terminal(command, environment=environment, folder=files, columns=100, rows=30) as terminal:
        terminal.expect_line("ready")
        yield terminal


def is_at_rest(terminal: Terminal) -> bool:
    """Say whether nothing is being drawn: that hides the cursor, and the last sequence may be half read."""
    prompt = terminal.lines[-2].startswith("»")
    return prompt and terminal.modes == {"1004", "2004"} and not re.search(rb"\x1b[^A-Za-z]*$", terminal.raw)


def assert_harmless(terminal: Terminal) -> None:
    """Check what was written, and that the terminal is as it would be without it."""
    terminal.wait(partial(is_at_rest, terminal), "a prompt at rest")
    rest = _OURS.sub(b"", terminal.raw)
    assert b"\x1b" not in rest, rest[max(0, rest.index(b"\x1b") - 40) :][:80]
    unseen = _UNSEEN.search(rest.decode())
    assert unseen is None, rest.decode()[max(0, unseen.start() - 40) :][:80]
    for number, one in enumerate(EVIL):
        raw = f"<{number}:{one}:"  # the mark behind it tells it from what we write after "<{number}:"
        assert "\x1b" not in one or raw.encode("utf-8", "surrogatepass") not in terminal.raw
    assert terminal.screen.title == "" and terminal.screen.icon_name == ""


def has_asked(terminal: Terminal, times: int) -> bool:
    return terminal.text.count("[y] yes, once") == times


def say_yes(terminal: Terminal, times: int) -> None:
    """Answer the next question; a key that comes before it can be read is text, and is taken back."""

    def is_typed() -> bool:
        return terminal.lines[-2].rstrip() == "» y"

    def is_answered() -> bool:
        return terminal.text.count("» y\n") - is_typed() >= times

    terminal.wait(partial(has_asked, terminal, times))
    for _ in range(9):
        terminal.expect_line("your answer")
        terminal.type("y")
        terminal.wait(lambda: is_answered() or is_typed())
        if is_answered():
            return
        terminal.type("\x7f")
        terminal.wait(lambda: not is_typed())


def has_a_menu(terminal: Terminal, typed: str) -> bool:
    """Say whether something stands between what is typed and the last row."""
    return typed in terminal.lines[:-2]


def test_there_are_enough_of_them() -> None:
    assert len(EVIL) >= 300


def test_messages_thoughts_tools_and_errors_stay_text(terminal: Terminal) -> None:
    terminal.type("say it\r")
    terminal.expect("That was all.")
    terminal.expect_line("ready")
    text = terminal.text
    assert all(f"<{number}:" in text for number in range(len(EVIL)))
    terminal.type("\x0f")
    terminal.expect_line(r"\[1\] thinking")
    terminal.type("use the tool\r")
    for count in (1, 2, 3):
        say_yes(terminal, count)
    terminal.expect("Done with it.")
    terminal.type("\x1b")
    terminal.wait(lambda: not any(line.startswith("[1] thinking") for line in terminal.lines))
    terminal.type("fail\r")
    terminal.expect("Error: ")
    terminal.expect_line("ready")

    assert_harmless(terminal)


def test_titles_file_names_and_printed_lines_stay_text(terminal: Terminal) -> None:
    terminal.type("/sessions\r")
    terminal.expect("<18:")
    terminal.type("/resume ")
    terminal.wait(partial(has_a_menu, terminal, "» /resume"))
    terminal.type("\x03see @")
    terminal.expect_line(" harmless")
    terminal.type("\x03!ls; cat ../evil; ls -b | head -3\r")
    terminal.expect_line("exit code 0")
    terminal.type("/resume\r")
    terminal.expect("Which session?")
    terminal.expect_line("type to narrow down")
    terminal.type("\x1b")
    terminal.expect_line("ready")

    assert_harmless(terminal)


def test_what_is_pasted_stays_text(terminal: Terminal) -> None:
    terminal.paste("".join(one for one in EVIL if "\x1b[201~" not in one)[:1500])
    terminal.expect("owned")
    terminal.type("\x03")
    terminal.paste("\n".join(EVIL))
    terminal.type("\r")
    terminal.expect("That was all.")
    terminal.expect_line("ready")

    assert_harmless(terminal)
