"""How much of anything: memory and answers stay small, whatever is asked for.

A file up to `LARGEST_FILE` is read into memory, so it can be changed, searched and compared. A larger one can
be read page by page. An answer is cut at a size that a model can still take in.
"""

from __future__ import annotations

KILOBYTE, MEGABYTE = 1000, 1_000_000

LARGEST_FILE = 10 * MEGABYTE
LARGEST_IMAGE = 5 * MEGABYTE
LARGEST_PATCH_FILES = 100
LARGEST_PATCH_BYTES = 50 * MEGABYTE
LARGEST_RULES = MEGABYTE
"""Of a .gitignore, more than this is not read."""

PAGE_LINES = 2000
PAGE_BYTES = 60_000
LONGEST_LINE = 2000
"""How many bytes of one line `read_file` shows."""

LONGEST_NAME = 4096
MOST_IN_FOLDER = 200_000
DEEPEST_FOLDER = 100
"""Folders further down are not walked into; each one on the way holds a file descriptor."""

LISTED_BY_DEFAULT = 200
MOST_LISTED = 2000
LONGEST_MATCH = 400
ANSWER_CHARACTERS = 60_000

SHOWN_DIFF = 50_000
"""Bytes of a diff that a person is shown; what is longer ends with a note."""


def amount(size: int) -> str:
    """Return a number of bytes as people write it."""
    if size < KILOBYTE:
        return "1 byte" if size == 1 else f"{size} bytes"
    for unit, name in ((KILOBYTE, "kB"), (MEGABYTE, "MB")):
        if size < 1000 * unit:
            return f"{size / unit:.1f} {name}"
    return f"{size / 1_000_000_000:.1f} GB"
