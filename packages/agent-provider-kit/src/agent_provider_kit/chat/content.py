"""The words of an answer: a text, or parts where a server sends those."""

from __future__ import annotations

from typing import Any

Dicts = list[dict[str, Any]]


class ContentPieces:
    """Collects what an answer says.

    Most servers send text. Some send parts, thinking among them; they are kept as they came, except
    that texts which follow each other become one.
    """

    __slots__ = ("_parts", "_text", "add_text")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._parts: Dicts = []
        self.add_text = self._text.append

    def __bool__(self) -> bool:
        return bool(self._text or self._parts)

    def add_parts(self, parts: Dicts) -> Dicts:
        """Take parts and return what they show."""
        self._close_text()
        for part in parts:
            last = self._parts[-1] if self._parts else {}
            if _is_plain(last) and _is_plain(part):
                self._parts[-1] = {**last, "text": last["text"] + part["text"]}
            else:
                self._parts.append(part)
        return [shown for part in parts if (shown := _shown(part)) is not None]

    def whole(self) -> str | Dicts:
        """Return the text, or the parts if there are any."""
        if not self._parts:
            return "".join(self._text)
        self._close_text()
        return self._parts

    def _close_text(self) -> None:
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            self.add_parts([{"type": "text", "text": text}])


def text_of(part: Any) -> str:
    """Return the words of a part, or nothing if it has none."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def thinking_of(part: Any) -> str:
    """Return the words of a thinking part, or nothing if it is another."""
    thinking = part.get("thinking") if isinstance(part, dict) and part.get("type") == "thinking" else None
    if isinstance(thinking, list):
        return "".join(map(text_of, thinking))
    return thinking if isinstance(thinking, str) else ""


def _is_plain(part: dict[str, Any]) -> bool:
    return part.keys() == {"type", "text"} and part["type"] == "text" and isinstance(part["text"], str)


def _shown(part: dict[str, Any]) -> dict[str, Any] | None:
    if text := text_of(part):
        return {"role": "assistant", "content": text}
    thought = thinking_of(part)
    return {"role": "assistant", "content": "", "reasoning": thought} if thought else None
