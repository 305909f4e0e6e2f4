"""Where commands run, what they see of the environment, and the settings that say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ConfigError
from shell_tool.environment import command_environment
from shell_tool.errors import Refused
from shell_tool.folders import working_folder, workspace_roots
from shell_tool.settings import SCHEMA, Settings

if TYPE_CHECKING:
    from conftest import Shell

SECRETS = {
    "ANTHROPIC_API_KEY": "x",
    "OPENAI_API_KEY": "x",
    "GITHUB_TOKEN": "x",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_SESSION_TOKEN": "x",
    "DB_PASSWORD": "x",
    "db_password": "x",
    "PGPASSWORD": "x",
    "MY_PASSPHRASE": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "x",
    "NPM_AUTH": "x",
    "SENTRY_DSN": "x",
    "AZURE_PAT": "x",
    "DATABASE_URL": "postgres://me:secret@db/x",
    "HARMLESS_NAME": "sk-abcdefghijklmnopqrstuv",
    "ANOTHER": "token=ghp_abcdefghijklmnopqrstuvwxyz012345",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.abc",
}
PLAIN = {
    "PATH": "/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "KEYBOARD": "de",
    "MONKEY": "x",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "PWD": "/",
    "HTTP_PROXY": "http://proxy:3128",
    "TASK": "task-risk-desk-flask-basket",
}


def test_secrets_are_left_out() -> None:
    assert command_environment({**SECRETS, **PLAIN}, Settings()) == {**PLAIN, "TERM": "dumb"}


def test_what_changes_bash_itself_is_left_out(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.workspace / "first").write_text("echo from BASH_ENV")
    monkeypatch.setenv("BASH_ENV", str(shell.workspace / "first"))
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo a function; }")
    monkeypatch.setenv("SHELLOPTS", "xtrace")
    monkeypatch.setenv("POSIXLY_CORRECT", "1")

    assert shell("ls")["result"] == "first\n"


def test_the_settings_say_what_is_kept_and_what_is_not() -> None:
    settings = Settings(
        env={"EXTRA": "1", "GITHUB_TOKEN": "given"},
        env_allow=("AWS_*",),
        env_deny=("AWS_SECRET*", "HOME", "EXTRA"),
    )

    seen = command_environment({**SECRETS, **PLAIN}, settings)

    assert seen["AWS_ACCESS_KEY_ID"] == "x" and seen["AWS_SESSION_TOKEN"] == "x"
    assert seen["EXTRA"] == "1" and seen["GITHUB_TOKEN"] == "given"
    assert "AWS_SECRET_ACCESS_KEY" not in seen and "HOME" not in seen and "OPENAI_API_KEY" not in seen


def test_a_command_sees_no_secret(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary")
    monkeypatch.setenv("SOME_NAME", "harmless")
    shell.config["shell_env"] = {"MORE": "a b"}

    seen = shell("env")["result"]

    assert "canary" not in seen
    assert "SOME_NAME=harmless\n" in seen and "MORE=a b\n" in seen and "TERM=dumb\n" in seen


def test_the_session_names_the_workspace_and_the_settings_come_second(tmp_path: Path) -> None:
    configured = (Path("/configured"),)
    session = {"session_metadata": {"workspace_roots": [str(tmp_path)]}}

    assert workspace_roots(session, configured) == (tmp_path,)
    nothing: list[Any] = [None, {}, {"session_metadata": {}}, {"session_metadata": {"workspace_roots": "x"}}]
    for without in nothing:
        assert workspace_roots(without, configured) == configured
    with pytest.raises(Refused, match="there is no folder to run commands in"):
        workspace_roots({}, ())


def test_without_a_workspace_nothing_runs(shell: Shell) -> None:
    shell.config.pop("roots")

    assert "name folders in the setting 'roots'" in shell("ls")["error"]


def test_a_folder_is_found_by_its_path_from_the_first_root_or_from_above(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "in").mkdir(parents=True)
    second.mkdir()
    roots = (first, second)

    assert working_folder(None, roots) == first
    assert working_folder("in", roots) == first / "in"
    assert working_folder("in/..", roots) == first
    assert working_folder(str(second), roots) == second


def test_links_are_followed_before_a_folder_is_judged(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (root / "in").symlink_to(root / "real")
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "way").symlink_to(root)

    assert working_folder("in", (root,)) == root / "real"
    assert working_folder(None, (tmp_path / "way",)) == root
    assert working_folder(str(root / "real"), (tmp_path / "way",)) == root / "real"
    for asked in ("out", "out/..", str(outside), "../outside", "../root2", str(tmp_path)):
        with pytest.raises(Refused, match="outside of the workspace"):
            working_folder(asked, (root,))
    with pytest.raises(Refused, match="is no folder"):
        working_folder("loop", (root,))


def test_a_neighbour_with_a_similar_name_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "rooted").mkdir()

    with pytest.raises(Refused, match="outside of the workspace"):
        working_folder("../rooted", (tmp_path / "root",))


def test_a_root_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no folder: make it first"):
        working_folder(None, (tmp_path / "gone",))


def test_a_command_runs_where_it_is_asked_to(shell: Shell) -> None:
    (shell.workspace / "in").mkdir()

    assert shell("pwd", cwd="in")["result"] == f"{shell.workspace}/in\n"


def test_settings_have_defaults() -> None:
    defaults = {key: entry["default"] for key, entry in SCHEMA.items() if "default" in entry}

    assert Settings.read({}) == Settings() == Settings.read(defaults)


UNUSABLE: dict[str, list[Any]] = {
    "roots": ["/x", [5], [""], {}],
    "shell_bash": ["", 5],
    "shell_timeout": [0, -1, "1", True, float("inf")],
    "shell_max_timeout": [0],
    "shell_grace": [0],
    "shell_output_bytes": [0, 1.5, "1", True],
    "shell_stream_bytes": [0],
    "shell_keep_bytes": [0],
    "shell_max_jobs": [0],
    "shell_env": [[], {"A": 1}, {"": "x"}, {"A=B": "x"}, {"A": "\0"}, {1: "x"}],
    "shell_env_allow": ["x"],
    "shell_env_deny": ["x"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in UNUSABLE for value in UNUSABLE[key]])
def test_a_setting_that_cannot_be_used_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        Settings.read({key: value})

    assert error.value.field == key
    assert key in str(error.value)


def test_settings_reach_a_command(shell: Shell) -> None:
    shell.config |= {"shell_timeout": 0.2, "shell_max_timeout": 5}

    assert "when its time was over: give it a longer timeout (up to 5 s)" in shell("sleep 600")["error"]
    [schema, *_] = shell.tool.get_tool_schemas(shell.tool.init(shell.config))
    assert schema["function"]["parameters"]["properties"]["timeout"]["maximum"] == 5


def test_the_default_time_is_never_more_than_the_most(shell: Shell) -> None:
    shell.config |= {"shell_timeout": 100, "shell_max_timeout": 0.2}

    assert shell("sleep 600")["exit_code"] == -15


def test_names_in_the_environment_of_this_process_are_read_at_every_call(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATER", "1")
    assert shell("echo $LATER")["result"] == "1\n"

    monkeypatch.delenv("LATER")
    assert shell("echo $LATER")["result"] == "\n"
    assert "LATER" not in os.environ
