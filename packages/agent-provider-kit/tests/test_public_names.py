"""What the package offers, and what it costs to import."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

MODULES = ["agent_provider_kit", "agent_provider_kit.chat"]


@pytest.mark.parametrize("name", MODULES)
def test_everything_that_is_listed_is_there(name: str) -> None:
    module = importlib.import_module(name)

    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_everything_that_is_there_is_listed(name: str) -> None:
    module = importlib.import_module(name)
    modules = {key for key, value in vars(module).items() if type(value).__name__ == "module"}

    assert {key for key in vars(module) if not key.startswith("_")} - modules == set(module.__all__)


def test_what_is_slow_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, agent_provider_kit.chat; print({'aiohttp', 'ssl', 'pytest'} & {*sys.modules})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
