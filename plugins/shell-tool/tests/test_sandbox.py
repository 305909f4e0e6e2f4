"""Commands in a sandbox: what they are told, what they may ask for, how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_plugin_kit.sandbox import Sandbox, find_way
from agent_plugin_kit.sandbox.bubblewrap import Bubblewrap
from agent_runtime import Agent
from agent_runtime.permissions import CallPattern, Rule
from shell_tool import ShellTool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Shell

needs_bubblewrap = pytest.mark.skipif(
    not isinstance(find_way(), Bubblewrap), reason=f"bubblewrap does not work here: {find_way()}"
)


def is_there(command: str) -> bool:
    """Say whether a process with this command line runs."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True, timeout=60)
    return command in listed.stdout.splitlines()


@pytest.fixture
def confined(shell: Shell) -> Shell:
    shell.config |= {"sandbox": "workspace", "sandbox_requests": True}
    return shell


@needs_bubblewrap
def test_a_command_writes_the_workspace_and_nothing_else(confined: Shell) -> None:
    assert confined("echo x > here; cat here")["result"] == "x\n"

    refused = confined("echo x > /etc/shell-tool-test")

    assert refused["exit_code"] == 1
    assert 'The setting sandbox_write = ["FOLDER"] allows another folder.' in refused["error"]
    assert "outside_sandbox: true" in refused["error"]


