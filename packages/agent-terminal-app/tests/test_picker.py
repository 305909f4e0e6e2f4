"""Lists to choose from: what is typed narrows them, and in a terminal the draft outlives them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.chat.picker import Choice, Picker, fit
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ServerReply, chat_reply, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_testing import ReceivedRequest

AGENT = [sys.executable, "-m", "agent_terminal_app"]
NARROW = 40


def with_picker(use: Callable[[Picker], None], *labels: str, start: str | None = None) -> Picker:
    async def run() -> Picker:
        picker = Picker("Which?", [Choice(one, one, "about") for one in labels], start=start)
        use(picker)
        return picker

    return asyncio.run(run())


def test_words_may_be_spread_and_a_whole_word_at_a_beginning_comes_first() -> None:
    def use(picker: Picker) -> None:
        picker.narrow("son")
        assert [one.value for one in picker.found] == ["son-of", "claude-sonnet", "person", "s-o-n"]
        picker.narrow("cl net")
        assert [one.value for one in picker.found] == ["claude-sonnet"]
        picker.narrow("xyz")
        assert picker.marked is None
        picker.take()
        assert not picker.result.done()

    with_picker(use, "s-o-n", "person", "claude-sonnet", "son-of")
    assert fit("", "anything") == 0 and fit("b a", "ab") is not None


def test_the_beginning_of_a_later_word_counts_more_than_the_middle_of_an_earlier_one() -> None:
    ranked = sorted(("compatible:green", "compatible:black"), key=lambda name: fit("bl", name) or 0)

    assert ranked[0] == "compatible:black"


def test_arrows_go_round_and_what_is_added_leaves_the_mark_where_it_is() -> None:
    def use(picker: Picker) -> None:
        assert picker.marked is not None and picker.marked.value == "b"
        picker.add([Choice("d", "d"), Choice("a", "a")])
        assert (picker.marked.value, len(picker.found)) == ("b", 4)
        picker.move(-1)
        picker.move(-1)
        picker.take()
        assert picker.result.result() == "d"

    with_picker(use, "a", "b", "c", start="b")


def test_a_label_with_nothing_behind_it_has_the_whole_row() -> None:
    name = "openai_compatible:scripted-model"

    def use(picker: Picker) -> None:
        picker.add([Choice(name, name)])
        assert picker.rows(39)[1][0].strip() == name

    with_picker(use, "b")


@pytest.mark.parametrize("width", [20, 40, 200])
def test_rows_fit_and_the_marked_one_is_among_them(width: int) -> None:
    def use(picker: Picker) -> None:
        for _ in range(40):
            picker.move(1)
            rows = picker.rows(width, 5)
            assert len(rows) == 5 and sum(marked for _row, marked in rows) == 1
            assert all(len(row) <= width for row, _marked in rows)

    with_picker(use, *(f"choice-{n}-{'x' * n}" for n in range(30)))


class Home:
    """A home with two servers: the one that the settings name, with two models, and nothing else."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder = folder
        places = {
            f"XDG_{one}_HOME": str(folder / one.lower()) for one in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.environment = {**kept, **places, "HOME": str(folder), "AGENT_KEYRING": "off"}
        file = folder / "config" / "agent" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            'model = "box"\nplugin_ids = []\n[plugins.session_title]\ntitle_model = false\n'
            '[models.box]\nprovider = "openai_compatible"\nmodel = "small"\ncontext_window = 8000\n'
            f'config = {{ base_url = "{server.url}/v1", api_key = "" }}\n'
        )

    def chat(self, *options: str, columns: int = 100) -> Terminal:
        command = [*AGENT, "chat", *options]
        terminal = Terminal(
            command, environment=self.environment, folder=self.folder, columns=columns, rows=30
        )
        terminal.expect_line("ready")
        return terminal


