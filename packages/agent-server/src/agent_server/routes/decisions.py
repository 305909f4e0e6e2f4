"""Approvals that runs wait for, and permissions for longer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from agent_server.answers import items, json_answer
from agent_server.problem import Problem
from agent_server.schemas import Approval, Decision, Grant, Items, NewGrant
from agent_server.services import Served

router = APIRouter(prefix="/v1", tags=["decisions"])
SessionId = Annotated[str | None, Query(max_length=200)]


@router.get("/approvals", response_model=Items)
async def list_approvals(
    services: Served,
    session_id: SessionId = None,
    decided: Annotated[bool, Query(description="Those that were made as well.")] = False,  # noqa: FBT002
) -> Response:
    """List the decisions that runs wait for."""
    return items(await services.app.approvals_async(session_id, decided=decided))


@router.post("/approvals/{approval_id}", response_model=Approval)
async def decide(
    services: Served, approval_id: str, decision: Decision, session_id: SessionId = None
) -> Response:
    """Decide, and have the run continue with it."""
    given = decision.model_dump(exclude_unset=True, exclude={"go_on"})
    approval = await services.app.decide_async(approval_id, given, session_id=session_id)
    if decision.go_on:
        await services.runs.go_on(approval.session_id, approval.id)
    return json_answer(approval.to_dict())


@router.get("/grants", response_model=Items)
async def list_grants(
    services: Served,
    session_id: SessionId = None,
    project: Annotated[str | None, Query(max_length=5000)] = None,
) -> Response:
    """List what was granted: what counts in a session or a project, or everything."""
    return items(await services.app.grants_async(session_id, project))


@router.post("/grants", status_code=201, response_model=Grant)
async def grant(services: Served, new: NewGrant) -> Response:
    """Let calls run from now on, or forbid them."""
    given = await services.app.grant_async(
        new.pattern, scope=new.scope, session_id=new.session_id, project=new.project, effect=new.effect
    )
    return json_answer(given.to_dict(), 201)


@router.delete("/grants/{grant_id}", status_code=204)
async def revoke(services: Served, grant_id: str) -> Response:
    """Take a grant back."""
    if not await services.app.revoke_async(grant_id):
        raise Problem(404, "grant-not-found", "There is no such grant")
    return Response(status_code=204)
