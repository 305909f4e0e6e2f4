"""Only regular files below the folder are opened, and no link is followed on the way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent_plugin_kit.safe_files import (
    NotOpened,
    Outside,
    make_private_folder,
    open_file,
    open_folder,
    read_file,
    steps_inside,
    why_not_private,
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/tea.txt").write_text("oolong")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "out").symlink_to(tmp_path)
    (folder / "in").symlink_to(folder / "a/b")
    (folder / "tea").symlink_to("a/b/tea.txt")
    os.mkfifo(folder / "fifo")
    return folder


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_is_read_up_to_a_limit(base: Path) -> None:
    assert read_file(base, ("a", "b", "tea.txt"), 100) == b"oolong"
    assert read_file(base, ("a", "b", "tea.txt"), 3) == b"ool"


@pytest.mark.parametrize(
    ("steps", "depth", "is_link", "reason"),
    [
        (("out", "secret.txt"), 1, True, "it is a link, and links are not followed"),
        (("in", "tea.txt"), 1, True, "it is a link, and links are not followed"),
        (("tea",), 1, True, "it is a link, and links are not followed"),
        (("a", "b"), 2, False, "it is not a regular file"),
        (("fifo",), 1, False, "it is not a regular file"),
        (("a", "none", "x"), 2, False, "it cannot be opened: No such file or directory"),
        (("a", "b", "tea.txt", "x"), 3, False, "it cannot be opened: Not a directory"),
    ],
)
def test_what_is_refused_says_where_and_why(
    base: Path, steps: tuple[str, ...], depth: int, is_link: bool, reason: str
) -> None:
    before = descriptors()

    with pytest.raises(NotOpened) as caught:
        read_file(base, steps, 10)

    assert (caught.value.depth, caught.value.is_link, str(caught.value)) == (depth, is_link, reason)
    assert descriptors() == before


def test_a_base_that_is_missing_is_step_zero(tmp_path: Path) -> None:
    with pytest.raises(NotOpened) as caught:
        open_folder(tmp_path / "none")

    assert caught.value.depth == 0


def test_every_folder_on_the_way_is_checked_and_closed_when_refused(base: Path) -> None:
    seen: list[int] = []

    def check(depth: int, fd: int) -> None:
        assert os.fstat(fd)
        seen.append(depth)
        if depth == 2:
            raise ValueError("refused")

    before = descriptors()
    with pytest.raises(ValueError, match="refused"):
        open_folder(base, ("a", "b"), check=check)

    assert seen == [0, 1, 2]
    assert descriptors() == before


def test_a_file_is_checked_before_and_after_it_is_opened(base: Path) -> None:
    states: list[int] = []
    folder = open_folder(base, ("a", "b"))
    try:
        os.close(open_file(folder, "tea.txt", check=lambda state: states.append(state.st_ino)))
    finally:
        os.close(folder)

    assert len(states) == 2 and len(set(states)) == 1


def test_a_link_that_stays_inside_is_resolved_first(base: Path) -> None:
    assert steps_inside(base, "tea") == (str(base), ("a", "b", "tea.txt"))
    assert steps_inside(base, "a") == (str(base), ("a",))


@pytest.mark.parametrize("name", ["out", "out/secret.txt", "../secret.txt", "/etc/passwd", "."])
def test_a_name_that_leads_out_is_refused(base: Path, name: str) -> None:
    with pytest.raises(Outside, match="leads out of"):
        steps_inside(base, name)


@pytest.mark.parametrize("umask", [0, 0o002, 0o077, 0o777])
def test_a_private_folder_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")}
    assert modes == {0o700}
    assert why_not_private(tmp_path / "a" / "b") is None


def test_what_others_may_have_written_is_not_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    file.chmod(0o620)
    assert "can be written by others (mode 620)" in str(why_not_private(file))
    (tmp_path / "link").symlink_to(file)
    assert why_not_private(tmp_path / "link") == "is a link"
    assert why_not_private(tmp_path / "missing") is None
    if os.geteuid() == 0:
        file.chmod(0o600)
        os.chown(file, 12345, 12345)
        assert why_not_private(file) == "belongs to another user (uid 12345)"


def test_a_file_in_the_place_of_a_folder_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o644)

    with pytest.raises(FileExistsError):
        make_private_folder(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
