"""A login as a person sees it in a browser: the same card, with a link, a button that copies, and a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from agent_server import LocalAccess, background, create_server, new_token
from agent_server.testing.page import IN_A_BROWSER, browser, open_page, say
from oauth_login import OAuthLogin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from oauth_login import TokenStore

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER


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


def test_a_person_logs_in_with_the_card(
    authority: Any, store: TokenStore, address: str, open_page: Callable[..., Page]
) -> None:
    authority.interval = 0
    page = open_page(address, permissions=["clipboard-read", "clipboard-write"])
    say(page, "hello")
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
