"""Runs: begun, watched, stopped, and what is said while they go on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import jsonschema_rs
from fastapi import APIRouter, Path, Query, Request, Response

from agent_server.answers import items, json_answer, run_result
from agent_server.event_stream import EventStreamResponse
from agent_server.idempotency import IdempotencyKey, named_id
from agent_server.principal import Level, Principal
from agent_server.problem import Problem
from agent_server.runs import Run
from agent_server.schemas import (
    Items,
    NewInput,
    PastRuns,
    RunRequest,
    RunResult,
    RunStarted,
    Stopped,
    Trace,
    Waiting,
)
from agent_server.services import Served, Services, Who, still_allowed

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter(prefix="/v1/sessions/{session_id}", tags=["runs"])
EVENT_STREAM = "text/event-stream"
STREAM = {
    "description": "Events, each with the `id` to continue from and JSON as `data`.",
    "content": {EVENT_STREAM: {"schema": {"type": "string"}}, "application/json": {}},
}
FREE_SETTINGS = frozenset({"temperature", "top_p", "max_tokens", "reasoning_effort", "seed", "stop"})
"""What people may set for a run where there are several: the rest could send the server's keys elsewhere."""
Seq = Annotated[int, Path(ge=1, le=2**62)]


@router.post(
    "/runs", status_code=202, response_model=RunStarted, responses={200: {**STREAM, "model": RunResult}}
)
async def start_run(
    request: Request,
    services: Served,
    who: Who,
    session_id: str,
    asked: RunRequest,
    wait: Annotated[bool, Query(description="Answer when the run is over.")] = False,  # noqa: FBT002
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Say something in a session and have its agent answer.

    With `Accept: text/event-stream` the answer is the run's events. Otherwise it comes at once, or with
    `wait` when the run is over. The run goes on if the connection breaks, unless it is `attached` to it.
    """
    run_id = named_id(f"run {session_id}", who.id, idempotency_key)
    if asked.output_schema is not None:
        _check_schema(asked.output_schema)

    async def begin() -> Run:
        return await services.runs.start(
            session_id,
            asked.text,
            attachments=asked.attachments,
            overrides=await _settings(services, who, session_id, asked),
            limits={} if asked.limits is None else asked.limits.model_dump(exclude_unset=True),
            take_over=asked.take_over,
            run_id=run_id,
            **({"tenant": services.tenant} if services.tenant else {}),
            **({} if services.team is None or who.level >= Level.OPERATE else {"person": who.id}),
        )

    async def start() -> Run:
        return await begin() if services.team is None else await services.team.run(who, begin)

    run = await services.repeats.once(
        who.id, f"run {session_id}", idempotency_key, asked.model_dump(mode="json"), start
    )
    return await _answer(request, services, run, asked, wait=wait)


async def _settings(services: Services, who: Principal, session_id: str, asked: RunRequest) -> dict[str, Any]:
    """Return the settings of a run, with the person's own key if there is one; it is kept nowhere.

    Workers look for that key themselves: what is sent to them is stored.
    """
    team, overrides = services.team, dict(asked.overrides)
    if team is not None:
        team.check_request(who, overrides, FREE_SETTINGS)
    if asked.output_schema is not None:
        overrides["output_schema"] = asked.output_schema
    if team is None or who.level >= Level.OPERATE:
        return overrides
    if not services.runs.are_local:
        return overrides
    provider = await asyncio.to_thread(services.catalogue.provider_of, session_id)
    key = await team.own_key(who, provider)
    return overrides if key is None else {**overrides, "api_key": key, "api_key_origin": f"key of {who.id}"}


async def _answer(
    request: Request, services: Services, run: Run, asked: RunRequest, *, wait: bool
) -> Response:
    session_id = run.session_id

    async def left() -> None:
        if asked.attached:
            await services.runs.cancel(session_id)

    if EVENT_STREAM in request.headers.get("accept", ""):
        return EventStreamResponse(
            services.feeds,
            services.streams,
            session_id,
            run.after,
            one_run=True,
            left=left,
            allowed=still_allowed(request),
        )
    if wait:
        final = await run.end()
        if final.get("type") != "final":
            message = str(final.get("error", {}).get("message", ""))
            raise Problem(502, "run-failed", "The run failed", message)
        result = run_result(session_id, final)
        if asked.output_schema is not None and not result["approvals"]:
            result["output"] = _read_output(result["text"], asked.output_schema)
        return json_answer(result)
    follow = f"/v1/sessions/{session_id}/events?after={run.after}"
    started = {"session_id": session_id, "after": str(run.after), "events": follow}
    return json_answer(started, 202, {"location": follow})


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is not a JSON Schema, or refers to one that we would have to fetch.

    Raises:
        Problem: If so.
    """
    try:
        jsonschema_rs.validator_for(dict(schema), retriever=_fetch_nothing)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise Problem(422, "invalid-schema", "output_schema is not a schema", str(error)[:500]) from error


def _read_output(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of an answer that must fit a schema.

    Raises:
        Problem: If it does not fit the schema.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _misfit(f"it is not JSON: {error}") from error
    validator = jsonschema_rs.validator_for(dict(schema), retriever=_fetch_nothing)
    problem = next(iter(validator.iter_errors(value)), None)
    if problem is not None:
        raise _misfit(problem.message)
    return value


def _misfit(why: str) -> Problem:
    detail = f"The session has it; {why[:500]}"
    return Problem(502, "output-misfit", "The answer does not fit the schema", detail)


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"a schema must be whole: {uri} is not fetched")


@router.get("/runs", response_model=PastRuns)
async def list_runs(
    services: Served,
    session_id: str,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Runs that began before it.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """List the runs of a session that its log has, the latest first."""
    return json_answer(await services.app.list_runs_async(session_id, before, limit))


@router.get("/runs/{run_id}/trace", response_model=Trace)
async def read_trace(services: Served, session_id: str, run_id: str) -> Response:
    """Return what a run did when: its steps, its answers and its calls."""
    found = await services.app.trace_async(session_id, run_id)
    if found is None:
        raise Problem(404, "run-not-found", "There is no such run", "The log has no times of it.")
    return json_answer(found)


@router.post("/cancel", response_model=Stopped)
async def cancel_run(services: Served, session_id: str) -> Response:
    """Stop the run of a session; what it produced is kept."""
    await services.app.session_info_async(session_id)
    return json_answer({"stopped": await services.runs.cancel(session_id)})


@router.post("/interrupt", response_model=Stopped)
async def interrupt_run(services: Served, session_id: str) -> Response:
    """Have a run answer now what was queued for it."""
    await services.app.session_info_async(session_id)
    return json_answer({"stopped": await services.runs.interrupt(session_id)})


@router.get("/inputs", response_model=Items)
async def list_inputs(services: Served, session_id: str) -> Response:
    """List the messages that wait to be delivered."""
    await services.app.session_info_async(session_id)
    return items(await services.app.queued_async(session_id))


@router.post("/inputs", status_code=201, response_model=Waiting)
async def add_input(
    services: Served, who: Who, session_id: str, new: NewInput, idempotency_key: IdempotencyKey = None
) -> Response:
    """Say something while a run goes on; it is safe when this is answered."""

    async def add() -> Response:
        waiting = await services.app.enqueue_async(
            session_id, new.text, new.mode, attachments=new.attachments
        )
        return json_answer(waiting.to_dict(), 201)

    body = new.model_dump(mode="json")
    return await services.repeats.once(who.id, f"input {session_id}", idempotency_key, body, add)


@router.put("/inputs/{seq}", response_model=Waiting)
async def edit_input(services: Served, session_id: str, seq: Seq, new: NewInput) -> Response:
    """Change a message that waits."""
    edited = await services.app.edit_queued_async(
        session_id, seq, new.text, new.mode, attachments=new.attachments
    )
    if edited is None:
        raise _delivered(seq)
    return json_answer(edited.to_dict())


@router.delete("/inputs/{seq}", status_code=204)
async def withdraw_input(services: Served, session_id: str, seq: Seq) -> Response:
    """Take a message back that waits."""
    if not await services.app.withdraw_async(session_id, seq):
        raise _delivered(seq)
    return Response(status_code=204)


def _delivered(seq: int) -> Problem:
    return Problem(
        404,
        "input-not-found",
        "The message does not wait",
        f"There is no {seq}, or it was delivered.",
    )
