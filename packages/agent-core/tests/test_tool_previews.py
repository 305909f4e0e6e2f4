"""One line that tells a person what a call will do, before it is run."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, ProviderNotFoundError
from agent_core.testing import EchoProvider

Dicts = list[dict[str, Any]]


class Files:
    name = "files"
    version = "1"

    def get_tool_schemas(self) -> Dicts:
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
        return [
            {"type": "function", "function": {"name": "read", "parameters": parameters}},
            {"type": "custom", "name": "patch"},
        ]

    def execute_tool(self, tool_name: str, arguments: Any) -> Any:
        raise AssertionError("a preview runs nothing")


class Talkative(Files):
    """Has a line of its own; `calls` has what the hook was given."""

    def __init__(self, line: Any = "reads a file") -> None:
        self.line = line
        self.calls: Dicts = []

    def format_tool_call_preview(self, tool_name: str, arguments: Any, **more: Any) -> Any:
        self.calls.append({"tool_name": tool_name, "arguments": arguments, **more})
        if isinstance(self.line, Exception):
            raise self.line
        return self.line


def call(arguments: Any = '{"path": "a.txt"}', name: str = "read") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "7", "type": "function", "function": {"name": name, "arguments": text}}


def core_with(plugin: Any) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_tool(plugin)
    return core


def preview(tool_call: Any, plugin: Any = Files, config: dict[str, Any] | None = None) -> dict[str, Any]:
    return core_with(plugin).format_tool_call_preview(tool_call, config or {})


@pytest.mark.parametrize(
    ("tool_call", "line"),
    [
        (call(), "read(path='a.txt')"),
        (call({"path": "a b", "limit": 3, "deep": [1, {"x": None}]}), None),
        (call({}), "read()"),
        (call({"path": "two\nlines"}), "read(path='two\\nlines')"),
        ({"id": "7", "type": "custom", "name": "patch", "input": "- a\n+  b\n"}, "patch(- a + b)"),
        (call({"input": "- a\n+ b"}, "patch"), "patch(- a + b)"),
        ({"type": "tool_use", "id": "7", "name": "read", "input": {"path": "a"}}, "read(path='a')"),
        (call({"path": "x" * 500}), "read(path='" + "x" * 106 + "..."),
    ],
)
def test_without_a_hook_a_preview_looks_like_a_call(tool_call: dict[str, Any], line: str | None) -> None:
    expected = line or "read(path='a b', limit=3, deep=[1, {'x': None}])"

    assert preview(tool_call) == {"id": "7", "preview": expected}


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.text(), st.text() | st.integers() | st.none() | st.lists(st.text(), max_size=3), max_size=4
    )
)
def test_a_preview_is_one_short_line_whatever_the_arguments(arguments: dict[str, Any]) -> None:
    line = preview(call(arguments))["preview"]

    assert len(line) <= 120
    assert line.startswith("read(")
    assert line.splitlines() == [line]


def test_a_plugin_words_its_own_previews() -> None:
    plugin = Talkative("reads a.txt")
    made = {**call(), "index": 0}

    assert preview(made, plugin, {"depth": 3}) == {"id": "7", "preview": "reads a.txt"}
    [received] = plugin.calls
    assert received == {
        "tool_name": "read",
        "arguments": {"path": "a.txt"},
        "state": {"config": {"depth": 3}},
        "payload_kind": "json",
        "payload_format": "json_object",
        "payload_metadata": {"extra": {"index": 0}},
        "tool_call": made,
        "prepared": {},
    }


def test_a_preview_hook_gets_text_for_a_text_tool_over_any_wire() -> None:
    plugin = Talkative()

    preview(call({"input": "- a"}, "patch"), plugin)

    assert (plugin.calls[0]["arguments"], plugin.calls[0]["payload_kind"]) == ("- a", "text")


def test_arguments_that_cannot_be_read_are_shown_as_they_are_and_to_no_hook() -> None:
    plugin = Talkative()

    assert preview(call('{"path": a.txt}'), plugin)["preview"] == 'read({"path": a.txt})'
    assert plugin.calls == []


def test_a_call_that_will_be_refused_still_has_a_preview() -> None:
    assert preview(call({"path": 5}))["preview"] == "read(path=5)"


@pytest.mark.parametrize("line", [None, 5, ["a"], {"text": "a"}])
def test_a_preview_that_is_no_text_is_none(line: Any) -> None:
    assert preview(call(), Talkative(line)) == {"id": "7", "preview": ""}


def test_a_preview_hook_that_fails_costs_only_the_preview(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agent_core.tools"):
        found = preview(call(), Talkative(ValueError("no words")))

    assert found == {"id": "7", "preview": ""}
    assert "no words" in caplog.text


def test_a_preview_hook_cannot_change_the_call() -> None:
    class Writing(Talkative):
        def format_tool_call_preview(self, tool_name: str, arguments: Any, **more: Any) -> Any:
            arguments["path"] = "mine"
            more["tool_call"]["id"] = "mine"

    made = call()

    assert preview(made, Writing()) == {"id": "7", "preview": ""}
    assert made == call()


@pytest.mark.parametrize("plugin", [Files, Talkative("reads \x1b[8ma.txt\u202e")])
def test_a_preview_hides_nothing_from_the_person_who_decides_by_it(plugin: Any) -> None:
    hidden = {"id": "7", "type": "custom", "name": "patch", "input": "a\x1b[2Kb\u202ec"}

    assert not {"\x1b", "\u202e"} & set(preview(hidden, plugin)["preview"])


def test_a_tool_that_is_not_there_has_an_empty_preview() -> None:
    assert preview(call(name="search")) == {"id": "7", "preview": ""}
    assert preview(call(), config={"excluded_tools": ["read"]}) == {"id": "7", "preview": ""}


@pytest.mark.parametrize("junk", [None, 5, "read", [], {}, {"id": "7"}, {"name": "read"}])
def test_junk_has_an_empty_preview_without_an_id(junk: Any) -> None:
    assert preview(junk) == {"id": None, "preview": ""}


def test_previews_come_in_the_order_of_their_calls_and_skip_what_is_no_dict() -> None:
    calls: list[Any] = [call(), "junk", call(name="search"), None, {"junk": 1}, call({"path": "b"})]

    assert core_with(Files).format_tool_call_previews(calls, {}) == [
        {"id": "7", "preview": "read(path='a.txt')"},
        {"id": "7", "preview": ""},
        {"id": None, "preview": ""},
        {"id": "7", "preview": "read(path='b')"},
    ]


def test_previews_need_no_provider() -> None:
    core = AgentCore()
    core.register_tool(Files)

    assert core.format_tool_call_previews([call()], {}) == [{"id": "7", "preview": "read(path='a.txt')"}]


def test_a_configuration_that_cannot_be_used_is_raised() -> None:
    with pytest.raises(ProviderNotFoundError):
        preview(call(), config={"provider": "unheard of"})
