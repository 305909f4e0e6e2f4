"""The asset store: what it keeps, what it refuses, and what nobody can make it do."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_app.assets import Asset, AssetNotFound, AssetRefused, SessionAssetStore, folder as folders
from agent_app.assets.media import Sniffer, display_name
from agent_app.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20

on_posix = pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "assets"


@pytest.fixture
def store(root: Path) -> Iterator[SessionAssetStore]:
    ticks = count(1000)
    with SessionAssetStore(root, clock=lambda: float(next(ticks))) as opened:
        yield opened


def files_below(root: Path) -> list[Path]:
    return sorted(
        path for path in root.rglob("*") if path.is_file() and not path.name.startswith("assets.db")
    )


def content_of(root: Path, asset: Asset) -> Path:
    return root / "content" / asset.sha256[:2] / asset.sha256


# Keeping and reading.


def test_what_was_put_is_found_by_its_id(store: SessionAssetStore) -> None:
    asset = store.put("s1", b"hello", name="greeting.txt")

    assert asset.id.startswith("asset_") and len(asset.id) == 38
    assert asset == Asset(
        id=asset.id, name="greeting.txt", media_type="text/plain", size=5,
        sha256=sha256(b"hello").hexdigest(), session_id="s1", created=1000.0,
    )  # fmt: skip
    assert store.get(asset.id) == asset
    assert store.list("s1") == (asset,)
    with store.open(asset.id) as file:
        assert file.read() == b"hello"


def test_it_is_all_there_after_reopening(root: Path) -> None:
    with SessionAssetStore(root) as store:
        asset = store.put("s1", PNG, name="a.png")
    with SessionAssetStore(root) as store:
        assert store.list("s1") == (asset,)
        assert store.read(asset.id) == PNG
        assert store.check(deep=True).problems == ()


def test_a_part_can_be_read(store: SessionAssetStore) -> None:
    asset = store.put("s1", io.BytesIO(b"0123456789"), name="digits")

    assert store.read(asset.id, 3, 4) == b"3456"
    assert store.read(asset.id, 8) == b"89"
    assert store.read(asset.id, 100, 5) == b""
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(ArgumentError, match="negative"):
            store.read(asset.id, start, length)


def test_the_same_content_is_kept_once_under_two_ids(store: SessionAssetStore, root: Path) -> None:
    one = store.put("s1", b"same", name="a")
    other = store.put("s2", b"same", name="b")

    assert one.id != other.id and one.sha256 == other.sha256
    assert files_below(root) == [content_of(root, one)]


def test_putting_content_again_heals_it(store: SessionAssetStore, root: Path) -> None:
    one = store.put("s1", b"precious", name="a")
    content_of(root, one).write_bytes(b"damaged!")

    store.put("s2", b"precious", name="b")

    assert store.read(one.id) == b"precious"


def test_an_empty_asset_is_an_asset(store: SessionAssetStore) -> None:
    asset = store.put("s1", b"", name="empty")

    assert (asset.size, asset.media_type, store.read(asset.id)) == (0, "text/plain", b"")


@pytest.mark.parametrize("asset_id", ["asset_" + "0" * 32, "", "../assets.db", "\ud800", "a\0b"])
def test_an_id_that_nobody_has_is_not_found(store: SessionAssetStore, asset_id: str) -> None:
    with pytest.raises(AssetNotFound, match="not kept here"):
        store.get(asset_id)
    with pytest.raises(KeyError):
        store.open(asset_id)


@pytest.mark.parametrize("session_id", ["", "\ud800", None, 7])
def test_what_is_no_id_of_a_session_is_an_error(store: SessionAssetStore, session_id: Any) -> None:
    with pytest.raises(ArgumentError, match="no id of a session"):
        store.put(session_id, b"", name="a")


def test_an_asset_is_asked_for_as_one_of_a_session(store: SessionAssetStore) -> None:
    asset = store.put("s1", b"x", name="a")

    assert store.get(asset.id, session_id="s1") == asset
    with pytest.raises(AssetNotFound):
        store.get(asset.id, session_id="s2")


def test_text_instead_of_bytes_is_an_error_that_says_so(store: SessionAssetStore, root: Path) -> None:
    with pytest.raises(ArgumentError, match="open it with 'rb'"):
        store.put("s1", io.StringIO("text"), name="a")  # type: ignore[arg-type]
    assert files_below(root) == []


def test_data_that_cannot_be_read_is_not_blamed_on_the_store(store: SessionAssetStore, root: Path) -> None:
    class Broken(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise OSError(errno.EIO, "the cable is out")

    with pytest.raises(ArgumentError, match="the cable is out"):
        store.put("s1", Broken(), name="a")  # type: ignore[arg-type]
    assert files_below(root) == []


# Forks and deletion.


def test_a_fork_has_the_assets_of_its_source_and_keeps_them(store: SessionAssetStore) -> None:
    asset = store.put("s1", b"shared", name="a")

    shared = store.share("s1", "s2")
    store.share("s1", "s2")
    store.delete_session("s1")
    store.collect()

    assert [one.id for one in shared] == [asset.id]
    assert [one.id for one in store.list("s2")] == [asset.id]
    assert store.get(asset.id).session_id == "s2"
    assert store.read(asset.id) == b"shared"


def test_deleted_assets_are_gone_and_their_content_is_collected(store: SessionAssetStore, root: Path) -> None:
    asset = store.put("s1", b"x", name="a")
    kept = store.put("s2", b"y", name="b")

    assert store.delete_session("s1") == 1
    assert store.delete_session("s1") == 0
    with pytest.raises(AssetNotFound):
        store.get(asset.id)
    assert store.collect().checked == {"content": 1, "temporary": 0}
    assert files_below(root) == [content_of(root, kept)]


def test_one_asset_is_taken_from_a_session(store: SessionAssetStore) -> None:
    one, other = store.put("s1", b"x", name="a"), store.put("s1", b"y", name="b")

    assert store.remove("s1", one.id)
    assert not store.remove("s1", one.id)
    assert store.list("s1") == (other,)


def test_content_that_another_session_put_as_well_is_not_collected(store: SessionAssetStore) -> None:
    store.put("s1", b"same", name="a")
    other = store.put("s2", b"same", name="b")

    store.delete_session("s1")
    store.collect()

    assert store.read(other.id) == b"same"


def test_an_id_can_be_restored_but_not_taken(store: SessionAssetStore) -> None:
    asset = store.put("s1", b"x", name="a")
    store.delete_session("s1")

    restored = store.put("s1", b"x", name="a", asset_id=asset.id)

    assert restored.id == asset.id
    assert store.put("s2", b"x", name="a", asset_id=asset.id).session_id == "s2"
    with pytest.raises(AssetRefused, match="another asset"):
        store.put("s3", b"other", name="a", asset_id=asset.id)
    assert store.read(asset.id) == b"x"


# Limits.


class Endless(io.RawIOBase):
    """A source without end that counts what is taken from it."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "reading without a limit would need all the memory there is"
        self.taken += size
        return b"a" * size


