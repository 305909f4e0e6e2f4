"""What is said to an agent, as messages: texts, pictures and files, and messages that are made already."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_core import ArgumentTypeError, File, Message

if TYPE_CHECKING:
    from agent_core.frozen import JsonObject

_PARTS = "multipartContent"


def as_messages(given: Any) -> list[Message]:
    """Return what a request or an inbox brought as messages: a text is the user's.

    Texts next to files or parts are one message with them; texts alone are a message each.

    Raises:
        ArgumentTypeError: If it is neither text, nor file or part, nor message, nor a dict of one.
    """
    if given is None:
        return []
    one = (str, bytes, bytearray, Message, Mapping, File)
    several = isinstance(given, Iterable) and not isinstance(given, one)
    messages: list[Message] = []
    said: list[str | JsonObject] = []
    for item in given if several else [given]:
        read = _read(item)
        if isinstance(read, Message):
            messages += [*_from_user(said), read]
            said = []
        else:
            said.append(read)
    return [*messages, *_from_user(said)]


def as_part(file: File) -> JsonObject:
    """Return a file as a part of the user's message: what is text can be read by every model."""
    kind = file.mime_type.partition("/")[0]
    if kind not in ("image", "audio", "video"):
        if (text := _text_in(file)) is not None:
            return {"type": "text", "text": f"File {file.name}:\n\n{text}"}
        kind = "file"
    return {
        "type": kind,
        "mime_type": file.mime_type,
        "data": b64encode(file.data).decode(),
        "name": file.name,
    }


def _text_in(file: File) -> str | None:
    if file.mime_type == "application/pdf":  # a small one may be all ASCII
        return None
    try:
        return file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _read(item: Any) -> Message | str | JsonObject:
    """Return one thing that was given: a message, or a text or part that will be in the user's."""
    if isinstance(item, (Message, str)):
        return item
    if isinstance(item, File):
        return as_part(item)
    if isinstance(item, Mapping):
        return _message(item) if "role" in item or "type" not in item else dict(item)
    what = "bytes: give a picture or a file as File(data, mime_type, name)"
    if not isinstance(item, (bytes, bytearray)):
        what = type(item).__name__
    raise ArgumentTypeError(f"messages must be texts, files, messages or dicts of messages, not {what}")


def _message(given: Mapping[str, Any]) -> Message:
    """Return a message of its dict form; the parts may also be its content, as other libraries write it."""
    data = dict(given)
    if "multipart_content" in data:
        data.setdefault(_PARTS, data.pop("multipart_content"))
    content = data.get("content")
    if isinstance(content, list) and content and all(_is_part(part) for part in content):
        data |= {"content": _words(content), _PARTS: data.get(_PARTS) or content}
    return Message.from_dict(data)


def _is_part(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def _from_user(said: list[str | JsonObject]) -> list[Message]:
    if all(isinstance(one, str) for one in said):
        return [Message("user", one) for one in said]
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in said]
    return [Message("user", _words(parts), multipart_content=parts)]


def _words(parts: Iterable[Mapping[str, Any]]) -> str:
    return "\n\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
