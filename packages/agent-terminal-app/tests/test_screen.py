"""The chat as a person sees it: a real program in a real terminal, looked at through a screen."""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import termios
import threading
from functools import partial
from select import select
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.chat.prompt import prompt as prompt_module
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEMO = [sys.executable, "-m", "agent_terminal_app", "chat", "--demo"]
# A second Ctrl+C counts however late it comes; with --slow the end of the chat waits for the bell.
PATIENT = """
import sys
from pathlib import Path
from agent_app import AgentApplication
from agent_terminal_app.chat import plain
from agent_terminal_app.chat.prompt import prompt
from agent_terminal_app.cli import main

plain._AGAIN = prompt._AGAIN = 600.0
if "--slow" in sys.argv:
    sys.argv.remove("--slow")
    close = AgentApplication.close
    def close_slowly(self):
        Path("closing").touch()
        while not Path("bell").exists():
            pass
        close(self)
    AgentApplication.close = close_slowly
main(["chat", "--demo", *sys.argv[1:]])
"""
ESC, UP, ALT_UP, ALT_ENTER, F1 = "\x1b", "\x1b[A", "\x1b[1;3A", "\x1b\r", "\x1bOP"
CTRL_C, CTRL_D, CTRL_G, CTRL_J, CTRL_L, CTRL_O, CTRL_R = "\x03", "\x04", "\x07", "\n", "\x0c", "\x0f", "\x12"

PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_app import AgentApplication
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt
from agent_terminal_app.cli import leave
from agent_terminal_app.demo import DemoCounter, DemoProvider, DemoTools

folder = Path(sys.argv[1])

class Suggests:
    name = "suggests"
    version = "1"
    def get_completions(self, config, text):
        found = {"replacement": "dear", "start": -3, "display_meta": "a letter"}
        return [found] if text.endswith("dea") else []
    def apply_completion(self, config, text, completion):
        return "dear ${1:Sir}, ..." if completion["replacement"] == "dear" else ""

def open_app():
    if "slow" in sys.argv:
        import time
        while not (folder / "bell").exists():
            time.sleep(0.01)
    if "fail" in sys.argv:
        from agent_core import AgentError
        raise AgentError("it cannot be opened: try something else")
    print("a plugin prints \\x1b[2Jthis")
    config = {"agents": {"a": {"model": "demo"}}, "models": {"demo": {"provider": "demo"}},
              "permissions": {"allow": ["clock", "count"], "ask": ["write_note"]}}
    plugins = [DemoProvider, DemoTools, DemoCounter, Suggests]
    return AgentApplication(config, store=f"sqlite:///{folder}/app.db", plugins=plugins, installed=False)

async def sit():
    session = next((word for word in sys.argv[2:] if len(word) > 10), None)
    chat = Chat(open_app, PromptScreen(color=True), session)
    if "bug" in sys.argv:
        chat.take = None
    return await run_prompt(chat, folder / "history")

leave(asyncio.run(sit()))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, **places, "HOME": str(tmp_path), "SHELL": "/bin/sh", "TERM": "xterm-256color"}


