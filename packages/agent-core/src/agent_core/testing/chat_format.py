"""A small native format for providers that talk to nobody."""

from __future__ import annotations

from typing import Any

Dicts = list[dict[str, Any]]


class ChatFormat:
    """Turns messages into ``{"role", "content"}`` items and back, tool calls and results included."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        """Return one item per message."""
        return [_to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return one message per item."""
        return [_to_message(item) for item in native_messages]


def _to_item(message: dict[str, Any]) -> dict[str, Any]:
    metadata = message.get("metadata") or {}
    item: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    for key in ("tool_calls", "tool_call_id"):
        if metadata.get(key) is not None:
            item[key] = metadata[key]
    if message.get("multipartContent"):
        item["parts"] = message["multipartContent"]
    return item


def _to_message(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        key: item[key] for key in ("tool_calls", "tool_call_id", "usage", "finish_reason") if key in item
    }
    metadata |= item.get("_metadata") or {}
    message = {"role": item["role"], "content": item["content"], "metadata": metadata}
    if "parts" in item:
        message["multipartContent"] = item["parts"]
    return message
