"""What goes with a message: files that are mentioned, how they are found, and what is checked before."""

from __future__ import annotations

import asyncio
import os
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from agent_terminal_app.chat.attachments import (
    LARGEST_IMAGE,
    LONGEST_TEXT,
    MOST,
    NotAttached,
    Workspace,
    _in_order,
    check_together,
    find_mentions,
    gather,
    mention,
    open_mention,
    read_file,
    text_attachment,
)
from agent_terminal_app.chat.conversation import Conversation

CONFIG = {
    "agents": {"a": {"model": "local"}},
    "models": {"local": {"provider": "local_llama", "context_window": 1000}},
}

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_text_file_is_quoted_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Größe\n", encoding="utf-8-sig")

    attachment = read_file(path)

    assert attachment.part == {"type": "text", "text": f"File {path}:\n\nGröße\n"}
    assert attachment.line() == f"+ {path}, {attachment.size} bytes, goes with your next message"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.png", PNG, "image/png"),
        ("no-ending", b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        ("a.txt", b"GIF89a....", "image/gif"),
        ("a.bin", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_content(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    part = read_file(path).part

    assert (part["type"], part["mime_type"], part["name"]) == ("image", kind, name)
    assert part["data"] == b64encode(data).decode()


def test_what_cannot_be_sent_is_told_before_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 ...")
    (tmp_path / "long.txt").write_text("x" * (LONGEST_TEXT + 1))
    (tmp_path / "large.png").write_bytes(PNG + b"\0" * LARGEST_IMAGE)
    (tmp_path / "secret").touch(mode=0)
    os.mkfifo(tmp_path / "pipe")

    for name, problem in [
        ("a.pdf", "cannot be attached, it is application/pdf: attach text, or a PNG"),
        ("long.txt", "is too large (512 kB, at most 512 kB): attach a part of it"),
        ("large.png", "is too large (5.0 MB, at most 5.0 MB)"),
        ("pipe", "is not a regular file"),
        ("missing", "cannot be read: No such file"),
        (".", "is a folder: name a file in it"),
    ]:
        with pytest.raises(NotAttached, match=problem.replace("(", r"\(").replace(")", r"\)")):
            read_file(tmp_path / name)


def test_a_device_that_never_ends_is_not_read() -> None:
    with pytest.raises(NotAttached, match="not a regular file"):
        read_file(Path("/dev/zero"))


def test_many_attachments_are_refused_together() -> None:
    one = text_attachment("x", "x" * LONGEST_TEXT)

    check_together([one] * MOST)
    with pytest.raises(NotAttached, match="too many"):
        check_together([one] * (MOST + 1))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src/main.py", "src/domain/maintain.py", "my file.txt", "build.log", ".hidden", "a.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path


def test_files_that_are_mentioned_are_found(project: Path) -> None:
    text = 'See @src/main.py, (and @a.py) and @"my file.txt". Not mail@a.py or @nobody, @no/such.'

    found = find_mentions(text, [project])

    assert found.files == (project / "src/main.py", project / "a.py", project / "my file.txt")
    assert found.missing == ("no/such.",)


def test_a_file_is_found_though_a_sentence_ends_behind_it(project: Path) -> None:
    assert find_mentions("Look at @a.py!", [project]).files == (project / "a.py",)
    assert find_mentions(f"@{project}/a.py?", []).missing == (f"{project}/a.py?",)


def test_a_name_with_an_ending_is_missed_and_one_of_a_person_is_not(project: Path) -> None:
    assert find_mentions("@b.py and @nobody, @2.0, @notes.md.", [project]).missing == ("b.py", "notes.md.")


def test_a_file_is_called_as_a_person_would_write_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "src")
    monkeypatch.setenv("HOME", str(project))

    labels = [read_file(project / name).label for name in ("src/main.py", "my file.txt")]
    assert labels == ["main.py", "~/my file.txt"]


@given(st.text(max_size=60))
def test_any_text_can_be_looked_through(text: str) -> None:
    find_mentions(f"@{text}", [Path("/nowhere")])
    open_mention(text)


def test_what_is_being_typed_is_the_last_mention() -> None:
    assert open_mention("see @src/ma") == (4, "src/ma")
    assert open_mention('see @"my fi') == (4, "my fi")
    assert open_mention("see @a.py and") is None
    assert open_mention("mail@a") is None
    assert mention("a.py") == "@a.py" and mention("my file.txt") == '@"my file.txt"'


def test_the_likeliest_file_comes_first(project: Path) -> None:
    workspace = Workspace(project)

    assert workspace.matching("main") == ["src/main.py", "src/domain/maintain.py"]
    assert workspace.matching("sdm") == ["src/domain/maintain.py"]
    assert workspace.matching("zzz") == []


def test_what_git_ignores_is_not_offered_and_git_runs_nothing_of_the_repository(project: Path) -> None:
    trap = project / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {project}/sprung\n")
    trap.chmod(0o755)
    (project / ".gitignore").write_text("*.log\n")
    for arguments in (["init", "-q"], ["config", "core.fsmonitor", str(trap)]):
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)

    files = Workspace(project).files()

    assert "src/main.py" in files and ".gitignore" in files
    assert "build.log" not in files
    assert not (project / "sprung").exists()


def test_git_fetches_nothing_for_a_listing(project: Path) -> None:
    """A partial clone lacks the patterns of an ignored file, and its settings say what fetches them."""
    settings = ["core.repositoryFormatVersion 1", "extensions.partialClone origin", "remote.origin.url ."]
    settings += ["remote.origin.promisor true", f"remote.origin.uploadpack touch {project}/sprung;"]
    settings += ["protocol.file.allow always"]
    missing = "100644,0000000000000000000000000000000000000007,.gitignore"
    commands = [["init", "-q"], ["update-index", "--add", "--cacheinfo", missing]]
    commands += [["update-index", "--skip-worktree", ".gitignore"]]
    commands += [["config", *setting.split(" ", 1)] for setting in settings]
    for arguments in commands:
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)

    Workspace(project).files()

    assert not (project / "sprung").exists()
    listing = ["git", "ls-files", "--others", "--exclude-standard"]
    subprocess.run(listing, cwd=project, check=False, capture_output=True)
    assert (project / "sprung").exists()  # git alone would have


