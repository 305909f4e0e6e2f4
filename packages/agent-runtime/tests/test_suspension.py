"""Runs that wait for a decision: what they ask, how they go on, and what of them is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Session, ToolSuspended, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    Block,
    Command,
    Decision,
    DecisionError,
    PhaseView,
    RunRequest,
    RunResult,
    StateKey,
    Suspend,
)
from agent_runtime.suspension import RUN, match_decisions, read_saved_run

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Drive, MakeRuntime, OpenCalls, Placing

    Plugin = type[Placing]

NUMBER = {"type": "integer", "minimum": 1}


def sending(*names: str) -> Reply:
    return Reply(tool_calls=[ToolCall("send", {"to": name}) for name in names])


def stored(session: Session) -> Session:
    """Return the session as another process would read it."""
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


def answers(result: RunResult) -> list[str]:
    return [str(message.content) for message in result.session.messages if message.role == "tool"]


class Post:
    """A tool that sends letters, and a gate that wants to be asked about some of them."""

    def __init__(self, **asked: Any) -> None:
        self.sent: list[str] = []
        self.gated: list[tuple[str, Any]] = []
        self.contexts: list[Any] = []
        self._asked = asked

    def send(self, to: str, context: Any) -> str:
        """Send a letter.

        Args:
            to: To whom.
        """
        self.contexts.append(context)
        self.sent.append(to)
        return f"sent to {to}"

    def gate(self, view: PhaseView) -> Suspend | None:
        assert view.call is not None
        to = view.call.arguments["to"]
        self.gated.append((to, view.call.decision))
        return None if to == "mum" else Suspend(f"Send to {to}?", parameters={"to": to}, **self._asked)


# Gates


def waiting_run(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, post: Post, *names: str
) -> tuple[Any, RunResult]:
    runtime = make_runtime(
        [sending(*names), "All done.", "And more."], tools=[post.send], plugins={"p": placing(gate=post.gate)}
    )
    _events, result = drive(runtime, RunRequest("a", "Write."))
    assert result.reason.code == "suspended"
    return runtime, result


def test_a_run_that_waits_says_what_for(make_runtime: MakeRuntime, placing: Plugin, watch: Drive) -> None:
    post = Post(response_schema=NUMBER)
    runtime = make_runtime([sending("boss")], tools=[post.send], plugins={"p": placing(gate=post.gate)})

    events, result = watch(runtime, RunRequest("a", "Write.", run_id="r"))

    assert [event["type"] for event in events[-3:]] == ["step_end", "suspended", "run_end"]
    (shown,) = events[-2]["suspensions"]
    assert shown == result.suspended[0].to_dict()
    assert json.loads(json.dumps(shown)) == {
        "id": "r:1:0",
        "call_id": "call_1",
        "tool": "send",
        "call": {
            "id": "call_1",
            "type": "function",
            "function": {"name": "send", "arguments": '{"to":"boss"}'},
        },
        "message": "Send to boss?",
        "action": "approve",
        "parameters": {"to": "boss", "preview": "send(to='boss')", "display": None},
        "response_schema": NUMBER,
        "mode": "replay",
        "owner": "p",
        "data": {},
        "asked_with": "",
        "settled": [],
    }
    assert (post.sent, result.rounds, result.run_id) == ([], 1, "r")


@pytest.mark.parametrize("by", ["id", "call_id"])
def test_replay_runs_the_call_through_all_gates_again(
    by: str, make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    post = Post()
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss")
    decision = Decision(getattr(result.suspended[0], by))

    events, ended = drive(runtime, RunRequest("a", session=stored(result.session), decisions=[decision]))

    assert post.sent == ["boss"]
    assert post.gated == [("boss", None), ("boss", decision)]
    assert (ended.reason.code, ended.text, ended.rounds) == ("natural_end", "All done.", 2)
    assert ended.run_id == result.run_id
    assert (ended.suspended, open_calls(ended.session)) == ((), [])
    assert RUN not in ended.session.metadata
    assert [message["role"] for message in ended.messages] == ["tool", "assistant"]
    if events:
        assert events[0]["resumed"] is True
        assert events[0]["run_id"] == result.run_id


def test_what_comes_while_a_decided_call_runs_is_in_the_next_question(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    came: list[str] = []

    @tool(requires_approval=True)
    def send(to: str) -> str:
        """Send a letter."""
        came.append("Be short.")
        return f"sent to {to}"

    provider = ScriptedProvider([sending("dad"), "Done."])
    runtime = make_runtime(provider, tools=[send])
    _events, waiting = drive(runtime, RunRequest("a", "Write."))
    [asked] = waiting.suspended

    def inbox() -> list[str]:
        return [came.pop()] if came else []

    _events, result = drive(
        runtime,
        RunRequest("a", session=waiting.session, decisions=[Decision(asked.id)], inbox=inbox),
    )

    assert [message.role for message in result.session.messages] == [
        *("user", "assistant", "tool", "user", "assistant"),
    ]
    assert (result.text, result.rounds) == ("Done.", 2)


def test_use_decision_takes_the_value_as_the_result(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post(mode="use_decision")
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss")
    decision = {"target": "call_1", "value": {"sent": "by hand"}}

    _events, ended = drive(runtime, RunRequest("a", session=stored(result.session), decisions=[decision]))

    assert (post.sent, answers(ended)) == ([], ['{"sent":"by hand"}'])
    assert ended.text == "All done."


@pytest.mark.parametrize("mode", ["replay", "pass_decision"])
def test_the_tool_finds_the_decision_in_its_context(
    mode: Any, make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post(mode=mode)
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss")
    decision = Decision("call_1", value="kindly")

    drive(runtime, RunRequest("a", session=stored(result.session), decisions=[decision]))

    assert [context["decision"] for context in post.contexts] == [decision]


def test_a_refused_call_is_not_run_and_the_model_reads_why(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post(response_schema=NUMBER)
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss")
    decision = Decision("call_1", approved=False, reason="He is on holiday.")

    _events, ended = drive(runtime, RunRequest("a", session=stored(result.session), decisions=[decision]))

    assert (post.sent, answers(ended)) == ([], ["Error: the call was refused: He is on holiday."])
    assert (ended.reason.code, ended.text) == ("natural_end", "All done.")


def test_what_a_second_gate_forbids_no_decision_allows(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post()
    forbidden: list[str] = []

    def forbid(_view: PhaseView) -> Block | None:
        return Block("closed") if forbidden else None

    runtime = make_runtime(
        [sending("boss"), "All done."],
        tools=[post.send],
        plugins={"p": placing(gate=post.gate), "q": placing(gate=forbid)},
    )
    _events, result = drive(runtime, RunRequest("a", "Write."))
    forbidden.append("now")

    _events, ended = drive(
        runtime, RunRequest("a", session=stored(result.session), decisions=[Decision("call_1")])
    )

    assert (post.sent, answers(ended)) == ([], ["Error: the call was not allowed: closed"])


def test_two_gates_that_ask_are_both_asked(make_runtime: MakeRuntime, placing: Plugin, drive: Drive) -> None:
    post, second = Post(), Post()
    runtime = make_runtime(
        [sending("boss"), "All done."],
        tools=[post.send],
        plugins={"p": placing(gate=post.gate), "q": placing(gate=second.gate)},
    )
    _events, first = drive(runtime, RunRequest("a", "Write."))

    _events, again = drive(
        runtime, RunRequest("a", session=stored(first.session), decisions=[Decision("call_1")])
    )
    assert (again.reason.code, again.suspended[0].owner, post.sent) == ("suspended", "q", [])

    _events, ended = drive(
        runtime, RunRequest("a", session=stored(again.session), decisions=[Decision("call_1")])
    )
    assert (ended.text, post.sent) == ("All done.", ["boss"])


# Several calls


def test_calls_that_need_not_wait_finish_while_others_wait(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    post = Post()
    _runtime, result = waiting_run(make_runtime, placing, drive, post, "boss", "mum", "bank", "mum")

    assert post.sent == ["mum", "mum"]
    assert [one.call_id for one in result.suspended] == ["call_1", "call_3"]
    assert open_calls(result.session) == ["call_1", "call_3"]


def test_with_a_part_of_the_decisions_the_run_does_that_part_and_waits_on(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    post = Post()
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss", "bank")

    _events, part = drive(
        runtime, RunRequest("a", session=stored(result.session), decisions=[Decision("call_2")])
    )

    assert (part.reason.code, post.sent, part.rounds) == ("suspended", ["bank"], 1)
    assert [one.call_id for one in part.suspended] == ["call_1"]
    assert part.suspended == stored_waiting(part)

    _events, ended = drive(
        runtime, RunRequest("a", session=stored(part.session), decisions=[Decision("call_1")])
    )

    assert (ended.reason.code, post.sent) == ("natural_end", ["bank", "boss"])
    assert open_calls(ended.session) == []


def stored_waiting(result: RunResult) -> tuple[Any, ...]:
    saved = read_saved_run(result.session)
    assert saved is not None
    return saved.waiting


def test_calls_that_wait_are_told_apart_even_with_one_id(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post()
    calls = [ToolCall("send", {"to": name}, id="same") for name in ("boss", "bank")]
    runtime = make_runtime(
        [Reply(tool_calls=calls), "Done."], tools=[post.send], plugins={"p": placing(gate=post.gate)}
    )
    _events, result = drive(runtime, RunRequest("a", "Write.", run_id="r"))
    session = stored(result.session)

    with pytest.raises(DecisionError, match="'same'"):
        drive(runtime, RunRequest("a", session=session, decisions=[Decision("same")]))

    decisions = [Decision("r:1:0", approved=False), Decision("r:1:1")]
    _events, ended = drive(runtime, RunRequest("a", session=session, decisions=decisions))

    assert (post.sent, ended.reason.code) == (["bank"], "natural_end")


# Decisions that do not fit


@pytest.mark.parametrize(
    ("decisions", "told"),
    [
        ([], "the run waits for decisions about \\['r:1:0'\\]: give decisions, or messages to continue"),
        ([Decision("call_9")], "nothing waits for a decision about 'call_9'; waiting are \\['r:1:0'\\]"),
        ([Decision("call_1", value=3), Decision("r:1:0", value=3)], "'r:1:0' is decided twice"),
        ([Decision("call_1", value=0)], "the decision about 'r:1:0' does not fit: 0 is less than"),
        ([Decision("call_1")], "the decision about 'r:1:0' does not fit"),
        ([{"value": 3}], "a decision needs a target"),
        ([{"target": "call_1", "aproved": True}], "no field 'aproved': did you mean 'approved'"),
        ([{"target": "call_1", "approved": "no"}], "approved must be true or false in a decision, not 'no'"),
        (["call_1"], "a decision needs a target"),
    ],
    ids=str,
)
def test_a_decision_that_does_not_fit_is_refused_and_the_run_still_waits(
    decisions: list[Any], told: str, make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post(response_schema=NUMBER)
    provider = ScriptedProvider([sending("boss"), "All done."])
    runtime = make_runtime(provider, tools=[post.send], plugins={"p": placing(gate=post.gate)})
    _events, result = drive(runtime, RunRequest("a", "Write.", run_id="r"))
    session = stored(result.session)

    with pytest.raises(DecisionError, match=told):
        drive(runtime, RunRequest("a", session=session, decisions=decisions))

    assert (post.sent, len(provider.requests)) == ([], 1)
    _events, ended = drive(runtime, RunRequest("a", session=session, decisions=[Decision("call_1", value=2)]))
    assert (post.sent, ended.text) == (["boss"], "All done.")


def test_a_decision_for_a_session_that_waits_for_nothing_is_refused(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    with pytest.raises(DecisionError, match="waiting are \\[\\]"):
        drive(make_runtime(["Hi."]), RunRequest("a", "Hello.", decisions=[Decision("call_1")]))


def test_a_schema_that_is_none_is_named(make_runtime: MakeRuntime, placing: Plugin, drive: Drive) -> None:
    post = Post(response_schema={"type": "no such type"})
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss")

    with pytest.raises(DecisionError, match=r"the schema for a decision about .* is not valid"):
        drive(runtime, RunRequest("a", session=result.session, decisions=[Decision("call_1", value=1)]))


def test_decisions_match_nothing_where_nothing_waits() -> None:
    assert match_decisions((), ()) == {}


# Going on otherwise


def test_a_new_message_in_place_of_a_decision_answers_the_call_as_not_run(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    post = Post()
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss", "bank")

    _events, ended = drive(runtime, RunRequest("a", "Never mind.", stored(result.session)))

    assert post.sent == []
    assert answers(ended) == ["Error: the call was not run: nobody decided about it"] * 2
    assert [message["role"] for message in ended.messages] == ["tool", "tool", "user", "assistant"]
    assert (open_calls(ended.session), ended.text) == ([], "All done.")
    assert read_saved_run(ended.session) is None


def test_decisions_and_a_message_may_come_together(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive, open_calls: OpenCalls
) -> None:
    post = Post()
    runtime, result = waiting_run(make_runtime, placing, drive, post, "boss", "bank")

    _events, ended = drive(
        runtime, RunRequest("a", "Only him.", stored(result.session), decisions=[Decision("call_1")])
    )

    assert post.sent == ["boss"]
    assert answers(ended) == ["sent to boss", "Error: the call was not run: nobody decided about it"]
    assert (open_calls(ended.session), ended.text) == ([], "All done.")


def test_rounds_and_usage_go_on_where_they_were(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    post = Post()
    usage = {"input_tokens": 10}
    script = [
        Reply(tool_calls=[ToolCall("send", {"to": "boss"})], usage=usage),
        Reply(tool_calls=[ToolCall("send", {"to": "mum"})], usage=usage),
        Reply(text="x", usage=usage),
    ]
    runtime = make_runtime(script, tools=[post.send], plugins={"p": placing(gate=post.gate)}, max_rounds=2)
    _events, result = drive(runtime, RunRequest("a", "Write."))

    _events, ended = drive(
        runtime, RunRequest("a", session=stored(result.session), decisions=[Decision("call_1")])
    )

    assert (result.usage.input_tokens, ended.usage.input_tokens, ended.usage.requests) == (10, 20, 2)
    assert (ended.reason.code, ended.rounds) == ("max_rounds", 2)


# Tools that wait


class Asking:
    """A tool that cannot go on before somebody has answered."""

    def __init__(self, mode: str, times: int = 1) -> None:
        self.seen: list[tuple[Any, Any]] = []
        self._mode, self._times = mode, times

    def order(self, dish: str, context: Any) -> str:
        """Order a dish.

        Args:
            dish: Which one.
        """
        data = dict(context.get("suspended") or {})
        decision = context.get("decision")
        self.seen.append((None if decision is None else decision.value, data))
        if len(data) < self._times:
            raise ToolSuspended(
                f"How many {dish}?",
                parameters={"unit": "plates"},
                response_schema=NUMBER,
                mode=self._mode,
                data={**data, f"asked {len(data) + 1}": dish},
            )
        return f"{dish}: {None if decision is None else decision.value}"


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("mode", ["pass_decision", "replay", "use_decision"])
def test_a_tool_may_ask_and_finds_its_own_data_again(
    mode: str, parallel: bool, make_runtime: MakeRuntime, drive: Drive
) -> None:
    asking = Asking(mode)
    order = tool(asking.order, name="order", parallel=parallel)
    calls = [ToolCall("order", {"dish": dish}) for dish in ("soup", "rice")]
    runtime = make_runtime([Reply(tool_calls=calls), "Served."], tools=[order])

    _events, result = drive(runtime, RunRequest("a", "Hungry.", run_id="r"))

    assert [(one.message, one.action, one.owner, one.mode) for one in result.suspended] == [
        ("How many soup?", "answer", "order", mode),
        ("How many rice?", "answer", "order", mode),
    ]
    assert dict(result.suspended[0].parameters) == {"unit": "plates"}

    decisions = [Decision("call_1", value=2), Decision("call_2", value=3)]
    _events, ended = drive(runtime, RunRequest("a", session=stored(result.session), decisions=decisions))

    assert ended.text == "Served."
    if mode == "use_decision":
        assert (answers(ended), len(asking.seen)) == (["2", "3"], 2)
    else:
        assert answers(ended) == ["soup: 2", "rice: 3"]
        assert sorted(asking.seen[2:]) == [(2, {"asked 1": "soup"}), (3, {"asked 1": "rice"})]


def test_a_tool_may_ask_several_times_while_another_still_waits(
    make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    asking = Asking("pass_decision", times=2)
    calls = [ToolCall("order", {"dish": dish}) for dish in ("soup", "rice")]
    runtime = make_runtime([Reply(tool_calls=calls), "Served."], tools=[tool(asking.order, name="order")])
    _events, first = drive(runtime, RunRequest("a", "Hungry."))

    _events, second = drive(
        runtime, RunRequest("a", session=stored(first.session), decisions=[Decision("call_2", value=1)])
    )

    assert second.reason.code == "suspended"
    assert sorted(one.call_id for one in second.suspended) == ["call_1", "call_2"]
    assert len({one.id for one in second.suspended}) == 2

    last = second
    while last.suspended:
        decisions = [Decision(one.id, value=5) for one in last.suspended]
        _events, last = drive(runtime, RunRequest("a", session=stored(last.session), decisions=decisions))

    assert (sorted(answers(last)), open_calls(last.session)) == (["rice: 5", "soup: 5"], [])


def test_a_refused_tool_is_not_called_again(make_runtime: MakeRuntime, drive: Drive) -> None:
    asking = Asking("pass_decision")
    runtime = make_runtime(
        [Reply(tool_calls=[ToolCall("order", {"dish": "soup"})]), "Pity."],
        tools=[tool(asking.order, name="order")],
    )
    _events, result = drive(runtime, RunRequest("a", "Hungry."))

    decision = Decision("call_1", approved=False, reason="closed")
    _events, ended = drive(runtime, RunRequest("a", session=stored(result.session), decisions=[decision]))

    assert (len(asking.seen), answers(ended), ended.text) == (
        1,
        ["Error: the call was refused: closed"],
        "Pity.",
    )


# State


def test_state_of_the_run_is_there_again_and_is_gone_after_the_run(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    of_run: StateKey[list[str]] = StateKey("of_run", [])
    of_session: StateKey[int] = StateKey("of_session", 0, scope="session")
    seen: list[tuple[list[str], int]] = []

    def count(view: PhaseView) -> Command:
        run, session = view.state.read(of_run), view.state.read(of_session)
        return Command().update(of_run, [*run, "x"]).update(of_session, session + 1)

    def note(view: PhaseView) -> None:
        run, session = view.state.read(of_run), view.state.read(of_session)
        seen.append((run, session))

    post = Post()
    plugin = placing(gate=post.gate, keys=[of_run, of_session], after_inference=count, run_end=note)
    runtime = make_runtime([sending("boss"), "All done.", "Again."], tools=[post.send], plugins={"p": plugin})

    _events, result = drive(runtime, RunRequest("a", "Write."))
    _events, ended = drive(
        runtime, RunRequest("a", session=stored(result.session), decisions=[Decision("call_1")])
    )
    drive(runtime, RunRequest("a", "And?", stored(ended.session)))

    assert seen == [(["x"], 1), (["x", "x"], 2), (["x"], 3)]


def test_a_saved_run_that_cannot_be_read_counts_as_none(make_runtime: MakeRuntime, drive: Drive) -> None:
    broken = Session("s", metadata={RUN: {"run_id": "r", "waiting": "nonsense"}})

    _events, result = drive(make_runtime(["Hi."]), RunRequest("a", "Hello.", broken))

    assert (result.text, RUN in result.session.metadata) == ("Hi.", False)


# Another process

_AGENT = textwrap.dedent(
    """
    import json, os, sys, time
    from pathlib import Path
    from agent_core import Session
    from agent_core.testing import Reply, ScriptedProvider, ToolCall
    from agent_runtime import *

    folder = Path(sys.argv[1])
    COUNT = StateKey("count", 0)

    class Guard:
        name, version = "guard", "1"
        def register(self, registrar):
            registrar.state_key(COUNT)
            registrar.tool_gate(lambda view: Suspend("Send?"))
            registrar.phase_hook("step_end", lambda view: Command().update(COUNT, view.state.read(COUNT) + 1))
            registrar.phase_hook("run_end", lambda view: print("steps", view.state.read(COUNT), flush=True))

    def send(to: str) -> str:
        "Send a letter."
        with (folder / "sent").open("a") as file:
            file.write(to)
        return f"sent to {to}"

    def keep(checkpoint):
        if checkpoint.kind == "end":
            (folder / "session").write_text(json.dumps(checkpoint.session.to_dict()))
            os.replace(folder / "session", folder / "kept")
            print("kept", flush=True)

    def runtime(script):
        builder = AgentRuntimeBuilder().with_model(ModelSpec("m", "scripted"))
        builder.with_agent_spec(AgentSpec("a", "m", plugin_ids=("guard",)))
        builder.with_provider("scripted", ScriptedProvider(script)).with_plugin("guard", Guard())
        return builder.with_tool("send", send).build()
    """
)
_FIRST = textwrap.dedent(
    """
    call = Reply(tool_calls=[ToolCall("send", {"to": "boss"})])
    runtime([call]).run_to_completion(RunRequest("a", "Write.", checkpoint=keep))
    sys.stdin.read()  # until somebody kills us
    """
)
_SECOND = textwrap.dedent(
    """
    session = Session.from_dict(json.loads((folder / "kept").read_text()))
    request = RunRequest("a", session=session, decisions=[{"target": "call_1"}])
    result = runtime(["All done."]).run_to_completion(request)
    print(result.reason.code, result.rounds, result.text)
    """
)


def test_another_process_goes_on_after_the_first_was_killed_while_it_waited(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", _AGENT + _FIRST, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout is not None
        assert [first.stdout.readline() for _ in range(2)] == ["steps 1\n", "kept\n"]
        os.kill(first.pid, signal.SIGKILL)
        assert first.wait(60) == -signal.SIGKILL
    assert not (tmp_path / "sent").exists()

    second = subprocess.run(
        [sys.executable, "-c", _AGENT + _SECOND, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert second.stdout.splitlines() == ["steps 2", "natural_end 2 All done."]
    assert (tmp_path / "sent").read_text() == "boss"


def test_a_tool_cannot_take_the_id_of_another_question(make_runtime: MakeRuntime) -> None:
    def pay(amount: int, context: dict[str, Any]) -> str:
        """Pay."""
        if "decision" not in context:
            raise ToolSuspended(f"Pay {amount}?", id="mine")
        return f"paid {amount}"

    calls = [ToolCall("pay", {"amount": amount}) for amount in (1, 2)]
    runtime = make_runtime([Reply(tool_calls=calls), "Done."], tools=[pay])
    result = runtime.run_to_completion(RunRequest("a", "Pay.", run_id="r"))

    ids = [one.id for one in result.suspended]
    assert ids == ["mine", "r:1:1"]
    decisions = [Decision(ids[1], approved=False), Decision(ids[0])]
    ended = runtime.run_to_completion(RunRequest("a", session=result.session, decisions=decisions))

    assert [one.content for one in ended.session.messages if one.role == "tool"] == [
        "paid 1",
        "Error: the call was refused",
    ]
