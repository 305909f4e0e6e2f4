"""Anything in any order: nothing is lost, nothing runs twice, lifecycles come where they belong."""

from __future__ import annotations

import json
from collections import Counter
from itertools import repeat
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_app import AgentApplication, DecisionNotAccepted, SessionNotFound
from agent_app.lifecycle import REQUEST_ENDS
from agent_core import ArgumentError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Suspend, waiting
from agent_runtime.recovery import call_ids
from agent_runtime.suspension import unanswered

AGENTS = {"a": {"model": "m"}, "b": {"model": "m"}}
CONFIG = {"agents": AGENTS, "models": {"m": {"provider": "scripted"}}, "default_agent": "a"}
LIFECYCLES = (
    "session_create", "session_save_prepare", "request_prepare", "request_complete", "request_error",
    "session_fork", "agent_switch_prepare", "agent_switch_complete", "session_delete_prepare",
    *sorted(set(REQUEST_ENDS.values())),
)  # fmt: skip
picks = st.integers(min_value=0, max_value=1_000)
words = st.sampled_from(["hello", "work", "post", "work and post", "fail"])


def answer(native: Any) -> Any:
    """Do what the last message asks for: call tools, fail, or say something."""
    last = native[-1]
    asked = str(last.get("content")) if last.get("role") == "user" else ""
    if "fail" in asked:
        return RuntimeError("the model is away")
    calls = [ToolCall(name, {"text": asked}) for name in ("work", "post") if name in asked]
    return Reply(text="hm", tool_calls=calls) if calls else f"answer {len(native)}"


class Tools:
    """A runtime plugin with two tools; before one of them somebody is asked."""

    name = "tools"
    version = "1"

    def __init__(self, ledger: list[str]) -> None:
        self._ledger = ledger

    def register(self, registrar: Any) -> None:
        def work(text: str, context: dict[str, Any]) -> str:
            """Work."""
            self._ledger.append(context["idempotency_key"])
            return "worked"

        def post(text: str, context: dict[str, Any]) -> str:
            """Post."""
            self._ledger.append(context["idempotency_key"])
            return "posted"

        registrar.tool("work", tool(work))
        registrar.tool("post", tool(post))
        registrar.tool_gate(self.judge)

    def judge(self, view: Any) -> Any:
        ask = view.call.name == "post" and view.call.decision is None
        return Suspend("Post it?") if ask else None


class Watcher:
    """An application plugin that notes lifecycles."""

    name = "watcher"
    version = "1"

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return [{"id": "watch", "label": "Watch", "inputs": {}, "trigger": list(LIFECYCLES)}]

    def execute_action(self, app: Any, action: str, params: Any, context: Any, state: Any) -> dict[str, Any]:
        self._seen.append(context["lifecycle"])
        return {}


def lifecycles_of(end: dict[str, Any]) -> list[str]:
    """The lifecycles of one turn, by how it ended."""
    code = end.get("reason", {}).get("code")
    kind = "request_error" if end["type"] == "error" else REQUEST_ENDS.get(code, "request_complete")
    return ["request_prepare", kind, "session_save_prepare"]


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, str(message.content)) for message in session.messages]


