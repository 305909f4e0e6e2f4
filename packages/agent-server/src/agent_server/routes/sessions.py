"""Sessions: made, listed, read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Response

from agent_server.answers import json_answer, session_info
from agent_server.schemas import NewSession, SessionInfo
from agent_server.services import Served

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.post("", status_code=201, response_model=SessionInfo)
async def create_session(services: Served, new: Annotated[NewSession | None, Body()] = None) -> Response:
    """Make a session."""
    new = new or NewSession()
    session = await services.app.create_session_async(new.agent_id, metadata=new.metadata)
    if new.title:
        info = await services.app.rename_session_async(session.session_id, new.title)
    else:
        info = await services.app.session_info_async(session.session_id)
    return json_answer(session_info(info), 201, {"location": f"/v1/sessions/{info.id}"})


@router.get("/{session_id}", response_model=SessionInfo)
async def read_session(services: Served, session_id: str) -> Response:
    """Return what is known of a session."""
    return json_answer(session_info(await services.app.session_info_async(session_id)))
