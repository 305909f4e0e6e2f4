"""`!command`: a real shell, its output as it comes, ended with everything that it started."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from agent_terminal_app.chat.shell import ShellProcess, ShellResult


@pytest.fixture(autouse=True)
def plain_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")


def run(command: str, folder: Path) -> tuple[ShellResult, list[str]]:
    lines: list[str] = []
    return asyncio.run(ShellProcess(lines.append).run(command, folder)), lines


def test_a_command_runs_in_the_folder_and_its_output_is_shown(tmp_path: Path) -> None:
    ran, lines = run("pwd; echo oops >&2; exit 3", tmp_path)

    assert lines == [str(tmp_path), "oops"]
    assert ran.code == 3 and not ran.stopped
    assert ran.line().startswith("exit code 3, ")


def test_the_agent_is_told_the_command_the_folder_the_code_and_the_output(tmp_path: Path) -> None:
    ran, _ = run("echo hello", tmp_path)

    attachment = ran.attachment()

    assert attachment.label == "the output of `echo hello`"
    assert attachment.part["text"] == (
        f"I ran this command in {tmp_path}:\n\necho hello\n\nIts exit code was 0. It printed:\n\nhello\n"
    )


def test_there_is_nothing_to_read_and_nothing_that_moves_the_cursor_is_shown(tmp_path: Path) -> None:
    _, lines = run(r"cat; printf '10%%\r20%%\r\nred \033[31mx\033[0m\033[2J\n'", tmp_path)

    assert lines == ["20%", "red x\\x1b[2J"]


def test_of_a_flood_only_the_beginning_is_shown_and_the_end_is_kept(tmp_path: Path) -> None:
    ran, lines = run("seq 1 300000", tmp_path)

    assert lines[:2] == ["1", "2"] and len(lines) == 201
    assert lines[-1] == "… 299,800 more lines; the last: 300000"
    assert len(str(ran.output)) < 70_000 and str(ran.output).endswith("299999\n300000\n")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_stopping_ends_everything_that_was_started(tmp_path: Path) -> None:
    async def stopped() -> ShellResult:
        shell = ShellProcess(lambda _line: None)
        running = asyncio.create_task(
            shell.run(
                "sleep 1000 & echo $! > child; trap '' TERM; echo $$ > self; while :; do sleep 1; done",
                tmp_path,
            )
        )
        while not (tmp_path / "self").exists() or not (tmp_path / "self").read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert shell.running
        assert shell.stop()
        return await running

    ran = asyncio.run(stopped())

    assert ran.stopped and ran.line().startswith("stopped, ")
    until = time.monotonic() + 60
    for name in ("child", "self"):
        pid = int((tmp_path / name).read_text())
        while alive(pid):
            assert time.monotonic() < until
            time.sleep(0.01)


def test_what_goes_on_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    ran, lines = run("echo started; sleep 600 & echo $! > child", tmp_path)
    os.kill(int((tmp_path / "child").read_text()), 9)

    assert lines == ["started"] and ran.seconds < 600


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        run("true", tmp_path / "gone")


def test_there_is_nothing_to_stop_if_nothing_runs() -> None:
    assert not ShellProcess(lambda _line: None).stop()
