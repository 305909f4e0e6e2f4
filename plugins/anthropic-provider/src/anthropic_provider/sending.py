"""What is sent of the items: the system prompt apart, roles in turns, nothing that the API refuses as empty.

Items stay as they are, one per message, so that edits of messages find theirs. Only here, on the way
out, consecutive items of one role become one message, and tool results go to its front, where the API
wants them. Everything depends on the items alone, so the same history is always sent the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from anthropic_provider.kinds import METADATA, Block, Blocks, blocks_of, is_result, is_text

Dicts = list[dict[str, Any]]
Place = tuple[int, int]
"""A block's place: the number of its item, and its own number in that item."""

_OPENING = {"role": "user", "content": "(The conversation continues here.)"}


Run = list[int]
"""The numbers of consecutive items of one role, which together are one message."""


class Outgoing(NamedTuple):
    """What is sent of a history; `system` is None where there is no system prompt."""

    system: str | Blocks | None
    messages: Dicts


def compose(items: Dicts) -> Outgoing:
    """Return the items as the API takes them."""
    runs = gather(items)
    messages = [_message(items, run) for run in runs]
    return Outgoing(_system(items), [_OPENING, *messages] if _needs_opening(items, runs) else messages)


def places(items: Dicts) -> list[list[Place]]:
    """Return for each message that is sent, and each of its blocks, where the block stands in the items."""
    runs = gather(items)
    located = [[place for place, _block in _blocks(items, run)] for run in runs]
    return [[], *located] if _needs_opening(items, runs) else located


def gather(items: Dicts) -> list[Run]:
    """Return the items that are sent, those of one role together."""
    runs: list[Run] = []
    current = None
    for index, item in enumerate(items):
        role = item.get("role")
        if role == "system" or not says_something(item):
            continue
        if role == current:
            runs[-1].append(index)
        else:
            runs.append([index])
            current = role
    return runs


def says_something(item: dict[str, Any]) -> bool:
    """Whether anything of an item can be sent: the API refuses a message of nothing but blanks."""
    content = item.get("content")
    if isinstance(content, str):
        return not is_blank(content)
    if not isinstance(content, list):
        return False
    for block in content:  # noqa: SIM110 - asked of every item in every request, and a generator is slow
        if not is_text(block) or not is_blank(block["text"]):
            return True
    return False


def is_blank(text: str) -> bool:
    """Whether a text has no character that can be seen; it is not read further than to the first."""
    return not text or text.isspace()


def _needs_opening(items: Dicts, runs: list[Run]) -> bool:
    return bool(runs) and items[runs[0][0]].get("role") == "assistant"


def _message(items: Dicts, run: Run) -> dict[str, Any]:
    first = items[run[0]]
    message = {key: first[key] for key in first if key != METADATA} if METADATA in first else first
    content = first["content"]
    if len(run) == 1 and (isinstance(content, str) or _is_sendable(content)):
        return message
    return {**message, "content": [block for _place, block in _blocks(items, run)]}


def _is_sendable(blocks: Blocks) -> bool:
    """Whether blocks can be sent as they are: no blank text, and no result behind something else."""
    others = False
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and is_blank(block["text"]):
            return False
        if kind != "tool_result":
            others = True
        elif others:
            return False
    return True


def _blocks(items: Dicts, run: Run) -> list[tuple[Place, Block]]:
    found = [
        ((index, number), block) for index in run for number, block in _sendable(blocks_of(items[index]))
    ]
    return sorted(found, key=lambda pair: not is_result(pair[1]))


def _sendable(blocks: Blocks) -> list[tuple[int, Block]]:
    """Leave empty text out, and blank text where there is no other; between words it may stand."""
    words = any(is_text(block) and not is_blank(block["text"]) for block in blocks)
    return [
        (number, block)
        for number, block in enumerate(blocks)
        if not is_text(block) or not is_blank(block["text"]) or (words and block["text"])
    ]


def _system(items: Dicts) -> str | Blocks | None:
    told = [item for item in items if item.get("role") == "system" and says_something(item)]
    if len(told) == 1 and isinstance(told[0]["content"], str):
        return str(told[0]["content"])
    return [block for item in told for _number, block in _sendable(blocks_of(item))] or None
