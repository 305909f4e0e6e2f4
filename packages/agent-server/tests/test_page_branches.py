"""Where the versions of an answer are switched that begins with a call of a tool, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing import Reply, ToolCall
from agent_server.testing import Notes
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


def test_the_switch_stands_where_the_versions_part_also_if_that_is_a_call(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    def turn(text: str) -> list[Reply | str]:
        return [Reply(tool_calls=[ToolCall("note", {"text": text})]), f"noted {text}"]

    page = open_page(serve_it([*turn("milk"), *turn("bread"), "you are welcome"], plugins=[Notes()]))
    say(page, "shopping")
    page.wait_for_selector(".answer >> text=noted milk")
    is_over(page)

    page.click("text=Answer again")
    page.wait_for_selector(".answer >> text=noted bread")
    is_over(page)
    say(page, "thanks")
    page.wait_for_selector(".answer >> text=you are welcome")
    is_over(page)

    page.wait_for_selector(".row:has(.call) .branches >> text=2/2")
    assert page.locator(".branches").count() == 1
    no_findings(page)
    page.click("[aria-label='Previous branch']")
    page.wait_for_selector(".answer >> text=noted milk")
    page.wait_for_selector(".row:has(.call) .branches >> text=1/2")
