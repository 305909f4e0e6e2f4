"""Files that hold keys: reading one is asked about, and no other way shows what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_runtime.permissions import Permissions
from agent_runtime.phases import CallView
from files_tool import FilesTool

if TYPE_CHECKING:
    from conftest import Files


def effect(path: str, tool: str = "read_file", **rules: Any) -> str:
    call = CallView(id="", name=tool, arguments={"path": path}, raw={}, tool=FilesTool())
    return Permissions.from_section({"allow": ["read_file", "list_files"], **rules}).decide(call).effect


@pytest.mark.parametrize(
    "path", [".env", "deep/.env.local", "/home/ada/site/.env", "id_rsa", "tls/server.key"]
)
def test_reading_keys_is_asked_about_although_reading_is_allowed(path: str) -> None:
    assert effect(path) == "ask"
    assert effect(path, allow=["read_file", "read_file(*)", "*"]) == "ask"
    assert effect(path, allow=["read_file", f"read_file(secret file {path})"]) == "allow"
    assert effect(path, deny=["read_file(*)"]) == "deny"


@pytest.mark.parametrize("path", [".env.example", "src/env.py", "README.md"])
def test_other_files_are_read_as_before(path: str) -> None:
    assert effect(path) == "allow"


def test_another_name_leads_to_no_key(files: Files) -> None:
    files.put(".env", "KEY=hidden\n")
    (files.root / "notes.txt").symlink_to(".env")

    assert "links are not followed: use .env" in files.refused("read_file", path="notes.txt")
    assert "KEY=hidden" in files.ok("read_file", path=".env")


def test_a_search_says_that_there_are_matches_and_not_what(files: Files) -> None:
    files.put(".env", "KEY=hidden\n")
    files.put("a.txt", "the KEY is elsewhere\n")

    found = files.ok("search_files", pattern="KEY", hidden=True)

    assert "hidden" not in found
    assert "a.txt:1: the KEY is elsewhere" in found
    assert "1 files that may hold keys have matches" in found
