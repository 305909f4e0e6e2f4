"""Files of sessions. What a browser could run is only ever downloaded."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response

from agent_server.answers import items, json_answer
from agent_server.problem import Problem
from agent_server.schemas import Asset, AssetList
from agent_server.services import Served

router = APIRouter(prefix="/v1/sessions/{session_id}/assets", tags=["assets"])
_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"})
"""What a browser may show: the content was looked at, and it cannot run anything."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@router.get("", response_model=AssetList)
async def list_assets(services: Served, session_id: str) -> Response:
    """List the files of a session."""
    return items(await services.app.list_assets_async(session_id))


@router.post(
    "",
    status_code=201,
    response_model=Asset,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def add_asset(
    request: Request,
    services: Served,
    session_id: str,
    name: Annotated[str, Query(min_length=1, max_length=500, description="What people call it.")],
    content_type: Annotated[str | None, Header(max_length=200, include_in_schema=False)] = None,
) -> Response:
    """Keep a file, which is the body of the request; its type is read from its content."""
    added = await services.app.add_asset_async(
        session_id, await request.body(), name=name, media_type=content_type
    )
    location = f"/v1/sessions/{session_id}/assets/{added['id']}"
    return json_answer(added, 201, {"location": location})


@router.get(
    "/{asset_id}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file"}},
)
async def read_asset(
    services: Served,
    session_id: str,
    asset_id: str,
    range_: Annotated[str | None, Header(alias="range", max_length=100)] = None,
    if_none_match: Annotated[str | None, Header(max_length=500)] = None,
) -> Response:
    """Return a file, or a part of it."""
    about, data = await services.app.read_asset_async(session_id, asset_id)
    tag = f'"{about["sha256"]}"'
    kind = about["media_type"]
    disposition = "inline" if kind in _SHOWN else "attachment"
    headers = {
        "accept-ranges": "bytes",
        "etag": tag,
        "cache-control": "private, max-age=31536000, immutable",
        "content-disposition": f"{disposition}; filename*=UTF-8''{quote(about['name'], safe='')}",
        "content-security-policy": "default-src 'none'; sandbox",
        "cross-origin-resource-policy": "same-origin",
    }
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    part = None if range_ is None else _part(range_, len(data))
    if part is None:
        return Response(data, 200, headers, kind)
    first, last = part
    headers["content-range"] = f"bytes {first}-{last}/{len(data)}"
    return Response(data[first : last + 1], 206, headers, kind)


def _part(asked: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte of a range; None if it cannot be read, which means the whole.

    Raises:
        Problem: If it is behind the end.
    """
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if found[1]:
        first, last = int(found[1]), min(int(found[2] or size - 1), size - 1)
    else:
        first, last = max(0, size - int(found[2])), size - 1
    if first > last or first >= size:
        raise Problem(
            416, "range", "There is no such part of the file", headers={"content-range": f"bytes */{size}"}
        )
    return first, last


@router.delete("/{asset_id}", status_code=204)
async def remove_asset(services: Served, session_id: str, asset_id: str) -> Response:
    """Take a file from a session."""
    if not await services.app.remove_asset_async(session_id, asset_id):
        raise Problem(404, "asset-not-found", "There is no such asset")
    return Response(status_code=204)
