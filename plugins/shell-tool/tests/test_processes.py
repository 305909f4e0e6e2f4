"""Commands run: their output comes as it is written, and nothing of them is left."""

from __future__ import annotations

import json
import os
import signal
import threading
import tracemalloc
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Cancellation
from shell_tool.environment import Refused
from shell_tool.output import Output
from shell_tool.processes import Launch, ProcessGroup, RunningCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Shell

STUBBORN = "trap '' TERM; echo $$; while true; do sleep 0.05; done"


def text_of(items: list[dict[str, Any]]) -> str:
    return "".join(item["part"]["text"] for item in items if "part" in item)


def first_number(items: Iterator[dict[str, Any]]) -> int:
    """Return the number that a command writes first."""
    text = ""
    while "\n" not in text:
        text += next(items)["part"]["text"]
    return int(text.split()[0])


def cancelled_after_a_number(shell: Shell, command: str) -> tuple[int, dict[str, Any]]:
    """Cancel a command when it has written a number; return that and the result."""
    token = Cancellation()
    items = shell.stream(command=command, cancellation=token)
    number = first_number(items)
    token.cancel()
    return number, list(items)[-1]


def test_a_command_runs_in_the_workspace(shell: Shell) -> None:
    result = shell("pwd; echo more >&2")

    assert result["success"] is True
    assert result["result"] == f"{shell.workspace}\nmore\n"
    assert result["exit_code"] == 0
    assert result["output_bytes"] == len(result["result"])


def test_nothing_to_say_is_said(shell: Shell) -> None:
    assert shell("true")["result"] == "(no output)"


def test_a_failure_has_the_output_and_the_exit_code(shell: Shell) -> None:
    result = shell("echo no; exit 3")

    assert result["success"] is False
    assert result["error"] == "no\n[exit code 3]"
    assert shell("exit 1")["error"] == "[exit code 1]"


def test_a_signal_is_named(shell: Shell) -> None:
    assert shell("kill -KILL $$")["error"] == "[ended by SIGKILL]"
    assert shell(f"kill -{signal.SIGRTMIN + 2} $$")["error"] == f"[ended by signal {signal.SIGRTMIN + 2}]"


def test_both_streams_come_in_the_order_of_their_arrival(shell: Shell) -> None:
    result = shell("for i in 1 2 3; do echo out $i; echo err $i >&2; done")

    assert result["result"] == "".join(f"out {i}\nerr {i}\n" for i in (1, 2, 3))


def test_output_is_shown_while_the_command_runs(shell: Shell) -> None:
    items = shell.stream(command="echo one; while [ ! -e go ]; do sleep 0.01; done; echo two")

    assert next(items) == {"part": {"type": "output", "text": "one\n"}}
    (shell.workspace / "go").touch()
    *parts, result = items
    assert text_of(parts) == "two\n"
    assert result["result"] == "one\ntwo\n"


def test_a_character_that_comes_in_two_pieces_is_one_character(shell: Shell) -> None:
    items = shell.stream(command=r"printf 'a\xc3'; while [ ! -e go ]; do sleep 0.01; done; printf '\xa9'")

    assert next(items)["part"]["text"] == "a"
    (shell.workspace / "go").touch()
    *parts, result = items
    assert text_of(parts) == "é"
    assert result["result"] == "aé"


def test_bytes_that_are_no_text_do_no_harm(shell: Shell) -> None:
    (shell.workspace / "junk").write_bytes(bytes(range(256)) * 40)

    items = list(shell.stream(command="cat junk; printf 'cut \\xe2\\x82'"))

    assert items[-1]["result"].startswith("␀\x01\x02")
    assert items[-1]["result"].endswith("cut \N{REPLACEMENT CHARACTER}")
    assert text_of(items) == items[-1]["result"]
    assert "\0" not in json.loads(json.dumps(items))[-1]["result"]


def test_escape_sequences_are_left_to_those_who_show_them(shell: Shell) -> None:
    assert shell(r"printf '\033[31mred\033[0m'")["result"] == "\x1b[31mred\x1b[0m"


def test_there_is_nothing_to_read(shell: Shell) -> None:
    assert shell("cat; read x || echo no input")["result"] == "no input\n"


def test_there_is_no_terminal(shell: Shell) -> None:
    assert shell("tty; (echo x > /dev/tty) 2>/dev/null || echo none")["result"] == "not a tty\nnone\n"


