"""A session of 5,000 messages in a real browser: read in pages, drawn where somebody looks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agent_core import Message, Session
from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Served, Serving

pytestmark = IN_A_BROWSER
MESSAGES = 5_000
TOP_ROW = """() => { const box = document.querySelector('.transcript');
    const edge = box.getBoundingClientRect().top;
    const row = [...box.querySelectorAll('.row')].find((one) => one.getBoundingClientRect().bottom > edge);
    return row === undefined ? null : [row.innerText.split('\\n')[0], row.getBoundingClientRect().top]; }"""
TO_TOP = "() => { document.querySelector('.transcript').scrollTop = 0; }"
BELOW = """() => { const box = document.querySelector('.transcript');
    return box.scrollHeight - box.scrollTop - box.clientHeight; }"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
SCROLL_UP = "() => { document.querySelector('.transcript').scrollTop -= 300; }"


def store_long_session(served: Served, messages: int = MESSAGES) -> str:
    begun = served.app.create_session()
    words = ["\n\n".join([f"message {number}"] * (1 + number % 4)) for number in range(messages)]
    said = [Message(("user", "assistant")[number % 2], text) for number, text in enumerate(words)]
    served.app.save_session(Session(begun.session_id, said, begun.metadata))
    return begun.session_id


def open_session(page: Page, served: Served, session: str) -> list[str]:
    """Open a session; return the list of requests that are made from then on."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.url}/#s={session}")
    page.wait_for_selector(".row")
    return asked


def settled_top(page: Page) -> tuple[str, float]:
    """Return the first row on the screen and its place, once rows that were just drawn are measured."""
    found: list[Any] = [None, page.evaluate(TOP_ROW)]

    def is_settled() -> bool:
        page.evaluate(FRAMES)
        found.append(page.evaluate(TOP_ROW))
        return bool(found[-1] is not None and found[-1] == found[-2])

    wait(is_settled)
    return found[-1][0], found[-1][1]


def test_a_long_session_opens_at_its_end_and_reads_what_is_looked_at(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it()
    session = store_long_session(served)
    page = open_page(served)

    asked = open_session(page, served, session)
    page.wait_for_selector("text=message 4999")
    pages = [url for url in asked if "/messages?" in url]
    assert len(pages) == 1
    assert page.locator(".row").count() < 60
    for _ in range(3):
        first = page.evaluate(TOP_ROW)[0]
        page.evaluate(TO_TOP)
        wait(lambda first=first: page.evaluate(TOP_ROW)[0] != first)  # type: ignore[misc]
    page.click("text=Newest")
    page.wait_for_selector("text=message 4999")

    assert 1 < len([url for url in asked if "/messages?" in url]) < 10
    assert page.locator(".row").count() < 60


def test_scrolling_up_goes_through_every_message_in_order(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it()
    page = open_page(served)
    open_session(page, served, store_long_session(served, 130))
    page.wait_for_selector("text=message 129")

    seen: list[int] = []
    while 0 not in seen:
        text, _ = page.evaluate(TOP_ROW)
        seen.append(int(text.split()[1]))
        page.evaluate(SCROLL_UP)
        assert len(seen) < 500

    steps = [before - after for before, after in pairwise(seen)]
    assert all(0 <= step < 15 for step in steps), seen


def test_an_answer_that_streams_in_leaves_a_reader_further_up_where_he_is(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    chunks = [f"line {number}\n\n" for number in range(60)]
    served = serve_it(provider=ScriptedProvider([Reply(chunks=chunks, delay=0.01)], sleep=paced))
    page = open_page(served)
    open_session(page, served, store_long_session(served, 200))
    page.wait_for_selector("text=message 199")

    say(page, "go on")
    paced.release(20)
    page.wait_for_selector("text=line 15")
    wait(lambda: page.evaluate(BELOW) < 3)
    for _ in range(6):
        page.evaluate(SCROLL_UP)
    wait(lambda: page.locator(".to-end").count() == 1)
    top = settled_top(page)
    paced.release(100)
    page.wait_for_selector(".working", state="detached")
    now = settled_top(page)
    page.click(".to-end")
    page.wait_for_selector("text=line 59")
    is_over(page)

    assert now[0] == top[0]
    assert abs(now[1] - top[1]) < 2


SCROLL_AND_DRAW = """() => { const box = document.querySelector('.transcript'); const before = box.scrollTop;
    box.scrollTop -= 400; document.querySelector('.show-inspect').click(); return before; }"""
POSITION = "() => document.querySelector('.transcript').scrollTop"


def test_what_is_drawn_before_a_scroll_is_heard_does_not_undo_it(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it()
    page = open_page(served)
    open_session(page, served, store_long_session(served, 100))
    page.wait_for_selector("text=message 99")
    wait(lambda: page.evaluate(BELOW) < 3)
    settled_top(page)

    for _ in range(2):  # from the end, and from further up
        before = page.evaluate(SCROLL_AND_DRAW)
        settled_top(page)

        assert before - page.evaluate(POSITION) > 300
