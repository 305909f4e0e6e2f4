"""A call as the person who decides about it must see it: whole, and with nothing hidden in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_terminal_app.chat.displays import as_json, display_lines
from agent_terminal_app.chat.text import clean, one_line, styled

_INDENT = "  "


def heading(asked: Mapping[str, Any], tool: str) -> str:
    """Return the one line about a call, however long it is."""
    preview = asked.get("preview")
    return one_line(preview) if isinstance(preview, str) and preview.strip() else one_line(tool)


def call_lines(asked: Mapping[str, Any], *, color: bool) -> Iterator[str]:
    """Yield a call line by line: what its tool shows of it, or else all of its arguments.

    Args:
        asked: The parameters of an approval.
    """
    display, arguments = asked.get("display"), asked.get("arguments")
    if isinstance(display, Mapping) and display.get("content"):
        yield from _indented(_shown(display, color=color))
    elif arguments not in (None, {}):
        yield from _indented(_argument_lines(arguments))
    if any(_hides_something(text) for text in _texts(arguments)):
        yield _INDENT + styled("It holds characters that cannot be seen; exactly:", "yellow", color=color)
        yield _INDENT + json.dumps(arguments)


def _shown(display: Mapping[str, Any], *, color: bool) -> Iterator[str]:
    """Yield what a tool shows; Markdown as it is written, since what is styled away may matter."""
    title = display.get("title")
    if isinstance(title, str) and title:
        yield styled(one_line(title), "bold", color=color)
    plain = {**display, "type": "text"} if display.get("type") == "markdown" else display
    yield from display_lines(plain, width=None, color=color)


def _argument_lines(arguments: Any) -> Iterator[str]:
    if not isinstance(arguments, Mapping):
        yield from _lines(arguments)
        return
    for name, value in arguments.items():
        first, *more = _lines(value)
        if more:
            yield f"{one_line(str(name))}:"
            yield from _indented([first, *more])
        else:
            yield f"{one_line(str(name))}: {first}"


def _lines(value: Any) -> list[str]:
    """Return a value as lines that are safe to show; only a newline ends one."""
    text = value if isinstance(value, str) else as_json(value)
    return [clean(line) for line in text.removesuffix("\n").split("\n")]


def _hides_something(text: str) -> bool:
    """Say whether a text has characters that do not show: other text could stand beside them unseen."""
    return any(not one.isprintable() for one in text.replace("\r\n", "\n") if one not in "\n\t")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in nested data, names among them; a model decides how deep it is, so no recursion."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, Mapping):
            waiting += [*here, *here.values()]
        elif isinstance(here, (list, tuple)):
            waiting += here
