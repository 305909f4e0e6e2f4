"""What goes with a message: text files, pictures, the output of a command; and `@file` mentions.

Everything is checked here, before it is sent. `Workspace` lists the files that can be mentioned, for
completion: those that git knows, or else those that a short walk finds.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import stat
import subprocess
import threading
import time
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.defaults import is_embedded
from agent_core import AgentError
from agent_terminal_app import lazy
from agent_terminal_app.chat.rendering.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_terminal_app.chat.conversation import Conversation

_KILOBYTE, _MEGABYTE = 1024, 1024 * 1024
LONGEST_TEXT = 512 * _KILOBYTE
LARGEST_IMAGE = 5 * _MEGABYTE
MOST_BYTES = 20 * _MEGABYTE
MOST = 20
_BYTES_PER_TOKEN = 4.5  # few texts have more, so what is refused would not have fitted
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class NotAttached(AgentError):
    """Something cannot go with a message; the text says why."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that goes with a message.

    Attributes:
        label: What people call it.
        part: The part of the message that it becomes.
        size: How many bytes it has.
    """

    label: str
    part: Mapping[str, Any]
    size: int

    def line(self) -> str:
        """Return it as people see it before it is sent."""
        return f"+ {one_line(self.label)}, {readable(self.size)}, goes with your next message"


def read_file(path: Path) -> Attachment:
    """Return a file as an attachment: text as text with its name, a picture as a picture.

    Raises:
        NotAttached: If it cannot be read, is too large, or is neither.
    """
    name = _shown(path)
    data = _read(path, name)
    kind = _kind(data)
    if kind in _IMAGES:
        if len(data) > LARGEST_IMAGE:
            raise _too_large(name, len(data), LARGEST_IMAGE, "make the picture smaller")
        picture = {"type": "image", "mime_type": kind, "data": b64encode(data).decode(), "name": path.name}
        return Attachment(name, picture, len(data))
    if kind != "text/plain":
        raise NotAttached(
            f"{name} cannot be attached, it is {kind}: attach text, or a PNG, JPEG, GIF or WebP picture"
        )
    if len(data) > LONGEST_TEXT:
        raise _too_large(name, len(data), LONGEST_TEXT, "attach a part of it")
    return text_attachment(name, f"File {one_line(str(path))}:\n\n{data.decode('utf-8-sig')}")


def _shown(path: Path) -> str:
    """Return a file as a person would write it: from the current folder or the home on, if it is in there."""
    for folder, begins in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(folder) and path != folder:
            return one_line(f"{begins}{path.relative_to(folder)}")
    return one_line(str(path))


def text_attachment(label: str, text: str) -> Attachment:
    """Return a text as an attachment."""
    return Attachment(label, {"type": "text", "text": text}, len(text.encode(errors="replace")))


def check_together(attachments: Sequence[Attachment]) -> None:
    """Check that one message can hold all of them.

    Raises:
        NotAttached: If they are too many, or too large together.
    """
    if len(attachments) > MOST:
        raise NotAttached(f"{len(attachments)} attachments are too many for one message: send at most {MOST}")
    size = sum(one.size for one in attachments)
    if size > MOST_BYTES:
        raise _too_large("all of it together", size, MOST_BYTES, "send it in several messages")


def readable(size: int) -> str:
    """Return a size as people read it."""
    if size < _KILOBYTE:
        return f"{size} bytes"
    return f"{size / _KILOBYTE:.0f} kB" if size < _MEGABYTE else f"{size / _MEGABYTE:.1f} MB"


def _read(path: Path, name: str) -> bytes:
    """Return the content of an ordinary file; a pipe or a device might never end."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as source:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise NotAttached(f"{name} is not a regular file: choose one that is")
            if about.st_size > LARGEST_IMAGE:
                raise _too_large(name, about.st_size, LARGEST_IMAGE, "attach a part of it")
            return source.read(LARGEST_IMAGE + 1)
    except IsADirectoryError:
        raise NotAttached(f"{name} is a folder: name a file in it") from None
    except OSError as error:
        raise NotAttached(f"{name} cannot be read: {error.strerror or error}") from error


