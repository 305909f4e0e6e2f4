"""A terminal and the page with one session of one server: what plugins draw, and questions, are in both."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from agent_core.display.elements import ACTION_ELEMENTS, EFFECTS, ELEMENT_TYPES, WIDGETS
from agent_core.display.payload import PRESENTATIONS, VARIANTS
from agent_core.testing import Reply, ToolCall
from agent_server.testing import ASKS, TOKEN, Notes, Serving
from agent_server.testing.page import IN_A_BROWSER, browser, is_over, no_findings, open_page, say, wait
from agent_terminal_app.testing.terminal import Terminal
from agent_testing.showcase import Showcase, ShowcaseDesk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from agent_server.testing import Served

__all__ = ["browser", "open_page"]
pytestmark = IN_A_BROWSER


@dataclass
class Both:
    """A page and a terminal with the same session of the same server."""

    page: Page
    chat: Terminal
    showcase: Showcase

    def choose(self, label: str, menu: str = "header") -> None:
        """Choose an action of the page's menu."""
        self.page.click(f"{menu} .menu summary")
        self.page.click(f"{menu} .menu >> text=/^{label}$/")

    def type(self, command: str) -> None:
        """Give the terminal a command, once it waits for one."""
        self.chat.expect_line("ready")
        self.chat.type(f"\x0c{command}\r")  # Ctrl+L: what is seen from now on is of this command

    def calls(self, number: int) -> list[tuple[str, dict[str, object]]]:
        """Wait until some actions have run, and return them."""
        wait(lambda: self.chat.read(0) >= 0 and len(self.showcase.calls) >= number, f"{number} calls")
        return self.showcase.calls


@contextmanager
def beside(page: Page, served: Served, folder: Path) -> Iterator[Terminal]:
    """Open a chat in a terminal, with the session that a page shows."""
    home = folder / "home"
    home.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    own = {**kept, "HOME": str(home), "NO_COLOR": "1", "AGENT_SERVER_TOKEN": TOKEN}
    session = page.url.partition("#s=")[2]
    command = [sys.executable, "-m", "agent_terminal_app", "chat", "--server", served.url]
    with Terminal(
        [*command, "--session", session], environment=own, folder=folder, columns=110, rows=60
    ) as chat:
        chat.expect("an answer")
        yield chat


@pytest.fixture
def both(tmp_path: Path, open_page: Callable[..., Page]) -> Iterator[Both]:
    showcase = Showcase()
    serving = Serving(tmp_path)
    served = serving(["an answer"], plugins=[showcase, ShowcaseDesk()])
    page = open_page(served, permissions=["clipboard-read", "clipboard-write"])
    say(page, "hello")
    is_over(page)
    page.wait_for_selector("header .menu summary")
    with beside(page, served, tmp_path) as chat:
        yield Both(page, chat, showcase)
    page.close()
    serving.close()


def test_every_element_is_offered_in_both(both: Both) -> None:
    page, chat = both.page, both.chat
    feature, desk = Showcase().get_ui_elements({}, (), ()), ShowcaseDesk().get_ui_elements({})
    actions = [f"showcase.{one['id']}" for one in Showcase().get_actions()]
    actions += [f"showcase_desk.{one['id']}" for one in ShowcaseDesk().get_actions()]
    places = {
        "session_action": "header .menu li",
        "message_action": ".answer .tools button",
        "composer_action": ".composer button",
        "session_list_action": ".row-menu button",
        "application_action": "nav .menu li",
        "collection": ".sections button",
    }
    assert {one["ui_type"] for one in (*feature, *desk)} == set(ELEMENT_TYPES)
    assert set(places) - {"collection"} == set(ACTION_ELEMENTS)

    both.type("/actions")
    for name in actions:
        chat.expect(f"/{name} ")
    page.click(".session [title=More]")
    for one in (*feature, *desk):
        if one["ui_type"] == "collection":
            page.keyboard.press("Control+,")
        if one["ui_type"] in places:
            page.wait_for_selector(f"{places[one['ui_type']]} >> text={one['label']}", state="attached")


def test_a_form_gives_an_action_the_same_values(both: Both) -> None:
    page, chat = both.page, both.chat
    texts = {"text": "plain", "textarea": "long", "password": "hidden", "number": "7"}
    session = page.url.partition("#s=")[2]

    both.choose("All inputs")
    for name, text in texts.items():
        page.fill(f"dialog [name=the_{name}]", text)
    page.check("dialog [name=the_checkbox]")
    page.select_option("dialog [name=the_select]", "cold")
    page.select_option("dialog [name=the_session]", session)
    page.click("dialog .primary")
    both.calls(1)
    both.type("/showcase.form")
    answers = {**texts, "checkbox": "yes", "select": "2", "session": session, "file": ""}
    for name in WIDGETS:
        chat.expect(f"The {name} (")
        chat.expect_line("» *$" if name != "password" else ".*")
        chat.type(f"{answers[name]}\r")
    [(_, on_page), (_, in_terminal)] = both.calls(2)

    assert in_terminal == {name: value for name, value in on_page.items() if name != "the_file"}
    assert "hidden" not in chat.text


