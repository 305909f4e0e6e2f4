"""Names are valid for every provider, and each belongs to one tool."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from mcp_tools.settings import SERVER_NAME
from mcp_tools.tool_list import wire_name

servers = st.lists(st.text("aZ9-", min_size=1, max_size=3), min_size=1, max_size=3).map("_".join)
tools = st.text(max_size=12) | st.text("a_.", max_size=6) | st.integers(50, 70).map(lambda size: "x" * size)


@given(servers, tools)
def test_every_provider_takes_a_name(server: str, tool: str) -> None:
    assert re.fullmatch(SERVER_NAME, server)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire_name(server, tool), re.ASCII)


@given(st.lists(st.tuples(servers, tools), unique=True, max_size=6))
def test_no_two_tools_have_one_name(pairs: list[tuple[str, str]]) -> None:
    assert len({wire_name(*pair) for pair in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read", "files__read"),
        ("files", "_read", "files___read"),
        ("a_b", "c__d", "a_b__c__d"),
        ("files", "x" * 57, "files__" + "x" * 57),
    ],
)
def test_a_name_that_can_stay_stays(server: str, tool: str, name: str) -> None:
    assert wire_name(server, tool) == name


@pytest.mark.parametrize("tool", ["get.page", "get/page", "get page", "größe", "x" * 60, "", "🫖"])
def test_any_other_gets_an_alias_that_begins_alike(tool: str) -> None:
    name = wire_name("web", tool)

    assert name.startswith("web__" + tool[:3].replace("ö", "_").replace("🫖", "_")[:2])
    assert re.search("_[0-9a-f]{8}$", name)
    assert len(name) <= 64
