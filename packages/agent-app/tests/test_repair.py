"""Repairing SQLite stores: what can be read is saved, the report is true, the old files are as they were."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app.store import open_store
from agent_app.store.base import Approval, Changes, Grant
from agent_app.store.repair import DAMAGED, repair_store
from agent_core import AgentCore, ArgumentError, Message, Session

if TYPE_CHECKING:
    from agent_app.store.repair import Repaired

CORE = AgentCore()
SESSIONS, MESSAGES, EVENTS = 12, 10, 8
PAGE = 4096


def text(session: int, line: int) -> str:
    return f"session {session} says line {line} about rivers " + "and more " * (line * line * 5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of some sessions, closed."""
    folder = tmp_path_factory.mktemp("made")
    with closing(open_store(f"sqlite:///{folder}/store.db")) as store:
        for number in range(SESSIONS):
            name = f"talk-{number}"
            talk = [
                Message("user" if line % 2 == 0 else "assistant", text(number, line))
                for line in range(MESSAGES)
            ]
            session = CORE.append_messages(Session(name, [], {"note": f"note {number}"}), talk)
            stored = store.create(session, title=f"Title {number}", agent_id="helper")
            approval = Approval(id=f"a{number}", session_id=name, suspension={"tool": "t"}, created=1.0)
            events = [{"type": "text", "text": f"{number} {line}"} for line in range(EVENTS)]
            changes = Changes(events=events, approvals=[approval], intents={f"c{number}": {}})
            store.save(stored.session, stored, changes=changes)
            store.put_input(name, {"role": "user", "content": f"queued {number}"}, "queue")
        store.add_grant(Grant(id="g", pattern="shell", effect="allow", scope="always", key="", created=1.0))
    return folder


@pytest.fixture
def damaged(made: Path, tmp_path: Path) -> Path:
    """The file of a copy of the store, to be damaged."""
    shutil.copytree(made, tmp_path / "old")
    return tmp_path / "old" / "store.db"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def repaired(path: Path) -> Repaired:
    """Repair a store, and see that the old files are as they were and that the report is true."""
    before = contents(path.parent)

    report = repair_store(path, path.parent.parent / "new.db")

    assert contents(path.parent) == before
    assert report.problems == ()
    counted = dict.fromkeys(("sessions", "messages", "damaged"), 0)
    with closing(open_store(f"sqlite:///{report.target}")) as store:
        assert store.check(deep=True).problems == ()
        for name in store:
            session = store.load(name).session
            counted["sessions"] += 1
            counted["messages"] += len(session.messages)
            counted["damaged"] += sum(DAMAGED in message.metadata for message in session.messages)
            for message in session.messages:
                if DAMAGED not in message.metadata:
                    assert message.content in ORIGINAL
        there = {message.content for name in store for message in store.load(name).session.messages}
        left = b"".join(before.values())
        # Longer ones are on several pages; of these, one that is lost takes the others with it.
        assert [one for one in ORIGINAL if len(one) < 400 and one.encode() in left and one not in there] == []
        assert len(store.list(query="rivers", limit=100).sessions) == sum(
            bool(store.load(name).session.messages) for name in store
        )
    assert counted["sessions"] == report.saved["sessions"] + report.damaged["sessions"]
    assert counted["messages"] == report.saved["messages"] + report.damaged["messages"]
    assert counted["damaged"] == report.damaged["messages"]
    return report


ORIGINAL = {text(number, line) for number in range(SESSIONS) for line in range(MESSAGES)}


def test_all_of_a_store_that_is_whole_is_saved(damaged: Path) -> None:
    report = repaired(damaged)

    assert report.saved == {
        "sessions": SESSIONS, "messages": SESSIONS * MESSAGES, "events": SESSIONS * EVENTS,
        "inputs": SESSIONS, "approvals": SESSIONS, "intents": SESSIONS, "grants": 1,
    }  # fmt: skip
    assert report.where == ()
    with (
        closing(open_store(f"sqlite:///{damaged}")) as old,
        closing(open_store(f"sqlite:///{report.target}")) as new,
    ):
        for name in old:
            assert new.load(name) == old.load(name)
            assert new.info(name) == old.info(name)
            assert new.events(name) == old.events(name)
            assert new.inputs(name) == old.inputs(name)
            assert new.approvals(name) == old.approvals(name)
            assert new.open_intents(name) == old.open_intents(name)
        assert new.grants() == old.grants()


def overwrite(path: Path, start: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)


