"""What an agent remembers, as a person meets it in the terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer

if find_spec("memory_feature") is None:
    pytest.skip("memory is not installed", allow_module_level=True)

REMEMBER = ToolCall("remember", {"text": "Ann likes tea."}, "c1")


def test_a_fact_that_a_person_approves_is_known_in_the_next_chat_and_can_be_forgotten(
    home: Home, server: ScriptedServer
) -> None:
    home.settings.write_text(f'more_plugins = ["memory"]\n{home.settings.read_text()}')
    server.play(chat_reply(tool_calls=[REMEMBER]), chat_reply("Noted."), chat_reply("With milk?"))
    file = home.folder / ".local" / "share" / "agent" / "memory" / "ann-likes-tea.md"

    with home.chat(rows=60) as chat:
        chat.type("I like tea\r")
        chat.expect_line("your answer")
        assert "+Ann likes tea." in chat.text
        assert "remember(person/*)" in chat.text
        assert not file.exists()
        chat.type("y")
        chat.expect("Noted.")
    assert file.read_text().endswith("---\nAnn likes tea.\n")

    with home.chat(rows=60) as chat:
        chat.type("/memory\r")
        chat.expect("person/ann-likes-tea: Ann likes tea.")
        chat.expect_line("ready")
        chat.type("/memory green coffee\r")
        chat.expect("Nothing is remembered about 'green coffee'.")
        chat.expect_line("ready")
        chat.type("/context prompt\r")
        chat.expect("- person/ann-likes-tea: Ann likes tea.")
        chat.expect_line("ready")
        chat.type("a drink\r")
        chat.expect("With milk?")
        assert "- person/ann-likes-tea: Ann likes tea." in server.requests[-1].json["messages"][0]["content"]
        chat.expect_line("ready")
        chat.type("/forget_memory ann\r")
        chat.expect("person/ann-likes-tea is forgotten.")
        chat.wait(lambda: not file.exists(), "the file to be gone")


def test_the_agent_has_no_memory_unless_it_is_switched_on(home: Home, server: ScriptedServer) -> None:
    server.play(chat_reply("Hello."))

    explained = home.run("plugins", "explain").stdout
    home.run("run", "hello")

    [line] = [one for one in explained.splitlines() if one.split()[:1] == ["memory"]]
    assert "off" in line.split()
    assert "remember" not in str(server.requests[-1].json.get("tools"))
