"""The files of one scope: confined, private, bounded, and safe with several processes."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from memory_feature import Memory, MemoryFolder, MemoryProblem
from memory_feature.folder import MOST_MEMORIES

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import sys
from pathlib import Path
from memory_feature import MemoryFolder

folder, who = MemoryFolder(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    folder.add(f"Fact {number} of everybody, as {who} heard it.")
    folder.add(f"Fact {number} that all know.")
    folder.change("shared", f"{who} was here {number} times. " + "x" * 1000)
print("done", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> MemoryFolder:
    return MemoryFolder(tmp_path / "memory")


def texts(folder: MemoryFolder) -> list[str]:
    return [one.text for one in folder.read().memories]


def test_a_memory_is_a_file_that_only_its_owner_reads(folder: MemoryFolder) -> None:
    memory = folder.add("Ann likes tea.")

    file = folder.path / "ann-likes-tea.md"
    assert memory.name == "ann-likes-tea"
    assert file.read_text().endswith("---\nAnn likes tea.\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_the_same_text_is_kept_once_and_another_with_the_same_words_gets_another_name(
    folder: MemoryFolder,
) -> None:
    folder.add("Ann likes tea.")
    again = folder.add(" Ann likes tea. ")
    other = folder.add("Ann likes tea!")

    assert (again.name, other.name) == ("ann-likes-tea", "ann-likes-tea-2")
    assert texts(folder) == ["Ann likes tea.", "Ann likes tea!"]


def test_a_memory_is_changed_removed_and_brought_back(folder: MemoryFolder) -> None:
    added = folder.add("Ann likes tea.")

    before, after = folder.change(added.name, "Ann likes coffee.")
    gone = folder.remove(added.name)
    assert texts(folder) == []
    folder.restore(gone.name, gone.text, gone.created)

    assert (before.text, after.text) == ("Ann likes tea.", "Ann likes coffee.")
    assert folder.get("ann-likes-tea").text == "Ann likes coffee."
    assert folder.get("ann-likes-tea").created == added.created
    with pytest.raises(MemoryProblem, match="there is another memory 'ann-likes-tea' by now"):
        folder.restore("ann-likes-tea", "Something else.")


HOSTILE = [
    "../secret",
    "..",
    ".",
    "",
    "a/b",
    "link",
    "fifo",
    "folder",
    "a\0b",
    "missing",
    "x" * 81,
    ".hidden",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_outside_is_read_changed_or_removed(folder: MemoryFolder, name: str) -> None:
    folder.add("Ann likes tea.")
    secret = folder.path.parent / "secret.md"
    secret.write_text("canary")
    (folder.path / ".hidden.md").write_text("canary")
    (folder.path / "link.md").symlink_to(secret)
    (folder.path / "folder.md").mkdir()
    os.mkfifo(folder.path / "fifo.md")

    for attempt in (folder.get, folder.remove, lambda one: folder.change(one, "Mine.")):
        with pytest.raises(MemoryProblem):
            attempt(name)
    assert texts(folder) == ["Ann likes tea."]
    assert secret.read_text() == "canary"


def test_a_project_cannot_lead_to_files_elsewhere(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tea.md").write_text("canary")
    (project / ".agent").mkdir(parents=True)
    (project / ".agent" / "memory").symlink_to(elsewhere)
    folder = MemoryFolder(project, (".agent", "memory"))

    assert folder.read().memories == ()
    assert "it is a link" in folder.read().problems[0]
    with pytest.raises(MemoryProblem, match="it is a link"):
        folder.add("Ann likes tea.")
    assert [one.name for one in elsewhere.iterdir()] == ["tea.md"]


def test_a_folder_in_which_others_can_write_is_not_believed(folder: MemoryFolder) -> None:
    folder.add("Ann likes tea.")
    folder.path.chmod(0o777)

    [problem] = folder.read().problems
    assert folder.read().memories == ()
    assert "can be written by others" in problem


def test_files_that_cannot_be_used_are_left_out_with_the_reason(folder: MemoryFolder) -> None:
    folder.add("Ann likes tea.")
    (folder.path / "large.md").write_bytes(b"x" * 20_000)
    (folder.path / "odd name.md").write_text("Tea.")
    (folder.path / "empty.md").touch()
    (folder.path / "notes.txt").write_text("not ours")

    problems = folder.read().problems

    assert texts(folder) == ["Ann likes tea."]
    for name, why in (("large", "16,384 bytes"), ("odd name", "letters, digits"), ("empty", "no text")):
        assert any(f"{name}.md is left out: " in one and why in one for one in problems)
    assert len(problems) == 3


def test_a_file_that_an_editor_changed_is_read_anew(folder: MemoryFolder) -> None:
    file = folder.path / f"{folder.add('Ann likes tea.').name}.md"
    assert texts(folder) == ["Ann likes tea."]

    file.write_text("Ann likes coffee.")

    assert texts(folder) == ["Ann likes coffee."]


def test_memories_are_ordered_by_when_they_were_written_whatever_a_file_says(folder: MemoryFolder) -> None:
    folder.add("Mine.")
    for name, head, seconds in [
        ("by-hand", "", 1_700_000_000),
        ("from-the-future", "---\ncreated: 9999-01-01T00:00:00Z\n---\n", 1_600_000_000),
        ("older", "---\ncreated: 2019-01-01T00:00:00Z\n---\n", 2**40),
    ]:
        file = folder.path / f"{name}.md"
        file.write_text(f"{head}{name}\n")
        file.chmod(0o600)
        os.utime(file, (seconds, seconds))

    assert texts(folder) == ["older", "from-the-future", "by-hand", "Mine."]


def test_there_is_an_end_to_the_room(folder: MemoryFolder) -> None:
    folder.add("The first.")
    for number in range(1, MOST_MEMORIES):
        (folder.path / f"fact-{number}.md").write_text(f"Fact {number}.")

    with pytest.raises(MemoryProblem, match="500 memories already, which is the most: forget some first"):
        folder.add("One more.")
    folder.remove("fact-1")
    folder.add("One more.")


def test_what_a_killed_process_left_behind_is_removed_by_the_next_change(folder: MemoryFolder) -> None:
    folder.add("Ann likes tea.")
    (folder.path / ".0123456789abcdef.new").write_text("half a")

    folder.add("Bob likes coffee.")

    assert sorted(one.name for one in folder.path.iterdir()) == ["ann-likes-tea.md", "bob-likes-coffee.md"]


def test_two_processes_lose_nothing_and_no_reader_sees_half_a_file(folder: MemoryFolder) -> None:
    folder.add("Shared.")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, folder.path, who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("Ann", "Bob")
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()

    while any(writer.poll() is None for writer in writers):
        seen = folder.read()
        assert seen.problems == ()
        assert all(one.text.endswith("x" * 1000) or len(one.text) < 60 for one in seen.memories)

    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdin is not None and writer.stdout is not None
        writer.stdin.close()
        writer.stdout.close()
    expected = {f"Fact {n} of everybody, as {who} heard it." for n in range(25) for who in ("Ann", "Bob")}
    expected |= {f"Fact {n} that all know." for n in range(25)}
    found = [text for text in texts(folder) if text.startswith("Fact")]
    assert sorted(found) == sorted(expected)  # each once, also the one that both had
    assert folder.get("shared").text.endswith("was here 24 times. " + "x" * 1000)


def test_a_memory_of_a_name_that_is_not_there_is_unknown(folder: MemoryFolder) -> None:
    with pytest.raises(MemoryProblem, match="there is no memory 'tea': list them to see their names"):
        folder.get("tea")
    assert folder.read().memories == ()
    assert isinstance(folder.add("Tea."), Memory)


def test_a_folder_that_somebody_keeps_locked_holds_nobody_up(
    folder: MemoryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.add("Ann likes tea.")
    monkeypatch.setattr("memory_feature.folder.LONGEST_WAIT", 0.1)
    held = os.open(folder.path, os.O_RDONLY)  # for which reading is enough
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(MemoryProblem, match="another program has locked it"):
            folder.add("Bob likes coffee.")
    finally:
        os.close(held)

    assert [one.text for one in folder.read().memories] == ["Ann likes tea."]
    assert folder.add("Bob likes coffee.").name == "bob-likes-coffee"


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(MemoryProblem, match=r"/file/memory cannot be used: (?!\[Errno)"):
        MemoryFolder(tmp_path / "file" / "memory").add("Ann likes tea.")
