"""Reading: pages, encodings, images, and what is neither."""

from __future__ import annotations

import base64
import codecs
import struct
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from agent_core import Cancellation
from files_tool.limits import LARGEST_FILE, LONGEST_LINE, PAGE_BYTES, PAGE_LINES
from files_tool.texts import Text, decode

if TYPE_CHECKING:
    from conftest import Files


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(b"".join(b"\0" + b"\0\0\0" * width for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_a_small_file_is_read_as_it_is(files: Files) -> None:
    files.put("a.py", "one\ntwo\n")

    assert files.run("read_file", path="a.py") == {
        "success": True,
        "result": "one\ntwo",
        "display": {"type": "code", "title": "a.py", "language": "py", "content": "one\ntwo"},
    }
    files.put("empty", "")
    assert files.ok("read_file", path="empty") == "[the file is empty]"


def test_lines_are_numbered_if_asked(files: Files) -> None:
    files.put("a.txt", "one\ntwo\nthree")

    assert files.ok("read_file", path="a.txt", numbered=True) == "     1\tone\n     2\ttwo\n     3\tthree"
    assert files.ok("read_file", path="a.txt", numbered=True, start_line=2, end_line=2) == (
        "     2\ttwo\n[lines 2 to 2 of 3; continue with start_line 3]"
    )


def test_a_long_file_comes_in_pages(files: Files) -> None:
    lines = [f"line {number}" for number in range(1, 4501)]
    files.put("a.txt", "\n".join(lines) + "\n")

    first = files.ok("read_file", path="a.txt").splitlines()
    second = files.ok("read_file", path="a.txt", start_line=2001).splitlines()
    third = files.ok("read_file", path="a.txt", start_line=4001).splitlines()

    assert first == [*lines[:2000], "[lines 1 to 2000 of 4500; continue with start_line 2001]"]
    assert second == [*lines[2000:4000], "[lines 2001 to 4000 of 4500; continue with start_line 4001]"]
    assert third == [*lines[4000:], "[lines 4001 to 4500 of 4500]"]
    assert files.refused("read_file", path="a.txt", start_line=4501) == (
        "a.txt has only 4500 lines: take a smaller start_line"
    )
    assert "swap them" in files.refused("read_file", path="a.txt", start_line=5, end_line=4)


@pytest.mark.parametrize("size", [100, LARGEST_FILE])
def test_long_lines_are_cut_and_pages_stay_small(files: Files, size: int) -> None:
    line = "x" * 5000
    files.put("a.txt", f"{line}\n" * 30 + "y" * size)

    page = files.ok("read_file", path="a.txt")

    assert page.startswith("x" * LONGEST_LINE + " [3000 bytes more in this line]\n")
    assert len(page) < PAGE_BYTES + 2000
    assert page.splitlines()[-1].startswith(f"[lines 1 to {PAGE_BYTES // (LONGEST_LINE + 1)} of ")
    last = files.ok("read_file", path="a.txt", start_line=31).splitlines()
    assert last[0] == ("y" * 100 if size == 100 else "y" * 2000 + f" [{size - 2000} bytes more in this line]")


def test_a_line_is_not_cut_in_the_middle_of_a_character(files: Files) -> None:
    files.put("a.txt", "x" * (LONGEST_LINE - 1) + "é" * 100)

    assert files.ok("read_file", path="a.txt") == "x" * (LONGEST_LINE - 1) + " [199 bytes more in this line]"


def test_a_large_file_is_read_like_a_small_one(files: Files) -> None:
    text = "".join(f"line {number} é\r\n" for number in range(900_000))
    files.put("a.txt", codecs.BOM_UTF8 + text.encode())

    assert len(text) > LARGEST_FILE
    assert files.ok("read_file", path="a.txt", end_line=1).startswith(
        "line 0 é\n[lines 1 to 1 of a file of 1"
    )
    page = files.ok("read_file", path="a.txt", start_line=899_999).splitlines()
    assert page[:2] == ["line 899998 é", "line 899999 é"]
    assert page[2].startswith("[lines 899999 to 900000 of a file of ")


@given(st.lists(st.text(st.characters(blacklist_characters="\r\n", codec="utf-8"), max_size=5), max_size=20),
       st.integers(1, 22), st.integers(0, 5))  # fmt: skip
def test_pages_are_slices(lines: list[str], start: int, count: int) -> None:
    import io

    from files_tool.pages import Range, _page

    data = "".join(f"{line}\n" for line in lines).encode()
    wanted = Range(start=start, end=start + count)

    page = _page(io.BytesIO(data), wanted, lambda: False)

    assert page.lines == lines[start - 1 : start + count]
    assert page.is_end == (start + count >= len(lines))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("päper\n".encode(), "päper"),
        (codecs.BOM_UTF8 + "päper\n".encode(), "päper"),
        (codecs.BOM_UTF16_LE + "päper\n".encode("utf-16-le"), "päper"),
        (codecs.BOM_UTF16_BE + "päper\n".encode("utf-16-be"), "päper"),
        ("päper\n".encode("latin-1"), "päper\n[read as latin-1, since it is not UTF-8]"),
        (b"one\r\ntwo\r\n", "one\ntwo"),
        ("日本語".encode(), "日本語"),
    ],
)
def test_encodings(files: Files, data: bytes, text: str) -> None:
    files.put("a.txt", data)

    assert files.ok("read_file", path="a.txt") == text


