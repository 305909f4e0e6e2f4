"""What a content block is: the questions that several modules ask about one."""

from __future__ import annotations

from typing import Any

Block = dict[str, Any]
Blocks = list[Block]

METADATA = "_metadata"
"""Where an item keeps what is only ours; it is never sent."""

DROPPED = "dropped_blocks"
"""Where `_metadata` keeps blocks that are not sent any more, each with the reason."""


def is_text(block: Block) -> bool:
    """Whether it is text, of a person or of the model."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def is_thinking(block: Block) -> bool:
    """Whether it is thinking, readable or not."""
    return block.get("type") in ("thinking", "redacted_thinking")


def is_call(block: Block) -> bool:
    """Whether it is a call of one of our tools."""
    return block.get("type") == "tool_use"


def is_result(block: Block) -> bool:
    """Whether it is the result of one of our tools."""
    return block.get("type") == "tool_result"


def is_server_call(block: Block) -> bool:
    """Whether it is a call that the provider runs itself: server_tool_use, mcp_tool_use."""
    return str(block.get("type")).endswith("_tool_use")


def is_server_result(block: Block) -> bool:
    """Whether it is the result of such a call: web_search_tool_result and its many siblings."""
    return str(block.get("type")).endswith("_tool_result")


def blocks_of(item: dict[str, Any]) -> Blocks:
    """Return an item's content as blocks; text alone is one."""
    content = item.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def dropped_blocks(item: dict[str, Any]) -> Blocks:
    """Return the blocks that an item once had and that are not sent any more."""
    kept = (item.get(METADATA) or {}).get(DROPPED) or []
    return [entry["block"] for entry in kept]


def put_aside(item: dict[str, Any], places: set[int], reason: str) -> dict[str, Any]:
    """Return the item without the blocks at *places*, which its `_metadata` keeps."""
    blocks = blocks_of(item)
    metadata = item.get(METADATA) or {}
    gone = [{"block": blocks[place], "reason": reason} for place in sorted(places)]
    return {
        **item,
        "content": [block for place, block in enumerate(blocks) if place not in places],
        METADATA: {**metadata, DROPPED: [*(metadata.get(DROPPED) or []), *gone]},
    }