def _kind(data: bytes) -> str:
    sniffer = lazy.Sniffer()
    sniffer.feed(data)
    return sniffer.media_type()


def _too_large(name: str, size: int, most: int, instead: str) -> NotAttached:
    return NotAttached(f"{name} is too large ({readable(size)}, at most {readable(most)}): {instead}")


_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_BEING_TYPED = re.compile(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')
_LIKE_A_PATH = re.compile(r"/|\.[A-Za-z]\w{0,4}$")
_BEHIND = ".,;:!?)]}'"


class Mentions(NamedTuple):
    """What a text mentions.

    Attributes:
        files: The files that are there.
        missing: What looks like a path and is none.
    """

    files: tuple[Path, ...]
    missing: tuple[str, ...]


def find_mentions(text: str, roots: Sequence[Path]) -> Mentions:
    """Return the files that a text mentions, each once, looked for in several folders."""
    files: dict[Path, None] = {}
    missing: dict[str, None] = {}
    for quoted, bare in _MENTION.findall(text):
        path = _find(quoted, roots) if quoted else _find_bare(bare, roots)
        if path is not None:
            files[path] = None
        elif _LIKE_A_PATH.search((quoted or bare).rstrip(_BEHIND)):
            missing[quoted or bare] = None
    return Mentions(tuple(files), tuple(missing))


def mention(path: str) -> str:
    """Return how a file is mentioned."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def open_mention(text: str) -> tuple[int, str] | None:
    """Return where the mention begins that a text ends with, and what of its path is typed; None if none."""
    found = _BEING_TYPED.search(text)
    return None if found is None else (found.start(), found[1] if found[1] is not None else found[2])


def _find_bare(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the file of a name, also if a sentence goes on or ends behind it."""
    return _find(name, roots) or _find(name.rstrip(_BEHIND), roots)


def _find(name: str, roots: Sequence[Path]) -> Path | None:
    if not name:
        return None
    for root in roots:
        try:
            path = root / Path(name).expanduser()
            if path.exists():
                return path
        except (OSError, RuntimeError, ValueError):  # a name too long, no home, a null character
            continue
    return None


class Gathered(NamedTuple):
    """What goes with a message, and what it mentions that is not there."""

    attached: list[Attachment]
    missing: tuple[str, ...]


async def gather(conversation: Conversation, text: str) -> Gathered:
    """Return what goes with a text.

    Raises:
        NotAttached: If one of these things cannot be sent, or all of them together.
    """
    attached, missing = list(conversation.attached), tuple[str, ...]()
    if "@" in text:
        files, missing = await asyncio.to_thread(_mentioned, conversation, text)
        attached += files
    check_together(attached)
    if attached:
        await _check_model(conversation, attached)
    return Gathered(attached, missing)


async def _check_model(conversation: Conversation, attached: Sequence[Attachment]) -> None:
    """Check that the model that answers can read what is attached, as far as that can be known.

    Raises:
        NotAttached: If it cannot.
    """
    try:
        reader = await conversation.reader()
    except AgentError:  # an agent that cannot run says so when it is asked
        return
    pictures = [one.label for one in attached if one.part["type"] == "image"]
    if pictures and reader.text_only:
        raise NotAttached(
            f"{one_line(pictures[0])} is a picture, and {model_name(reader.model)} reads only text: "
            "/model chooses another model"
        )
    tokens = round(sum(one.size for one in attached if one.part["type"] == "text") / _BYTES_PER_TOKEN)
    if reader.window is not None and tokens > reader.window:
        what = attached[0].label if len(attached) == 1 else "all of it together"
        raise _too_long(one_line(what), tokens, reader.window, reader.model)


def model_name(model: str) -> str:
    """Return what people call a model."""
    return "the embedded model" if is_embedded(model) else one_line(model.rstrip(":"))


def _too_long(what: str, tokens: int, window: int, model: str) -> NotAttached:
    return NotAttached(
        f"{what} has about {tokens:,} tokens, and {window:,} fit into {model_name(model)}: "
        "attach a part of it, or choose another model (/model)"
    )


def _mentioned(conversation: Conversation, text: str) -> tuple[list[Attachment], tuple[str, ...]]:
    mentions = find_mentions(text, [Path.cwd(), conversation.folder()])
    return [read_file(path) for path in mentions.files], mentions.missing


_MOST_FILES = 20_000
_SECONDS = 1.0
_FRESH = 10.0
_SHOWN = 30
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})


