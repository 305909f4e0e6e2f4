"""Real traffic, played again where there are recordings of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_testing import Recorded, read_recordings
from openai_responses_provider import OpenAIResponsesProvider
from openai_responses_provider.items import is_tool_call
from openai_responses_provider.messages import text_of

if TYPE_CHECKING:
    from agent_testing import Talk

WIRE = Path(__file__).parents[4] / "shared" / "wire"
RECORDED = read_recordings(WIRE, "openai-responses-*/*.json")
ANSWERS = {name: each for name, each in RECORDED.items() if each.path.endswith("/responses")}
pytestmark = pytest.mark.skipif(not ANSWERS, reason="there are no recordings here")


def output_of(recorded: Recorded) -> list[dict[str, Any]]:
    if not recorded.streamed:
        return list(orjson.loads(recorded.reply.body)["output"])
    lines = recorded.reply.payload(streamed=True)[0].splitlines()
    events = [orjson.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
    return list(events[-1]["response"]["output"])


@pytest.mark.parametrize("size", [7, 4096])
@pytest.mark.parametrize("recorded", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_kept_whole_and_sent_back_unchanged(talk: Talk, recorded: Recorded, size: int) -> None:
    if recorded.reply.status != 200:
        pytest.skip("an error, not an answer")
    talk.add("user", "Hi")
    ask = talk.stream if recorded.streamed else talk.call
    ask(recorded.reply.in_pieces(size), item_ids="keep")

    output = output_of(recorded)
    plain = [{key: value for key, value in item.items() if key != "_metadata"} for item in talk.native[1:]]
    assert plain == output
    assert talk.last["content"] == "\n\n".join(
        filter(None, (text_of(i) for i in output if i["type"] == "message"))
    )
    assert len(talk.about.get("tool_calls", [])) == sum(map(is_tool_call, output))
    assert talk.about["ending"] in ("complete", "tool_calls")
    assert talk.about["usage"]["total_tokens"] > 0
    if recorded.streamed:
        assert "".join(partial["content"] for partial in talk.partials) == talk.last["content"]


@pytest.mark.parametrize("recorded", ANSWERS.values(), ids=ANSWERS)
def test_a_history_that_the_api_accepted_needs_no_repair(recorded: Recorded) -> None:
    items = recorded.request.get("input")
    if not isinstance(items, list) or recorded.reply.status != 200:
        pytest.skip("no history")
    assert OpenAIResponsesProvider().validate_native(items) == []
