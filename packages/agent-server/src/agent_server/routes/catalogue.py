"""What can be run, and how this installation is set up: agents, models, providers, settings, keys."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Path, Response

from agent_core import AgentError
from agent_server.answers import items, json_answer
from agent_server.problem import Problem
from agent_server.schemas import Items, KeyChange, SettingChange, Version
from agent_server.services import Served

router = APIRouter(prefix="/v1", tags=["catalogue"])
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
    return items(await services.app.list_models_async())


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


@router.put("/settings/{name}", response_model=dict)
async def change_setting(services: Served, name: Name, change: SettingChange) -> Response:
    """Change a setting; null removes it. `applies` says whether the server has to be started again."""
    return json_answer(await asyncio.to_thread(services.host.change_setting, name, change.value))


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


@router.get("/doctor", response_model=Items)
async def examine(services: Served) -> Response:
    """Look for what is wrong with this installation; nothing is changed."""
    return items(await asyncio.to_thread(services.host.doctor))
