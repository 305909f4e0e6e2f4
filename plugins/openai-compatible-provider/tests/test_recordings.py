"""Recorded traffic of the real API, where recordings lie beside the repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_testing import Recorded, read_recordings
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from agent_testing import Talk

WIRE = Path(__file__).parents[4] / "shared" / "wire"
RECORDED = {
    name: each
    for name, each in read_recordings(WIRE, "openai-chat-*/*.json").items()
    if each.path.endswith("/chat/completions")
}
NOT_SETTINGS = {"model", "messages", "tools", "stream", "stream_options"}

pytestmark = pytest.mark.skipif(not RECORDED, reason="there are no recordings beside the repository")


def ask(talk: Talk, recorded: Recorded, piece: int | None = None) -> Talk:
    """Send the recorded question as native history, and play the recorded answer."""
    native = recorded.request["messages"]
    for message in OpenAICompatibleProvider().from_native_messages(native):
        more = {"multipart_content": message["multipartContent"]} if "multipartContent" in message else {}
        talk.add(message["role"], message["content"], message["metadata"], **more)
    settings = {key: value for key, value in recorded.request.items() if key not in NOT_SETTINGS}
    settings["extra_body"] = {"n": settings.pop("n")} if "n" in settings else {}
    reply = replace(recorded.reply, piece=piece)
    return talk.stream(reply, **settings) if recorded.streamed else talk.ask(reply, **settings)


def answer_of(recorded: Recorded) -> dict[str, Any]:
    """The recorded message, put together in the plainest way there is."""
    if not recorded.streamed:
        message: dict[str, Any] = orjson.loads(recorded.reply.body)["choices"][0]["message"]
        return message
    text, calls = "", list[dict[str, Any]]()
    for line in recorded.reply.body.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        for choice in orjson.loads(line[6:])["choices"]:
            text += choice["delta"].get("content") or ""
            for piece in choice["delta"].get("tool_calls") or []:
                if piece.get("id"):
                    calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
                else:
                    calls[piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
    return {"role": "assistant", "content": text or (None if calls else ""), "tool_calls": calls}


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
@pytest.mark.parametrize("piece", [7, 4096])
def test_a_recorded_answer_is_kept_whole(talk: Talk, recorded: Recorded, piece: int) -> None:
    ask(talk, recorded, piece)

    expected = {key: value for key, value in answer_of(recorded).items() if value or key == "content"}
    item = {key: value for key, value in talk.native[-1].items() if value or key == "content"}
    assert {key: value for key, value in item.items() if key != "_metadata"} == expected
    assert talk.last["content"] == (expected["content"] or "")
    assert talk.about["ending"] in ("complete", "tool_calls")
    assert talk.about["usage"]["output_tokens"] > 0
    assert talk.about["model"] and talk.about["response_id"].startswith("chatcmpl-")


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
def test_the_request_is_what_was_recorded(talk: Talk, recorded: Recorded) -> None:
    ask(talk, recorded)

    assert len(talk.sent["messages"]) == len(recorded.request["messages"])
    for ours, theirs in zip(talk.sent["messages"], recorded.request["messages"], strict=True):
        assert ours["role"] == ("system" if theirs["role"] == "developer" else theirs["role"])
        assert (ours.get("content") or "") == (theirs.get("content") or "")
        assert (ours.get("tool_calls") or []) == (theirs.get("tool_calls") or [])
    assert set(recorded.request) - set(talk.sent) <= {"tools", "stream", "stream_options"}
    assert set(talk.sent) - set(recorded.request) <= {"stream_options"}
