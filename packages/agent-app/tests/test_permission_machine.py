"""Grants, decisions, restarts and forgeries in any order: what runs is what the rules of the page let run."""

from __future__ import annotations

import os
from itertools import repeat
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_app import AgentApplication, DecisionNotAccepted
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from agent_app import Approval, Grant
    from agent_app.store.base import GrantEffect, GrantScope

EXAMPLES = int(os.environ.get("PERMISSION_EXAMPLES", "15"))
PERMISSIONS = {"deny": ["run(never)"], "always_ask": ["run(each)"], "allow": ["run(free)"]}
COMMANDS = ("one", "two", "never", "each", "free")
PROJECTS = ("/srv/a", "/srv/b")
picks = st.integers(min_value=0, max_value=1_000)
scopes = st.sampled_from(["session", "project", "always"])
effects = st.sampled_from(["allow", "deny"])
patterns = st.sampled_from([*(f"run({command})" for command in COMMANDS), "run"])


def obedient(messages: list[dict[str, Any]]) -> Reply | str:
    last = messages[-1]
    if last["role"] == "tool":
        return "done"
    return Reply(tool_calls=[ToolCall("run", {"command": word}) for word in str(last["content"]).split()])


class Commands:
    """A tool that remembers what it ran."""

    name = "commands"
    version = "1"

    def __init__(self, ran: list[str]) -> None:
        self._ran = ran

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": "run", "input_schema": command}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self._ran.append(arguments["command"])
        return "ran"


