"""Old messages as text for a model that shall report on them and obey none of them.

They are full of orders: the user's, and those that web pages and files brought along. So each is quoted as
one line of JSON between two marks, in which the closing mark cannot occur, and the rules stand outside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw

if TYPE_CHECKING:
    from agent_core import Message

LONGEST = 20_000
"""Of a single message, so many characters are quoted at most: its beginning and its end."""


def count_characters(messages: Sequence[Message]) -> int:
    """Return how long the text of these messages is, with the calls that they make."""
    return sum(len(_text(message)) + len(_calls(message)) for message in messages)


def quote(messages: Sequence[Message]) -> str:
    """Return the messages between two marks, a line for each."""
    return "\n".join(["<conversation>", *map(_line, messages), "</conversation>"])


def _line(message: Message) -> str:
    record: dict[str, Any] = {"role": message.role, "content": _shortened(_text(message))}
    if calls := _calls(message):
        record["calls"] = _shortened(calls)
    if parts := _attachments(message):
        record["attachments"] = parts
    return _json(record)


def _text(message: Message) -> str:
    content = message.content
    if content is None:
        return ""
    return content if isinstance(content, str) else _json(thaw(content))


def _calls(message: Message) -> str:
    calls = message.metadata.get("tool_calls")
    return _json([_call(call) for call in thaw(calls)]) if calls else ""


def _call(call: Any) -> Any:
    """Return what matters of a call: the tool, and what it is given."""
    for kind in ("function", "custom"):
        if isinstance(call, Mapping) and isinstance(call.get(kind), Mapping):
            return call[kind]
    return call


def _attachments(message: Message) -> list[str]:
    kinds = [str(part.get("type")) for part in message.multipart_content or ()]
    return [kind for kind in kinds if kind != "text"]


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … [{len(text) - 2 * half} characters left out] … {text[-half:]}"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    # JSON may write a slash like this, and no mark can be closed by it. Half a surrogate pair cannot be sent.
    return text.replace("</", "<\\/").encode("utf-8", "replace").decode()
