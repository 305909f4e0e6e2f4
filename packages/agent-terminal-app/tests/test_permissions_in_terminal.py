"""Permissions as people meet them: real processes, in a pipe and in a terminal, and one store for all."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.launcher import shared_launcher
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PLUGINS = """
import itertools
import time
from pathlib import Path
from agent_core.testing import Reply, ScriptedProvider, ToolCall


def answer(messages):
    last = messages[-1]
    said = str(last["content"])
    if last["role"] == "tool" and said.startswith("held "):
        return Reply(tool_calls=[ToolCall("run", {"command": said.removeprefix("held ")})])
    if last["role"] == "tool":
        return f"The tool said: {last['content']}"
    if said == "do it":
        return Reply(tool_calls=[ToolCall("shell", {"command": Path("command.txt").read_text()})])
    if said.startswith("slow "):
        return Reply(tool_calls=[ToolCall("hold", {"command": said.removeprefix("slow ")})])
    if not said.startswith("run "):
        return f"You said: {said}"
    commands = said.removeprefix("run ").split(" and ")
    return Reply(tool_calls=[ToolCall("run", {"command": command}) for command in commands])


class Tester(ScriptedProvider):
    def __init__(self):
        super().__init__(itertools.repeat(answer), name="tester")


class Commands:
    name = "commands"
    version = "1"

    def get_tool_schemas(self):
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": name, "input_schema": command} for name in ("run", "hold")]

    def permission_suggestions(self, tool_name, arguments):
        return [arguments["command"].split()[0] + " *"]

    def format_tool_call_display(self, tool_name, arguments):
        return {"type": "code", "language": "sh", "content": arguments["command"]}

    def execute_tool(self, tool_name, arguments):
        if tool_name == "hold":
            Path("holding").touch()
            while not Path("go").exists():
                time.sleep(0.01)
            return f"held {arguments['command']}"
        with Path("ran.txt").open("a") as log:
            log.write(arguments["command"] + "\\n")
        return {"success": True, "result": "ran"}
"""
CONFIG = """
model = "test"
[models.test]
provider = "tester"
model = "one"
"""
ASK = '[permissions]\nask = ["run"]\nallow = ["hold"]\n'
AGENT = [sys.executable, "-m", "agent_terminal_app"]


@dataclass(frozen=True)
class Machine:
    """A person's machine: a home, a project, settings, and a model that runs what it is told."""

    home: Path
    environment: dict[str, str]

    @property
    def config(self) -> Path:
        return self.home / "config" / "agent" / "config.toml"

    def run(self, *arguments: str, stdin: str = "", folder: Path | None = None) -> tuple[int, str, str]:
        done = shared_launcher().run(
            [*AGENT[1:], *arguments],
            environment=self.environment,
            folder=folder or self.project,
            stdin=stdin,
        )
        return done.returncode, done.stdout, done.stderr

    @property
    def project(self) -> Path:
        return self.home / "project"

    def ran(self) -> list[str]:
        log = self.project / "ran.txt"
        return log.read_text().splitlines() if log.exists() else []

    def grants(self) -> list[dict[str, Any]]:
        code, out, err = self.run("permissions", "list", "--all", "--json")
        assert code == 0, err
        return [row for row in json.loads(out) if row["id"]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    site = tmp_path / "site"
    about = site / "tester-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "tester_plugins.py").write_text(PLUGINS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tester\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[agent_platform.providers]\ntester = tester_plugins:Tester\n"
        "[agent_platform.tools]\ncommands = tester_plugins:Commands\n"
    )
    home = tmp_path / "home"
    (home / "config" / "agent").mkdir(parents=True)
    (home / "project").mkdir()
    (home / "config" / "agent" / "config.toml").write_text(CONFIG + ASK)
    folders = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "data", "state", "cache")}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    loaded = {"AGENT_LOAD_PLUGINS": "tester,commands", "PYTHONPATH": str(site), "PYTHONUTF8": "1"}
    terminal = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    return Machine(home, {**kept, **folders, **loaded, **terminal, "HOME": str(home)})


# --- agent run --------------------------------------------------------------------------------------------


def test_what_is_given_by_a_command_counts_from_the_next_call_until_it_is_revoked(machine: Machine) -> None:
    assert machine.run("run", "run make")[0] == 5
    code, _, err = machine.run("permissions", "allow", "run(make)")
    assert code == 0 and f"allow run(make) in {machine.project}, as " in err
    assert machine.run("run", "run make")[0] == 0
    assert machine.ran() == ["make"]
    [grant] = machine.grants()

    code, _, err = machine.run("permissions", "revoke", grant["id"][:8])
    assert code == 0 and "allow run(make) is taken back" in err
    assert machine.run("run", "run make")[0] == 5
    assert machine.ran() == ["make"]
    assert machine.grants() == []


def test_a_run_without_a_person_never_waits(machine: Machine) -> None:
    code, out, err = machine.run("run", "run make and ls", stdin="")
    assert (code, out) == (5, "")
    assert 'run {"command":"make"}' in err and 'run {"command":"ls"}' in err
    assert machine.ran() == []

    machine.config.write_text(CONFIG + ASK + 'on_ask = "deny"\n')
    code, out, err = machine.run("run", "run make", stdin="y\n")
    assert code == 0 and "nobody is there to be asked" in out
    assert machine.ran() == []


# --- agent chat in a pipe ---------------------------------------------------------------------------------


def chat(machine: Machine, *lines: str, options: tuple[str, ...] = ()) -> str:
    code, out, err = machine.run("chat", *options, stdin="".join(f"{line}\n" for line in lines))
    assert code == 0, err
    assert "\x1b" not in out
    return out


