"""A login as a person sees it in a chat: a card with the code, a link, a copy and a check; then an answer."""

from __future__ import annotations

import base64
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = """
model = "house"
[models.house]
provider = "openai_compatible"
model = "m"
config = {{ base_url = "{model}/v1", api_key = "oauth:house" }}

[plugins.oauth_login.oauth_servers.house]
issuer = "{issuer}"
client_id = "keelwork"
scopes = ["read"]
"""
BROWSER = """#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer(otherwise=chat_reply("Welcome, Ada.")) as server:
        yield server


@pytest.fixture
def terminal(authority: Any, model: ScriptedServer, tmp_path: Path) -> Iterator[Terminal]:
    """A chat of somebody who has a desktop, settings, and no login."""
    settings = tmp_path / "config" / "agent" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS.format(model=model.url, issuer=authority.url))
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o700)
    places = {
        f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_", "XDG_"))}
    desktop = {"DISPLAY": ":99", "BROWSER": str(browser)}
    environment = {**kept, **places, **desktop, "HOME": str(tmp_path), "AGENT_KEYRING": "off"}
    command = [sys.executable, "-m", "agent_terminal_app", "chat"]
    with Terminal(command, environment=environment, folder=tmp_path, columns=110, rows=50) as opened:
        opened.expect_line("ready")
        yield opened


def test_a_person_logs_in_and_the_model_answers(
    authority: Any, model: ScriptedServer, terminal: Terminal, tmp_path: Path
) -> None:
    authority.interval = 0
    terminal.type("Hello\r")
    terminal.expect_line(".*/oauth_login.login server=house in a chat")
    assert "needs a login" in terminal.text
    assert "keys set" not in terminal.text and "install" not in terminal.text

    terminal.type("/oauth_login.login server=house\r")
    terminal.expect_line(".*Login at house")
    terminal.expect_line(r".*\[3\] Check status")
    [code] = [one.get_user_code() for one in authority.device_codes.values()]
    assert f"enter the code {code}" in terminal.text

    terminal.type("2")
    terminal.expect_line("Copied 9 characters")
    assert b"\x1b]52;c;" + base64.b64encode(code.encode()) + b"\x07" in terminal.raw

    terminal.type("/3\r")
    terminal.expect_line(".*The login is not finished yet")

    terminal.type("/1\r")  # the card and its choices stay
    terminal.expect_line(".*reached without encryption. Open it anyway")
    terminal.type("y\r")
    terminal.expect_line("Opened 127.0.0.1:")
    terminal.wait(lambda: authority.approved)
    terminal.type("/3\r")
    terminal.expect_line(".*You are logged in")

    terminal.type("Hello again\r")
    terminal.expect_line("Welcome, Ada.")
    [token] = [one.token["access_token"] for one in authority.refresh_tokens.values()]
    assert model.requests[-1].headers["authorization"] == f"Bearer {token}"
    assert token not in terminal.text
    [kept] = (tmp_path / "data" / "agent" / "oauth").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