def answer(request: ReceivedRequest) -> ServerReply:
    if request.path == "/v1/models":
        large = {"id": "large", "object": "model", "context_length": 262144}
        priced = {"pricing": {"prompt": "0.000003", "completion": "0.000015"}}
        small = {"id": "small", "object": "model", **priced}
        return json_reply({"object": "list", "data": [small, {**large, **priced}]})
    return chat_reply(f"I am {request.json['model']}.")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ScriptedServer(otherwise=answer) as server:
        yield Home(tmp_path, server)


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_a_model_of_a_named_server_is_chosen_and_the_draft_stays(home: Home, columns: int) -> None:
    with home.chat(columns=columns) as terminal:
        terminal.type("half a thought")
        terminal.type("\x1bp")
        terminal.expect("Which model answers")
        terminal.expect("box:large")
        terminal.expect_line("→ box ")
        # The model that the settings name is there once, with the price that its server tells.
        assert "box:small" not in terminal.text
        if columns > NARROW:
            terminal.expect("openai_compatible small · 8k context · $3 in, $15 out")
        terminal.type("lrg")
        terminal.wait(lambda: "> lrg" in terminal.text and "→ box" not in "\n".join(terminal.lines))
        if columns > NARROW:
            assert "262k context · $3 in, $15 out" in terminal.text
        terminal.type("\x06\r")
        terminal.expect("box:large answers")
        terminal.expect_line("» half a thought$")
        terminal.type("\r")
        terminal.expect("I am large.")
        terminal.type("/model\r")
        terminal.expect_line("→ box:large")
        terminal.type("\x1b")
        terminal.expect("box:large answers, as before.")
        terminal.type("\x04")
        assert terminal.end() == 0
    with home.chat("--continue", columns=columns) as terminal:
        terminal.expect("box:large answers in this")
        terminal.type("and now\r")
        terminal.wait(lambda: terminal.text.count("I am large.") > 1)
    with home.chat("--model", "box:other", columns=columns) as terminal:
        terminal.type("hello\r")
        terminal.expect("I am other.")
        terminal.expect_line("ready")
        terminal.type("/model\r")
        terminal.expect_line("★ box:large")


def test_keys_behind_the_one_that_closes_a_list_are_for_the_prompt(home: Home) -> None:
    with home.chat() as terminal:
        terminal.type("/model\r")
        terminal.expect("box:large")
        terminal.type("lrg")
        terminal.expect("> lrg")
        terminal.type("\rmore words\r")  # in one piece, as a slow connection delivers them
        terminal.expect("I am large.")
        assert "» more words" in terminal.text
        terminal.type("/model\r")
        terminal.expect_line("→ box:large")
        terminal.type("\r\x04")
        assert terminal.end() == 0


def test_sessions_branches_messages_and_commands_are_chosen_from_lists(home: Home) -> None:
    with home.chat() as terminal:
        terminal.type("first words\r")
        terminal.expect("I am small.")
        terminal.type("second words\r")
        terminal.wait(lambda: terminal.text.count("I am small.") > 1)
        terminal.expect_line("ready")
        terminal.type("/rewind list\r")
        terminal.expect("Before which one do you want to go back?")
        terminal.type("\x1b[A\x1b[B\r")  # up, down: the last one again
        terminal.expect("Back before: second words")
        terminal.expect_line("» second words$")
        terminal.type("\x15third words\r")
        terminal.wait(lambda: terminal.text.count("I am small.") > 2)
        terminal.expect_line("ready")
        terminal.type("/branches\r")
        terminal.expect("Which branch?")
        terminal.wait(lambda: sum("first words" in line for line in terminal.lines[-6:]) == 2)
        terminal.type("\x1b[A\r")
        terminal.expect("  I am small.")
        terminal.expect_line("ready")
        terminal.type("/resume\r")
        terminal.expect("Which session?")
        terminal.type("\x1b")
        terminal.expect_line("ready")
        terminal.type("\x10")
        terminal.expect("Which command?")
        terminal.type("context\r")
        terminal.expect("in all")


@pytest.mark.parametrize("how", ["signal", "hang up"])
def test_a_chat_that_ends_while_a_list_is_open_ends(home: Home, how: str) -> None:
    with home.chat() as terminal:
        terminal.type("/model\r")
        terminal.expect("box:large")
        if how == "signal":
            terminal.signal(signal.SIGTERM)
            assert terminal.end() == 128 + signal.SIGTERM
        else:
            terminal.hang_up()
            assert terminal.process.wait(timeout=60) in (128 + signal.SIGHUP, -signal.SIGHUP)


def test_in_plain_lines_a_list_has_numbers(home: Home) -> None:
    command = [*AGENT, "chat", "--plain"]
    with Terminal(command, environment=home.environment, folder=home.folder, columns=100) as terminal:
        terminal.type("/commands\r")
        terminal.expect("Number or name")
        assert "/new" in terminal.text
        terminal.type("/cost\r")
        terminal.expect("this session: 0 tokens")
