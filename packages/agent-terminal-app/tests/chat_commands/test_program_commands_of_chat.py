"""`/help`, `/config`, `/setup`, `/copy`, `/doctor`, `/quit`, and what no command is."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import ScriptedProvider
from agent_terminal_app.chat import clipboard
from agent_terminal_app.chat.commands.registry import COMMANDS, GROUPS, names
from agent_terminal_app.first_run import dialogue
from agent_testing import ScriptedServer, ServerReply, chat_models, chat_reply
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from chat_commands.conftest import Acting, Desk


def test_help_lists_every_command_under_a_heading(desk: Desk) -> None:
    shown = desk.chat("/help")

    for group in GROUPS:
        assert group in shown
    for one in COMMANDS.values():
        assert f"  /{one.name:<12} {one.about}" in shown


def test_every_command_is_explained(desk: Desk) -> None:
    shown = iter(desk.chat(*(f"/help {name}" for name in COMMANDS), "/help /cost"))

    for one in COMMANDS.values():
        assert next(shown).startswith(one.usage)
        assert next(shown) == one.about
        details = one.details.splitlines()
        assert details, f"/{one.name} has nothing to say but its one line"
        assert [next(shown) for _ in details] == [f"  {line}".rstrip() for line in details]
    assert next(shown) == "/cost"


def test_help_for_what_is_not_there(desk: Desk) -> None:
    assert desk.chat("/help frobnicate") == ["Error: there is no command /frobnicate: /help lists them"]
    assert desk.chat("/help quit")[0] == "/quit   (also /exit)"


def test_a_slash_alone_is_help(desk: Desk) -> None:
    assert desk.chat("/") == desk.chat("/help")


def test_a_command_that_is_not_there_gets_the_nearest_and_a_way_to_say_it(desk: Desk) -> None:
    shown = desk.chat("/sesions", "/shrug indeed", " /shrug indeed")

    assert shown[0].startswith("There is no command /sesions: did you mean 'sessions'?")
    assert shown[1].endswith("Words that begin with a slash need a space before it.")
    assert shown[2] == "You said:  /shrug indeed"


def test_the_beginning_of_one_name_is_enough(desk: Desk) -> None:
    shown = desk.chat("/ver", "/res", "/st")

    assert shown[0].startswith("There is no command /ver")
    assert "/resume" in shown
    assert "/status" in shown
    assert desk.chat("/co")[0].startswith("There is no command /co"), "/copy, /cost, /config, /commands"


def test_status_says_where_one_is_whatever_plugins_call_their_actions(
    desk: Desk, acting: type[Acting]
) -> None:
    done: list[str] = []

    def act(action: str, _given: dict[str, Any]) -> dict[str, Any]:
        done.append(action)
        return {}

    desk.plugins.append(acting("login", [{"id": "status"}, {"id": "clear"}], act))

    shown = "\n".join(desk.chat("Green tea", "/rename Tea", "/login.status", "/status", "/clear", "/status"))

    assert "model      demo" in shown
    assert "agent      assistant" in shown
    assert "session    Tea (" in shown and ", 2 messages" in shown
    assert "asks before it edits files or runs commands" in shown
    assert "A new session; the old one is kept" in shown
    assert "session    begins with your first message" in shown
    assert done == ["status"]


@pytest.mark.parametrize("command", ["/quit", "/exit"])
def test_leaving(desk: Desk, command: str) -> None:
    assert desk.chat(command, "never said") == []


def test_completion_knows_every_name() -> None:
    known = dict(names())

    assert {*COMMANDS, "exit"} <= set(known)
    assert all(about and "\n" not in about for about in known.values())


def test_a_mistake_in_a_command_does_not_end_the_chat(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    def broken(_talk: Any, _rest: str) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setitem(COMMANDS, "cost", replace(COMMANDS["cost"], run=broken))

    shown = desk.chat("/cost", "hello you")

    assert shown[0] == "Error: /cost failed, because of a bug in this program: ZeroDivisionError: oh"
    assert shown[-1] == "You said: hello you"


# Settings


def test_settings_are_shown_with_where_they_come_from(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MODEL", "demo")

    shown = desk.chat("/config", "/config ui", "/config get ui.theme")

    assert 'model = "demo"   # environment AGENT_MODEL' in shown
    assert shown.count('ui.theme = "auto"   # default') == 3


@pytest.mark.parametrize(
    "typed",
    [
        "ui.theme=dark",
        "set ui.theme=dark",
        "ui.theme = dark",
        'ui.theme="dark"',
        "ui.theme dark",
        "set ui.theme dark",
    ],
)
def test_a_setting_is_written_and_counts_from_the_next_start_on(desk: Desk, typed: str) -> None:
    shown = desk.chat(f"/config {typed}")

    path = desk.folder / "config" / "agent" / "config.toml"
    assert tomllib.loads(path.read_text()) == {"ui": {"theme": "dark"}}
    assert shown[0] == f"Changed {path}; it takes effect at the next start of `agent`."
    assert shown[1].startswith(f'ui.theme = "dark"   # {path}')


def test_another_place_that_says_more_is_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MODEL", "from-there")

    shown = desk.chat("/config model=here")

    assert shown[1] == 'model = "from-there"   # environment AGENT_MODEL'
    assert shown[2] == "It has no effect yet: environment AGENT_MODEL overrides your file."
    assert shown[3] == "/model changes this session at once."


def test_a_setting_is_taken_out_again(desk: Desk) -> None:
    shown = desk.chat("/config ui.plain=true", "/config unset ui.plain", "/config unset ui.plain")

    assert "ui.plain = false   # default" in shown
    assert shown[-1].startswith("Error: ") and "does not set ui.plain" in shown[-1]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("ui.theme=neon", "ui.theme must be one of"),
        ("ui.colour=red", "ui has no setting 'colour'"),
        ("frob=1", "there is no setting 'frob'"),
        ("ui.them", "did you mean 'ui.theme'?"),
        ("a b=1", "there is no setting 'a'"),
        ("set ui.theme", "use /config KEY=VALUE, for example /config ui.theme=dark"),
    ],
)
def test_a_setting_that_cannot_be_right_is_refused(desk: Desk, typed: str, problem: str) -> None:
    shown = desk.chat(f"/config {typed}")

    assert shown[-1].startswith("Error: ") and problem in shown[-1]
    assert not (desk.folder / "config" / "agent" / "config.toml").exists()


def test_doctor_reports_what_it_finds(desk: Desk) -> None:
    shown = [line for line in desk.chat("/doctor") if not line.startswith("… looking")]

    assert shown[0].startswith("OK    versions: Keelwork ")
    assert any(line.startswith("OK    configuration: ") for line in shown)


# Setting up


@pytest.fixture
def nobody_nearby(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody() -> list[Any]:
        return []

    monkeypatch.setattr(dialogue, "servers_nearby", nobody)


@pytest.mark.usefixtures("nobody_nearby")
def test_setup_that_is_left_changes_nothing(desk: Desk, esc: str) -> None:
    shown = desk.chat("/setup", esc)

    assert shown[-1] == "Nothing was changed."
    assert not (desk.folder / "config" / "agent" / "config.toml").exists()


def answer(request: Any) -> ServerReply:
    """Answer as a server of one's own does: with its models, or with a message."""
    return chat_models("llama-9") if request.method == "GET" else chat_reply("I am the llama.")


