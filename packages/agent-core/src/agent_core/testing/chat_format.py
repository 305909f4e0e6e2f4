"""A small native format for providers that talk to nobody."""

from __future__ import annotations

from typing import Any

Dicts = list[dict[str, Any]]

_CALL_FIELDS = ("tool_calls", "tool_call_id")
_ANSWER_FIELDS = ("usage", "finish_reason")


class ChatFormat:
    """Turns messages into ``{"role", "content"}`` items and back, one for one.

    Tool calls, the structured results of tools and the parts of a message are kept as well.
    """

    def to_native_messages(self, messages: Dicts) -> Dicts:
        """Return one item per message."""
        return [_to_item(message) for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Return one message per item."""
        return [_to_message(item) for item in native_messages]


def _to_item(message: dict[str, Any]) -> dict[str, Any]:
    metadata = message.get("metadata") or {}
    item: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    item |= {key: metadata[key] for key in _CALL_FIELDS if metadata.get(key) is not None}
    if message.get("multipartContent"):
        item["parts"] = message["multipartContent"]
    if message.get("tool_result") is not None:
        item["tool_result"] = message["tool_result"]
    return item


def _to_message(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: item[key] for key in (*_CALL_FIELDS, *_ANSWER_FIELDS) if key in item}
    metadata |= item.get("_metadata") or {}
    message = {"role": item["role"], "content": item["content"], "metadata": metadata}
    if "parts" in item:
        message["multipartContent"] = item["parts"]
    if "tool_result" in item:
        message["tool_result"] = item["tool_result"]
    return message
