"""Runs that another process goes on with: from any checkpoint, to the same end, in the same run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Session, tool
from agent_core.testing import Reply, ToolCall
from agent_runtime import Command, Decision, RunRequest, StateKey, Suspend
from agent_runtime.recovery import MAY_HAVE_RUN

if TYPE_CHECKING:
    from conftest import Drive, MakeRuntime, Placing

    from agent_runtime import Checkpoint

    Plugin = type[Placing]

STEPS: StateKey[int] = StateKey("steps", 0, merge="commutative", reduce=lambda count, more: count + more)


def answer(messages: list[dict[str, Any]]) -> Reply:
    """Add two numbers, then two more, then say the sum; the same in every process."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        calls = [ToolCall("add", {"a": 1, "b": 2}, "c1"), ToolCall("add", {"a": 3, "b": 4}, "c2")]
        return Reply(tool_calls=calls, usage={"input_tokens": 10, "output_tokens": 5})
    if len(results) == 2:
        return Reply(tool_calls=[ToolCall("add", {"a": 5, "b": 6}, "c3")], usage={"input_tokens": 20})
    return Reply(text=f"Sums: {' '.join(results)}", usage={"input_tokens": 30})


class Adding:
    """The tool, and which calls of it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.keys: list[str] = []

    def tool(self, *, idempotent: bool = True) -> Any:
        @tool(name="add", idempotent=idempotent, parallel=False)
        def add(a: int, b: int, context: Any) -> int:
            """Add."""
            self.ran.append(context["tool_call_id"])
            self.keys.append(context["idempotency_key"])
            return a + b

        return add


def counting(placing: Plugin) -> Any:
    return placing(keys=[STEPS], step_end=lambda _view: Command().update(STEPS, 1))


def run_once(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, session: Session, *messages: str, **request: Any
) -> tuple[Any, Adding]:
    adding = Adding()
    runtime = make_runtime([answer] * 9, tools=[adding.tool()], plugins={"count": counting(placing)})
    asked = RunRequest("a", messages, session, run_id="r", resumable=True, **request)
    _events, result = drive(runtime, asked)
    return result, adding


def as_stored(session: Session) -> Session:
    """Return a session as another process reads it."""
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


def test_a_run_goes_on_from_every_checkpoint(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    kept: list[Checkpoint] = []
    whole, first = run_once(make_runtime, placing, drive, Session("s"), "Add.", checkpoint=kept.append)
    assert first.ran == ["c1", "c2", "c3"]
    assert [one.kind for one in kept] == [
        "input", "answer", *("intent", "result") * 2, "answer", "intent", "result", "answer", "end",
    ]  # fmt: skip

    for place, checkpoint in enumerate(kept[:-1]):
        done = [one.call_id for one in kept[: place + 1] if one.kind == "result"]
        result, again = run_once(make_runtime, placing, drive, as_stored(checkpoint.session))

        assert result.text == whole.text == "Sums: 3 7 11"
        assert (result.rounds, result.usage, result.run_id) == (whole.rounds, whole.usage, "r")
        assert again.ran == [call for call in first.ran if call not in done]
        assert again.keys == [f"r:{call}" for call in again.ran]
        assert [one.content for one in result.session.messages] == [
            one.content for one in whole.session.messages
        ]


def test_a_call_that_had_begun_is_not_run_twice_unless_that_does_no_harm(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    def run(adding: Adding, session: Session, *messages: str, **request: Any) -> Any:
        runtime = make_runtime([answer] * 9, tools=[adding.tool(idempotent=False)])
        asked = RunRequest("a", messages, session, run_id="r", resumable=True, **request)
        return drive(runtime, asked)[1]

    kept: list[Checkpoint] = []
    run(Adding(), Session("s"), "Add.", checkpoint=kept.append)

    for checkpoint in kept[:-1]:
        adding = Adding()
        result = run(adding, as_stored(checkpoint.session))
        told = {one.metadata["tool_call_id"]: one for one in result.session.messages if one.role == "tool"}

        begun = checkpoint.call_id if checkpoint.kind == "intent" else None
        assert begun not in adding.ran
        assert [call for call, one in told.items() if one.content == MAY_HAVE_RUN] == [begun] * bool(begun)
        assert list(told) == ["c1", "c2", "c3"]


def test_a_run_that_is_over_leaves_nothing_to_go_on_with(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    kept: list[Checkpoint] = []

    result, _adding = run_once(make_runtime, placing, drive, Session("s"), "Add.", checkpoint=kept.append)

    assert "agent_run" not in result.session.metadata
    assert "agent_run" not in kept[-1].session.metadata
    assert all("agent_run" in one.session.metadata for one in kept[:-1])


def test_a_budget_counts_what_was_used_before(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    kept: list[Checkpoint] = []
    run_once(make_runtime, placing, drive, Session("s"), "Add.", checkpoint=kept.append)
    second_answer = [one for one in kept if one.kind == "answer"][1]

    result, _adding = run_once(
        make_runtime, placing, drive, as_stored(second_answer.session), token_budget=30
    )

    assert result.reason.code == "token_budget"


def test_another_run_does_not_go_on_with_it(make_runtime: MakeRuntime, placing: Plugin, drive: Drive) -> None:
    kept: list[Checkpoint] = []
    run_once(make_runtime, placing, drive, Session("s"), "Add.", checkpoint=kept.append)
    adding = Adding()
    runtime = make_runtime([answer] * 9, tools=[adding.tool()], plugins={"count": counting(placing)})
    last_result = [one for one in kept if one.kind == "result"][-1]

    _events, result = drive(
        runtime, RunRequest("a", (), as_stored(last_result.session), run_id="another", resumable=True)
    )

    assert (result.rounds, result.run_id, adding.ran) == (1, "another", [])


@pytest.mark.parametrize("waits", ["c1", "c2"])
def test_a_call_that_waits_still_waits_and_the_others_run(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, waits: str
) -> None:
    def gate(view: Any) -> Suspend | None:
        return Suspend("Really?") if view.call.id == waits else None

    def runtime(adding: Adding) -> Any:
        return make_runtime([answer] * 9, tools=[adding.tool()], plugins={"ask": placing(gate=gate)})

    kept: list[Checkpoint] = []
    request = RunRequest("a", "Add.", Session("s"), run_id="r", resumable=True, checkpoint=kept.append)
    drive(runtime(Adding()), request)
    answered = next(one for one in kept if one.kind == "answer")
    adding = Adding()

    _events, result = drive(
        runtime(adding), RunRequest("a", (), as_stored(answered.session), run_id="r", resumable=True)
    )

    assert result.reason.code == "suspended"
    [question] = result.suspended
    assert [question.call_id, *adding.ran] in (["c1", "c2"], ["c2", "c1"])
    _events, ended = drive(
        runtime(adding),
        RunRequest(
            "a", (), as_stored(result.session), run_id="r", resumable=True, decisions=[Decision(question.id)]
        ),
    )
    assert ended.text.startswith("Sums: ")
    assert sorted(adding.ran) == ["c1", "c2", "c3"]


def test_whoever_wants_to_pause_hears_of_every_checkpoint(make_runtime: MakeRuntime) -> None:
    kept: list[Checkpoint] = []
    runtime = make_runtime([answer] * 9, tools=[Adding().tool()])
    request = RunRequest("a", "Add.", Session("s"), checkpoint=kept.append, pauses=True)

    events = list(runtime.run(request))

    told = [(one["kind"], one["call_id"]) for one in events if one["type"] == "kept"]
    assert sorted(map(str, told)) == sorted(str((one.kind, one.call_id)) for one in kept)
    begun = [one["type"] for one in events].index("tool_call_start")
    before = [one["kind"] for one in events[:begun] if one["type"] == "kept"]
    assert before[:3] == ["input", "answer", "intent"]
