"""What kind of data an asset is, and what it is called.

Both come from outside, and neither is believed. The kind is read from the content; a claim counts where
the content does not contradict it. A name is for showing: what could fool a reader is taken out of it.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

TEXT = "text/plain"
UNKNOWN = "application/octet-stream"
_LONGEST_NAME = 120
_NAMELESS = "file"
_HEAD = 16
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_TEXTUAL = re.compile(
    r"text/.*|.*\+(?:json|xml|yaml)|application/"
    r"(?:json|xml|yaml|x-yaml|toml|x-ndjson|jsonl|javascript|x-sh|sql|x-python|rtf)"
)
_NOT_IN_A_NAME = re.compile(r'[<>:"|?*]')
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_KNOWN_BY_BEGINNING = frozenset({media_type for _, media_type in _BEGINNINGS} | {"image/webp"})


class Sniffer:
    """Looks at content as it comes by and says what kind it is."""

    def __init__(self) -> None:
        self._head = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True

    def feed(self, piece: bytes) -> None:
        """Look at the next piece."""
        if len(self._head) < _HEAD:
            self._head += piece[:_HEAD]
        if self._is_text:
            self._is_text = b"\0" not in piece and self._decodes(piece, final=False)

    def media_type(self, claimed: str | None = None) -> str:
        """Return the kind of everything that came by; the claimed one if the content allows it."""
        known = _by_beginning(self._head)
        if known is not None:
            return known
        is_text = self._is_text and self._decodes(b"", final=True)
        claim = read_media_type(claimed)
        if claim is None or claim in _KNOWN_BY_BEGINNING or is_textual(claim) != is_text:
            return TEXT if is_text else UNKNOWN
        return claim

    def _decodes(self, piece: bytes, *, final: bool) -> bool:
        try:
            self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            return False
        return True


def _by_beginning(head: bytes) -> str | None:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for begin, media_type in _BEGINNINGS if head.startswith(begin)), None)


def read_media_type(claimed: object) -> str | None:
    """Return a media type without its parameters, or None if it is not written like one."""
    bare = claimed.partition(";")[0].strip().lower() if isinstance(claimed, str) else ""
    return bare if _MEDIA_TYPE.fullmatch(bare) else None


def is_textual(media_type: str) -> bool:
    """Say whether data of a media type is text."""
    return _TEXTUAL.fullmatch(media_type) is not None


def display_name(name: object) -> str:
    """Return a name that can be shown and offered for saving.

    Folders, control characters, marks that turn the direction of writing, and what some file systems
    forbid are gone; what is left is cut to a length, with its ending kept.
    """
    text = name if isinstance(name, str) else ""
    last = unicodedata.normalize("NFC", text.replace("\\", "/").rstrip("/").rpartition("/")[2])
    visible = "".join(" " if char.isspace() else char for char in last if char.isspace() or _is_visible(char))
    cleaned = _NOT_IN_A_NAME.sub("_", " ".join(visible.split())).strip(". ")
    return _shortened(cleaned) or _NAMELESS


def _is_visible(char: str) -> bool:
    return not unicodedata.category(char).startswith("C")


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > _LONGEST_NAME // 4:
        return name[:_LONGEST_NAME].rstrip(". ")
    return stem[: _LONGEST_NAME - len(ending) - 1].rstrip(". ") + dot + ending
