"""A disk that is full while a chat runs: on a small disk of its own, in namespaces of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.home import AGENT
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import chat_reply

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer

NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount"]
MOUNT = 'mount -t tmpfs -o size=3m tmpfs "$XDG_DATA_HOME" && exec "$@"'


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(
            [*NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", str(folder)],
            check=True,
            capture_output=True,
            timeout=60,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    return folder


def test_a_full_disk_is_named_and_nothing_is_lost(home: Home, server: ScriptedServer, disk: Path) -> None:
    server.play(chat_reply("One."))
    environment = {**home.environment, "XDG_DATA_HOME": str(disk)}
    command = [*NAMESPACES, "sh", "-c", MOUNT, "sh", *AGENT, "chat"]

    with Terminal(command, environment=environment, folder=home.project, columns=200, rows=30) as chat:
        chat.expect_line("ready")
        chat.type("first\r")
        chat.expect("One.")
        chat.expect_line("ready")
        chat.type(f"!dd if=/dev/zero of={disk}/fill bs=4k 2> /dev/null; true\r")
        chat.expect("exit code 0")
        chat.expect_line("ready")
        chat.type("second\r")
        chat.expect("app.db is full: this change was not written; earlier changes are safe; make room")
        chat.expect("your message was not sent; Up brings it back")
        chat.expect_line("ready")
        chat.type("/doctor\r")
        chat.expect("make room on the disk of")
        chat.expect_line("ready")
        chat.type(f"!rm {disk}/fill\r")
        chat.wait(lambda: chat.text.count("exit code 0") == 2, "the end of the command")
        chat.expect_line("ready")
        server.play(chat_reply("Two."))
        chat.type("second\r")
        chat.expect("Two.")
    first, second = (one for one in server.requests[-1].json["messages"] if one["role"] == "user")
    assert "first" in str(first["content"]) and "second" in str(second["content"])
