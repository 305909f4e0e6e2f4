"""Servers in the sandbox: what they cannot do, what a person approves, how a refusal is explained."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ConfigError
from agent_plugin_kit.sandbox import find_way
from agent_plugin_kit.sandbox.bubblewrap import Bubblewrap
from mcp_tools.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World

needs_bubblewrap = pytest.mark.skipif(
    not isinstance(find_way(), Bubblewrap), reason=f"bubblewrap does not work here: {find_way()}"
)
PROGRAM = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("reach")

@server.tool()
def write(path: str) -> str:
    with open(path, "w") as file:
        file.write("written")
    return "written"

@server.tool()
def variables() -> str:
    import glob
    return "".join(open(one, errors="replace").read() for one in glob.glob("/proc/[0-9]*/environ"))

server.run()
"""


def declare(world: World, folder: Path, **more: Any) -> None:
    program = folder / "reach.py"
    program.write_text(PROGRAM)
    world.sandbox = "workspace"
    line = {"command": sys.executable, "args": [str(program)], "cwd": str(folder)}
    world.servers["reach"] = {**line, **more}
    world.approve("reach")


@needs_bubblewrap
def test_a_server_writes_only_what_was_approved(world: World, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    declare(world, tmp_path, sandbox_write=[str(allowed)])

    refused = world.call("reach__write", path=str(other / "file"))
    world.call("reach__write", path=str(allowed / "file"))

    assert refused["success"] is False
    assert (allowed / "file").read_text() == "written"
    assert not (other / "file").exists()


@needs_bubblewrap
def test_a_server_sees_no_variables_of_others(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELD_BACK", "value-of-ours")
    declare(world, tmp_path)

    assert "value-of-ours" not in str(world.call("reach__variables"))


@needs_bubblewrap
def test_why_a_server_failed_is_explained_with_the_rule(world: World, tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("open('/etc/mcp-tools-test', 'w')")
    world.sandbox = "workspace"
    world.servers["fails"] = {"command": sys.executable, "args": [str(program)], "cwd": str(tmp_path)}
    world.approve("fails")

    world.until(lambda: "sandbox_write" in str(world.status("fails")))


def test_what_makes_it_looser_is_part_of_what_is_approved() -> None:
    def launch(**more: Any) -> Any:
        config = {"servers": {"a": {"command": "x", "cwd": "/", **more}}, "sandbox_hosts": ["a.example"]}
        [server] = Settings.read(config).servers
        return server.launch["sandbox"]

    assert launch() == {"mode": "workspace", "hosts": ["a.example"], "write": [], "show": []}
    assert launch(sandbox="off") == {"mode": "off"}
    assert launch(sandbox_hosts=["b.example"])["hosts"] == ["b.example"]
    assert launch(sandbox_write=["/srv"])["write"] == ["/srv"]


@pytest.mark.parametrize("wrong", [{"sandbox": "loose"}, {"sandbox_write": ["relative"]}])
def test_a_wrong_setting_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="sandbox"):
        Settings.read({"servers": {"a": {"command": "x", "cwd": "/", **wrong}}})


def test_a_server_elsewhere_has_no_sandbox() -> None:
    with pytest.raises(ConfigError):
        Settings.read({"servers": {"a": {"url": "https://a.example/mcp", "sandbox": "off"}}})
