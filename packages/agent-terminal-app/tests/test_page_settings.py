"""The first run and the settings in the page: `agent serve` in a process of its own, and a real browser."""

from __future__ import annotations

import os
import sys
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_server.testing.page import IN_A_BROWSER, browser, no_findings, open_page, wait
from agent_terminal_app.testing.home import KITCHEN, serving
from agent_testing.chat import chat_reply
from agent_testing.replies import json_reply
from agent_testing.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from agent_testing.replies import ServerReply
    from agent_testing.server import ReceivedRequest

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER


@contextmanager
def page_of(home: Path, open_page: Callable[..., Page]) -> Iterator[Page]:
    """Serve the application of a user, and open its page."""
    places = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("data", "config", "state", "cache")}
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    with serving({**kept, **places, "HOME": str(home), "AGENT_KEYRING": "off"}, home) as link:
        page = open_page(link)
        yield page
        page.close()  # before the server leaves


def settings_of(home: Path) -> dict[str, Any]:
    file = home / "config" / "agent" / "config.toml"
    return tomllib.loads(file.read_text()) if file.exists() else {}


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    """A server that lists two models and answers."""
    listed = json_reply({"object": "list", "data": [{"id": "m-1"}, {"id": "m-2"}]})

    def answer(request: ReceivedRequest) -> ServerReply:
        return listed if request.path.endswith("/models") else chat_reply("hello from the server")

    with ScriptedServer(otherwise=answer) as server:
        yield server


def test_the_first_run_connects_a_server_and_escape_leaves_nothing(
    tmp_path: Path, open_page: Callable[..., Page], model: ScriptedServer
) -> None:
    with page_of(tmp_path, open_page) as page:
        page.wait_for_selector(".first-run >> text=A server of your own")
        offered = page.locator(".first-run .choices-list button:not(.found) strong").all_text_contents()
        assert (offered[0], offered[-1]) == ("Embedded model", "A server of your own")
        no_findings(page)
        page.click(".first-run >> text=A server of your own")
        page.fill(".first-run [name=url]", "http://127.0.0.1:1/v1")
        page.click(".first-run >> text=Test")
        page.wait_for_selector(".first-run .failure")
        page.keyboard.press("Escape")
        page.wait_for_selector(".first-run", state="detached")
        assert settings_of(tmp_path) == {}

        page.click("nav >> text=Settings")
        page.click("text=Connect a model")
        page.click(".first-run >> text=A server of your own")
        page.fill(".first-run [name=url]", f"{model.url}/v1")
        page.click(".first-run >> text=Test")
        page.click(".first-run >> text=m-2")
        page.click(".first-run >> text=Start")

        page.click("nav >> text=New session")
        page.fill("#composer", "hi")
        page.press("#composer", "Enter")
        page.wait_for_selector("text=hello from the server")

    saved = settings_of(tmp_path)
    assert saved["models"][saved["model"]]["model"] == "m-2"


