"""Titles, costs and warnings, as a person meets them in a day."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app import health
from agent_testing import ServerReply, chat_models, chat_reply, json_reply

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.testing.home import Home
    from agent_terminal_app.testing.terminal import Terminal
    from agent_testing import ReceivedRequest, ScriptedServer


def has_requests(server: ScriptedServer, count: int) -> bool:
    return len(server.requests) >= count


def has_shown(chat: Terminal, line: str, text: str) -> bool:
    """Say whether a text was shown after a line."""
    return text in chat.text.rpartition(f"» {line}\n")[2]


def test_cost_adds_up_with_every_request_that_was_answered(home: Home, server: ScriptedServer) -> None:
    answered = 0

    def reply(request: ReceivedRequest) -> ServerReply:
        nonlocal answered
        messages = request.json["messages"]
        if sum(len(str(one.get("content") or "")) for one in messages) > 12_000:
            error = {"message": "maximum context length is 3000 tokens", "code": "context_length_exceeded"}
            return json_reply({"error": error}, status=400)
        answered += 1
        return chat_reply("A summary." if "<conversation>" in str(messages[-1]) else f"Answer {answered}.")

    server.play(*[reply] * 40)
    with home.chat(columns=200) as chat:
        for number in range(5):
            chat.paste(f"Question {number} " + "about green tea " * 150)
            chat.type("\r")
            chat.wait(partial(has_requests, server, number + 1), "a request")
            chat.expect_line("ready")
        chat.expect("sent as a summary")
        chat.type("/cost\r")
        chat.wait(lambda: re.search(r"this session: [\d,]+ tokens", chat.text), "the sum")
        shown = chat.text.rpartition("» /cost")[2]
        status = chat.lines[-1]
    found = re.search(r"(\d+) requests, ([\d,]+) tokens in \([\d,]+ cached\), ([\d,]+) out", shown)
    assert found is not None, shown
    requests, sent, received = (int(one.replace(",", "")) for one in found.groups())
    assert (requests, sent, received) == (answered, 12 * answered, 7 * answered)
    assert f"this session: {19 * answered:,} tokens" in shown
    assert f"session {19 * answered} tokens" in status


@pytest.mark.skipif(find_spec("session_title_feature") is None, reason="titles are not installed")
def test_cost_counts_the_request_for_the_title(home: Home, server: ScriptedServer) -> None:
    settings = home.settings.read_text().replace("title_model = false", "title_model = true")
    home.settings.write_text(settings)
    server.play(chat_reply("Boil water first."), chat_reply("Making tea"), chat_reply("Tea, again"))

    with home.chat() as chat:
        chat.type("How do I make tea?\r")
        chat.expect("Boil water first.")
        chat.expect_line("ready .* session 38 tokens")
        chat.type("/cost\r")
        chat.expect("2 requests, 24 tokens in (8 cached), 14 out")
        chat.expect("this session: 38 tokens")
        chat.expect_line("ready")
        chat.type("/make_title\r")
        chat.expect("Tea, again")
        chat.expect_line("ready .* session 57 tokens")
        chat.type("/cost\r")
        chat.expect("this session: 57 tokens")
    assert len(server.requests) == 3


def test_a_fork_says_in_its_title_that_it_is_one_and_a_name_stays(home: Home, server: ScriptedServer) -> None:
    server.play(chat_reply("Answer 1."), chat_reply("Answer 2."))
    with home.chat() as chat:
        for line, seen in (
            ("Green tea", "Answer 1."),
            ("/rename Leaves", "is called 'Leaves' now"),
            ("/fork", "stays as it is"),
            ("And now?", "Answer 2."),
            ("/fork", "stays as it is"),
            ("/make_title", "a person chose the title"),
        ):
            chat.type(f"{line}\r")
            chat.wait(partial(has_shown, chat, line, seen), seen)
            chat.expect_line("ready")
    listed = json.loads(home.run("sessions", "list", "--json").stdout)
    assert sorted(one["title"] for one in listed) == ["Leaves", "Leaves (fork 2)", "Leaves (fork)"]


@pytest.mark.skipif(find_spec("skills_feature") is None, reason="skills are not installed")
def test_a_broken_skill_warns_once(home: Home, server: ScriptedServer) -> None:
    skill = home.folder / ".config" / "agent" / "skills" / "tea"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("no head\n")
    server.play(chat_reply("One."), chat_reply("Two."), chat_reply("Three."))

    with home.chat(columns=200) as chat:
        for word in ("One.", "Two.", "Three."):
            chat.type("hello\r")
            chat.expect(word)
            chat.expect_line("ready")
        assert chat.text.count("a skill is left out") == 1


def test_doctor_says_to_make_room_on_a_disk_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "agent.db"
    database.write_bytes(b"not a database, as far as sqlite can tell" * 100)
    usage = shutil.disk_usage(tmp_path)

    [finding] = health.check_store(database)
    assert "restore it from a backup" in finding.remedy

    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=0))
    [finding] = health.check_store(database)
    assert finding.remedy.startswith(f"make room on the disk of {tmp_path}")


def test_the_first_line_of_a_chat_wraps_between_words(home: Home) -> None:
    with home.chat(columns=40) as chat:
        assert chat.lines[:2] == ["You are talking to", "openai_compatible:scripted-model. /help"]


@pytest.mark.skipif(find_spec("anthropic_provider") is None, reason="the provider is not installed")
def test_what_is_found_out_at_the_start_wraps_between_words(home: Home) -> None:
    with home.chat("--model", "anthropic:claude-sonnet-5") as chat:
        chat.expect("or /setup.")
        assert "the provider's setting api_key" in " ".join(chat.lines)


def test_a_failure_in_the_library_prints_nothing_by_itself(tmp_path: Path) -> None:
    program = """
from agent_core import AgentError
from agent_core.testing import ScriptedProvider
from agent_runtime import Agent

def broken(messages):
    raise RuntimeError("the server is gone")

def lost() -> str:
    "Look for tea."
    raise ValueError("no tea")

try:
    Agent(ScriptedProvider([broken]), tools=[lost]).run("hello")
except AgentError as error:
    print("caught")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("caught\n", "")


def test_a_server_that_does_not_answer_is_named_in_the_list_of_models(
    home: Home, server: ScriptedServer
) -> None:
    home.set('[models.attic]\nprovider = "openai_compatible"\nmodel = "old"\n')
    home.set('config = { base_url = "http://127.0.0.1:9/v1" }\n')
    server.play(chat_models("scripted-model", "green"))

    with home.chat() as chat:
        chat.type("/model\r")
        chat.expect("openai_compatible:green")
        chat.expect("no list from attic")
        assert "anthropic" not in "\n".join(chat.lines)


def test_a_misspelt_name_of_a_server_is_answered_with_the_right_one(home: Home) -> None:
    home.set('[models.attic]\nprovider = "openai_compatible"\nmodel = "old"\n')
    home.set('config = { base_url = "http://127.0.0.1:9/v1" }\n')

    done = home.run("run", "--model", "atic:new", "Hello")

    assert done.returncode == 3 and "did you mean 'attic'?" in done.stderr


def test_nobody_is_greeted_if_there_is_no_session_to_continue(home: Home) -> None:
    ended = home.run("chat", "--continue")

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == "agent: there is no session to continue; `agent chat` begins one\n"
