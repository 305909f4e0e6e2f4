"""What plugins offer, as data that a terminal or a page draws: actions, elements, forms, suggestions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from agent_core import PluginError
from agent_core.encoding import as_data
from agent_core.frozen import NotData
from agent_server.answers import items, json_answer
from agent_server.idempotency import IdempotencyKey
from agent_server.principal import Level, Principal
from agent_server.problem import Problem
from agent_server.schemas import ActionCall, ActionResult, CompletionRequest, Completions, Items
from agent_server.services import Served, Services, Who

router = APIRouter(prefix="/v1", tags=["plugins"])


def _result_answer(plugin: str, result: dict[str, Any]) -> Response:
    """Return what an action returned; an object in it is shown as text.

    Raises:
        PluginError: If it has no end.
    """
    try:
        return json_answer({"result": as_data(result)})
    except (NotData, RecursionError) as error:
        problem = "its result is nested too deeply to be sent"
        raise PluginError(plugin, "execute_action", problem) from error


async def _is_operators(services: Services, who: Principal, plugin: str) -> bool:
    """Say whether an action is not for this person: application plugins act for all tenants at once."""
    if services.team is None or who.level >= Level.OPERATE:
        return False
    return any(action["plugin"] == plugin for action in await services.app.get_actions_async())


def _operators() -> Problem:
    return Problem(403, "not-allowed", "That acts for all people of this server: its operator may do it")


@router.get("/actions", response_model=Items)
async def list_application_actions(services: Served, who: Who) -> Response:
    """List the actions of application plugins; where there are several people, for the operator."""
    found = await services.app.get_actions_async()
    return items([one for one in found if not await _is_operators(services, who, one["plugin"])])


@router.post("/actions/{plugin}/{action_id}", response_model=ActionResult)
async def run_application_action(
    services: Served,
    who: Who,
    plugin: str,
    action_id: str,
    call: ActionCall,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Run an action of an application plugin, and return its result."""
    if await _is_operators(services, who, plugin):
        raise _operators()

    async def run() -> Response:
        result = await services.app.execute_application_action_async(
            plugin, action_id, call.params, confirmed=call.confirmed
        )
        return _result_answer(plugin, result)

    name = f"action {plugin} {action_id}"
    return await services.repeats.once(who.id, name, idempotency_key, call.model_dump(), run)


@router.get("/sessions/{session_id}/actions", response_model=Items)
async def list_session_actions(services: Served, who: Who, session_id: str) -> Response:
    """List what can be done in a session."""
    found = await services.app.get_actions_async(session_id)
    return items([one for one in found if not await _is_operators(services, who, one["plugin"])])


@router.post("/sessions/{session_id}/actions/{plugin}/{action_id}", response_model=ActionResult)
async def run_session_action(
    services: Served,
    who: Who,
    session_id: str,
    plugin: str,
    action_id: str,
    call: ActionCall,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Run an action of the session's agent; what it changes is stored."""
    if await _is_operators(services, who, plugin):
        raise _operators()

    async def run() -> Response:
        await services.runs.until_free(session_id)
        _, result = await services.app.execute_session_action_async(
            session_id, plugin, action_id, call.params, confirmed=call.confirmed
        )
        return _result_answer(plugin, result)

    name = f"action {session_id} {plugin} {action_id}"
    return await services.repeats.once(who.id, name, idempotency_key, call.model_dump(), run)


@router.get("/ui", response_model=Items)
async def list_elements(
    services: Served, session_id: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """List what plugins want shown: those of the application and, for a session, of its agent."""
    return items(await services.app.get_ui_schema_async(session_id))


@router.get("/sessions/{session_id}/config-schema", response_model=Items)
async def read_config_schema(services: Served, session_id: str) -> Response:
    """List the settings that the plugins of the session's agent read, for a form."""
    return items(await services.app.get_config_schema_async(session_id))


@router.post("/sessions/{session_id}/completions", response_model=Completions)
async def complete(services: Served, session_id: str, asked: CompletionRequest) -> Response:
    """Return suggestions for the text before the cursor, or the text of an accepted one."""
    app = services.app
    if asked.completion is not None:
        text = await app.apply_completion_async(session_id, asked.text, asked.completion)
        return json_answer({"items": [], "text": text})
    return json_answer({"items": await app.get_completions_async(session_id, asked.text), "text": None})


@router.get("/plugins", response_model=Items)
async def list_plugins(
    services: Served,
    agent_id: Annotated[str | None, Query(max_length=200, description="Explain them for an agent.")] = None,
) -> Response:
    """List the plugins of an agent: which are on, and why; and those that could not be loaded."""
    return items(await asyncio.to_thread(services.catalogue.explain_plugins, agent_id))
