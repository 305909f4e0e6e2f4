"""pyright reads the file of a user of `Agent` as mypy does: it passes, and every wrong use is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs node")
def test_pyright_agrees_with_mypy() -> None:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(FOLDER)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stdout
