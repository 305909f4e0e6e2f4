"""The page without a network, in a new version, in two tabs, on a phone, in both themes: in a browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from agent_core.testing import Reply, ScriptedProvider
from agent_server.routes import page as page_routes
from agent_server.testing import Paced
from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER
CONTROLLED = "() => navigator.serviceWorker.controller !== null"
KEPT = """async () => { const found = [];
    for (const name of await caches.keys())
        for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
    return found; }"""
UPDATE = "() => navigator.serviceWorker.getRegistration().then((one) => one.update()).then(() => null)"


def test_the_shell_opens_without_a_network_and_nothing_of_the_api_is_kept(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["an answer", "back again"]))
    say(page, "hello")
    is_over(page)
    wait(lambda: page.evaluate(CONTROLLED))

    kept = page.evaluate(KEPT)
    assert "/" in kept
    assert [path for path in kept if path != "/" and not path.startswith("/page/")] == []
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("#composer")
    page.wait_for_selector("text=Connection lost")
    page.context.set_offline(False)
    page.wait_for_selector(".answer >> text=an answer")
    page.wait_for_selector("text=Connection lost", state="detached")
    say(page, "and now?")
    page.wait_for_selector("text=back again")


def test_a_new_version_is_offered_and_taken(
    serve_it: Serving, open_page: Callable[..., Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(serve_it(["an answer"]))
    wait(lambda: page.evaluate(CONTROLLED))
    newer = tmp_path / "newer"
    shutil.copytree(page_routes.FOLDER, newer)
    worker = newer / "worker.js"
    worker.write_text(worker.read_text().replace('NAME = "shell ', 'NAME = "shell newer '))
    html = newer / "index.html"
    html.write_text(html.read_text().replace("<head>", '<head><meta name="generator" content="newer">'))

    monkeypatch.setattr(page_routes, "FOLDER", newer)
    page.evaluate(UPDATE)
    page.wait_for_selector(".toast >> text=new version")
    no_findings(page)
    page.click(".toast >> text=Reload")
    wait(lambda: page.locator("meta[name=generator]").count() == 1)
    page.wait_for_selector("#composer")

    assert page.locator(".toast").count() == 0


def test_two_tabs_show_the_same_running_answer_once(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    paced = Paced()
    served = serve_it(
        provider=ScriptedProvider([Reply(chunks=["one ", "two ", "three"], delay=0.01)], sleep=paced)
    )
    first = open_page(served)
    say(first, "count")
    paced.release(1)
    first.wait_for_selector("text=one")
    second = open_page(served, 390, 844)
    second.goto(first.url)
    second.wait_for_selector("text=one")
    paced.release(100)
    for page in (first, second):
        is_over(page)
        assert page.inner_text(".answer .markdown").split() == ["one", "two", "three"]
        assert (page.locator(".answer").count(), page.locator(".said").count()) == (1, 1)


def test_a_phone_with_its_keyboard_open_shows_what_is_written(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["word " * 300]), 390, 844)
    say(page, "hello")
    is_over(page)

    page.set_viewport_size({"width": 390, "height": 400})
    page.fill("#composer", "what I write")
    box = page.locator("#composer").bounding_box()
    transcript = page.locator(".transcript").bounding_box()
    assert box is not None
    assert transcript is not None
    assert box["y"] + box["height"] <= 400
    assert transcript["height"] > 100
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_a_theme_is_chosen_and_text_from_right_to_left_is_set_so(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["مرحبا بالعالم"]), color_scheme="light")
    say(page, "שלום")
    is_over(page)

    direction = "(one) => getComputedStyle(one).direction"
    assert page.locator(".said .plain").evaluate(direction) == "rtl"
    assert page.locator(".answer .markdown").evaluate(direction) == "rtl"
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.select_option(".theme select", "dark")
    assert page.evaluate(ground) != light
    no_findings(page)
    page.reload()
    page.wait_for_selector(".answer")
    assert page.evaluate(ground) != light
