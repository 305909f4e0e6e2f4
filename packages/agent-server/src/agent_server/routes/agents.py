"""Agents as they are declared: read, changed, made and removed by the rules of the settings file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Response

from agent_server.answers import json_answer
from agent_server.problem import Problem
from agent_server.schemas import AgentChange, AgentChanged, AgentDeclaration
from agent_server.services import Served

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter(prefix="/v1", tags=["agents"])
AgentId = Annotated[str, Path(min_length=1, max_length=200)]


@router.get("/settings/schema/agent", response_model=dict)
async def read_agent_schema(services: Served) -> Response:
    """Return the JSON Schema of an agent's declaration; `examples` of a field has what it can name here."""
    return json_answer(await asyncio.to_thread(_schema, services))


def _schema(services: Served) -> dict[str, Any]:
    whole = services.host.settings_schema()
    parts = whole.get("$defs", {})
    agent = parts.get("named_agent", {"type": "object", "properties": {}})
    choices = services.catalogue.agent_choices()
    fields = {
        name: {**about, "examples": choices[name]} if name in choices else about
        for name, about in agent["properties"].items()
    }
    return {**agent, "properties": fields, "$defs": parts}


@router.get("/agents/{agent_id}", response_model=AgentDeclaration)
async def read_agent(services: Served, agent_id: AgentId) -> Response:
    """Return what the settings say of an agent, and where each field stands."""
    return json_answer(await asyncio.to_thread(_declaration, services, agent_id))


def _declaration(services: Served, agent_id: str) -> dict[str, Any]:
    found = next((one for one in services.host.agents() if one["id"] == agent_id), None)
    if found is None and agent_id not in services.app.config.get("agents", {}):
        raise Problem(404, "agent-not-found", "There is no such agent")
    return found or {"id": agent_id, "declared": {}, "own": None, "origins": {}}


@router.put("/agents/{agent_id}", response_model=AgentChanged)
async def declare_agent(services: Served, agent_id: AgentId, change: AgentChange) -> Response:
    """Make an agent, or change one. It is checked first: one that could not run is refused and not saved."""
    return json_answer(await asyncio.to_thread(_change, services, agent_id, change.declared))


@router.delete("/agents/{agent_id}", response_model=AgentChanged)
async def remove_agent(services: Served, agent_id: AgentId) -> Response:
    """Take an agent's declaration away, unless another one or a setting needs it."""
    return json_answer(await asyncio.to_thread(_change, services, agent_id, None))


def _change(services: Served, agent_id: str, declared: Mapping[str, Any] | None) -> dict[str, Any]:
    """Have an agent declared so from now on, and save that; if it cannot be saved, it is as it was."""
    before = next((one["own"] for one in services.host.agents() if one["id"] == agent_id), None)
    now = dict(services.app.config)
    config, save = services.host.draft_agent(agent_id, declared)
    services.catalogue.use_agents(config)
    try:
        origin = save()
    except BaseException:
        services.catalogue.use_agents(now)
        raise
    # Workers are processes of their own, which have read their settings when they were started.
    applies = "now" if services.runs.are_local else "restart"
    return {"id": agent_id, "before": before, "origin": origin, "applies": applies}
