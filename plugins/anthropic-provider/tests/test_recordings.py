"""Recorded traffic of the real API, where recordings lie beside the repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_provider_kit import RequestRefused
from agent_testing import Recorded, read_recordings
from anthropic_provider.messages import blocks_of, is_call, is_text
from anthropic_provider.request import compose

if TYPE_CHECKING:
    from agent_testing import Talk

WIRE = Path(__file__).parents[4] / "shared" / "wire"
RECORDED = read_recordings(WIRE, "anthropic-*/*.json")
NOT_SENT = {"model", "messages", "system", "tools", "stream", "tool_choice"}

ANSWERED = {name: each for name, each in RECORDED.items() if each.reply.status == 200}

pytestmark = pytest.mark.skipif(not RECORDED, reason="there are no recordings beside the repository")


def ask(talk: Talk, recorded: Recorded, piece: int | None = None) -> Talk:
    """Send the recorded question as native history, and play the recorded answer."""
    native = [*_system(recorded.request), *recorded.request.get("messages", [])]
    talk.session = talk.core.create_session("recorded")
    for message in talk.provider.from_native_messages(native):
        more = {key: message[key] for key in ("metadata", "tool_result") if message.get(key)}
        parts = message.get("multipartContent")
        talk.add(
            message["role"], message["content"], **more, **({"multipart_content": parts} if parts else {})
        )
    settings = {key: value for key, value in recorded.request.items() if key not in NOT_SENT}
    settings |= {"server_tools": recorded.request.get("tools") or []}
    reply = replace(recorded.reply, piece=piece)
    return talk.stream(reply, **settings) if recorded.streamed else talk.call(reply, **settings)


def _system(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": request["system"]}] if request.get("system") else []


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
@pytest.mark.parametrize("piece", [7, 4096])
def test_a_recorded_answer_is_kept_whole(talk: Talk, recorded: Recorded, piece: int) -> None:
    if recorded.reply.status != 200:
        with pytest.raises(RequestRefused):
            ask(talk, recorded)
        return

    ask(talk, recorded, piece)

    item = talk.native[-1]
    expected = _content_of(recorded)
    assert item["content"] == expected
    assert talk.last["content"] == "".join(block["text"] for block in expected if is_text(block))
    assert len(talk.last["metadata"].get("tool_calls") or []) == sum(map(is_call, expected))
    assert item["_metadata"]["ending"] in ("complete", "tool_calls")
    assert "unknown_events" not in item["_metadata"]
    assert item["_metadata"]["usage"]["output_tokens"] > 0
    if not any(map(is_call, expected)):
        assert talk.provider.validate_native(talk.native) == []


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
def test_the_request_is_what_was_recorded(talk: Talk, recorded: Recorded) -> None:
    if recorded.reply.status != 200:
        pytest.skip("it was refused")
    ask(talk, recorded)

    ours, theirs = talk.sent, recorded.request
    for sent, wanted in zip(ours["messages"], theirs["messages"], strict=True):
        assert sent["role"] == wanted["role"]
        assert sent["role"] == "assistant" or blocks_of(sent) == blocks_of(wanted)
    assert set(theirs) - set(ours) <= {"stream", "tool_choice"}
    assert set(ours) <= set(theirs)


@pytest.mark.parametrize("recorded", ANSWERED.values(), ids=ANSWERED)
def test_a_recorded_answer_goes_back_as_it_came(talk: Talk, recorded: Recorded) -> None:
    ask(talk, recorded)
    item = talk.native[-1]

    [_user, sent] = compose([{"role": "user", "content": "?"}, item]).messages

    assert sent == {"role": "assistant", "content": _content_of(recorded)}


def _content_of(recorded: Recorded) -> list[dict[str, Any]]:
    """The answer's blocks, put together in the plainest way there is."""
    if not recorded.streamed:
        return list(orjson.loads(recorded.reply.body)["content"])
    blocks: list[dict[str, Any]] = []
    arguments: dict[int, str] = {}
    for line in recorded.reply.body.split(b"\n"):
        event = orjson.loads(line[5:]) if line.startswith(b"data:") else {}
        if event.get("type") == "content_block_start":
            blocks.append(event["content_block"])
        elif event.get("type") == "content_block_delta":
            _apply(blocks[event["index"]], event["delta"], arguments, event["index"])
    for index, text in arguments.items():
        if text:
            blocks[index]["input"] = orjson.loads(text)
    return blocks


def _apply(block: dict[str, Any], delta: dict[str, Any], arguments: dict[int, str], index: int) -> None:
    if delta["type"] == "input_json_delta":
        arguments[index] = arguments.get(index, "") + delta["partial_json"]
    elif delta["type"] == "citations_delta":
        block["citations"] = [*block["citations"], delta["citation"]]
    else:
        field = delta["type"].removesuffix("_delta")
        block[field] += delta[field]
