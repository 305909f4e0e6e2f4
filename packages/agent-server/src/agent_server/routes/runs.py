"""Runs: begun, watched, stopped; and the events of sessions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request

from agent_server.answers import json_answer, run_result
from agent_server.event_stream import EventStreamResponse
from agent_server.feed import Cursor
from agent_server.problem import Problem
from agent_server.schemas import RunRequest, RunResult, RunStarted
from agent_server.services import Served

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["runs"])
EVENT_STREAM = "text/event-stream"
_STREAM = {"description": "The events", "content": {EVENT_STREAM: {"schema": {"type": "string"}}}}


@router.post("/runs", status_code=202, response_model=RunStarted | RunResult, responses={200: _STREAM})
async def start_run(
    request: Request,
    services: Served,
    session_id: str,
    asked: RunRequest,
    wait: Annotated[bool, Query(description="Answer when the run is over.")] = False,  # noqa: FBT002
) -> Any:
    """Say something in a session and have its agent answer.

    With `Accept: text/event-stream` the answer is the run's events. Otherwise it comes at once, or with
    `wait` when the run is over. The run goes on if the connection breaks, unless it is `attached` to it.
    """
    run = await services.runs.start(
        session_id,
        asked.text,
        attachments=asked.attachments,
        overrides=asked.overrides,
        limits={} if asked.limits is None else asked.limits.model_dump(exclude_unset=True),
    )

    def left() -> None:
        if asked.attached:
            services.app.cancel(session_id)

    if EVENT_STREAM in request.headers.get("accept", ""):
        return EventStreamResponse(
            services.feeds, services.streams, session_id, run.after, until=run.is_over, left=left
        )
    if wait:
        await run.done.wait()
        if run.final is None or run.final["type"] == "error":
            error = {} if run.final is None else run.final["error"]
            raise Problem(502, "run-failed", "The run failed", str(error.get("message", "")))
        return json_answer(run_result(session_id, run.final))
    follow = f"/v1/sessions/{session_id}/events?after={run.after}"
    started = {"session_id": session_id, "after": str(run.after), "events": follow}
    return json_answer(started, 202, {"location": follow})


@router.get("/events", responses={200: _STREAM})
async def follow_session(
    services: Served,
    session_id: str,
    after: Annotated[str | None, Query(description="The id of the last event that was seen.")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Any:
    """Send the events of a session behind a place, and then as they come."""
    cursor = Cursor.parse(last_event_id or after or "0")
    return EventStreamResponse(services.feeds, services.streams, session_id, cursor)
