"""`agent config` as people and scripts call it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema_rs
import pytest

from agent_terminal_app.errors import Exit
from agent_terminal_app.testing.command import run_agent

if TYPE_CHECKING:
    import subprocess

AGENT = [sys.executable, "-m", "agent_terminal_app"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
    return {**kept, **places, "HOME": str(tmp_path)}


def config(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_agent("config", *arguments, environment=environment, folder=Path(environment["HOME"]))


def test_a_setting_is_set_shown_and_removed(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "config" / "agent" / "config.toml"

    assert config(environment, "path").stdout == f"{file}\n"
    done = config(environment, "set", "agents.helper.max_rounds", "5")
    assert (done.returncode, done.stdout) == (0, "")
    assert config(environment, "get", "agents.helper.max_rounds").stdout == "5\n"
    shown = config(environment, "get", "--origin").stdout
    assert shown.splitlines() == [
        "ui.plain = false  # default",
        'ui.theme = "auto"  # default',
        f"agents.helper.max_rounds = 5  # {file}:2",
    ]
    assert config(environment, "unset", "agents").returncode == 0
    missing = config(environment, "get", "agents.helper.max_rounds")
    assert (missing.returncode, missing.stdout) == (Exit.FAILURE, "")


def test_a_word_means_what_the_setting_can_hold(environment: dict[str, str]) -> None:
    for key, value in [
        ("models.fast.provider", "demo"),
        ("models.fast.model", "4"),
        ("ui.plain", "true"),
        ("permissions.allow", '["read", "shell(git *)"]'),
        ("plugins.anthropic.extra_body", '{"deep": {"list": [1]}}'),
        ("plugins.gemini.extra_body", "{ deep = true }"),
        ("agents.helper.system_prompt", "Be brief: it's late."),
    ]:
        assert config(environment, "set", key, value).returncode == 0, key

    found = json.loads(config(environment, "get", "--json").stdout)
    assert found == {
        "ui": {"plain": True, "theme": "auto"},
        "models": {"fast": {"provider": "demo", "model": "4"}},
        "permissions": {"allow": ["read", "shell(git *)"]},
        "plugins": {
            "anthropic": {"extra_body": {"deep": {"list": [1]}}},
            "gemini": {"extra_body": {"deep": True}},
        },
        "agents": {"helper": {"system_prompt": "Be brief: it's late."}},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["set", "ui.them", "dark"], Exit.USAGE, "did you mean 'theme'?"),
        (["set", "agents.a.max_rounds", "many"], Exit.USAGE, "must be a whole number, not 'many'"),
        (["set", "a..b", "1"], Exit.USAGE, "is not the key of a setting"),
        (["set", "plugins.x.token", "t"], Exit.USAGE, "agent keys set x"),
        (["unset", "model"], Exit.USAGE, "does not set model"),
        (["get", "ui.them"], Exit.FAILURE, "did you mean 'ui.theme'?"),
        (["trust"], Exit.USAGE, "to trust"),
    ],
)
def test_what_cannot_be_done_is_said_on_stderr(
    environment: dict[str, str], tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    done = config(environment, *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert not (tmp_path / "config").exists()


def test_a_wrong_file_has_its_line_and_the_code_for_not_configured(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "other.toml"
    file.write_text('# mine\nmodle = "x"\n', encoding="utf-8")

    done = config({**environment, "AGENT_CONFIG": str(file)}, "get")

    assert done.returncode == Exit.NOT_CONFIGURED
    assert done.stderr == f"agent: {file}:2: there is no setting 'modle'; did you mean 'model'?\n"


def test_a_project_counts_after_trust_and_what_it_says_cannot_move_the_cursor(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / ".agent").mkdir()
    hostile = 'default_agent = "\\u001b[2J\\u009b2J"\n[plugins."\\u009b2J"]\nx = "\\u202e"\n'
    (tmp_path / ".agent" / "config.toml").write_text(hostile, encoding="utf-8")

    ignored = config(environment, "get")
    assert "default_agent" not in ignored.stdout and "agent config trust" in ignored.stderr

    trusted = config(environment, "trust")
    assert trusted.returncode == 0 and trusted.stdout == ""
    shown = [trusted.stderr]
    shown += [config(environment, "get", *how).stdout for how in ([], ["default_agent"], ["--json"])]
    for text in shown:
        assert "2J" in text
        assert all(one.isprintable() or one == "\n" for one in text)


def test_the_printed_schema_is_one(environment: dict[str, str]) -> None:
    schema = json.loads(config(environment, "schema").stdout)

    jsonschema_rs.meta.validate(schema)
    assert jsonschema_rs.validator_for(schema).is_valid({"ui": {"theme": "dark"}})


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("plugins.antropic.base_url", "http://x", "there is no plugin 'antropic'; did you mean 'anthropic'?"),
        ("plugins.anthropic.base_urll", "http://x", "no setting 'base_urll'; did you mean 'base_url'?"),
        ("plugins.anthropic.connect_timeout", "soon", "plugins.anthropic.connect_timeout does not fit"),
        ("plugins.web_tool.web_timout", "3", "no setting 'web_timout'; did you mean 'web_timeout'?"),
        (
            "plugins.hooks.before_tool",
            "[{ command = 'true', timout = 3 }]",
            "plugins.hooks.before_tool[0] has no setting 'timout'; did you mean 'timeout'?",
        ),
        ("agents.a.sections.web_tool", "{ web_timout = 3 }", "did you mean 'web_timeout'?"),
        ("models.m", "{ provider = 'gemini', config = { bse_url = 'x' } }", "did you mean 'base_url'?"),
        ("agents.a.max_rounds", "-3", "max_rounds must be between 1 and 1000, not -3"),
    ],
)
def test_what_a_plugin_does_not_have_is_refused_with_what_was_meant(
    environment: dict[str, str], tmp_path: Path, key: str, value: str, told: str
) -> None:
    refused = config(environment, "set", key, value)

    assert refused.returncode == Exit.USAGE
    assert told in refused.stderr
    assert not (tmp_path / "config" / "agent" / "config.toml").exists()


def test_what_is_wrong_elsewhere_keeps_nobody_from_changing_a_setting(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[plugins.gone]\nx = 1\n")

    assert config(environment, "set", "plugins.anthropic.base_url", "http://x").returncode == 0
    assert config(environment, "set", "plugins.anthropic.temperature", "-0.5").returncode == 0
    assert config(environment, "get", "plugins.anthropic.temperature").stdout == "-0.5\n"


def test_json_has_the_origins_as_well_if_they_are_wanted(environment: dict[str, str], tmp_path: Path) -> None:
    assert config(environment, "set", "model", "anthropic:x").returncode == 0
    file = tmp_path / "config" / "agent" / "config.toml"

    whole = json.loads(config(environment, "get", "--json", "--origin").stdout)
    one = json.loads(config(environment, "get", "model", "--json", "--origin").stdout)

    assert whole["ui.plain"] == {"value": False, "origin": "default"}
    assert one == {"model": {"value": "anthropic:x", "origin": f"{file}:1"}}


def test_a_secret_that_a_header_or_a_field_carries_is_not_shown(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "[plugins.anthropic]\n"
        "extra_headers = {X-Gateway-Key = 'tea-leaf-4711', X-Title = 'tea'}\n"
        "extra_body = {proxy = {credential = 'tea-leaf-4712'}, top_k = 5}\n"
    )

    for arguments in (["get"], ["get", "--json"], ["get", "plugins.anthropic.extra_headers.X-Gateway-Key"]):
        done = config(environment, *arguments)
        assert done.returncode == 0, done.stderr
        assert "tea-leaf" not in done.stdout and "[secret]" in done.stdout
    assert config(environment, "get", "plugins.anthropic.extra_headers.X-Title").stdout == "tea\n"