def test_a_question_shows_the_whole_call_and_what_each_choice_grants(machine: Machine) -> None:
    command = "git commit -m " + "x" * 500

    out = chat(machine, f"run {command}", "n")

    assert f"\n  {command}\n" in out
    assert "  [a] yes, for this session: run(git *)\n" in out
    assert machine.ran() == []


def test_a_choice_grants_what_it_says_and_the_rest_is_asked_again(machine: Machine) -> None:
    out = chat(machine, "run git status", "9", "2", "run git log", "run make", "use npm instead")

    assert "There is no [9]" in out and "refused: use npm instead" in out
    assert out.count("  [y] yes, once") == 2
    assert machine.ran() == ["git status", "git log"]
    assert [grant["scope"].split()[0] for grant in machine.grants()] == ["session"]


def test_a_question_that_waits_since_an_earlier_time_is_shown_before_it_is_answered(machine: Machine) -> None:
    machine.run("run", "run git status")
    [session] = json.loads(machine.run("sessions", "list", "--json")[1])

    out = chat(machine, "y", options=("--session", session["id"]))

    assert "[a] yes, for this session: run(git *)" in out
    assert machine.ran() == ["git status"]


# --- agent chat in a terminal -----------------------------------------------------------------------------


@pytest.fixture
def chat_in_terminal(machine: Machine) -> Iterator[Callable[..., Terminal]]:
    started = []

    def begin(*options: str) -> Terminal:
        command = [*AGENT, "chat", *options]
        terminal = Terminal(
            command, environment=machine.environment, folder=machine.project, columns=100, rows=40
        )
        started.append(terminal)
        terminal.expect_line(">$" if options else "ready")
        return terminal

    yield begin
    for terminal in started:
        terminal.close()


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    give_up = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up, f"{path.name} never came"
        time.sleep(0.01)


def test_a_line_that_was_begun_before_the_question_is_no_answer_to_it(
    machine: Machine, chat_in_terminal: Callable[..., Terminal]
) -> None:
    terminal = chat_in_terminal()
    terminal.type("slow git status\r")
    wait_for(machine.project / "holding")
    terminal.type("yes")
    terminal.expect("yes")
    (machine.project / "go").touch()
    terminal.expect("[n] no")
    terminal.expect_line("your answer")
    terminal.type("\r")
    terminal.expect("Queued until you have answered: yes")
    assert machine.ran() == []

    terminal.expect_line("your answer")
    terminal.type("y\r")
    terminal.expect("You said: yes")
    assert machine.ran() == ["git status"]


def test_who_clears_the_line_can_answer(machine: Machine, chat_in_terminal: Callable[..., Terminal]) -> None:
    terminal = chat_in_terminal()
    terminal.type("slow git status\r")
    wait_for(machine.project / "holding")
    terminal.type("half a thought")
    terminal.expect("thought")
    (machine.project / "go").touch()
    terminal.expect("[n] no")
    terminal.expect_line("your answer")
    terminal.type("\x15y\r")
    terminal.expect("The tool said: ran")
    assert machine.ran() == ["git status"]


def test_on_a_plain_terminal_what_was_typed_too_early_is_no_answer_either(
    machine: Machine, chat_in_terminal: Callable[..., Terminal]
) -> None:
    terminal = chat_in_terminal("--plain")
    terminal.type("slow git status\n")
    wait_for(machine.project / "holding")
    terminal.type("yes\n")
    terminal.wait(lambda: "yes" in terminal.lines)
    (machine.project / "go").touch()
    terminal.expect("Queued until you have answered: yes")
    assert machine.ran() == []

    terminal.wait(lambda: terminal.lines[-1] == "your answer>")
    terminal.type("y\n")
    terminal.expect("You said: yes")
    assert machine.ran() == ["git status"]


def test_a_question_that_somebody_else_has_already_answered_is_not_answered_twice(
    machine: Machine, chat_in_terminal: Callable[..., Terminal]
) -> None:
    terminal = chat_in_terminal()
    terminal.type("run git status\r")
    terminal.expect("[n] no")
    terminal.expect_line("your answer")
    machine.run("permissions", "deny", "run(git *)", "--always")
    terminal.type("y\r")
    terminal.expect("Somebody else has already answered this")
    terminal.expect("rule 'deny run")
    assert machine.ran() == []


# --- the real shell ---------------------------------------------------------------------------------------

# Within a substitution bash ends the document at a line that begins with E and has the parenthesis in it.
ATTACK = """cat "$(cat <<'E'
E )" ; id > x #
E
)\""""


def test_a_command_in_a_here_document_is_asked_for_in_spite_of_a_grant(
    machine: Machine, chat_in_terminal: Callable[..., Terminal]
) -> None:
    machine.environment["AGENT_LOAD_PLUGINS"] = "tester,shell_tool"
    machine.config.write_text(CONFIG)
    assert machine.run("permissions", "allow", "shell(cat *)")[0] == 0
    command = machine.project / "command.txt"
    terminal = chat_in_terminal()

    command.write_text("cat command.txt")  # the grant counts
    terminal.type("do it\r")
    terminal.expect("The tool said: cat command.txt")

    command.write_text(ATTACK)
    terminal.type("do it\r")
    terminal.expect_line(r"  \[n\] no")
    terminal.expect_line("your answer")
    terminal.type("n\r")
    terminal.expect("refused")
    terminal.type("and now\r")
    terminal.expect("You said: and now")
    assert [path.name for path in machine.project.iterdir()] == ["command.txt"]
