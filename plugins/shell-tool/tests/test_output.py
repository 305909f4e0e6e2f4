"""Output that is too long: bounded in memory, on disk and for the model; whole for those who want it."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from agent_app.assets import SessionAssetStore
from shell_tool.output import Decoder, Output, decoded, from_character, whole_characters
from shell_tool.reports import Excerpt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Shell

LINES = "".join(f"line {number} äöü€\n" for number in range(2_000))
PIECES = st.lists(st.binary(max_size=12) | st.text(max_size=4).map(str.encode), max_size=12)


@pytest.fixture
def long(shell: Shell) -> Shell:
    (shell.workspace / "lines").write_text(LINES)
    shell.config["shell_output_bytes"] = 1_000
    return shell


def pages(shell: Shell, job: str, start: int = 0) -> str:
    """Read an output to its end, page by page."""
    text, offset = "", start
    while True:
        page = shell.about("shell_output", id=job, offset=offset)
        text += str(page["result"]).rpartition("\n[")[0]
        if page["next_offset"] == page["output_bytes"]:
            return text
        assert page["next_offset"] > offset
        offset = page["next_offset"]


def test_the_model_reads_the_beginning_and_the_end(long: Shell) -> None:
    result = long("cat lines")

    head, note, tail = re.split(r"\n\[(.*)\]\n", result["result"])
    assert LINES.startswith(head) and LINES.endswith(tail)
    assert 0 <= 1_000 - len((head + tail).encode()) < 8
    left_out = len(LINES.encode()) - len((head + tail).encode())
    assert note == (
        f"{left_out:,} of {len(LINES.encode()):,} bytes are left out here; "
        f"shell_output with id {result['id']} and offset {len(head.encode())} reads on"
    )


def test_what_was_left_out_can_be_read(long: Shell) -> None:
    result = long("cat lines")

    assert pages(long, result["id"]) == LINES
    assert pages(long, result["id"], start=6) == LINES.encode()[6:].decode()


def test_the_result_is_as_long_as_allowed_and_no_longer(shell: Shell) -> None:
    shell.config["shell_output_bytes"] = 10

    assert shell("printf 0123456789")["result"] == "0123456789"
    assert "id" not in shell("printf 0123456789")
    assert shell("printf 0123456789a")["result"].startswith("01234\n[1 of 11 bytes are left out here; ")


def test_only_so_much_is_kept(long: Shell) -> None:
    long.config["shell_keep_bytes"] = 5_000

    result = long("cat lines")

    assert "reads on, up to byte 5,000]" in result["result"]
    assert result["result"].endswith("line 1999 äöü€\n")
    assert long.tool.to_display_format("", result)["kept_bytes"] == 5_000
    page = long.about("shell_output", id=result["id"], offset=4_990)
    assert page["next_offset"] == 5_000
    beyond = long.about("shell_output", id=result["id"], offset=5_000)["result"]
    assert "only the first 5,000 bytes are kept; this is the end of" in beyond
    assert "line 1999 äöü€\n" in beyond


def test_only_so_much_is_shown_while_it_runs(long: Shell) -> None:
    long.config["shell_stream_bytes"] = 300

    *parts, result = long.stream(command="cat lines")

    shown = "".join(part["part"]["text"] for part in parts)
    assert LINES.startswith(shown.rstrip("\N{REPLACEMENT CHARACTER}"))
    assert 297 <= len(shown.encode()) <= 303
    assert result["output_bytes"] == len(LINES.encode())


def test_the_person_gets_the_whole(long: Shell, tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        result = long("cat lines", store=store)

        [asset] = store.list("s")
        assert asset.name == "shell-output.txt" and asset.media_type == "text/plain"
        assert store.read(asset.id).decode() == LINES
    display = long.tool.to_display_format(result["result"], result)
    assert display["asset_id"] == asset.id
    assert display["content"] == result["result"]


@pytest.mark.parametrize("asked", ["shell_output", "shell_stop"])
def test_the_person_gets_the_whole_of_a_command_in_the_background(
    long: Shell, tmp_path: Path, asked: str
) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        job = long.start("cat lines", store=store)
        long.about("shell_output", id=job, offset=len(LINES.encode()), wait=30)  # its end
        result = long.about(asked, id=job)

        [asset] = store.list("s")
        assert store.read(asset.id).decode() == LINES
    assert long.tool.to_display_format(result["result"], result)["asset_id"] == asset.id
    assert len(result["result"]) < 1_200


def test_what_a_command_wrote_until_it_was_stopped_is_kept(long: Shell, tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        job = long.start("cat lines; sleep 600", store=store)
        long.about("shell_output", id=job, offset=len(LINES.encode()) - 1, wait=30)
        result = long.about("shell_stop", id=job)

        assert [store.read(asset.id).decode() for asset in store.list("s")] == [LINES]
    head, note, tail = re.split(r"\n\[(.*)\]\n", result["result"].removesuffix("\n[stopped]") + "\n")
    assert LINES.startswith(head) and LINES.endswith(tail) and " bytes are left out here; " in note


def test_what_a_command_wrote_until_the_plugin_went_is_kept(long: Shell, tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        job = long.start("cat lines; sleep 600", store=store)
        long.about("shell_output", id=job, offset=len(LINES.encode()) - 1, wait=30)
        long.tool.close()

        assert [store.read(asset.id).decode() for asset in store.list("s")] == [LINES]


def test_a_command_that_nobody_asks_about_is_kept_too(
    long: Shell, tmp_path: Path, until: Callable[[Callable[[], bool]], None]
) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        long.start("cat lines", store=store)

        until(lambda: [asset.size for asset in store.list("s")] == [len(LINES.encode())])


def test_a_page_says_how_much_there_is(long: Shell) -> None:
    job = long.start("cat lines")
    long.about("shell_output", id=job, offset=len(LINES.encode()), wait=30)

    page = long.about("shell_output", id=job)

    assert page["result"].endswith(f"; next offset {page['next_offset']} of {len(LINES.encode()):,} bytes]")


def test_much_output_in_the_background_takes_little_memory(shell: Shell, tmp_path: Path) -> None:
    import tracemalloc

    size = 20_000_000
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        tracemalloc.start()
        job = shell.start(f"head -c {size} /dev/zero", store=store)
        shell.about("shell_output", id=job, offset=size, wait=60)
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert [asset.size for asset in store.list("s")] == [size]
    assert most < size / 4


def test_short_output_needs_no_store(long: Shell, tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        long("echo short", store=store)

        assert store.list("s") == ()


def test_a_store_that_refuses_costs_only_the_asset(long: Shell, tmp_path: Path) -> None:
    with closing(SessionAssetStore(tmp_path / "assets", max_bytes=10)) as store:
        result = long("cat lines", store=store)

    assert result["success"] is True
    assert result["asset_problem"].startswith(
        "the whole output could not be kept: an asset may have 10 bytes"
    )
    assert pages(long, result["id"]) == LINES


def test_a_disk_that_is_full_costs_only_what_does_not_fit() -> None:
    with open("/dev/full", "rb+", buffering=0) as full:  # noqa: PTH123 - a device
        output = Output(100, 4, full)
        output.write(b"some")
        output.write(b" more")

        assert (output.total, output.kept, output.tail(4)) == (9, 0, b"more")
        assert output.problem == "no more of the output could be kept: No space left on device"
        assert Excerpt.of(output, 4) == Excerpt(b"", b"re", 7)


def written(pieces: list[bytes], keep: int, tail: int) -> Output:
    output = Output(keep, tail)
    for piece in pieces:
        output.write(piece)
    return output


@given(PIECES, st.integers(1, 40), st.integers(1, 40), st.integers(0, 60), st.integers(0, 60))
def test_an_output_has_its_beginning_and_its_end(
    pieces: list[bytes], keep: int, tail: int, start: int, size: int
) -> None:
    whole = b"".join(pieces)
    with closing(written(pieces, keep, tail)) as output:
        assert output.total == len(whole)
        assert output.kept == min(keep, len(whole))
        assert output.is_full == (len(whole) > keep)
        assert output.read(start, size) == whole[:keep][start : start + size]
        assert output.tail(tail) == whole[-tail:]
        assert output.tail(0) == b""


@given(PIECES, st.integers(2, 40), st.integers(1, 60))
def test_an_excerpt_adds_up(pieces: list[bytes], limit: int, keep: int) -> None:
    whole = b"".join(pieces)
    with closing(written(pieces, keep, limit)) as output:
        excerpt = Excerpt.of(output, limit)

    assert whole.startswith(excerpt.head) and whole.endswith(excerpt.tail)
    assert len(excerpt.head) + excerpt.left_out + len(excerpt.tail) == len(whole)
    assert len(excerpt.head) + len(excerpt.tail) <= max(limit, 0)
    if len(whole) <= min(limit, keep):
        assert (excerpt.head, excerpt.left_out) == (whole, 0)


@given(PIECES)
def test_pieces_make_the_same_text_as_the_whole(pieces: list[bytes]) -> None:
    decoder = Decoder()

    text = "".join(decoder.text(piece) for piece in pieces) + decoder.text(b"", last=True)

    assert text == decoded(b"".join(pieces))
    assert "\0" not in text


@given(st.text(max_size=12), st.integers(0, 40))
def test_cuts_keep_characters_whole(text: str, place: int) -> None:
    data = text.encode()

    head, tail = whole_characters(data[:place]), from_character(data[place:])

    assert text.startswith(head.decode()) and text.endswith(tail.decode())
    assert place - len(head) < 4 or place > len(data)
    assert len(data[place:]) - len(tail) < 4


@pytest.mark.parametrize("junk", [b"\x80\x80\x80\x80\x80", b"\xff", b"", b"a\xf0\x9f"])
def test_cuts_of_junk_end(junk: bytes) -> None:
    assert len(whole_characters(junk)) >= len(junk) - 3
    assert len(from_character(junk)) >= len(junk) - 3


def test_nothing_is_kept_of_what_was_shown_whole(shell: Shell) -> None:
    shell("echo a")

    assert shell.about("shell_jobs")["result"] == "There are no commands in the background."
