"""`agent chat --server`: a real terminal here, and the agent behind a real socket."""

from __future__ import annotations

import math
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_server.testing import ASKS, TOKEN, Notes, Paced, Serving
from agent_terminal_app.testing.command import run_agent
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_server.testing import Served


@pytest.fixture
def serve_it(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.close()


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home), "TERM": "xterm", "NO_COLOR": "1", "AGENT_SERVER_TOKEN": TOKEN, **more}


@contextmanager
def chatting(tmp_path: Path, url: str, *arguments: str) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "agent_terminal_app", "chat", "--server", url, *arguments]
    own = environment(tmp_path)
    with Terminal(command, environment=own, folder=tmp_path, columns=110, rows=50) as terminal:
        terminal.expect_line("ready")
        yield terminal


def begun(chat: Terminal, served: Served) -> str:
    """Wait until the model is at work, and return the session."""

    def sessions() -> list[str]:
        infos = served.app.list_sessions()
        return [one.id for one in infos if "step_start" in {e["type"] for e in served.app.events(one.id)}]

    chat.wait(sessions, "a run that has begun")
    return sessions()[0]


def test_a_chat_is_answered_asked_and_resumed(serve_it: Serving, tmp_path: Path) -> None:
    notes = Notes()
    wants = Reply(tool_calls=[ToolCall("note", {"text": "buy milk"})])
    served = serve_it(
        ["Hello from afar.", wants, "It is noted.", "Yes, again."], plugins=[notes], config=ASKS
    )

    with chatting(tmp_path, served.url) as chat:
        chat.type("hi\r")
        chat.expect("Hello from afar.")
        chat.expect_line("ready")
        chat.type("note it\r")
        chat.expect("buy milk")
        chat.expect_line("your answer")
        assert notes.written == []
        chat.type("1\r")
        chat.expect("It is noted.")
        chat.expect_line("ready")
        chat.type("/rename Shopping\r")
        chat.expect("Shopping")
        chat.type("\x04")
        assert chat.end() == 0
    sessions = served.client.get("/v1/sessions").json()["items"]
    with chatting(tmp_path, served.url, "--session", "Shopping") as chat:
        chat.expect("It is noted.")
        chat.type("once more\r")
        chat.expect("Yes, again.")

    assert notes.written == ["buy milk"]
    assert [one["title"] for one in sessions] == ["Shopping"]
    assert served.app.load_session(sessions[0]["id"]).metadata.get("workspace_roots") is None


class Tidy:
    name = "tidy"
    version = "1"
    done = 0

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "tidy-up", "label": "Tidy up", "confirm": "Throw it all away?"}]

    def execute_action(self, action_id: str, session: Any, native: Any, params: Any) -> dict[str, Any]:
        self.done += 1
        return {"message": "It is tidy now."}


def test_an_action_on_the_server_runs_after_a_yes(serve_it: Serving, tmp_path: Path) -> None:
    tidy = Tidy()
    served = serve_it(["Hello from afar."], plugins=[tidy])

    with chatting(tmp_path, served.url) as chat:
        chat.type("hi\r")
        chat.expect("Hello from afar.")
        chat.expect_line("ready")
        chat.type("/tidy-up\r")
        chat.expect("Throw it all away?")
        assert tidy.done == 0
        chat.type("y\r")
        chat.expect("It is tidy now.")

    assert tidy.done == 1


def test_what_is_typed_during_an_answer_reaches_the_run(serve_it: Serving, tmp_path: Path) -> None:
    pace = Paced()
    script = [Reply(chunks=["working ", "on ", "it"], delay=1.0), Reply(text="And that as well.")]
    served = serve_it(provider=ScriptedProvider(script, sleep=pace))

    with chatting(tmp_path, served.url) as chat:
        chat.type("begin\r")
        pace.release(2)
        session_id = begun(chat, served)
        chat.type("also this\r")
        chat.wait(lambda: served.app.queued(session_id), "a message that waits")
        pace.release(100)
        chat.expect("And that as well.")
        chat.expect_line("ready")

    said = [message.content for message in served.app.load_session(session_id).messages]
    assert said == ["begin", "working on it", "also this", "And that as well."]


def test_escape_stops_the_run_on_the_server(serve_it: Serving, tmp_path: Path) -> None:
    served = serve_it([Reply(chunks=["half ", "whole"], delay=[0.0, math.inf])])

    with chatting(tmp_path, served.url) as chat:
        chat.type("count\r")
        session_id = begun(chat, served)
        chat.type("\x1b")
        chat.expect_line("ready")
        chat.wait(lambda: served.app.holder(session_id) is None, "a session that nobody uses")

    assert served.app.events(session_id)[-1]["reason"]["code"] == "cancelled"


def test_commands_use_what_the_server_has_and_say_what_it_has_not(serve_it: Serving, tmp_path: Path) -> None:
    served = serve_it(["from the other one"])

    with chatting(tmp_path, served.url) as chat:
        chat.type("/agent\r")
        chat.expect("/agent NAME has another one answer")
        chat.type("/agent other\r")
        chat.expect("other answers from now on")
        chat.type("/tools\r")
        chat.expect("the agent is on a server")
        chat.expect_line("ready")

    assert served.client.get("/v1/sessions").json()["items"][0]["agent_id"] == "other"


def test_a_server_that_refuses_or_is_not_there_is_named(serve_it: Serving, tmp_path: Path) -> None:
    served = serve_it()
    wrong = environment(tmp_path, AGENT_SERVER_TOKEN="a-token-that-is-wrong")
    refused = run_agent("chat", "hi", "--server", served.url, environment=wrong, folder=tmp_path)
    mixed = run_agent("chat", "--server", served.url, "--demo", environment=wrong, folder=tmp_path)

    assert refused.returncode != 0
    assert "AGENT_SERVER_TOKEN" in refused.stderr
    assert mixed.returncode == 2
