"""The settings: what is read, and what is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_core import ConfigError
from mcp_tools.settings import Lost, Settings, server_environment


def read(**server: Any) -> Settings:
    return Settings.read({"servers": {"files": server}})


def test_a_local_server_has_its_launch() -> None:
    [server] = read(command="npx", args=["-y", "x"], env={"B": "1", "A": "env:SECRET"}).servers

    assert server.launch == {
        "command": "npx",
        "args": ["-y", "x"],
        "env": {"A": "env:SECRET", "B": "1"},
        "cwd": str(Path.home()),
        "sandbox": {"mode": "workspace", "hosts": [], "write": [], "show": []},
    }
    assert (server.timeout, server.start_timeout, server.parallel, server.tools) == (60, 30, False, ("*",))


def test_a_server_elsewhere_has_its_address_and_its_headers() -> None:
    [server] = read(url="https://tea.example/mcp", headers={"Authorization": "env:TOKEN"}).servers

    assert server.launch == {"url": "https://tea.example/mcp", "headers": {"Authorization": "env:TOKEN"}}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_PRELOAD", "/tmp/evil.so"),
        ("LD_PRELOAD", "sk_evil_0123456789.so"),
        ("PYTHONPATH", "eyJ0123456789abcdef"),
        ("NODE_OPTIONS", "--require=./x.js"),
        ("GIT_ASKPASS", "ask"),
        ("API_KEY", "/tmp/evil.so"),
        ("SECRET", "two words"),
        ("MODE", "fast"),
        ("EMPTY_TOKEN", ""),
    ],
)
def test_what_steers_a_program_is_shown_as_it_is(name: str, value: str) -> None:
    [server] = read(command="x", env={name: value}).servers

    assert server.launch["env"] == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "hunter2"),
        ("GITHUB_TOKEN", "swordfish"),
        ("DB_PASSWORD", "xyzzy"),
        ("MYSQL_PWD", "plugh"),
        ("STRIPE", "sk_live_0123456789"),
    ],
)
def test_a_secret_is_hidden_and_pinned_all_the_same(name: str, value: str) -> None:
    [one] = read(command="x", env={name: value}).servers
    [same] = read(command="x", env={name: value}).servers
    [other] = read(command="x", env={name: value[:-1] + "Z"}).servers

    assert value not in str(one.launch)
    assert f"{len(value)} characters" in str(one.launch)
    assert one.launch_digest == same.launch_digest
    assert one.launch_digest != other.launch_digest


def test_a_header_that_stands_there_as_itself_is_always_hidden() -> None:
    [one] = read(url="https://tea.example", headers={"X-Team": "green"}).servers
    [other] = read(url="https://tea.example", headers={"X-Team": "blues"}).servers

    assert "green" not in str(one.launch)
    assert one.launch_digest != other.launch_digest


def test_no_text_passes_for_a_secret_that_was_approved() -> None:
    [secret] = read(command="x", env={"KEY": "hunter2"}).servers
    hidden = secret.launch["env"]["KEY"]
    [text] = read(command="x", env={"KEY": f"{hidden}"}).servers

    assert text.launch_digest != secret.launch_digest


def test_of_a_key_that_was_looked_up_the_reference_is_approved() -> None:
    [one] = read(command="x", env={"KEY": {"reference": "stored:tea", "value": "1"}}).servers
    [other] = read(command="x", env={"KEY": {"reference": "stored:tea", "value": "2"}}).servers

    assert one.launch["env"] == {"KEY": "stored:tea"}
    assert one.launch_digest == other.launch_digest
    assert one != other  # it is started anew with the other key
    assert server_environment({}, one.declared["env"]) == {"KEY": "1"}


def test_a_key_that_is_nowhere_is_named() -> None:
    with pytest.raises(Lost, match="KEY must be stored:tea, and there is no such key"):
        server_environment({}, {"KEY": {"reference": "stored:tea", "value": None}})


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
        {"command": "x", "env": {"A": {"value": "1"}}},
        {"command": "x", "env": {"A": {"reference": "stored:a", "value": "1", "more": 2}}},
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
    with pytest.raises(Lost, match="KEY must be the environment variable TOKEN, which is not set"):
        server_environment({}, {"KEY": "env:TOKEN"})
