"""Where a run meets what is around it: hidden tools, new messages, callers that are coroutines, keys."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from agent_core import ToolSuspended
from agent_core.steps import Batch
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Command,
    Decision,
    ModelSpec,
    Phase,
    RunRequest,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_runtime import Checkpoint, PhaseView


class Whole(ScriptedProvider):
    """Says everything at the end, as a provider does that must hold its answer back."""

    def process_chunk(self, chunk: Any, native_messages: Any, state: Any) -> Any:
        _partials, finals, native, state = super().process_chunk(chunk, native_messages, state)
        return [], finals, native, state


def test_a_provider_without_pieces_is_still_heard(make_runtime: Any, watch: Any) -> None:
    runtime = make_runtime(Whole(["All at once."]))

    events, _result = watch(runtime, RunRequest("a", "Hello"))

    assert [event["text"] for event in events if event["type"] == "text"] == ["All at once."]


class InBatches(ScriptedProvider):
    """Reads several chunks at once, as a socket brings them, and thinks in the middle."""

    def stream_api(self, native_messages: Any, state: Any, request_id: str | None = None) -> Any:
        chunks = list(super().stream_api(native_messages, state, request_id))
        yield Batch(chunks[:4])
        yield from chunks[4:]

    async def stream_api_async(
        self, native_messages: Any, state: Any, request_id: str | None = None
    ) -> AsyncIterator[Any]:
        for item in self.stream_api(native_messages, state, request_id):
            yield item

    def process_chunk(self, chunk: Any, native_messages: Any, state: Any) -> Any:
        partials, *rest = super().process_chunk(chunk, native_messages, state)
        if chunk.get("text") == "hm":
            partials = [{"role": "assistant", "reasoning": "hm"}]
        return partials, *rest


def test_texts_that_one_read_brings_are_one_piece(make_runtime: Any, watch: Any) -> None:
    chunks = ["one ", "two ", "hm", "three ", "four ", "five"]
    runtime = make_runtime(InBatches([Reply(chunks=chunks)]))

    events, _result = watch(runtime, RunRequest("a", "Count"))

    pieces = [(event["type"], event["text"]) for event in events if event["type"] in ("text", "reasoning")]
    assert pieces == [
        ("text", "one two "), ("reasoning", "hm"), ("text", "three "), ("text", "four "), ("text", "five"),
    ]  # fmt: skip


class AtOnce(InBatches):
    """Reads everything at once."""

    def stream_api(self, native_messages: Any, state: Any, request_id: str | None = None) -> Any:
        yield Batch(ScriptedProvider.stream_api(self, native_messages, state, request_id))


def test_an_answer_that_comes_all_at_once_is_still_read_piece_by_piece(make_runtime: Any, watch: Any) -> None:
    words = [f"{number} " for number in range(100)]
    runtime = make_runtime(AtOnce([Reply(chunks=words)]))

    events, _result = watch(runtime, RunRequest("a", "Count"))

    texts = [event["text"] for event in events if event["type"] == "text"]
    assert "".join(texts) == "".join(words)
    assert [len(text.split()) for text in texts] == [32, 32, 32, 4]


def test_a_tool_that_was_not_offered_does_not_run(make_runtime: Any, placing: Any, drive: Any) -> None:
    ran: list[str] = []

    def danger() -> str:
        """Do it."""
        ran.append("danger")
        return "done"

    def hide(_view: PhaseView) -> Command:
        return Command().schedule("exclude_tools", ["danger"])

    script = [Reply(tool_calls=[ToolCall("danger", {})]), "I could not."]
    runtime = make_runtime(script, tools=[danger], plugins={"p": placing(before_inference=hide)})

    _events, result = drive(runtime, RunRequest("a", "Go"))

    assert ran == []
    assert "danger" in result.messages[2]["content"] and "Error" in result.messages[2]["content"]
    assert result.text == "I could not."


def ask() -> str:
    """Ask."""
    raise ToolSuspended("Really?")


def test_a_new_message_to_a_run_that_waits_begins_a_new_run(make_runtime: Any, drive: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("ask", {})]), "Then not."]
    runtime = make_runtime(script, tools=[ask], max_rounds=1)
    _events, first = drive(runtime, RunRequest("a", "Go"))

    _events, second = drive(runtime, RunRequest("a", "Forget it.", first.session))

    assert [one.message for one in waiting(first.session)] == ["Really?"]
    assert second.text == "Then not."
    assert second.run_id != first.run_id
    assert second.rounds == 1
    assert waiting(second.session) == ()


def test_a_call_that_waits_again_is_another_question(make_runtime: Any, drive: Any) -> None:
    script = [Reply(tool_calls=[ToolCall("ask", {})]), "Done."]
    runtime = make_runtime(script, tools=[ask])
    _events, first = drive(runtime, RunRequest("a", "Go"))
    decision = Decision(first.suspended[0].id)

    _events, second = drive(runtime, RunRequest("a", session=first.session, decisions=[decision]))

    assert [one.message for one in second.suspended] == ["Really?"]
    assert second.suspended[0].id != first.suspended[0].id


def test_a_tool_gets_one_key_for_every_try_at_a_call(make_runtime: Any, drive: Any) -> None:
    keys: list[str] = []

    def pay(context: Any) -> str:
        """Pay."""
        keys.append(context["idempotency_key"])
        if len(keys) == 1:
            raise ToolSuspended("Pay?")
        return "paid"

    script = [Reply(tool_calls=[ToolCall("pay", {}, id="c1")]), "Done."]
    runtime = make_runtime(script, tools=[pay])
    _events, first = drive(runtime, RunRequest("a", "Go"))

    drive(runtime, RunRequest("a", session=first.session, decisions=[Decision(first.suspended[0].id)]))

    assert keys == [f"{first.run_id}:c1"] * 2


def test_checkpoints_and_the_inbox_may_be_coroutines(make_runtime: Any) -> None:
    kept: list[str] = []
    letters = [["And then?"], []]

    async def keep(checkpoint: Checkpoint) -> None:
        await asyncio.sleep(0)
        kept.append(checkpoint.kind)

    async def inbox() -> list[str]:
        await asyncio.sleep(0)
        return letters.pop(0)

    runtime = make_runtime(["One.", "Two."])
    request = RunRequest("a", "Go", checkpoint=keep, inbox=inbox)

    result = asyncio.run(runtime.run_to_completion_async(request))

    assert result.text == "Two."
    assert kept == ["input", "answer", "input", "answer", "end"]


def test_every_hook_of_the_end_is_heard_although_one_fails(
    make_runtime: Any, placing: Any, drive: Any
) -> None:
    reasons: list[str] = []

    def fail(_view: PhaseView) -> None:
        raise ValueError("no")

    def note(view: PhaseView) -> None:
        assert view.reason is not None
        reasons.append(f"{view.phase == Phase.RUN_END} {view.reason.code}")

    plugins = {"bad": placing(run_end=fail), "good": placing(run_end=note, on_deactivate=note)}
    runtime = make_runtime(["Hello."], plugins=plugins)

    _events, result = drive(runtime, RunRequest("a", "Hi"))

    assert reasons == ["True natural_end", "True natural_end"]
    assert result.reason.code == "error"
    assert "'bad'" in result.reason.detail


class AskingProvider(ScriptedProvider):
    """Lists its models after a while, as one does that asks a server."""

    def __init__(self) -> None:
        super().__init__(["Hello."])
        self.asked_in: list[str] = []

    def get_models(self, config: Any) -> Any:
        self.asked_in.append(threading.current_thread().name)
        return super().get_models(config)


def test_an_agent_that_is_new_is_not_resolved_on_the_event_loop() -> None:
    provider = AskingProvider()
    builder = AgentRuntimeBuilder().with_provider("p", provider).with_model(ModelSpec("m", "p"))
    runtime = builder.with_agent_spec(AgentSpec("a", "m")).build_unchecked()

    result = asyncio.run(runtime.run_to_completion_async(RunRequest("a", "Hi")))

    assert result.text == "Hello."
    assert len(provider.asked_in) == 1  # with and without a list of tools it is the same question
    assert provider.asked_in != [threading.main_thread().name]
