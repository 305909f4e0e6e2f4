"""Whatever models, tools, gates and people do, a run keeps its promises."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings, strategies as st

from agent_core import AgentError, Cancellation, Session, ToolSuspended
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Block,
    Command,
    ModelSpec,
    Phase,
    RunRequest,
    SetResult,
    Suspend,
    Usage,
)

if TYPE_CHECKING:
    from agent_runtime import AgentRuntime, PluginRegistrar, RunResult
    from agent_runtime.phases import PhaseView
    from agent_runtime.verdicts import Verdict

Events = list[dict[str, Any]]
DRIVERS = ("run", "run_async", "run_to_completion", "run_to_completion_async")
MAX_ROUNDS = 4
PHASES = tuple(phase.value for phase in Phase)

# What may happen


@dataclass(frozen=True)
class Trouble:
    """What a plugin does: in the so-manyth call of its hook for a phase, stop, warn or fail."""

    phase: str
    turn: int
    what: str


@dataclass(frozen=True)
class World:
    """Everything that is decided beforehand about a conversation of one session."""

    script: list[Any]
    troubles: list[Trouble]
    decisions: list[str]
    cancel_at: int | None
    drivers: list[str]


@dataclass
class Witness:
    """What really happened."""

    ran: Counter[str] = field(default_factory=Counter)
    ends: list[str] = field(default_factory=list)


tools = st.sampled_from(
    ["work", "work_beside", "fail", "ask_itself", "gate_asks", "blocked", "given", "missing"]
)
calls = st.lists(tools, min_size=1, max_size=4)
usages = st.none() | st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)}
)


def calling(names: list[str], usage: dict[str, int] | None, text: str) -> Reply:
    return Reply(text=text, tool_calls=[ToolCall(name, {"n": 1}) for name in names], usage=usage)


lines = st.one_of(
    st.builds(calling, calls, usages, st.sampled_from(["", "see"])),
    st.builds(calling, calls, usages, st.just("")),
    st.builds(
        lambda chunks, usage: Reply(chunks=chunks, usage=usage), st.lists(st.sampled_from("ab")), usages
    ),
    st.just(Reply(text="half", error=ConnectionError("gone"))),
    st.just(AgentError("odd")),
    st.just(Reply(tool_calls=[ToolCall("work", "{not json")])),
)
worlds = st.builds(
    World,
    script=st.lists(lines, min_size=1, max_size=8),
    troubles=st.lists(
        st.builds(
            Trouble, st.sampled_from(PHASES), st.integers(0, 2), st.sampled_from(["stop", "warn", "fail"])
        ),
        max_size=2,
    ),
    decisions=st.lists(st.sampled_from(["approve", "refuse", "message"]), min_size=6, max_size=6),
    cancel_at=st.none() | st.integers(0, 4),
    drivers=st.lists(st.sampled_from(DRIVERS), min_size=8, max_size=8),
)


class Plugin:
    """Gates the tools by their names, and makes the troubles that the world has."""

    name = "plugin"
    version = "1"

    def __init__(self, world: World, witness: Witness) -> None:
        self._world = world
        self._witness = witness
        self._turns: Counter[str] = Counter()

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.tool_gate(self._gate)
        for phase in PHASES:
            registrar.phase_hook(phase, self._hook)

    def _gate(self, view: PhaseView) -> Verdict | None:
        assert view.call is not None
        verdicts: dict[str, Verdict] = {
            "gate_asks": Suspend("May I?"),
            "blocked": Block("no"),
            "given": SetResult("given"),
        }
        return verdicts.get(view.call.name)

    def _hook(self, view: PhaseView) -> Command | None:
        turn = self._turns[view.phase]
        self._turns[view.phase] += 1
        if view.reason is not None:
            self._witness.ends.append(view.reason.code)
        for trouble in self._world.troubles:
            if (trouble.phase, trouble.turn) == (view.phase.value, turn):
                if trouble.what == "fail":
                    raise ValueError("boom")
                if trouble.what == "stop":
                    return Command().stop("enough")
                return Command().schedule("warn", "careful")
        return None


class Beside:
    """A tool whose calls may run in parallel."""

    name = "work_beside"
    version = "1"
    parallel = True

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": self.name, "parameters": {"type": "object"}}}]

    def execute_tool(self, _name: str, _arguments: Any, context: Any = None) -> dict[str, Any]:
        self._witness.ran[context["tool_call_id"]] += 1
        return {"success": True, "result": "worked"}


class Conversation:
    """One session and the runs in it, with every promise checked after each of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.witness = Witness()
        self.token = Cancellation()
        self.provider = ScriptedProvider([*world.script, *["the end"] * 60])
        self.runtime = self._build()
        self.session: Session | None = None
        self.runs = 0

    def _build(self) -> AgentRuntime:
        spec = AgentSpec("a", "m", plugin_ids=("plugin",), max_rounds=MAX_ROUNDS)
        builder = AgentRuntimeBuilder().with_agent_spec(spec).with_model(ModelSpec("m", "scripted"))
        builder.with_provider("scripted", self.provider).with_plugin(
            "plugin", Plugin(self.world, self.witness)
        )
        for name in ("work", "gate_asks", "blocked", "given"):
            builder.with_tool(name, self.work)
        builder.with_tool("fail", self.fail).with_tool("ask_itself", self.ask_itself)
        return builder.with_tool("work_beside", Beside(self.witness)).build()

    def work(self, n: int, context: dict[str, Any]) -> str:
        """Work."""
        self.witness.ran[context["tool_call_id"]] += n
        if self.world.cancel_at is not None and sum(self.witness.ran.values()) > self.world.cancel_at:
            self.token.cancel()
        return "worked"

    def fail(self, n: int) -> str:
        """Fail."""
        raise ValueError(str(n))

    def ask_itself(self, n: int, context: dict[str, Any]) -> str:
        """Ask a person."""
        if context.get("decision") is None:
            raise ToolSuspended("What now?")
        return f"decided {n}"

    def talk(self) -> None:
        """Run until nobody waits any more, then once more to show that the session can still be sent."""
        result = self.run(messages="Hello.")
        for decision in self.world.decisions:
            if not result.suspended:
                break
            result = self.run(**self._decided(result, decision))
        self.token = Cancellation()
        self.world.troubles.clear()
        again = self.run(messages="Again.")
        while again.suspended:
            again = self.run(decisions=[{"target": one.id} for one in again.suspended])
        assert again.error is None or isinstance(again.error, AgentError)

    def _decided(self, waiting: RunResult, decision: str) -> dict[str, Any]:
        if decision == "message":
            return {"messages": "Never mind."}
        first = waiting.suspended[0].id
        return {"decisions": [{"target": first, "approved": decision == "approve"}]}

    def run(self, **asked: Any) -> RunResult:
        driver = self.world.drivers[self.runs % len(self.world.drivers)]
        self.runs += 1
        before, requests = self.session, len(self.provider.requests)
        ends = len(self.witness.ends)
        resumed = "decisions" in asked
        events, result = self._drive(
            driver, RunRequest("a", session=before, cancellation=self.token, **asked)
        )
        self._check_events(events, result)
        self._check_session(before, result)
        assert result.rounds <= MAX_ROUNDS
        assert len(self.witness.ends) == ends + 1, "RUN_END runs once"
        if not resumed and (before is None or "agent_run" not in before.metadata):
            assert result.usage.requests == result.rounds <= len(self.provider.requests) - requests
        self.session = Session.from_dict(json.loads(json.dumps(result.session.to_dict())))
        return result

    def _drive(self, driver: str, request: RunRequest) -> tuple[Events, RunResult]:
        if driver == "run":
            stream = self.runtime.run(request)
            events = list(stream)
            assert stream.result is not None
            return events, stream.result
        if driver == "run_async":
            return asyncio.run(self._watch(request))
        if driver == "run_to_completion":
            return [], self.runtime.run_to_completion(request)
        return [], asyncio.run(self.runtime.run_to_completion_async(request))

    async def _watch(self, request: RunRequest) -> tuple[Events, RunResult]:
        stream = self.runtime.run_async(request)
        events = [event async for event in stream]
        assert stream.result is not None
        return events, stream.result

    def _check_events(self, events: Events, result: RunResult) -> None:
        if not events:
            return
        kinds = [event["type"] for event in events]
        assert kinds[0] == "run_start" and kinds[-1] == "run_end"
        assert kinds.count("run_start") == kinds.count("run_end") == 1
        assert events[-1]["reason"]["code"] == result.reason.code
        used = [Usage.from_dict(event["usage"]) for event in events if event["type"] == "usage"]
        totals = [Usage.from_dict(event["total"]) for event in events if event["type"] == "usage"]
        if totals:
            # Calls of tools are counted when they are answered, and so after the last answer as well.
            calls = result.usage.tool_calls
            assert replace(totals[-1], tool_calls=calls) == result.usage
            first = totals[0] - used[0]
            assert replace(sum(used, first), tool_calls=calls) == result.usage

    def _check_session(self, before: Session | None, result: RunResult) -> None:
        known = 0 if before is None else len(before.messages)
        tail = [message.to_dict() for message in result.session.messages[known:]]
        assert result.messages == tail
        assert (result.reason.code == "suspended") <= bool(result.suspended)
        waiting = [one.call_id for one in result.suspended]
        assert len({one.id for one in result.suspended}) == len(waiting)
        made, answered = calls_of(result.session)
        assert len(set(made)) == len(made)
        assert sorted([*answered, *waiting]) == sorted(made), "every call has one answer, or waits"
        assert all(self.witness.ran[call] <= 1 for call in made), "no call runs twice"
        said_not_run = [
            message.metadata["tool_call_id"]
            for message in result.session.messages
            if (message.metadata.get("error") or {}).get("type") in ("not_run", "blocked", "refused")
        ]
        assert all(self.witness.ran[call] == 0 for call in said_not_run), (
            "what is said not to have run did not"
        )


def calls_of(session: Session) -> tuple[list[str], list[str]]:
    made = [call["id"] for message in session.messages for call in message.metadata.get("tool_calls") or ()]
    answered = [message.metadata["tool_call_id"] for message in session.messages if message.role == "tool"]
    return made, answered


@settings(max_examples=80)
@given(worlds)
def test_a_run_keeps_its_promises_whatever_happens(world: World) -> None:
    Conversation(world).talk()


def test_the_world_of_the_test_is_as_rich_as_it_says() -> None:
    script = [
        calling(
            ["work", "gate_asks", "ask_itself", "blocked"], {"input_tokens": 1, "output_tokens": 1}, "see"
        ),
        calling(["given", "fail", "missing", "work_beside", "work_beside"], None, ""),
        "done",
    ]
    conversation = Conversation(World(script, [], ["approve", "refuse"], None, list(DRIVERS)))
    conversation.talk()

    assert conversation.session is not None
    told = [message.content for message in conversation.session.messages if message.role == "tool"]
    assert told[0] == "worked" and "worked" in told[2:] and "given" in told
    assert any("refused" in text for text in told) and any("not allowed" in text for text in told)
    assert conversation.session.messages[-1].content == "the end"
