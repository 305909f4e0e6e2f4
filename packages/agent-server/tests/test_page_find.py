"""Finding sessions and commands in the page, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from page_test import IN_A_BROWSER, browser, is_over, no_findings, open_page, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from agent_server.testing import Served, Serving

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER


def titles(page: Page) -> list[str]:
    return page.locator(".session .title").all_inner_texts()


def with_sessions(served: Served, page: Page, *names: str) -> None:
    for name in names:
        session = served.new_session(title=name)
        served.ask(session, f"words about {name.lower()}")
    page.reload()
    wait(lambda: len(titles(page)) == len(names))


def test_sessions_are_pinned_put_into_folders_tagged_and_archived(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it(["one", "two", "three"])
    page = open_page(served)
    with_sessions(served, page, "Apples", "Pears", "Plums")

    page.click("[aria-label='More for Apples']")
    page.click(".row-menu >> text=/^Pin$/")
    page.wait_for_selector("nav >> text=Pinned")
    assert titles(page)[0] == "Apples"
    page.click("[aria-label='More for Pears']")
    page.fill(".row-menu [name=folder]", "Fruit")
    page.fill(".row-menu [name=tags]", "green sweet")
    no_findings(page)
    page.click(".row-menu >> text=Save")
    page.wait_for_selector(".session:has-text('Pears') >> text=Fruit · #green · #sweet")
    page.select_option("[aria-label=Folder]", "Fruit")
    wait(lambda: titles(page) == ["Pears"])
    page.select_option("[aria-label=Folder]", "")
    page.select_option("[aria-label=Tag]", "sweet")
    wait(lambda: titles(page) == ["Pears"])
    page.select_option("[aria-label=Tag]", "")
    wait(lambda: len(titles(page)) == 3)
    page.click("[aria-label='More for Plums']")
    page.click(".row-menu >> text=Move to archive")
    wait(lambda: sorted(titles(page)) == ["Apples", "Pears"])
    page.check("nav >> text=Archive")
    wait(lambda: titles(page) == ["Plums"])


def test_many_sessions_are_archived_and_deleted_at_once(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it(["one", "two", "three"])
    page = open_page(served)
    with_sessions(served, page, "Apples", "Pears", "Plums")

    page.click("nav >> text=Select")
    page.check("[aria-label='Select Apples']")
    page.check("[aria-label='Select Pears']")
    page.wait_for_selector("text=2 selected")
    page.click(".bulk >> text=Move to archive")
    wait(lambda: titles(page) == ["Plums"])
    page.check(".filters >> text=Archive")
    wait(lambda: sorted(titles(page)) == ["Apples", "Pears"])
    page.check(".bulk input")
    no_findings(page)
    page.click(".bulk >> text=Delete")
    page.click(".bulk .danger")
    page.wait_for_selector("text=No session contains these words.")

    assert [info.title for info in served.app.list_sessions(None).sessions] == ["Plums"]


def test_a_session_is_exported_and_imported(
    serve_it: Serving, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    served = serve_it(["an answer to keep"])
    page = open_page(served)
    with_sessions(served, page, "Apples")

    page.click("[aria-label='More for Apples']")
    with page.expect_download() as download:
        page.click(".row-menu >> text=Export as ZIP")
    file = tmp_path / "session.zip"
    download.value.save_as(file)
    page.set_input_files("input.import", file)
    page.wait_for_selector(".answer >> text=an answer to keep")

    wait(lambda: len(titles(page)) == 2)


def test_the_palette_and_shortcuts_reach_everything(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    served = serve_it(["about apples", "hello"])
    page = open_page(served)
    with_sessions(served, page, "Orchard")

    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette [role=option] >> text=Settings")
    no_findings(page)
    page.keyboard.type("apples")
    page.wait_for_selector(".palette [role=option] >> text=Orchard")
    wait(lambda: page.locator(".palette [role=option]").count() == 1)
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer >> text=about apples")
    page.keyboard.press("Control+Shift+O")
    page.wait_for_selector(".welcome")
    say(page, "hello")
    is_over(page)
    page.keyboard.press("Control+/")
    page.wait_for_selector(".help >> text=Ctrl+K")
    no_findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector(".help", state="detached")
    page.keyboard.press("Control+,")
    page.wait_for_selector("h1 >> text=Settings")
    page.keyboard.press("Control+Shift+F")

    wait(lambda: page.evaluate("() => document.activeElement.id") == "search")
