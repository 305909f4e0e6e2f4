"""A login as a person sees it in a browser: the same card, with a link, a button that copies, and a check."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from agent_server import LocalAccess, background, create_server, new_token
from agent_server.routes.page import FOLDER
from oauth_login import OAuthLogin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from oauth_login import TokenStore

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (apt-get install chromium)"),
    pytest.mark.skipif(not (FOLDER / "index.html").exists(), reason="the page is not built (make page)"),
]


@pytest.fixture
def address(authority: Any, store: TokenStore, tmp_path: Path) -> Iterator[str]:
    """Serve an application with the plugin, and return a link that logs a browser in."""
    config = {
        "agents": {"helper": {"model": "small"}},
        "models": {"small": {"provider": "scripted"}},
        "plugins": {
            "oauth_login": {"oauth_servers": {"house": {"client_id": "keelwork", "issuer": authority.url}}}
        },
    }
    plugins: dict[str, list[Any]] = {
        "providers": [ScriptedProvider(["Hello."])],
        "applications": [OAuthLogin(store)],
    }
    access = LocalAccess(new_token())
    with (
        AgentApplication(
            config, store=f"sqlite:///{tmp_path}/app.db", plugins=plugins, installed=False
        ) as app,
        background(create_server(app, access)) as url,
    ):
        yield f"{url}/login?code={access.new_link()}"


@pytest.fixture
def page(address: str) -> Iterator[Page]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        opened = context.new_page()
        opened.set_default_timeout(60_000)
        opened.goto(address)
        opened.wait_for_selector("#composer")
        yield opened
        browser.close()


def test_a_person_logs_in_with_the_card(authority: Any, store: TokenStore, page: Page) -> None:
    authority.interval = 0
    page.fill("#composer", "hello")
    page.press("#composer", "Enter")
    page.wait_for_selector("text=Hello.")

    page.click("text=Actions")
    page.click("text=Log in")
    page.fill("dialog [name=server]", "house")
    page.click("dialog .primary")
    page.wait_for_selector(".card >> text=Login at house")
    [code] = [one.get_user_code() for one in authority.device_codes.values()]
    assert f"enter the code {code}" in page.inner_text(".card")

    page.click(".card >> text=Copy code")
    page.wait_for_selector(".card >> text=Copied")
    page.click(".card >> text=Check status")
    page.wait_for_selector("text=The login is not finished yet")

    with page.expect_popup() as opened:
        page.click(".card >> text=Open link")
    assert "Thank you." in opened.value.inner_text("body")
    assert authority.approved
    page.click(".card >> text=Check status")
    page.wait_for_selector("text=You are logged in.")

    token = store.get("house")
    assert token is not None
    assert token["access_token"] not in page.content()
