"""What the tests of the page share: Chromium of this machine, and a few words for using the built page."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_server.routes.page import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

    from agent_server.testing import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (apt-get install chromium)"),
    pytest.mark.skipif(not (FOLDER / "index.html").exists(), reason="the page is not built (make page)"),
]
ASKS = {"permissions": {"default": "ask"}}
AXE = FOLDER.parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


class Notes:
    """A tool that is asked about, and a form with a card as its answer."""

    name = "notes"
    version = "1"

    def __init__(self) -> None:
        self.written: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        properties = {"text": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["text"]}
        function = {"name": "note", "description": "Write a note.", "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["text"] == "fail":
            return {"success": False, "error": "the pen is broken"}
        self.written.append(arguments["text"])
        return {"success": True, "result": f"written: {arguments['text']}"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
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

    def open_(served: Served, width: int = 1280, height: int = 800, **more: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda line: complaints.extend([line.text] * is_complaint(line)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(f"{served.url}/login?code={served.access.new_link()}")
        page.wait_for_selector("#composer")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def is_complaint(line: ConsoleMessage) -> bool:
    """Say whether a line of the console is a mistake of the page; a network that a test cuts is none."""
    return line.type in ("error", "warning") and "ERR_INTERNET_DISCONNECTED" not in line.text


def say(page: Page, text: str) -> None:
    page.fill("#composer", text)
    page.press("#composer", "Enter")


def is_over(page: Page) -> None:
    """Wait until the answer is complete and stored: then it can be branched from."""
    page.wait_for_selector(".answer .tools >> nth=-1")
    page.wait_for_selector(".working", state="detached")


def wait(condition: Callable[[], bool]) -> None:
    """Wait in Python: the page's policy lets no text be evaluated, not even by Playwright's own waiting."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def no_findings(page: Page) -> None:
    """Have axe look at what is on the screen."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (make page)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((run) => run.violations.map((one) => [one.id, one.nodes.map((at) => at.html)]))"
    )
    assert found == []


def no_findings_in_both_themes(page: Page) -> None:
    """Have axe look at what is on the screen in light and in dark colours."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        no_findings(page)
