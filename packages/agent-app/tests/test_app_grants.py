"""What people grant: kept with the decision, counted where it was given, and nowhere else."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, Approval, DecisionNotAccepted, Grant, SessionNotFound
from agent_core import ArgumentError, Message, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import SpecError, Suspend

if TYPE_CHECKING:
    from pathlib import Path

    from agent_app.store.base import GrantScope

SCOPES: tuple[GrantScope, ...] = ("session", "project", "always")
ASK = {"ask": ["run"]}
Make = Callable[..., AgentApplication]


class Commands:
    """A tool that remembers what it ran, and knows what people may want to grant."""

    name = "commands"
    version = "1"
    parallel = False

    def __init__(self, ran: list[str]) -> None:
        self._ran = ran

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": "run", "input_schema": command}]

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return [command.strip() for command in arguments["command"].split("&&")]

    def permission_suggestions(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return [arguments["command"].split()[0] + " *"]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self._ran.append(arguments["command"])
        return "ran"


def obedient(messages: list[dict[str, Any]]) -> Reply | str:
    """Answer as a model that runs whatever it is told, one call per line."""
    last = messages[-1]
    if last["role"] == "tool":
        return "done"
    return Reply(tool_calls=[ToolCall("run", {"command": line}) for line in str(last["content"]).split("\n")])


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, ran: list[str]) -> Iterator[Make]:
    """Open the application, or open it again as after a restart, with these permissions."""
    apps: list[AgentApplication] = []

    def make_app(*plugins: Any, permissions: dict[str, Any] | None = None, **agents: Any) -> AgentApplication:
        wanted = {"m", *(agent["model"] for agent in agents.values())}
        config = {
            "agents": {"a": {"model": "m", "plugin_ids": ["commands"]}, **agents},
            "default_agent": "a",
            "models": {name: {"provider": "scripted" if name == "m" else name} for name in wanted},
            "permissions": ASK if permissions is None else permissions,
        }
        provider = ScriptedProvider(itertools.repeat(obedient))
        apps.append(
            AgentApplication(
                config,
                store=f"sqlite:///{tmp_path}/sessions.db",
                plugins=[provider, Commands(ran), *plugins],
                installed=False,
            )
        )
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def begin(app: AgentApplication, project: str = "/srv/site") -> str:
    return app.create_session(metadata={"workspace_roots": [project]}).session_id


def say(app: AgentApplication, session_id: str, text: str = "") -> str:
    """Say something and return why the request ended."""
    last = list(app.chat(session_id, text))[-1]
    assert last["type"] == "final", last
    code: str = last["reason"]["code"]
    return code


def asked(app: AgentApplication, session_id: str, command: str) -> Approval:
    """Have a command asked for, and return what is asked."""
    assert say(app, session_id, command) == "suspended"
    return app.approvals(session_id)[-1]


def granting(scope: str, pattern: str, *, approved: bool = True) -> dict[str, Any]:
    return {"approved": approved, "grant": {"scope": scope, "pattern": pattern}}


# --- with a decision --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_granted_with_a_decision_is_not_asked_again_also_after_a_restart(
    scope: GrantScope, make: Make, ran: list[str]
) -> None:
    app = make()
    session_id = begin(app)
    approval = asked(app, session_id, "git status")
    assert approval.suspension["parameters"]["suggestions"] == ["run(git status)", "run(git *)", "run"]

    decided = app.decide(approval.id, granting(scope, "run(git *)"))
    assert decided.decision == {"approved": True}
    assert say(app, session_id) == "natural_end"
    app.close()
    app = make()

    assert say(app, session_id, "git log") == "natural_end"
    assert ran == ["git status", "git log"]
    [grant] = app.grants(session_id)
    assert (grant.pattern, grant.effect, grant.scope) == ("run(git *)", "allow", scope)
    assert grant.note == f"with approval {approval.id}"
    assert say(app, session_id, "make") == "suspended"


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("session", ["natural_end", "suspended", "suspended"]),
        ("project", ["natural_end", "natural_end", "suspended"]),
        ("always", ["natural_end", "natural_end", "natural_end"]),
    ],
)
def test_a_grant_counts_where_it_was_given_and_nowhere_else(
    scope: GrantScope, expected: list[str], make: Make
) -> None:
    app = make()
    here, beside, elsewhere = begin(app), begin(app, "/srv/site/"), begin(app, "/srv/other")
    app.decide(asked(app, here, "make").id, granting(scope, "run(make)"))
    say(app, here)

    assert [say(app, session_id, "make") for session_id in (here, beside, elsewhere)] == expected


def test_a_project_is_the_same_by_whatever_way_one_came(make: Make, tmp_path: Path, ran: list[str]) -> None:
    app = make()
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "link").symlink_to(project)
    app.grant("run(make)", scope="project", project=tmp_path / "link")

    assert say(app, begin(app, str(project)), "make") == "natural_end"
    assert [grant.key for grant in app.grants(project=project)] == [str(project)]


def test_a_refusal_can_be_granted_as_well(make: Make, ran: list[str]) -> None:
    app = make()
    session_id = begin(app)
    app.decide(asked(app, session_id, "rm -r .").id, granting("always", "run(rm *)", approved=False))
    say(app, session_id)

    assert say(app, begin(app), "rm -r .") == "natural_end"
    assert ran == []
    [grant] = app.grants()
    assert (grant.effect, grant.pattern) == ("deny", "run(rm *)")


@pytest.mark.parametrize("pattern", ["run(git push)", "r*(git pu*)", "*"])
def test_a_pattern_of_ones_own_is_taken_if_it_lets_the_very_call_run(
    pattern: str, make: Make, ran: list[str]
) -> None:
    app = make(permissions={"default": "ask"})
    session_id = begin(app)
    app.decide(asked(app, session_id, "git push").id, granting("session", pattern))
    say(app, session_id)

    assert say(app, session_id, "git push") == "natural_end"
    assert ran == ["git push", "git push"]


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        (granting("session", "run(make)"), r"'run\(make\)' would not let this call run.*suggested are"),
        (granting("session", "run"), "'run' would not let this call run: .*'ask run\\(git push\\*\\)'"),
        (granting("session", "run(command=git push)"), "would not let this call run"),
        (granting("session", "run(git"), "never closed"),
        (granting("session", ""), "the name of a tool is missing"),
        (granting("once", "run(git push)"), "scope must be one of session, project, always"),
        (granting("everywhere", "run(git push)"), "scope must be one of"),
        (granting("session", "run(make)", approved=False), "would not forbid this call"),
        ({"approved": True, "grant": {"scope": "session"}}, "has scope and pattern"),
        ({"approved": True, "grant": "always"}, "has scope and pattern"),
        (
            {"approved": True, "grant": {"scope": "session", "pattern": "run(git push)", "key": "x"}},
            "nothing else",
        ),
        ({"approved": True, "grant": {"scope": "session", "pattern": 5}}, "must be a text"),
    ],
)
def test_a_grant_that_is_not_about_the_call_is_refused_with_the_decision(
    decision: dict[str, Any], problem: str, make: Make
) -> None:
    app = make(permissions={"ask": ["run(git push*)"]})
    session_id = begin(app)
    approval = asked(app, session_id, "git push")

    with pytest.raises(DecisionNotAccepted, match=problem):
        app.decide(approval.id, decision)

    assert app.grants() == []
    assert [one.id for one in app.approvals()] == [approval.id]


def test_what_is_asked_for_always_can_be_approved_and_not_granted(make: Make, ran: list[str]) -> None:
    app = make(permissions={"always_ask": ["run(git push*)"], "allow": ["run"]})
    session_id = begin(app)
    app.grant("run(git push)", scope="always")
    approval = asked(app, session_id, "git push")

    assert approval.suspension["parameters"]["suggestions"] == []
    with pytest.raises(DecisionNotAccepted, match="'always_ask run"):
        app.decide(approval.id, granting("session", "run(git push)"))
    app.decide(approval.id, True)
    assert say(app, session_id) == "natural_end"
    assert ran == ["git push"]
    assert say(app, session_id, "git push") == "suspended"


def test_a_session_without_a_project_has_nothing_to_grant_there(make: Make) -> None:
    app = make()
    without: list[Any] = [
        {},
        {"workspace_roots": []},
        {"workspace_roots": "/srv"},
        {"workspace_roots": ["a"]},
    ]
    for metadata in without:
        session_id = app.create_session(metadata=metadata).session_id
        with pytest.raises(DecisionNotAccepted, match="needs project, or a session with workspace_roots"):
            app.decide(asked(app, session_id, "make").id, granting("project", "run(make)"))


class Guard:
    """A gate of its own that asks before each call, and pretends to offer something."""

    name = "guard"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("post", tool(self.post, parallel=False))
        registrar.tool_gate(self.judge)

    def post(self, text: str) -> str:
        """Publish a text."""
        return text

    def judge(self, view: Any) -> Any:
        offered = {"tool": "run", "arguments": {"command": "make"}, "suggestions": ["*"]}
        return None if view.call.decision else Suspend("Publish?", parameters=offered)


def test_only_what_permissions_ask_for_can_be_granted(make: Make) -> None:
    app = make(Guard, permissions={"default": "allow"}, b={"model": "m", "plugin_ids": ["commands", "guard"]})
    session_id = app.create_session("b").session_id
    approval = asked(app, session_id, "make")

    with pytest.raises(DecisionNotAccepted, match="does not ask for a permission"):
        app.decide(approval.id, granting("always", "*"))
    app.decide(approval.id, True)
    assert app.grants() == []


# --- by whom, and how often -------------------------------------------------------------------------------


def test_forged_ids_other_sessions_and_second_answers_bring_no_grant(make: Make, ran: list[str]) -> None:
    app = make()
    mine, other = begin(app), begin(app)
    approval = asked(app, mine, "make")
    wish = granting("always", "run(make)")

    for forged in ("forged", "", approval.id + "x", approval.suspension["call_id"], "run_1:1:0"):
        with pytest.raises(DecisionNotAccepted):
            app.decide(forged, wish)
    with pytest.raises(DecisionNotAccepted, match="does not wait for approval"):
        app.decide(approval.id, wish, session_id=other)
    with pytest.raises(SessionNotFound):
        app.decide(approval.id, wish, session_id="nobody")
    assert app.grants() == []

    app.decide(approval.id, False, session_id=mine)
    with pytest.raises(DecisionNotAccepted, match="decided already"):
        app.decide(approval.id, wish)
    say(app, mine)
    with pytest.raises(DecisionNotAccepted, match="does not wait"):
        app.decide(approval.id, wish, session_id=mine)
    assert (app.grants(), ran) == ([], [])


def test_of_two_who_answer_at_once_one_is_heard_and_only_that_ones_grant_is_kept(
    make: Make, ran: list[str]
) -> None:
    apps = [make(), make()]
    wishes = [granting("always", "run(make *)"), granting("always", "run(make *)", approved=False)]
    for number in range(10):
        session_id = begin(apps[0])
        approval = asked(apps[0], session_id, f"make {number}")
        heard: list[int] = []
        together = threading.Barrier(2)

        def answer(
            who: int, approval_id: str = approval.id, heard: list[int] = heard, together: Any = together
        ) -> None:
            together.wait()
            with suppress(DecisionNotAccepted):
                apps[who].decide(approval_id, wishes[who])
                heard.append(who)

        threads = [threading.Thread(target=answer, args=(who,)) for who in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        [winner] = heard
        [grant] = apps[0].grants()
        assert grant.effect == ("allow", "deny")[winner]
        say(apps[0], session_id)
        assert (f"make {number}" in ran) == (winner == 0)
        apps[0].revoke(grant.id)


# --- without a question -----------------------------------------------------------------------------------


def test_a_grant_answers_the_calls_that_wait_already(make: Make, ran: list[str]) -> None:
    app = make()
    session_id = begin(app)
    assert say(app, session_id, "git status\ngit log\nmake") == "suspended"
    first = app.approvals(session_id)[0]

    app.decide(first.id, granting("session", "run(git *)"))

    [left] = app.approvals(session_id)
    assert left.suspension["parameters"]["arguments"] == {"command": "make"}
    assert say(app, session_id) == "suspended"
    assert ran == ["git status", "git log"]


@pytest.mark.parametrize(("scope", "answered"), [("session", 1), ("project", 2), ("always", 3)], ids=str)
def test_a_grant_by_itself_answers_what_waits_where_it_counts(
    scope: GrantScope, answered: int, make: Make, ran: list[str]
) -> None:
    app = make()
    sessions = [begin(app), begin(app), begin(app, "/srv/other")]
    for session_id in sessions:
        asked(app, session_id, "make")

    app.grant("run(make)", scope=scope, session_id=sessions[0])

    assert len(app.approvals()) == 3 - answered
    for session_id in sessions[:answered]:
        assert say(app, session_id) == "natural_end"
    assert ran == ["make"] * answered


def test_a_denial_by_itself_answers_what_waits_with_no(make: Make, ran: list[str]) -> None:
    app = make()
    session_id = begin(app)
    approval = asked(app, session_id, "make")

    app.grant("run", scope="always", effect="deny")

    [decided] = app.store.approvals(session_id)
    assert decided.id == approval.id and decided.decision is not None
    assert decided.decision == {"approved": False, "reason": "it falls under the rule 'deny run'"}
    assert say(app, session_id) == "natural_end"
    assert ran == []


def test_a_grant_that_is_about_something_else_answers_nothing(make: Make) -> None:
    app = make(Guard, b={"model": "m", "plugin_ids": ["commands", "guard"]})
    by_permissions, by_the_guard = begin(app), app.create_session("b").session_id
    asked(app, by_permissions, "make")
    asked(app, by_the_guard, "make")

    app.grant("run(git *)", scope="always")

    assert len(app.approvals()) == 2


def test_a_grant_is_taken_back_and_the_next_call_is_asked_for(make: Make, ran: list[str]) -> None:
    app, other = make(), make()
    session_id = begin(app)
    grant = app.grant("run(make)", scope="session", session_id=session_id)
    assert say(app, session_id, "make") == "natural_end"

    assert other.revoke(grant.id) is True
    assert other.revoke(grant.id) is False
    assert other.revoke("forged") is False
    assert say(app, session_id, "make") == "suspended"
    assert ran == ["make"]


def test_what_is_taken_back_during_a_run_does_not_count_for_its_next_call(make: Make, ran: list[str]) -> None:
    app = make()
    session_id = begin(app)
    grant = app.grant("run(make *)", scope="session", session_id=session_id)

    for event in app.chat(session_id, "make one\nmake two"):
        if event["type"] == "tool_call_result":
            app.revoke(grant.id)

    assert ran == ["make one"]
    assert len(app.approvals(session_id)) == 1


def test_who_says_the_contrary_has_changed_their_mind(make: Make) -> None:
    app = make()
    session_id = begin(app)
    app.grant("run(make)", scope="always")
    app.grant("run(make)", scope="session", session_id=session_id)
    app.grant("run(make)", scope="always", effect="deny")
    assert [(one.effect, one.scope) for one in app.grants()] == [("allow", "session"), ("deny", "always")]
    assert say(app, session_id, "make") == "natural_end"

    app.grant("run(make)", scope="always")
    assert [(one.effect, one.scope) for one in app.grants()] == [("allow", "session"), ("allow", "always")]


def test_the_same_grant_twice_is_one(make: Make) -> None:
    app = make()
    assert app.grant("run(make)", scope="always") == app.grant("run(make)", scope="always")
    assert len(app.grants()) == 1


@pytest.mark.parametrize(
    ("wish", "error", "problem"),
    [
        ({"scope": "session"}, ArgumentError, "needs session_id"),
        ({"scope": "project"}, ArgumentError, "needs project"),
        ({"scope": "session", "session_id": "nobody"}, SessionNotFound, "nobody"),
        ({"scope": "project", "session_id": "nobody"}, SessionNotFound, "nobody"),
        ({"scope": "once"}, ArgumentError, "scope must be one of session, project, always"),
        ({"scope": "always", "effect": "ask"}, ArgumentError, "effect must be one of allow, deny"),
        ({"scope": "always", "pattern": "run("}, SpecError, "never closed"),
    ],
)
def test_a_grant_that_is_none_is_refused(
    wish: dict[str, Any], error: type[Exception], problem: str, make: Make
) -> None:
    app = make()

    with pytest.raises(error, match=problem):
        app.grant(**{"pattern": "run(make)", **wish})

    assert app.grants() == []


def test_what_is_denied_by_a_grant_does_not_run_where_no_permissions_are_declared(
    make: Make, ran: list[str]
) -> None:
    app = make(permissions={})
    session_id = begin(app)
    app.grant("run(rm *)", scope="always", effect="deny")

    assert say(app, session_id, "make\nrm -r .") == "natural_end"
    assert ran == ["make"]


def test_a_branch_has_what_its_source_was_granted(make: Make, ran: list[str]) -> None:
    app = make()
    source = begin(app)
    app.grant("run(make)", scope="session", session_id=source)
    say(app, source, "make")

    branch = app.fork_session(source, upto_index=-1).session_id
    assert say(app, branch, "make") == "natural_end"
    edited = app.edit_message(source, 0, "make").session_id
    assert say(app, edited) == "natural_end"
    assert len(ran) == 3
    app.delete_session(source)
    assert say(app, branch, "make") == "natural_end"


def test_a_session_that_is_not_stored_has_the_grants_of_its_project(make: Make, ran: list[str]) -> None:
    app = make()
    app.grant("run(make)", scope="project", project="/srv/site")
    app.grant("run(git push)", scope="session", session_id=begin(app))
    session = app.create_session_ephemeral(metadata={"workspace_roots": ["/srv/site"]})
    core, config, session = app.update_agent("a", session)

    def send(text: str) -> str:
        said = core.append_messages(session, [Message("user", text)])
        code: str = list(app.send_request(core, said, config))[-1]["reason"]["code"]
        return code

    assert [send("make"), send("git push")] == ["natural_end", "suspended"]
    assert ran == ["make"]


def test_a_grant_that_cannot_be_read_stops_every_call_rather_than_be_ignored(
    make: Make, ran: list[str]
) -> None:
    app = make()
    session_id = begin(app)
    damaged = Grant(id="g", pattern="run(", effect="deny", scope="always", key="", created=0.0)
    app.store.add_grant(damaged)
    say(app, session_id, "make")

    assert ran == []
    assert "grant g 'run('" in str(app.load_session(session_id).messages[-2].content)


# --- delegates --------------------------------------------------------------------------------------------


def test_what_is_granted_about_a_delegates_call_counts_for_its_next_one(make: Make, ran: list[str]) -> None:
    def boss(messages: list[dict[str, Any]]) -> Reply | str:
        last = messages[-1]
        if last["role"] == "tool":
            return "done"
        return Reply(tool_calls=[ToolCall("delegate_a", {"prompt": str(last["content"])})])

    free = {"permissions": {"default": "allow"}}
    lead = {"model": "boss", "delegates": ["a"], "plugin_ids": [], "sections": free}
    app = make(ScriptedProvider(itertools.repeat(boss), name="boss"), lead=lead)
    session_id = app.create_session("lead").session_id
    approval = asked(app, session_id, "git status")
    assert approval.suspension["tool"] == "delegate_a"

    with pytest.raises(DecisionNotAccepted, match="would not let this call run"):
        app.decide(approval.id, granting("session", "delegate_a"))
    app.decide(approval.id, granting("session", "run(git *)"))
    assert say(app, session_id) == "natural_end"
    assert say(app, session_id, "git log") == "natural_end"
    assert ran == ["git status", "git log"]


# --- on an event loop -------------------------------------------------------------------------------------


def test_the_async_twins_do_the_same(make: Make, ran: list[str]) -> None:
    app = make()
    session_id = begin(app)

    async def work() -> None:
        async for _ in app.chat_async(session_id, "git status"):
            pass
        [approval] = await app.approvals_async(session_id)
        await app.decide_async(approval.id, granting("session", "run(git *)"), session_id=session_id)
        async for _ in app.chat_async(session_id):
            pass
        grant = await app.grant_async("run(make)", scope="project", session_id=session_id)
        assert len(await app.grants_async(session_id)) == 2
        async for _ in app.chat_async(session_id, "make"):
            pass
        assert await app.revoke_async(grant.id)

    asyncio.run(work())
    assert ran == ["git status", "make"]
    assert len(app.grants()) == 1


def test_a_tool_that_requires_approval_is_asked_about_until_it_is_granted(ran: list[str]) -> None:
    @tool(requires_approval=True)
    def refund(order: str) -> str:
        """Pay an order back."""
        ran.append(order)
        return "paid"

    call = Reply(tool_calls=[ToolCall("refund", {"order": "A-1"})])
    config = {"agents": {"clerk": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
    plugins = [ScriptedProvider([call, "Paid.", call, "Paid."]), refund]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        session_id = app.create_session().session_id
        list(app.chat(session_id, "Pay A-1 back."))
        [approval] = app.approvals(session_id)
        assert ran == []

        app.decide(approval.id, {"approved": True, "grant": {"scope": "session", "pattern": "refund(A-1)"}})
        list(app.chat(session_id))
        list(app.chat(session_id, "And again."))

        assert (ran, app.approvals(session_id)) == (["A-1", "A-1"], [])
