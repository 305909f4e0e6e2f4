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


_PATH = _text("The file, relative to the workspace's root, such as src/main.py.")
_FOLDER = _text("The folder, relative to the workspace's root; by default all of the workspace.")
_HIDDEN = _flag("Also names that begin with a dot.")
_IGNORED = _flag("Also files that a .gitignore excludes.")
_LIMIT = _number("The most results to return.", minimum=1, maximum=MOST_LISTED, default=LISTED_BY_DEFAULT)


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
        f"Read a file. Text comes in pages of up to {PAGE_LINES} lines; the last line of the answer says "
        "how to continue. Images (PNG, JPEG, GIF, WebP) are shown as images.",
        ["path"],
        path=_PATH,
        start_line=_number("The first line, from 1.", minimum=1, default=1),
        end_line=_number("The last line.", minimum=1),
        numbered=_flag("Show the number of each line."),
    ),
    _tool(
        WRITE,
        "Write a whole file; a missing file and its folders are created. To change a part of a file, use "
        "edit_file.",
        ["path", "content"],
        path=_PATH,
        content=_text("The whole content of the file."),
    ),
    _tool(
        EDIT,
        "Replace a text in a file. The text must be exactly as it is in the file, white space included, and "
        "occur only once unless all is set. A file that has changed since you read it must be read again "
        "first.",
        ["path", "old", "new"],
        path=_PATH,
        old=_text("The text to replace, with enough of the lines around it to occur only once."),
        new=_text("The text that replaces it."),
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
        "Find files by name. A glob without a slash matches names in every folder; ** matches any folders.",
        ["glob"],
        glob=_text("Such as *.py, src/**/test_*.py or *.{ts,tsx}."),
        path=_FOLDER,
        hidden=_HIDDEN,
        ignored=_IGNORED,
        limit=_LIMIT,
    ),
    _tool(
        SEARCH,
        "Search the lines of files with a regular expression (no look-around, no back references). Files "
        f"over {amount(LARGEST_FILE)} and files that are not text are skipped and counted.",
        ["pattern"],
        pattern=_text("The regular expression; each line is searched by itself."),
        path=_FOLDER,
        glob=_text("Only files that match this glob, such as *.py."),
        literal=_flag("Look for the pattern as it is, not as a regular expression."),
        ignore_case=_flag("Treat capital and small letters as the same."),
        context=_number(
            "How many lines to show before and after each match.", minimum=0, maximum=10, default=0
        ),
        names_only=_flag("Only the names of files that have a match."),
        hidden=_HIDDEN,
        ignored=_IGNORED,
        limit=_LIMIT,
    ),
]
