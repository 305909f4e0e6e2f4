"""The languages of the page, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_core.testing import Reply, ToolCall
from agent_server.testing import ASKS, Notes
from agent_server.testing.page import IN_A_BROWSER, is_over, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


def test_the_browsers_language_is_spoken_and_another_can_be_chosen(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    script = [Reply(tool_calls=[ToolCall("note", {"text": "milk"})]), "fertig"]
    page = open_page(serve_it(script, plugins=[Notes()], config=ASKS), locale="de-AT")

    assert page.locator("html").get_attribute("lang") == "de"
    assert page.locator("#search").get_attribute("placeholder") == "Alle Sitzungen durchsuchen"
    say(page, "notiere Milch")
    page.wait_for_selector(".approval >> text=Ja, einmal")
    page.wait_for_selector(".approval >> text=Zustimmung nötig")
    page.fill("#composer", "ein Entwurf")
    page.select_option(".language select", "en")
    page.wait_for_selector(".approval >> text=Yes, once")
    assert page.input_value("#composer") == "ein Entwurf"
    page.click(".approval .primary")
    page.wait_for_selector("text=fertig")
    is_over(page)
    page.reload()
    page.wait_for_selector(".call >> text=done")

    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("locale", ["en-GB", "de-AT"])
def test_the_choices_of_theme_and_language_are_not_cut_off(
    serve_it: Serving, open_page: Callable[..., Page], locale: str
) -> None:
    page = open_page(serve_it(["fine"]), locale=locale)

    for name in (".theme select", ".language select"):
        there, needed = page.locator(name).evaluate(
            "(it) => { const there = it.offsetWidth; it.style.width = 'max-content';"
            " const needed = it.offsetWidth; it.style.width = ''; return [there, needed]; }"
        )
        assert needed <= there, f"{name} needs {needed} px and has {there}"