@given(st.text(), st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "latin-1"]), st.booleans())
def test_what_is_decoded_is_encoded_the_same(text: str, encoding: str, marked: bool) -> None:
    marks = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    mark = b"" if encoding == "latin-1" or (encoding == "utf-8" and not marked) else marks[encoding]
    try:
        data = mark + text.encode(encoding)
    except UnicodeEncodeError:
        return

    found = decode(data)

    if found is not None:
        assert found.encode(found.text, "x") == data
    elif encoding == "utf-8":
        assert b"\0" in data
    if found is not None and encoding != "latin-1" and not text.startswith("\ufeff"):
        assert found.text == text


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_not(data: bytes) -> None:
    found = decode(data)

    assert found is None or isinstance(found, Text)
    if found is not None:
        assert found.encode(found.text, "x") == data


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"%PDF-1.7\n\0", "a PDF document"),
        (b"PK\x03\x04\0", "a ZIP archive"),
        (b"\x7fELF\x02\0", "a program or library (ELF)"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\0" * 300, "binary data"),
        (b"\x00\x00\x00\x18ftypmp42", "MP4 video"),
        (b"a.txt" + b"\0" * 252 + b"ustar", "a tar archive"),
        (bytes(range(1, 32)) * 9 + b"\xff", "binary data"),
    ],
)
def test_what_is_no_text_is_named(files: Files, head: bytes, what: str) -> None:
    files.put("a.bin", head)

    problem = files.refused("read_file", path="a.bin")

    assert problem.startswith(f"a.bin is not text but {what}")
    assert f"{len(head)} bytes: use a program that understands it" in problem


@pytest.mark.parametrize(
    ("name", "data", "about"),
    [
        ("a.png", png(4, 3), "4 x 3 pixels, image/png"),
        ("b.gif", b"GIF89a\x05\x00\x06\x00\x00\x00\x00;", "5 x 6 pixels, image/gif"),
        ("c.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "image/jpeg"),
        ("d.webp", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ("misnamed.txt", png(1, 1), "1 x 1 pixels, image/png"),
    ],
)
def test_images_are_shown(files: Files, name: str, data: bytes, about: str) -> None:
    files.put(name, data)

    result = files.run("read_file", path=name)

    text, image = result["result"]
    assert text == {"type": "text", "text": f"{name}: {about}, {len(data)} bytes"}
    assert image["type"] == "image"
    assert image["mime_type"] in about
    assert base64.b64decode(image["data"]) == data
    assert result["display"] == {"type": "text", "content": text["text"]}


def test_images_that_are_too_large_are_not(files: Files) -> None:
    files.put("a.png", png(1, 1) + b"\0" * 5_000_000)

    assert "only images up to 5.0 MB can be shown" in files.refused("read_file", path="a.png")


def test_a_folder_is_not_read(files: Files) -> None:
    files.put("src/a.txt", "x")

    assert files.refused("read_file", path="src") == "src is a folder: list it with list_files"
    assert files.refused("read_file", path=".") == ". is a folder: list it with list_files"
    assert files.refused("read_file", path="src/a.txt/b") == (
        "src/a.txt is a file, not a folder: nothing can be in it"
    )


def test_a_page_has_no_more_lines_than_promised(files: Files) -> None:
    files.put("a.txt", "x\n" * (PAGE_LINES + 1))

    assert files.ok("read_file", path="a.txt", end_line=100_000).count("x") == PAGE_LINES


@pytest.mark.parametrize("tool", ["read_file", "search_files", "find_files", "list_files"])
def test_cancelling_ends_a_call(files: Files, tool: str) -> None:
    files.put("a.txt", "x" * 100 + "\n" + "line\n" * 3_000_000)
    token = Cancellation()
    token.cancel()
    arguments = {"path": "a.txt", "start_line": 3_000_000} if tool == "read_file" else {"path": "."}
    arguments |= {"pattern": "x", "glob": "*"} if tool != "read_file" else {}

    result = files.tool.execute_tool(tool, arguments, files.state, context=files.context, cancellation=token)

    assert result == {"success": False, "error": "it was cancelled"}
