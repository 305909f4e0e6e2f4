"""Commands that have lost the program that started them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_plugin_kit.orphans import MARK, find_orphans

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="environments are not shown here")


def test_only_commands_of_the_same_home_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    # A mark of an owner that never was: no process has this id and this start.
    marked = {**os.environ, MARK: f"{'0' * 32}:{os.getpid()}:1"}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=marked, start_new_session=True) as own:
        found = find_orphans()
        monkeypatch.setenv("HOME", str(tmp_path / "another"))
        elsewhere = find_orphans()
        own.terminate()

    assert [one.pid for one in found] == [own.pid]
    assert own.pid not in [one.pid for one in elsewhere]
