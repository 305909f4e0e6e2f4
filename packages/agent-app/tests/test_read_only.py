"""Stores that cannot be written: all can be read, and whoever writes is told why not.

Rights do not bind root, so the processes that read here are started without that privilege.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.store import open_store
from agent_core import Message, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVILEGES = "-dac_override,-dac_read_search"
READER = """
import json, sys
from agent_app.store import open_store
from agent_app.errors import StoreUnavailable
from agent_core import Session
store = open_store(f"sqlite:///{sys.argv[1]}/store.db")
told = ""
try:
    store.create(Session("new"))
except StoreUnavailable as error:
    told = str(error)
with store.writing():
    texts = [message.content for message in store.load("s").session.messages]
print(json.dumps({
    "sessions": list(store), "texts": texts, "events": store.events("s"), "told": told,
    "found": [info.id for info in store.list(query="zebra").sessions],
    "problems": store.check(deep=True).problems,
}))
store.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "data"
    made.mkdir()
    yield made
    made.chmod(0o755)


def bound_by_rights() -> list[str]:
    """How a process is started that cannot write what its user may not write."""
    if os.getuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everything, and setpriv is not there")
    return ["setpriv", f"--bounding-set={PRIVILEGES}", f"--inh-caps={PRIVILEGES}"]


def fill(folder: Path) -> None:
    with closing(open_store(f"sqlite:///{folder}/store.db")) as store:
        store.create(Session("s", [Message("user", "a zebra"), Message("assistant", "two")]))
        store.append_events("s", [{"type": "text", "text": "one"}])


def protect(folder: Path, *, file: int = 0o444, place: int = 0o555) -> None:
    for one in folder.iterdir():
        one.chmod(file)
    folder.chmod(place)


def read(folder: Path) -> dict[str, Any]:
    """What another process reads that may not write there."""
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    command = [*bound_by_rights(), sys.executable, "-c", READER, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_all_is_read(found: dict[str, Any]) -> None:
    assert found["sessions"] == ["s"]
    assert found["texts"] == ["a zebra", "two"]
    assert [event["text"] for event in found["events"]] == ["one"]
    assert found["found"] == ["s"]
    assert found["problems"] == []
    assert "read-only" in found["told"] and "store.db can be read" in found["told"]


@pytest.mark.parametrize(("file", "place"), [(0o444, 0o555), (0o666, 0o555), (0o444, 0o777)])
def test_a_store_without_the_right_to_write_is_read(folder: Path, file: int, place: int) -> None:
    fill(folder)
    protect(folder, file=file, place=place)

    assert_all_is_read(read(folder))


def leave_log(folder: Path, keep: tuple[str, ...]) -> None:
    """Fill a store, and leave its log behind as a crash does, with or without the index of the log."""
    aside = folder / "aside"
    aside.mkdir()
    with closing(open_store(f"sqlite:///{aside}/store.db")) as store:
        store.create(Session("s", [Message("user", "a zebra"), Message("assistant", "two")]))
        store.append_events("s", [{"type": "text", "text": "one"}])
        for name in keep:
            shutil.copyfile(aside / name, folder / name)
    shutil.rmtree(aside)


@pytest.mark.parametrize("keep", [("store.db", "store.db-wal"), ("store.db", "store.db-wal", "store.db-shm")])
def test_what_is_in_the_log_is_read_as_well(folder: Path, keep: tuple[str, ...]) -> None:
    leave_log(folder, keep)
    protect(folder)

    assert_all_is_read(read(folder))


def test_a_reader_sees_what_another_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    fill(tmp_path)
    monkeypatch.setattr(os, "access", lambda place, _mode: Path(place) != path)
    reader = open_store(f"sqlite:///{path}")
    monkeypatch.undo()
    assert list(reader) == ["s"]

    with closing(open_store(f"sqlite:///{path}")) as writer:
        writer.create(Session("t"))
        assert list(reader) == ["s", "t"]
        writer.create(Session("u"))
        assert list(reader) == ["s", "t", "u"]
    assert list(reader) == ["s", "t", "u"]
    reader.close()
