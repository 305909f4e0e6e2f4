"""Where commands run, what they see of the environment, and the settings that say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ConfigError
from shell_tool.environment import Refused, command_environment, working_folder, workspace_roots
from shell_tool.settings import SCHEMA, Settings

if TYPE_CHECKING:
    from conftest import Shell

SECRET_NAMES = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "DB_PASSWORD",
    "db_password",
    "PGPASSWORD",
    "MY_PASSPHRASE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "NPM_AUTH",
    "SENTRY_DSN",
    "AZURE_PAT",
    "MYSQL_PWD",
    "SSHPASS",
    "DBPASS",
    "PASS",
    "MAIL_PASS_PROD",
    "SMTP_PW",
    "LDAP_BINDPW",
    "DBPWD",
    "BW_SESSION",
    "SLACK_WEBHOOK_URL",
    "npm_config__authToken",
    "DOCKER_AUTH_CONFIG",
    "SMARTCARD_PIN",
    "VPN_OTP",
    "WIFI_PSK",
    "MY_JWT",
    "BEARER_TOKEN",
    "KEY",
    "GIT_CREDS",
    "WALLET_MNEMONIC",
    "SQLCONNSTR_main",
    "AZURE_STORAGE_CONNECTION_STRING",
    "CSRF_COOKIE",
    "HTTP_AUTHORIZATION",
]
SOME = "x1Y2" * 9
SECRET_VALUES = {
    "address with a password": "postgres://me:secret@db/x",
    "address with a password alone": "redis://:secret@cache:6379/0",
    "address with a token": f"https://{SOME}@git.example/x.git",
    "address with a long name": "https://0123456789abcdef0123@o1.sentry.example/1",
    "address without a scheme": "me:secret@tcp(localhost:3306)/db",
    "address with a signature": f"https://store.example/x?sv=1&sig={SOME}",
    "address with a token in its query": f"https://api.example/x?access_token={SOME}",
    "Slack webhook": "https://hooks.slack.com/services/T0/B0/abc",
    "Discord webhook": "https://discord.com/api/webhooks/1/abc",
    "Telegram": f"123456789:AA{SOME}",
    "RSA": "-----BEGIN RSA PRIVATE KEY-----",
    "OpenSSH": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "PEM in base64": "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
    "age": f"AGE-SECRET-KEY-1{SOME}",
    "connection string": "Server=db;User Id=me;Password=secret;",
    "Azure storage": "AccountName=me;AccountKey=abc==;",
    "Docker's file": '{"auths": {"registry.example": {"auth": "bWU6c2VjcmV0"}}}',
    "JSON of a service account": '{"type": "service_account", "private_key": "x"}',
    "header": f"Authorization: Bearer {SOME}",
    "within a text": f"token={'ghp' + '_'}{SOME}",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.abc",
}
TOKENS = [
    "sk-",
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "whsec_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gldt-",
    "glrt-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxe-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "hf_",
    "gsk_",
    "xai-",
    "r8_",
    "npm_",
    "pypi-",
    "dckr_pat_",
    "dop_v1_",
    "SG.",
    "shpat_",
    "hvs.",
    "sntrys_",
    "tskey-",
    "lin_api_",
    "figd_",
]
PLAIN = {
    "PATH": "/bin:/home/me/.local/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "KEYBOARD": "de",
    "MONKEY": "x",
    "KEYMAP": "us",
    "PWD": "/",
    "OLDPWD": "/home/me",
    "SESSION_MANAGER": "local/host:@/tmp/.ICE-unix/1,unix/host:/tmp/.ICE-unix/1",
    "DESKTOP_SESSION": "gnome",
    "KDE_FULL_SESSION": "true",
    "XDG_SESSION_ID": "2",
    "XDG_SESSION_TYPE": "wayland",
    "XDG_SESSION_CLASS": "user",
    "XDG_SESSION_DESKTOP": "gnome",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "SSH_AGENT_PID": "17",
    "SSH_CONNECTION": "10.0.0.1 5000 10.0.0.2 22",
    "GIT_ASKPASS": "/usr/bin/askpass",
    "SSH_ASKPASS": "/usr/bin/askpass",
    "GPG_AGENT_INFO": "/run/gpg:0:1",
    "HTTP_PROXY": "http://proxy:3128",
    "PIP_INDEX_URL": "https://pypi.example/simple",
    "REPOSITORY": "git@github.com:me/project.git",
    "PAGE": "https://example.org/?q=a&page=2#top",
    "TASK": "task-risk-desk-flask-basket",
    "COMMIT": "0123456789abcdef0123456789abcdef01234567",
    "BUILD_ID": "6f1c2d34-0000-4000-8000-1234567890ab",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:*.tar=01;31:*.sk-=00",
    "PS1": r"\[\e]0;\u@\h: \w\a\]\u@\h:\w\$ ",
    "CERTIFICATE": "-----BEGIN CERTIFICATE-----",
    "CFLAGS": "-O2 -march=native -DNAME=value",
    "JAVA_OPTS": "-Xmx2g -Dfile.encoding=UTF-8",
    "EDITOR": "vim",
    "PASSENGERS": "3",
    "COMPOSE_FILE": "compose.yaml",
}


def test_secrets_are_left_out_and_the_rest_is_there() -> None:
    secrets = dict.fromkeys(SECRET_NAMES, "x")

    assert command_environment({**secrets, **PLAIN}, Settings()) == {**PLAIN, "TERM": "dumb"}


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_stands_for_a_secret(name: str) -> None:
    assert command_environment({name: "x"}, Settings()) == {"TERM": "dumb"}


@pytest.mark.parametrize("what", SECRET_VALUES)
def test_a_value_that_has_the_form_of_a_secret(what: str) -> None:
    assert command_environment({"HARMLESS": SECRET_VALUES[what]}, Settings()) == {"TERM": "dumb"}


@pytest.mark.parametrize("begin", TOKENS)
def test_a_token_is_known_by_how_it_begins(begin: str) -> None:
    seen = {
        "HARMLESS": begin + SOME,
        "WITHIN": f"a={begin}{SOME}",
        "SHORT": begin,
        "OTHER": f"a{begin}{SOME}",
    }

    assert command_environment(seen, Settings()) == {
        "SHORT": begin,
        "OTHER": f"a{begin}{SOME}",
        "TERM": "dumb",
    }


@pytest.mark.parametrize("name", PLAIN)
def test_an_ordinary_variable_stays(name: str) -> None:
    assert command_environment({name: PLAIN[name]}, Settings())[name] == PLAIN[name]


def test_what_changes_bash_itself_is_left_out(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.workspace / "first").write_text("echo from BASH_ENV")
    monkeypatch.setenv("BASH_ENV", str(shell.workspace / "first"))
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo a function; }")
    monkeypatch.setenv("SHELLOPTS", "xtrace")
    monkeypatch.setenv("POSIXLY_CORRECT", "1")
    monkeypatch.setenv("BASH_COMPAT", "31")

    assert shell('ls; echo "$BASH_COMPAT"')["result"] == "first\n\n"


@pytest.mark.parametrize("variable", ["LC_ALL", "LC_CTYPE", "LANG"])
@pytest.mark.parametrize("locale", ["zh_CN.GBK", "zh_CN", "zh_TW.BIG5", "ja_JP.SHIFT_JIS", "zh_CN.GB18030"])
def test_commands_have_no_locale_in_which_a_backslash_is_half_of_a_character(
    variable: str, locale: str
) -> None:
    assert command_environment({variable: locale}, Settings())["LC_ALL"] == "C.UTF-8"
    assert command_environment({}, Settings(env={variable: locale}))["LC_ALL"] == "C.UTF-8"


@pytest.mark.parametrize("locale", ["", "C", "POSIX", "C.UTF-8", "en_US.UTF-8", "de_DE.utf8"])
def test_other_locales_stay(locale: str) -> None:
    assert command_environment({"LC_ALL": locale}, Settings())["LC_ALL"] == locale


def test_the_settings_say_what_is_kept_and_what_is_not() -> None:
    settings = Settings(
        env={"EXTRA": "1", "GITHUB_TOKEN": "given"},
        env_allow=("AWS_*",),
        env_deny=("AWS_SECRET*", "HOME", "EXTRA"),
    )

    seen = command_environment({**dict.fromkeys(SECRET_NAMES, "x"), **PLAIN}, settings)

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
        with pytest.raises(Refused, match="outside the workspace"):
            working_folder(asked, (root,))
    with pytest.raises(Refused, match="is not a folder"):
        working_folder("loop", (root,))


def test_a_neighbour_with_a_similar_name_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "rooted").mkdir()

    with pytest.raises(Refused, match="outside the workspace"):
        working_folder("../rooted", (tmp_path / "root",))


def test_a_root_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not a folder: make it first"):
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
