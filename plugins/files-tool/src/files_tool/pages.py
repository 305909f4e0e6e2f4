"""`read_file`: a text in pages, an image to look at, and of anything else what it is."""

from __future__ import annotations

import io
import os
from base64 import b64encode
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from files_tool.contents import content_of, describe, image_size, image_type
from files_tool.descriptors import opened_file
from files_tool.limits import (
    LARGEST_FILE,
    LARGEST_IMAGE,
    LONGEST_LINE,
    PAGE_BYTES,
    PAGE_LINES,
    amount,
)
from files_tool.places import Refused
from files_tool.texts import decode, looks_binary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from files_tool.contents import Content
    from files_tool.places import Place

_HEAD = 8192
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Which lines are wanted, counted from 1.

    Attributes:
        start: The first.
        end: The last; None for as many as fit.
        numbered: Whether each line begins with its number.
    """

    start: int = 1
    end: int | None = None
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: the answer, and the whole content where it was read into memory."""

    answer: str | list[dict[str, Any]]
    content: Content | None = None


def read(place: Place, wanted: Range, is_cancelled: Callable[[], bool]) -> Reading:
    """Read a file for the model.

    Raises:
        Refused: If it cannot be read, or is neither text nor an image.
    """
    if wanted.end is not None and wanted.end < wanted.start:
        raise Refused(f"end_line {wanted.end} is before start_line {wanted.start}: swap them")
    with opened_file(place) as fd:
        size, head = os.fstat(fd).st_size, os.pread(fd, _HEAD, 0)
        media_type = image_type(head)
        if media_type is not None:
            return _image(place, fd, media_type, size)
        if size > LARGEST_FILE:
            return Reading(_page_of_large(place, fd, head, size, wanted, is_cancelled))
        content = content_of(place, fd)
    return Reading(_page_of_small(place, content, wanted, is_cancelled), content)


def _image(place: Place, fd: int, media_type: str, size: int) -> Reading:
    if size > LARGEST_IMAGE:
        raise Refused(
            f"{place.shown} is an image of {amount(size)}, and only images up to {amount(LARGEST_IMAGE)} can "
            "be shown: make a smaller copy"
        )
    content = content_of(place, fd)
    about = f"{place.shown}: {image_size(content.data, media_type)}{media_type}, {amount(size)}"
    data = b64encode(content.data).decode()
    image = {"type": "image", "mime_type": media_type, "data": data}
    return Reading([{"type": "text", "text": about}, image], content)


def _page_of_small(place: Place, content: Content, wanted: Range, is_cancelled: Callable[[], bool]) -> str:
    text = decode(content.data)
    if text is None:
        raise _no_text(place, content.data[:_HEAD], len(content.data))
    if not text.text:
        return "[the file is empty]"
    lines = text.text.count("\n") + (not text.text.endswith("\n"))
    if wanted.start > lines:
        raise Refused(f"{place.shown} has only {lines} lines: take a smaller start_line")
    page = _page(io.BytesIO(text.text.encode()), wanted, is_cancelled)
    notes = [f"read as {text.encoding}, since it is not UTF-8"] if text.is_guessed else []
    return page.answer(wanted, f"of {lines}", notes)


def _page_of_large(
    place: Place, fd: int, head: bytes, size: int, wanted: Range, is_cancelled: Callable[[], bool]
) -> str:
    if looks_binary(head):
        raise _no_text(place, head, size)
    with os.fdopen(os.dup(fd), "rb", _BLOCK) as stream:
        stream.seek(len(BOM_UTF8) if head.startswith(BOM_UTF8) else 0)
        page = _page(stream, wanted, is_cancelled)
    if not page.lines:
        raise Refused(f"{place.shown} has fewer than {wanted.start} lines: take a smaller start_line")
    return page.answer(wanted, f"of a file of {amount(size)}", [])


def _no_text(place: Place, head: bytes, size: int) -> Refused:
    return Refused(
        f"{place.shown} is not text but {describe(head)}, {amount(size)}: use a program that understands it"
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """Lines of a file, as far as they fit."""

    lines: list[str]
    is_end: bool

    def answer(self, wanted: Range, total: str, notes: list[str]) -> str:
        last = wanted.start + len(self.lines) - 1
        shown = [
            f"{number:>6}\t{line}" if wanted.numbered else line
            for number, line in enumerate(self.lines, wanted.start)
        ]
        if not self.is_end or wanted.start > 1:
            more = "" if self.is_end else f"; continue with start_line {last + 1}"
            notes = [f"lines {wanted.start} to {last} {total}{more}", *notes]
        return "\n".join([*shown, f"[{'; '.join(notes)}]"] if notes else shown)


def _page(stream: BinaryIO, wanted: Range, is_cancelled: Callable[[], bool]) -> _Page:
    """Gather as many of the wanted lines as fit."""
    _pass_over(stream, wanted.start - 1, is_cancelled)
    limit = min(PAGE_LINES, (wanted.end or PAGE_LINES + wanted.start) - wanted.start + 1)
    gathered: list[str] = []
    left = PAGE_BYTES
    for line, cut in _lines(stream, is_cancelled):
        if len(gathered) == limit or (left < len(line) and gathered):
            return _Page(gathered, is_end=False)
        gathered.append(_readable(line) + (f" [{cut} bytes more in this line]" if cut else ""))
        left -= len(line) + 1
    return _Page(gathered, is_end=True)


def _pass_over(stream: BinaryIO, lines: int, is_cancelled: Callable[[], bool]) -> None:
    """Go to the beginning of a line, or to the end if there are not so many."""
    while lines and (block := stream.read(_BLOCK)):
        _go_on(is_cancelled)
        count = block.count(b"\n")
        if count < lines:
            lines -= count
            continue
        end = 0
        for _ in range(lines):
            end = block.index(b"\n", end) + 1
        stream.seek(end - len(block), os.SEEK_CUR)
        return


def _lines(stream: BinaryIO, is_cancelled: Callable[[], bool]) -> Iterator[tuple[bytes, int]]:
    """Yield the beginning of each line, and how much of it is left out."""
    while line := stream.readline(LONGEST_LINE + 2):
        cut = 0
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line, rest = line[:LONGEST_LINE], line[LONGEST_LINE:]
            cut = len(rest)
            while not rest.endswith(b"\n") and (rest := stream.readline(_BLOCK)):
                _go_on(is_cancelled)
                cut += len(rest.removesuffix(b"\n"))
        yield line.removesuffix(b"\n").removesuffix(b"\r"), cut


def _go_on(is_cancelled: Callable[[], bool]) -> None:
    if is_cancelled():
        raise Refused("it was cancelled")


def _readable(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        # The end of a line that was cut may be half a character; anything else is not UTF-8.
        return line[: error.start].decode() if error.end == len(line) else line.decode("latin-1")
