"""Assets in a folder: no path from outside, no link followed, and what the disk can do wrong."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest

from agent_app.assets import SessionAssetStore, folder as folders
from agent_app.errors import StoreDamaged, StoreTooNew, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_app.assets import Asset

on_posix = pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "assets"


@pytest.fixture
def store(root: Path) -> Iterator[SessionAssetStore]:
    with SessionAssetStore(root) as opened:
        yield opened


def files_below(root: Path) -> list[Path]:
    return sorted(
        path for path in root.rglob("*") if path.is_file() and not path.name.startswith("assets.db")
    )


def content_of(root: Path, asset: Asset) -> Path:
    return root / "content" / asset.sha256[:2] / asset.sha256


# Nothing from outside becomes a path.


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b"])
def test_a_folder_takes_no_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    with folders.Folder.root(tmp_path) as folder, pytest.raises(ValueError, match="not a valid file name"):
        folder.open(name)


@on_posix
def test_a_link_in_the_place_of_content_is_not_followed(
    tmp_path: Path, store: SessionAssetStore, root: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"12345")
    asset = store.put("s1", b"abcde", name="a")
    content_of(root, asset).unlink()
    content_of(root, asset).symlink_to(secret)

    with pytest.raises(StoreDamaged, match="is missing"):
        store.read(asset.id)
    assert "is missing" in store.check().problems[0]


@on_posix
def test_a_link_in_the_place_of_a_folder_is_not_followed(
    tmp_path: Path, store: SessionAssetStore, root: Path
) -> None:
    asset = store.put("s1", b"abcde", name="a")
    elsewhere = tmp_path / "elsewhere"
    shelf = content_of(root, asset).parent
    shelf.rename(elsewhere)
    shelf.symlink_to(elsewhere)

    with pytest.raises(StoreDamaged):
        store.read(asset.id)
    with pytest.raises(StoreUnavailable):
        store.put("s1", b"abcde", name="a")
    store.delete_session("s1")
    report = store.collect()

    assert report.problems and "not one of our folders" in report.problems[0]
    assert [path.name for path in elsewhere.iterdir()] == [asset.sha256]


@on_posix
def test_an_index_that_is_a_link_is_refused(tmp_path: Path, root: Path) -> None:
    root.mkdir()
    (root / "assets.db").symlink_to(tmp_path / "elsewhere.db")

    with pytest.raises(StoreDamaged, match="link to another place"):
        SessionAssetStore(root)
    assert not (tmp_path / "elsewhere.db").exists()


@on_posix
def test_swapping_folders_for_links_at_any_moment_leads_nowhere(
    tmp_path: Path, store: SessionAssetStore, root: Path
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    asset = store.put("s1", b"mine", name="a")
    (trap / asset.sha256).write_bytes(b"evil")
    shelf, aside = content_of(root, asset).parent, tmp_path / "aside"

    def swap() -> int:
        swapped = 0
        for _ in range(300):
            shutil.rmtree(aside, ignore_errors=True)
            # Any step may fail, since the store makes the folder again where it finds none.
            with suppress(OSError):
                shelf.rename(aside)
            with suppress(OSError):
                shelf.symlink_to(trap)
                swapped += 1
                shelf.unlink()
            with suppress(OSError):
                aside.rename(shelf)
        return swapped

    with ThreadPoolExecutor() as pool:
        swapping = pool.submit(swap)
        while not swapping.done():
            with suppress(StoreDamaged, StoreUnavailable):
                store.put("s2", b"mine", name="b")
                assert store.read(asset.id) == b"mine"

    assert swapping.result() > 0
    assert [path.name for path in trap.iterdir()] == [asset.sha256]
    assert (trap / asset.sha256).read_bytes() == b"evil"


@on_posix
def test_folders_and_files_are_their_owners_alone(store: SessionAssetStore, root: Path) -> None:
    store.put("s1", b"x", name="a")

    for path in [root, *root.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


# Faults.


def test_what_a_crash_leaves_behind_is_collected(store: SessionAssetStore, root: Path) -> None:
    asset = store.put("s1", b"kept", name="a")
    (root / "temporary" / "half-written").write_bytes(b"hal")
    orphan = root / "content" / "00" / ("00" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"moved, and never noted")

    assert store.collect().checked == {"content": 1, "temporary": 1}
    assert files_below(root) == [content_of(root, asset)]


@on_posix
def test_a_link_among_the_leftovers_is_removed_and_not_its_target(
    tmp_path: Path, store: SessionAssetStore, root: Path
) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    (root / "temporary" / "link").symlink_to(target)
    (root / "temporary" / "folder").mkdir()

    assert store.collect().checked["temporary"] == 1
    assert target.read_text() == "untouched"


@on_posix
def test_a_process_that_dies_while_it_writes_leaves_only_a_leftover(root: Path) -> None:
    program = """
