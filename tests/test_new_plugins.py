"""`agent plugins`: a new package of every kind is green as it is; one of an index is added and removed."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from agent_core.plugin.discovery import KINDS
from agent_terminal_app.program import run as run_agent

TIMEOUT = 300


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of its own that sees everything that is installed here, and return its Python."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=TIMEOUT)
    [own] = folder.glob("lib/python*/site-packages")
    here = [entry for entry in site.getsitepackages() if Path(entry).is_relative_to(sys.prefix)]
    (own / "here.pth").write_text("".join(f"import site; site.addsitedir({entry!r})\n" for entry in here))
    return folder / "bin" / "python"


def run(*command: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd / "config"), "XDG_DATA_HOME": str(cwd / "data")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **home, "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )


def agent(python: Path, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(python, "-m", "agent_terminal_app", *words, cwd=cwd)


def listed(python: Path, cwd: Path) -> dict[str, dict[str, object]]:
    done = agent(python, "plugins", "list", "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def packages(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a package of every kind, install all of them, and return the folder that they are in."""
    folder = tmp_path_factory.mktemp("packages")
    for kind in KINDS:
        assert run_agent(["plugins", "new", kind, f"sample-{kind}", "--folder", str(folder)]) == 0
    names = [f"./sample-{kind}" for kind in KINDS]
    done = run(environment, "-m", "pip", "install", "--no-build-isolation", "--no-deps", *names, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_tests_of_a_new_plugin_pass(kind: str, environment: Path, packages: Path) -> None:
    done = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=packages / f"sample-{kind}")

    assert done.returncode == 0, done.stdout


def test_new_plugins_that_are_installed_are_listed(environment: Path, packages: Path) -> None:
    rows = listed(environment, packages)

    for kind in KINDS:
        row = rows[f"sample_{kind}"]
        assert (row["kind"], row["distribution"], row["problem"]) == (kind, f"sample-{kind}", None)


@pytest.mark.slow
def test_the_code_of_new_plugins_is_typed_and_in_good_style(environment: Path, packages: Path) -> None:
    sources = [packages / f"sample-{kind}" / "src" for kind in KINDS]

    rules = ["--isolated", "--select", "E,F,UP,B", "--line-length", "120"]
    style = run(environment, "-m", "ruff", "check", *rules, packages, cwd=packages)
    types = run(
        environment, "-m", "mypy", "--strict", "--cache-dir", packages / "cache", *sources, cwd=packages
    )

    assert style.returncode == 0, style.stdout
    assert types.returncode == 0, types.stdout


def test_a_plugin_of_an_index_is_found_added_used_and_removed(environment: Path, tmp_path: Path) -> None:
    assert run_agent(["plugins", "new", "tool", "sample-index", "--folder", str(tmp_path)]) == 0
    build = [
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "-w",
        tmp_path,
        "./sample-index",
    ]
    assert run(environment, *build, cwd=tmp_path).returncode == 0
    [wheel] = tmp_path.glob("*.whl")
    entry = {
        "name": "sample_index",
        "kind": "tool",
        "summary": "Counts words.",
        "distribution": "sample-index",
        "version": "0.1.0",
        "author": "somebody",
        "wheel": wheel.name,
        "sha256": sha256(wheel.read_bytes()).hexdigest(),
    }
    # Its dependency is installed here in place of a registry.
    metadata = tomllib.loads((tmp_path / "sample-index" / "pyproject.toml").read_text())["project"]
    assert metadata["dependencies"] == ["keelwork-core>=0.1,<0.2"]
    index = tmp_path / "index.json"
    index.write_text(json.dumps({"format": 1, "name": "Samples", "plugins": [entry]}))

    found = agent(environment, "plugins", "search", "words", "--index", index, "--json", cwd=tmp_path)
    [row] = json.loads(found.stdout)
    assert (row["name"], row["installed"], row["index"]) == ("sample_index", False, str(index))

    asked = agent(environment, "plugins", "add", "sample_index", "--index", index, cwd=tmp_path)
    assert asked.returncode == 5
    assert "there is nobody to ask" in asked.stderr

    added = agent(environment, "plugins", "add", "sample_index", "--index", index, "--yes", cwd=tmp_path)
    assert added.returncode == 0, added.stderr
    assert "sample_index: in more_plugins of" in added.stderr
    code = (
        "from agent_core import AgentCore; core = AgentCore(); core.register_installed(['sample_index']); "
        "print(core.get_available_tools({})[0].name)"
    )
    assert run(environment, "-c", code, cwd=tmp_path).stdout == "sample_index_count\n"

    removed = agent(environment, "plugins", "remove", "sample_index", "--uninstall", cwd=tmp_path)
    assert removed.returncode == 0, removed.stderr
    assert "sample_index" not in listed(environment, tmp_path)

    index.write_text(json.dumps({"format": 1, "plugins": [{**entry, "sha256": "0" * 64}]}))
    refused = agent(environment, "plugins", "add", "sample_index", "--index", index, "--yes", cwd=tmp_path)
    assert refused.returncode == 1
    assert "is not the wheel that" in refused.stderr
    assert "sample_index" not in listed(environment, tmp_path)
