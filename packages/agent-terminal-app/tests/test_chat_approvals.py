"""What the agent asks in the chat, and what a line means: a yes, for how long, a no, or nothing of that."""

from __future__ import annotations

import asyncio
import io
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_app import AgentApplication, Approval
from agent_core import Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Suspend
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.chat.questions.approvals import Approvals, Unclear
from agent_terminal_app.chat.questions.question import Answer, Question, call_lines, heading
from agent_terminal_app.chat.rendering.screen import TextScreen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROJECT = {"workspace_roots": ["/srv/site"]}


class Commands:
    """A tool that remembers what it ran, and knows what people may want to grant."""

    name = "commands"
    parallel = False
    version = "1"

    def __init__(self, ran: list[str]) -> None:
        self._ran = ran

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": "run", "input_schema": command}]

    def permission_suggestions(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        return [arguments["command"].split()[0] + " *"]

    def format_tool_call_display(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "code", "language": "sh", "content": arguments["command"]}

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self._ran.append(arguments["command"])
        return "ran"


class Asking:
    """A plugin with a tool that asks the person something, by a gate."""

    name = "asking"
    version = "1"

    def __init__(self, **asked: Any) -> None:
        self._asked = asked

    def register(self, registrar: Any) -> None:
        registrar.tool_gate(self.judge)

    def judge(self, view: Any) -> Any:
        if view.call.decision is not None:
            return None
        return Suspend("Tea or coffee?\nSay which.", **self._asked)


def obedient(messages: list[dict[str, Any]]) -> Reply | str:
    last = messages[-1]
    if last["role"] == "tool":
        return "done"
    commands = str(last["content"]).split(" and ")
    return Reply(tool_calls=[ToolCall("run", {"command": command}) for command in commands])


class Sitting:
    """A conversation in which the agent has asked something."""

    def __init__(self, app: AgentApplication, ran: list[str], metadata: dict[str, Any]) -> None:
        self.app, self.ran = app, ran
        self.conversation = Conversation(app, app.create_session(metadata=metadata).session_id)
        self._output = io.StringIO()
        self.approvals = Approvals(TextScreen(self._output))

    def say(self, text: str = "") -> None:
        """Say something, or go on; show what is asked then."""
        list(self.app.chat(str(self.conversation.session_id), text))
        asyncio.run(self.approvals.ask(self.conversation))

    def answer(self, line: str) -> bool:
        """Answer, and go on if nothing is left to be asked; return whether it does."""
        goes_on = asyncio.run(self.approvals.take(self.conversation, line))
        if goes_on:
            self.say()
        return goes_on

    def shown(self) -> str:
        """Return what was shown since the last time."""
        text = self._output.getvalue()
        self._output.seek(0)
        self._output.truncate()
        return text


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def sit(ran: list[str], tmp_path: Path) -> Iterator[Any]:
    apps: list[AgentApplication] = []

    def begin(*plugins: Any, metadata: dict[str, Any] = PROJECT, **permissions: Any) -> Sitting:
        config = {
            "agents": {"a": {"model": "m"}},
            "models": {"m": {"provider": "scripted"}},
            "permissions": permissions or {"ask": ["run"]},
        }
        given = [ScriptedProvider(itertools.repeat(obedient)), Commands(ran), *plugins]
        url = f"sqlite:///{tmp_path}/store.db"
        apps.append(AgentApplication(config, store=url, plugins=given, installed=False))
        return Sitting(apps[-1], ran, metadata)

    yield begin
    for app in apps:
        app.close()


# --- what is shown ----------------------------------------------------------------------------------------


def test_a_question_shows_the_whole_call_why_it_is_asked_and_what_each_choice_grants(sit: Any) -> None:
    sitting = sit()
    command = "git commit -m " + "x" * 5000

    sitting.say(command)

    shown = sitting.shown().splitlines()
    assert shown[0].startswith("? run")
    assert shown[1:] == [
        "  in /srv/site",
        f"  {command}",
        "  Asked by the rule ask run.",
        "  [y] yes, once",
        "  [a] yes, for this session: run(git *)",
        "      the same for longer: [3] in this project, [4] always",
        "  [n] no, or type what to do instead",
        "  [d] no, for this session: run(git *)",
    ]


def test_without_a_project_none_is_offered(sit: Any) -> None:
    sitting = sit(metadata={})
    sitting.say("git status")

    shown = sitting.shown()
    assert "[3] always" in shown and "project" not in shown


def test_what_is_asked_for_each_time_offers_nothing_for_longer(sit: Any, ran: list[str]) -> None:
    sitting = sit(always_ask=["run"])
    sitting.say("git push")

    shown = sitting.shown()
    assert "  [y] yes, once\n  [n] no" in shown and "longer" not in shown
    with pytest.raises(Unclear, match="deny always PATTERN"):
        question_of(sitting).read("deny always")
    assert sitting.answer("1") and ran == ["git push"]


def question_of(sitting: Sitting) -> Question:
    session = sitting.app.load_session(str(sitting.conversation.session_id))
    return Question.of(sitting.app.approvals(session.session_id)[0], session)


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"arguments": {"path": "a.py", "n": 3}}, ["  path: a.py", "  n: 3"]),
        ({"arguments": {"text": "one\ntwo\n"}}, ["  text:", "    one", "    two"]),
        ({"arguments": "a patch\n+ tea"}, ["  a patch", "  + tea"]),
        ({"arguments": {}}, []),
        (
            {"display": {"type": "diff", "title": "a.py", "content": "-tea\n+coffee"}},
            ["  a.py", "  -tea", "  +coffee"],
        ),
        ({"display": {"type": "markdown", "content": "[a](b) *c*"}}, ["  [a](b) *c*"]),
        ({"display": {"type": "text", "content": ""}, "arguments": {"x": "y"}}, ["  x: y"]),
    ],
)
def test_a_call_is_shown_as_its_tool_wants_or_by_all_of_its_arguments(
    asked: dict[str, Any], lines: list[str]
) -> None:
    assert list(call_lines(asked, color=False)) == lines


