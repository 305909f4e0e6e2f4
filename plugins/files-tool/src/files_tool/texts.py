"""Bytes and what they say: encodings, line ends, what is not text, and lines that almost fit."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from files_tool.places import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence


_SAMPLE = 8192
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
_FEW = 0.1


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text, with what is needed to write another one in its manner.

    Attributes:
        text: The text itself, without a byte order mark, with the line ends that it has.
        encoding: How it is written.
        mark: The byte order mark that it begins with, if any.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def line_end(self) -> str:
        """The line end that most lines have."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows > self.text.count("\n") - windows else "\n"

    @property
    def is_guessed(self) -> bool:
        """True if nothing but hope says that this is the encoding."""
        return self.encoding == "latin-1"

    def encode(self, text: str, name: str) -> bytes:
        """Return another text as bytes in the same manner.

        Raises:
            Refused: If the encoding has no way to write it.
        """
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = text[error.start]
            if "\ud800" <= char <= "\udfff":
                raise Refused("the new text is not valid Unicode: leave out the lone surrogate") from error
            raise Refused(
                f"{name} is written in {self.encoding}, which has no {char!r}: use another character, or "
                "write the whole file again with write_file"
            ) from error


def decode(data: bytes) -> Text | None:
    """Return the text of a file, None if it is none.

    A byte order mark says how to read it. Without one it is UTF-8, and what is neither UTF-8 nor full of
    controls is taken for Latin-1.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark) and not data.startswith(codecs.BOM_UTF32_LE):
            return _decode(data[len(mark) :], encoding, mark)
    if b"\0" in data:
        return None
    return _decode(data, "utf-8", b"") or (
        None if _is_binary(data) else Text(data.decode("latin-1"), "latin-1")
    )


def looks_binary(sample: bytes) -> bool:
    """Say whether the beginning of a file is not text that could be read in pages."""
    if sample.startswith(codecs.BOM_UTF8):
        return b"\0" in sample
    return b"\0" in sample or (not _begins_as_utf8(sample) and _is_binary(sample))


def _decode(data: bytes, encoding: str, mark: bytes) -> Text | None:
    try:
        return Text(data.decode(encoding), encoding, mark)
    except UnicodeDecodeError:
        return None


def _begins_as_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(
            sample
        )  # an unfinished character at the end is none yet
    except UnicodeDecodeError:
        return False
    return True


def _is_binary(data: bytes) -> bool:
    sample = data[:_SAMPLE]
    return len(sample) - len(sample.translate(None, _CONTROLS)) > _FEW * len(sample)


class PlainLines:
    """A text with all its line ends as a mere newline, and the way back to where things were."""

    def __init__(self, original: str) -> None:
        self.text = original.replace("\r\n", "\n")
        self._original = original
        self._removed: list[int] | None = None

    def original_place(self, at: int) -> int:
        """Return where in the original a place of the plain text is."""
        if len(self.text) == len(self._original):
            return at
        if self._removed is None:
            self._removed = self._places()
        return at + bisect_right(self._removed, at - 1)

    def _places(self) -> list[int]:
        """Return where in the plain text the newlines are that were longer before."""
        places, found, removed = [], self._original.find("\r\n"), 0
        while found >= 0:
            places.append(found - removed)
            removed += 1
            found = self._original.find("\r\n", found + 2)
        return places


_WORD = re.compile(r"\w+|[^\w\s]")
_SHOWN = 12
_LONGEST = 200
_ALIKE = 0.3


def nearest_lines(text: str, wanted: str) -> str:
    """Return a sentence with the numbered lines that look most like *wanted*; empty if none does."""
    lines, looked_for = text.split("\n"), wanted.strip("\n").split("\n")
    at = _only_spaced_otherwise(lines, looked_for)
    if at is not None:
        return ". The same text with other white space is there:\n" + _numbered(lines, at, len(looked_for))
    at = _most_alike(lines, looked_for)
    return "" if at is None else ". The nearest lines are:\n" + _numbered(lines, at, len(looked_for))


def _only_spaced_otherwise(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    bare = ["".join(line.split()) for line in lines]
    looked_for = ["".join(line.split()) for line in wanted]
    if not any(looked_for):
        return None
    starts = (at for at, line in enumerate(bare) if looked_for[0] in line)
    return next((at for at in starts if _follow(bare[at : at + len(wanted)], looked_for)), None)


def _follow(bare: Sequence[str], wanted: Sequence[str]) -> bool:
    """Say whether lines have what is wanted: the first one at its end, the last one at its beginning."""
    if len(wanted) == 1:
        return wanted[0] in bare[0]
    return (
        len(bare) == len(wanted)
        and bare[0].endswith(wanted[0])
        and bare[-1].startswith(wanted[-1])
        and list(bare[1:-1]) == list(wanted[1:-1])
    )


def _most_alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line at which *wanted* would begin if its longest line were where most of its words are."""
    anchor = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    words = set(_WORD.findall(wanted[anchor][: 10 * _LONGEST]))
    if not words:
        return None
    best, found = _ALIKE, None
    for at, line in enumerate(lines):
        others = set(_WORD.findall(line[: 10 * _LONGEST]))
        score = len(words & others) / len(words | others)
        if score > best:
            best, found = score, at
    return None if found is None else max(0, found - anchor)


def _numbered(lines: Sequence[str], at: int, count: int) -> str:
    taken = lines[at : at + min(count, _SHOWN)]
    return "\n".join(f"{number:>6}\t{line[:_LONGEST]}" for number, line in enumerate(taken, at + 1))
