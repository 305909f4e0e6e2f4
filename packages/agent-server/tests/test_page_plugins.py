"""A plugin that uses every element, drawn by the page in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say, wait
from agent_testing.showcase import Showcase, ShowcaseDesk

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


@pytest.fixture
def showcase() -> Showcase:
    return Showcase()


@pytest.fixture
def page(serve_it: Serving, open_page: Callable[..., Page], showcase: Showcase) -> Page:
    opened = open_page(serve_it(["an answer"], plugins=[showcase, ShowcaseDesk()]))
    say(opened, "hello")
    is_over(opened)
    opened.wait_for_selector("header >> text=Actions")
    return opened


def begin(page: Page, label: str) -> None:
    page.click("header >> text=Actions")
    page.click(f"header .menu >> text={label}")


def test_a_form_has_a_widget_for_every_input(page: Page, showcase: Showcase) -> None:
    begin(page, "All inputs")
    page.wait_for_selector("dialog >> text=All widgets")
    no_findings(page)
    page.fill("dialog [name=the_text]", "plain")
    page.fill("dialog textarea", "two\nlines")
    page.fill("dialog [type=password]", "hidden")
    page.check("dialog [type=checkbox]")
    page.select_option("dialog [name=the_select]", "cold")
    page.select_option("dialog [name=the_session]", index=1)
    page.set_input_files("dialog [type=file]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    page.click("dialog .primary")
    page.wait_for_selector("text=form [")

    action, params = showcase.calls[-1]
    session = page.url.partition("#s=")[2]
    assert action == "form"
    assert {
        name: params[f"the_{name}"]
        for name in ("text", "textarea", "password", "number", "checkbox", "select")
    } == {
        "text": "plain",
        "textarea": "two\nlines",
        "password": "hidden",
        "number": 3,
        "checkbox": True,
        "select": "cold",
    }
    assert params["the_session"] == session
    assert params["the_file"]


def test_what_wants_to_be_confirmed_asks_and_cards_replace_each_other(page: Page, showcase: Showcase) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    begin(page, "Wipe")
    page.wait_for_selector("dialog >> text=Really wipe it?")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert showcase.calls == []

    begin(page, "Show card")
    page.wait_for_selector(".card strong >> text=bold")
    assert "(example.test)" in page.inner_text(".card")
    page.click(".card >> text=Copy it")
    page.wait_for_selector(".card >> text=Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == "the text"
    no_findings(page)
    page.click(".card >> text=Wipe now")
    page.click("dialog >> text=Yes: Wipe")
    page.wait_for_selector(".card.success >> text=wiped")

    assert page.locator(".card").count() == 1
    assert [action for action, _ in showcase.calls] == ["card", "wipe"]


def test_cards_are_banners_and_dialogs_and_errors_are_shown(page: Page) -> None:
    begin(page, "Show banner")
    page.wait_for_selector(".banners .card >> text=shown as banner")
    page.click(".banners >> text=Close")
    begin(page, "Show modal")
    page.wait_for_selector("dialog .card >> text=shown as modal")
    no_findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    begin(page, "Show error")
    page.wait_for_selector(".note.error >> text=the pen is broken")

    assert page.locator(".card").count() == 0


def test_actions_stand_at_messages_sessions_and_the_application(page: Page, showcase: Showcase) -> None:
    page.click(".answer >> text=Look closer")
    wait(lambda: showcase.calls == [("look", {"message_index": 1})])

    page.click("nav >> text=New session")
    page.wait_for_selector(".welcome")
    page.click(".session [title=More]")
    page.click(".row-menu >> text=Stamp it")
    page.wait_for_selector(".answer >> text=an answer")
    for label, seen in (
        ("Do toast", ".toast >> text=a toast"),
        ("Do open_url", ".card >> text=(example.test)"),
        ("Do strange", ".toast >> text=strange"),
        ("Do navigate", "h1 >> text=Settings"),
    ):
        page.click("nav .menu summary")
        page.click(f"nav .menu >> text={label}")
        page.wait_for_selector(seen)


def test_plugins_suggest_what_to_write(page: Page) -> None:
    page.click("#composer")
    page.keyboard.type("paint /col")
    page.wait_for_selector(".suggestions >> text=colour")
    no_findings(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    wait(lambda: page.input_value("#composer") == "paint /colour red ")
    page.keyboard.type("or /col")
    page.wait_for_selector(".suggestions >> text=collect")
    page.keyboard.press("Escape")
    page.wait_for_selector(".suggestions", state="detached")

    assert page.input_value("#composer") == "paint /colour red or /col"