def test_a_diff_has_colours() -> None:
    display = {"type": "diff", "content": "@@ -1 +1 @@\n-tea\n+coffee\n same"}

    place, removed, added, same = call_lines({"display": display}, color=True)

    assert "\x1b[31m-tea" in removed and "\x1b[32m+coffee" in added
    assert "\x1b[" in place and "\x1b[" not in same


@given(st.text())
def test_nothing_in_a_call_moves_the_cursor_and_what_cannot_be_seen_is_told(text: str) -> None:
    for asked in (
        {"arguments": {"x": text}},
        {"arguments": {"x": text}, "display": {"type": "code", "content": "ls"}},
    ):
        lines = list(call_lines(asked, color=False))

        assert not any("\x1b" in line or "\u202e" in line or "\r" in line for line in lines)
        hidden = [one for one in text.replace("\r\n", "\n") if not one.isprintable() and one not in "\n\t"]
        assert any("invisible characters" in line for line in lines) == bool(hidden)


def test_the_line_about_a_call_is_one_line_and_whole() -> None:
    assert heading({"preview": "run\nls " + "x" * 900}, "run") == "run ls " + "x" * 900
    assert heading({"preview": " "}, "run") == heading({}, "run") == "run"


# --- what a line means ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "scopes"),
    [
        ("y", []),
        ("Yes.", []),
        (" 1 ", []),
        ("2", ["session"]),
        ("a", ["session"]),
        ("3", ["project"]),
        ("4", ["always"]),
        ("allow project", ["project"]),
        ("allow session run", ["session"]),
        ("allow  always  run(git st*)", ["always"]),
    ],
)
def test_a_yes_runs_the_call_and_grants_what_its_label_says(
    sit: Any, ran: list[str], line: str, scopes: list[str]
) -> None:
    sitting = sit()
    sitting.say("git status")

    assert sitting.answer(line)

    assert ran == ["git status"]
    assert [grant.scope for grant in sitting.app.grants()] == scopes
    sitting.say("git status")
    assert ran == ["git status"] * (2 if scopes else 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [("n", ""), ("No", ""), ("5", ""), ("use make instead", "use make instead"), ("yn", "yn")],
)
def test_a_no_refuses_and_other_words_are_the_reason(
    sit: Any, ran: list[str], line: str, reason: str
) -> None:
    sitting = sit()
    sitting.say("git status")

    assert sitting.answer(line)

    assert (ran, sitting.app.grants()) == ([], [])
    answer = sitting.app.load_session(str(sitting.conversation.session_id)).messages[-2]
    assert str(answer.content) == f"Error: the call was refused{': ' if reason else ''}{reason}"


@pytest.mark.parametrize(
    ("line", "scope", "pattern"),
    [
        ("deny session", "session", "run(git status)"),
        ("d", "session", "run(git status)"),
        ("deny project", "project", "run(git status)"),
        ("deny always run(git *)", "always", "run(git *)"),
    ],
)
def test_it_can_be_forbidden_for_longer(
    sit: Any, ran: list[str], line: str, scope: str, pattern: str
) -> None:
    sitting = sit()
    sitting.say("git status")

    assert sitting.answer(line)

    [grant] = sitting.app.grants()
    assert (grant.effect, grant.scope, grant.pattern) == ("deny", scope, pattern)
    sitting.say("git status")
    assert ran == [] and not sitting.app.approvals()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("9", "There is no [9]: choose from 1 to 5"),
        ("0", "There is no [0]"),
        ("allow always run(make)", "would not let this call run"),
        ("ok", "Is that a yes?"),
        ("yes, but be quick", "Is that a yes?"),
        ("allow it", "Is that a yes?"),
        ("allow session run(", "never closed"),
        ("deny session post", "would not forbid this call"),
    ],
)
def test_a_line_that_is_unclear_or_does_not_fit_decides_nothing(
    sit: Any, ran: list[str], line: str, told: str
) -> None:
    sitting = sit()
    sitting.say("git status")
    sitting.shown()

    assert not sitting.answer(line)

    assert told in sitting.shown()
    assert (ran, sitting.app.grants(), len(sitting.app.approvals())) == ([], [], 1)
    assert sitting.answer("y") and ran == ["git status"]


