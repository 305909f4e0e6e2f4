"""`pip install agent-terminal-app` gives what a clone has: the embedded model, providers, features."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FILES = [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
MEMBERS: dict[str, dict[str, Any]] = {
    file.parent.name: tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in FILES
}


def brought_along(name: str = "agent-terminal-app") -> set[str]:
    """Return the members that are installed with one, itself among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in MEMBERS and one not in found:
            found.add(one)
            texts = MEMBERS[one].get("dependencies", [])
            waiting += map(_name, texts)
    return found


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def test_every_plugin_of_ours_comes_along_or_is_an_extra() -> None:
    plugins = {file.parent.name for file in ROOT.glob("plugins/*/pyproject.toml")}
    extras = MEMBERS["agent-terminal-app"].get("optional-dependencies", {}).values()
    offered = {_name(text) for extra in extras for text in extra}

    assert "local-llama-provider" in brought_along()
    assert plugins - brought_along() - offered == set(), "name them in the dependencies of agent-terminal-app"


def test_no_package_of_ours_is_needed_that_does_not_come_along() -> None:
    packages = {name.replace("-", "_"): name for name in MEMBERS}
    imported = {
        packages[found]
        for file in (ROOT / "packages" / "agent-terminal-app" / "src").rglob("*.py")
        for found in re.findall(r"^(?:from|import) (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if found in packages
    }

    assert imported <= brought_along()


@pytest.mark.skipif(not os.environ.get("FAULTS"), reason="builds every wheel; FAULTS=long does it")
def test_wheels_alone_give_a_chat_with_the_embedded_model(tmp_path: Path) -> None:
    wheels, installed = tmp_path / "wheels", tmp_path / "installed"
    for name in sorted(brought_along()):
        [file] = [file for file in FILES if file.parent.name == name]
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
        subprocess.run(build, cwd=file.parent, check=True, capture_output=True)
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