def test_a_stream_that_is_too_large_is_refused_while_it_is_read(root: Path) -> None:
    source = Endless()
    with SessionAssetStore(root, max_bytes=1_000_000) as store:
        with pytest.raises(AssetRefused, match="1000000 bytes"):
            store.put("s1", source, name="a")  # type: ignore[arg-type]

        assert store.list("s1") == ()
        assert source.taken < 2_000_000
        assert files_below(root) == []


def test_the_limit_itself_is_allowed(root: Path) -> None:
    with SessionAssetStore(root, max_bytes=3) as store:
        assert store.put("s1", b"123", name="a").size == 3
        with pytest.raises(AssetRefused):
            store.put("s1", b"1234", name="a")


def test_only_allowed_types_are_taken(root: Path) -> None:
    with SessionAssetStore(root, allowed_types=["image/*", "text/plain"]) as store:
        store.put("s1", PNG, name="a.png")
        store.put("s1", b"text", name="a.txt")
        with pytest.raises(AssetRefused, match="application/pdf, and only these"):
            store.put("s1", b"%PDF-1.7", name="a.png", media_type="image/png")
        assert len(files_below(root)) == 2


def test_allowed_types_are_a_list(root: Path) -> None:
    with pytest.raises(ArgumentError, match="list of media types"):
        SessionAssetStore(root, allowed_types="image/png")


