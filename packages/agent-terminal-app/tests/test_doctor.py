"""`agent doctor`: what is wrong is found, each with a remedy, and nothing is changed by looking."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.cli import main
from agent_terminal_app.health import (
    Finding,
    check_log,
    check_plugins,
    check_space,
    check_store,
    look_at_all,
    report_lines,
)
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.paths import Paths
from agent_testing import ScriptedServer, chat_models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("AGENT_KEYRING", "off")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(home: Path, text: str) -> None:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Return the exit code and the findings by what was looked at."""
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--json"])
    by_check: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(capsys.readouterr().out):
        by_check.setdefault(finding["check"], []).append(finding)
    return int(left.value.code or 0), by_check


def test_a_fresh_machine_is_well_and_nothing_is_made_on_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = doctor(capsys)
    assert code == 0
    assert list(found) == [
        "versions",
        "configuration",
        "agents",
        "keys",
        "servers",
        "plugins",
        "sandbox",
        "sessions",
        "embedded model",
        "log",
        "terminal",
        "keyboard",
        "disk space",
    ]
    assert not any(one["status"] == "FAIL" for findings in found.values() for one in findings)
    assert not (home / "data" / "agent" / "app.db").exists()


def test_settings_that_cannot_be_read_fail_and_the_other_checks_go_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, "model = \n")
    code, found = doctor(capsys)
    assert code == 1 and found["configuration"][0]["status"] == "FAIL"
    assert found["configuration"][0]["remedy"]
    assert [found[name][0]["status"] for name in ("agents", "keys", "embedded model")] == ["WARN"] * 3
    assert found["sessions"][0]["status"] == "OK"


def test_a_mistake_in_the_file_has_its_line_in_a_process_that_has_loaded_nothing(home: Path) -> None:
    configure(home, "[ui\n")

    done = subprocess.run(
        [sys.executable, "-m", "agent_terminal_app", "doctor", "--json"], capture_output=True, check=False
    )

    found = {one["check"]: one for one in reversed(json.loads(done.stdout))}
    file = home / "config" / "agent" / "config.toml"
    assert found["configuration"]["detail"].startswith(f"{file}:1: is not valid TOML")
    others = [found[name] for name in ("agents", "keys", "servers", "embedded model")]
    assert [(one["status"], one["detail"]) for one in others] == [("WARN", "not looked at")] * 4


def test_settings_that_no_plugin_has_are_a_warning_with_their_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, '[plugins.anthropic]\nbase_urll = "http://x"\n')
    _, found = doctor(capsys)
    [_, warning] = found["configuration"]
    file = home / "config" / "agent" / "config.toml"
    assert warning["status"] == "WARN"
    assert warning["detail"] == f"{file}:2: anthropic has no setting 'base_urll'; did you mean 'base_url'?"


def test_a_missing_key_fails_with_the_command_that_sets_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, 'model = "anthropic:claude-sonnet-5"\n')
    code, found = doctor(capsys)
    [key] = found["keys"]
    assert (code, key["status"]) == (1, "FAIL")
    assert "agent keys set anthropic" in key["remedy"] and "ANTHROPIC_API_KEY" in key["remedy"]


def test_a_key_in_the_environment_is_found_and_never_shown(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, 'model = "anthropic:claude-sonnet-5"\n')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-secret-itself")
    _, found = doctor(capsys)
    assert found["keys"][0]["status"] == "OK" and "ANTHROPIC_API_KEY" in found["keys"][0]["detail"]
    assert "the-secret-itself" not in json.dumps(found)


def test_an_agent_that_cannot_run_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, '[agents.one]\nmodel = "nobody:x"\n')
    code, found = doctor(capsys)
    assert code == 1 and "nobody" in found["agents"][0]["detail"] and found["agents"][0]["remedy"]