import io, os, sys
from agent_app.assets import SessionAssetStore

class Dying(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            os.kill(os.getpid(), 9)
        return super().read(5)

SessionAssetStore(sys.argv[1]).put("s1", Dying(b"0123456789"), name="a")
"""
    died = subprocess.run([sys.executable, "-c", program, str(root)], check=False)
    with SessionAssetStore(root) as store:
        assert died.returncode == -9
        assert store.list("s1") == ()
        assert store.collect().checked == {"content": 0, "temporary": 1}
        assert files_below(root) == []


@on_posix
def test_a_disk_that_takes_no_more_keeps_nothing(store: SessionAssetStore, root: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(StoreUnavailable, match="nothing was kept; check disk space"):
            store.put("s1", b"x" * 500_000, name="a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert store.list("s1") == () and files_below(root) == []
    assert store.put("s1", b"x" * 500_000, name="a").size == 500_000


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_error_of_the_disk_on_the_last_steps_keeps_nothing(
    store: SessionAssetStore, root: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def fail(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StoreUnavailable, match="Input/output error"):
            store.put("s1", b"x", name="a")

    assert store.list("s1") == () and files_below(root) == []
    assert store.put("s1", b"x", name="a").size == 1


def test_an_index_of_a_later_version_is_left_alone(root: Path) -> None:
    SessionAssetStore(root).close()
    with sqlite3.connect(root / "assets.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(StoreTooNew, match="format 99"):
        SessionAssetStore(root)


def test_a_file_that_is_no_index_is_refused(root: Path) -> None:
    root.mkdir()
    (root / "assets.db").write_bytes(b"not a database, but long enough to look at" * 100)

    with pytest.raises(StoreDamaged, match="keep the file"):
        SessionAssetStore(root)


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        SessionAssetStore(tmp_path / "file")


# --- the index ------------------------------------------------------------------------------------------

FORMER_INDEX = """
CREATE TABLE assets (id TEXT PRIMARY KEY, name TEXT NOT NULL, media_type TEXT NOT NULL, size INTEGER NOT NULL,
    sha256 TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX assets_by_content ON assets (sha256);
CREATE TABLE refs (seq INTEGER PRIMARY KEY, session TEXT NOT NULL, asset TEXT NOT NULL REFERENCES assets (id),
    UNIQUE (session, asset));
CREATE INDEX refs_by_asset ON refs (asset);
PRAGMA user_version = 1;
"""


def test_a_wrong_letter_in_the_index_is_reported(tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "files")) as store:
        store.put("s", b"content", name="holiday.txt")
    index = tmp_path / "files" / "assets.db"
    content = index.read_bytes()
    index.write_bytes(content.replace(b"holiday.txt", b"holidaY.txt"))

    with closing(SessionAssetStore(tmp_path / "files")) as store:
        [problem] = store.check().problems
    assert "of assets is not what it was when it was written" in problem


def test_an_index_of_a_former_version_is_read_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    with closing(SessionAssetStore(folder)) as store:
        asset = store.put("s", b"content", name="holiday.txt")
        store.share("s", "t")
    (folder / "assets.db").rename(tmp_path / "new.db")
    with closing(sqlite3.connect(folder / "assets.db")) as former:
        former.executescript(FORMER_INDEX)
        former.execute("ATTACH ? AS new", (str(tmp_path / "new.db"),))
        columns = "id, name, media_type, size, sha256, created"
        former.execute(f"INSERT INTO assets ({columns}) SELECT {columns} FROM new.assets")
        former.execute("INSERT INTO refs (seq, session, asset) SELECT seq, session, asset FROM new.refs")
        former.commit()

    for _ in range(2):
        with closing(SessionAssetStore(folder)) as store:
            assert store.check(deep=True).problems == ()
            assert store.list("s") == (asset,)
            assert [one.id for one in store.list("t")] == [asset.id]


def test_the_name_of_a_deleted_asset_is_not_left_in_the_index(tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "files")) as store:
        store.put("s", b"content", name="holiday.txt")
        store.delete_session("s")
        store.collect()

    assert not any(b"holiday" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
