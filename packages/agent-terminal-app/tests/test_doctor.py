"""`agent doctor`: what is wrong is found, each with a remedy, and nothing is changed by looking."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.cli import main
from agent_terminal_app.commands.doctor import Finding, bounded, check_space, check_store, report_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
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
        "plugins",
        "sessions",
        "embedded model",
        "terminal",
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
    database.write_bytes(b"this is no database, " * 100)
    before = database.read_bytes()
    [finding] = check_store(database)
    assert finding.status == "FAIL" and "copy" in finding.remedy
    assert database.read_bytes() == before


def test_a_folder_in_place_of_the_database_is_a_finding(tmp_path: Path) -> None:
    [finding] = bounded("sessions", lambda: check_store(tmp_path))
    assert finding.status == "FAIL"


def test_a_whole_database_is_told_to_be_whole(tmp_path: Path) -> None:
    from agent_app import open_store

    open_store(f"sqlite:///{tmp_path / 'app.db'}").close()
    [finding] = check_store(tmp_path / "app.db")
    assert finding.status == "OK"


def test_space_is_looked_for_where_the_folder_will_be(tmp_path: Path) -> None:
    [finding] = check_space(tmp_path / "not" / "yet" / "there")
    assert finding.status in ("OK", "WARN") and "MB free" in finding.detail


def test_a_check_that_raises_is_a_finding_like_any_other() -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("", "OK", "so far")
        raise OSError("the disk is gone")

    assert [(one.check, one.status) for one in bounded("disk", broken)] == [("disk", "OK"), ("disk", "FAIL")]


def test_a_check_that_never_comes_back_does_not_hold_up_the_report() -> None:
    never = threading.Event()

    def stuck() -> list[Finding]:
        never.wait()
        return []

    [finding] = bounded("disk", stuck, patience=0.01)
    never.set()
    assert finding.status == "FAIL" and "no answer" in finding.detail


def test_people_read_the_remedy_below_what_is_wrong() -> None:
    finding = Finding("keys", "FAIL", "none\x1b[2J", "set one")
    assert list(report_lines(finding)) == ["FAIL  keys: none[2J", "      set one"]
