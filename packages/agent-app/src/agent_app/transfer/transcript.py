"""What a person sees of a conversation, and nothing else.

A stranger's file can say one thing to its reader and another to the model: in native history, in the parts
behind a text, in the structure behind a tool's answer, in metadata that some provider sends. So the messages
of such a file are rebuilt, field by field, from what `sessions show` prints: the role, the text, the
attachments with their names, the tool calls. Everything else is dropped, whatever it is called; a future
provider may send what none sends today. Call ids are numbered again, since an id is sent and no one reads it.

Characters that no screen shows are dropped as well: a model reads them, and whole sentences can be written in
them. The content of an attachment is sent and not printed; its name, type and size are printed.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_core import Message, ToolError
from agent_core.clean_text import clean, hides, one_line
from agent_core.interop import ToolInteropRegistry
from agent_core.interop.parts import as_text, read_part
from agent_core.messages import TOOL_CALLS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from agent_core.values import ToolCall

Part = dict[str, Any]

_FAILED = {"type": "tool_failed"}
_LEFT_OUT = "left_out"
_LONGEST_NAME = 200
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,80}", re.ASCII)
_ADDRESS = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)
_interop = ToolInteropRegistry.default()


def visible_messages(
    messages: Iterable[Message], assets: Collection[str], *, unseen: bool = False
) -> tuple[list[Message], list[str]]:
    """Return the messages with only what a person sees of them, and a list of what was dropped.

    Args:
        assets: The ids of the attachments in the file.
        unseen: Whether characters stay that nobody sees, for somebody who shows them by their numbers.
    """
    reader = _Reader(assets, unseen=unseen)
    return [reader.read(place, message) for place, message in enumerate(messages, 1)], reader.left_out


class _Reader:
    """Reads the messages of one file in order, and numbers the tool calls."""

    def __init__(self, assets: Collection[str], *, unseen: bool) -> None:
        self._assets = assets
        self._unseen = unseen
        self._dropped = 0
        self._calls: dict[str | None, tuple[str, ToolCall | None]] = {}
        self._count = 0
        self.left_out: list[str] = []

    def read(self, place: int, message: Message) -> Message:
        self._dropped = 0
        made = self._read(place, message)
        if self._dropped:
            self.left_out.append(f"characters of message {place} that nobody sees ({self._dropped})")
        return made

    def _seen(self, text: str) -> str:
        """Return a text without the characters that nobody sees, and count those."""
        if self._unseen or not hides(text):
            return text
        lines = text.replace("\r\n", "\n")  # which is not hidden from anybody
        made = clean(lines)
        self._dropped += len(lines) - len(made)
        return made

    def _seen_data(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self._seen(str(key)): self._seen_data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._seen_data(item) for item in value]
        return self._seen(value) if isinstance(value, str) else value

    def _read(self, place: int, message: Message) -> Message:
        text, parts = self._content(place, message)
        metadata: dict[str, Any] = {"interrupted": True} if message.is_interrupted else {}
        if message.role == "assistant":
            metadata |= self._called(place, message)
        elif message.role == "tool":
            metadata |= self._answer(message)
        return Message(message.role, text, metadata, parts or None)

    def _content(self, place: int, message: Message) -> tuple[str, list[Part]]:
        """Return the text of a message, and its parts if it has more than that text."""
        given = [self._part(place, part) for part in message.multipart_content or ()]
        parts = [part for part in given if part is not None]
        if message.role == "system":  # an instruction has no attachments
            parts = [part for part in parts if part["type"] == "text"]
        said = "".join(part["text"] for part in parts if part["type"] == "text")
        text = (
            self._seen(as_text(message.content)) if message.content else said or self._seen(_refusal(message))
        )
        others = [part for part in parts if part["type"] != "text"]
        if not others:
            return text, []
        if said not in ("", text):  # the parts are sent and the text is read: both must say the same
            return text, [{"type": "text", "text": text}, *others]
        return text, parts

    def _part(self, place: int, given: Mapping[str, Any]) -> Part | None:
        part = read_part(given)
        made = {"text": _text, "image": _attachment, "file": _attachment, "asset": self._asset}.get(
            str(part.get("type")), _nothing
        )(part)
        if made is not None and made["type"] == "text":
            made["text"] = self._seen(made["text"])
        if made is None:
            self.left_out.append(f"a part of message {place} ({_plain(part.get('type')) or 'no type'})")
        elif made["type"] != "text" and (name := _plain(given.get("name"))):
            made["name"] = name
        return made

    def _asset(self, part: Mapping[str, Any]) -> Part | None:
        asset_id = part.get("asset_id")
        return {"type": "asset", "asset_id": asset_id} if asset_id in self._assets else None

    def _called(self, place: int, message: Message) -> dict[str, Any]:
        given = message.metadata.get(TOOL_CALLS) or ()  # from a file, so it may be anything
        calls = [self._call(call) for call in (given if isinstance(given, (list, tuple)) else [given])]
        read = [call for call in calls if call is not None]
        if len(read) < len(calls):
            self.left_out.append(f"a tool call of message {place} (it cannot be read)")
        return {"tool_calls": read} if read else {}

    def _call(self, call: Any) -> dict[str, Any] | None:
        try:
            read = _interop.inspect_call(call)
        except ToolError:
            return None
        number = self._next()
        self._calls[read.call_id] = (number, read)
        name = self._seen(read.tool_name)
        if read.payload_kind == "text":
            return {
                "id": number,
                "type": "custom",
                "custom": {"name": name, "input": self._seen(read.payload)},
            }
        function = {"name": name, "arguments": self._arguments(read)}
        return {"id": number, "type": "function", "function": function}

    def _arguments(self, call: ToolCall) -> str:
        """Return arguments as they were written, or as JSON where that hides something in escapes."""
        before = self._dropped
        seen = self._seen_data(call.payload)
        return as_text(seen) if self._dropped > before else _arguments(call)

    def _answer(self, message: Message) -> dict[str, Any]:
        """Return what links an answer to its call, and whether the tool failed."""
        call_id = message.tool_call_id
        known = self._calls.get(call_id) if isinstance(call_id, str) or call_id is None else None
        number, call = known or (self._next(), None)
        about: dict[str, Any] = {"tool_call_id": number}
        if call is not None:
            about["tool_name"] = self._seen(call.tool_name)
        if call is not None and call.payload_kind == "text":  # the form of its answer depends on it
            about["tool_schema"] = {"type": "custom", "custom": {"name": about["tool_name"]}}
        if message.metadata.get("error"):
            about["error"] = _FAILED
        if kept := list(self._kept(message)):
            about[_LEFT_OUT] = kept
        return about

    def _kept(self, message: Message) -> Iterator[dict[str, Any]]:
        """Yield the parts of a large answer that are among the attachments in the file."""
        given = message.metadata.get(_LEFT_OUT)
        for one in given if isinstance(given, (list, tuple)) else ():
            if isinstance(one, Mapping) and one.get("asset") in self._assets and type(one.get("size")) is int:
                yield {"asset": one["asset"], "name": _plain(one.get("name")), "size": one["size"]}

    def _next(self) -> str:
        self._count += 1
        return f"call_{self._count}"


def _arguments(call: ToolCall) -> str:
    """Return arguments as they were written, or as JSON where the format has them as values."""
    function = call.raw.get("function")
    written = function.get("arguments") if isinstance(function, Mapping) else None
    return written if isinstance(written, str) else as_text(call.payload)


def _refusal(message: Message) -> str:
    """Return the refusal of a model that said nothing else: it is sent in place of the text."""
    refusal = message.metadata.get("refusal")
    return refusal if isinstance(refusal, str) and message.role == "assistant" else ""


def _text(part: Mapping[str, Any]) -> Part:
    return {"type": "text", "text": str(part.get("text") or "")}


def _nothing(_part: Mapping[str, Any]) -> None:
    return None


def _attachment(part: Mapping[str, Any]) -> Part | None:
    """Return an image or a file with its content or its URL; None if it has neither."""
    kind = part["type"]
    inner = part["file"] if isinstance(part.get("file"), Mapping) else part
    name = _plain(inner.get("name") or inner.get("filename"))
    named = {"name": name} if name else {}
    address = inner.get("url") or inner.get("file_url")
    data = inner.get("data", inner.get("file_data"))
    if isinstance(data, str):
        head, comma, body = data.partition(";base64,")
        claimed = head.removeprefix("data:") if comma else part.get("mime_type") or inner.get("mime_type")
        media_type = _media_type(claimed, "image/png" if kind == "image" else "application/octet-stream")
        body = body if comma else data
        return {"type": kind, "mime_type": media_type, "data": body, **named} if _is_base64(body) else None
    if isinstance(address, str) and _ADDRESS.fullmatch(address):
        return {"type": kind, "url": address, **named}
    return None


def _media_type(claimed: object, otherwise: str) -> str:
    media_type = str(claimed).partition(";")[0].strip().lower()
    return media_type if _MEDIA_TYPE.fullmatch(media_type) else otherwise


def _is_base64(data: str) -> bool:
    try:
        b64decode(data, validate=True)
    except ValueError:
        return False
    return True


def _plain(name: object) -> str:
    """Return a name as one short line without invisible characters."""
    if not isinstance(name, str):
        return ""
    return one_line(name)[:_LONGEST_NAME]
