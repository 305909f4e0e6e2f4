"""What a body is: by what the server says, and by how it begins.

Servers are wrong often enough. A body that is said to be text and begins like a picture, or has zero bytes,
is shown to nobody as text; and a picture is only passed on if it begins like one.
"""

from __future__ import annotations

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
_HTML_BEGINS = re.compile(
    rb"(?:\s|<!--.*?-->)*+<(?:!doctype html|html|head|body|title)\b", re.IGNORECASE | re.DOTALL
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
