"""The page as somebody meets it who has read nothing: with SQLite, and with PostgreSQL and a worker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing.postgres import create_database, shared_server
from agent_server.testing.page import IN_A_BROWSER, PHONE, browser, is_over, open_page, say, wait
from agent_terminal_app.testing.home import KITCHEN, Home
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER
PLUGINS = """
[agent_platform.features]
showcase = agent_testing.showcase:Showcase
"""


@pytest.fixture(params=["sqlite", "postgres with a worker"])
def options(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """How `agent serve` is started: as on a laptop, or as for a team."""
    if request.param == "sqlite":
        return ()
    pytest.importorskip("dbos")
    try:
        return ("--store", create_database(shared_server()), "--workers", "1")
    except StoreUnavailable as error:
        pytest.skip(str(error))


def add_mcp_server(page: Page, command: str) -> None:
    """Add a server of tools by the form of the page, and approve it."""
    page.click("nav >> text=Settings")
    page.click(".sections >> text=MCP servers")
    page.fill("[name=name]", "kitchen")
    page.fill("[name=line]", command)
    page.click(".new-thing button")
    page.click(".card >> text=Approve")
    page.wait_for_selector(".card >> text=Brew tea.")
    page.click(".card >> text=Approve")
    page.wait_for_selector(".things li:has-text('kitchen') >> text=ready")


def test_a_newcomer_gets_along(
    options: tuple[str, ...], tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    pytest.importorskip("mcp_tools")
    about = tmp_path / "site" / "showcase-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: showcase\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(PLUGINS)
    with ScriptedServer() as model:
        home = Home(tmp_path / "home", model.url)
        home.set(f'[plugins.files_tool]\nroots = ["{home.project}"]\n')
        home.environment["PYTHONPATH"] = str(tmp_path / "site")
        file, kitchen = home.project / "greet.py", home.project / "kitchen.py"
        file.write_text('def greet(name):\n    print("Hello " + name)\n')
        kitchen.write_text(KITCHEN)
        edit = {"path": "greet.py", "old": '"Hello " + name', "new": 'f"Hello, {name}!"'}
        reading = ToolCall("read_file", {"path": "greet.py"}, "c1")
        model.play(
            chat_reply("Good morning!"),
            chat_reply("I look at it.", tool_calls=[reading]),
            chat_reply("I change it.", tool_calls=[ToolCall("edit_file", edit, "c2")]),
            chat_reply("It greets politely now."),
        )
        with home.serve(*options) as link:
            page = open_page(link)

            say(page, "Good morning")
            page.wait_for_selector(".answer >> text=Good morning!")
            is_over(page)

            say(page, "Make greet.py politer")
            page.wait_for_selector(".approval")
            assert '"Hello " + name' in file.read_text()
            page.press(".approval .question", "End")  # what it asks is read before one can say yes
            page.click(".approval .primary")
            page.wait_for_selector(".answer >> text=It greets politely now.")
            is_over(page)
            assert 'f"Hello, {name}!"' in file.read_text()

            page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
            page.goto(page.url.partition("#")[0])
            page.wait_for_selector(".welcome")
            page.click("header .narrow")
            page.fill("#search", "politely")
            wait(lambda: page.locator(".session mark").count() == 1)
            page.click(".session .open")
            page.wait_for_selector(".answer >> text=It greets politely now.")

            page.set_viewport_size({"width": 1280, "height": 800})
            page.click("header .menu summary")
            page.click("header .menu >> text=All inputs")
            page.fill("dialog [name=the_text]", "plain")
            page.click("dialog .primary")
            page.wait_for_selector(".note >> text=form [")

            add_mcp_server(page, f"{sys.executable} {kitchen}")
            page.close()