def test_a_command_whose_time_is_over_is_ended(shell: Shell) -> None:
    result = shell("sleep 600", timeout=0.3)

    assert result["success"] is False
    assert result["exit_code"] == -signal.SIGTERM
    assert "when its time was over: give it a longer timeout (up to 3600 s), or" in result["error"]


def test_a_command_that_ignores_the_request_to_end_is_ended(
    shell: Shell, gone: Callable[[int], None]
) -> None:
    pid, result = cancelled_after_a_number(shell, STUBBORN)

    assert result["exit_code"] == -signal.SIGKILL
    gone(pid)


def test_a_command_may_tidy_up_when_it_is_asked_to_end(shell: Shell) -> None:
    shell.config["shell_grace"] = 20

    _, result = cancelled_after_a_number(
        shell, "trap 'echo bye; exit 7' TERM; echo 1; while true; do sleep 0.05; done"
    )

    assert "bye\n[stopped]" in result["error"]
    assert result["exit_code"] == 7


CHILDREN = ["sleep 600", f"({STUBBORN}) >/dev/null", "setsid sleep 600", "nohup sleep 600"]


@pytest.mark.parametrize("child", CHILDREN)
def test_what_a_command_started_ends_with_it(child: str, shell: Shell, gone: Callable[[int], None]) -> None:
    pid, _ = cancelled_after_a_number(shell, f"{child} & echo $!; sleep 600")

    gone(pid)


@pytest.mark.parametrize("child", ["sleep 600", "sleep 600 >/dev/null 2>&1", f"({STUBBORN}) >/dev/null"])
def test_what_is_left_behind_neither_delays_the_call_nor_outlives_it(
    child: str, shell: Shell, gone: Callable[[int], None]
) -> None:
    result = shell(f"{child} & echo $!", timeout=60)

    pid, note = result["result"].split("\n")
    assert result["success"] is True
    assert note == "[processes that it left running were ended: run such a command with background: true]"
    gone(int(pid))


def test_a_service_that_left_on_purpose_is_not_followed_when_all_went_well(shell: Shell) -> None:
    service = "setsid bash -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1"

    result = shell(f"{service} & while [ ! -s pid ]; do sleep 0.01; done; cat pid")

    os.kill(int(result["result"]), signal.SIGKILL)  # which fails if it is not there


def test_output_may_end_before_the_command(shell: Shell) -> None:
    result = shell("echo a; exec >&- 2>&-; sleep 0.2; exit 5")

    assert result["error"] == "a\n[exit code 5]"


def test_all_that_was_written_before_the_end_is_there(shell: Shell) -> None:
    result = shell("head -c 500000 /dev/zero | tr '\\0' x; printf last")

    assert result["output_bytes"] == 500_004
    assert result["result"].endswith("xlast")


def test_cancelling_ends_a_command_that_never_stops_talking(
    shell: Shell, gone: Callable[[int], None]
) -> None:
    token = Cancellation()
    items = shell.stream(command="echo $$; sleep 0.2; exec yes", cancellation=token)
    pid = first_number(items)
    list(islice(items, 3))

    token.cancel()

    *_, result = items
    assert result["error"].endswith("[stopped]")
    gone(pid)


def test_cancelling_from_elsewhere_ends_a_silent_command(shell: Shell, gone: Callable[[int], None]) -> None:
    token = Cancellation()
    items = shell.stream(command="echo $$; sleep 600", cancellation=token)
    pid = first_number(items)

    threading.Timer(0.05, token.cancel).start()

    *_, result = items
    assert result["error"].endswith("[stopped]")
    gone(pid)


def test_a_call_that_is_cancelled_already_ends_at_once(shell: Shell) -> None:
    token = Cancellation()
    token.cancel()

    assert shell("sleep 600", cancellation=token)["success"] is False


def test_leaving_ends_the_command(shell: Shell, gone: Callable[[int], None]) -> None:
    items = shell.stream(command="echo $$; sleep 600")
    pid = first_number(items)

    items.close()  # type: ignore[attr-defined] # a generator

    gone(pid)


def test_many_children_end_together(shell: Shell, gone: Callable[[int], None]) -> None:
    _, result = cancelled_after_a_number(shell, "for i in $(seq 150); do sleep 600 & done; jobs -p; wait")

    pids = [int(word) for word in result["error"].split() if word.isdigit()]
    assert len(pids) == 150
    for pid in pids:
        gone(pid)


