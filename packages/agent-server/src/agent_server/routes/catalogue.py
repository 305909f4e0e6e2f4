"""What can be run, and how this installation is set up: agents, models, providers, settings, keys."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from agent_core import AgentError
from agent_server.answers import items, json_answer
from agent_server.problem import Problem
from agent_server.schemas import (
    Choice,
    Connections,
    Items,
    KeyChange,
    ModelTest,
    SettingChange,
    UsageRows,
    Version,
)
from agent_server.services import Served

if TYPE_CHECKING:
    from agent_app.store.base import SessionInfo

router = APIRouter(prefix="/v1", tags=["catalogue"])
_MOST_SESSIONS = 2000
Name = Annotated[str, Path(max_length=200)]


@router.get("/version", response_model=Version)
async def read_version() -> Response:
    """Return what this server is."""
    return json_answer({"name": "keelwork", "version": version("keelwork-server"), "api": "v1"})


@router.get("/agents", response_model=Items)
async def list_agents(services: Served) -> Response:
    """List the declared agents."""
    return items(await services.app.list_agents_async())


@router.get("/models", response_model=Items)
async def list_models(services: Served) -> Response:
    """List the declared models; a session can also have any PROVIDER:MODEL."""
    found = await services.app.list_models_async()
    if services.tenant is not None:  # what others have asked for by name is not for this tenant to know
        found = [one for one in found if one["id"] not in services.catalogue.asked_for]
    return items(found)


@router.post("/models/test", response_model=dict)
async def test_model(services: Served, asked: ModelTest) -> Response:
    """Ask the provider of a model whether it can be used: its key, its address, its name."""
    await asyncio.to_thread(_test_model, services, asked.model)
    return json_answer({"model": asked.model, "works": True})


def _test_model(services: Served, model: str) -> None:
    agent = _default(services)
    spec = services.catalogue.declare(model)
    services.catalogue.check(agent, spec)
    offered = services.catalogue.offered_by_model(agent, spec)
    if offered and spec.model and spec.model not in offered:
        raise Problem(422, "model-not-offered", "The provider answers, but does not offer this model")


@router.get("/providers", response_model=Items)
async def list_providers(services: Served) -> Response:
    """List the providers, and whether each has a key."""
    keys = {one["name"]: one["origin"] for one in await asyncio.to_thread(services.host.keys)}
    return items([{"id": name, "key": keys.get(name)} for name in services.app.providers])


@router.get("/providers/{provider}/models", response_model=Items)
async def list_offered_models(services: Served, provider: Name) -> Response:
    """Ask a provider for the models that it offers."""
    if provider not in services.app.providers:
        raise Problem(404, "provider-not-found", "There is no such provider")
    try:
        return items(await asyncio.to_thread(services.catalogue.offered_by, provider, _default(services)))
    except AgentError as error:
        raise Problem(502, "provider-failed", "The provider cannot be asked", str(error)) from error


def _default(services: Served) -> str:
    config = services.app.config
    return str(config.get("default_agent") or next(iter(config.get("agents", {})), ""))


@router.get("/settings", response_model=Items)
async def list_settings(services: Served) -> Response:
    """List the settings that hold, and where each comes from; secrets are left out."""
    return items(await asyncio.to_thread(services.host.settings))


@router.get("/settings/schema", response_model=dict)
async def read_settings_schema(services: Served) -> Response:
    """Return the JSON Schema of the settings."""
    return json_answer(await asyncio.to_thread(services.host.settings_schema))


@router.put("/settings/{name}", response_model=dict)
async def change_setting(services: Served, name: Name, change: SettingChange) -> Response:
    """Change a setting; null removes it. `applies` says whether the server has to be started again."""
    return json_answer(await asyncio.to_thread(_change_setting, services, name, change.value))


def _change_setting(services: Served, name: str, value: Any) -> dict[str, Any]:
    """Change a setting; one of a plugin counts from the next request on, if its agents can run with it."""
    changed = services.host.change_setting(name, value)
    table, _, rest = name.partition(".")
    if table != "plugins" or not rest:
        return changed
    plugin = rest.partition(".")[0].strip('"')
    if plugin not in services.app.runtime.registries.plugins:
        return changed  # a provider, say, which agents do not name
    try:
        services.catalogue.set_plugin_settings(plugin, *services.host.plugin_settings(plugin))
    except AgentError as error:
        return {**changed, "problem": str(error)}
    return {**changed, "applies": "now"}


@router.get("/keys", response_model=Items)
async def list_keys(services: Served) -> Response:
    """List which providers have a key; a key itself is never returned."""
    return items(await asyncio.to_thread(services.host.keys))


@router.put("/keys/{provider}", response_model=dict)
async def set_key(services: Served, provider: Name, change: KeyChange) -> Response:
    """Store a provider's key, after asking the provider whether it takes it."""
    if provider not in services.app.providers:
        raise Problem(404, "provider-not-found", "There is no such provider")
    if change.test:
        try:
            await asyncio.to_thread(services.catalogue.try_key, provider, change.key, _default(services))
        except AgentError as error:
            raise Problem(422, "key-refused", "The provider did not take the key", str(error)) from error
    origin = await asyncio.to_thread(services.host.set_key, provider, change.key)
    await asyncio.to_thread(services.catalogue.lend_key, provider, again=True)
    return json_answer({"name": provider, "origin": origin})


