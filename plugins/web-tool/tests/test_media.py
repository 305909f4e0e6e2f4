"""What a body is, how its bytes become text, and the frame around it."""

from __future__ import annotations

import re
import zlib

import pytest
from hypothesis import given, strategies as st

from web_tool.answers import WARNING, frame
from web_tool.fetch import unpacker_for
from web_tool.html_text import clean_text
from web_tool.media import charset, decode, media_type, recognise
from web_tool.urls import read_url

URL = read_url("https://a.example/x")


@pytest.mark.parametrize(
    ("header", "name", "named_charset"),
    [
        ("text/html", "text/html", None),
        ("Text/HTML ; Charset=UTF-8", "text/html", "UTF-8"),
        ('text/html; charset="iso-8859-1"', "text/html", "iso-8859-1"),
        ("text/html;boundary=x;charset='x'", "text/html", "x"),
        ("", "", None),
        ("text", "", None),
        ("a/b/c", "", None),
        ("text/ht ml", "", None),
        ("téxt/html", "", None),
        ("x" * 100 + "/y", "", None),
    ],
)
def test_a_content_type_is_read(header: str, name: str, named_charset: str | None) -> None:
    assert (media_type(header), charset(header)) == (name, named_charset)


@pytest.mark.parametrize(
    ("said", "body", "seen"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n...", ("image", "image/png")),
        ("image/jpeg", b"\x89PNG\r\n\x1a\n...", ("image", "image/png")),
        ("text/html", b"\xff\xd8\xff\xe0", ("image", "image/jpeg")),
        ("", b"GIF89a", ("image", "image/gif")),
        ("", b"RIFF\x01\x02\x03\x04WEBPVP8 ", ("image", "image/webp")),
        ("", b"RIFF\x01\x02\x03\x04WAVE\x00", ("binary", "application/octet-stream")),
        ("image/png", b"not a picture", ("binary", "image/png")),
        ("text/plain", b"\xff\xfea\x00b\x00", ("text", "text/plain")),
        ("text/plain", b"a\x00b", ("binary", "text/plain")),
        ("", b"", ("text", "text/plain")),
        ("text/plain", b"<html>", ("text", "text/plain")),
    ],
)
def test_a_body_is_known_by_how_it_begins(said: str, body: bytes, seen: tuple[str, str]) -> None:
    assert recognise(said, body) == seen


@pytest.mark.parametrize(
    ("body", "said", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode(), "latin-1", "Ã©"),
        (b"\xef\xbb\xbf\xc3\xa9", "latin-1", "é"),
        ("é".encode("utf-16"), None, "é"),
        (b"\xfe\xff\x00\xe9", "utf-8", "é"),
        (b"\xe9\x80", "iso-8859-1", "é€"),
        (b"\x93hi\x94", "us-ascii", "“hi”"),
        ("日本".encode("cp932"), "Shift_JIS", "日本"),
        ("한국".encode("cp949"), "ks_c_5601-1987", "한국"),
        ("中国".encode("gb18030"), "gb2312", "中国"),
        ('<meta charset="koi8-r">Чай'.encode("koi8-r"), None, '<meta charset="koi8-r">Чай'),
        (b'<meta http-equiv=x content="text/html; charset=cp1251">\xd7', None, None),
        ('<?xml version="1.0" encoding="iso-8859-1"?>é'.encode("latin-1"), None, None),
        (b"caf\xc3\xa9 caf\xc3", None, "café caf\ufffd"),
        (b"\xff\xff", "utf-8", "\ufffd\ufffd"),
        ("é".encode(), "no-such-charset", "é"),
        (b"+ADw-script+AD4-", "utf-7", "+ADw-script+AD4-"),
        (b"\\x41 ok", "unicode_escape", "\\x41 ok"),
        (b"6869", "hex", "6869"),
        (b'<meta charset="utf-16">hi', None, '<meta charset="utf-16">hi'),
        (b"", None, ""),
    ],
)
def test_bytes_become_text(body: bytes, said: str | None, text: str | None) -> None:
    expected = body.decode("cp1251" if b"cp1251" in body else "latin-1") if text is None else text

    assert decode(body, said) == expected


def test_a_page_that_says_nothing_is_guessed() -> None:
    words = "Это довольно длинное предложение на русском языке, чтобы угадать кодировку. " * 5

    assert decode(words.encode("cp1251"), None) == words


@given(
    st.binary(max_size=200),
    st.none() | st.sampled_from(["utf-8", "big5", "iso-2022-jp", "x", "euc-jp", "hz"]),
)
def test_any_bytes_become_some_text(body: bytes, said: str | None) -> None:
    decode(body, said).encode("utf-8", "strict")


def unpack(encoding: str, packed: bytes, size: int) -> bytes:
    unpacker = unpacker_for(encoding)
    pieces = [
        piece
        for start in range(0, len(packed), size)
        for piece in unpacker.unpack(packed[start : start + size])
    ]
    unpacker.finish()
    assert all(len(piece) <= 64 * 1024 for piece in pieces)
    return b"".join(pieces)


@given(
    st.lists(st.binary(max_size=3000) | st.integers(1, 300_000).map(lambda count: b"x" * count), max_size=4),
    st.integers(1, 5000),
)
def test_what_was_packed_comes_out_as_it_was_in_whatever_pieces_it_comes(
    members: list[bytes], size: int
) -> None:
    def packed(data: bytes, window: int) -> bytes:
        packer = zlib.compressobj(wbits=window)
        return packer.compress(data) + packer.flush()

    whole = b"".join(members)

    assert unpack("gzip", b"".join(packed(member, 31) for member in members), size) == whole
    assert unpack("deflate", packed(whole, 15), size) == whole


@given(st.text())
def test_nothing_in_a_frame_can_end_it(text: str) -> None:
    marks = [
        "</web_page>",
        "</WEB_page >",
        '<web_page url="x">',
        "< / web_page",
        "</web_\u200bpage>",
        "<\n/web_page>",
    ]
    for mark in marks:
        framed = frame(clean_text(f"{text}{mark}{text}"), URL)

        assert framed.startswith(f'{WARNING}\n<web_page url="https://a.example/x">\n')
        assert framed.endswith("\n</web_page>")
        assert len(re.findall(r"<[\s/]*web_page", framed, re.IGNORECASE)) == 2


@pytest.mark.parametrize(
    "unseen",
    [
        "\x1b[31m",
        "\u202e",
        "\u200b",
        "\u2066",
        "\ufeff",
        "\U000e0041",
        "\U000e0101",
        "\x07",
        "\u00ad",
        "\ud800",
    ],
)
def test_what_cannot_be_seen_is_taken_out(unseen: str) -> None:
    assert clean_text(f"a{unseen}b") == "ab" if len(unseen) == 1 else "a[31mb"


def test_line_ends_are_made_alike_and_joiners_stay() -> None:
    assert clean_text("a\r\nb\rc\td") == "a\nb\nc\td"
    assert clean_text("👩\u200d🔬 é\u200cb") == "👩\u200d🔬 é\u200cb"


@pytest.mark.parametrize("count", [64 * 1024, 64 * 1024 + 1, 64 * 1024 + 5])
def test_what_is_left_when_everything_was_taken_in_comes_out_too(count: int) -> None:
    packer = zlib.compressobj(9, wbits=-15)

    assert unpack("deflate", packer.compress(b"x" * count) + packer.flush(), 10**6) == b"x" * count
