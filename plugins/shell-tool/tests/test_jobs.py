"""Commands in the background: listed, read, ended; each for its session, and none beyond the plugin."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from agent_core import Cancellation
from shell_tool import ShellTool
from shell_tool.jobs import _MOST_ENDED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Shell

Gone = "Callable[[int], None]"


def test_a_command_goes_on_in_the_background(shell: Shell) -> None:
    job = shell.start("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 3")

    first = shell.about("shell_output", id=job, wait=30)
    (shell.workspace / "go").touch()
    second = shell.about("shell_output", id=job, offset=first["next_offset"], wait=30)
    last = shell.about("shell_output", id=job, offset=8, wait=30)

    assert re.fullmatch(r"one\n\n\[running for \d+ s; next offset 4\]", first["result"])
    assert second["result"].startswith("two\n\n[")
    assert last["result"] == "[exit code 3; next offset 8]"


def test_a_call_for_the_background_returns_at_once(shell: Shell) -> None:
    result = shell("sleep 600", background=True)

    assert result == {
        "success": True,
        "id": result["id"],
        "result": f"{result['id']} runs in the background: "
        "shell_output reads its output, shell_stop ends it.",
    }


def test_commands_are_listed(shell: Shell) -> None:
    running = shell.start("sleep   600 # wait\n")
    ended = shell.start(f"echo {'x' * 100}; exit 2")
    shell.about("shell_output", id=ended, offset=1_000, wait=30)

    first, second = shell.about("shell_jobs")["result"].split("\n")
    assert re.fullmatch(rf"{running}  running for \d+ s, 0 bytes  sleep 600 # wait", first)
    assert second == f"{ended}  exit code 2, 101 bytes  echo {'x' * 74}…"


def test_stopping_ends_a_command_and_shows_its_output(shell: Shell) -> None:
    job = shell.start("echo $$; sleep 600")
    shell.about("shell_output", id=job, wait=30)

    result = shell.about("shell_stop", id=job)
    again = shell.about("shell_stop", id=job)

    assert result["success"] is True
    assert re.fullmatch(r"\d+\n\[stopped\]", result["result"])
    assert again["result"] == result["result"]
    assert "stopped, " in shell.about("shell_jobs")["result"]


def test_a_command_that_ended_by_itself_can_be_stopped_too(shell: Shell) -> None:
    job = shell.start("exit 4")
    shell.about("shell_output", id=job, wait=30)

    assert shell.about("shell_stop", id=job)["result"] == "[exit code 4]"


def test_a_command_in_the_background_may_have_a_limit(shell: Shell) -> None:
    job = shell.start("sleep 600", timeout=0.2)

    assert "when its time was over" in shell.about("shell_output", id=job, wait=30)["result"]


def test_sessions_do_not_see_each_others_commands(shell: Shell) -> None:
    job = shell.start("echo secret; sleep 600", session="a")

    assert shell.about("shell_jobs", session="b")["result"] == "There are no commands in the background."
    for tool in ("shell_output", "shell_stop"):
        answer = shell.about(tool, id=job, session="b")
        assert answer["success"] is False
        assert "there is no command" in answer["error"] and "(there are: none)" in answer["error"]
    assert job in shell.about("shell_jobs", session="a")["result"]
    assert f"(there are: {job})" in shell.about("shell_stop", id="sh_0", session="a")["error"]


def test_only_so_many_run_at_once(shell: Shell) -> None:
    shell.config["shell_max_jobs"] = 2
    first, _ = shell.start("sleep 600"), shell.start("sleep 600")

    refused = shell("sleep 600", background=True)
    shell.about("shell_stop", id=first)

    assert "2 commands run in the background already" in refused["error"] and first in refused["error"]
    assert shell("echo x")["success"] is True
    assert shell.start("sleep 600")
    assert shell.start("sleep 600", session="another")


def test_old_commands_are_forgotten(shell: Shell, until: Callable[[Callable[[], bool]], None]) -> None:
    first = shell.start("true")
    for _ in range(_MOST_ENDED + 1):
        shell.about("shell_output", id=shell.start("true"), wait=30)

    until(lambda: shell.start("true") != "" and first not in shell.about("shell_jobs")["result"])
    assert "it may have been forgotten" in shell.about("shell_output", id=first)["error"]


def test_waiting_for_output_can_be_cancelled(shell: Shell) -> None:
    token = Cancellation()
    job = shell.start("sleep 600")
    threading.Timer(0.05, token.cancel).start()

    result = shell.about("shell_output", id=job, wait=60, cancellation=token)

    assert "running" in result["result"]


def test_bad_arguments_are_refused_in_words(shell: Shell) -> None:
    assert "id must be a text" in shell.about("shell_output")["error"]
    assert "id must be a text" in shell.about("shell_stop", id=5)["error"]
    assert "offset must be a number of bytes" in shell.about("shell_output", id="x", offset=-1)["error"]
    assert "offset must be a number of bytes" in shell.about("shell_output", id="x", offset=True)["error"]
    assert "wait may be 60 seconds at most" in shell.about("shell_output", id="x", wait=61)["error"]


def test_commands_end_with_the_process(tmp_path: Path, gone: Callable[[int], None]) -> None:
    script = """
from shell_tool import ShellTool
tool = ShellTool()
state = tool.init({"roots": ["."], "shell_grace": 0.5, "sandbox": "off"})
for command in ("echo $$; sleep 600", "trap '' TERM; echo $$; while true; do sleep 0.05; done"):
    [started] = tool.stream_tool("shell", {"command": command, "background": True}, state)
    [read] = tool.stream_tool("shell_output", {"id": started["id"], "wait": 30}, state)
    print(read["result"].split()[0])
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )

    assert ran.stderr == ""
    for pid in ran.stdout.split():
        gone(int(pid))


def test_commands_end_with_the_plugin(tmp_path: Path, gone: Callable[[int], None]) -> None:
    tool = ShellTool()
    state = tool.init({"roots": [str(tmp_path)], "sandbox": "off"})  # inside, processes have other numbers
    [started] = tool.stream_tool("shell", {"command": "echo $$; sleep 600", "background": True}, state)
    [read] = tool.stream_tool("shell_output", {"id": started["id"], "wait": 30}, state)

    del tool
    gc.collect()

    gone(int(read["result"].split()[0]))


def test_descriptors_and_threads_do_not_pile_up(shell: Shell) -> None:
    shell("true")
    before = len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - how many is all

    for _ in range(20):
        shell("echo x")

    assert len(os.listdir("/proc/self/fd")) <= before[0]  # noqa: PTH208
    assert threading.active_count() <= before[1] + 1