def test_without_git_hidden_files_are_left_out(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))

    assert Workspace(project).files() == [
        "a.py",
        "build.log",
        "my file.txt",
        "src/main.py",
        "src/domain/maintain.py",
    ]


def test_names_that_would_show_other_than_they_are_are_not_offered(project: Path) -> None:
    (project / "evil\x1b[2J.py").touch()
    (project / "line\nbreak.py").touch()
    (project / "\u202egnp.py").touch()

    assert [
        name for name in Workspace(project).files() if "\x1b" in name or "\n" in name or "\u202e" in name
    ] == []


@given(st.text("ab/.", max_size=12), st.text("ab/.", max_size=30))
def test_letters_are_found_in_order(query: str, path: str) -> None:
    rest = iter(path)

    assert bool(_in_order(query).match(path)) == all(char in rest for char in query)


def test_a_query_that_is_made_to_take_long_does_not() -> None:
    assert _in_order("a" * 60 + "b").match("a" * 4000) is None


def test_real_paths_come_first_also_those_outside_the_folder(project: Path) -> None:
    (project / "source").mkdir()
    (project / "source" / "deep-notes.md").write_text("x")
    (project / "sour.txt").write_text("x")
    workspace = Workspace(project)

    assert workspace.matching("sou")[:2] == ["source/", "sour.txt"]
    assert workspace.matching("source/")[0] == "source/deep-notes.md"
    assert workspace.matching(f"{project}/so")[:2] == [f"{project}/source/", f"{project}/sour.txt"]
    assert f"../{project.name}/" in workspace.matching("../")
    assert workspace.matching("no-such-folder/x") == []


def test_what_the_model_cannot_read_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    class Reader(ScriptedProvider):
        def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
            return [{"id": "reader", "tags": ["tools"]}]

    with AgentApplication(CONFIG, plugins=[Reader(["Never."], name="local_llama")], installed=False) as app:
        conversation = Conversation(app)
        (tmp_path / "a.png").write_bytes(PNG)
        (tmp_path / "long.txt").write_text("word " * 2000)
        for name, told in (
            ("a.png", "the embedded model reads only text: /model"),
            ("long.txt", "2,2.. tokens, and 1,000 fit into the embedded model"),
        ):
            with pytest.raises(NotAttached, match=told):
                asyncio.run(gather(conversation, f"Look at @{tmp_path / name}"))
        (tmp_path / "short.txt").write_text("word")
        assert len(asyncio.run(gather(conversation, f"@{tmp_path / 'short.txt'}")).attached) == 1
        assert conversation.session_id is None