@needs_bubblewrap
def test_the_variables_that_are_withheld_are_withheld_for_good(
    confined: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sandbox, a command reads them from its parent's entry in /proc."""
    monkeypatch.setenv("SOME_API_KEY", "hidden-value-1")
    reveal = f'cat "/proc/{os.getpid()}/environ" /proc/*/environ | tr "\\0" "\\n" | grep SOME_API_KEY'

    assert "hidden-value-1" not in str(confined(reveal))
    confined.config["sandbox"] = "off"
    # Python changes the environment of its own process, not what the system shows of it: so ask a child.
    script = (
        f"import subprocess; print(subprocess.run(['bash', '-c', {reveal!r}], capture_output=True).stdout)"
    )
    seen = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "hidden-value-1" in seen.stdout


@needs_bubblewrap
def test_temporary_files_last_for_the_session_and_are_its_own(confined: Shell) -> None:
    confined("echo mine > /tmp/note")

    assert confined("cat /tmp/note")["result"] == "mine\n"
    assert confined("cat /tmp/note", session="another")["exit_code"] == 1


@needs_bubblewrap
def test_a_command_that_is_stopped_may_tidy_up(confined: Shell, until: Callable[..., None]) -> None:
    confined.config["shell_grace"] = 30
    job = confined.start("trap 'echo tidy > tidied; exit' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: "ready" in confined.about("shell_output", id=job)["result"])

    confined.about("shell_stop", id=job)

    assert (confined.workspace / "tidied").read_text() == "tidy\n"


@needs_bubblewrap
def test_a_command_that_does_not_listen_is_ended(confined: Shell, until: Callable[..., None]) -> None:
    job = confined.start("trap '' TERM; setsid sleep 4322.5 & echo ready; while :; do sleep 0.05; done")
    until(lambda: "ready" in confined.about("shell_output", id=job)["result"])

    stopped = confined.about("shell_stop", id=job)

    assert "stopped" in stopped["result"]
    until(lambda: not is_there("sleep 4322.5"))


@needs_bubblewrap
def test_commands_end_with_an_application_that_is_killed(tmp_path: Path, until: Callable[..., None]) -> None:
    program = (
        "from shell_tool import ShellTool\nimport time\ntool = ShellTool()\n"
        f"state = tool.init({{'roots': [{str(tmp_path)!r}]}})\n"
        "call = {'command': 'touch begun; sleep 4323.5', 'background': True}\n"
        "list(tool.stream_tool('shell', call, state))\n"
        "time.sleep(600)\n"
    )
    application = subprocess.Popen([sys.executable, "-c", program])
    try:
        until((tmp_path / "begun").exists)
    finally:
        application.send_signal(signal.SIGKILL)
        application.wait()

    until(lambda: not is_there("sleep 4323.5"))


def test_a_call_can_ask_for_more_only_where_somebody_is_asked() -> None:
    def properties(config: dict[str, Any], way: Any = None) -> set[str]:
        tool = ShellTool(Sandbox(way))
        [shell, *_] = tool.get_tool_schemas(tool.init(config))
        return set(shell["function"]["parameters"]["properties"])

    usual = {"command", "cwd", "timeout", "background"}
    there = Bubblewrap("bwrap", frozenset())
    assert properties({}, there) == usual
    assert properties({"sandbox_requests": True}, there) == {*usual, "hosts", "outside_sandbox"}
    assert properties({"sandbox_requests": True, "sandbox": "strict"}, there) == usual
    assert properties({"sandbox_requests": True, "sandbox": "off"}, there) == usual
    assert properties({"sandbox_requests": True}, "there is none") == usual


def test_a_call_that_may_not_ask_is_refused(confined: Shell) -> None:
    confined.config["sandbox_requests"] = False

    assert "do not let a call ask" in confined("true", outside_sandbox=True)["error"]
    assert "do not let a call ask" in confined("true", hosts=["a.example"])["error"]
    assert "is not a host" in confined("true", hosts=["https://a.example/x"])["error"]


def test_a_strict_sandbox_that_is_missing_runs_nothing(tmp_path: Path) -> None:
    tool = ShellTool(Sandbox("this machine has none"))
    state = tool.init({"roots": [str(tmp_path)], "sandbox": "strict"})

    [result] = tool.stream_tool("shell", {"command": "touch ran"}, state)

    assert "needs a sandbox, and there is none: this machine has none" in result["error"]
    assert not (tmp_path / "ran").exists()


@needs_bubblewrap
def test_outside_the_sandbox_it_is_outside(confined: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")

    confined(f"echo x > {other}/file", outside_sandbox=True)
    confined(f"echo y > {other}/file")

    assert (other / "file").read_text() == "x\n"


# What rules say about it


class Asked:
    """An agent in a workspace, and the calls that it makes."""

    def __init__(self, workspace: Path, rules: dict[str, Any], *, way: Any = None) -> None:
        self.workspace, self.rules = workspace, rules
        self.tool = ShellTool(Sandbox(way))

    def questions(self, *granted: str, sandbox: str = "workspace", **arguments: Any) -> list[str]:
        """Return what is asked about one call; none if it ran or was refused."""
        arguments = {"command": "touch ran", **arguments}
        model = ScriptedProvider([Reply(tool_calls=[ToolCall("shell", arguments)]), "Done."])
        sections = {
            "permissions": self.rules,
            "shell_tool": {"roots": [str(self.workspace)], "sandbox_requests": True, "sandbox": sandbox},
        }
        agent = Agent(model, plugins={"shell_tool": self.tool}, sections=sections)
        rules = [Rule("allow", CallPattern.parse(pattern)) for pattern in granted]
        result = agent.run("Go.", granted=lambda _session: rules)
        return [question.parameters["reason"] for question in result.suspended]


@needs_bubblewrap
def test_leaving_the_sandbox_is_a_question_of_its_own(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"default": "allow"})

    assert asked.questions() == []
    assert asked.questions("shell", "shell(*)", "*", outside_sandbox=True) == [
        "no rule allows 'outside the sandbox: touch ran'"
    ]
    assert asked.questions("shell(outside the sandbox: touch *)", outside_sandbox=True) == []
    assert asked.questions(hosts=["api.example.com"]) == ["no rule allows 'network api.example.com'"]
    assert asked.questions("shell(network api.example.com)", hosts=["api.example.com"]) == []
    assert asked.questions("shell(network api.example.com)", hosts=["api.example.com", "evil.example"]) != []


@needs_bubblewrap
def test_what_is_forbidden_is_forbidden_outside_as_well(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"default": "allow", "deny": ["shell(touch *)"]})

    assert asked.questions("shell(outside the sandbox: *)", outside_sandbox=True) == []
    assert not (tmp_path / "ran").exists()


@needs_bubblewrap
def test_in_auto_mode_what_stays_inside_needs_no_approval(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"default": "ask", "always_ask": ["shell(git push*)"], "ask": ["shell(curl *)"]})

    assert asked.questions("sandboxed") == []
    assert (tmp_path / "ran").exists()
    assert asked.questions() != []
    assert asked.questions("sandboxed", command="git push") != []
    assert asked.questions("sandboxed", command="curl x") != []
    assert asked.questions("sandboxed", outside_sandbox=True) != []
    assert asked.questions("sandboxed", hosts=["api.example.com"]) != []
    assert asked.questions("sandboxed", sandbox="off") != []


def test_a_rule_that_names_the_tool_is_stronger_than_auto_mode(tmp_path: Path) -> None:
    asked = Asked(tmp_path, {"default": "ask", "ask": ["shell"]})

    assert asked.questions("sandboxed") != []


def test_without_a_sandbox_there_is_no_auto_mode(tmp_path: Path) -> None:
    assert Asked(tmp_path, {}, way="there is none").questions("sandboxed") != []