def test_a_process_of_somebody_else_is_given_up(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for `sudo`: we run as the one user whom every process obeys."""
    send = ProcessGroup.signal
    reached: list[ProcessGroup] = []
    monkeypatch.setattr(ProcessGroup, "signal", lambda group, _number: reached.append(group))
    monkeypatch.setattr(ProcessGroup, "ask_escaped", lambda _group: None)
    monkeypatch.setattr(ProcessGroup, "end_escaped", lambda _group: None)
    job = shell.start("sleep 600")

    result = shell.about("shell_stop", id=job)

    assert result["success"] is False
    assert "it could not be ended and may still run" in result["result"]
    send(reached[0], signal.SIGKILL)
    shell.tool._jobs.get(job, "s").running._process.wait()


@pytest.mark.parametrize("call", ["pidfd_open", "waitid"])
def test_systems_that_lack_a_call_are_served_too(
    call: str, shell: Shell, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], None]
) -> None:
    monkeypatch.delattr(os, call)

    assert shell("echo a; exit 3")["error"] == "a\n[exit code 3]"
    pid, _ = cancelled_after_a_number(shell, STUBBORN)
    gone(pid)


@pytest.mark.slow
def test_two_hundred_megabytes_cost_little_memory(shell: Shell) -> None:
    tracemalloc.start()
    try:
        items = shell.stream(command="yes 123456789 | head -c 200000000")
        shown = sum(len(item["part"]["text"]) for item in items if "part" in item)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert shown == 10_000_000
    assert peak < 8_000_000


def test_two_calls_at_once_keep_apart(shell: Shell) -> None:
    streams = [shell.stream(command=f"for i in 1 2 3; do echo {name} $i; done") for name in "ab"]

    results = [list(items)[-1]["result"] for items in streams]

    assert results == ["a 1\na 2\na 3\n", "b 1\nb 2\nb 3\n"]


def test_a_folder_that_vanishes_at_the_last_moment_is_told(tmp_path: Path) -> None:
    launch = Launch(command="ls", bash="bash", folder=tmp_path / "gone", env={}, timeout=1, grace=1)

    with closing(Output(10, 10)) as output, pytest.raises(Refused, match="cannot be started"):
        RunningCommand(launch, output)


def test_a_bash_that_is_not_there_is_told(shell: Shell) -> None:
    shell.config["shell_bash"] = "/nowhere/bash"

    assert shell("ls")["error"].startswith("the command cannot be started: [Errno 2]")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "command must be a text that is not empty, not None"),
        ({"command": ""}, "command must be a text"),
        ({"command": 5}, "command must be a text"),
        ({"command": "echo \0"}, "NUL character"),
        ({"command": "echo \ud800"}, "half a surrogate pair"),
        ({"command": "x" * 1_000_000}, "1,000,000 bytes, and 100,000 are allowed: write it into a file"),
        ({"command": "ls", "timeout": 0.0 - 1}, "timeout must be a number of seconds"),
        ({"command": "ls", "timeout": float("nan")}, "timeout must be a number of seconds"),
        ({"command": "ls", "timeout": True}, "timeout must be a number of seconds"),
        ({"command": "ls", "timeout": 4000}, "3600 seconds at most, not 4000"),
        ({"command": "ls", "background": "yes"}, "background must be true or false"),
        ({"command": "ls", "cwd": 5}, "cwd must be a text"),
        ({"command": "ls", "cwd": "a\0b"}, "cwd has a NUL character"),
        ({"command": "ls", "cwd": "nowhere"}, "cwd 'nowhere' is not a folder"),
        ({"command": "ls", "cwd": "/"}, "cwd '/' is outside the workspace"),
        ({"command": "ls", "cwd": "../.."}, "is outside the workspace: name a folder below"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(
    arguments: dict[str, Any], problem: str, shell: Shell
) -> None:
    [result] = shell.stream(**arguments)

    assert result["success"] is False
    assert problem in result["error"]


def test_an_unknown_tool_is_refused_in_words(shell: Shell) -> None:
    assert "there is no tool 'shel' here" in shell.about("shel")["error"]


def test_the_longest_command_runs(shell: Shell) -> None:
    command = f"true {'x' * 99_995}"

    assert shell(command)["success"] is True
