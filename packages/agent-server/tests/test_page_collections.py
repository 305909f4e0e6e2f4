"""Things that a plugin keeps, drawn by the page from the plugin's schemas alone: memories, and skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_server.testing.page import IN_A_BROWSER, is_over, no_findings, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from agent_server.testing import Serving

pytestmark = IN_A_BROWSER
ITEM = {"item_id": {"type": "string", "required": True}}


class Memory:
    """Keeps notes; a deleted one can be had back."""

    name = "memory"
    version = "1"

    def __init__(self) -> None:
        self.kept = {"1": "The tea is in the left cupboard.", "2": "Ann likes coffee."}

    def get_actions(self) -> list[dict[str, Any]]:
        text = {"text": {"type": "string", "required": True}}
        return [
            {"id": "recall", "label": "Memory", "inputs": {"query": {"type": "string"}}},
            {"id": "keep", "label": "Remember something", "inputs": text},
            {"id": "change", "label": "Change", "inputs": {**ITEM, **text}},
            {"id": "forget", "label": "Forget", "confirm": "Forget it?", "inputs": ITEM},
            {"id": "restore", "label": "Restore", "inputs": {**ITEM, **text}},
        ]

    def get_ui_elements(self, _config: Any) -> list[dict[str, Any]]:
        actions = ["keep", "change", "forget", "restore"]
        return [
            {"ui_type": "collection", "label": "Memory", "action_id": "recall", "item_actions": actions},
        ]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        item, text = params.get("item_id", ""), params.get("text", "")
        if action_id == "recall":
            found = {one: said for one, said in self.kept.items() if params.get("query", "") in said}
            return {"items": [self.item(one, said) for one, said in found.items()]}
        if action_id == "forget":
            undo = {"item_id": item, "text": self.kept.pop(item)}
            button = {"kind": "run_action", "id": "undo", "label": "Undo", "plugin": "memory"}
            return {
                "display": {
                    "body": "It is forgotten.",
                    "actions": [{**button, "action_id": "restore", "params": undo}],
                }
            }
        self.kept[item or str(len(self.kept) + 1)] = text
        return {}

    def item(self, item: str, said: str) -> dict[str, Any]:
        shown = {"id": item, "title": said[:12], "text": said, "origin": "said by you"}
        return {**shown, "values": {"text": said}, "actions": ["change", "forget"]}


def open_section(page: Page, name: str) -> None:
    page.click("nav >> text=Settings")
    page.click(f".sections >> text=/^{name}$/")


def test_memories_are_found_added_changed_and_deleted_with_undo(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    memory = Memory()
    page = open_page(serve_it(["an answer"], plugins=[memory]))
    say(page, "hello")
    is_over(page)
    open_section(page, "Memory")
    page.wait_for_selector(".things >> text=left cupboard")
    no_findings(page)

    page.fill("[type=search] >> visible=true >> nth=-1", "coffee")
    page.wait_for_selector(".things >> text=left cupboard", state="detached")
    page.click("[aria-label^='Change: Ann']")
    assert page.input_value("dialog [name=text]") == "Ann likes coffee."
    page.fill("dialog [name=text]", "Ann likes tea, no coffee.")
    page.click("dialog [type=submit]")
    page.wait_for_selector(".things >> text=Ann likes tea, no coffee.")

    page.click("[aria-label^='Forget: Ann']")
    page.click("dialog >> text=Yes: Forget")
    page.wait_for_selector("text=There is nothing here.")
    assert "2" not in memory.kept
    page.click(".card >> text=Undo")
    page.wait_for_selector(".things >> text=Ann likes tea, no coffee.")

    page.fill("[type=search] >> visible=true >> nth=-1", "")
    page.click(".section >> text=Remember something")
    page.fill("dialog [name=text]", "Milk is out.")
    page.click("dialog [type=submit]")
    page.wait_for_selector(".things >> text=Milk is out.")
    assert memory.kept["3"] == "Milk is out."


def test_actions_of_a_collection_are_not_in_the_menu_of_actions(
    serve_it: Serving, open_page: Callable[..., Page]
) -> None:
    page = open_page(serve_it(["an answer"], plugins=[Memory()]))
    say(page, "hello")
    is_over(page)
    open_section(page, "Memory")

    assert page.locator("text=Remember something").count() == 1
    page.click(".settings >> text=Close")
    assert page.locator("header >> text=Actions").count() == 0


def test_skills_are_seen_switched_off_and_on_again_and_a_broken_one_says_why(
    serve_it: Serving, open_page: Callable[..., Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills = pytest.importorskip("skills_feature")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, head in (("tea", "name: tea\ndescription: Brews tea."), ("cake", "name: cake")):
        folder = tmp_path / "agent" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\n{head}\n---\nBoil water.\n")
    config = {"agents": {"main": {"model": "m", "plugin_ids": ["skills"]}}}
    page = open_page(serve_it(["an answer"], plugins=[skills.SkillsFeature], config=config))
    say(page, "hello")
    is_over(page)

    open_section(page, "Skills")
    page.wait_for_selector(".things li:has-text('Brews tea.') >> text=skills/tea")
    page.wait_for_selector(".things .failure >> text=needs a text under 'description'")
    no_findings(page)
    page.click("[aria-label='Switch off: tea']")
    page.wait_for_selector(".things li:has-text('Brews tea.') .badge >> text=off")
    page.click(".card >> text=Undo")

    page.wait_for_selector(".things li:has-text('Brews tea.') .badge >> text=/^on$/")


def test_what_an_agent_remembers_is_searched_added_changed_and_forgotten_with_undo(
    serve_it: Serving, open_page: Callable[..., Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = pytest.importorskip("memory_feature")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = memory.MemoryFolder(tmp_path / "agent" / "memory")
    folder.add("The tea is in the left cupboard.")
    config = {"agents": {"main": {"model": "m", "plugin_ids": ["memory"]}}}
    page = open_page(serve_it(["an answer"], plugins=[memory.MemoryFeature], config=config))
    say(page, "hello")
    is_over(page)

    open_section(page, "Memory")
    page.wait_for_selector(".things li:has-text('left cupboard') >> text=agent/memory")
    no_findings(page)
    page.click(".section >> text=Remember something")
    page.fill("dialog [name=text]", "Ann likes coffee.")
    page.click("dialog [type=submit]")
    page.wait_for_selector(".things >> text=Ann likes coffee.")
    page.fill("[type=search] >> visible=true >> nth=-1", "coffee")
    page.wait_for_selector(".things >> text=left cupboard", state="detached")

    page.click("[aria-label='Change: ann likes coffee']")
    assert page.input_value("dialog [name=text]") == "Ann likes coffee."
    page.fill("dialog [name=text]", "The key is sk-proj-abcdefghij0123456789abcd.")
    page.click("dialog [type=submit]")
    page.wait_for_selector("text=say where the secret is kept instead")
    page.click("[aria-label='Change: ann likes coffee']")
    page.fill("dialog [name=text]", "Ann likes coffee, no milk.")
    page.click("dialog [type=submit]")
    page.wait_for_selector(".things >> text=Ann likes coffee, no milk.")

    page.click("[aria-label='Forget: ann likes coffee']")
    page.wait_for_selector("text=There is nothing here.")
    assert [one.text for one in folder.read().memories] == ["The tea is in the left cupboard."]
    page.click(".card >> text=Undo")
    page.wait_for_selector(".things >> text=Ann likes coffee, no milk.")