@given(st.text())
def test_no_line_but_a_clear_one_is_a_yes(line: str) -> None:
    question = a_question(suggestions=["run(a)", "run"])
    try:
        decision = question.read(line).decision
    except Unclear:
        return

    first = line.strip().lower().rstrip(".!").split(maxsplit=1)[:1]
    assert not decision["approved"] or first in (["y"], ["yes"], ["a"], ["allow"]) or line.strip().isdecimal()


def a_question(**parameters: Any) -> Question:
    asked = {"tool": "run", "arguments": {}, "reason": "r", **parameters}
    suspension = {"message": "?", "parameters": asked, "tool": "run", "call": {}, "action": "approve"}
    return Question.of(Approval(id="a", session_id="s", suspension=suspension, created=0.0), Session("s"))


def test_a_whole_tool_is_never_one_key_away() -> None:
    question = a_question(suggestions=["run"])

    assert len(question.choices) == 2
    with pytest.raises(Unclear, match="allow session PATTERN"):
        question.read("allow session")
    with pytest.raises(Unclear, match="deny always PATTERN"):
        question.read("deny always")
    assert question.read("allow session run") == Answer({"approved": True}, "session", ("run",))


def test_a_number_that_is_too_long_for_one_is_a_reason() -> None:
    assert not a_question().read("1" * 5000).decision["approved"]


def test_a_call_about_several_things_is_granted_by_a_pattern_for_each(sit: Any, ran: list[str]) -> None:
    class Lines(Commands):
        def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
            return [command.strip() for command in arguments["command"].split("&&")]

    sitting = sit(Lines(ran))
    sitting.say("git add . && make")
    assert "[a] yes, for this session: run(git *), run(make)" in sitting.shown()

    assert sitting.answer("2")

    assert ran == ["git add . && make"]
    assert [grant.pattern for grant in sitting.app.grants()] == ["run(git *)", "run(make)"]
    sitting.say("make && git log && git push")
    assert ran[-1] == "make && git log && git push"


def test_several_questions_come_one_after_the_other_and_a_grant_answers_more_than_one(
    sit: Any, ran: list[str]
) -> None:
    sitting = sit()
    sitting.say("git status and make and git log")
    assert "git status" in sitting.shown()

    assert not sitting.answer("2")
    assert "  make\n" in sitting.shown()
    assert sitting.answer("n")

    assert ran == ["git status", "git log"]


# --- who, and when ----------------------------------------------------------------------------------------


def test_a_line_that_was_begun_before_the_question_is_kept_for_later(sit: Any, ran: list[str]) -> None:
    sitting = sit()
    sitting.approvals.typing("y")
    sitting.say("git status")
    sitting.shown()

    assert not sitting.answer("yes, and then make")

    shown = sitting.shown()
    assert "Queued until you have answered: yes, and then make" in shown and "[y] yes, once" in shown
    assert ran == []
    [waiting] = sitting.app.store.inputs(str(sitting.conversation.session_id))
    assert waiting.message["content"] == "yes, and then make"
    assert sitting.answer("y")
    assert ran[0] == "git status"


def test_a_line_that_was_begun_anew_is_an_answer(sit: Any, ran: list[str]) -> None:
    sitting = sit()
    sitting.approvals.typing("half a tho")
    sitting.say("git status")
    for typed in ("half a", "", "y"):
        sitting.approvals.typing(typed)

    assert sitting.answer("y") and ran == ["git status"]


def test_a_line_typed_too_early_is_no_answer(sit: Any, ran: list[str]) -> None:
    sitting = sit()
    sitting.say("git status")
    sitting.approvals.typed_before()

    assert not sitting.answer("y") and ran == []


def test_a_question_that_was_not_shown_is_not_answered(sit: Any, ran: list[str]) -> None:
    sitting = sit()
    list(sitting.app.chat(str(sitting.conversation.session_id), "git status"))

    assert not sitting.answer("y")

    assert "[y] yes, once" in sitting.shown() and ran == []
    assert sitting.answer("y") and ran[0] == "git status"


