"""A clone that somebody has just made: `make chat` answers, and the line that it prints works when pasted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOR_DEVELOPERS = ("pytest", "mypy", "ruff", "playwright")


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, ("git", "make"))) or not (ROOT / ".git").exists(), reason="needs a clone"
)
def test_a_fresh_clone_chats_and_its_command_is_found_after_one_pasted_line(tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "-q", "--depth", "1", ROOT.as_uri(), clone], check=True)
    ours = (
        "XDG_",
        "VIRTUAL_ENV",
        "AGENT_",
        "PYTHON",
        "MAKE",
        "ARGS",
    )  # the last are those of `make test-all`
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment = {**kept, "HOME": str(home)}

    done = subprocess.run(
        ["make", "chat"],
        cwd=clone,
        env=environment,
        input="What is two plus two?\n",
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "You are talking to SmolLM2, a small model inside this program." in done.stdout
    assert done.stdout.partition("no files, no shell, no web.")[2].strip()  # the answer
    installed = {one.name.partition("-")[0] for one in clone.glob(".venv/lib/*/site-packages/*.dist-info")}
    assert "click" in installed and installed.isdisjoint(FOR_DEVELOPERS)
    [pasted] = re.findall(r"^    (export PATH=.*)$", done.stdout, re.MULTILINE)
    shell = ["bash", "-c", f"{pasted}\nagent --version\ncommand -v agent"]
    found = subprocess.run(shell, cwd=home, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [
        f"Keelwork {(ROOT / 'VERSION').read_text().strip()}",
        str(clone / ".venv" / "bin" / "agent"),
    ]
