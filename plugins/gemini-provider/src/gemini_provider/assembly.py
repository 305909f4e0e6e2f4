"""The parts of an answer, as they arrive.

Text that follows text becomes one part, thoughts and what is said apart. A part with a signature or any
other field stays alone, exactly as it came: a signature belongs to its part.
"""

from __future__ import annotations

from gemini_provider.kinds import Part, Parts, is_plain, is_thought, says_something


class GrowingParts:
    """Collects parts, joining plain text where it may be joined."""

    __slots__ = ("_parts", "_text", "_thought")

    def __init__(self) -> None:
        self._parts: Parts = []
        self._text: list[str] = []
        self._thought = False

    def grow(self, text: str, *, thought: bool) -> None:
        """Add plain text."""
        if thought is not self._thought:
            self._close()
            self._thought = thought
        self._text.append(text)

    def add(self, part: Part, *, joined: bool) -> None:
        """Add a part, which may join the text before it."""
        if joined and is_plain(part):
            self.grow(part["text"], thought=is_thought(part))
            return
        self._close()
        if says_something(part):
            self._parts.append(part)

    def all(self) -> Parts:
        """Return the parts as far as they have come."""
        self._close()
        return list(self._parts)

    def _close(self) -> None:
        text = "".join(self._text)
        self._text = []
        if text:
            self._parts.append({"text": text, "thought": True} if self._thought else {"text": text})