def test_a_question_and_the_choices_of_a_card_mean_the_same(both: Both) -> None:
    page, chat, showcase = both.page, both.chat, both.showcase

    both.choose("Show card")
    page.wait_for_selector(".card >> text=(example.test)")
    page.click(".card >> text=Copy it")
    page.wait_for_selector(".card >> text=Copied")
    page.click(".card >> text=Wipe now")
    page.click("dialog >> text=Yes: Wipe")
    page.wait_for_selector(".card.success >> text=wiped")
    assert page.evaluate("() => navigator.clipboard.readText()") == "the text"
    assert page.locator(".card").count() == 1  # it took the place of the first
    on_page = list(showcase.calls)

    both.type("/showcase.card")
    chat.expect("Look — opens example.test")
    chat.expect("Copy it — copies the text")
    chat.expect("Wipe now — done by the plugin showcase")
    chat.expect_line("press 1 to 3 to choose")
    chat.type("2")
    chat.expect("Copied 8 characters")
    both.type("/3")
    chat.expect("Really wipe it? [y/N]")
    chat.type("y\r")
    chat.expect("updated: (success)")
    chat.expect("wiped")

    assert showcase.calls == on_page * 2
    no_findings(page)


def test_cards_of_every_variant_and_presentation_are_shown(both: Both) -> None:
    page, chat = both.page, both.chat
    where = {
        "modal": "dialog .card",
        "inline": ".cards.inlines .card",
        "banner": ".cards.banners .card",
    }
    assert set(where) == set(PRESENTATIONS)

    for variant in VARIANTS:
        both.choose(f"Show variant_{variant}")
        page.wait_for_selector(f".card.{variant} >> text=of variant {variant}")
        both.type(f"/showcase.variant_{variant}")
        chat.expect(f"({variant})")
        chat.expect(f"of variant {variant}")
    assert page.locator(".card").count() == 1  # each took the place of the one before
    for presentation, place in where.items():
        both.choose(f"Show {presentation}")
        page.wait_for_selector(f"{place} >> text=shown as {presentation}")
        page.keyboard.press("Escape")
        both.type(f"/showcase.{presentation}")
        chat.expect(f"shown as {presentation}")
    both.choose("Show error")
    page.wait_for_selector(".note.error >> text=the pen is broken")
    both.type("/showcase.error")
    chat.expect("the pen is broken")


def test_every_effect_is_followed(both: Both) -> None:
    page, chat = both.page, both.chat
    on_page = {
        "toast": ".note >> text=a toast",
        "open_url": ".card >> text=(example.test)",
        "set_input": "#composer",
        "reload": "#composer",
        "navigate": "h1 >> text=Settings",
    }
    in_terminal = {
        "toast": "a toast",
        "open_url": "https://example.test/page",
        "set_input": "» a text to send",
        "reload": "Do reload: done",
        "navigate": "/plugins shows the plugins.",
    }
    assert {*on_page, "open_session"} == set(EFFECTS) == {*in_terminal, "open_session"}

    for effect, seen in on_page.items():
        both.choose(f"Do {effect}")
        page.wait_for_selector(seen)
        if effect == "set_input":
            wait(lambda: page.input_value("#composer") == "a text to send")
        both.type(f"/showcase_desk.{effect}")
        chat.expect(in_terminal[effect])
        chat.type("\x15")  # Ctrl+U: an empty prompt
    page.click("nav >> text=New session")
    page.wait_for_selector(".welcome")
    page.click(".session [title=More]")
    page.click(".row-menu >> text=Stamp it")
    page.wait_for_selector(".answer >> text=an answer")
    both.type("/showcase_desk.strange")
    chat.expect("The effect 'strange' means nothing in a terminal")


def test_completions_and_the_composer_action(both: Both) -> None:
    page, chat = both.page, both.chat

    page.click("#composer")
    page.keyboard.type("paint /col")
    page.wait_for_selector(".suggestions >> text=collect")
    page.keyboard.press("Tab")
    wait(lambda: page.input_value("#composer") == "paint /colour red ")
    page.click(".composer >> text=Polish it")
    chat.expect_line("ready")
    chat.type("paint /col")
    chat.expect_line(".*colour +a word")
    chat.expect_line(".*collect +a word")
    chat.type("\t")
    chat.expect_line("» paint /colour red")

    assert both.calls(1) == [("polish", {"text": "paint /colour red "})]


@pytest.mark.parametrize("asked_in", ["page", "terminal"])
@pytest.mark.parametrize("answered_in", ["page", "terminal"])
def test_a_question_stands_in_both_until_one_answers_it(
    tmp_path: Path, open_page: Callable[..., Page], asked_in: str, answered_in: str
) -> None:
    notes, serving = Notes(), Serving(tmp_path)
    wants = Reply(tool_calls=[ToolCall("note", {"text": "buy milk"})])
    served = serving(["an answer", wants, "It is noted.", "You are welcome."], plugins=[notes], config=ASKS)
    page = open_page(served)
    say(page, "hello")
    is_over(page)
    with beside(page, served, tmp_path) as chat:
        chat.expect_line("ready")

        if asked_in == "page":
            say(page, "note it")
        else:
            chat.type("note it\r")
        chat.expect_line("your answer")
        chat.expect("buy milk")
        chat.expect_line("» note it")
        page.wait_for_selector(".approval >> text=buy milk")
        assert notes.written == []

        if answered_in == "page":
            page.press(".approval .question", "End")  # what it asks is read before one can say yes
            page.click(".approval .primary")
        else:
            chat.type("y")
        page.wait_for_selector(".answer >> text=It is noted.")
        page.wait_for_selector(".approval", state="detached")
        chat.expect("It is noted.")
        chat.expect_line("ready")
        assert notes.written == ["buy milk"]

        chat.type("thanks\r")  # what is typed now is no answer to a question that is gone
        chat.expect("You are welcome.")
        page.wait_for_selector(".answer >> text=You are welcome.")
    page.close()
    serving.close()
