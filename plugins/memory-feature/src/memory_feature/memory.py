"""One memory: a short text with the moment it was written, and the Markdown file that has both.

::

    ---
    created: 2026-11-18T09:30:00Z
    ---
    The tea is in the left cupboard.

A file that somebody wrote by hand needs no head. Lines of a head that are not ours stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from agent_core import AgentError
from agent_core.clean_text import clean, one_line
from agent_plugin_kit.secrets import SHAPES, is_secret_name, is_secret_value

LONGEST_TEXT: Final = 2_000
MOST_BYTES: Final = 16_384
"""The largest file that is read: the longest text in any script, with a long head."""
ENDING: Final = ".md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_HEAD = re.compile(r"---\n(.*?)^---(?:\n(.*))?", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"(created|changed): ([0-9TZ:+.-]{4,40})")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{1,63})=(\S{6})")
_WORDS = re.compile(r"[a-z0-9]+")
_LONGEST_NAME = 48


class MemoryProblem(AgentError):
    """A memory cannot be kept, or is not there; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something to remember.

    Attributes:
        name: The name of its file, without the ending.
        text: What is remembered.
        created: When it was written, in ISO 8601; empty if a person wrote the file by hand.
        changed: When it was changed last.
        more: Other lines of the head, which are not ours.
        written: When its file was written, as the system says; empty if it was not read from one.
    """

    name: str
    text: str
    created: str = ""
    changed: str = ""
    more: tuple[str, ...] = ()
    written: str = field(default="", compare=False)

    @property
    def at(self) -> str:
        """The moment by which memories are ordered; nobody can date one later than its file."""
        said = self.changed or self.created
        return min(said, self.written) if said and self.written else said or self.written

    def with_text(self, text: str) -> Memory:
        """Return the memory with another text, changed now."""
        return replace(self, text=checked_text(text), changed=now())

    def to_file(self) -> str:
        """Return the content of its file."""
        own = [("created", self.created), ("changed", self.changed)]
        head = [*(f"{name}: {value}" for name, value in own if value), *self.more]
        lines = ["---", *head, "---"] if head or self.text.startswith("---") else []
        return "\n".join([*lines, self.text, ""])

    @classmethod
    def from_file(cls, name: str, content: bytes, written: float | None = None) -> Memory:
        """Read a file.

        Args:
            written: When it was written, in seconds since 1970.

        Raises:
            MemoryProblem: If it is not text, is empty or is too long.
        """
        try:
            text = _lines(content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise MemoryProblem("it is not UTF-8") from None
        found = _HEAD.fullmatch(text)
        lines, body = (found[1].split("\n")[:-1], found[2] or "") if found else ([], text)
        fields: dict[str, str] = {}
        more = []
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field and field[1] not in fields:
                fields[field[1]] = field[2]
            else:
                more.append(line)
        fields["written"] = "" if written is None else _moment(datetime.fromtimestamp(written, tz=UTC))
        return cls(name=name, text=_sized(clean(body).strip()), more=tuple(more), **fields)


def now() -> str:
    """Return this moment, as heads have it."""
    return _moment(datetime.now(tz=UTC))


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def checked_text(text: str) -> str:
    """Return a text as it is kept: without characters that nobody sees.

    Raises:
        MemoryProblem: If it is empty or too long, or has a secret in it.
    """
    kept = _sized(clean(_lines(text)).strip())
    if has_secret(kept):
        raise MemoryProblem(
            "the text seems to contain a password, key or token, and a memory is sent to the model again and "
            "again: say where the secret is kept instead"
        )
    return kept


def has_secret(text: str) -> bool:
    """Say whether a text has a secret in it: by its form, or as a variable with a secret's name."""
    if is_secret_value(text) or any(shape.expression.search(text) for shape in SHAPES):
        return True
    return any(is_secret_name(found[1]) for found in _ASSIGNMENT.finditer(text))


def shortened(text: str, longest: int) -> str:
    """Return a text as one line, with … at its end if it is too long."""
    line = one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def name_for(text: str) -> str:
    """Return a name for a file, from the first words of its text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = ""
    for word in _WORDS.findall(plain):
        longer = f"{name}-{word}" if name else word
        if len(longer) > _LONGEST_NAME:
            break
        name = longer
    return name or "memory"


def is_name(name: str) -> bool:
    """Say whether a memory can have this name: letters, digits, - and _, at most 80 of them."""
    return _NAME.fullmatch(name) is not None


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _sized(text: str) -> str:
    if not text:
        raise MemoryProblem("it has no text: write at least a few words")
    if len(text) > LONGEST_TEXT:
        raise MemoryProblem(
            f"it has {len(text):,} characters, and {LONGEST_TEXT:,} are the most: keep what matters"
        )
    return text
