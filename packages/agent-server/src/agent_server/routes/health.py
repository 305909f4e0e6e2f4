"""Whether the server is there, and whether it can work."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from agent_core import AgentError
from agent_server.metrics import MEDIA_TYPE, gauges
from agent_server.problem import Problem
from agent_server.services import Served

router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(services: Served) -> dict[str, str]:
    """Say whether the server can take requests: it is not stopping, and its database answers."""
    if services.runs.is_stopping:
        raise Problem(503, "stopping", "The server stops", headers={"retry-after": "1"})
    try:
        async with asyncio.timeout(5):
            await services.app.list_sessions_async(limit=1)
    except (AgentError, TimeoutError) as error:
        raise Problem(
            503, "not-ready", "The database does not answer", headers={"retry-after": "1"}
        ) from error
    return {"status": "ok"}


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
async def read_metrics(services: Served) -> Response:
    """Return what the server counts, for Prometheus; it needs the token of the server."""
    values = {"streams": len(services.streams), "feeds": len(services.feeds)}
    values |= await services.runs.count()
    lines = [*services.metrics.lines(), *gauges(values)]
    return Response("\n".join([*lines, ""]), 200, {"cache-control": "no-store"}, MEDIA_TYPE)
