"""Rules and commands together, in the real permissions of the runtime."""

from __future__ import annotations

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from agent_runtime.permissions import CallPattern, Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool


def effect(line: str, tool: str = "shell", **rules: object) -> str:
    arguments = {"command": line} if tool == "shell" else {"id": line}
    call = CallView(id="", name=tool, arguments=arguments, raw={}, tool=ShellTool())
    return Permissions.from_section(rules).decide(call).effect


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git status", "allow"),
        ("git   status -s", "allow"),
        ("'git' \"status\"", "allow"),
        ("git status > /dev/null 2>&1", "allow"),
        ("git status && git status -s", "allow"),
        ("git status; rm -rf /", "ask"),
        ("git status > file", "ask"),
        ("git status $(rm x)", "ask"),
        ("git status\nrm x", "ask"),
        ("git status `rm x`", "ask"),
        ("git status <(rm x)", "ask"),
        ("git status $((1))", "ask"),
        ("GIT_PAGER=rm git status", "ask"),
        ("git=1 rm x", "ask"),
        ("'git status' x", "ask"),
        ("git\u00a0status", "ask"),
        ("g\u0456t status", "ask"),
        ("git\tstatus", "allow"),
        ("sudo git status", "ask"),
        ("git statu$x", "ask"),
        ("git status" + " x" * 20_000, "ask"),
    ],
)
def test_a_rule_for_a_command_allows_that_command_and_no_other(line: str, expected: str) -> None:
    assert effect(line, allow=["shell(git status*)"]) == expected


@pytest.mark.parametrize(
    ("line", "allow"),
    [
        ("git diff | head -5", ["shell(git diff*)", "shell(head *)"]),
        ("make > log", ["shell(make)", "shell(> log)"]),
        ("sudo make", ["shell(sudo *)", "shell(make)"]),
        ("CI=1 make", [r"shell(CI\=1 make)"]),
        ("cat <<E\nx\nE", ["shell(cat*)"]),
    ],
)
def test_each_part_needs_a_rule(line: str, allow: list[str]) -> None:
    assert effect(line, allow=allow) == "allow"
    for left_out in allow:
        assert effect(line, allow=[rule for rule in allow if rule != left_out]) == "ask"


def test_what_is_not_understood_is_allowed_by_its_very_text_alone() -> None:
    line = "git status $((1))"
    exact = CallPattern.exact("shell", f"«{line}» is not understood").text

    assert effect(line, allow=["shell(git*)", "shell(* $((1\\)\\))"]) == "ask"
    assert effect(line, allow=[exact]) == "allow"
    assert effect(f"{line} ", allow=[exact]) == "ask"
    assert effect(line, allow=["shell(*)"]) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "rm x",
            "r\\m x",
            "'rm' x",
            "ls; rm x",
            "echo $(rm x)",
            "AB=1 rm x",
            "ab=1 rm x",
            "/bin/rm x",
            "sudo rm x",
        ),
        *("env rm x", "xargs rm", "find . -exec rm {} +", "bash -c 'rm x'", "sh -c 'rm x'", "eval 'rm x'"),
        *("rm $((1))", "((1)); rm x", "ls $((1)); rm x", "if true; then rm x; fi; ((1))", "f() { rm x; }; f"),
        *("rm x <<E\n`x`\nE", "echo `rm x", "zsh -c 'rm x'", "sudo /bin/rm x", "time rm x", "$'rm' x"),
    ],
)
def test_a_rule_that_denies_is_not_got_around_by_other_spellings(line: str) -> None:
    assert effect(line, allow=["shell(*)"], deny=["shell(rm *)"]) == "deny"


def test_the_folder_of_a_call_is_allowed_like_cd() -> None:
    tool = ShellTool()

    for here in (None, "", "."):
        assert tool.permission_subjects("shell", {"command": "make", "cwd": here}) == ["make"]
    assert tool.permission_subjects("shell", {"command": "make", "cwd": "a b"}) == ["cd 'a b'", "make"]
    assert tool.permission_subjects("shell", {"command": "((1))", "cwd": "a"})[0] == "cd a"


def test_a_rule_that_asks_sees_the_same() -> None:
    assert effect("AB=1 git push", allow=["shell(*)"], ask=["shell(git push*)"]) == "ask"
    assert effect("git pull", allow=["shell(*)"], ask=["shell(git push*)"]) == "allow"


def test_the_other_tools_are_about_their_command_or_about_nothing() -> None:
    tool = ShellTool()

    assert tool.permission_subjects("shell_stop", {"id": "sh_1"}) == ["sh_1"]
    assert tool.permission_subjects("shell_output", {"id": "sh_1"}) == ["sh_1"]
    assert tool.permission_subjects("shell_jobs", {}) == []
    assert tool.permission_watched("shell_stop", {"id": "sh_1"}) == []
    assert tool.permission_suggestions("shell_stop", {"id": "sh_1"}) == []
    assert effect("sh_1", "shell_stop", allow=["shell_stop"]) == "allow"


@pytest.mark.parametrize(
    ("line", "globs"),
    [
        ("git status -s", ["git status -s", "git status *"]),
        ("git status", ["git status"]),
        ("git -C x status", ["git -C x status"]),
        ("git config a b", ["git config a b"]),
        ("npm test -- -x", ["npm test -- -x", "npm test *"]),
        ("npm exec x y", ["npm exec x y"]),
        ("docker run x y", ["docker run x y"]),
        ("ls -l", ["ls -l", "ls *"]),
        ("ls", ["ls"]),
        ("ls *.py", ["ls \\*.py", "ls *"]),
        ("echo '?' '\\'", ["echo '\\?' '\\\\'", "echo *"]),
        ("cat a | grep b", ["cat a", "grep b", "cat *", "grep *"]),
        ("python -c x", ["python -c x"]),
        ("sudo ls x", ["sudo ls x", "ls x", "ls *"]),
        ("find . -name x", ["find . -name x"]),
        ("CI=1 ls x", ["CI=1 ls x"]),
        ("cat x <<< y", ["cat x <<< y"]),
        ("git $x y", ["git $x y"]),
        ("ls $((1))", ["«ls $((1))» is not understood"]),
        ("./ls x", ["./ls x"]),
        ("ls x; ((1))", ["«ls x; ((1))» is not understood"]),
    ],
)
def test_suggestions_are_narrow(line: str, globs: list[str]) -> None:
    assert ShellTool().permission_suggestions("shell", {"command": line}) == globs


def test_a_person_is_offered_what_would_let_the_call_run() -> None:
    call = ToolCall("shell", {"command": "git log --oneline -3"})
    model = ScriptedProvider([Reply(tool_calls=[call])])
    agent = Agent(
        model,
        plugins={"shell_tool": ShellTool()},
        sections={"permissions": {"allow": ["shell(git status*)"]}},
    )

    result = agent.run("What happened?")

    [question] = result.suspended
    assert question.parameters["suggestions"][:2] == ["shell(git log --oneline -3)", "shell(git log *)"]
    assert question.parameters["display"] == {
        "type": "code",
        "language": "sh",
        "content": "git log --oneline -3",
    }
    assert question.parameters["preview"] == "$ git log --oneline -3"
