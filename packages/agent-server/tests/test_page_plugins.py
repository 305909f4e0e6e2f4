"""A plugin that uses every element, drawn by the page in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER
WIDGETS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "textarea": {"type": "string", "widget": "textarea"},
    "password": {"type": "string", "widget": "password"},
    "number": {"type": "integer", "default": 3},
    "checkbox": {"type": "boolean"},
    "select": {"type": "string", "options": ["warm", "cold"]},
    "session": {"type": "string", "widget": "session"},
    "file": {"type": "string", "widget": "file"},
}


class Everything:
    """A feature with an action for every place, presentation and widget, and completions."""

    name = "everything"
    version = "1"

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def get_actions(self) -> list[dict[str, Any]]:
        inputs = {name: {"type": one["type"]} for name, one in WIDGETS.items()}
        about = {"message_index": {"type": "integer"}}
        shown = ["banner", "modal", "inline", "error"]
        return [
            {"id": "form", "label": "Form", "inputs": inputs},
            {"id": "wipe", "label": "Wipe", "confirm": "Really wipe it?", "inputs": {}},
            {"id": "look", "label": "Look at message", "inputs": about},
            *({"id": one, "label": f"Show {one}", "inputs": {}} for one in shown),
        ]

    def get_ui_elements(self, config: Any, tags: Any, models: Any) -> list[dict[str, Any]]:
        asked = [{"name": name, "label": f"The {name}", **one} for name, one in WIDGETS.items()]
        dialog = {"kind": "form", "title": "All widgets", "body": "Fill in.", "inputs": asked}
        return [
            {"ui_type": "session_action", "action_id": "form", "label": "All inputs", "dialog": dialog},
            {"ui_type": "message_action", "action_id": "look", "label": "Look closer"},
        ]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        self.calls.append((action_id, params))
        if action_id == "inline":
            choices = [
                {"kind": "open_url", "id": "o", "label": "Look", "url": "https://example.test/x"},
                {"kind": "copy_text", "id": "c", "label": "Copy it", "text": "the text"},
                {
                    "kind": "run_action",
                    "id": "r",
                    "label": "Wipe now",
                    "plugin": "everything",
                    "action_id": "wipe",
                },
            ]
            return {
                "display": {"body": "**bold**", "format": "markdown", "display_id": "d", "actions": choices}
            }
        if action_id == "wipe":
            return {"display": {"body": "wiped", "variant": "success", "display_id": "d"}}
        if action_id == "error":
            return {"error": {"message": "the pen is broken"}}
        if action_id in ("banner", "modal"):
            shown = {
                "body": f"a {action_id}",
                "variant": "warning",
                "presentation": action_id,
                "title": "News",
            }
            return {"display": shown}
        return {"message": f"{action_id} {sorted(params)}"}

    def get_completions(self, config: Any, text: str) -> list[dict[str, Any]]:
        if not text.endswith("/col"):
            return []
        names = ("colour", "collect")
        return [
            {"replacement": f"/{one}", "start": -4, "display": one, "display_meta": "a word"} for one in names
        ]

    def apply_completion(self, config: Any, text: str, completion: dict[str, Any]) -> str:
        return f"{completion['replacement']} ${{1:red}} "


class Desk:
    """An application plugin with actions for sessions of the list and for everything, and all effects."""

    name = "desk"

    def get_actions(self) -> list[dict[str, Any]]:
        session = {"session_id": {"type": "string", "required": True}}
        effects = ["toast", "open_url", "navigate", "reload", "strange"]
        return [
            {"id": "stamp", "label": "Stamp", "inputs": session},
            *({"id": one, "label": f"Do {one}", "inputs": {}} for one in effects),
        ]

    def get_ui_elements(self, app_config: Any) -> list[dict[str, Any]]:
        return [{"ui_type": "session_list_action", "action_id": "stamp", "label": "Stamp it"}]

    def execute_action(
        self, app: Any, action_id: str, params: dict[str, Any], context: Any, state: Any
    ) -> dict[str, Any]:
        effects = {
            "stamp": {"type": "open_session", "session_id": params.get("session_id")},
            "toast": {"type": "toast", "text": "toasted"},
            "open_url": {"type": "open_url", "url": "https://example.test/page"},
            "navigate": {"type": "navigate", "to": "plugins"},
            "reload": {"type": "reload", "what": "sessions"},
            "strange": {"type": "strange"},
        }
        return {"ui_effects": [effects[action_id]]}


@pytest.fixture
def everything() -> Everything:
    return Everything()


@pytest.fixture
def page(serve_it: Serving, open_page: Callable[..., Page], everything: Everything) -> Page:
    opened = open_page(serve_it(["an answer"], plugins=[everything, Desk()]))
    say(opened, "hello")
    is_over(opened)
    opened.wait_for_selector("header >> text=Actions")
    return opened


def begin(page: Page, label: str) -> None:
    page.click("header >> text=Actions")
    page.click(f"header .menu >> text={label}")


def test_a_form_has_a_widget_for_every_input(page: Page, everything: Everything) -> None:
    begin(page, "All inputs")
    page.wait_for_selector("dialog >> text=All widgets")
    no_findings(page)
    page.fill("dialog [name=text]", "plain")
    page.fill("dialog textarea", "two\nlines")
    page.fill("dialog [type=password]", "hidden")
    page.check("dialog [type=checkbox]")
    page.select_option("dialog [name=select]", "cold")
    page.select_option("dialog [name=session]", index=1)
    page.set_input_files("dialog [type=file]", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    page.click("dialog .primary")
    page.wait_for_selector("text=form [")

    action, params = everything.calls[-1]
    session = page.url.partition("#s=")[2]
    assert action == "form"
    assert {
        name: params[name] for name in ("text", "textarea", "password", "number", "checkbox", "select")
    } == {
        "text": "plain",
        "textarea": "two\nlines",
        "password": "hidden",
        "number": 3,
        "checkbox": True,
        "select": "cold",
    }
    assert params["session"] == session
    assert params["file"]


def test_what_wants_to_be_confirmed_asks_and_cards_replace_each_other(
    page: Page, everything: Everything
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    begin(page, "Wipe")
    page.wait_for_selector("dialog >> text=Really wipe it?")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert everything.calls == []

    begin(page, "Show inline")
    page.wait_for_selector(".card strong >> text=bold")
    assert "(example.test)" in page.inner_text(".card")
    page.click(".card >> text=Copy it")
    page.wait_for_selector(".card >> text=Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == "the text"
    no_findings(page)
    page.click(".card >> text=Wipe now")
    page.click("dialog >> text=Yes: Wipe")
    page.wait_for_selector(".card.success >> text=wiped")

    assert page.locator(".card").count() == 1
    assert [action for action, _ in everything.calls] == ["inline", "wipe"]


def test_cards_are_banners_and_dialogs_and_errors_are_shown(page: Page) -> None:
    begin(page, "Show banner")
    page.wait_for_selector(".banners .card.warning >> text=a banner")
    page.click(".banners >> text=Close")
    begin(page, "Show modal")
    page.wait_for_selector("dialog .card >> text=a modal")
    no_findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    begin(page, "Show error")
    page.wait_for_selector(".note.error >> text=the pen is broken")

    assert page.locator(".card").count() == 0


def test_actions_stand_at_messages_sessions_and_the_application(page: Page, everything: Everything) -> None:
    page.click(".answer >> text=Look closer")
    wait(lambda: everything.calls == [("look", {"message_index": 1})])

    page.click("nav >> text=New session")
    page.wait_for_selector(".welcome")
    page.click(".session [title=More]")
    page.click(".row-menu >> text=Stamp it")
    page.wait_for_selector(".answer >> text=an answer")
    for label, seen in (
        ("Do toast", ".toast >> text=toasted"),
        ("Do open_url", ".card >> text=(example.test)"),
        ("Do strange", ".toast >> text=strange"),
        ("Do navigate", "h1 >> text=Settings"),
    ):
        page.click("nav .menu summary")
        page.click(f"nav .menu >> text={label}")
        page.wait_for_selector(seen)


def test_plugins_suggest_what_to_write(page: Page) -> None:
    page.click("#composer")
    page.keyboard.type("paint /col")
    page.wait_for_selector(".suggestions >> text=colour")
    no_findings(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    wait(lambda: page.input_value("#composer") == "paint /colour red ")
    page.keyboard.type("or /col")
    page.wait_for_selector(".suggestions >> text=collect")
    page.keyboard.press("Escape")
    page.wait_for_selector(".suggestions", state="detached")

    assert page.input_value("#composer") == "paint /colour red or /col"
