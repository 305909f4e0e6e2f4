"""From bytes to text: the byte order mark, what the server says, what the page says, what it looks like."""

from __future__ import annotations

import codecs
import re

_MARKS = (
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
# Python knows more: some are no charsets, in some text reads other than it looks (utf-7, unicode_escape).
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
    for mark, name in _MARKS:
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
