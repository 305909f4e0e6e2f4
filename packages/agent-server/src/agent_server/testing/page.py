"""For tests of the page: Chromium of this machine, and a few words for using the built page.

A test module of a browser begins with `pytestmark = IN_A_BROWSER`, and its `conftest.py` imports the fixtures
`browser` and `open_page`. Needs the packages `pytest` and `playwright`, which the extra `testing` installs.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_server.routes.page import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

    from agent_server.testing.server import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (apt-get install chromium)"),
    pytest.mark.skipif(not (FOLDER / "index.html").exists(), reason="the page is not built (make page)"),
]
DESKTOP = (1280, 800)
PHONE = (390, 844)
_PATIENCE = 60.0
_AXE = FOLDER.parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module; while it is open, no event loop can be started here."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Log a new browser in; in the end its console must have been silent."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_(at: Served | str, width: int = DESKTOP[0], height: int = DESKTOP[1], **more: Any) -> Page:
        link = at if isinstance(at, str) else f"{at.url}/login?code={at.access.new_link()}"
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        page = context.new_page()
        listen(page, complaints)
        page.goto(link)
        page.wait_for_selector("#composer")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not complaints, f"the page complained: {complaints}"


def listen(page: Page, complaints: list[str]) -> None:
    """Collect what a page complains about: errors and warnings of its console, exceptions, and dialogs."""
    page.set_default_timeout(_PATIENCE * 1000)
    page.on(
        "console",
        lambda line: complaints.extend([f"{line.text} {line.location['url']}"] * is_complaint(line)),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))


def is_complaint(line: ConsoleMessage) -> bool:
    """Say whether a line of the console is a mistake of the page.

    A network that a test cuts is none, and neither is a value that the server refuses, which the page shows.
    """
    expected = ("ERR_INTERNET_DISCONNECTED", "status of 422")
    return line.type in ("error", "warning") and not any(one in line.text for one in expected)


def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    page.fill("#composer", text)
    page.press("#composer", "Enter")


def is_over(page: Page) -> None:
    """Wait until the answer is complete and stored: then it can be branched from."""
    page.wait_for_selector(".row:has(.answer) >> nth=-1 >> .tools")
    page.wait_for_selector(".working", state="detached")


def wait(condition: Callable[[], object], what: str = "what was expected") -> None:
    """Wait in Python: the page's policy lets no text be evaluated, not even by Playwright's own waiting.

    Raises:
        AssertionError: If that takes too long.
    """
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} was not seen"
        time.sleep(0.02)


def no_findings(page: Page) -> None:
    """Have axe look at what is on the screen.

    Raises:
        AssertionError: If axe finds something; with the rules and the elements.
    """
    if not _AXE.exists():
        pytest.skip("axe-core is not installed (make page)")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "() => axe.run().then((run) => run.violations.map((one) => [one.id, one.nodes.map((at) => at.html)]))"
    )
    assert not found, f"axe finds: {found}"


def no_findings_in_both_themes(page: Page) -> None:
    """Have axe look at what is on the screen in light and in dark colours."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        no_findings(page)
