"""Approvals by one key, in a real terminal: what is shown, which key does what, what is not an answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_terminal_app.testing.terminal import Terminal
    from agent_testing import ScriptedServer

ESC = "\x1b"


def wants(server: ScriptedServer, tool: str, /, **arguments: Any) -> None:
    """Let the model make a call, and say something when it has the result."""
    server.play(chat_reply(tool_calls=[ToolCall(tool, arguments, "c1")]), chat_reply("That was it."))


def told(server: ScriptedServer) -> str:
    """Return what the model read as the result of its call."""
    return str(server.requests[-1].json["messages"][-1]["content"])


def has_answered(chat: Terminal, times: int) -> bool:
    return chat.text.count("That was it.") == times


def asked(chat: Terminal) -> list[str]:
    """Say something, wait until a question can be answered, and return its lines."""
    chat.type("do it\r")
    chat.expect_line("your answer")
    lines = chat.lines
    start = max(place for place, line in enumerate(lines) if line.startswith("? "))
    return lines[start : lines.index("»", start)]


@pytest.mark.parametrize(
    ("columns", "box"),
    [
        (
            100,
            [
                "? Write src/tea.py, 13 bytes",
                "  in ~/project",
                "  --- /dev/null",
                "  +++ b/src/tea.py",
                "  @@ -0,0 +1,1 @@",
                "  +print('tea')",
                "  [y] yes, once",
                "  [a] yes, for this session: write_file(src/*)",
                "      the same for longer: [3] in this project, [4] always",
                "  [n] no, or type what to do instead",
                "  [d] no, for this session: write_file(src/tea.py)",
            ],
        ),
        (
            40,
            [
                "? Write src/tea.py, 13 bytes",
                "  in ~/project",
                "  --- /dev/null",
                "  +++ b/src/tea.py",
                "  @@ -0,0 +1,1 @@",
                "  +print('tea')",
                "  [y] yes, once",
                "  [a] yes, for this session:",
                "      write_file(src/*)",
                "      the same for longer: [3] in this",
                "          project, [4] always",
                "  [n] no, or type what to do instead",
                "  [d] no, for this session:",
                "      write_file(src/tea.py)",
            ],
        ),
    ],
)
def test_the_box_is_short_and_wraps_between_words(
    home: Home, server: ScriptedServer, columns: int, box: list[str]
) -> None:
    wants(server, "write_file", path="src/tea.py", content="print('tea')\n")

    with home.chat(columns=columns) as chat:
        assert asked(chat) == box
        chat.type("y")
        chat.expect("That was it.")
        assert (home.project / "src" / "tea.py").read_text() == "print('tea')\n"


def test_an_absolute_name_in_the_project_is_granted_as_a_person_would_write_it(
    home: Home, server: ScriptedServer
) -> None:
    wants(server, "write_file", path=str(home.project / "src" / "tea.py"), content="tea\n")
    wants(server, "write_file", path=str(home.project / "src" / "cup.py"), content="cup\n")

    with home.chat(columns=200) as chat:
        assert "  [a] yes, for this session: write_file(src/*)" in asked(chat)
        chat.type("a")
        chat.expect("That was it.")
        chat.expect_line("ready")
        chat.type("and the cup\r")
        chat.wait((home.project / "src" / "cup.py").exists, "a second file that nobody was asked about")


@pytest.mark.parametrize(
    ("key", "ran", "grants"),
    [
        ("y", True, ""),
        ("a", True, "allow shell(touch ran)"),
        ("n", False, ""),
        ("d", False, "deny shell(touch ran)"),
        ("4", True, "allow shell(touch ran)"),
    ],
)
def test_one_key_answers(home: Home, server: ScriptedServer, key: str, ran: bool, grants: str) -> None:
    home.set('[sandbox]\nmode = "off"\n')
    wants(server, "shell", command="touch ran")

    with home.chat(columns=200) as chat:
        assert asked(chat)[0] == "? $ touch ran"
        chat.type(key)
        chat.expect("That was it.")
        chat.expect_line("ready")
        assert (home.project / "ran").exists() == ran
        chat.type("/permissions\r")
        chat.expect("anything else")
        listed = " ".join(chat.text.rpartition("» /permissions")[2].split())
        assert (grants or "allow read_file") in listed
        assert ("touch ran" in listed) == bool(grants)


def test_esc_leaves_the_question_and_the_next_message_says_what_to_do_instead(
    home: Home, server: ScriptedServer
) -> None:
    wants(server, "shell", command="touch ran")

    with home.chat() as chat:
        asked(chat)
        chat.type(ESC)
        chat.expect("say what to do instead")
        chat.expect_line("ready")
        chat.type("Make tea.\r")
        chat.expect("That was it.")
    assert not (home.project / "ran").exists()


def test_what_is_pasted_or_typed_ahead_answers_nothing(home: Home, server: ScriptedServer) -> None:
    wants(server, "shell", command="touch ran")

    with home.chat() as chat:
        chat.type("do it\r")
        chat.expect("? $ touch ran")
        chat.type("y")  # before the question could have been read
        chat.expect_line("» y")
        chat.expect_line("your answer")
        chat.type("es\r")
        chat.expect("Queued until you have answered: yes")
        chat.expect_line(r"your answer\? y n a d")
        chat.paste("y")
        chat.expect_line("» y")
        assert not (home.project / "ran").exists()


def test_nobody_is_asked_about_a_call_that_is_known_to_fail(home: Home, server: ScriptedServer) -> None:
    (home.project / "poem.txt").write_text("roses\n")
    for call in (
        ToolCall("edit_file", {"path": "poem.txt", "old": "violets", "new": "tulips"}, "c1"),
        ToolCall("write_file", {"path": "/etc/evil", "content": "x"}, "c1"),
        ToolCall("shell", {"command": "make", "cwd": "nowhere"}, "c1"),
        ToolCall("fetch_url", {"url": "gopher://example.org"}, "c1"),
    ):
        server.play(chat_reply(tool_calls=[call]), chat_reply(f"No {call.name} then."))

    with home.chat() as chat:
        for name, problem in (
            ("edit_file", "does not have that text"),
            ("write_file", "outside"),
            ("shell", "is not a folder"),
            ("fetch_url", "http"),
        ):
            chat.type("do it\r")
            chat.expect(f"No {name} then.")
            chat.expect_line("ready")
            assert problem in told(server)
        assert "[y]" not in chat.text


def test_a_call_that_is_not_run_is_named_as_in_its_question(home: Home, server: ScriptedServer) -> None:
    (home.project / "poem.txt").write_text("roses\n")
    wants(server, "edit_file", path="poem.txt", old="roses", new="tulips")

    with home.chat() as chat:
        assert asked(chat)[0] == "? Edit poem.txt"
        chat.type("n")
        chat.expect_line(r"✗ Edit poem.txt → the call was refused")
        chat.expect_line("ready")
        wants(server, "edit_file", path="poem.txt", old="violets", new="tulips")
        chat.type("do it\r")
        chat.expect_line(r"✗ Edit poem.txt → poem.txt does not have that text")
        chat.expect_line("ready")


def test_a_patch_that_says_only_roughly_where_it_belongs_is_shown_once(
    home: Home, server: ScriptedServer
) -> None:
    (home.project / "tea.py").write_text("print('tea')\n")
    wants(server, "apply_patch", patch="--- a/tea.py\n+++ b/tea.py\n@@\n-print('tea')\n+print('green tea')\n")

    with home.chat() as chat:
        assert asked(chat)[:8] == [
            "? Patch tea.py",
            "  in ~/project",
            "  --- a/tea.py",
            "  +++ b/tea.py",
            "  @@ -1,1 +1,1 @@",
            "  -print('tea')",
            "  +print('green tea')",
            "  [y] yes, once",
        ]


def test_nothing_is_asked_about_a_page_of_this_computer(home: Home, server: ScriptedServer) -> None:
    wants(server, "fetch_url", url="http://127.0.0.1:9/x")

    with home.chat() as chat:
        chat.type("do it\r")
        chat.expect("That was it.")
        assert "[y]" not in chat.text
    assert "127.0.0.1 is a loopback address" in told(server)


def test_all_pages_of_a_server_can_be_allowed_at_once(home: Home, server: ScriptedServer) -> None:
    wants(server, "fetch_url", url="https://tea.example/green?x=1")

    with home.chat() as chat:
        assert asked(chat)[:5] == [
            "? Read https://tea.example/green?x=1",
            "  in ~/project",
            "  [y] yes, once",
            "  [a] yes, for this session: fetch_url(https://tea.example/*)",
            "      the same for longer: [3] in this project, [4] always",
        ]


def test_a_line_of_several_commands_can_be_refused_for_the_session(
    home: Home, server: ScriptedServer
) -> None:
    (home.project / "src").mkdir()
    wants(server, "shell", command="cd src && make tea && git push | grep -v x")

    with home.chat() as chat:
        assert "  [d] no, for this session: shell(make tea), shell(git push)" in asked(chat)
        chat.type("d")
        chat.expect("That was it.")
        chat.expect_line("ready")
        for number, line in enumerate(("make tea", "echo tea; git push"), 2):
            wants(server, "shell", command=line)
            chat.type("in other words\r")
            chat.wait(partial(has_answered, chat, number), f"answer {number}")
            assert "not allowed" in told(server)
            chat.expect_line("ready")
        wants(server, "shell", command="cd src && grep -v x poem.txt")
        chat.type("only what reads\r")
        chat.expect_line("your answer")


def test_a_line_that_only_reads_is_refused_as_it_is(home: Home, server: ScriptedServer) -> None:
    line = "cat 'one, (two)' | grep -v tea"
    wants(server, "shell", command=line)

    with home.chat() as chat:
        assert r"  [d] no, for this session: shell(command=cat 'one\, (two\)' | grep -v tea)" in asked(chat)
        chat.type("d")
        chat.expect("That was it.")
        chat.expect_line("ready")
        wants(server, "shell", command=line)
        chat.type("again\r")
        chat.wait(lambda: chat.text.count("That was it.") == 2, "the second answer")
        assert "not allowed" in told(server)
        chat.expect_line("ready")
        wants(server, "shell", command="cat 'one, (two)'")
        chat.type("only a part\r")
        chat.expect_line("your answer")
