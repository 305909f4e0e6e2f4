"""The setting `sandbox`: read, checked, handed to plugins, and never loosened by a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from agent_app.defaults import complete_config
from agent_plugin_kit.sandbox import SandboxSettings, find_way
from agent_plugin_kit.sandbox.bubblewrap import Bubblewrap
from agent_terminal_app.application import open_quietly
from agent_terminal_app.cli import main
from agent_terminal_app.settings import settings_schema
from agent_terminal_app.settings.rules import find_fault
from agent_terminal_app.settings.trust import danger

if TYPE_CHECKING:
    from pathlib import Path

needs_bubblewrap = pytest.mark.skipif(
    not isinstance(find_way(), Bubblewrap), reason=f"bubblewrap does not work here: {find_way()}"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project" / ".agent").mkdir(parents=True)
    (tmp_path / "config" / "agent").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def settings_of(values: dict[str, Any], agent: str = "a") -> SandboxSettings:
    config = complete_config({"agents": {"a": {"model": "m"}, "b": {"model": "m"}}, **values})
    return SandboxSettings.read(config["agents"][agent]["sections"]["config"])


def test_it_is_on_unless_a_setting_says_otherwise() -> None:
    assert settings_of({}).mode == "workspace"
    assert settings_of({}).requests
    assert settings_of({"sandbox": "off"}).mode == "off"


def test_a_table_sets_more_and_an_agent_may_differ() -> None:
    values = {
        "sandbox": {"mode": "workspace", "hosts": ["api.example.com"], "memory": 512},
        "agents": {"a": {"model": "m"}, "b": {"model": "m", "sandbox": "strict"}},
    }

    assert settings_of(values).hosts == ("api.example.com",)
    assert settings_of(values).memory_mb == 512
    assert settings_of(values, "b").mode == "strict"
    assert settings_of(values, "b").memory_mb == 512


def test_auto_allows_what_stays_inside() -> None:
    assert "sandboxed" in complete_config({"sandbox": {"auto": True}})["permissions"]["allow"]
    assert "sandboxed" not in complete_config({"sandbox": {"auto": False}})["permissions"]["allow"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"sandbox": "loose"}, "sandbox must be one of strict, workspace, off, not 'loose'"),
        ({"sandbox": {"mode": "strict", "host": []}}, "sandbox has no setting 'host'"),
        ({"sandbox": {"hosts": "api.example.com"}}, "sandbox.hosts must be a list of texts"),
        ({"sandbox": {"memory": True}}, "sandbox.memory must be a whole number from 1 on, not True"),
        ({"sandbox": {"auto": "yes"}}, "sandbox.auto must be true or false"),
        ({"agents": {"a": {"sandbox": {"auto": True}}}}, "agents.a.sandbox has no setting 'auto'"),
        ({"agents": {"a": {"sandbox": 3}}}, "agents.a.sandbox must be one of"),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, Any], problem: str) -> None:
    fault = find_fault(values)

    assert fault is not None
    assert problem in fault.problem
    assert not jsonschema_rs.validator_for(settings_schema()).is_valid(values)


def test_what_is_right_fits_the_schema_too() -> None:
    values = {
        "sandbox": {"mode": "strict", "auto": True, "hosts": ["a.example"], "processes": 9},
        "agents": {"a": {"sandbox": "off"}},
    }

    assert find_fault(values) is None
    assert jsonschema_rs.validator_for(settings_schema()).is_valid(values)


@pytest.mark.parametrize(
    ("own", "of_project", "kept"),
    [
        ("", 'sandbox = "off"', {}),
        ("", 'sandbox = "strict"', {"sandbox": "strict"}),
        ('sandbox = "strict"', 'sandbox = "workspace"', {"sandbox": "strict"}),
        ("", '[sandbox]\nmode = "off"\nmemory = 9', {"sandbox": {"memory": 9}}),
        ("", '[plugins.shell_tool]\nsandbox = "off"', {"plugins": {"shell_tool": {}}}),
        ("", '[agents.a]\nsandbox = "off"', {"agents": {"a": {}}}),
        ("", '[agents.a.sections.config]\nsandbox = "off"', {"agents": {"a": {"sections": {"config": {}}}}}),
    ],
)
def test_a_trusted_project_may_be_stricter_and_never_looser(
    home: Path, own: str, of_project: str, kept: dict[str, Any]
) -> None:
    (home / "config" / "agent" / "config.toml").write_text(own)
    (home / "project" / ".agent" / "config.toml").write_text(of_project)
    with pytest.raises(SystemExit):
        main(["config", "trust"])

    settings = open_quietly().settings

    found = {key: settings.values[key] for key in ("sandbox", "plugins", "agents") if key in settings.values}
    assert found == kept
    assert bool(settings.warnings) == ("strict" not in of_project)


def test_what_loosens_it_is_marked_before_it_is_trusted() -> None:
    assert danger(("sandbox",), "strict") == ""
    assert danger(("sandbox",), "off") == "changes what confines programs"
    assert danger(("sandbox", "hosts"), ["evil.example"]) == "lets programs reach these hosts"
    assert danger(("agents", "a", "sandbox", "write"), ["/"]) == "lets programs write these folders"


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["sandbox", *arguments])
    printed = capfd.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@needs_bubblewrap
def test_a_command_is_tried_in_the_sandbox(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "run", "--", "sh", "-c", "echo x > file; cat file; exit 3")
    assert (code, out) == (3, "x\n")

    code, _, err = run(capfd, "run", "--", "touch", "/usr/outside")
    assert code == 1
    assert "Read-only file system" in err


@needs_bubblewrap
def test_the_programs_own_files_are_hidden_from_it(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    (home / "config" / "agent" / "config.toml").write_text('model = "local"')

    code, out, _ = run(capfd, "run", "--", "cat", str(home / "config" / "agent" / "config.toml"))

    assert (code, out) == (1, "")


def test_what_confines_programs_is_shown(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    (home / "config" / "agent" / "config.toml").write_text('[sandbox]\nmode = "off"\n')
    assert run(capfd, "show")[1] == "The sandbox is off: programs run with your rights.\n"

    code, out, err = run(capfd, "run", "--", "echo", "free")
    assert (code, out) == (0, "free\n")
    assert "The sandbox is off" in err


def test_a_wrong_host_is_an_error_of_usage(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capfd, "run", "--mode", "workspace", "--host", "https://x/", "--", "true")

    assert code == 2 or isinstance(find_way(), str)
    assert "not a host" in err or isinstance(find_way(), str)
