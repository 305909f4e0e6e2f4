"""A quick look at a history: most need no repair, and every request asks.

Only the usual is known here: results right behind their calls, a server's result behind its call in one
item, no empty text. Anything else is left to `anthropic_provider.repair`, which takes its time.
"""

from __future__ import annotations

from typing import Any

Dicts = list[dict[str, Any]]

_HARMLESS = frozenset({"thinking", "redacted_thinking", "image", "document"})


def is_sound(items: Dicts) -> bool:
    """Whether a history surely needs no repair."""
    calls: set[Any] = set()
    waiting: set[Any] = set()
    answering = False
    for item in items:
        role, content = item.get("role"), item.get("content")
        if role == "user":
            answering = True
        elif role == "assistant":
            if answering and waiting:
                return False
            answering = False
        if not isinstance(content, str) and not _is_usual(content, calls, waiting):
            return False
    return not waiting


def _is_usual(content: Any, calls: set[Any], waiting: set[Any]) -> bool:
    if not isinstance(content, list):
        return False
    server: set[Any] = set()
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            if not block["text"]:
                return False
        elif kind not in _HARMLESS and not _is_paired(str(kind), block, calls, waiting, server):
            return False
    return not server


def _is_paired(
    kind: str, block: dict[str, Any], calls: set[Any], waiting: set[Any], server: set[Any]
) -> bool:
    """Follow calls and results; whatever is not where it usually is ends the quick look."""
    if kind == "tool_use":
        own = block.get("id")
        if not isinstance(own, str) or not own or own in calls:
            return False
        calls.add(own)
        waiting.add(own)
        return True
    if kind.endswith("_tool_use"):
        server.add(block.get("id"))
        return True
    expected = waiting if kind == "tool_result" else server
    if not kind.endswith("tool_result") or block.get("tool_use_id") not in expected:
        return False
    expected.remove(block.get("tool_use_id"))
    return True
