"""Large results: one budget for what a model reads of a tool call, text and images alike.

Every tool's results pass through here, so no tool needs a limit of its own. What fits the budget stays in the
message; the rest goes to the session's asset store, and a note in its place says how to read it with the tool
`read_result`. A front end finds what was stored under `left_out` in the message's metadata. The agent's
section `results` sets the budget.

The asset store belongs to a layer above; here it is anything with `put`, `get` and `read`, found in the
context of a tool call. Text is stored as UTF-8 and read in pages that end between two characters.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from agent_core import AgentError, ToolError, ToolInteropRegistry
from agent_core.frozen import thaw
from agent_runtime.tokens import TokenCounter

if TYPE_CHECKING:
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import CallView, PhaseView

SECTION = "results"
READ_RESULT = "read_result"
STORE = "session_asset_store"
LEFT_OUT = "left_out"
"""The key of a message's metadata under which front ends find what was stored: `asset`, `name`, `size`."""
DEFAULT_TOKENS = 10_000

Part = Mapping[str, Any]
ToolMessage = dict[str, Any]
Context = Mapping[str, Any]

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "tokens": {
            "type": "integer",
            "minimum": 500,
            "default": DEFAULT_TOKENS,
            "description": "About how many tokens of one result the model reads, its images included.",
        }
    },
}
_COUNTER = TokenCounter()
_INTEROP = ToolInteropRegistry.default()
_MEDIA_SHARE = 0.5
_HEAD_SHARE = 0.7
_PAGE_SHARE = 0.8  # a page and its frame together must fit the budget
_BYTES_PER_TOKEN = 3
_LINE = 200  # how far a cut moves to fall between two lines
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Asset(Protocol):
    """What an asset store knows of an asset."""

    id: str
    name: str
    size: int
    media_type: str | None


class Assets(Protocol):
    """What is needed of an asset store."""

    def put(self, session_id: str, data: bytes, *, name: str, media_type: str | None = None) -> Asset:
        """Store data of a session."""

    def get(self, asset_id: str, *, session_id: str | None = None) -> Asset:
        """Return what is known of an asset."""

    def read(self, asset_id: str, start: int = 0, length: int | None = None) -> bytes:
        """Return content of an asset."""


class LargeResultsPlugin:
    """Keeps results within the budget of the agent's `results` section."""

    name = "large_results"
    version = "1"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, object]]]:
        return [(SECTION, thaw(_SCHEMA))]

    def register(self, registrar: PluginRegistrar) -> None:
        budget: int = registrar.spec.section(SECTION).get("tokens", DEFAULT_TOKENS)
        registrar.result_transform(partial(limit, budget))
        registrar.request_transform(_offer_when_needed)
        registrar.tool(READ_RESULT, _reader(int(budget * _PAGE_SHARE) * _BYTES_PER_TOKEN))


def _offer_when_needed(prompt: Prompt, _view: PhaseView) -> Prompt:
    """Hide the tool that reads pages until there is something to read."""
    if any(message.metadata.get(LEFT_OUT) for message in prompt.messages if message.role == "tool"):
        return prompt
    return replace(prompt, tools=tuple(tool for tool in prompt.tools if tool.name != READ_RESULT))


def limit(budget: int, message: ToolMessage, call: CallView, context: Context) -> ToolMessage:
    """Return a tool message that fits *budget* tokens; what goes beyond is stored as the session's assets."""
    if call.name == READ_RESULT:  # its pages fit, and cutting them would only make more of them
        return message
    result = _INTEROP.inspect_result(message["tool_result"])
    content = Content.of(result.text, result.parts)
    if content.tokens <= budget:
        return message
    return _shortened(message, content, cut(content, budget), _Shelf(context, call.name))


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a result: all its text, and its parts that are not text, such as images."""

    text: str
    media: tuple[Part, ...] = ()

    @classmethod
    def of(cls, text: str, parts: Sequence[Part]) -> Content:
        return cls(text, tuple(part for part in parts if part.get("type") != "text"))

    @property
    def tokens(self) -> int:
        """About how many tokens a model reads in it."""
        return _COUNTER.text(self.text) + len(self.media) * _COUNTER.media_tokens


class Cut(NamedTuple):
    """A content that was too large.

    Attributes:
        head: The beginning of the text.
        tail: The end of the text; empty if all of the text fits.
        omitted: How many characters are missing between the two.
        media: The parts that fit.
        media_omitted: Those that do not.
    """

    head: str
    tail: str
    omitted: int
    media: tuple[Part, ...]
    media_omitted: tuple[Part, ...]


def cut(content: Content, budget: int) -> Cut:
    """Return as much of a content as *budget* tokens allow: some media first, then text from both ends."""
    room = max(budget - _COUNTER.text(content.text), int(budget * _MEDIA_SHARE))
    fitting = room // _COUNTER.media_tokens
    media = content.media[:fitting]
    head, tail = _ends(content.text, budget - len(media) * _COUNTER.media_tokens)
    omitted = len(content.text) - len(head) - len(tail)
    return Cut(head, tail, omitted, media, content.media[fitting:])


def _ends(text: str, tokens: int) -> tuple[str, str]:
    """Return the beginning and the end of a text that together have about so many tokens."""
    needed = _COUNTER.text(text)
    if needed <= tokens:
        return text, ""
    kept = int(len(text) * tokens / needed)
    head = text[: int(kept * _HEAD_SHARE)]
    tail = text[len(text) - (kept - int(kept * _HEAD_SHARE)) :]
    # A cut between two lines reads better, if there is one nearby.
    last, first = head.rfind("\n", max(0, len(head) - _LINE)), tail.find("\n", 0, _LINE)
    return head if last < 0 else head[: last + 1], tail if first < 0 else tail[first + 1 :]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Stores what was cut from one result, and notes what it stored."""

    context: Context
    tool: str
    stored: list[dict[str, object]] = field(default_factory=list)

    def put(self, data: bytes, name: str, media_type: str, *, start: int | None = None) -> str:
        """Store a piece and return the sentence that says how to read it; a failure loses only the piece."""
        store, session_id = self.context.get(STORE), self.context.get("session_id")
        if store is None or not isinstance(session_id, str):
            return _lost("there is no asset store to keep it in")
        try:
            asset = cast("Assets", store).put(session_id, data, name=name, media_type=media_type)
        except AgentError as error:
            return _lost(f"it could not be kept: {error}")
        self.stored.append({"asset": asset.id, "name": name, "size": len(data), "media_type": media_type})
        return f'Read on with {READ_RESULT}(id="{asset.id}"{"" if start is None else f", start={start}"}).'