def test_a_session_has_only_its_quota(root: Path) -> None:
    with SessionAssetStore(root, quota=10) as store:
        first = store.put("s1", b"12345678", name="a")
        with pytest.raises(AssetRefused, match="only 2 more"):
            store.put("s1", b"123", name="b")
        store.put("s2", b"123", name="b")
        store.remove("s1", first.id)

        assert store.put("s1", b"123", name="b").size == 3


# Kinds and names.


@pytest.mark.parametrize(
    ("data", "claimed", "kind"),
    [
        (PNG, None, "image/png"),
        (PNG, "text/html", "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/png", "image/jpeg"),
        (b"GIF87a", None, "image/gif"),
        (b"GIF89a", None, "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", None, "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav", "audio/wav"),
        (b"%PDF-1.4", None, "application/pdf"),
        (b"plain", None, "text/plain"),
        (b"# Title", "text/markdown; charset=utf-8", "text/markdown"),
        (b"{}", "Application/JSON", "application/json"),
        (b"<svg/>", "image/svg+xml", "image/svg+xml"),
        (b"plain", "image/png", "text/plain"),
        (b"plain", "application/zip", "text/plain"),
        (b"a\0b", None, "application/octet-stream"),
        (b"a\0b", "text/html", "application/octet-stream"),
        (b"a\0b", "image/png", "application/octet-stream"),
        (b"PK\x03\x04\0\0", "application/zip", "application/zip"),
        (b"a\0b", "no type", "application/octet-stream"),
        (b"a\0b", "a/b\r\nSet-Cookie: x", "application/octet-stream"),
        (b"\xc3", None, "application/octet-stream"),
        ("ü€😀".encode(), None, "text/plain"),
    ],
)
def test_the_kind_is_read_from_the_content(
    store: SessionAssetStore, data: bytes, claimed: str | None, kind: str
) -> None:
    assert store.put("s1", data, name="a", media_type=claimed).media_type == kind


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_the_kind_does_not_depend_on_how_content_is_cut(data: bytes, cuts: list[int]) -> None:
    whole, pieces = Sniffer(), Sniffer()
    whole.feed(data)
    places = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(places):
        pieces.feed(data[start:end])

    assert pieces.media_type() == whole.media_type()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("..", "file"),
        ("", "file"),
        ("a\tb\n c.txt", "a b c.txt"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("bell\x07\x1b[31m", "bell[31m"),
        ("half\ud800.txt", "half.txt"),
        ('a<b>:"c|?*', "a_b___c___"),
        (".hidden", "hidden"),
        ("folder/", "folder"),
        ("x" * 300 + ".png", "x" * 116 + ".png"),
        ("x" * 300, "x" * 120),
        (None, "file"),
    ],
)
def test_a_name_is_cleaned_for_showing(name: Any, shown: str) -> None:
    assert display_name(name) == shown


@given(st.text())
def test_a_cleaned_name_is_short_visible_and_stays_as_it_is(name: str) -> None:
    shown = display_name(name)

    assert 0 < len(shown) <= 120
    assert not set(shown) & set('/\\\0\n\r\t<>:"|?*')
    assert shown not in (".", "..")
    assert display_name(shown) == shown


# Nothing from outside becomes a path.

STEPS = ("..", "../..", "%2e%2e", "%252e%252e", "..\\..", "....//", "..;", ".\u2024", "\uff0e\uff0e", "~")
TARGETS = (
    *("outside", "assets.db", "content", "outside\0.png", "/etc/passwd"),
    *("C:\\boot.ini", "CON", "a" * 5000, "outside/", "\u202e.txt"),
)
TRAVERSALS = [f"{step}/{target}" for step in STEPS for target in TARGETS]


