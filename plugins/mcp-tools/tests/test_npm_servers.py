"""Two servers of the protocol's own project, in another language."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World

PACKAGES = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of both servers, if npm is here and can fetch them."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are not on the PATH, and the servers come from there")
    folder = tmp_path_factory.mktemp("npm")
    line = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not install the servers within two minutes")
    if done.returncode:
        pytest.skip(f"npm cannot install them: {done.stderr[-300:]}")
    return folder / "node_modules"


def declared(installed: Path, package: str, *arguments: str) -> dict[str, object]:
    script = installed / package / "dist" / "index.js"
    return {"command": "node", "args": [str(script), *arguments], "cwd": str(installed)}


@pytest.mark.slow
def test_the_server_with_everything(world: World, installed: Path) -> None:
    world.servers["all"] = declared(installed, PACKAGES[0])
    world.approve()

    assert world.status("all")["problem"] == ""
    assert {"all__echo", "mcp_read_resource", "mcp_get_prompt"} <= set(world.offered())
    assert world.call("all__echo", message="tea")["result"] == "Echo: tea"
    assert json.loads(world.call("mcp_read_resource", server="all")["result"])["all"]
    picture = next(name for name in world.offered() if "image" in name.lower())
    assert any(part["type"] == "image" for part in world.call(picture)["parts"])


@pytest.mark.slow
def test_the_server_for_files(world: World, installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "note.txt").write_text("buy tea")
    world.servers["files"] = declared(installed, PACKAGES[1], str(home))
    world.approve()

    assert "buy tea" in world.call("files__read_text_file", path=str(home / "note.txt"))["result"]
    assert world.call("files__read_text_file", path="/etc/passwd")["success"] is False
