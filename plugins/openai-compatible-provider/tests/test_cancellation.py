"""Taking a request back, wherever it waits."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Cancellation
from agent_testing import ServerReply, chat_reply

if TYPE_CHECKING:
    from agent_testing import Talk

TEA = chat_reply("Tea is a drink.")
AFTER_A_WORD = TEA.stall((TEA.stream or b"").index(b'"is "') - 100)
STALLS = {"before the reply": TEA.never_begin(), "in its middle": TEA.stall()}


@pytest.mark.parametrize("streaming", [False, True], ids=["call", "stream"])
@pytest.mark.parametrize("stalled", STALLS.values(), ids=STALLS)
def test_a_stalled_request_ends_when_it_is_cancelled(
    talk: Talk, stalled: ServerReply, streaming: bool
) -> None:
    talk.add("user", "Hi").server.play(stalled)
    cancellation, outcome = Cancellation(), list[Any]()

    def ask() -> None:
        if streaming:
            events = talk.core.send_request_stream(talk.session, talk.config, cancellation=cancellation)
            outcome.append(list(events)[-1]["messages"])
        else:
            outcome.append(talk.core.send_request(talk.session, talk.config, cancellation=cancellation)[1])

    thread = threading.Thread(target=ask)
    thread.start()
    talk.server.wait_until_stalled()
    cancellation.cancel()
    thread.join(60)

    talk.server.wait_until_hung_up()
    [messages] = outcome
    assert all(message["metadata"]["interrupted"] == "cancelled" for message in messages)
    assert "Tea is a drink.".startswith("".join(message["content"] for message in messages))


@pytest.mark.parametrize("stalled", STALLS.values(), ids=STALLS)
def test_a_stalled_request_of_a_loop_ends_when_it_is_cancelled(talk: Talk, stalled: ServerReply) -> None:
    talk.add("user", "Hi").server.play(stalled)
    cancellation = Cancellation()

    async def ask() -> dict[str, Any]:
        events = talk.core.send_request_stream_async(talk.session, talk.config, cancellation=cancellation)
        final: dict[str, Any] = [event async for event in events][-1]
        return final

    async def ask_and_cancel() -> dict[str, Any]:
        task = asyncio.ensure_future(ask())
        await asyncio.to_thread(talk.server.wait_until_stalled)
        cancellation.cancel()
        final = await task
        await asyncio.to_thread(talk.server.wait_until_hung_up)
        return final

    assert asyncio.run(ask_and_cancel())["interrupted"] is True


def test_what_had_arrived_is_kept_and_the_conversation_goes_on(talk: Talk) -> None:
    talk.add("user", "Hi").server.play(AFTER_A_WORD)
    cancellation = Cancellation()
    events = talk.core.send_request_stream(talk.session, talk.config, cancellation=cancellation)

    assert next(events)["message"]["content"] == "Tea "
    cancellation.cancel()
    final = next(events)

    talk.session = final["session"]
    talk.add("user", "Go on").ask(chat_reply("A drink."))
    assert [message["content"] for message in talk.sent["messages"]] == ["Hi", "Tea ", "Go on"]


def test_a_cancelled_task_closes_its_connection(talk: Talk) -> None:
    talk.add("user", "Hi").server.play(AFTER_A_WORD)

    async def read() -> None:
        async for _event in talk.core.send_request_stream_async(talk.session, talk.config):
            pass

    async def cancel() -> None:
        task = asyncio.ensure_future(read())
        await asyncio.to_thread(talk.server.wait_until_stalled)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(talk.server.wait_until_hung_up)

    asyncio.run(cancel())
