"""What a body is: by what the server says, and by how it begins.

Servers are wrong often enough. A body that is said to be text and begins like a picture, or has zero bytes,
is shown to nobody as text; and a picture is only passed on if it begins like one.
"""

from __future__ import annotations

import codecs
import re
from typing import Literal

Kind = Literal["html", "text", "image", "binary"]

HTML_TYPES = ("text/html", "application/xhtml+xml")
_LOOK_AT = 1024
_BEGINNINGS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
    (re.compile(rb"PK\x03\x04"), "application/zip"),
    (re.compile(rb"\x1f\x8b"), "application/gzip"),
    (re.compile(rb"\x7fELF"), "application/x-elf"),
)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# The group in the lookahead stands for `(?:...)*+`, which loses its place before Python 3.11.5 (gh-106052).
_HTML_BEGINS = re.compile(
    rb"(?=((?:\s|<!--.*?-->)*))\1<(?:!doctype html|html|head|body|title)\b", re.IGNORECASE | re.DOTALL
)


def media_type(content_type: str) -> str:
    """Return the type without its parameters, in lower case; empty if there is none."""
    name = content_type.partition(";")[0].strip().lower()
    return name if re.fullmatch(r"[\w.+-]{1,60}/[\w.+-]{1,60}", name, re.ASCII) else ""


def charset(content_type: str) -> str | None:
    """Return the charset that a Content-Type names."""
    found = re.search(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", content_type, re.IGNORECASE | re.ASCII)
    return None if found is None else found[1]


def recognise(said: str, body: bytes) -> tuple[Kind, str]:
    """Return what a body is, and its media type: the one *said*, unless its beginning shows another."""
    begins = body[:_LOOK_AT]
    seen = next((name for beginning, name in _BEGINNINGS if beginning.match(begins)), None)
    if seen is not None:
        return ("image" if seen.startswith("image/") else "binary"), seen
    if b"\0" in begins and not begins.startswith(_MARKS):
        return "binary", said or "application/octet-stream"
    if said.startswith("image/") and said != "image/svg+xml":
        return "binary", said
    if said in HTML_TYPES or (not said and _HTML_BEGINS.match(begins)):
        return "html", said or "text/html"
    return "text", said or "text/plain"


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Pages name the small brother and use the big one; browsers know that (WHATWG, Encoding).
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
# Python knows more: some are not charsets, in some text reads other than it looks (utf-7, unicode_escape).
_FOR_PAGES = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp(?:125\d|437|866|874|932|949|950)|koi8-[rtu]|mac-\w+|tis-620|kz1048|"
    r"gb18030|gbk|gb2312|big5(?:hkscs)?|euc_\w+|shift_jis\w*|iso2022_\w+|johab"
)
_DECLARED = re.compile(
    rb"<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*[\"']?\s*([\w.:+-]{1,40})", re.IGNORECASE
)
_DECLARED_WITHIN = 4096
_SAMPLE = 64 * 1024


def decode(body: bytes, said: str | None) -> str:
    """Return a body as text; bytes that are none in its charset become question marks."""
    for mark, name in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    name = _known(said) or _known(_declared(body)) or _guessed(body)
    return body.decode(name, "replace")


def _known(name: str | None) -> str | None:
    """Return the charset that is meant by a name, if pages are written in it."""
    try:
        found = codecs.lookup(name or "").name
    except LookupError:
        return None
    return _MEANT.get(found, found) if _FOR_PAGES.fullmatch(found) else None


def _declared(body: bytes) -> str | None:
    found = _DECLARED.search(body[:_DECLARED_WITHIN])
    return None if found is None else found[1].decode("ascii", "replace")


def _guessed(body: bytes) -> str:
    if _is_utf8(body):
        return "utf-8"
    from charset_normalizer import from_bytes

    best = from_bytes(body[:_SAMPLE]).best()
    return (None if best is None else _known(best.encoding)) or "cp1252"


def _is_utf8(body: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)  # one that was cut may end within a character
    except UnicodeDecodeError:
        return False
    return True
