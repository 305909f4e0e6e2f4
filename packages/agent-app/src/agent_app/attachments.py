"""Attachments of a message: within the limits of the asset store, and always with their content.

A front end sends the content itself, as a part with its data, or names an asset of the session:
``{"type": "asset", "asset_id": …}``. The message has the content in either case: every provider understands
that, a branch does not depend on the session that it came from, and the store keeps equal content once.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_app.assets.asset import MAX_BYTES, AssetNotFound, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from agent_app.assets.store import AssetStore
    from agent_core import File, Message

    Attachments: TypeAlias = Sequence[Mapping[str, Any] | File]

_DEFAULT = Limits(max_bytes=MAX_BYTES, allowed_types=None, quota=None)
_DATA = ("data", "file_data", "url")
_INSIDE = ("image_url", "file", "input_audio")


def with_content(messages: Sequence[Message], assets: AssetStore | None, session_id: str) -> list[Message]:
    """Return messages with the content of the assets that they name.

    Raises:
        AssetNotFound: If the session has no such asset.
        AssetRefused: If a part is larger than an asset may be, or of a type that is not accepted.
    """
    return [_with_content(message, assets, session_id) for message in messages]


def _with_content(message: Message, assets: AssetStore | None, session_id: str) -> Message:
    if message.multipart_content is None:
        return message
    limits = _DEFAULT if assets is None else assets.limits
    parts = [_resolved(part, assets, session_id) for part in message.multipart_content]
    for part in parts:
        _check(part, limits)
    return replace(message, multipart_content=parts)


def _resolved(part: Mapping[str, Any], assets: AssetStore | None, session_id: str) -> dict[str, Any]:
    """Return a part unchanged, or the content of the asset that it names."""
    if part.get("type") != "asset":
        return dict(part)
    asset_id = part.get("asset_id")
    if assets is None or not isinstance(asset_id, str):
        raise AssetNotFound(asset_id if isinstance(asset_id, str) else repr(asset_id))
    asset = assets.get(asset_id, session_id=session_id)
    with assets.open(asset_id) as content:
        data = b64encode(content.read()).decode()
    kind = "image" if asset.media_type.startswith("image/") else "file"
    return {"type": kind, "mime_type": asset.media_type, "data": data, "name": asset.name}


def _check(part: Mapping[str, Any], limits: Limits) -> None:
    inner = next((part[name] for name in _INSIDE if isinstance(part.get(name), dict)), part)
    for data in (inner[name] for name in _DATA if isinstance(inner.get(name), str)):
        head, comma, body = data.partition(";base64,")
        limits.check_size(len(body if comma else data) * 3 // 4)
        kind = head.removeprefix("data:") if comma else part.get("mime_type")
        if isinstance(kind, str):
            limits.check_kind(str(part.get("name") or part.get("type")), kind)
