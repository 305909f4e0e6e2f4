"""Keys of the chat in a real terminal: the usual ones, one's own, and those that hand the terminal over."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from agent_app import AgentApplication
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

DEMO = [sys.executable, "-m", "agent_terminal_app", "chat", "--demo"]
ESC, F1, F5, F6, SHIFT_ENTER = "\x1b", "\x1bOP", "\x1b[15~", "\x1b[17~", "\x1b[13;2u"
CTRL_C, CTRL_D, CTRL_O, CTRL_R, CTRL_T = "\x03", "\x04", "\x0f", "\x12", "\x14"

# Writes what it is given into a file, and lets go of the terminal when a line is typed.
PAGER = """#!/bin/sh
trap 'echo was interrupted' INT
cat > paged.txt
echo "this is the pager"
until read line < /dev/tty; do :; done
"""

# A chat whose sessions are kept, and whose tool counts when the bell rings.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_app import AgentApplication
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt
from agent_terminal_app.cli import leave
from agent_terminal_app.demo import DemoCounter, DemoProvider

folder = Path(sys.argv[1])

class Counter(DemoCounter):
    async def stream_tool(self, tool_name, arguments):
        while not (folder / "bell").exists():
            await asyncio.sleep(0.01)
        yield {"success": True, "result": f"counted to {arguments['upto']}"}

def open_app():
    config = {"agents": {"a": {"model": "demo"}}, "models": {"demo": {"provider": "demo"}},
              "permissions": {"allow": ["count"]}}
    plugins = [DemoProvider, Counter]
    return AgentApplication(config, store=f"sqlite:///{folder}/app.db", plugins=plugins, installed=False)

async def sit():
    return await run_prompt(Chat(open_app, PromptScreen(color=True)), None)

leave(asyncio.run(sit()))
"""

Start = "Callable[..., Terminal]"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    unwanted = ("NO_COLOR", "COLUMNS", "LINES", "PAGER", "LESS")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, **places, "HOME": str(tmp_path), "SHELL": "/bin/sh", "TERM": "xterm-256color"}


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    started = []

    def begin(
        keys: str = "", until: str = "ready", command: Sequence[str] = DEMO, **variables: str
    ) -> Terminal:
        (tmp_path / "config" / "agent").mkdir(parents=True)
        if keys:
            (tmp_path / "config" / "agent" / "keys.toml").write_text(keys)
        terminal = Terminal(command, environment={**environment, **variables}, folder=tmp_path, columns=100)
        started.append(terminal)
        if until:
            terminal.expect_line(until)
        return terminal

    yield begin
    for terminal in started:
        terminal.close()


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    path = tmp_path / "pager"
    path.write_text(PAGER)
    path.chmod(0o755)
    return path


def is_restored(terminal: Terminal) -> bool:
    return terminal.settings == terminal.before and not terminal.modes and not terminal.screen.cursor.hidden


# Help and new lines


def test_a_question_mark_is_help_if_it_is_the_first_thing_typed(start: Callable[..., Terminal]) -> None:
    terminal = start()
    terminal.type("really?")
    terminal.expect_line("» really[?]$")
    terminal.type(f"{CTRL_C}?")
    terminal.expect("» /help")
    terminal.expect_line(r"  Ctrl\+T +shows the whole conversation in \$PAGER")
    terminal.type("what\r")
    terminal.expect("You said: what")


def test_help_is_no_answer_to_what_a_command_asks(start: Callable[..., Terminal]) -> None:
    terminal = start()
    terminal.type("hello\r")
    terminal.expect("I repeat what you say")
    terminal.type("/rename\r")
    terminal.expect_line("type your answer")
    terminal.type(f"{F1}?\r")
    terminal.expect("This session is called '?' now.")


def test_shift_and_enter_begin_a_new_line_where_a_terminal_tells_them_from_enter(
    start: Callable[..., Terminal],
) -> None:
    terminal = start()
    terminal.type(f"one{SHIFT_ENTER}two\x1b[27;2;13~three")
    terminal.wait(lambda: terminal.lines[-4:-1] == ["» one", "  two", "  three"])


def test_shift_and_tab_go_back_in_a_list_of_completions(start: Callable[..., Terminal]) -> None:
    terminal = start()
    terminal.type("/re")
    terminal.expect_line(" /redo ")  # the last of the list
    terminal.type("\x1b[Z")
    terminal.expect_line("» /redo$")

    assert "edits" not in terminal.text


# Keys of one's own


def test_other_keys_do_what_was_done_by_the_usual_ones(start: Callable[..., Terminal], pager: Path) -> None:
    keys = 'send = "Ctrl+S"\nnew_line = "Enter"\nhelp = "F5"\nsearch = "F6"\ntranscript = "Ctrl+X t"\n'
    terminal = start(keys, until="ready · F5 help", PAGER=str(pager))
    terminal.type("first\rsecond\x13")
    terminal.expect("You said: first")
    terminal.expect_line("ready")
    terminal.type("alpha\x13")
    terminal.expect("You said: alpha")
    terminal.expect_line("ready")
    terminal.type(f"{F6}fir")
    terminal.expect_line("I-search.*fir$")
    terminal.type("\r")
    terminal.wait(lambda: terminal.lines[-3:-1] == ["» first", "  second"])
    terminal.type(CTRL_C)
    terminal.wait(lambda: terminal.lines[-2:-1] == ["»"])
    terminal.type(f"{CTRL_T}{CTRL_R}x{F1}")
    terminal.expect_line("» x$")
    terminal.type(CTRL_C + "\x18t")
    terminal.expect("this is the pager")
    terminal.type("\n")
    terminal.expect_line("ready")
    terminal.type(F5)
    terminal.wait(lambda: re.search(r"^  Ctrl\+S +sends", terminal.text, re.MULTILINE))
    terminal.expect_line(r"  Ctrl\+X t +shows the whole conversation")


