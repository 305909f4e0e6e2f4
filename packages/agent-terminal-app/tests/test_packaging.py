"""`pip install keelwork[local]` gives what a clone has: the embedded model, providers, features.

What may be asked for, and by which name, is in `tests/test_distributions.py` of the workspace.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.connections import EMBEDDED, KNOWN
from agent_terminal_app.first_run.models import _provider, distribution_of

ROOT = Path(__file__).parents[3]
FILES = [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
FOLDERS: dict[str, Path] = {}
MEMBERS: dict[str, dict[str, Any]] = {}
for _file in FILES:
    _project = tomllib.loads(_file.read_text(encoding="utf-8"))["project"]
    MEMBERS[_project["name"]], FOLDERS[_project["name"]] = _project, _file.parent


def brought_along(name: str) -> set[str]:
    """Return the members that are installed with one, itself among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in MEMBERS and one not in found:
            found.add(one)
            waiting += [Requirement(text).name for text in MEMBERS[one].get("dependencies", [])]
    return found


def test_the_plugin_of_every_provider_that_can_be_chosen_is_named_as_it_installs() -> None:
    providers = {EMBEDDED, *(one.provider for one in KNOWN)}

    local = "keelwork-local-llama-provider"  # the extra `local`
    assert {distribution_of(provider) for provider in providers} <= brought_along("keelwork") | {local}


def test_a_provider_that_is_not_installed_is_asked_for_in_the_version_of_the_rest() -> None:
    with pytest.raises(CommandError) as caught:
        _provider("no_such")

    version = MEMBERS["keelwork"]["version"]
    assert caught.value.hint == f"run: pip install keelwork-no-such-provider=={version}"


def test_setup_names_the_plugin_of_a_provider_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "local_llama")

    done = agent(tmp_path, "", "setup", "--provider", "anthropic", "--yes")

    assert done.returncode == Exit.NOT_CONFIGURED
    assert f"run: pip install keelwork-anthropic-provider=={MEMBERS['keelwork']['version']}" in done.stderr


@pytest.mark.parametrize("command", ["worker", "workers", "runs list", "runs send hello"])
def test_a_command_of_workers_names_the_extra_that_brings_them(command: str, tmp_path: Path) -> None:
    program = "import sys\nsys.modules['agent_durable'] = None\n"

    done = agent(tmp_path, program, *command.split(), "--database", "postgresql:///none")

    assert done.returncode == Exit.NOT_CONFIGURED
    assert "workers are not installed; pip install 'keelwork-terminal[workers]'" in done.stderr


def agent(folder: Path, before: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process and a home of its own, after some preparation."""
    places = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return subprocess.run(
        [sys.executable, "-c", f"{before}from agent_terminal_app.cli import main; main()", *arguments],
        env={**os.environ, **places, "HOME": str(folder), "AGENT_KEYRING": "off"},
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(not os.environ.get("FAULTS"), reason="builds every wheel; FAULTS=long does it")
@pytest.mark.parametrize("name", ["keelwork", "keelwork-terminal"])
def test_wheels_alone_give_a_chat_with_the_embedded_model(name: str, tmp_path: Path) -> None:
    wheels, installed = tmp_path / "wheels", tmp_path / "installed"
    for one in sorted(brought_along(name)):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
        subprocess.run(build, cwd=FOLDERS[one], check=True, capture_output=True)
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", str(installed)]
    subprocess.run([*pip, *map(str, wheels.iterdir())], check=True, capture_output=True)
    others = sysconfig.get_paths()["purelib"]
    program = (
        "import agent_terminal_app, sys; assert agent_terminal_app.__file__.startswith(sys.argv.pop(1))\n"
        "from agent_terminal_app.cli import main; main()\n"
    )
    # Without `site`, the members of this clone are not to be found; what they depend on is.
    places = {name: str(tmp_path / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    environment = {**os.environ, **places, "HOME": str(tmp_path), "PYTHONPATH": f"{installed}:{others}"}

    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(installed), "run", "What is the capital of France?"],
        env=environment,
        cwd=tmp_path,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
