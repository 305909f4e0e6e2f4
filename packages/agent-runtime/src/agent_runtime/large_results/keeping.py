"""Where the rest of a large result goes, and how it is read again: the session's asset store.

The store belongs to a layer above; here it is anything with `put`, `get` and `read`, handed down in the
context of a tool call. Text is kept as UTF-8, and read by characters as far as a model can tell.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent_core import AgentError, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

READ_RESULT = "read_result"
STORE = "session_asset_store"
_LONGEST_CHARACTER = 4
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Assets(Protocol):
    """What is needed of an asset store."""

    def put(self, session_id: str, data: bytes, *, name: str, media_type: str | None = None) -> Any:
        """Keep data of a session and return what has its `id`."""

    def get(self, asset_id: str, *, session_id: str | None = None) -> Any:
        """Return what is known of an asset: `size`, `media_type`, `name`."""

    def read(self, asset_id: str, start: int = 0, length: int | None = None) -> bytes:
        """Return content of an asset."""


class Kept(NamedTuple):
    """A piece that was left out: its id in the store, or why it has none."""

    id: str | None
    problem: str = ""


def keep(context: Mapping[str, Any], data: bytes, name: str, media_type: str | None) -> Kept:
    """Keep what is left out of a result; that it cannot be kept is told, and no reason to lose the rest."""
    store, session_id = context.get(STORE), context.get("session_id")
    if store is None or not isinstance(session_id, str):
        return Kept(None, "there is no asset store to keep it in")
    try:
        return Kept(store.put(session_id, data, name=name, media_type=media_type).id)
    except AgentError as error:
        return Kept(None, f"it could not be kept: {error}")


def media_data(part: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of an image part; None if it only refers to some."""
    data = part.get("data")
    try:
        return b64decode(data, validate=True) if isinstance(data, str) else None
    except NotBase64Error:
        return None


def read_page(context: Mapping[str, Any], asset_id: str, start: int, length: int) -> dict[str, Any]:
    """Return a page of what was kept, or the whole of an image, as a tool's structured result.

    Raises:
        ToolError: If there is nothing of that id in this session.
    """
    store = context.get(STORE)
    if store is None:
        raise ToolError(READ_RESULT, "there is no asset store here, so nothing was kept")
    asset = store.get(asset_id, session_id=str(context.get("session_id")))
    if asset.media_type in _IMAGES:
        picture = {"type": "image", "mime_type": asset.media_type, "data": _encoded(store, asset_id)}
        return {"type": "tool_result", "text": f"The image {asset.name}.", "parts": [picture]}
    return {"type": "tool_result", "text": _text_page(store, asset, start, length)}


def _encoded(store: Assets, asset_id: str) -> str:
    return b64encode(store.read(asset_id)).decode()


def _text_page(store: Assets, asset: Any, start: int, length: int) -> str:
    """Return a page that begins at byte *start* and ends between two characters."""
    data = store.read(asset.id, start, length)
    end = start + len(data)
    if end < asset.size:
        end = start + _whole(data)
    page = data[: end - start].decode("utf-8", "replace")
    if end >= asset.size:
        return f"{page}\n[This is the end: {asset.size} bytes in all.]"
    return f"{page}\n[Bytes {start} to {end} of {asset.size}. Read on with start={end}.]"


def _whole(data: bytes) -> int:
    """Return how many bytes of *data* are whole characters."""
    for back in range(min(_LONGEST_CHARACTER, len(data))):
        byte = data[-1 - back]
        if byte < 0x80:  # noqa: PLR2004 - ASCII
            return len(data) - back
        if byte >= 0xC0:  # noqa: PLR2004 - where a longer character begins
            size = 2 + (byte >= 0xE0) + (byte >= 0xF0)  # noqa: PLR2004
            return len(data) - back - 1 if back + 1 < size else len(data)
    return len(data)