class Granting(RuleBasedStateMachine):
    """An application that people use, and what it should have let run."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.ran: list[str] = []
        self.expected: list[str] = []
        self.given: dict[str, Grant] = {}
        self.app = self.opened()

    def opened(self) -> AgentApplication:
        config = {
            "agents": {"a": {"model": "m"}},
            "models": {"m": {"provider": "scripted"}},
            "permissions": PERMISSIONS,
        }
        plugins = [ScriptedProvider(repeat(obedient)), Commands(self.ran)]
        url = f"sqlite:///{self._folder.name}/store.db"
        return AgentApplication(config, store=url, plugins=plugins, installed=False)

    @initialize()
    def begin(self) -> None:
        roots = [*PROJECTS, PROJECTS[0]]
        made = [self.app.create_session(metadata={"workspace_roots": [root]}) for root in roots]
        self.projects = {session.session_id: root for session, root in zip(made, roots, strict=True)}
        self.sessions = list(self.projects)

    # What the page says

    def what_becomes_of(self, session_id: str, command: str) -> str:
        counting = [grant for grant in self.given.values() if self.counts(grant, session_id, command)]
        if command == "never" or any(grant.effect == "deny" for grant in counting):
            return "deny"
        if command == "each":
            return "ask"
        return "allow" if command == "free" or counting else "ask"

    def counts(self, grant: Grant, session_id: str, command: str) -> bool:
        keys = {"session": session_id, "project": self.projects[session_id], "always": ""}
        return grant.key == keys[grant.scope] and grant.pattern in (f"run({command})", "run")

    def settle(self) -> None:
        """Expect that what waits is decided wherever it need not be asked for any more."""
        for one in self.app.store.approvals():
            becomes = self.what_becomes_of(one.session_id, command_of(one))
            assert one.used or (one.decision is None) == (becomes == "ask") or one.id in self.decided
        self.decided = {one.id for one in self.app.store.approvals() if one.decision is not None}

    decided: set[str] = set()  # noqa: RUF012 - replaced, never changed

    def place(self, approval: Approval) -> tuple[int, str]:
        """Say where an approval stands among others, the same in every try."""
        return self.sessions.index(approval.session_id), command_of(approval)

    # What people do

    @rule(pick=picks, words=st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3))
    def say(self, pick: int, words: list[str]) -> None:
        session_id = self.sessions[pick % len(self.sessions)]
        self.expect_decided(session_id)
        self.expected += [word for word in words if self.what_becomes_of(session_id, word) == "allow"]
        asks = [word for word in words if self.what_becomes_of(session_id, word) == "ask"]
        list(self.app.chat(session_id, " ".join(words)))
        assert sorted(map(command_of, self.app.approvals(session_id))) == sorted(asks)

    @rule(pattern=patterns, scope=scopes, effect=effects, pick=picks)
    def grant(self, pattern: str, scope: GrantScope, effect: GrantEffect, pick: int) -> None:
        session_id = self.sessions[pick % len(self.sessions)]
        self.keep(self.app.grant(pattern, scope=scope, session_id=session_id, effect=effect))
        self.settle()

    def keep(self, grant: Grant) -> None:
        same = [
            one.id
            for one in self.given.values()
            if (one.pattern, one.scope, one.key) == (grant.pattern, grant.scope, grant.key)
        ]
        for one in same:
            del self.given[one]
        self.given[grant.id] = grant

    @precondition(lambda self: self.given)
    @rule(pick=picks)
    def revoke(self, pick: int) -> None:
        grant_id = list(self.given)[pick % len(self.given)]  # not by id: another try has other ids
        assert self.app.revoke(grant_id)
        assert not self.app.revoke(grant_id)
        del self.given[grant_id]

    @precondition(lambda self: self.app.approvals())
    @rule(pick=picks, approved=st.booleans(), scope=st.none() | scopes)
    def decide(self, pick: int, approved: bool, scope: GrantScope | None) -> None:
        waiting = sorted(self.app.approvals(), key=self.place)
        one = waiting[pick % len(waiting)]
        decision: dict[str, Any] = {"approved": approved}
        if scope is not None:
            decision["grant"] = {"scope": scope, "pattern": f"run({command_of(one)})"}
        if scope is not None and approved and command_of(one) == "each":
            with pytest.raises(DecisionNotAccepted):
                self.app.decide(one.id, decision)
            return
        before = {grant.id for grant in self.app.grants()}
        self.app.decide(one.id, decision)
        for made in self.app.grants():
            if made.id not in before:
                self.keep(made)
        with pytest.raises(DecisionNotAccepted):
            self.app.decide(one.id, decision)
        self.decided = {*self.decided, one.id}
        self.settle()

    @rule(pick=picks)
    def go_on(self, pick: int) -> None:
        session_id = self.sessions[pick % len(self.sessions)]
        if self.expect_decided(session_id):
            list(self.app.chat(session_id))

    def expect_decided(self, session_id: str) -> bool:
        """Expect that the next request goes on with what was decided; say whether anything was."""
        due = [one for one in self.app.store.approvals(session_id) if one.decision and not one.used]
        for one in due:
            assert one.decision is not None
            if one.decision["approved"] and self.what_becomes_of(session_id, command_of(one)) != "deny":
                self.expected.append(command_of(one))
        return bool(due)

    @rule(forged=st.text(max_size=20), pick=picks, scope=scopes)
    def forge(self, forged: str, pick: int, scope: GrantScope) -> None:
        decision = {"approved": True, "grant": {"scope": scope, "pattern": "run"}}
        with pytest.raises(DecisionNotAccepted):
            self.app.decide(forged, decision)
        for one in self.app.approvals()[:1]:
            others = [session_id for session_id in self.sessions if session_id != one.session_id]
            with pytest.raises(DecisionNotAccepted):
                self.app.decide(one.id, decision, session_id=others[pick % len(others)])

    @rule()
    def restart(self) -> None:
        self.app.close()
        self.app = self.opened()

    # What always holds

    @invariant()
    def what_ran_is_what_was_let_run(self) -> None:
        assert sorted(self.ran) == sorted(self.expected)
        assert {grant.id for grant in self.app.grants()} == set(self.given)

    def teardown(self) -> None:
        self.app.close()
        self._folder.cleanup()


def command_of(approval: Approval) -> str:
    command: str = approval.suspension["parameters"]["arguments"]["command"]
    return command


Granting.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestGranting = Granting.TestCase