def _lost(problem: str) -> str:
    return f"They cannot be read again, since {problem}: ask for less."


def _shortened(message: ToolMessage, content: Content, made: Cut, shelf: _Shelf) -> ToolMessage:
    """Return the message with what fits, and a note in place of everything else."""
    notes = [_text_with_note(content, made, shelf)]
    notes += [_image_note(number, part, shelf) for number, part in enumerate(made.media_omitted, 1)]
    text = "\n".join(notes)
    result: dict[str, object] = {"type": "tool_result", "text": text}
    if made.media:
        result["parts"] = [dict(part) for part in made.media]
    if message["tool_result"].get("is_error"):
        result["is_error"] = True
    metadata = {**message["metadata"], LEFT_OUT: shelf.stored}
    return {**message, "content": text, "metadata": metadata, "tool_result": result}


def _text_with_note(content: Content, made: Cut, shelf: _Shelf) -> str:
    if not made.omitted:
        return content.text
    start = len(made.head.encode("utf-8", "replace"))
    how = shelf.put(content.text.encode("utf-8", "replace"), f"{shelf.tool}.txt", "text/plain", start=start)
    note = f"{made.omitted} of {len(content.text)} characters are left out here"
    return f"{made.head}\n[{note}. {how}]\n{made.tail}"


def _image_note(number: int, part: Part, shelf: _Shelf) -> str:
    data = _bytes_of(part)
    if data is None:
        return f"[A part of type {part.get('type')!r} is left out: there was no room for it.]"
    kind = str(part.get("mime_type") or "application/octet-stream")
    how = shelf.put(data, f"{shelf.tool}-{number}", kind)
    return f"[An image ({kind}, {len(data)} bytes) is left out: there was no room for it. {how}]"


def _bytes_of(part: Part) -> bytes | None:
    """Return the bytes of an image part; None if it only refers to some."""
    data = part.get("data")
    try:
        return b64decode(data, validate=True) if isinstance(data, str) else None
    except NotBase64Error:
        return None


class ReadResult:
    """The tool that reads what was left out, a page at a time.

    Args:
        page: How many bytes a page has.
    """

    name = READ_RESULT
    version = "1"
    parallel = True
    stateless = True

    def __init__(self, page: int) -> None:
        self._page = page

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        properties = {
            "id": {"type": "string", "description": "The id that stands where something was left out."},
            "start": {"type": "integer", "minimum": 0, "description": "The byte at which to begin."},
        }
        parameters = {"type": "object", "properties": properties, "required": ["id"]}
        about = "Read what was left out of a tool's result because it was too large."
        function = {"name": READ_RESULT, "description": about, "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any], context: Context) -> ToolMessage:
        page = read_page(context, arguments["id"], arguments.get("start", 0), self._page)
        return {"success": True, "page": page}

    def format_tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        page: dict[str, Any] = result["page"]
        return page


@lru_cache(maxsize=64)  # the same object each time: a new one makes the resolver decide everything anew
def _reader(page: int) -> ReadResult:
    return ReadResult(page)


def read_page(context: Context, asset_id: str, start: int, length: int) -> dict[str, Any]:
    """Return a page of what was stored, or the whole of an image, as a tool's structured result.

    Raises:
        ToolError: If there is nothing of that id in this session.
    """
    store: Assets | None = context.get(STORE)
    if store is None:
        raise ToolError(READ_RESULT, "there is no asset store here, so nothing was kept")
    asset = store.get(asset_id, session_id=str(context.get("session_id")))
    if asset.media_type in _IMAGES:
        data = b64encode(store.read(asset_id)).decode()
        picture = {"type": "image", "mime_type": asset.media_type, "data": data}
        return {"type": "tool_result", "text": f"The image {asset.name}.", "parts": [picture]}
    return {"type": "tool_result", "text": _text_page(store, asset, start, length)}


def _text_page(store: Assets, asset: Asset, start: int, length: int) -> str:
    """Return a page that begins at byte *start* and ends between two characters."""
    data = store.read(asset.id, start, length)
    if start + len(data) < asset.size:
        data = data[: _whole(data)]
    end, page = start + len(data), data.decode("utf-8", "replace")
    if end >= asset.size:
        return f"{page}\n[This is the end: {asset.size} bytes in all.]"
    return f"{page}\n[Bytes {start} to {end} of {asset.size}. Read on with start={end}.]"


_ASCII_END, _LONGER = 0x80, ((0xF0, 4), (0xE0, 3), (0xC0, 2))  # first bytes of UTF-8, and how many follow


def _whole(data: bytes) -> int:
    """Return how many bytes of *data* are whole characters."""
    for back, byte in enumerate(reversed(data[-4:])):
        if byte < _ASCII_END:
            return len(data) - back
        size = next((size for first, size in _LONGER if byte >= first), None)
        if size is not None:
            return len(data) - back - 1 if back + 1 < size else len(data)
    return len(data)
