"""Other agents at work, plans, and approvals that somebody answers elsewhere, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_server.testing import ASKS, Notes, Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER
AGENTS = {
    "main": {"model": "m", "delegates": ["helper"], "handoffs": ["other"]},
    "helper": {"model": "m", "description": "Helps."},
    "other": {"model": "m", "description": "Takes over."},
}


def test_what_a_delegate_does_is_nested_in_its_call_also_after_a_reload(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    script: list[Any] = [
        Reply(tool_calls=[ToolCall("delegate_helper", {"prompt": "shop"})]),
        Reply(text="I look.", tool_calls=[ToolCall("note", {"text": "milk"})]),
        Reply(chunks=["almost ", "done"], delay=0.01),
        "all done",
    ]
    provider = ScriptedProvider(script, sleep=paced)
    page = open_page(serve_it(provider=provider, plugins=[Notes()], config={"agents": AGENTS}))
    say(page, "go")
    paced.release(1)
    page.wait_for_selector(".call.running > summary >> text=almost")  # seen without opening it
    page.click(".call.running > summary")
    page.wait_for_selector(".call .inner >> text=I look.")
    page.wait_for_selector(".call .inner .call >> text=note(text='milk')")
    no_findings(page)

    page.reload()
    page.click(".call.running > summary")
    page.wait_for_selector(".call .inner >> text=I look.")
    assert page.locator(".call .inner .call").count() == 1
    paced.release(100)
    page.wait_for_selector(".answer >> text=all done")
    is_over(page)

    page.click(".call .inner .call > summary")
    page.wait_for_selector(".call .inner .call >> text=written: milk")
    assert page.locator(".row > .call").count() == 1


def test_a_handoff_is_said_when_it_happens_and_its_agent_answers(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    script = [
        Reply(tool_calls=[ToolCall("transfer_to_other", {})]),
        Reply(chunks=["other ", "speaks"], delay=0.01),
    ]
    page = open_page(serve_it(provider=ScriptedProvider(script, sleep=paced), config={"agents": AGENTS}))
    say(page, "go")
    paced.release(1)

    page.wait_for_selector(".note >> text=main hands over to other.")
    paced.release(100)
    page.wait_for_selector(".answer >> text=other speaks")
    is_over(page)
    page.wait_for_selector(".call >> text=transfer_to_other()")


def plan(*states: str) -> ToolCall:
    items = [
        {"text": text, "state": state} for text, state in zip(("boil", "brew", "pour"), states, strict=True)
    ]
    return ToolCall("write_todos", {"items": items})


def test_a_plan_is_a_checklist_that_follows_the_work(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    todo = pytest.importorskip("todo_tool")
    paced = Paced()
    script: list[Any] = [
        Reply(tool_calls=[plan("in_progress", "pending", "pending")]),
        Reply(chunks=["I ", "boil"], tool_calls=[plan("done", "in_progress", "pending")], delay=0.01),
        "enough for now",
    ]
    config = {"agents": {"main": {"model": "m", "plugin_ids": ["todo_tool"]}}}
    served = serve_it(provider=ScriptedProvider(script, sleep=paced), plugins=[todo.TodoTool], config=config)
    page = open_page(served)
    say(page, "tea")
    paced.release(1)

    page.wait_for_selector(".plan summary >> text=Plan: 0 of 3 done")
    page.click(".plan summary")
    page.wait_for_selector(".plan li.in_progress >> text=boil")
    no_findings(page)
    paced.release(100)
    page.wait_for_selector(".plan summary >> text=Plan: 1 of 3 done")
    page.wait_for_selector(".plan li.in_progress >> text=brew")
    page.wait_for_selector(".answer >> text=enough for now")
    is_over(page)
    page.reload()  # the session keeps it
    page.wait_for_selector(".plan summary >> text=Plan: 1 of 3 done")


def test_an_approval_that_another_front_end_answers_goes_away_here(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    notes = Notes()
    script = [Reply(tool_calls=[ToolCall("note", {"text": "milk"})]), "noted"]
    served = serve_it(script, plugins=[notes], config=ASKS)
    page = open_page(served)
    say(page, "note milk")
    page.wait_for_selector(".approval >> text=milk")
    other = open_page(served)
    other.goto(page.url)
    other.wait_for_selector(".approval >> text=milk")

    [approval] = served.app.approvals(page.url.partition("#s=")[2])
    answer = served.client.post(
        f"/v1/approvals/{approval.id}?session_id={approval.session_id}", json={"approved": True}
    )

    assert answer.is_success, answer.text
    for one in (page, other):
        one.wait_for_selector(".approval", state="detached")
        one.wait_for_selector(".answer >> text=noted")
    assert notes.written == ["milk"]
