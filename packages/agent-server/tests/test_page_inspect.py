"""The drawer that shows what happened in a session, in a real browser."""

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
    page.click("[role=tab] >> text=Requests")
    page.wait_for_selector(".inspected summary >> text=note milk")
    page.wait_for_selector(".inspected summary >> text=tool note")
    no_findings(page)
    page.keyboard.press("Escape")

    page.wait_for_selector(".inspect", state="detached")


def test_the_times_of_any_run_of_the_session_are_shown(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    script = [Reply(tool_calls=[ToolCall("note", {"text": "milk"})]), "noted", "you are welcome"]
    page = open_page(serve_it(script, plugins=[Notes()]))
    for text, answer in (("note milk", "noted"), ("thanks", "you are welcome")):
        say(page, text)
        page.wait_for_selector(f".answer >> text={answer}")
        is_over(page)

    page.click("text=Inspect")
    page.click("[role=tab] >> text=Trace")
    page.wait_for_selector(".waterfall text >> text=/^run of/")
    runs = page.locator(".inspected select option")
    assert runs.count() == 2
    assert "natural end" in runs.nth(0).inner_text()
    assert page.locator(".waterfall text >> text=tool note").count() == 0
    page.select_option(".inspected select", index=1)
    page.wait_for_selector(".waterfall text >> text=tool note")
    assert page.locator(".waterfall text >> text=/^step/").count() == 2
    no_findings(page)
    page.select_option(".inspected select", index=0)
    page.wait_for_selector(".waterfall text >> text=tool note", state="detached")


def test_the_request_of_an_answer_is_shown_with_what_it_used_and_an_edit_says_what_it_keeps(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    usage = {"input_tokens": 1200, "cached_input_tokens": 1000, "output_tokens": 3}
    key = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123"
    page = open_page(serve_it(["first", Reply(text="second", usage=usage)]))
    for text, answer in ((f"my key is {key}", "first"), ("and now?", "second")):
        say(page, text)
        page.wait_for_selector(f".answer >> text={answer}")
        is_over(page)

    page.click("text=Inspect")
    page.click("[role=tab] >> text=Requests")
    page.wait_for_selector(".inspected summary >> text=second")  # what would be sent next has all
    page.select_option(".inspected select", label="for message 4: second")
    page.wait_for_selector("text=Rebuilt from the stored messages")
    page.wait_for_selector("text=1,200 tokens sent, 1,000 of them from its cache")
    assert page.locator(".inspected summary >> text=second").count() == 0
    assert page.locator(".inspected summary >> text=and now?").count() == 1
    assert key not in page.inner_text(".inspected")
    no_findings(page)
    page.keyboard.press("Escape")

    page.click(".said:has-text('and now?') >> text=Edit")
    page.wait_for_selector(".edit-plan >> text=2 messages before it are sent again as before")
    page.wait_for_selector(".edit-plan >> text=1 later message stays in this branch")
    no_findings(page)
