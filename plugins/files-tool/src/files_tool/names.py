"""Names of files, as a model writes them and as answers show them."""

from __future__ import annotations

import posixpath
import re

from files_tool.errors import Refused
from files_tool.limits import LONGEST_NAME

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_GLOB = re.compile(r"[*?\\]")


def parts_of(name: str) -> tuple[str, ...]:
    """Return the steps of a name from folder to file; whether it is absolute is not looked at.

    Raises:
        Refused: If it is no name, or one that climbs.
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
        raise Refused(f"{shown(name)} has '..' in it: write the name from the workspace's root down")
    return parts


def subjects(name: str, *, is_folder: bool = False) -> list[str]:
    """Return what permission rules are held against for a name.

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
