"""What a file is that is no text, by how it begins."""

from __future__ import annotations

import struct

IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_OTHERS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"MZ", "a program or library (PE)"),
    (b"\xcf\xfa\xed\xfe", "a program or library (Mach-O)"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"RIFF", "audio or video (RIFF)"),
)
_TAR, _TAR_AT = b"ustar", 257
_PNG_SIZE, _GIF_SIZE = slice(16, 24), slice(6, 10)


def image_type(head: bytes) -> str | None:
    """Return the media type of an image that models can look at; None for anything else."""
    for media_type, magic in IMAGES.items():
        if head.startswith(magic) and (media_type != "image/webp" or head[8:12] == b"WEBP"):
            return media_type
    return None


def describe(head: bytes) -> str:
    """Return what a binary file seems to be."""
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "a tar archive"
    if head[4:8] == b"ftyp":
        return "MP4 video, or a relative of it"
    return next((name for magic, name in _OTHERS if head.startswith(magic)), "binary data")


def image_size(head: bytes, media_type: str) -> str:
    """Return an image's size where it stands at the beginning, for an answer; empty elsewhere."""
    if media_type == "image/png" and len(head) >= _PNG_SIZE.stop:
        width, height = struct.unpack(">II", head[_PNG_SIZE])
    elif media_type == "image/gif" and len(head) >= _GIF_SIZE.stop:
        width, height = struct.unpack("<HH", head[_GIF_SIZE])
    else:
        return ""
    return f"{width} x {height} pixels, "
