"""One line that tells a person what a call will do."""

from __future__ import annotations

from typing import Any

from files_tool.errors import Refused
from files_tool.limits import amount
from files_tool.names import shown
from files_tool.patches import read_patch
from files_tool.schemas import EDIT, FIND, LIST, PATCH, READ, SEARCH, WRITE

_LONGEST = 120
_NAMED = 3


def preview(tool_name: str, arguments: dict[str, Any]) -> str:
    """Return the line for a call; whatever the arguments are, it is one line."""
    write = _PREVIEWS.get(tool_name)
    line = shown(write(arguments) if write else tool_name)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _read(arguments: dict[str, Any]) -> str:
    start, end = arguments.get("start_line"), arguments.get("end_line")
    if start is None and end is None:
        return f"Read {_path(arguments)}"
    return f"Read {_path(arguments)}, lines {start or 1} to {'the end' if end is None else end}"


def _write(arguments: dict[str, Any]) -> str:
    size = len(str(arguments.get("content", "")).encode(errors="replace"))
    return f"Write {_path(arguments)}, {amount(size)}"


def _edit(arguments: dict[str, Any]) -> str:
    return f"Edit {_path(arguments)}{', everywhere' if arguments.get('all') else ''}"


def _patch(arguments: dict[str, Any]) -> str:
    names = patched_names(arguments)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Patch {', '.join(names[:_NAMED])}{more}" if names else "Apply a patch that cannot be read"


def _list(arguments: dict[str, Any]) -> str:
    return f"List {_path(arguments)}"


def _find(arguments: dict[str, Any]) -> str:
    return f"Find {arguments.get('glob', '')} in {_path(arguments)}"


def _search(arguments: dict[str, Any]) -> str:
    return f"Search for {arguments.get('pattern', '')!r} in {_path(arguments)}"


def patched_names(arguments: dict[str, Any]) -> list[str]:
    """Return the names that a patch is about, each once; none if it cannot be read."""
    try:
        patches = read_patch(str(arguments.get("patch", "")))
    except Refused:
        return []
    return list(dict.fromkeys(name for patch in patches for name in patch.names))


def _path(arguments: dict[str, Any]) -> str:
    return str(arguments.get("path") or ".")


_PREVIEWS = {
    READ: _read,
    WRITE: _write,
    EDIT: _edit,
    PATCH: _patch,
    LIST: _list,
    FIND: _find,
    SEARCH: _search,
}
