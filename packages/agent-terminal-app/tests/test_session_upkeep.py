"""`agent sessions check`, `repair` and `clean`, and sessions that can only be read: real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app import AgentApplication, open_store
from agent_app.assets import open_assets
from agent_core import Message, Session
from agent_terminal_app.paths import Paths
from agent_terminal_app.testing.command import run_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVILEGES = "-dac_override,-dac_read_search"
SEVERAL = """
import json, sys
from agent_terminal_app.cli import main
for command in json.loads(sys.argv[1]):
    try:
        main(["sessions", *command])
    except SystemExit as left:
        print("---", flush=True)
        print("code", left.code or 0, file=sys.stderr, flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "local_llama")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for folder, _, _ in os.walk(tmp_path):
        Path(folder).chmod(0o755)


@pytest.fixture
def database() -> Path:
    """The file of a person's sessions, of which there are some."""
    paths = Paths.of_this_user()
    paths.data.mkdir(parents=True)
    store, assets = f"sqlite:///{paths.database}", paths.assets
    with AgentApplication({}, store=store, assets=assets, installed=False) as application:
        for number in range(5):
            talk = [Message("user", f"a zebra, number {number}"), Message("assistant", "I see.")]
            application.store.create(Session(f"talk-{number}", talk), title=f"Title {number}")
    return paths.database


def agent(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_agent(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def overwrite(path: Path, content: bytes, start: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)


def test_a_check_finds_a_wrong_letter(database: Path) -> None:
    assert "0 problems" not in agent("sessions", "check").stdout
    content = database.read_bytes()
    overwrite(database, b"zebrA", content.index(b"zebra, number 3"))

    done = agent("sessions", "check", "--json", code=1)

    [problem, *_] = json.loads(done.stdout)["problems"]
    assert "is not what it was" in problem
    assert "agent sessions repair" in done.stderr


def test_a_damaged_database_is_repaired_into_a_new_file(database: Path) -> None:
    overwrite(database, b"\0" * 4096)
    before = database.read_bytes()
    assert f"agent sessions repair {database}" in agent("sessions", "list", code=1).stderr

    done = agent("sessions", "repair")

    assert "saved:   5 sessions, 10 messages" in done.stdout
    assert "lost:    0 sessions, 0 messages" in done.stdout
    assert "the header of the file is overwritten" in done.stdout
    assert f"mv '{database}.repaired' '{database}'" in done.stdout
    assert database.read_bytes() == before
    with closing(open_store(f"sqlite:///{database}.repaired")) as store:
        assert len(list(store)) == 5
        assert store.check(deep=True).problems == ()


def test_a_repaired_file_takes_the_place_of_the_damaged_one(database: Path) -> None:
    overwrite(database, b"nothing")
    before = database.read_bytes()

    report = json.loads(agent("sessions", "repair", "--replace", "--json").stdout)

    assert report["saved"]["messages"] == 10
    assert report["target"] == str(database)
    assert Path(report["source"]).read_bytes() == before
    found = json.loads(agent("sessions", "search", "zebra", "--json").stdout)
    assert {one["title"] for one in found} == {f"Title {number}" for number in range(5)}


def test_what_is_left_behind_is_cleaned_up(database: Path) -> None:
    paths = Paths.of_this_user()
    with closing(open_assets(paths.assets)) as assets:
        kept = assets.put("talk-0", b"kept", name="kept.txt")
        assets.put("talk-1", b"a secret", name="secret.txt")
        assets.delete_session("talk-1")

    done = agent("sessions", "clean")

    assert "1 files" in done.stderr
    files = [file.read_bytes() for file in paths.assets.rglob("*") if file.is_file()]
    assert not any(b"a secret" in content for content in files)
    with closing(open_assets(paths.assets)) as assets:
        assert assets.read(kept.id) == b"kept"


def test_sessions_that_cannot_be_written_are_listed_shown_searched_and_exported(
    database: Path, tmp_path: Path
) -> None:
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may write everything, and setpriv is not there")
    bound = () if os.getuid() else ("setpriv", f"--bounding-set={PRIVILEGES}", f"--inh-caps={PRIVILEGES}")
    for folder, _, files in os.walk(database.parent):
        for name in files:
            (Path(folder) / name).chmod(0o444)
        Path(folder).chmod(0o555)

    commands = [
        ["list", "--json"],
        ["show", "talk-2", "--json"],
        ["search", "zebra", "--json"],
        ["export", "talk-1", str(tmp_path / "talk")],
        ["export", "talk-1", str(tmp_path / "talk.md")],
        ["rename", "talk-1", "Another"],
    ]
    done = subprocess.run(
        [*bound, sys.executable, "-c", SEVERAL, json.dumps(commands)],
        check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip

    codes = [line for line in done.stderr.splitlines() if line.startswith("code ")]
    assert codes == ["code 0"] * 5 + ["code 1"], done.stderr
    listed, talk, found = map(json.loads, done.stdout.split("---\n")[:3])
    assert len(listed) == len(found) == 5
    assert talk["messages"][0]["content"] == "a zebra, number 2"
    assert (tmp_path / "talk").stat().st_size
    assert "zebra" in (tmp_path / "talk.md").read_text()
    assert "read-only" in done.stderr and "cannot be written (mode 0444" in done.stderr
    assert "Traceback" not in done.stderr
