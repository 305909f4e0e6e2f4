"""Results that are too large: one budget over text and images, nothing lost, and a way to read on."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_core import AgentError, Message, Session, ToolError, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import BuildError, RunRequest
from agent_runtime.large_results import Content, cut, limit, read_page
from agent_runtime.phases import CallView
from agent_runtime.specs import AgentSpec
from agent_runtime.tokens import TokenCounter

if TYPE_CHECKING:
    from conftest import Drive, MakeRuntime

PICTURE = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()


class Asset:
    """What a store says of an asset."""

    def __init__(self, number: int, data: bytes, name: str, media_type: str | None) -> None:
        self.id, self.data, self.name, self.media_type = f"asset_{number}", data, name, media_type
        self.size = len(data)


class Assets:
    """An asset store in memory, as the runtime knows it."""

    def __init__(self, problem: str = "") -> None:
        self.kept: dict[str, tuple[str, Asset]] = {}
        self._problem = problem

    def put(self, session_id: str, data: bytes, *, name: str, media_type: str | None = None) -> Asset:
        if self._problem:
            raise AgentError(self._problem)
        asset = Asset(len(self.kept), data, name, media_type)
        self.kept[asset.id] = (session_id, asset)
        return asset

    def get(self, asset_id: str, *, session_id: str | None = None) -> Asset:
        owner, asset = self.kept.get(asset_id, (None, None))
        if asset is None or owner != session_id:
            raise AgentError(f"there is no asset {asset_id!r}")
        return asset

    def read(self, asset_id: str, start: int = 0, length: int | None = None) -> bytes:
        data = self.kept[asset_id][1].data
        return data[start:] if length is None else data[start : start + length]


@tool
def count(lines: int) -> str:
    """Count."""
    return "\n".join(f"line {number}" for number in range(lines))


class Album:
    """A tool with pictures."""

    name = "album"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {"pictures": {"type": "integer"}}}
        return [{"type": "function", "function": {"name": "album", "parameters": parameters}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        image = {"type": "image", "mime_type": "image/png", "data": PICTURE}
        return {"success": True, "name": tool_name, "images": [image] * arguments["pictures"]}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_result", "text": result["name"], "parts": result["images"]}


# A session in which something was left out before, so that the model may ask for it.
LEFT_OUT = {"tool_call_id": "c0", "tool_name": "count", "left_out": [{"asset": "a"}]}
BEFORE = Session("s", [Message("user", "Hi."), Message("tool", "cut", LEFT_OUT)])


def run_with(
    make_runtime: MakeRuntime, drive: Drive, *calls: ToolCall, store: Assets | None, **results: Any
) -> list[dict[str, Any]]:
    script = [*(Reply(tool_calls=[call]) for call in calls), "Done."]
    runtime = make_runtime(script, tools=[count], plugins={"album": Album}, sections={"results": results})
    context = {} if store is None else {"session_asset_store": store}
    _events, result = drive(runtime, RunRequest("a", "Go.", BEFORE, context=context))
    return [message for message in result.messages if message["role"] == "tool"]


def test_a_result_within_the_budget_is_left_as_it_is(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()

    [message] = run_with(make_runtime, drive, ToolCall("count", {"lines": 100}), store=store)

    assert message["content"] == count(100)
    assert not store.kept


def test_a_large_text_keeps_both_ends_and_the_rest_is_stored(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()

    [message] = run_with(make_runtime, drive, ToolCall("count", {"lines": 5000}), store=store, tokens=1000)

    [(owner, asset)] = store.kept.values()
    assert (owner, asset.data.decode(), asset.name) == ("s", count(5000), "count.txt")
    assert message["content"].startswith("line 0\nline 1\n")
    assert message["content"].endswith("line 4999")
    assert TokenCounter().text(message["content"]) < 1100
    left_out = [{"asset": asset.id, "name": "count.txt", "size": asset.size, "media_type": "text/plain"}]
    assert message["metadata"]["left_out"] == left_out
    assert message["tool_result"]["text"] == message["content"]


def test_the_model_can_read_everything_that_was_left_out(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()
    [message] = run_with(make_runtime, drive, ToolCall("count", {"lines": 5000}), store=store, tokens=1000)
    found = re.search(r'read_result\(id="(\w+)", start=(\d+)\)', message["content"])
    assert found is not None
    head = message["content"][: message["content"].index("\n[")]
    read, start = head, int(found[2])

    while True:
        call = ToolCall("read_result", {"id": found[1], "start": start})
        [page] = run_with(make_runtime, drive, call, store=store, tokens=1000)
        text, _, note = page["content"].rpartition("\n[")
        read += text
        assert TokenCounter().text(page["content"]) <= 1000
        if more := re.search(r"start=(\d+)", note):
            start = int(more[1])
        else:
            break

    assert read == count(5000)


def test_images_count_as_well(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()

    [message] = run_with(make_runtime, drive, ToolCall("album", {"pictures": 5}), store=store, tokens=4000)

    assert len(message["tool_result"]["parts"]) == 3
    assert [asset.media_type for _owner, asset in store.kept.values()] == ["image/png"] * 2
    assert message["content"].count("is left out") == 2


def test_an_image_that_was_left_out_can_be_seen(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()
    run_with(make_runtime, drive, ToolCall("album", {"pictures": 1}), store=store, tokens=500)
    [asset_id] = store.kept

    [shown] = run_with(make_runtime, drive, ToolCall("read_result", {"id": asset_id}), store=store)

    assert shown["tool_result"]["parts"] == [{"type": "image", "mime_type": "image/png", "data": PICTURE}]


@pytest.mark.parametrize(
    ("store", "why"), [(None, "there is no asset store"), (Assets("the disk is full"), "the disk is full")]
)
def test_what_cannot_be_kept_is_said(
    make_runtime: MakeRuntime, drive: Drive, store: Assets | None, why: str
) -> None:
    [message] = run_with(make_runtime, drive, ToolCall("count", {"lines": 5000}), store=store, tokens=500)

    assert why in message["content"]
    assert message["metadata"]["left_out"] == []


def test_another_session_cannot_be_read(make_runtime: MakeRuntime, drive: Drive) -> None:
    store = Assets()
    other = store.put("another", b"secret", name="a.txt", media_type="text/plain")

    [message] = run_with(make_runtime, drive, ToolCall("read_result", {"id": other.id}), store=store)

    assert "there is no asset" in message["content"]
    assert "secret" not in message["content"]


def test_the_tool_is_offered_once_there_is_something_to_read(make_runtime: MakeRuntime, drive: Drive) -> None:
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("count", {"lines": 5000})]), "Done."])
    runtime = make_runtime(provider, tools=[count], sections={"results": {"tokens": 500}})

    drive(runtime, RunRequest("a", "Go.", Session("s"), context={"session_asset_store": Assets()}))

    offered = [[tool["function"]["name"] for tool in one.config["tools"]] for one in provider.requests]
    assert offered == [["count"], ["count", "read_result"]]


def test_without_the_section_nothing_is_cut(make_runtime: MakeRuntime, drive: Drive) -> None:
    runtime = make_runtime([Reply(tool_calls=[ToolCall("count", {"lines": 9000})]), "Done."], tools=[count])

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert count(9000) in [message["content"] for message in result.messages]


def test_a_budget_that_is_none_is_refused(make_runtime: MakeRuntime) -> None:
    with pytest.raises(BuildError, match=r"results\.tokens"):
        make_runtime(["Hi."], sections={"results": {"tokens": 3}})


def test_a_transform_that_fails_leaves_the_result(make_runtime: MakeRuntime, watch: Drive) -> None:
    class Broken:
        name = "broken"
        version = "1"

        def register(self, registrar: Any) -> None:
            registrar.result_transform(lambda *_given: 1 / 0)
            registrar.result_transform(lambda *_given: "nothing")

    script = [Reply(tool_calls=[ToolCall("count", {"lines": 2})]), "Done."]
    runtime = make_runtime(script, tools=[count], plugins={"broken": Broken})

    events, result = watch(runtime, RunRequest("a", "Go."))

    assert "line 0\nline 1" in [message["content"] for message in result.messages]
    warnings = [event["message"] for event in events if event["type"] == "warning"]
    assert ["ZeroDivisionError" in warnings[0], "must return a tool message" in warnings[1]] == [True, True]


@given(st.text(max_size=3000), st.integers(0, 6), st.integers(20, 4000))
def test_a_cut_loses_nothing_and_stays_within_the_budget(text: str, pictures: int, budget: int) -> None:
    media = tuple({"type": "image", "number": number} for number in range(pictures))
    content = Content(text, media)

    made = cut(content, budget)

    assert text.startswith(made.head)
    assert text.endswith(made.tail)
    assert len(made.head) + made.omitted + len(made.tail) == len(text)
    assert (*made.media, *made.media_omitted) == media
    assert Content(made.head + made.tail, made.media).tokens <= budget + 2


@given(st.text(min_size=1, max_size=200), st.integers(4, 40))
def test_pages_add_up_to_the_whole(text: str, length: int) -> None:
    store = Assets()
    asset = store.put("s", text.encode(), name="a", media_type="text/plain")
    context = {"session_asset_store": store, "session_id": "s"}
    read, start = "", 0

    for _ in range(len(text.encode()) + 1):
        page = read_page(context, asset.id, start, length)["text"]
        words, _, note = page.rpartition("\n[")
        read += words
        more = re.search(r"start=(\d+)", note)
        if more is None:
            break
        assert int(more[1]) > start
        start = int(more[1])

    assert read == text


def test_the_declaration_takes_the_section() -> None:
    assert AgentSpec("a", "m", sections={"results": {"tokens": 600}}).section("results")["tokens"] == 600


def cut_down(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    result = {"type": "tool_result", "text": "short", "parts": parts, **more}
    message = {"role": "tool", "content": "short", "metadata": {}, "tool_result": result}
    call = CallView(id="c", name="album", arguments={}, raw={})
    return limit(500, message, call, {"session_asset_store": Assets(), "session_id": "s"})


@pytest.mark.parametrize("data", [None, "no base64!"])
def test_a_part_without_data_is_named_and_not_stored(data: str | None) -> None:
    made = cut_down([{"type": "image", "mime_type": "image/png", "data": data}])

    assert made["content"] == "short\n[A part of type 'image' is left out: there was no room for it.]"
    assert made["metadata"]["left_out"] == []


def test_an_error_that_is_cut_is_still_an_error() -> None:
    assert cut_down([{"type": "image", "data": PICTURE}], is_error=True)["tool_result"]["is_error"] is True
    assert "is_error" not in cut_down([{"type": "image", "data": PICTURE}])["tool_result"]


def test_without_a_store_there_is_no_page_to_read() -> None:
    with pytest.raises(ToolError, match="no asset store"):
        read_page({}, "asset_0", 0, 100)
