"""The drawer that shows what happened in a session, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notes_tool import Notes

from agent_core.testing import Reply, ToolCall
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER


def test_events_times_tokens_plugins_and_the_next_request_are_shown(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    script = [Reply(tool_calls=[ToolCall("note", {"text": "milk"})]), "noted"]
    page = open_page(serve_it(script, plugins=[Notes()]))
    say(page, "note milk")
    page.wait_for_selector("text=noted")
    is_over(page)

    page.click("text=Inspect")
    page.click(".events >> text=tool_call_result")
    page.wait_for_selector(".events pre >> text=written: milk")
    page.fill(".inspect [type=search]", "run_start")
    page.wait_for_selector(".events >> text=tool_call_result", state="detached")
    no_findings(page)
    page.click("[role=tab] >> text=Trace")
    page.wait_for_selector(".waterfall text >> text=note")
    no_findings(page)
    page.click("[role=tab] >> text=Tokens")
    page.wait_for_selector(".tokens tbody tr >> nth=1")
    page.click("[role=tab] >> text=Plugins")
    page.wait_for_selector(".plugin-order li:has-text('notes') >> text=/^on$/")
    page.click("[role=tab] >> text=Next request")
    page.wait_for_selector(".inspected summary >> text=note milk")
    page.wait_for_selector(".inspected summary >> text=tool note")
    no_findings(page)
    page.keyboard.press("Escape")

    page.wait_for_selector(".inspect", state="detached")
