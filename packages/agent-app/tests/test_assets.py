"""What every asset store keeps and refuses, in a folder and in PostgreSQL, and what no one can make it do."""

from __future__ import annotations

import errno
import io
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_app.assets import Asset, AssetNotFound, AssetRefused, AssetStore, open_assets
from agent_app.assets.asset import Sniffer, display_name
from agent_app.errors import StoreDamaged, StoreUnavailable
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import AssetHome

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20

on_posix = pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")


@pytest.fixture
def store(asset_home: AssetHome) -> Iterator[AssetStore]:
    ticks = count(1000)
    with asset_home.open(clock=lambda: float(next(ticks))) as opened:
        yield opened


# Keeping and reading.


def test_what_was_put_is_found_by_its_id(store: AssetStore) -> None:
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


def test_it_is_all_there_after_reopening(asset_home: AssetHome) -> None:
    with asset_home.open() as store:
        asset = store.put("s1", PNG, name="a.png")
    with asset_home.open() as store:
        assert store.list("s1") == (asset,)
        assert store.read(asset.id) == PNG
        assert store.check(deep=True).problems == ()


def test_a_part_can_be_read(store: AssetStore) -> None:
    asset = store.put("s1", io.BytesIO(b"0123456789"), name="digits")

    assert store.read(asset.id, 3, 4) == b"3456"
    assert store.read(asset.id, 8) == b"89"
    assert store.read(asset.id, 100, 5) == b""
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(ArgumentError, match="negative"):
            store.read(asset.id, start, length)


def test_content_is_read_as_a_file(store: AssetStore) -> None:
    data = random.Random(1).randbytes(1_000_000)
    asset = store.put("s1", io.BytesIO(data), name="a")

    with store.open(asset.id) as file:
        assert file.read(10) == data[:10]
        assert file.seek(262_140) == 262_140
        assert file.read(10) == data[262_140:262_150]
        assert file.tell() == 262_150
        assert file.seek(-5, io.SEEK_END) == len(data) - 5
        assert file.read() == data[-5:] and file.read() == b""
        assert file.seek(-3, io.SEEK_CUR) == len(data) - 3
        assert file.read(100) == data[-3:]
        file.seek(500_000)
        assert file.read() == data[500_000:]
        with pytest.raises((OSError, ValueError)):
            file.seek(-1)
    assert store.read(asset.id) == data
    assert store.read(asset.id, 262_143, 300_000) == data[262_143:562_143]


def test_the_same_content_is_kept_once_under_two_ids(store: AssetStore, asset_home: AssetHome) -> None:
    one = store.put("s1", b"same", name="a")
    other = store.put("s2", b"same", name="b")

    assert one.id != other.id and one.sha256 == other.sha256
    assert asset_home.kept() == [one.sha256]


def test_putting_content_again_heals_it(store: AssetStore, asset_home: AssetHome) -> None:
    one = store.put("s1", b"precious", name="a")
    asset_home.spoil(one, b"damaged!")

    store.put("s2", b"precious", name="b")

    assert store.read(one.id) == b"precious"


def test_an_empty_asset_is_an_asset(store: AssetStore) -> None:
    asset = store.put("s1", b"", name="empty")

    assert (asset.size, asset.media_type, store.read(asset.id)) == (0, "text/plain", b"")


@pytest.mark.parametrize("asset_id", ["asset_" + "0" * 32, "", "../assets.db", "\ud800", "a\0b"])
def test_an_unknown_id_is_not_found(store: AssetStore, asset_id: str) -> None:
    with pytest.raises(AssetNotFound, match="there is no asset"):
        store.get(asset_id)
    with pytest.raises(KeyError):
        store.open(asset_id)


@pytest.mark.parametrize("session_id", ["", "\ud800", "a\0b", "a" * 501, None, 7])
def test_what_is_no_id_of_a_session_is_an_error(store: AssetStore, session_id: Any) -> None:
    with pytest.raises(ArgumentError, match="not a valid session id"):
        store.put(session_id, b"", name="a")
    with pytest.raises(ArgumentError, match="not a valid session id"):
        store.list(session_id)


