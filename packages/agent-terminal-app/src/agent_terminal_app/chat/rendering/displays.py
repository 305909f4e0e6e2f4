"""What a tool wants shown, as lines: text, Markdown, code, a diff, a table, JSON.

A tool sends a type and a content, never markup of its own (see `agent_core.display`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agent_terminal_app.chat.rendering.markdown import LineMarkdown, table_lines
from agent_terminal_app.chat.rendering.text import count, one_line, printed, styled

_DIFF_STYLES = (
    ("+++", "bold"),
    ("---", "bold"),
    ("@@", "code"),
    ("+", "green"),
    ("-", "red"),
)


class _Look(NamedTuple):
    """How lines are shown: in how many cells, and whether in colours."""

    width: int | None
    color: bool


def display_lines(payload: Mapping[str, Any], *, width: int | None, color: bool) -> list[str]:
    """Return a display as lines, all of them."""
    show = _BY_TYPE.get(str(payload.get("type")), _text)
    return show(payload, _Look(width, color))


def display_summary(payload: Mapping[str, Any]) -> str:
    """Return a display as one line: the one that the tool has for this, or the beginning of its text."""
    single = payload.get("single_line")
    if isinstance(single, str):
        return one_line(single)
    if payload.get("type") == "diff":
        return _changed(_content(payload))
    return one_line(_content(payload)) if single else one_line(_first_line(_content(payload)))


def _content(payload: Mapping[str, Any]) -> str:
    content = payload.get("content", payload.get("text", ""))
    return content if isinstance(content, str) else as_json(content)


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _changed(diff: str) -> str:
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return f"{count(added, 'line')} added, {removed:,} removed"


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON; what JSON has no form for as text."""
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def _text(payload: Mapping[str, Any], look: _Look) -> list[str]:
    return [printed(line) for line in _content(payload).splitlines()]


def _code(payload: Mapping[str, Any], look: _Look) -> list[str]:
    return [styled(printed(line), "code", color=look.color) for line in _content(payload).splitlines()]


def _markdown(payload: Mapping[str, Any], look: _Look) -> list[str]:
    words = LineMarkdown(color=look.color, width=look.width)
    return [*words.feed(_content(payload)), *words.end()]


def _diff(payload: Mapping[str, Any], look: _Look) -> list[str]:
    lines = [printed(line) for line in _content(payload).splitlines()]
    return [styled(line, _diff_style(line), color=look.color) for line in lines]


def _diff_style(line: str) -> str:
    return next((style for mark, style in _DIFF_STYLES if line.startswith(mark)), "")


def _json(payload: Mapping[str, Any], look: _Look) -> list[str]:
    content = payload.get("content", {key: value for key, value in payload.items() if key != "type"})
    text = content if isinstance(content, str) else as_json(content, indent=2)
    return [styled(printed(line), "code", color=look.color) for line in text.splitlines()]


def _table(payload: Mapping[str, Any], look: _Look) -> list[str]:
    rows = _table_rows(payload)
    if rows is None:
        return _json(payload, look)
    return table_lines(
        [[one_line(str(cell)) for cell in row] for row in rows], width=look.width, color=look.color
    )


def _table_rows(payload: Mapping[str, Any]) -> list[list[Any]] | None:
    """Return headings and rows, if the payload has them: as lists, or as dicts with the same keys."""
    content = payload.get("content", payload)
    about = content if isinstance(content, Mapping) else payload
    rows = about.get(
        "rows", content if isinstance(content, Sequence) and not isinstance(content, str) else None
    )
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        return None
    headings = about.get("columns", about.get("headers"))
    if all(isinstance(row, Mapping) for row in rows):
        keys = list(headings or dict.fromkeys(key for row in rows for key in row))
        return [keys, *([row.get(key, "") for key in keys] for row in rows)]
    if not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        return None
    return [list(headings or [""] * len(rows[0])), *map(list, rows)]


def _image(payload: Mapping[str, Any], look: _Look) -> list[str]:
    kind = one_line(str(payload.get("mime_type") or payload.get("media_type") or "image"))
    return [f"[{kind}]"]


_Show = Callable[[Mapping[str, Any], _Look], list[str]]
_BY_TYPE: dict[str, _Show] = {
    "markdown": _markdown,
    "code": _code,
    "diff": _diff,
    "json": _json,
    "table": _table,
    "image": _image,
}
