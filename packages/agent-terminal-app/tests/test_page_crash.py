"""A server that is killed in the middle of an answer: the page says so, and asks again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_server.testing.page import IN_A_BROWSER, browser, open_page, say, wait
from agent_terminal_app.testing.home import COMMAND, Home, client_of, ending_command, kill_server, logged
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER
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


@pytest.mark.parametrize(
    "reload", [False, True], ids=["a page that stays open", "a page that is opened again"]
)
def test_the_page_says_that_an_answer_was_cut_short_and_asks_again(
    home: Home, model: ScriptedServer, browser: Browser, *, reload: bool
) -> None:
    model.play(chat_reply(chunks=["The first half. ", "And then ", "the rest."]).stall())
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        with home.serve() as link, client_of(home, link) as client:
            page.goto(link)
            page.wait_for_selector("#composer")
            say(page, "tell me")
            page.wait_for_selector(".answer >> text=And then")
            session = page.url.partition("#s=")[2]
            wait(lambda: "And then" in logged(client, session), "the words in the log")
            kill_server(home)
        page.wait_for_selector("text=Connection lost")

        model.play(chat_reply("Once more, whole."))
        port = link.rpartition("/login")[0].rpartition(":")[2]
        with home.serve("--port", port):
            if reload:
                page.reload()
            page.wait_for_selector(".note >> text=The server stopped before this was answered.")
            page.wait_for_selector(".answer >> text=The first half. And then")
            page.wait_for_selector(".working", state="detached")
            page.click(".note >> text=Try again")
            page.wait_for_selector(".answer >> text=Once more, whole.")
            page.wait_for_selector("text=The first half.", state="detached")
            assert page.locator(".note").count() == 0
            page.close()
    finally:
        context.close()


def test_the_page_names_the_calls_that_may_have_run(
    home: Home, model: ScriptedServer, open_page: Callable[..., Page]
) -> None:
    home.set(WORKS_AT_IT)
    waits = ToolCall("shell", {"command": COMMAND}, "c1")
    model.play(chat_reply(tool_calls=[waits]))
    with home.serve() as link, client_of(home, link) as client:
        session = client.post("/v1/sessions").json()["id"]
        client.post(f"/v1/sessions/{session}/runs", json={"text": "run it"})
        wait((home.project / "pid").exists, "a command that runs")
        kill_server(home)

    model.play(chat_reply("I look first."))
    with home.serve() as link:
        page = open_page(link)
        page.click(".session .open")
        page.wait_for_selector(".note >> text=in the middle of this answer")
        page.wait_for_selector(".note >> text=may have run, in part or completely")
        page.wait_for_selector(".call >> text=no result")
        page.click(".note >> text=Try again")
        page.wait_for_selector(".answer >> text=I look first.")
        page.close()
    told = [one["content"] for one in model.requests[-1].json["messages"] if one["role"] == "tool"]
    assert "may have run" in told[0]