def test_an_asset_is_asked_for_as_one_of_a_session(store: AssetStore) -> None:
    asset = store.put("s1", b"x", name="a")

    assert store.get(asset.id, session_id="s1") == asset
    with pytest.raises(AssetNotFound):
        store.get(asset.id, session_id="s2")


def test_text_instead_of_bytes_is_an_error_that_says_so(store: AssetStore, asset_home: AssetHome) -> None:
    with pytest.raises(ArgumentError, match="open it with 'rb'"):
        store.put("s1", io.StringIO("text"), name="a")  # type: ignore[arg-type]
    assert asset_home.kept() == []


def test_data_that_cannot_be_read_is_not_blamed_on_the_store(
    store: AssetStore, asset_home: AssetHome
) -> None:
    class Broken(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes:
            raise OSError(errno.EIO, "the cable is out")

    with pytest.raises(ArgumentError, match="the cable is out"):
        store.put("s1", Broken(), name="a")  # type: ignore[arg-type]
    assert asset_home.kept() == []


# Forks and deletion.


def test_a_fork_has_the_assets_of_its_source_and_keeps_them(store: AssetStore) -> None:
    asset = store.put("s1", b"shared", name="a")

    shared = store.share("s1", "s2")
    store.share("s1", "s2")
    store.delete_session("s1")
    store.collect()

    assert [one.id for one in shared] == [asset.id]
    assert [one.id for one in store.list("s2")] == [asset.id]
    assert store.get(asset.id).session_id == "s2"
    assert store.read(asset.id) == b"shared"


def test_deleted_assets_are_gone_and_their_content_is_collected(
    store: AssetStore, asset_home: AssetHome
) -> None:
    asset = store.put("s1", b"x", name="a")
    kept = store.put("s2", b"y", name="b")

    assert store.delete_session("s1") == 1
    assert store.delete_session("s1") == 0
    with pytest.raises(AssetNotFound):
        store.get(asset.id)
    assert store.collect().checked == {"content": 1, "temporary": 0}
    assert asset_home.kept() == [kept.sha256]


def test_one_asset_is_taken_from_a_session(store: AssetStore) -> None:
    one, other = store.put("s1", b"x", name="a"), store.put("s1", b"y", name="b")

    assert store.remove("s1", one.id)
    assert not store.remove("s1", one.id)
    assert store.list("s1") == (other,)


def test_content_that_another_session_put_as_well_is_not_collected(store: AssetStore) -> None:
    store.put("s1", b"same", name="a")
    other = store.put("s2", b"same", name="b")

    store.delete_session("s1")
    store.collect()

    assert store.read(other.id) == b"same"


def test_an_id_can_be_restored_but_not_taken(store: AssetStore) -> None:
    asset = store.put("s1", b"x", name="a")
    store.delete_session("s1")

    restored = store.put("s1", b"x", name="a", asset_id=asset.id)

    assert restored.id == asset.id
    assert store.put("s2", b"x", name="a", asset_id=asset.id).session_id == "s2"
    with pytest.raises(AssetRefused, match="another asset"):
        store.put("s3", b"other", name="a", asset_id=asset.id)
    assert store.read(asset.id) == b"x"
    assert store.list("s3") == ()
    with pytest.raises(ArgumentError, match="not a valid asset id"):
        store.put("s3", b"x", name="a", asset_id="a\0b")


# Limits.


class Endless(io.RawIOBase):
    """A source without end that counts what is taken from it."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "reading without a limit would need all the memory there is"
        self.taken += size
        return b"a" * size


def test_a_stream_that_is_too_large_is_refused_while_it_is_read(asset_home: AssetHome) -> None:
    source = Endless()
    with asset_home.open(max_bytes=1_000_000) as store:
        with pytest.raises(AssetRefused, match="1000000 bytes"):
            store.put("s1", source, name="a")  # type: ignore[arg-type]

        assert store.list("s1") == ()
        assert source.taken < 2_000_000
        assert asset_home.kept() == []


def test_the_limit_itself_is_allowed(asset_home: AssetHome) -> None:
    with asset_home.open(max_bytes=3) as store:
        assert store.max_bytes == 3
        assert store.put("s1", b"123", name="a").size == 3
        with pytest.raises(AssetRefused):
            store.put("s1", b"1234", name="a")


def test_only_allowed_types_are_taken(asset_home: AssetHome) -> None:
    with asset_home.open(allowed_types=["image/*", "text/plain"]) as store:
        store.put("s1", PNG, name="a.png")
        store.put("s1", b"text", name="a.txt")
        with pytest.raises(AssetRefused, match="application/pdf, and only these"):
            store.put("s1", b"%PDF-1.7", name="a.png", media_type="image/png")
        assert len(asset_home.kept()) == 2


def test_allowed_types_are_a_list(asset_home: AssetHome) -> None:
    with pytest.raises(ArgumentError, match="list of media types"):
        asset_home.open(allowed_types="image/png")


def test_many_at_once_have_only_their_quota_together(asset_home: AssetHome) -> None:
    with asset_home.open(quota=10) as store, ThreadPoolExecutor(8) as pool:

        def put(number: int) -> int:
            try:
                store.put("s1", b"%04d" % number, name="a")
            except AssetRefused:
                return 0
            return 1

        assert sum(pool.map(put, range(16))) == 2
        assert sum(asset.size for asset in store.list("s1")) == 8


def test_a_session_has_only_its_quota(asset_home: AssetHome) -> None:
    with asset_home.open(quota=10) as store:
        first = store.put("s1", b"12345678", name="a")
        with pytest.raises(AssetRefused, match="room for 2 more"):
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
    store: AssetStore, data: bytes, claimed: str | None, kind: str
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


# Nothing from outside becomes a path or a statement.

STEPS = ("..", "../..", "%2e%2e", "%252e%252e", "..\\..", "....//", "..;", ".\u2024", "\uff0e\uff0e", "~")
TARGETS = (
    *("outside", "assets.db", "content", "outside\0.png", "/etc/passwd"),
    *("C:\\boot.ini", "'; DELETE FROM assets; --", "a" * 5000, "outside/", "\u202e.txt"),
)
TRAVERSALS = [f"{step}/{target}" for step in STEPS for target in TARGETS]


def test_a_hundred_names_reach_nothing_outside(
    tmp_path: Path, store: AssetStore, asset_home: AssetHome
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    before = sorted(tmp_path.iterdir())

    is_folder = Path(asset_home.address).is_dir()
    for name in TRAVERSALS if is_folder else TRAVERSALS[::11]:  # a database has no paths
        session_id = f"session {name}".replace("\0", "%00")[:500]
        asset = store.put(session_id, b"x", name=name, media_type=name)
        assert store.read(asset.id) == b"x"
        with pytest.raises(AssetNotFound):
            store.open(name)
        assert store.list(session_id.removeprefix("session ")) == ()
    store.delete_session("../outside")
    store.collect()

    assert len(TRAVERSALS) == 100
    assert outside.read_text() == "untouched"
    assert sorted(tmp_path.iterdir()) == before
    assert asset_home.kept() == [sha256(b"x").hexdigest()]


# Faults.


def test_what_is_being_written_is_no_leftover(store: AssetStore) -> None:
    class Collecting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            store.collect()
            return super().read(size)

    asset = store.put("s1", Collecting(b"still here"), name="a")

    assert store.read(asset.id) == b"still here"


@on_posix
def test_a_process_that_dies_while_data_comes_in_leaves_nothing_that_anybody_sees(
    asset_home: AssetHome,
) -> None:
    program = """
import io, os, sys
from agent_app.assets import open_assets

class Dying(io.BytesIO):
    def read(self, size=-1):
        if self.tell():
            os.kill(os.getpid(), 9)
        return super().read(5)

open_assets(sys.argv[1]).put("s1", Dying(b"0123456789"), name="a")
"""
    died = subprocess.run([sys.executable, "-c", program, asset_home.address], check=False)
    with asset_home.open() as store:
        assert died.returncode == -9
        assert store.list("s1") == ()
        assert store.collect().checked["content"] == 0
        assert asset_home.kept() == []
        assert store.check(deep=True).checked == {"assets": 0}


def test_what_one_process_puts_another_one_reads(asset_home: AssetHome) -> None:
    program = """
import sys
from agent_app.assets import open_assets

with open_assets(sys.argv[1]) as store:
    print(store.put("s1", b"from afar" * 100_000, name="a").id)
"""
    asset_home.open().close()
    told = subprocess.run(
        [sys.executable, "-c", program, asset_home.address], check=True, capture_output=True, text=True
    )
    with asset_home.open() as store:
        (asset,) = store.list("s1")
        assert asset.id == told.stdout.strip()
        assert store.read(asset.id) == b"from afar" * 100_000


def test_damage_is_found(store: AssetStore, asset_home: AssetHome) -> None:
    fine, gone, short, changed = (
        store.put("s1", word, name="a") for word in (b"fine", b"gone", b"cut", b"was")
    )
    asset_home.spoil(gone, None)
    asset_home.spoil(short, b"cu")
    asset_home.spoil(changed, b"is!")

    shallow, deep = store.check(), store.check(deep=True)

    assert shallow.checked == {"assets": 4}
    assert [asset.id for asset in (gone, short) for problem in shallow.problems if asset.id in problem] == [
        gone.id, short.id,
    ]  # fmt: skip
    assert len(deep.problems) == 3 and not any(fine.id in problem for problem in deep.problems)
    with pytest.raises(StoreDamaged, match="was changed"):
        store.open(short.id)


def test_a_closed_store_says_so(asset_home: AssetHome) -> None:
    store = asset_home.open()
    store.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        store.list("s1")


# Many at once.


def test_threads_put_share_delete_and_collect_at_once(store: AssetStore, asset_home: AssetHome) -> None:
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
    assert len(asset_home.kept()) == 5


def test_two_stores_of_one_place_agree(asset_home: AssetHome) -> None:
    with asset_home.open() as one, asset_home.open() as other:
        asset = one.put("s1", b"x", name="a")
        assert other.read(asset.id) == b"x"
        other.delete_session("s1")
        other.collect()
        with pytest.raises(AssetNotFound):
            one.read(asset.id)


def test_many_stores_collect_while_others_put(asset_home: AssetHome) -> None:
    """Each thread has a store of its own, as processes would: only the place keeps them apart."""

    def put(number: int) -> list[str]:
        with asset_home.open() as store:
            return [store.put(f"s{number}", b"%d" % (turn % 3), name="a").id for turn in range(20)]

    def collect(_number: int) -> list[str]:
        with asset_home.open() as store:
            for _ in range(20):
                store.collect()
        return []

    asset_home.open().close()
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(job, number) for number in range(2) for job in (put, collect)]
        ids = [asset_id for future in made for asset_id in future.result()]

    with asset_home.open() as store:
        assert len(ids) == 40
        assert all(store.read(asset_id) in (b"0", b"1", b"2") for asset_id in ids)
        assert store.check(deep=True).problems == ()


# Opening.


def test_an_address_opens_the_store_of_its_kind(asset_home: AssetHome) -> None:
    with asset_home.open() as store, open_assets(asset_home.address) as same:
        assert type(same) is type(store)
        assert same.read(store.put("s1", b"x", name="a").id) == b"x"


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no asset store for 'sqlite' addresses: write a folder"):
        open_assets("sqlite:///assets.db")
