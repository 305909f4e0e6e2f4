"""The events of one session, and of all."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from agent_server.answers import json_answer
from agent_server.event_stream import EventStreamResponse
from agent_server.feed import Cursor
from agent_server.routes.runs import EVENT_STREAM, STREAM
from agent_server.services import Served, still_allowed

router = APIRouter(prefix="/v1", tags=["events"])
After = Annotated[
    str | None,
    Query(max_length=50, description="The id of the last event that was seen."),
]
LastEventId = Annotated[str | None, Header(max_length=50, description="The same, as browsers send it.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many, where events are asked for as JSON.")]


@router.get("/sessions/{session_id}/events", responses={200: STREAM})
async def follow_session(
    request: Request,
    services: Served,
    session_id: str,
    after: After = None,
    last_event_id: LastEventId = None,
    limit: Limit = 100,
) -> Response:
    """Send the events of a session behind a place, then those to come.

    With `Accept: application/json`, return those that are logged.
    """
    cursor = Cursor.parse(last_event_id or after or "0")
    if not wants_stream(request):
        await services.app.session_info_async(session_id)
        return json_answer({"items": await services.app.events_async(session_id, cursor.seq, limit)})
    return EventStreamResponse(
        services.feeds, services.streams, session_id, cursor, allowed=still_allowed(request)
    )


@router.get("/events", responses={200: STREAM})
async def follow_all(
    request: Request,
    services: Served,
    after: After = None,
    last_event_id: LastEventId = None,
    limit: Limit = 100,
) -> Response:
    """Send the events of all sessions, with their `session_id`, behind a place or from now on."""
    place = last_event_id or after
    if not wants_stream(request):
        cursor = Cursor.parse(place or "0")
        return json_answer({"items": await services.app.all_events_async(str(cursor.seq), limit)})
    return EventStreamResponse(
        services.feeds,
        services.streams,
        None,
        None if place is None else Cursor.parse(place),
        tenant=services.tenant,
        allowed=still_allowed(request),
    )


def wants_stream(request: Request) -> bool:
    """Say whether events are asked for as they come, which they are unless somebody wants JSON."""
    accept = request.headers.get("accept", "")
    return "application/json" not in accept or EVENT_STREAM in accept
