"""The settings: what is read, and what is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core import ConfigError
from mcp_tools.environment import server_environment
from mcp_tools.errors import Lost
from mcp_tools.settings import Settings


def read(**server: Any) -> Settings:
    return Settings.read({"servers": {"files": server}})


def test_a_local_server_has_its_launch() -> None:
    [server] = read(command="npx", args=["-y", "x"], env={"B": "1", "A": "env:SECRET"}).servers

    assert server.launch == {
        "command": "npx",
        "args": ["-y", "x"],
        "env": ["A", "B"],
        "cwd": str(Path.home()),
    }
    assert (server.timeout, server.start_timeout, server.parallel, server.tools) == (60, 30, False, ("*",))


def test_a_server_elsewhere_has_its_address_and_the_names_of_its_headers() -> None:
    [server] = read(url="https://tea.example/mcp", headers={"Authorization": "env:TOKEN"}).servers

    assert server.launch == {"url": "https://tea.example/mcp", "headers": ["Authorization"]}


def test_the_value_of_a_secret_is_no_part_of_what_is_approved() -> None:
    [one] = read(command="x", env={"KEY": "1"}).servers
    [other] = read(command="x", env={"KEY": "2"}).servers

    assert one.launch_digest == other.launch_digest
    assert one != other


def test_a_server_that_is_switched_off_is_none() -> None:
    assert read(command="x", enabled=False).servers == ()
    assert Settings.read({}).servers == ()


def test_approvals_are_kept_in_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert Settings.read({}).pins == Path("/state/agent/mcp-pins.json")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    assert Settings.read({}).pins == Path.home() / ".local/state/agent/mcp-pins.json"
    assert Settings.read({"pins": "~/p.json"}).pins == Path.home() / "p.json"


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"command": ""},
        {"command": "x", "url": "https://tea.example"},
        {"url": "ftp://tea.example"},
        {"url": "https://tea.example", "args": []},
        {"url": "https://tea.example", "env": {}},
        {"command": "x", "headers": {}},
        {"command": "x", "args": "-y"},
        {"command": "x", "env": {"A": 1}},
        {"command": "x", "timeout": 0},
        {"command": "x", "start_timeout": "soon"},
        {"command": "x", "tools": "read"},
        {"command": "x", "colour": "red"},
        {"command": "x", "cwd": "relative"},
    ],
)
def test_what_cannot_be_meant_is_refused(server: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="files"):
        read(**server)


@pytest.mark.parametrize("name", ["a__b", "_a", "a_", "a b", "", "ü", "x" * 33])
def test_a_name_that_would_not_end_where_it_ends_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        Settings.read({"servers": {name: {"command": "x"}}})


def test_a_server_gets_the_usual_variables_and_its_own() -> None:
    ours = {"PATH": "/bin", "OPENAI_API_KEY": "secret", "TOKEN": "t", "HOME": "/home/ada"}

    env = server_environment(ours, {"KEY": "env:TOKEN", "PLAIN": "x", "HOME": "/elsewhere"})

    assert env == {"PATH": "/bin", "HOME": "/elsewhere", "KEY": "t", "PLAIN": "x"}


def test_a_variable_that_is_not_there_is_named() -> None:
    with pytest.raises(Lost, match="KEY shall be the environment variable TOKEN, which is not set"):
        server_environment({}, {"KEY": "env:TOKEN"})
