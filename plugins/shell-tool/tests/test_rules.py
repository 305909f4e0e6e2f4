"""Rules and commands together, in the real permissions of the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from agent_runtime.permissions import CallPattern, Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool
from shell_tool.syntax import suggest

if TYPE_CHECKING:
    from pathlib import Path


def effect(line: str, tool: str = "shell", **rules: Any) -> str:
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


# Within a substitution bash ends the document at a line that begins with E and has the parenthesis in it.
@pytest.mark.parametrize("opening", ['"$(', "$(", "<(", "`"])
def test_a_here_document_in_a_substitution_allows_nothing_behind_it(opening: str) -> None:
    closing = {'"$(': ')"', "`": "`"}.get(opening, ")")
    line = f"cat {opening}cat <<'E'\nE {closing} ; id > x #\nE\n{closing}"

    assert effect(line, allow=["shell(cat *)", "shell(cat)"]) == "ask"
    assert effect(line, allow=["shell"], deny=["shell(id*)"]) == "deny"
    assert effect(line, allow=["shell"], deny=["shell(rm *)"]) == "ask"
    assert effect(line, allow=["shell"], always_ask=["shell(id*)"]) == "ask"


GIT: dict[str, Any] = {"allow": ["shell(git *)"], "deny": ["shell(git push*)"]}


@pytest.mark.parametrize(
    "line",
    [
        *("git ${x:-push} origin", "git {push,--force} origin", "git pus[h]", "git pus? origin", "git p*"),
        *("for x in push; do git $x origin; done", 'for x in push; do git "$x"; done', "git $x", 'git "$1"'),
        *("x=push; git $x", "read x <<< push; git $x", "git `echo push`", 'git "$(echo push)" a', "git ~ a"),
        *("git pu${x:-sh}", 'git "pu$x" a', "git ${x} push", "git $x push", 'git "$@"', "git {,} push"),
        *("echo push | xargs git", "echo push | xargs -I% git %", "find . -exec git {} +", "git $x$y"),
        *("git -C . push", "git --no-pager -c a=b push", "git -c alias.p=push p", "git --exec-path=. p"),
        *("git --exec-path=. push", "git -$x", "git --version$x", "git --versio push", "git $x --version"),
        *("git files", "git base", "git each-ref", "git refs", "git -c core.pager='git push' log"),
        *("git -c man.viewer=x help", "git -c core.sshCommand=x fetch", "GIT_PAGER=x git --version"),
        *("sudo A=1 git push", "env AB=1 git push", "time git push", "nohup git push &", "command git push"),
        *("builtin command git push", "exec git push", "stdbuf -o0 git push", "nice -n 1 git push"),
        *("timeout 9 git push", "if true; then git push; fi", "case $x in *) git push;; esac", "! git push"),
        *("echo <(git push)", "cat <<E\n$(git push)\nE", "bash -c 'git push'", "trap 'git push' EXIT"),
        *(
            "git\\\n push",
            "git \\\n push",
            "'git' p\\ush",
            "$'git' $'p\\x75sh'",
            "git  push",
            "{ git push; }",
        ),
    ],
)
@pytest.mark.parametrize("allow", [["shell(*)"], ["shell"], ["*"], []])
def test_a_deny_counts_where_it_could_fit(line: str, allow: list[str]) -> None:
    assert effect(line, allow=[*GIT["allow"], *allow], deny=GIT["deny"]) == "deny"
    assert effect(line, allow=[*GIT["allow"], *allow], ask=GIT["deny"]) == "ask"
    assert effect(line, default="allow", always_ask=GIT["deny"]) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "git log $x",
        'git log "$x"',
        "git log *.py",
        "git -C . log",
        "git add {a,b}",
        'git -C "$x" log',
        "git l$x",
        *("git --version", "git -v", "git --help", "git -h push", "git --version push", "git -C . --version"),
        *("git --exec-path", "git --man-path push", "git --no-advice log", "git -c color.ui=never log"),
        *("git merge-base a b", "git for-each-ref", "git diff-files", "git update-server-info"),
    ],
)
def test_a_deny_does_not_count_where_it_cannot_fit(line: str) -> None:
    assert effect(line, **GIT) == "allow"


def test_other_examples_of_what_could_fit() -> None:
    commits: dict[str, Any] = {"allow": ["shell(git *)"], "always_ask": ["shell(git commit*)"]}
    assert effect('git "${x:-commit}" -m a', **commits) == "ask"
    secrets: dict[str, Any] = {"allow": ["shell(cat *)"], "deny": ["shell(cat *.env*)"]}
    for line in ("cat .e?v", "cat .e*", "cat .[e]nv", "cat .{env,x}", 'cat "$f"', "cat ~/x", "cat *"):
        assert effect(line, **secrets) == "deny", line
    assert effect("cat a?b", allow=["shell(cat *)"], deny=["shell(cat /etc/*)"]) == "allow"
    assert effect("echo > $x", allow=["shell(echo)", "shell(> *)"], deny=["shell(> /etc/*)"]) == "deny"
    assert effect("cat <<< $x", allow=["shell(cat*)"], deny=["shell(*secret*)"]) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        *("x=rm; $x y", '"$x" y', "eval $x", "f() { $1 y; }; f rm", "a=(rm y); ${a[@]}", "alias x=rm\nx y"),
        *("printf -v x rm; $x y", "echo y | xargs -I{} -n1 rm", "env -S 'rm y'", "source <(echo rm y)"),
        *(
            "coproc rm",
            "cat y | bash",
            "bash <<< rm",
            "ssh host x",
            "busybox rm y",
            "r$((1))m",
            "watch -n1 x",
        ),
        *("xargs -a f", "((x[$(rm y)]))", "echo ${x@P}", "rm\\", "a\rb", "a\u00a0b"),
    ],
)
def test_what_is_not_understood_is_not_let_through_where_something_is_denied(line: str) -> None:
    for allow in (["shell"], ["shell(*)"], ["*"]):
        assert effect(line, allow=allow, deny=["shell(rm y z)"]) != "allow"
    assert effect(line, default="allow", deny=["shell(rm y z)"]) != "allow"
    assert effect(line, default="allow", deny=["read_file", "other(rm *)"]) == "allow"


def test_what_is_not_understood_can_be_allowed_by_its_very_text_in_spite_of_a_deny() -> None:
    line = "echo $((1))"
    exact = CallPattern.exact("shell", f"«{line}» is not understood").text

    assert effect(line, allow=["shell(*)"], deny=["shell(rm *)"]) == "ask"
    assert effect('"$x" y', allow=["shell(*)"], deny=["shell(rm *)"]) == "ask"
    assert effect(line, allow=[exact], deny=["shell(rm *)"]) == "allow"
    assert effect(line, allow=[exact], deny=["shell(*)"]) == "deny"
    assert effect(line, allow=[exact], always_ask=["shell(rm *)"]) == "ask"


@pytest.mark.parametrize(
    ("line", "pattern", "expected"),
    [
        ("ls *.py", "ls *", "allow"),
        ("ls src/*.py", "ls src/*", "allow"),
        ('ls "$x"', "ls *", "allow"),
        ('ls "$x"', "ls ?", "ask"),
        ("ls $x", "ls *", "ask"),  # which may be `ls` alone
        ("ls $x", "ls*", "allow"),
        ("ls -l $x", "ls *", "allow"),
        ("ls src$x", "ls src/*", "ask"),
        ("ls src/$x", "ls src/*", "allow"),
        ("ls $HOME", "ls $HOME", "ask"),
        ("ls ??", "ls ??", "ask"),
        ("AB=$x ls", r"AB\=* ls", "allow"),
        ('rm "$f"', 'rm "$f"', "ask"),
    ],
)
def test_an_allow_counts_if_it_fits_whatever_comes_out(line: str, pattern: str, expected: str) -> None:
    assert effect(line, allow=[f"shell({pattern})"]) == expected


def test_each_outcome_may_be_allowed_by_another_rule() -> None:
    assert effect("ls $x", allow=["shell(ls *)", "shell(ls)"]) == "allow"
    assert effect("ls $x; pwd", allow=["shell(ls *)", "shell(pwd)"]) == "ask"


def test_what_is_appended_is_written_and_what_is_opened_for_both_is_read_as_well() -> None:
    for line in ("echo >> x/y", "cat <> x/y", "echo &>> x/$z", "{ echo; } >> x/y"):
        assert effect(line, allow=["shell"], deny=["shell(> x/*)"]) == "deny"
    assert effect("cat <> x/y", allow=["shell"], deny=["shell(< x/*)"]) == "deny"
    assert effect("echo > x/y", allow=["shell"], deny=["shell(>> x/*)", "shell(< x/*)"]) == "allow"
    assert effect("echo >> x/y", allow=["shell(echo)", "shell(> *)"]) == "ask"


def test_a_grant_for_a_line_is_for_no_other() -> None:
    line = 'for f in *.tmp; do rm "$f"; done'
    [glob] = ShellTool().permission_suggestions("shell", {"command": line})
    granted = [CallPattern.about("shell", glob).text]

    assert effect(line, allow=granted) == "allow"
    for other in (
        'for f in /etc/shadow; do rm "$f"; done',
        'rm "$f"',
        f"{line}; ls",
        f"{line} ",
        f"«{line}»",
    ):
        assert effect(other, allow=granted) == "ask"
    assert effect(line, allow=granted, deny=["shell(rm /*)"]) == "deny"
    assert effect(line, allow=granted, always_ask=["shell(rm *)"]) == "ask"


def test_an_argument_by_its_name_allows_nothing_that_is_not_read() -> None:
    for line in ("git status; rm -rf x", "git status"):
        assert effect(line, allow=["shell(command=git status*)"]) == "ask"
    assert effect("ls;  git  push", allow=["shell"], deny=["shell(command=git push*)"]) == "deny"
    assert effect("git $x", allow=["shell"], ask=["shell(command=git push*)"]) == "ask"
    assert effect("true", allow=["shell"], deny=["shell(background=true)"]) == "allow"
    assert effect("echo $((1))", allow=["shell"], deny=["shell(command=git push*)"]) == "ask"


def test_options_of_xargs_and_sudo_do_not_hide_what_runs() -> None:
    assert (
        effect("echo id | xargs -I{} -L1 env", allow=["shell(echo *)", "shell(xargs *)", "shell(env)"])
        == "ask"
    )
    assert effect("sudo A=1 rm -rf x", allow=["shell"], deny=["shell(rm *)"]) == "deny"


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
        ("git status -s", ["git status -s"]),
        ("git status", ["git status"]),
        ("git -C x status", ["git -C x status"]),
        ("git config a b", ["git config a b"]),
        ("npm test -- -x", ["npm test -- -x"]),
        ("npm exec x y", ["npm exec x y"]),
        ("docker run x y", ["docker run x y"]),
        ("ls -l", ["ls -l", "ls *"]),
        ("ls", ["ls"]),
        ("ls *.py", ["«ls \\*.py»"]),
        ("echo '?' '\\'", ["echo '\\?' '\\\\'", "echo *"]),
        ("cat a | grep b", ["cat a", "grep b", "cat *", "grep *"]),
        ("python -c x", ["python -c x"]),
        ("sudo ls x", ["sudo ls x", "ls x", "ls *"]),
        ("find . -name x", ["find . -name x"]),
        ("CI=1 ls x", ["CI=1 ls x"]),
        ("cat x <<< y", ["cat x <<< y", "cat *"]),
        ("git $x y", ["«git $x y»"]),
        ('for f in *.tmp; do rm "$f"; done', ['«for f in \\*.tmp; do rm "$f"; done»']),
        ("ls a; ls $x; cat $x", ["ls a", "«ls a; ls $x; cat $x»", "ls *"]),
        ("ls $((1))", ["«ls $((1))» is not understood"]),
        ("./ls x", ["./ls x"]),
        ("ls x; ((1))", ["«ls x; ((1))» is not understood"]),
    ],
)
def test_suggestions_are_narrow(line: str, globs: list[str]) -> None:
    assert ShellTool().permission_suggestions("shell", {"command": line}) == globs


@pytest.mark.parametrize(
    "line",
    [
        *(
            "rg --pre ./x a",
            "sort -o a b",
            "sort --compress-program=./x a",
            "uniq a b",
            "tree -o a b",
            "date -s x",
        ),
        *(
            "file -C -m a",
            "make -f a",
            "mypy --python-executable ./x a",
            "pytest -p a b",
            "ruff check --fix a",
        ),
        *("git log --output=a -p", "git diff --output a", "git show --output=a b", "git grep -O./x a"),
        *("git rebase -x a b", "git bisect run a", "git submodule foreach a", "git fetch --upload-pack=a b"),
        *("git push --receive-pack=a b", "git blame --output=a b", "git clone -u a b", "git pull a b"),
        *("cargo build --config a", "go test -exec a", "npm test --script-shell=a", "pip install --log a b"),
        *("docker build a b", "kubectl get --kubeconfig=a b", "uv pip install a", "apt install a b"),
        *("awk 1 a", "sed s/a/b/e c", "find . -name a", "tar -cf a b", "ssh a b", "env a b"),
        *(
            "less a",
            "more a",
            "man -P ./x a",
            "date -f a",
            "patch -i a",
            "xargs ls a",
            "python -m a b",
            "npm run a",
        ),
        *(
            "rg a b",
            "sort a",
            "uniq a",
            "tree a",
            "file a",
            "sed -n 1p a",
            "zgrep a b",
            "hexdump a",
            "xxd a b",
        ),
        *(
            "git status .",
            "git add -e",
            "git ls-files -m",
            "git rev-parse HEAD",
            "git describe --dirty",
            "git log",
        ),
        *(
            "git check-ignore a",
            "git merge-base a b",
            "git name-rev a",
            "git ls-tree HEAD",
            "git diff",
            "git grep a",
        ),
    ],
)
def test_of_what_can_run_or_write_anything_only_the_exact_use_is_offered(line: str) -> None:
    offered = ShellTool().permission_suggestions("shell", {"command": line})

    assert not [glob for glob in offered if glob.endswith(" *")]


def test_a_person_is_offered_what_would_let_the_call_run(tmp_path: Path) -> None:
    call = ToolCall("shell", {"command": "wc -l notes.txt"})
    model = ScriptedProvider([Reply(tool_calls=[call])])
    agent = Agent(
        model,
        plugins={"shell_tool": ShellTool()},
        sections={
            "permissions": {"allow": ["shell(git status*)"]},
            "shell_tool": {"roots": [str(tmp_path)]},  # nobody is asked about a call that cannot run
        },
    )

    result = agent.run("Where are we?")

    [question] = result.suspended
    assert question.parameters["suggestions"][:2] == [
        "shell(wc -l notes.txt)",
        "shell(wc *)",
    ]
    assert question.parameters["display"] == {
        "type": "code",
        "language": "sh",
        "content": "wc -l notes.txt",
    }
    assert question.parameters["preview"] == "$ wc -l notes.txt"


PUSHES = (
    "git push", "git -C d push", "git -c alias.x=push x", "git-push", "/usr/lib/git-core/git-push origin",
    "git send-pack origin", "git http-push x", "git remote-https origin x", "git subtree push -P a b",
    "git lfs push origin", "git svn dcommit", "git p4 submit", "git submodule foreach git push",
    "git rebase -x 'git push' main", "git bisect run git push", "git for-each-repo --config=x push",
    "git difftool -x 'git push'", "git fetch --upload-pack='git push' .", "git clone -u 'git push' . x",
    "git some-alias", "git config alias.x push && git x", "GIT_SSH_COMMAND='git push' git fetch",
    "GIT_EDITOR='git push' git commit", "git filter-branch --tree-filter 'git push'", "git shell -c push",
)  # fmt: skip


@pytest.mark.parametrize("line", PUSHES)
def test_a_push_is_asked_about_in_every_way_that_a_line_can_write_it(line: str) -> None:
    assert effect(line, default="allow", always_ask=["shell(git push*)"]) == "ask"


@pytest.mark.parametrize(
    "line", ["git stash push", "git log push", "git commit -m push", "git remote update"]
)
def test_what_only_has_the_word_in_it_is_no_push(line: str) -> None:
    assert effect(line, default="allow", always_ask=["shell(git push*)"]) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "awk 1 f", "sed -n p f", "perl -e 1", "python x.py", "vim x", "tar cf a b", "split a", "make test",
        "npm test", "gdb x", "GIT_DIR=x git log", "LESSOPEN=x less f", "PATH=. ls", "less f", "git log",
        "node x",
    ],
)  # fmt: skip
def test_no_family_is_offered_of_what_runs_other_programs(line: str) -> None:
    """Nobody can say by their text what they do: only the very line can be granted."""
    assert [glob for glob in suggest(line) if "*" in glob.replace("\\*", "")] == []