class Application(RuleBasedStateMachine):
    """An application, and a plain model of what it must know."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.ledger: list[str] = []
        self.seen: list[str] = []
        self.sessions: dict[str, list[tuple[str, str]]] = {}
        self.agents: dict[str, str] = {}
        self.inputs: dict[str, list[tuple[str, str]]] = {}
        self.logs: dict[str, list[Any]] = {}
        self.number = 0
        self.app = self.open()

    def open(self) -> AgentApplication:
        provider = ScriptedProvider(repeat(answer))
        plugins = [provider, Tools(self.ledger), Watcher(self.seen)]
        url = f"sqlite:///{self.folder.name}/sessions.db"
        return AgentApplication(CONFIG, store=url, plugins=plugins, installed=False)

    def teardown(self) -> None:
        self.app.close()
        self.folder.cleanup()

    def pick(self, pick: int) -> str:
        return list(self.sessions)[pick % len(self.sessions)]  # in order of birth: ids are random

    def text(self, word: str) -> str:
        self.number += 1
        return f"{word} #{self.number}"

    def expect(self, *lifecycles: str) -> None:
        assert self.seen == list(lifecycles)
        self.seen.clear()

    def add(self, session: Session, agent: str) -> None:
        assert session.session_id not in self.sessions
        self.sessions[session.session_id] = said(session)
        self.agents[session.session_id] = agent
        self.inputs[session.session_id] = []
        self.logs[session.session_id] = []

    @initialize()
    def begin(self) -> None:
        self.create("a")

    @rule(agent=st.sampled_from(["a", "b"]))
    def create(self, agent: str) -> None:
        self.add(self.app.create_session(agent), agent)
        self.expect("session_create", "session_save_prepare")

    @precondition(lambda self: self.sessions)
    @rule(pick=picks, word=words, leave=st.integers(min_value=0, max_value=12))
    def chat(self, pick: int, word: str, leave: int) -> None:
        self.talk(self.pick(pick), self.text(word), leave)

    @precondition(lambda self: self.sessions)
    @rule(pick=picks)
    def go_on(self, pick: int) -> None:
        session_id = self.pick(pick)
        try:
            self.talk(session_id, "", 0)
        except ArgumentError:
            assert not self.inputs[session_id]
            decided = [one for one in self.app.store.approvals(session_id) if one.decision and not one.used]
            assert not decided

    def talk(self, session_id: str, text: str, leave: int) -> None:
        """Say something and read the events; with *leave*, only so many of them."""
        events = []
        with self.app.chat(session_id, text) as stream:
            for event in stream:
                events.append(event)
                if len(events) == leave:
                    break
        self.logs[session_id] += [self.plain(event) for event in events]
        if events[-1]["type"] in ("final", "error"):
            turns = [event for event in events if event["type"] in ("turn_end", "final", "error")]
            self.expect(*(name for turn in turns for name in lifecycles_of(turn)))
        self.seen.clear()
        self.note_talk(session_id, text)

    def note_talk(self, session_id: str, text: str) -> None:
        """Check that what was said before stays, and that what came was delivered once."""
        before, after = self.sessions[session_id], said(self.app.load_session(session_id))
        assert after[: len(before)] == before
        new = [content for role, content in after[len(before) :] if role == "user"]
        inputs = self.inputs[session_id]
        first = [one for one in (text, *(one for one, mode in inputs if mode != "queue")) if one]
        came = [*first, *(one for one, mode in inputs if mode == "queue")]
        # The caller may have left, or the session may wait for a decision, before all was delivered.
        assert new == came[: len(new)] and (not new or len(new) >= len(first))
        previous = dict(zip([content for _, content in after], [("", ""), *after], strict=False))
        for queued in new[max(1, len(first)) :]:
            assert previous[queued][0] != "user"  # each has a turn of its own
        self.inputs[session_id] = [one for one in inputs if one[0] not in new]
        self.sessions[session_id] = after

    def plain(self, event: dict[str, Any]) -> Any:
        return json.loads(json.dumps({key: value for key, value in event.items() if key != "session"}))

    @precondition(lambda self: self.sessions)
    @rule(pick=picks, word=words, mode=st.sampled_from(["steer", "queue", "interrupt"]))
    def enqueue(self, pick: int, word: str, mode: Any) -> None:
        session_id, text = self.pick(pick), self.text(word)
        self.app.enqueue(session_id, text, mode)
        self.inputs[session_id].append((text, mode))

    @precondition(lambda self: self.app.approvals())
    @rule(pick=picks, yes=st.booleans())
    def decide(self, pick: int, yes: bool) -> None:
        born = list(self.sessions)
        open_ones = sorted(
            self.app.approvals(), key=lambda one: (born.index(one.session_id), one.suspension["call_id"])
        )
        approval = open_ones[pick % len(open_ones)]
        self.app.decide(approval.id, yes)
        with pytest.raises(DecisionNotAccepted):
            self.app.decide(approval.id, not yes)

    @precondition(lambda self: any(self.sessions.values()))
    @rule(pick=picks, place=picks, agent=st.sampled_from([None, "a", "b"]))
    def fork(self, pick: int, place: int, agent: str | None) -> None:
        source = [one for one in self.sessions if self.sessions[one]]
        session_id = source[pick % len(source)]
        index = place % len(self.sessions[session_id])
        fork = self.app.fork_session(session_id, upto_index=index, agent_id=agent)
        assert said(fork) == self.sessions[session_id][: index + 1]
        self.add(fork, agent or self.agents[session_id])
        self.expect("session_fork", "session_save_prepare")

    @precondition(lambda self: any(self.sessions.values()))
    @rule(pick=picks, place=picks, word=words)
    def edit(self, pick: int, place: int, word: str) -> None:
        places = [
            (one, index)
            for one in self.sessions
            for index, (role, _) in enumerate(self.sessions[one])
            if role == "user"
        ]
        if not places:
            return
        (session_id, index), text = places[(pick + place) % len(places)], self.text(word)
        branch = self.app.edit_message(session_id, index, text)
        assert said(branch) == [*self.sessions[session_id][:index], ("user", text)]
        self.add(branch, self.agents[session_id])
        self.expect("session_fork", "session_save_prepare")

    @precondition(lambda self: self.sessions)
    @rule(pick=picks, agent=st.sampled_from(["a", "b"]))
    def switch(self, pick: int, agent: str) -> None:
        session_id = self.pick(pick)
        assert self.app.switch_agent(session_id, agent).metadata["agent_id"] == agent
        self.agents[session_id] = agent
        self.expect("agent_switch_prepare", "agent_switch_complete", "session_save_prepare")

    @precondition(lambda self: len(self.sessions) > 1)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        session_id = self.pick(pick)
        self.app.delete_session(session_id)
        self.expect("session_delete_prepare")
        for known in (self.sessions, self.agents, self.inputs, self.logs):
            del known[session_id]
        with pytest.raises(SessionNotFound):
            self.app.load_session(session_id)

    @rule()
    def restart(self) -> None:
        self.app.close()
        self.app = self.open()

    @invariant()
    def every_session_is_as_it_was_left(self) -> None:
        listed = {one.id: one.agent_id for one in self.app.list_sessions(limit=1000).sessions}
        assert listed == self.agents
        for session_id, known in self.sessions.items():
            assert said(self.app.load_session(session_id)) == known
            waits = [(str(one.message["content"]), one.mode) for one in self.app.store.inputs(session_id)]
            assert waits == self.inputs[session_id]

    @invariant()
    def no_call_ran_twice(self) -> None:
        assert [key for key, count in Counter(self.ledger).items() if count > 1] == []

    @invariant()
    def every_call_has_its_answer_or_waits_for_a_decision(self) -> None:
        for session_id in self.sessions:
            session = self.app.load_session(session_id)
            branched = self.app.store.info(session_id).parent_id is not None
            assert branched or unanswered(session) == []
            answered = {m.metadata["tool_call_id"] for m in session.messages if m.role == "tool"}
            assert answered <= call_ids(session)
            questions = {one.id for one in waiting(session)}
            open_ones = {one.id for one in self.app.store.approvals(session_id) if not one.used}
            assert open_ones == questions

    @invariant()
    def the_log_has_no_gap_and_every_shown_event(self) -> None:
        for session_id, shown in self.logs.items():
            logged = [json.loads(json.dumps(one)) for one in self.app.store.events(session_id, limit=10_000)]
            assert [one["seq"] for one in logged] == list(range(1, len(logged) + 1))
            by_number = {one["seq"]: one for one in logged}
            assert all(by_number[one["seq"]] == one for one in shown if "seq" in one)
            pieces = [one for one in shown if "seq" not in one]
            said = "".join(one["text"] for one in logged if one["type"] == "text")
            assert all(one["type"] == "text" and one["text"] in said for one in pieces)
            middle = len(logged) // 2
            rest = self.app.store.events(session_id, after=middle, limit=10_000)
            assert [json.loads(json.dumps(one)) for one in rest] == logged[middle:]


Application.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestApplication = Application.TestCase