def test_the_embedded_model_says_a_word_before_it_is_saved(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    pytest.importorskip("local_llama_provider")
    config = tmp_path / "config" / "agent" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[plugins.local_llama]\nmodel_path = "{tmp_path}/weights.gguf"\n')
    broken = settings_of(tmp_path)

    with page_of(tmp_path, open_page) as page:
        page.click(".first-run >> text=Embedded model")
        page.wait_for_selector(".first-run .failure >> text=is not a file")
        assert settings_of(tmp_path) == broken

        config.write_text("")
        page.click(".first-run >> text=Embedded model")
        page.wait_for_selector(".first-run >> text=Start")

    assert settings_of(tmp_path)["model"] == "local"


@pytest.fixture
def home(tmp_path: Path, model: ScriptedServer) -> Path:
    """A user who has chosen a model."""
    config = tmp_path / "config" / "agent" / "config.toml"
    config.parent.mkdir(parents=True)
    declared = f'provider = "openai_compatible"\nmodel = "m-1"\nconfig = {{ base_url = "{model.url}/v1" }}'
    config.write_text(f'model = "scripted"\n[models.scripted]\n{declared}\n')
    return tmp_path


def test_models_settings_permissions_and_usage_are_arranged(
    home: Path, open_page: Callable[..., Page]
) -> None:
    with page_of(home, open_page) as page:
        assert page.locator(".first-run").count() == 0
        page.fill("#composer", "hi")
        page.press("#composer", "Enter")
        page.wait_for_selector("text=hello from the server")
        page.wait_for_selector(".working", state="detached")

        for form, begins in (("md", "# "), ("html", "<!doctype html>"), ("json", "{")):
            session = page.url.partition("#s=")[2]
            exported = page.request.get(
                f"{page.url.partition('/#')[0]}/v1/sessions/{session}/export?form={form}"
            )
            assert exported.text().startswith(begins)
            assert "hello from the server" in exported.text()

        page.click("nav >> text=Settings")
        page.click(".things li:has-text('scripted') >> text=Test")
        page.wait_for_selector("text=It works.")
        no_findings(page)

        page.click(".sections >> text=All settings")
        page.wait_for_selector("[id='setting ui.theme']")
        assert "default" in page.inner_text(".setting:has([id='setting ui.theme']) .origin")
        page.select_option("[id='setting ui.theme']", "light")
        page.wait_for_selector(".changed >> text=ui.theme is changed")
        assert settings_of(home)["ui"]["theme"] == "light"
        page.click(".changed >> text=Undo")
        wait(lambda: "ui" not in settings_of(home))
        page.fill("[name=name]", "max_steps")
        page.fill("[name=value]", "many")
        page.click(".section >> text=/^Set$/")
        page.wait_for_selector(".section .failure")
        no_findings(page)

        page.click(".sections >> text=Permissions")
        page.fill("[name=pattern]", "shell(ls*)")
        page.click("text=Add rule")
        page.click(".things li:has-text('shell(ls*)') >> text=Revoke")
        page.wait_for_selector("text=Nothing has been granted yet.")
        page.click("text=Undo")
        page.wait_for_selector(".things li:has-text('shell(ls*)')")
        no_findings(page)

        for name in ("Agents", "Plugins", "Providers and keys"):
            page.click(f".sections >> text={name}")
            page.wait_for_selector(".things li h3")
            no_findings(page)
        page.click(".sections >> text=Usage")
        page.wait_for_selector(".chart >> nth=0")
        assert "38 tokens" in page.inner_text(".total")  # of the answer, and of the title
        no_findings(page)


def test_an_mcp_server_is_added_approved_restarted_and_removed(
    home: Path, open_page: Callable[..., Page]
) -> None:
    pytest.importorskip("mcp_tools")
    script = home / "kitchen.py"
    script.write_text(KITCHEN)
    with page_of(home, open_page) as page:
        page.click("nav >> text=Settings")
        page.click(".sections >> text=MCP servers")
        page.wait_for_selector("text=No MCP servers yet.")
        page.fill("[name=name]", "kitchen")
        page.fill("[name=line]", f"{sys.executable} {script}")
        page.fill("[name=values]", "KITCHEN_TOKEN=sk-secret-0123456789abcdef")
        page.click(".new-thing button")
        page.wait_for_selector(".card >> text=kitchen.py")
        declared = settings_of(home)["plugins"]["mcp_tools"]["servers"]["kitchen"]
        assert declared["env"] == {"KITCHEN_TOKEN": "stored:mcp-kitchen-KITCHEN_TOKEN"}
        no_findings(page)
        page.click(".card >> text=Approve")
        page.wait_for_selector(".card >> text=Brew tea.")
        page.click(".card >> text=Approve")
        page.wait_for_selector(".things li:has-text('kitchen') >> text=ready")
        page.wait_for_selector("text=Tools: brew")
        page.click(".things >> text=Test and restart")
        page.wait_for_selector("[role=status] >> text=kitchen is ready")
        page.click(".things >> text=Delete")
        page.wait_for_selector("text=No MCP servers yet.")

    assert "plugins" not in settings_of(home)


def test_an_agent_is_made_changed_copied_and_removed_with_undo(
    home: Path, open_page: Callable[..., Page]
) -> None:
    with page_of(home, open_page) as page:
        page.click("nav >> text=Settings")
        page.click(".sections >> text=Agents")
        page.click("text=New agent")
        page.fill("[name=id]", "reviewer")
        page.fill("[name=system_prompt]", "Look at every line.")
        page.fill("[name=model]", "scripted")
        page.check(".names[aria-label=delegates] >> text=assistant")
        page.fill("[name=max_rounds]", "5")
        page.fill("[name=context_policy]", "{ no json")
        page.wait_for_selector(".agent-form >> text=This is not valid JSON.")
        page.fill("[name=context_policy]", '{"keep_recent": -1}')
        no_findings(page)
        page.click(".agent-form >> text=Save")
        page.wait_for_selector(".schema-field:has([name=context_policy]) [role=alert]")
        assert "agents" not in settings_of(home)
        page.click("[aria-label='Reset context_policy']")
        page.click(".agent-form >> text=Save")
        page.wait_for_selector(".changed >> text=counts from now on")
        written = {
            "system_prompt": "Look at every line.",
            "model": "scripted",
            "delegates": ["assistant"],
            "max_rounds": 5,
        }
        assert settings_of(home)["agents"] == {"assistant": {}, "reviewer": written}
        no_findings(page)

        page.click("[aria-label='Change reviewer']")
        about = page.inner_text(".schema-field:has([name=max_rounds]) .quiet")
        assert "config.toml:" in about
        page.fill("[name=max_rounds]", "7")
        page.click(".agent-form >> text=Save")
        wait(lambda: settings_of(home)["agents"]["reviewer"]["max_rounds"] == 7)
        page.click(".changed >> text=Undo")
        wait(lambda: settings_of(home)["agents"]["reviewer"]["max_rounds"] == 5)

        page.click("[aria-label='Duplicate reviewer']")
        page.fill("[name=id]", "second")
        page.click(".agent-form >> text=Save")
        page.wait_for_selector(".things h3 >> text=second")
        assert settings_of(home)["agents"]["second"] == written
        page.click("[aria-label='Delete second']")
        page.wait_for_selector(".changed >> text=second is deleted.")
        assert "second" not in settings_of(home)["agents"]
        page.click(".changed >> text=Undo")
        wait(lambda: settings_of(home)["agents"].get("second") == written)

        page.click("nav >> text=New session")
        page.fill("#composer", "hi")
        page.press("#composer", "Enter")
        page.wait_for_selector("text=hello from the server")
        page.select_option("[aria-label=Agent]", "second")  # there at once, without a restart
