"""What goes with a message: files, pictures, the output of a command. Checked here, before it is sent."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_terminal_app.chat.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LONGEST_TEXT = 512 * 1024
LARGEST_IMAGE = 5 * 1024 * 1024
MOST_BYTES = 20 * 1024 * 1024
MOST = 20
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class NotAttached(AgentError):  # noqa: N818 - reads as what happened
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
    name = one_line(str(path))
    data = _read(path, name)
    kind = _kind(data)
    if kind in _IMAGES:
        if len(data) > LARGEST_IMAGE:
            raise _too_large(name, len(data), LARGEST_IMAGE, "make the picture smaller")
        picture = {"type": "image", "mime_type": kind, "data": b64encode(data).decode(), "name": path.name}
        return Attachment(name, picture, len(data))
    if kind != "text/plain":
        raise NotAttached(
            f"{name} is {kind}: text files and PNG, JPEG, GIF and WebP pictures can be attached"
        )
    if len(data) > LONGEST_TEXT:
        raise _too_large(name, len(data), LONGEST_TEXT, "attach a part of it")
    return text_attachment(name, f"File {name}:\n\n{data.decode('utf-8-sig')}")


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
    if size < 1024:  # noqa: PLR2004 - a kilobyte
        return f"{size} bytes"
    return f"{size / 1024:.0f} kB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"


def _read(path: Path, name: str) -> bytes:
    """Return the content of an ordinary file; a pipe or a device could go on for ever."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as source:  # noqa: PTH123 - it is open already
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise NotAttached(f"{name} is no ordinary file: name one")
            if about.st_size > LARGEST_IMAGE:
                raise _too_large(name, about.st_size, LARGEST_IMAGE, "attach a part of it")
            return source.read(LARGEST_IMAGE + 1)
    except IsADirectoryError:
        raise NotAttached(f"{name} is a folder: name a file in it") from None
    except OSError as error:
        raise NotAttached(f"{name} cannot be read: {error.strerror or error}") from error


def _kind(data: bytes) -> str:
    from agent_app.assets.media import Sniffer

    sniffer = Sniffer()
    sniffer.feed(data)
    return sniffer.media_type()


def _too_large(name: str, size: int, most: int, instead: str) -> NotAttached:
    return NotAttached(f"{name} is too large ({readable(size)}, at most {readable(most)}): {instead}")