@pytest.mark.parametrize("approved", [True, False])
def test_a_question_that_somebody_else_has_answered_is_not_answered_twice(
    sit: Any, ran: list[str], approved: bool
) -> None:
    sitting = sit()
    sitting.say("git status and make")
    sitting.shown()
    first, _second = sitting.app.approvals()
    question = question_of(sitting)
    read = Question.read

    def answered_meanwhile(self: Question, line: str) -> Answer:
        if self.id == first.id:
            sitting.app.decide(first.id, approved)
        return read(self, line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Question, "read", answered_meanwhile)
        assert not sitting.answer("y" if not approved else "n")

    shown = sitting.shown()
    assert "Somebody else has already answered this." in shown and "  make\n" in shown
    assert question.id == first.id
    assert sitting.answer("n")
    assert ran == (["git status"] if approved else [])


def test_where_somebody_else_has_answered_the_last_question_the_agent_goes_on_with_that(
    sit: Any, ran: list[str]
) -> None:
    sitting = sit()
    sitting.say("git status")
    sitting.app.decide(sitting.app.approvals()[0].id, True)
    sitting.shown()

    assert sitting.answer("n")
    assert "Somebody else has already answered this." in sitting.shown()
    assert ran == ["git status"]


def test_where_somebody_else_has_gone_on_already_nothing_is_left_to_do(sit: Any, ran: list[str]) -> None:
    sitting = sit()
    sitting.say("git status")
    sitting.app.decide(sitting.app.approvals()[0].id, True)
    list(sitting.app.chat(str(sitting.conversation.session_id)))

    assert sitting.approvals.waits_in(sitting.conversation)
    assert not sitting.answer("y")
    assert not sitting.approvals.waits_in(sitting.conversation)
    assert ran == ["git status"]


# --- questions of other kinds -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        ({"enum": ["tea", "coffee"]}, "2", "coffee"),
        ({"enum": ["tea", "coffee"]}, "tea", "tea"),
        ({"enum": [1, 5]}, "5", 5),
        ({"type": "string"}, "no, water", "no, water"),
        (None, "42", "42"),
        ({"type": "integer"}, "42", 42),
        ({"type": "boolean"}, "yes", True),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ],
)
def test_a_question_for_a_value_is_answered_with_one(sit: Any, schema: Any, line: str, value: Any) -> None:
    asking = Asking(action="answer", mode="use_decision", response_schema=schema)
    sitting = sit(asking, default="allow")
    sitting.say("brew")
    assert sitting.shown().startswith("? Tea or coffee?\nSay which.\n")
    [approval] = sitting.app.approvals()

    assert sitting.answer(line)

    assert sitting.app.store.approvals()[0].decision == {"value": value}
    assert approval.suspension["action"] == "answer"


@pytest.mark.parametrize(
    ("schema", "line", "told"),
    [
        ({"enum": ["tea", "coffee"]}, "water", "Choose from 1 to 2"),
        ({"enum": ["tea", "coffee"]}, "3", "Choose from 1 to 2"),
        ({"type": "integer"}, "many", "must be of the type integer"),
        ({"type": "integer", "minimum": 3}, "2", "does not fit"),
    ],
)
def test_a_value_that_does_not_fit_is_asked_for_again(sit: Any, schema: Any, line: str, told: str) -> None:
    sitting = sit(Asking(action="answer", mode="use_decision", response_schema=schema), default="allow")
    sitting.say("brew")
    sitting.shown()

    assert not sitting.answer(line)
    assert told in sitting.shown()
    assert sitting.answer("-")
    assert sitting.app.store.approvals()[0].decision == {"approved": False}


def test_the_question_of_another_gate_shows_the_call_and_offers_yes_and_no(sit: Any, ran: list[str]) -> None:
    sitting = sit(Asking(), default="allow")
    sitting.say("brew")

    assert sitting.shown().splitlines() == [
        "? Tea or coffee?",
        "Say which.",
        "  brew",
        "  [y] yes, once",
        "  [n] no, or type what to do instead",
    ]
    assert sitting.answer("1") and ran == ["brew"]


def test_the_text_of_an_edit_that_the_diff_shows_is_not_shown_again() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-    two = 2\n+    two = 3\n"
    asked = {
        "display": {"type": "diff", "title": "x", "content": diff},
        "arguments": {"path": "x", "old": "one\n    two = 2", "new": "two = 3", "mode": "two"},
    }
    assert list(call_lines(asked, color=False))[-1] == "  mode: two"
    assert not any("old" in line for line in call_lines(asked, color=False))

    hidden = {**asked, "arguments": {"path": "x", "old": "two = 2", "new": "two = 3; rm -rf /"}}
    assert "  new: two = 3; rm -rf /" in list(call_lines(hidden, color=False))