@router.delete("/keys/{provider}", status_code=204)
async def remove_key(services: Served, provider: Name) -> Response:
    """Forget a key."""
    if not await asyncio.to_thread(services.host.remove_key, provider):
        raise Problem(404, "key-not-found", "No key is stored for that provider")
    return Response(status_code=204)


@router.get("/setup", response_model=Connections)
async def read_setup(services: Served) -> Response:
    """List what could answer: what was found here first, then what can be connected."""
    return json_answer(await asyncio.to_thread(services.host.connections))


@router.post("/setup/check", response_model=Items)
async def check_setup(services: Served, choice: Choice) -> Response:
    """Ask what was chosen for its models; nothing is saved."""
    return items(await asyncio.to_thread(services.host.offered_models, choice.model_dump()))


@router.post("/setup", response_model=dict)
async def save_setup(services: Served, choice: Choice) -> Response:
    """Have a model answer from now on. It is checked first, and all of it is saved or nothing."""
    return json_answer(await asyncio.to_thread(_save_setup, services, choice))


def _save_setup(services: Served, choice: Choice) -> dict[str, Any]:
    saved = services.host.connect(choice.model_dump())
    answer = {"model": saved["model"]["id"], "text": saved["text"]}
    try:
        services.catalogue.use_model(_default(services), saved["model"], saved["settings"])
    except AgentError as error:
        return {**answer, "applies": "restart", "problem": str(error)}
    return {**answer, "applies": "now"}


@router.get("/usage", response_model=UsageRows)
async def read_all_usage(
    services: Served,
    days: Annotated[
        int, Query(ge=1, le=366, description="Sessions that were used within so many days.")
    ] = 30,
) -> Response:
    """Add up what models used, by the day on which a session was last used, by agent and by model."""
    since, cursor, looked_at = time.time() - days * 86400, None, 0
    rows: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    while looked_at < _MOST_SESSIONS:
        page = await services.app.list_sessions_async(None, cursor, 100)
        for info in page.sessions:
            if info.updated < since:
                return json_answer({"items": list(rows.values()), "complete": True})
            _add_usage(rows, info, await services.app.session_usage_async(info.id))
        looked_at, cursor = looked_at + len(page.sessions), page.cursor
        if cursor is None:
            break
    return json_answer({"items": list(rows.values()), "complete": cursor is None})


def _add_usage(
    rows: dict[tuple[str, str | None, str], dict[str, Any]], info: SessionInfo, usage: dict[str, Any]
) -> None:
    day = datetime.fromtimestamp(info.updated, UTC).date().isoformat()
    for one in usage["models"]:
        key = (day, info.agent_id, str(one["model"]))
        counted = ("requests", "input_tokens", "output_tokens", "cost")
        row = rows.setdefault(
            key, {"day": day, "agent": info.agent_id, "model": key[2], **dict.fromkeys(counted, 0)}
        )
        for name in counted:
            row[name] += one.get(name) or 0


@router.get("/doctor", response_model=Items)
async def examine(services: Served) -> Response:
    """Look for what is wrong with this installation; nothing is changed."""
    return items(await asyncio.to_thread(services.host.doctor))