class Workspace:
    """The files below a folder; asked in a thread, since looking may take a moment.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._files: list[str] = []
        self._looked = -_FRESH

    def files(self) -> list[str]:
        """Return the files' paths from the root on, as of the last few seconds."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH:
                self._files = _listed(self.root)
                self._looked = time.monotonic()
            return self._files

    def matching(self, query: str) -> list[str]:
        """Return the paths that a query begins; then files whose path has its letters in this order."""
        real = _real_paths(query, self.root)[:_SHOWN]
        pattern = _in_order(query)
        known = {*real, query}
        found = [path for path in self.files() if path not in known and pattern.match(path)]
        return [*real, *heapq.nsmallest(_SHOWN - len(real), found, key=lambda path: _rank(path, query))]


def _real_paths(query: str, root: Path) -> list[str]:
    """Return the folders and files that a path begins as it is typed, from the root, the home or the top."""
    if not query:
        return []
    folder, slash, begun = query.rpartition("/")
    place = root / Path(f"{folder}{slash}" or ".").expanduser()
    try:
        inside = sorted(os.scandir(place), key=lambda one: (not one.is_dir(), one.name.lower()))
    except (OSError, RuntimeError, ValueError):
        return []
    low = begun.lower()
    fits = [one for one in inside if one.name.lower().startswith(low) and (begun or one.name[0] != ".")]
    names = (f"{folder}{slash}{one.name}{'/' if one.is_dir() else ''}" for one in fits)
    return [name for name in _showable(iter(names)) if name != query]


def _in_order(query: str) -> re.Pattern[str]:
    """Return a pattern for letters in order; it never goes back, however the path is made."""
    pieces = (f"[^{re.escape(char)}]*{re.escape(char)}" for char in query)
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)


def _rank(path: str, query: str) -> tuple[bool, bool, bool, int, str]:
    low, wanted = path.lower(), query.lower()
    name = low.rpartition("/")[2]
    return not name.startswith(wanted), wanted not in name, wanted not in low, len(path), path


def _listed(root: Path) -> list[str]:
    found = _from_git(root)
    names = _walked(root) if found is None else iter(found)
    return [name for name, _ in zip(_showable(names), range(_MOST_FILES), strict=False)]


def _showable(names: Iterator[str]) -> Iterator[str]:
    """Leave out names that would show other than they are."""
    return (name for name in names if name and "\n" not in name and clean(name) == name)


def _from_git(root: Path) -> list[str] | None:
    """Return what git tracks, and what it does not ignore; None if this is not a git repository.

    A repository can be hostile: its settings must not start a program. One would tell which files have
    changed (core.fsmonitor), another would fetch patterns of ignored files that are missing.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit", "-C", str(root)]
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    fetching = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [*command, *listing],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **fetching},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return list(dict.fromkeys(done.stdout.decode(errors="surrogateescape").split("\0")))


def _walked(root: Path) -> Iterator[str]:
    until = time.monotonic() + _SECONDS
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
        inside = Path(folder).relative_to(root)
        yield from (str(inside / name) for name in sorted(files) if not name.startswith("."))
        if time.monotonic() > until:
            return
