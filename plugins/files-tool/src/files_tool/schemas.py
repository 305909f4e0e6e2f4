"""The tools as a model sees them."""

from __future__ import annotations

from typing import Any

from files_tool.limits import LARGEST_FILE, LISTED_BY_DEFAULT, MOST_LISTED, PAGE_LINES, amount

READ, WRITE, EDIT, PATCH = "read_file", "write_file", "edit_file", "apply_patch"
LIST, FIND, SEARCH = "list_files", "find_files", "search_files"


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "default": False, "description": description}


def _number(description: str, **limits: int) -> dict[str, Any]:
    return {"type": "integer", "description": description, **limits}


_PATH = _text("The file, from the workspace's root down, such as src/main.py.")
_FOLDER = _text("The folder, from the workspace's root down; by default all of the workspace.")
_HIDDEN = _flag("Also names that begin with a dot.")
_IGNORED = _flag("Also what a .gitignore leaves out.")
_LIMIT = _number("How many results at most.", minimum=1, maximum=MOST_LISTED, default=LISTED_BY_DEFAULT)


def _tool(name: str, description: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


SCHEMAS: list[dict[str, Any]] = [
    _tool(
        READ,
        f"Read a file. A text comes in pages of up to {PAGE_LINES} lines; the last line of the answer tells "
        "how to go on. Images (PNG, JPEG, GIF, WebP) are shown as such.",
        ["path"],
        path=_PATH,
        start_line=_number("The first line, from 1.", minimum=1, default=1),
        end_line=_number("The last line.", minimum=1),
        numbered=_flag("Put its number before each line."),
    ),
    _tool(
        WRITE,
        "Write a whole file, which is made if it is not there, with its folders. To change a part of a file, "
        "use edit_file.",
        ["path", "content"],
        path=_PATH,
        content=_text("The whole content of the file."),
    ),
    _tool(
        EDIT,
        "Replace a text in a file. The text must be exactly as it is in the file, white space included, and "
        "be there only once unless all is set. A file that has changed since you read it must be read again "
        "first.",
        ["path", "old", "new"],
        path=_PATH,
        old=_text("The text to replace, with enough of the lines around it to be there only once."),
        new=_text("What takes its place."),
        all=_flag("Replace it everywhere in the file."),
    ),
    _tool(
        PATCH,
        "Change several files at once with a unified diff: all of it, or nothing if a part does not fit. "
        "Each file begins with '--- a/name' and '+++ b/name' (/dev/null for one that is new or removed), "
        "each hunk with '@@ -line,count +line,count @@', or with '@@' alone if its lines are in the file "
        "only once.",
        ["patch"],
        patch=_text("The unified diff."),
    ),
    _tool(
        LIST,
        "List a folder.",
        [],
        path=_FOLDER,
        depth=_number("How many folders deep.", minimum=1, maximum=20, default=1),
        hidden=_HIDDEN,
        ignored=_IGNORED,
        limit=_LIMIT,
    ),
    _tool(
        FIND,
        "Find files by name. A glob without a slash fits names in every folder; ** means any folders.",
        ["glob"],
        glob=_text("Such as *.py, src/**/test_*.py or *.{ts,tsx}."),
        path=_FOLDER,
        hidden=_HIDDEN,
        ignored=_IGNORED,
        limit=_LIMIT,
    ),
    _tool(
        SEARCH,
        "Search the lines of files with a regular expression (no look-around, no back references). Files of "
        f"more than {amount(LARGEST_FILE)} and files that are no text are not searched, and counted.",
        ["pattern"],
        pattern=_text("The regular expression; a line is searched by itself."),
        path=_FOLDER,
        glob=_text("Only files that fit this glob, such as *.py."),
        literal=_flag("Look for the pattern as it is, not as a regular expression."),
        ignore_case=_flag("Take capital and small letters for the same."),
        context=_number(
            "How many lines to show before and after each match.", minimum=0, maximum=10, default=0
        ),
        names_only=_flag("Only the names of files that have a match."),
        hidden=_HIDDEN,
        ignored=_IGNORED,
        limit=_LIMIT,
    ),
]
