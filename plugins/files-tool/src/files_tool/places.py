"""Places in the workspace: how models write their names, how answers show them, and which are protected.

What is protected belongs to the program that runs the tools, and so to no workspace: its keys, sessions and
settings. The program lists it in `protected_paths` of the configuration. Each is known by its path, whether
it exists or not, and while it exists also by what the file system knows it by. So another spelling of a
name, a mount and a hard link to a file that is listed open no way to it; links are not followed anyway.
"""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from files_tool.limits import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Refused(Exception):
    """The call is answered with this text, which says what was wrong and what to do instead."""


class Missing(Refused):
    """There is no such file or folder."""


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_GLOB = re.compile(r"[*?\\]")


def parts_of(name: str) -> tuple[str, ...]:
    """Return the steps of a name from folder to file; whether it is absolute is not looked at.

    Raises:
        Refused: If it is not a name, or one that climbs.
    """
    if not name.strip():
        raise Refused("the name is empty: name a file or folder, or '.' for the workspace itself")
    if "\0" in name:
        raise Refused(f"{shown(name)} has a NUL character, which no file name has: leave it out")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Refused(f"{shown(name)} is not valid Unicode: list the folder to see its names") from None
    if size > LONGEST_NAME:
        raise Refused(f"the name has {size} bytes, and no file's has more than {LONGEST_NAME}: shorten it")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Refused(f"{shown(name)} has '..' in it: write the name relative to the workspace's root")
    return parts


def subjects(name: str, *, is_folder: bool = False) -> list[str]:
    """Return what permission rules are compared with for a name.

    A relative name is itself, in its shortest spelling; a folder ends in a slash, so that `src/*` is about
    it. Which root an absolute name is meant to be in is not known here, so it is about every end of itself:
    a rule against `src/secret.txt` catches it under any root, and a rule that allows must allow all of it.
    """
    if not isinstance(name, str):
        return []
    end = "/" if is_folder else ""
    normal = posixpath.normpath(name or ".")
    if not normal.startswith("/"):
        return [normal + end]
    parts = [part for part in normal.split("/") if part]
    return ["/" + "/".join(parts) + end, *("/".join(parts[at:]) + end for at in range(len(parts)))]


def within_root(name: Any, roots: Sequence[str]) -> Any:
    """Return an absolute name in the workspace from its first root down, as a person would write it."""
    if not isinstance(name, str) or not name.startswith("/") or not roots:
        return name
    normal, root = posixpath.normpath(name), posixpath.normpath(roots[0])
    if normal == root:
        return "."
    return normal.removeprefix(f"{root}/") if normal.startswith(f"{root}/") else name


def folder_glob(name: str) -> str | None:
    """Return the glob for everything in a file's folder; None at the top, where that would be everything."""
    folder = posixpath.dirname(posixpath.normpath(name))
    return _GLOB.sub(r"\\\g<0>", folder) + "/*" if folder and not folder.startswith("/") else None


def shown(name: str) -> str:
    """Return a name on one line, safe to print: what cannot be seen is written as an escape."""
    return _UNSEEN.sub(_escape, name[:LONGEST_NAME])


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if "\udc80" <= char <= "\udcff":  # how Python hands over a byte that is not UTF-8
        char = chr(ord(char) - 0xDC00)
    return f"\\x{ord(char):02x}" if char <= "\xff" else f"\\u{ord(char):04x}"


_SPECIAL = "*?[\\ "


@dataclass(frozen=True, slots=True)
class Protected:
    """Files, and folders with all that is in them.

    Attributes:
        paths: Where they are, as absolute paths without links.
        identities: The device and the number of each that exists.
        numbers: The numbers alone, which can be compared without asking the system.
    """

    paths: tuple[str, ...] = ()
    identities: frozenset[tuple[int, int]] = frozenset()
    numbers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, paths: Iterable[str]) -> Protected:
        """Return what is at these paths now."""
        known, found = tuple(paths), set[tuple[int, int]]()
        for path in known:
            with suppress(OSError, ValueError):
                state = os.stat(path)  # noqa: PTH116 - before every call, and this is the quickest
                found.add((state.st_dev, state.st_ino))
        return cls(known, frozenset(found), frozenset(number for _, number in found))

    def covers(self, path: str) -> bool:
        """Say whether an absolute path is one of these, or below one."""
        return any(path == own or path.startswith(f"{own.rstrip('/')}/") for own in self.paths)

    def is_(self, state: os.stat_result) -> bool:
        """Say whether a file or folder is one of these, whatever its name."""
        return (state.st_dev, state.st_ino) in self.identities

    def lists(self, entry: os.DirEntry[str]) -> bool:
        """Say the same of something in a folder."""
        if not self.numbers or entry.inode() not in self.numbers:
            return False
        try:
            return self.is_(entry.stat(follow_symlinks=False))
        except OSError:  # gone again
            return False

    def rules_in(self, root: str) -> list[str]:
        """Return rules, as a .gitignore has them, that leave out what is below a folder."""
        start = f"{root.rstrip('/')}/"
        inside = [path.removeprefix(start) for path in self.paths if path.startswith(start)]
        return ["/" + "".join(f"\\{char}" if char in _SPECIAL else char for char in path) for path in inside]


NOTHING = Protected()


def is_protected(place: Place) -> Refused:
    """Return the refusal of what is protected, in words for the model."""
    return Refused(
        f"{place.shown} belongs to the program that runs this, not to the workspace: do without it"
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the workspace, where something may be or not.

    Attributes:
        root: The folder of the workspace, an absolute path without links.
        parts: The way down from there; empty for the root itself.
        is_first: True in the workspace's first root, where names are relative.
        protected: What is not part of any workspace, wherever it is met on the way.
    """

    root: str
    parts: tuple[str, ...]
    is_first: bool = True
    protected: Protected = field(default=NOTHING, compare=False, repr=False)

    @property
    def path(self) -> str:
        """The way down as one text; empty for the root itself."""
        return "/".join(self.parts)

    @property
    def absolute(self) -> str:
        """The same from the top of the file system."""
        return "/".join((self.root.rstrip("/"), *self.parts)) or "/"

    @property
    def shown(self) -> str:
        """What answers call it: the name by which a tool takes it."""
        return shown((self.path or ".") if self.is_first else self.absolute)

    @property
    def folder(self) -> Place:
        """The folder that it is in."""
        return self.upto(len(self.parts) - 1)

    def upto(self, depth: int) -> Place:
        """Return the place after so many steps of the way."""
        return replace(self, parts=self.parts[:depth])

    def below(self, path: str) -> Place:
        """Return the place at a relative path from this root."""
        return replace(self, parts=tuple(part for part in path.split("/") if part))
