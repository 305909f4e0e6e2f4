"""Workers that a server starts for itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_terminal_app.commands.workers import worker_processes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PATIENCE = 60.0


def test_a_worker_runs_nothing_of_the_folder_in_which_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("numbers", "agent_terminal_app"):
        (tmp_path / f"{name}.py").write_text("open('taken', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    until, said = time.monotonic() + PATIENCE, ""

    with worker_processes(1, "nowhere://", None):
        while "a worker ended" not in said and time.monotonic() < until:
            time.sleep(0.05)
            said += capsys.readouterr().err

    assert "a worker ended" in said  # it was our own program, which knows of no such database
    assert not (tmp_path / "taken").exists()