@pytest.mark.usefixtures("nobody_nearby")
def test_setup_connects_a_server_and_it_answers_in_this_session_at_once(desk: Desk) -> None:
    desk.plugins.append(OpenAICompatibleProvider)
    with ScriptedServer(otherwise=answer) as server:
        shown = desk.chat("hello", "/setup", "server of your own", server.url, "", "and now?")

    written = tomllib.loads((desk.folder / "config" / "agent" / "config.toml").read_text())
    assert written["models"][written["model"]]["model"] == "llama-9"
    assert f"{written['model']} answers from your next message on." in shown
    assert shown[-1] == "I am the llama."


# Copying


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reached the clipboard; how it gets there, the tests of the clipboard show."""
    texts: list[str] = []

    async def copy(text: str) -> list[str]:
        texts.append(text)
        return ["a test"]

    monkeypatch.setattr(clipboard, "copy", copy)
    return texts


ANSWER = "Run this:\n\n```sh\nls -l\n```\n\nor\n\n~~~python\nprint('a')\nprint('b')\n~~~\n\x1b[2Jend\n"


def test_the_last_answer_or_a_piece_of_its_code_is_copied(desk: Desk, copied: list[str]) -> None:
    desk.plugins = [ScriptedProvider([ANSWER], name="demo")]

    shown = desk.chat("how?", "/copy", "/copy 1", "/copy 2")

    assert copied == [ANSWER.replace("\x1b", "").rstrip("\n"), "ls -l", "print('a')\nprint('b')"]
    assert "Copied 5 characters to a test." in shown


def test_what_cannot_be_copied_says_why(desk: Desk, copied: list[str]) -> None:
    shown = desk.chat("/copy", "hello", "/copy 1", "/copy x")

    assert shown[0].startswith("Error: nothing has been said yet")
    assert shown[-2:] == [
        "Error: there is no piece '1': the last answer has 0 pieces of code",
        "Error: there is no piece 'x': the last answer has 0 pieces of code",
    ]
    assert copied == []


def test_without_a_clipboard_there_is_another_way(desk: Desk) -> None:
    shown = desk.chat("hello", "/copy")

    assert shown[-1] == "Error: there is no clipboard here: select the text, or use /export FILE.md"
