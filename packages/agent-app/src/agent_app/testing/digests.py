"""Short marks by which a comparison knows messages, events and decisions again."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agent_app.store.records import encode
from agent_core import Message

_LENGTH = 24


def digest(value: Any) -> str:
    """Return the mark of plain data."""
    return sha256(encode(dict(value) if isinstance(value, Mapping) else value)).hexdigest()[:_LENGTH]


def message_digest(message: Message) -> str:
    """Return the mark of a message; its native form is left out, because it becomes known later."""
    return digest(message.with_native_indices(None).to_dict())


def words_digest(message: Mapping[str, Any] | Message) -> str:
    """Return the mark of what a message says and who says it, the same in a queue and in a session."""
    data = (message if isinstance(message, Message) else Message.from_dict(dict(message))).to_dict()
    return digest({"role": data["role"], "content": data["content"]})
