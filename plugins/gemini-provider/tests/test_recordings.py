"""Recorded traffic of the real API, where recordings lie beside the repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_provider_kit import RequestRefused
from agent_testing import Recorded, read_recordings
from gemini_provider.messages import is_call, is_text, says_something
from gemini_provider.request import compose

if TYPE_CHECKING:
    from agent_testing import Talk

WIRE = Path(__file__).parents[4] / "shared" / "wire"
RECORDED = read_recordings(WIRE, "gemini-*/*.json")

ANSWERED = {name: each for name, each in RECORDED.items() if each.reply.status == 200}

pytestmark = pytest.mark.skipif(not RECORDED, reason="there are no recordings beside the repository")


def ask(talk: Talk, recorded: Recorded, piece: int | None = None) -> Talk:
    """Send the recorded question as readable messages, and play the recorded answer."""
    request = recorded.request
    system = [{**request["systemInstruction"], "role": "system"}] if "systemInstruction" in request else []
    talk.session = talk.core.create_session("recorded")
    for message in talk.provider.from_native_messages([*system, *request["contents"]]):
        more = {key: message[key] for key in ("metadata", "tool_result") if message.get(key)}
        parts = message.get("multipartContent")
        talk.add(
            message["role"], message["content"], **more, **({"multipart_content": parts} if parts else {})
        )
    settings = {
        "model": recorded.path.rpartition("/")[2].partition(":")[0],
        "generation_config": request.get("generationConfig") or {},
        "server_tools": request.get("tools") or [],
        "tool_config": request.get("toolConfig") or {},
    }
    reply = replace(recorded.reply, piece=piece)
    return talk.stream(reply, **settings) if recorded.streamed else talk.call(reply, **settings)


def parts_in(recorded: Recorded) -> list[dict[str, Any]]:
    """The answer's parts, one by one as they came."""
    if recorded.streamed:
        lines = recorded.reply.body.split(b"\r\n")
        bodies = [orjson.loads(line[5:]) for line in lines if line.startswith(b"data:")]
    else:
        bodies = [orjson.loads(recorded.reply.body)]
    candidates = [candidate for body in bodies for candidate in body.get("candidates") or []]
    parts = [part for each in candidates for part in (each.get("content") or {}).get("parts") or []]
    return [part for part in parts if says_something(part)]


@pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
@pytest.mark.parametrize("piece", [7, 4096])
def test_a_recorded_answer_is_kept_whole(talk: Talk, recorded: Recorded, piece: int) -> None:
    if recorded.reply.status != 200:
        with pytest.raises(RequestRefused, match="not found"):
            ask(talk, recorded)
        return

    ask(talk, recorded, piece)

    item, expected = talk.native[-1], parts_in(recorded)
    others = [part for part in expected if not is_text(part) or "thoughtSignature" in part]
    assert [part for part in item["parts"] if part in others] == others
    text = "".join(part["text"] for part in expected if is_text(part))
    assert talk.last["content"] == text
    assert len(talk.last["metadata"].get("tool_calls") or []) == sum(map(is_call, expected))
    about = item["_metadata"]
    assert about["ending"] == ("tool_calls" if any(map(is_call, expected)) else "complete")
    assert about["usage"]["output_tokens"] > 0 and about["model"] and about["response_id"]


@pytest.mark.parametrize("recorded", ANSWERED.values(), ids=ANSWERED)
def test_the_request_is_what_was_recorded(talk: Talk, recorded: Recorded) -> None:
    ask(talk, recorded)

    ours, theirs = talk.sent, recorded.request
    assert [content["role"] for content in ours["contents"]] == [
        content["role"] for content in theirs["contents"]
    ]
    assert [content["parts"] for content in ours["contents"] if content["role"] == "user"] == [
        content["parts"] for content in theirs["contents"] if content["role"] == "user"
    ]
    assert set(theirs) - {"generationConfig"} <= set(ours)
    assert set(ours) <= set(theirs)


@pytest.mark.parametrize("recorded", ANSWERED.values(), ids=ANSWERED)
def test_a_recorded_answer_goes_back_as_it_came(talk: Talk, recorded: Recorded) -> None:
    ask(talk, recorded)
    item = talk.native[-1]

    [_user, sent] = compose([{"role": "user", "parts": [{"text": "?"}]}, item], sentinels=False).contents

    assert sent == {"role": "model", "parts": item["parts"]}
    whole = [part for part in parts_in(recorded) if not is_text(part) or "thoughtSignature" in part]
    assert [part for part in sent["parts"] if part in whole] == whole
