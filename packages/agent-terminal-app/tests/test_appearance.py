"""How the chat looks, and commands of one's own, in a real terminal: themes, status line, notifications."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.chat.appearance import branch_of, notice
from agent_terminal_app.settings.rules import find_fault
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_testing import ReceivedRequest, ServerReply

AGENT = [sys.executable, "-m", "agent_terminal_app"]


class Home:
    """A home in which a scripted server answers, and a project in it."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        self.project = folder / "project"
        self.project.mkdir()
        places = {
            f"XDG_{one}_HOME": str(folder / one.lower()) for one in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        dropped = ("NO_COLOR", "TMUX", "TERM_PROGRAM")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        self.environment = {**kept, **places, "HOME": str(folder), "AGENT_KEYRING": "off"}
        self.settings("")

    def settings(self, text: str) -> None:
        file = self.folder / "config" / "agent" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        model = (
            f'provider = "openai_compatible"\nmodel = "m"\nconfig = {{ base_url = "{self.server.url}/v1" }}'
        )
        quiet = "[plugins.session_title]\ntitle_model = false\n"
        file.write_text(f'model = "scripted"\nplugin_ids = []\n{text}\n{quiet}[models.scripted]\n{model}\n')

    def chat(self, *, columns: int = 100, until: str = "ready") -> Terminal:
        terminal = Terminal(
            [*AGENT, "chat"], environment=self.environment, folder=self.project, columns=columns, rows=30
        )
        terminal.expect(until)
        return terminal


def answer(request: ReceivedRequest) -> ServerReply:
    return chat_reply(f"`You` said: {request.json['messages'][-1]['content']}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ScriptedServer(otherwise=answer) as server:
        yield Home(tmp_path, server)


def test_a_theme_applies_at_once_and_is_kept(home: Home) -> None:
    with home.chat() as terminal:
        terminal.type("/theme dark\r")
        terminal.expect("Changed")
        before = len(terminal.raw)
        terminal.type("one\r")
        terminal.expect("You said: one")
        terminal.wait(
            lambda: b"\x1b[96m" in terminal.raw[before:], "code in the bright cyan of the dark theme"
        )
        terminal.type("/theme\r")
        terminal.expect_line("→ dark")
        terminal.type("none\r")
        terminal.wait(lambda: terminal.text.count("Changed") == 2)
        terminal.expect_line("ready")
        before = len(terminal.raw)
        terminal.type("two\r")
        terminal.expect("`You` said: two")  # without colours the marks stay
        assert b"\x1b[96m" not in terminal.raw[before:]
    assert 'theme = "none"' in (home.folder / "config" / "agent" / "config.toml").read_text()


@pytest.mark.parametrize("columns", [40, 200])
def test_the_status_line_has_the_parts_that_the_settings_name(home: Home, columns: int) -> None:
    subprocess.run(["git", "init", "-q", "-b", "side", str(home.project)], check=True)
    home.settings('[ui]\nstatus_line = ["folder", "branch", "model", "state"]')
    with home.chat(columns=columns) as terminal:
        shown = "project · side · ready · F1 help$" if columns == 40 else "project · side · scripted · ready"
        terminal.expect_line(shown)  # what does not fit is left out, from the end
        terminal.type("hello\r")
        terminal.expect("You said: hello")
        terminal.type("/config ui.status_line=[]\r")
        terminal.expect_line(r"ready · F1 help$")
        terminal.type("/config ui.status_line=['what']\r")
        terminal.expect("Error: ui.status_line has no part")


def test_a_model_in_the_status_line_is_shown_as_soon_as_it_is_asked_for(home: Home) -> None:
    with home.chat() as terminal:
        terminal.type("/config ui.status_line=['model']\r")
        terminal.expect_line("ready .* scripted$")


def test_a_setting_that_another_place_overrides_says_so(home: Home) -> None:
    home.environment["AGENT_DEFAULT_AGENT"] = "assistant"
    with home.chat() as terminal:
        terminal.type("/config default_agent=assistant\r")
        terminal.expect("It has no effect yet: environment AGENT_DEFAULT_AGENT overrides your file.")


def test_the_desktop_is_told_only_while_nobody_looks(home: Home) -> None:
    with home.chat() as terminal:
        assert "1004" in terminal.modes
        terminal.type("\x1b[Ione\r")
        terminal.expect("You said: one")
        terminal.expect_line("ready")
        assert b"\x1b]777;" not in terminal.raw
        terminal.type("two\r\x1b[O")
        terminal.expect("You said: two")
        terminal.wait(lambda: b"\x1b]777;notify;agent;Done in project.\x07" in terminal.raw)
        terminal.type("\x04")
        assert terminal.end() == 0
        assert "1004" not in terminal.modes


def test_a_notice_is_one_that_the_terminal_knows_and_nothing_else() -> None:
    assert notice("done", {"TERM_PROGRAM": "ghostty"}) == "\x1b]9;done\x07"
    assert notice("a;b\x07\x1b]0;x", {}).startswith("\x1b]777;notify;agent;a,b")
    assert notice("a\x07b", {}).count("\x07") == 1
    assert notice("done", {"TMUX": "x"}) == "\x1bPtmux;\x1b\x1b]777;notify;agent;done\x07\x1b\\"


def test_a_branch_is_read_without_git(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature/tea\n")
    (tmp_path / "inner").mkdir()
    assert branch_of(tmp_path / "inner") == "feature/tea"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert branch_of(tmp_path) == "01234567"


def test_settings_of_the_look_are_checked() -> None:
    for ui in ({"notify": "sometimes"}, {"status_line": "state"}, {"status_line": ["stat"]}):
        assert find_fault({"ui": ui}) is not None
    assert find_fault({"ui": {"notify": "never", "status_line": ["state", "branch"]}}) is None


def test_commands_of_a_project_count_once_it_is_trusted_and_take_arguments(home: Home) -> None:
    folder = home.project / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(
        "---\ndescription: Reviews a file\n---\nReview $1, all of it: @note.txt\n"
    )
    (home.project / "note.txt").write_text("tea at five")
    own = home.folder / "config" / "agent" / "commands"
    own.mkdir(parents=True)
    (own / "shout.md").write_text("Shout: $ARGUMENTS\n")
    (own / "broken.md").write_bytes(b"\xff\xfe")
    (own / "help.md").write_text("Help me.")
    (folder / "git").mkdir()
    (folder / "git" / "message.md").write_text("Write a message.")

    with home.chat(until="Do you trust this project?") as terminal:
        assert "commands:git:message,review" in "".join(terminal.text.split())
        terminal.type("\r")  # not now
        terminal.expect_line("ready")
        terminal.type("/shout it loud\r")
        terminal.expect("You said: Shout: it loud")
        terminal.type("/broken\r")
        terminal.expect("/broken cannot be used: the file is not UTF-8 text")
        terminal.type("/help\r")
        terminal.expect("not used: the chat has a command of this name")
        terminal.type("/review x.py\r")
        terminal.expect("There is no command /review")
        terminal.type("\x04")
        assert terminal.end() == 0
    with home.chat(until="Do you trust this project?") as terminal:
        terminal.type("use them\r")
        terminal.expect_line("ready")
        terminal.type("/rev")
        terminal.expect("Reviews a file")
        terminal.type("iew x.py\r")
        terminal.wait(lambda: any("Review x.py" in json.dumps(one.json) for one in home.server.requests))
        [asked] = [
            one.json["messages"][-1] for one in home.server.requests if "Review x.py" in json.dumps(one.json)
        ]
        assert "tea at five" in json.dumps(asked)