@pytest.mark.parametrize("length", [16, 100, PAGE])
def test_a_header_that_is_overwritten_loses_nothing(damaged: Path, length: int) -> None:
    overwrite(damaged, 0, b"\xff" * length)

    report = repaired(damaged)

    assert report.saved["sessions"] == SESSIONS
    assert report.saved["messages"] == SESSIONS * MESSAGES
    assert any("header" in line for line in report.where)


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
def test_of_a_file_that_was_cut_off_the_rest_is_saved(damaged: Path, share: float) -> None:
    length = int(damaged.stat().st_size * share)
    os.truncate(damaged, length)

    report = repaired(damaged)

    known = sum(report.saved[what] + report.damaged[what] for what in ("sessions",))
    assert known + report.lost["sessions"] >= 1
    assert any("middle of page" in line for line in report.where) or length % PAGE == 0


@pytest.mark.parametrize("seed", range(4))
def test_pages_that_are_zero_lose_only_what_was_on_them(damaged: Path, seed: int) -> None:
    chance = random.Random(seed)
    pages = damaged.stat().st_size // PAGE
    for page in chance.sample(range(1, pages), 3):
        overwrite(damaged, page * PAGE, bytes(PAGE))

    report = repaired(damaged)

    there = report.saved["messages"] + report.damaged["messages"] + report.lost["messages"]
    assert there <= SESSIONS * MESSAGES
    if report.saved["sessions"] + report.damaged["sessions"] == SESSIONS and not report.lost["sessions"]:
        assert there == SESSIONS * MESSAGES
    assert report.saved["messages"] > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_here_and_there_loses_little(damaged: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(damaged.read_bytes())
    for _ in range(12):
        content[chance.randrange(PAGE, len(content))] ^= 1 << chance.randrange(8)
    damaged.write_bytes(content)

    report = repaired(damaged)

    assert report.saved["messages"] + report.damaged["messages"] >= SESSIONS * MESSAGES * 0.7
    assert bool(report.where) == bool(report.lost["messages"] or report.where)


def test_a_message_with_a_wrong_letter_is_kept_and_says_so(damaged: Path) -> None:
    content = damaged.read_bytes()
    place = content.index(text(3, 4).encode())
    overwrite(damaged, place, b"S")

    report = repaired(damaged)

    assert (report.damaged["messages"], report.lost["messages"]) == (1, 0)
    assert "session 'talk-3': message 4 may have wrong letters" in report.where
    with closing(open_store(f"sqlite:///{report.target}")) as store:
        assert store.load("talk-3").session.messages[4].content == "S" + text(3, 4)[1:]


def test_a_grant_that_is_damaged_gives_no_rights(damaged: Path) -> None:
    content = damaged.read_bytes()
    place = content.index(b'["allow","shell"')
    overwrite(damaged, place, b'["allow","shall"')

    report = repaired(damaged)

    assert report.lost["grants"] == 1
    with closing(open_store(f"sqlite:///{report.target}")) as store:
        assert store.grants() == []


def test_what_is_in_the_log_is_saved_as_well(damaged: Path, tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{damaged}")) as store:
        stored = store.load("talk-0")
        store.save(CORE.append_messages(stored.session, [Message("user", text(0, 1))]), stored)
        shutil.copytree(damaged.parent, tmp_path / "live")
    path = tmp_path / "live" / "store.db"
    assert Path(f"{path}-wal").stat().st_size

    report = repaired(path)

    assert report.saved["messages"] == SESSIONS * MESSAGES + 1
    assert report.where == ()


def test_a_missing_log_is_reported(damaged: Path, tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{damaged}")) as store:
        stored = store.load("talk-0")
        store.save(CORE.append_messages(stored.session, [Message("user", "the last word")]), stored)
        (tmp_path / "copy").mkdir()
        shutil.copyfile(damaged, tmp_path / "copy" / "store.db")

    report = repaired(tmp_path / "copy" / "store.db")

    assert report.saved["messages"] == SESSIONS * MESSAGES
    assert any("-wal is missing" in line for line in report.where)


def test_a_repair_overwrites_nothing(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").write_text("mine")

    with pytest.raises(ArgumentError, match="already exists"):
        repair_store(damaged, tmp_path / "new.db")
    with pytest.raises(ArgumentError, match="no file"):
        repair_store(tmp_path / "nothing.db", tmp_path / "other.db")

    assert (tmp_path / "new.db").read_text() == "mine"
    assert not (tmp_path / "other.db").exists()