def test_a_hundred_names_reach_nothing_outside(tmp_path: Path, store: SessionAssetStore, root: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    before = sorted(tmp_path.iterdir())

    for name in TRAVERSALS:
        asset = store.put(f"session {name}", b"x", name=name, media_type=name)
        assert store.read(asset.id) == b"x"
        with pytest.raises(AssetNotFound):
            store.open(name)
        assert store.list(name) == ()
    store.delete_session("../outside")
    store.collect()

    assert len(TRAVERSALS) == 100
    assert outside.read_text() == "untouched"
    assert sorted(tmp_path.iterdir()) == before
    assert [path.name for path in files_below(root)] == [sha256(b"x").hexdigest()]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b"])
def test_a_folder_takes_no_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    with folders.Folder.root(tmp_path) as folder, pytest.raises(ValueError, match="no name of a file"):
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

    with pytest.raises(StoreDamaged, match="is gone"):
        store.read(asset.id)
    assert "is gone" in store.check().problems[0]


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

    assert report.problems and "no folder of ours" in report.problems[0]
    assert [path.name for path in elsewhere.iterdir()] == [asset.sha256]


@on_posix
def test_an_index_that_is_a_link_is_refused(tmp_path: Path, root: Path) -> None:
    root.mkdir()
    (root / "assets.db").symlink_to(tmp_path / "elsewhere.db")

    with pytest.raises(StoreDamaged, match="link to another place"):
        SessionAssetStore(root)
    assert not (tmp_path / "elsewhere.db").exists()


@on_posix
def test_swapping_folders_for_links_meanwhile_leads_nowhere(
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
            # Any step may fail, since the store makes the folder anew where it finds none.
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


def test_what_is_being_written_is_no_leftover(store: SessionAssetStore) -> None:
    class Collecting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            store.collect()
            return super().read(size)

    asset = store.put("s1", Collecting(b"still here"), name="a")

    assert store.read(asset.id) == b"still here"


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


def test_damage_is_found(store: SessionAssetStore, root: Path) -> None:
    fine, gone, short, changed = (
        store.put("s1", word, name="a") for word in (b"fine", b"gone", b"cut", b"was")
    )
    content_of(root, gone).unlink()
    content_of(root, short).write_bytes(b"cu")
    content_of(root, changed).write_bytes(b"is!")

    shallow, deep = store.check(), store.check(deep=True)

    assert shallow.checked == {"assets": 4}
    assert [asset.id for asset in (gone, short) for problem in shallow.problems if asset.id in problem] == [
        gone.id, short.id,
    ]  # fmt: skip
    assert len(deep.problems) == 3 and not any(fine.id in problem for problem in deep.problems)
    with pytest.raises(StoreDamaged, match="not what was kept"):
        store.open(short.id)


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


def test_a_closed_store_says_so(root: Path) -> None:
    store = SessionAssetStore(root)
    store.close()

    with pytest.raises(StoreUnavailable, match="is closed"):
        store.list("s1")


# Many at once.


def test_threads_put_share_delete_and_collect_at_once(store: SessionAssetStore, root: Path) -> None:
    def work(number: int) -> list[tuple[str, bytes]]:
        kept = []
        for turn in range(15):
            data = b"content %d" % (turn % 5)
            asset = store.put(f"s{number}", data, name=f"{turn}")
            doomed = store.put(f"doomed {number}", data, name="doomed")
            store.share(f"s{number}", f"fork {number}")
            assert store.read(doomed.id) == data
            store.delete_session(f"doomed {number}")
            store.collect()
            kept.append((asset.id, data))
        return kept

    with ThreadPoolExecutor(4) as pool:
        kept = [item for items in pool.map(work, range(4)) for item in items]

    assert all(store.read(asset_id) == data for asset_id, data in kept)
    assert store.check(deep=True).problems == ()
    assert len(store.list("fork 0")) == 15
    assert len(files_below(root)) == 5


def test_two_stores_on_one_folder_agree(root: Path) -> None:
    with SessionAssetStore(root) as one, SessionAssetStore(root) as other:
        asset = one.put("s1", b"x", name="a")
        assert other.read(asset.id) == b"x"
        other.delete_session("s1")
        other.collect()
        with pytest.raises(AssetNotFound):
            one.read(asset.id)


@on_posix
def test_many_stores_collect_while_others_put(root: Path) -> None:
    """Each thread has a store of its own, as processes would: only files and the index keep them apart."""

    def put(number: int) -> list[str]:
        with SessionAssetStore(root) as store:
            return [store.put(f"s{number}", b"%d" % (turn % 3), name="a").id for turn in range(20)]

    def collect(_number: int) -> list[str]:
        with SessionAssetStore(root) as store:
            for _ in range(20):
                store.collect()
        return []

    SessionAssetStore(root).close()
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(job, number) for number in range(2) for job in (put, collect)]
        ids = [asset_id for future in made for asset_id in future.result()]

    with SessionAssetStore(root) as store:
        assert len(ids) == 40
        assert all(store.read(asset_id) in (b"0", b"1", b"2") for asset_id in ids)
        assert store.check(deep=True).problems == ()