@pytest.fixture
def terminal(environment: dict[str, str], tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(DEMO, environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        yield terminal


@pytest.fixture
def program(environment: dict[str, str], tmp_path: Path) -> Iterator[Program]:
    program = Program(environment, tmp_path)
    yield program
    program.close()


class Program:
    """A chat whose sessions are kept, started as often as one likes."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.folder = folder
        self._environment = environment
        self._started: list[Terminal] = []
        (folder / "program.py").write_text(PROGRAM)

    def start(self, *arguments: str, until: str = "ready") -> Terminal:
        command = [sys.executable, str(self.folder / "program.py"), str(self.folder), *arguments]
        terminal = Terminal(command, environment=self._environment, folder=self.folder)
        self._started.append(terminal)
        terminal.expect_line(until)
        return terminal

    def close(self) -> None:
        for terminal in self._started:
            terminal.close()


def patient(folder: Path) -> str:
    """Return the path of a chat that has time."""
    (folder / "patient.py").write_text(PATIENT)
    return str(folder / "patient.py")


def is_restored(terminal: Terminal) -> bool:
    """Say whether the terminal is as it was: its settings, its modes, its cursor."""
    return terminal.settings == terminal.before and not terminal.modes and not terminal.screen.cursor.hidden


def test_a_conversation(environment: dict[str, str], tmp_path: Path) -> None:
    with Terminal(DEMO, environment=environment, folder=tmp_path, fresh=True) as terminal:
        terminal.expect_line("ready")
        terminal.type("Good morning\r")
        terminal.expect("You said: Good morning")
        terminal.expect_line(r"ready · F1 help · context \d+ · session \d+ tokens$")

        terminal.wait(lambda: terminal.lines[-4:-1] == ["» Good morning", "You said: Good morning", "»"])
        terminal.wait(lambda: terminal.cursor == (2, len(terminal.lines) - 2), "the cursor in the prompt")
        terminal.type("/quit\r")
        assert terminal.end() == 0
        assert is_restored(terminal)


def test_nothing_is_written_while_nothing_happens(terminal: Terminal) -> None:
    # What belongs to the start may still come; a program that draws every second leaves no such pause.
    terminal.wait(lambda: terminal.read(1.2) == 0, "a pause")


def test_an_answer_costs_little_more_than_its_text(terminal: Terminal) -> None:
    before = len(terminal.raw)
    terminal.type("stream 600\r")
    terminal.expect("word600")
    terminal.expect_line("ready")

    text = sum(len(f"word{number} ") for number in range(1, 601))
    assert len(terminal.raw) - before < 3 * text
    words = re.findall(r"word(\d+)", terminal.text.partition("» stream 600")[2])
    assert [int(word) for word in words] == list(range(1, 601))


def test_code_has_colours_and_costs_little_more_than_its_text(terminal: Terminal) -> None:
    before = len(terminal.raw)
    terminal.type("code\r")
    terminal.expect("That was code.")
    terminal.expect_line("ready")

    first = terminal.lines.index("@dataclass(frozen=True)")
    row = terminal.screen.buffer[first + 1]
    assert [(row[n].data, row[n].fg) for n in (0, 4, 6)] == [
        ("c", "magenta"),
        ("s", "magenta"),
        ("T", "default"),
    ]
    inside = terminal.screen.buffer[
        terminal.lines.index("    It is ready when it has been drawn for some minutes.")
    ]
    assert inside[4].fg == "green"
    text = terminal.text.partition("» code\n")[2].partition("That was code.")[0]
    assert len(terminal.raw) - before < 3 * len(text)


def test_tables_and_thoughts_and_calls_are_seen_and_opened(terminal: Terminal) -> None:
    terminal.type("table\r")
    terminal.expect("That was a table.")
    columns = {line.index("│") for line in terminal.lines if "│" in line and line[:1].isascii()}
    assert len(columns) == 1 and any(line.startswith("東京") for line in terminal.lines)

    terminal.type("think\r")
    terminal.expect("I have thought.")
    terminal.expect_line(r"… thought: \d\.\d s, \d+ characters \[1\]")
    terminal.type("count to 5\r")
    terminal.expect_line(r"✓ count\(upto=5\) → counted to 5 \(\d\.\d s\) \[2\]")
    terminal.expect_line("ready")
    assert "number 4" not in terminal.text
    terminal.type(CTRL_O)
    terminal.expect_line(r"\[2\] count")
    terminal.expect_line("    number 4$")
    terminal.type(CTRL_O)
    terminal.expect_line(r"\[1\] thinking")
    terminal.expect_line(r"I do not think, but I can pretend\.$")
    terminal.type(ESC)
    terminal.wait(lambda: not any(line.startswith("[1] thinking") for line in terminal.lines))


def test_words_wait_are_held_by_esc_and_taken_back(terminal: Terminal) -> None:
    terminal.type("count to 500\r")
    terminal.expect_line("⚙ count.*│ number")
    terminal.type("a remark\r")
    terminal.expect_line("⧗ after this step: a remark")
    terminal.type("for later\t")
    terminal.expect_line("⧗ queued: for later")
    terminal.type(ESC)
    terminal.expect_line("⧗ held: for later")
    terminal.expect("interrupted; the answer so far is kept")
    terminal.expect_line("ready")

    terminal.type(ALT_UP)
    terminal.expect_line("» for later$")
    terminal.type(f"{CTRL_C}\r")
    terminal.expect("You said: a remark")
    terminal.wait(lambda: not any(line.startswith("⧗") for line in terminal.lines))


def test_esc_is_acknowledged_although_alt_keys_begin_with_it(terminal: Terminal) -> None:
    terminal.type("count to 500\r")
    terminal.expect_line("working")
    terminal.type(f"one{ALT_ENTER}two{CTRL_J}three\\\rfour")
    typed = ["» one", "  two", "  three", "  four"]
    terminal.wait(lambda: terminal.lines[-5:-1] == typed and terminal.lines[-1].startswith("working"))
    terminal.type(ESC)
    terminal.expect("interrupted; the answer so far is kept")
    terminal.wait(lambda: terminal.lines[-5:-1] == typed and terminal.lines[-1].startswith("ready"))


def test_esc_twice_goes_back_before_the_last_message(terminal: Terminal) -> None:
    terminal.type("remember this\r")
    terminal.expect("You said: remember this")
    terminal.expect_line(r"ready .* tokens$")
    terminal.type(ESC * 2)
    terminal.expect("» /rewind")


def test_control_c_stops_then_clears_and_pressed_twice_leaves(
    environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, patient(tmp_path)]
    with Terminal(command, environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        _stop_clear_and_leave(terminal)

        assert terminal.end() == 0
        assert is_restored(terminal)


def test_what_is_pasted_while_the_chat_ends_does_not_reach_the_shell(
    environment: dict[str, str], tmp_path: Path
) -> None:
    chat = f"{sys.executable} {patient(tmp_path)} --slow"
    script = f"{chat}; echo it has ended; read line; echo the shell has: $line"
    with Terminal(["/bin/sh", "-c", script], environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        terminal.type(CTRL_C * 2)
        terminal.wait((tmp_path / "closing").exists, "the end of the chat")
        terminal.type("rm -r things\n")
        terminal.expect("rm -r things")
        (tmp_path / "bell").touch()
        terminal.expect("it has ended")
        terminal.type("ls\n")
        terminal.expect("the shell has: ls")


def _stop_clear_and_leave(terminal: Terminal) -> None:
    terminal.type("count to 500\r")
    terminal.expect_line("⚙ count")
    terminal.type(CTRL_C)
    terminal.expect("interrupted; the answer so far is kept")
    terminal.expect_line("ready")
    terminal.type("half a thought")
    terminal.expect_line("» half a thought")
    terminal.type(CTRL_C)
    terminal.wait(lambda: terminal.lines[-2:-1] == ["»"])
    terminal.type(UP)
    terminal.expect_line("» half a thought")
    terminal.type(CTRL_C * 2)
    terminal.expect_line("Ctrl[+]C again to leave")
    terminal.type("I stay")
    terminal.expect_line("» I stay")
    terminal.expect_line("ready")
    terminal.type(CTRL_C * 2)  # what is typed is cleared, and there was no Ctrl+C at the empty prompt yet
    terminal.expect_line("Ctrl[+]C again to leave")
    terminal.type(f"x\x7f{CTRL_C}{CTRL_C}")


def test_a_question_is_left_by_esc_and_answered_by_a_line(terminal: Terminal) -> None:
    terminal.type("write\r")
    terminal.expect_line("your answer")
    terminal.expect("+a note")
    terminal.type(ESC)
    terminal.expect("the call is not run")
    terminal.type("write\r")
    terminal.wait(lambda: terminal.text.count("? write_note()") == 2)
    terminal.expect_line("your answer")
    terminal.type("y\r")
    terminal.expect("The tool says: written")


def test_a_large_paste_is_a_mark_that_goes_as_a_whole(terminal: Terminal) -> None:
    terminal.type("see ")
    terminal.paste("\n".join(f"line {number}" for number in range(40)))
    terminal.expect_line(r"» see \[pasted text #1, 40 lines\]$")
    terminal.type("\x7f")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["» see"])
    terminal.paste("x" * 5000)
    terminal.expect_line(r"» see \[pasted text #2, 5,000 characters\]$")
    terminal.type("\x1b[D\x1b[D!")
    terminal.expect_line(r"» see! \[pasted text")
    terminal.type("\x05\x17\x15short\r")
    terminal.expect("You said: short")
    terminal.paste("y" * 3000)
    terminal.type("\r")
    terminal.wait(lambda: terminal.text.count("y" * 80) > 30)


def test_commands_and_files_are_completed(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "main_thing.py").write_text("x = 1\n")
    terminal.type("/ren")
    terminal.expect_line(" /rename ")
    terminal.type("\t")
    terminal.expect_line("» /rename$")
    terminal.type("\x15look at @mth")
    terminal.expect_line(" main_thing.py")
    terminal.type("\t.\r")
    terminal.expect("1 attached.")
    terminal.expect_line("ready .* tokens$")  # until the turn is over, Ctrl+C stops it and clears nothing
    terminal.type("/zz")
    terminal.expect_line("» /zz$")
    terminal.type(f"{ESC}{CTRL_C}")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["»"])


def test_what_features_suggest_is_completed_and_becomes_what_they_say(program: Program) -> None:
    terminal = program.start()
    terminal.type("hello\r")
    terminal.expect("demonstration")
    terminal.expect_line("ready")
    terminal.type("Oh dea")
    terminal.expect_line(" dear +a letter")
    terminal.type("\t")
    terminal.expect_line("» Oh dear Sir, ...")
    terminal.type("X")
    terminal.expect_line("» Oh dear SirX, ...")


def test_a_line_for_the_shell(terminal: Terminal) -> None:
    terminal.type("!echo from the shell; sleep 100\r")
    terminal.expect_line("from the shell$")
    terminal.type(ESC)
    terminal.expect_line("stopped, ")
    terminal.expect_line(r"\+ the output of `echo")
    terminal.type("what was it?\r")
    terminal.expect("1 attached.")


def test_the_other_keys(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("first words\r")
    terminal.expect("You said: first words")
    terminal.type("second\r")
    terminal.expect("You said: second")
    terminal.expect_line("ready")
    terminal.type(f"{CTRL_R}first")
    terminal.expect_line("I-search.*first$")
    terminal.type("\r")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["» first words"])
    terminal.type(CTRL_L)
    terminal.wait(lambda: terminal.lines[:1] == ["» first words"])
    terminal.type(CTRL_C + F1)
    terminal.expect("/quit")


def test_an_editor_of_ones_own(environment: dict[str, str], tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " edited" >> "$1"\n')
    editor.chmod(0o755)
    with Terminal(DEMO, environment={**environment, "VISUAL": str(editor)}, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        terminal.type(f"typed{CTRL_G}")
        terminal.expect_line("» typed edited")
        terminal.type("\r")
        terminal.expect("You said: typed edited")


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 12), (20, 8), (12, 5)])
def test_small_terminals(environment: dict[str, str], tmp_path: Path, columns: int, rows: int) -> None:
    with Terminal(DEMO, environment=environment, folder=tmp_path, columns=columns, rows=rows) as terminal:
        terminal.expect_line("ready")
        terminal.type("count to 3\r")
        terminal.wait(lambda: "says" in terminal.text)
        terminal.wait(lambda: terminal.lines[-2] == "»" and terminal.lines[-1].startswith("ready"))

        assert terminal.text.replace("\n", "").replace(" ", "").count("Thetoolsays") == 1


def test_another_size_meanwhile(terminal: Terminal) -> None:
    terminal.type("count to 15\r")
    terminal.expect_line("⚙ count")
    for columns, rows in ((60, 20), (100, 30), (50, 10), (80, 24)):
        before = len(terminal.raw)
        terminal.resize(columns, rows)
        terminal.wait(partial(has_written_more, terminal, before), "another drawing")
    terminal.expect("counted to 15")
    terminal.wait(lambda: terminal.lines[-2] == "»" and terminal.lines[-1].startswith("ready"))


def has_written_more(terminal: Terminal, before: int) -> bool:
    return len(terminal.raw) > before


def test_without_colours_there_are_none(environment: dict[str, str], tmp_path: Path) -> None:
    with Terminal(DEMO, environment={**environment, "NO_COLOR": "1"}, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        terminal.type("hello\r")
        terminal.expect("**demonstration**")
        terminal.type("think about **this**\r")
        terminal.expect("I have thought.")

        styles = set(re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw))
        assert not any(re.search(rb"3[0-7]|4[0-7]|9[0-7]|;5;|;2;", style) for style in styles)


@pytest.mark.parametrize("plain", [True, False])
def test_a_plain_or_dumb_terminal_gets_lines_and_nothing_else(
    environment: dict[str, str], tmp_path: Path, *, plain: bool
) -> None:
    command = [*DEMO, "--plain"] if plain else DEMO
    changed = environment if plain else {**environment, "TERM": "dumb"}
    with Terminal(command, environment=changed, folder=tmp_path) as terminal:
        terminal.expect("/help lists")
        terminal.type("count to 500\n")
        terminal.expect("⚙ count")
        terminal.type(CTRL_C)
        terminal.expect("interrupted; the answer so far is kept")
        terminal.type("What time is it?\n")
        terminal.expect("It is 12:00.")
        terminal.type(CTRL_D)

        assert terminal.end() == 0
        assert b"\x1b" not in terminal.raw
        assert is_restored(terminal)


def test_control_c_pressed_twice_on_a_plain_terminal_ends_the_chat_if_nothing_goes_on(
    environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, patient(tmp_path), "--plain"]
    with Terminal(command, environment=environment, folder=tmp_path) as terminal:
        terminal.type("hello\n")
        terminal.expect("demonstration")
        terminal.wait(lambda: terminal.lines[-1] == ">", "the sign that nothing goes on")
        terminal.type(CTRL_C)
        terminal.expect("Ctrl+C again to leave")
        terminal.wait(lambda: terminal.lines[-1] == ">", "the sign that the chat goes on")
        terminal.type(CTRL_C)

        assert terminal.end() == 130


# How it ends


LINGERING = """
import pathlib, sys, threading, time
from agent_terminal_app.cli import main

def linger():
    threading.main_thread().join()
    print("LEAVING", flush=True)
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.01)

threading.Thread(target=linger).start()
main(["chat", "--demo"])
"""


def test_what_is_pasted_while_the_program_ends_does_not_reach_the_shell(
    environment: dict[str, str], tmp_path: Path
) -> None:
    program, mark = tmp_path / "lingering.py", tmp_path / "mark"
    program.write_text(LINGERING)
    script = f'{sys.executable} {program} {mark}; echo IT ENDED; read -r line; echo "THE SHELL GOT: $line"'
    with Terminal(["/bin/sh", "-c", script], environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        terminal.type(CTRL_C)
        terminal.expect_line("Ctrl[+]C again to leave")
        terminal.type(CTRL_C)
        terminal.expect("LEAVING")
        terminal.type("echo pasted\n")
        terminal.expect("echo pasted")
        mark.touch()
        terminal.expect("IT ENDED")
        terminal.type("typed later\n")
        terminal.expect("THE SHELL GOT: typed later")


def test_what_comes_while_input_is_dropped_is_neither_seen_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = os.openpty()
    before = termios.tcgetattr(terminal)
    pasted, over = threading.Event(), threading.Event()

    def paste() -> None:
        while termios.tcgetattr(terminal)[3] & termios.ECHO and not over.is_set():
            pass
        os.write(keyboard, b"echo second\n")
        pasted.set()

    def patient(reading: Any, writing: Any, failing: Any, seconds: float) -> Any:
        """Wait for the paste, however busy the machine is."""
        while not pasted.is_set():
            if (found := select(reading, writing, failing, 0.01))[0]:
                return found
        return select(reading, writing, failing, seconds)

    monkeypatch.setattr(prompt_module, "select", patient)
    monkeypatch.setattr(prompt_module, "_LONGEST_DROP", 60.0)
    os.write(keyboard, b"echo first\n")
    pasting = threading.Thread(target=paste)
    pasting.start()
    prompt_module.drop_input(terminal)
    over.set()
    pasting.join()

    assert termios.tcgetattr(terminal) == before
    termios.tcsetattr(terminal, termios.TCSANOW, [*before[:3], before[3] & ~termios.ICANON, *before[4:]])
    assert not select([terminal], [], [], 0)[0]
    assert b"second" not in os.read(keyboard, 1000)
    os.close(keyboard)
    os.close(terminal)


def test_leaving_says_how_to_go_on_and_what_was_typed_is_kept(program: Program) -> None:
    terminal = program.start()
    assert "a plugin prints \\x1b[2Jthis" in terminal.lines
    terminal.type("remember me\r")
    terminal.expect("You said: remember me")
    terminal.expect_line("ready")
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    (session,) = re.findall(r"resume with: agent chat --session (\S+)", terminal.text)

    assert stat.S_IMODE((program.folder / "history").stat().st_mode) == 0o600
    again = program.start(session, until=r"ready .*context [1-9]\d* · session [1-9]\d* tokens")
    assert again.lines[-4:-2] == ["» remember me", "  You said: remember me"]
    again.type(UP)
    again.expect_line("» remember me")


@pytest.mark.parametrize(
    ("number", "code", "working"),
    [(signal.SIGTERM, 143, True), (signal.SIGHUP, 129, True), (signal.SIGINT, 130, False)],
)
def test_signals_end_it_in_order(
    program: Program, number: signal.Signals, code: int, *, working: bool
) -> None:
    terminal = program.start()
    if working:
        terminal.type("count to 500\r")
        terminal.expect_line("⚙ count")
    terminal.signal(number)

    assert terminal.end() == code
    assert is_restored(terminal)
    assert ("interrupted; the answer so far is kept" in terminal.text) == working


def test_a_terminal_that_is_taken_away_ends_it(program: Program) -> None:
    terminal = program.start()
    terminal.type("count to 500\r")
    terminal.expect_line("⚙ count")
    terminal.hang_up()

    assert terminal.process.wait(timeout=60) in (129, -signal.SIGHUP)


def test_a_mistake_inside_leaves_the_terminal_as_it_was(program: Program) -> None:
    terminal = program.start("bug")
    terminal.type("hello\r")

    assert terminal.end() == 1
    assert "TypeError" in terminal.text
    assert is_restored(terminal)


def test_an_application_that_cannot_be_opened_is_told(program: Program) -> None:
    terminal = program.start("fail", until="")

    assert terminal.end() == 1
    assert "it cannot be opened: try something else" in terminal.text
    assert is_restored(terminal)


def test_while_the_application_opens_a_line_waits_and_esc_gives_it_back(program: Program) -> None:
    terminal = program.start("slow", until="starting")
    terminal.type("too early\r")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["»"])
    terminal.type(ESC)
    terminal.expect_line("» too early")
    terminal.type("\r")
    (program.folder / "bell").touch()
    terminal.expect("You said: too early")
    terminal.type(CTRL_D)
    assert terminal.end() == 0


def test_leaving_does_not_wait_for_an_application_that_still_opens(program: Program) -> None:
    terminal = program.start("slow", until="starting")
    terminal.type(CTRL_D)

    assert terminal.end() == 0
    assert is_restored(terminal)
