"""The reference page of the commands says what the commands themselves say."""

from __future__ import annotations

import re
from pathlib import Path

import agent_terminal_app.chat.commands.messages  # noqa: F401 - registers them
from agent_terminal_app.chat.commands.registry import ALIASES, COMMANDS, GROUPS

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "chat-commands.md").read_text(encoding="utf-8")


def written(group: str) -> list[tuple[str, str]]:
    section = PAGE.partition(f"## {group}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(/(?:\\\||[^`|])*)` \| (.*) \|$", section, re.MULTILINE)
    return [(usage.replace("\\|", "|"), about) for usage, about in rows]


def test_the_page_lists_every_command_under_its_heading() -> None:
    for group in GROUPS:
        known = [(one.usage, one.about) for one in COMMANDS.values() if one.group == group]
        assert sorted(written(group)) == sorted(known)


def test_every_command_has_a_heading_and_every_alias_is_mentioned() -> None:
    assert {one.group for one in COMMANDS.values()} == set(GROUPS)
    for alias in ALIASES:
        assert f"`/{alias}`" in PAGE
