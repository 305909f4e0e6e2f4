"""A server that is killed in the middle of an answer: the next one says so, by its API and to a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import ToolCall
from agent_server.testing.page import wait
from agent_terminal_app.testing.home import COMMAND, Home, client_of, ending_command, kill_server, logged
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

WORKS_AT_IT = '[sandbox]\nmode = "off"\n[permissions]\nallow = ["shell"]\n'


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, model: ScriptedServer) -> Iterator[Home]:
    home = Home(tmp_path / "home", model.url)
    with ending_command(home):
        yield home


def state_of(client: httpx2.Client, session: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/v1/sessions/{session}/state").json()
    return found


def test_the_state_has_the_words_that_were_shown_and_a_run_without_words_answers_again(
    home: Home, model: ScriptedServer
) -> None:
    model.play(chat_reply(chunks=["The first half. ", "And then ", "the rest."]).stall())
    with home.serve() as link, client_of(home, link) as client:
        session = client.post("/v1/sessions").json()["id"]
        client.post(f"/v1/sessions/{session}/runs", json={"text": "tell me"})
        model.wait_until_stalled()
        wait(lambda: "And then" in logged(client, session), "the words in the log")
        during = state_of(client, session)
        kill_server(home)

    model.play(chat_reply("Once more, whole."))
    with home.serve() as link, client_of(home, link) as client:
        before = state_of(client, session)
        with home.chat("--server", link.partition("/login")[0], "--session", session) as chat:
            chat.expect("The program ended before this was answered. Enter asks again.")
            chat.expect("The first half. And then")
        answer = client.post(f"/v1/sessions/{session}/runs?wait=true", json={})
        after = state_of(client, session)

    assert during["unfinished"] is None
    assert during["running"] == "here"
    assert before["running"] is None
    assert before["unfinished"]["calls"] == []
    assert before["unfinished"]["text"].startswith("The first half. And then ")
    assert answer.json()["text"] == "Once more, whole."
    assert after["unfinished"] is None


def test_the_state_has_the_calls_without_a_result_and_whether_they_may_have_run(
    home: Home, model: ScriptedServer
) -> None:
    home.set(WORKS_AT_IT)
    waits = ToolCall("shell", {"command": COMMAND}, "c1")
    model.play(chat_reply(tool_calls=[waits]))
    with home.serve() as link, client_of(home, link) as client:
        session = client.post("/v1/sessions").json()["id"]
        client.post(f"/v1/sessions/{session}/runs", json={"text": "run it"})
        wait((home.project / "pid").exists, "a command that runs")
        kill_server(home)

    with home.serve() as link, client_of(home, link) as client:
        state = state_of(client, session)

    (call,) = state["unfinished"]["calls"]
    assert (call["call_id"], call["name"], call["begun"]) == ("c1", "shell", True)
    assert state["unfinished"]["text"] == ""