def test_what_is_shown_of_keys_is_what_they_are(start: Callable[..., Terminal]) -> None:
    terminal = start(
        'open = "F6"\nscroll_up = []\nscroll_down = "Shift+Down"\ntake_back = []\nhelp = []\n',
        "ready · /help",
    )
    terminal.type("count to 3\r")
    terminal.expect("The tool says: counted to 3")
    terminal.type(F6)
    terminal.expect_line("F6 older, Shift[+]Down scroll, Esc closes")
    terminal.type(f"{ESC}!echo x\r")
    terminal.expect_line(r"exit code 0, \d+\.\d s$")


def test_a_file_that_is_wrong_is_told_and_nothing_begins(start: Callable[..., Terminal]) -> None:
    terminal = start('transcipt = "F5"\n', until="")

    assert terminal.end() == 3
    told = "keys.toml:1: there is no action 'transcipt'; did you mean 'transcript'?"
    assert told.replace(" ", "") in "".join(terminal.text.split())  # wherever the terminal has wrapped it
    assert is_restored(terminal)


@pytest.mark.parametrize(
    ("keys", "status", "told"),
    [
        ('edit = "F5"\n', "OK", "changes edit; send Enter; "),
        ('edit = "Ctrl+T"\n', "FAIL", "keys.toml:1: Ctrl+T is the key of both transcript and edit"),
    ],
)
def test_the_doctor_lists_the_keys_in_force_or_what_is_wrong(
    environment: dict[str, str], tmp_path: Path, keys: str, status: str, told: str
) -> None:
    (tmp_path / "config" / "agent").mkdir(parents=True)
    (tmp_path / "config" / "agent" / "keys.toml").write_text(keys)
    command = [sys.executable, "-m", "agent_terminal_app", "doctor"]
    with Terminal(command, environment=environment, folder=tmp_path, columns=900) as terminal:
        terminal.end()

        assert re.search(rf"^{status} +keyboard: .*{re.escape(told)}", terminal.text, re.MULTILINE)
        assert ("edit F5;" in terminal.text) == (status == "OK")


# The transcript


def test_the_transcript_is_the_whole_session_and_the_terminal_comes_back(
    start: Callable[..., Terminal], pager: Path, tmp_path: Path
) -> None:
    terminal = start(PAGER=f"{pager} -x")
    terminal.type("first ```python words\r")
    terminal.expect("You said: first")
    terminal.type("time\r")
    terminal.expect("It is 12:00.")
    terminal.type("code\r")
    terminal.expect("That was code.")
    terminal.expect_line("ready")
    terminal.type(f"half a line{CTRL_T}")
    terminal.expect_line("this is the pager")

    paged = (tmp_path / "paged.txt").read_text()
    said = re.sub(r"\x1b\[[0-9;]*m", "", paged).split("\n")
    assert [line for line in said if line.startswith("──")] == [
        *("── You ──", "── Agent ──"),
        *("── You ──", "── Agent ──", "── Tool clock ──", "── Agent ──"),
        *("── You ──", "── Agent ──"),
    ]
    assert "calls clock {}" in said and "12:00" in said and "It is 12:00." in said
    assert "\x1b[35mclass \x1b[mTea:" in paged
    terminal.type(CTRL_C)
    terminal.expect("was interrupted")
    terminal.type("\n")
    terminal.expect_line("» half a line$")
    terminal.type(" and more\r")
    terminal.expect("You said: half a line and more")
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    assert is_restored(terminal)


def test_the_agent_goes_on_while_one_reads_and_is_seen_afterwards(
    start: Callable[..., Terminal], pager: Path, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    terminal = start(command=command, PAGER=str(pager))
    terminal.type("count to 3\r")
    terminal.expect_line("⚙ count")
    terminal.type(CTRL_T)
    terminal.expect_line("this is the pager")
    (tmp_path / "bell").touch()
    terminal.wait(lambda: answered(tmp_path), "an answer that is stored")
    assert "counted to 3" not in terminal.text
    terminal.type("\n")
    terminal.expect("The tool says: counted to 3")
    terminal.expect_line("ready")


def answered(folder: Path) -> bool:
    """Say whether the last thing in the only session is the agent's answer."""
    with AgentApplication({}, store=f"sqlite:///{folder}/app.db", installed=False) as app:
        (session,) = app.list_sessions().sessions
        return str(app.load_session(session.id).messages[-1].content).startswith("The tool says")


def test_without_a_pager_the_transcript_is_printed(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start(PATH=str(tmp_path), PAGER="nothing 'at all")
    terminal.type(CTRL_T)
    terminal.expect_line("nothing has been said yet")
    terminal.type("hello there\r")
    terminal.expect("You said: hello there")
    terminal.expect_line("ready")
    terminal.type(CTRL_T)
    terminal.expect_line("── Agent ──")
    terminal.wait(lambda: terminal.text.count("You said: hello there") == 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_pager_as_well(
    start: Callable[..., Terminal], pager: Path, number: signal.Signals
) -> None:
    terminal = start(PAGER=str(pager))
    terminal.type("hello\r")
    terminal.expect("I repeat what you say")
    terminal.expect_line("ready")
    terminal.type(CTRL_T)
    terminal.expect_line("this is the pager")
    terminal.signal(number)

    assert terminal.end() == 128 + number
    assert is_restored(terminal)