def test_a_damaged_database_fails_and_is_left_as_it_is(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    database.write_bytes(b"this is not a database, " * 100)
    before = database.read_bytes()
    [finding] = check_store(database)
    assert finding.status == "FAIL" and "copy" in finding.remedy
    assert database.read_bytes() == before


def test_a_folder_in_place_of_the_database_is_a_finding(tmp_path: Path) -> None:
    [finding] = look_at_all([("sessions", lambda: check_store(tmp_path))])
    assert finding.status == "FAIL"


def test_an_undamaged_database_is_reported_as_whole(tmp_path: Path) -> None:
    from agent_app import open_store

    open_store(f"sqlite:///{tmp_path / 'app.db'}").close()
    [finding] = check_store(tmp_path / "app.db")
    assert finding.status == "OK"


def test_space_is_looked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    [finding] = check_space(tmp_path / "not" / "yet" / "there")
    assert finding.status in ("OK", "WARN") and "MB free" in finding.detail


@pytest.mark.parametrize(
    ("distribution", "remedy"),
    [
        ("keelwork-tea", "update all of it: pip install -U keelwork keelwork-tea"),
        ("tea-plugins", "update or remove it: pip install -U tea-plugins"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_updated_with_what_it_is_pinned_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, remedy: str
) -> None:
    info = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agent_platform.tools]\ntea = no_such_module:Tea\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    [finding] = [one for one in check_plugins() if one.status == "WARN"]

    assert "tea cannot be loaded" in finding.detail
    assert finding.remedy == remedy


def test_a_check_that_raises_is_a_finding_like_any_other() -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("", "OK", "so far")
        raise OSError("the disk is gone")

    found = look_at_all([("disk", broken)])
    assert [(one.check, one.status) for one in found] == [("disk", "OK"), ("disk", "FAIL")]


def test_a_check_that_never_comes_back_does_not_hold_up_the_report() -> None:
    never = threading.Event()

    def stuck() -> list[Finding]:
        never.wait()
        return []

    late, on_time = look_at_all([("disk", stuck), ("other", lambda: [Finding("", "OK", "")])], patience=1.0)
    never.set()
    assert late.status == "FAIL" and "no answer" in late.detail and late.remedy
    assert (on_time.check, on_time.status) == ("other", "OK")


def test_people_read_the_remedy_below_what_is_wrong() -> None:
    finding = Finding("keys", "FAIL", "none\x1b[2J", "set one")
    assert list(report_lines(finding)) == ["FAIL  keys: none[2J", "      set one"]


SERVER = """
model = "mine"
[models.mine]
provider = "openai_compatible"
model = "m"
[models.mine.config]
base_url = "{url}/v1"
api_key = "{key}"
"""


def test_a_server_in_use_that_does_not_answer_fails(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(otherwise=chat_models("m")) as server:
        configure(home, SERVER.format(url=server.url, key=""))
        code, found = doctor(capsys)
        assert (code, [one["status"] for one in found["servers"]]) == (0, ["OK"])
        assert found["keys"][0]["detail"] == "models.mine: none is sent"
        server.wait_until_closed()
    code, found = doctor(capsys)
    assert (
        code == 1 and "nobody answers at" in found["servers"][0]["detail"] and found["servers"][0]["remedy"]
    )


def test_a_key_by_reference_is_looked_up_and_its_origin_shown(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, SERVER.format(url="https://llm.example.com", key="stored:mine"))
    code, found = doctor(capsys)
    assert code == 1 and found["keys"][0]["remedy"] == "run `agent keys set mine`"
    KeyStore(Paths.of_this_user()).set("mine", "the-secret-itself")
    code, found = doctor(capsys)
    assert code == 0 and "stored as 'mine'" in found["keys"][0]["detail"]
    assert "(mode 0600)" in found["keys"][1]["detail"]
    assert "the-secret-itself" not in json.dumps(found)


def test_stored_keys_that_others_can_read_fail(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = KeyStore(Paths.of_this_user())
    store.set("anthropic", "the-secret-itself")
    store.path.chmod(0o644)
    code, found = doctor(capsys)
    assert code == 1 and "chmod 600" in found["keys"][0]["detail"]


def test_a_project_that_nobody_trusts_is_a_warning(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".agent").mkdir()
    (home / ".agent" / "config.toml").write_text('model = "x"\n')
    _, found = doctor(capsys)
    assert [one["status"] for one in found["configuration"]] == ["OK", "WARN"]
    assert "agent config trust" in found["configuration"][1]["remedy"]


def test_a_log_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    assert [one.status for one in check_log(folder)] == ["OK"]
    folder.mkdir(mode=0o700)
    (folder / "agent-000001.jsonl").write_text("{}\n")
    (folder / "agent-000001.jsonl").chmod(0o644)
    findings = list(check_log(folder))
    assert [one.status for one in findings] == ["OK", "WARN"] and "chmod" in findings[1].remedy
    (tmp_path / "file").write_text("")
    assert [one.status for one in check_log(tmp_path / "file")] == ["WARN"]
