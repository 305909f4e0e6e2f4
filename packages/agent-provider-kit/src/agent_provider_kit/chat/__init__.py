"""The format of Chat Completions, which more than one provider speaks."""

from agent_provider_kit.chat.chunks import Chunk, decode_chunk, read_usage
from agent_provider_kit.chat.messages import REASONING_FIELDS, to_item, to_message, without_internal
from agent_provider_kit.chat.repair import repair_items, validate_items
from agent_provider_kit.chat.reply import ChatReply
from agent_provider_kit.chat.request import (
    THOUGHTS,
    compose,
    compose_encoded,
    refused_fields,
    remember_refused,
)

__all__ = [
    "REASONING_FIELDS",
    "THOUGHTS",
    "ChatReply",
    "Chunk",
    "compose",
    "compose_encoded",
    "decode_chunk",
    "read_usage",
    "refused_fields",
    "remember_refused",
    "repair_items",
    "to_item",
    "to_message",
    "validate_items",
    "without_internal",
]
