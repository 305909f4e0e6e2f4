"""People: who one is, API keys, who else is there, shared sessions, and the record of what was done."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from agent_core import AgentError
from agent_server.answers import items, json_answer
from agent_server.people.access import LINK_ID
from agent_server.people.accounts import PROVIDER_MARK
from agent_server.principal import Level, Principal
from agent_server.problem import Problem
from agent_server.schemas import (
    ApiKey,
    Invitation,
    Items,
    KeyChange,
    NewApiKey,
    NewLink,
    NewPerson,
    Person,
    PersonChange,
    Share,
    WhoAmI,
)
from agent_server.services import People, Served, Who

router = APIRouter(prefix="/v1", tags=["people"])


@router.get("/me", response_model=WhoAmI)
async def who_am_i(services: Served, who: Who) -> Response:
    """Return who you are, what you may, and what you used today."""
    answer: dict[str, Any] = {"id": who.id, "tenant": who.tenant, "level": who.level.name.lower()}
    if services.team is not None and who.session is None:
        answer["used"] = await asyncio.to_thread(services.team.accounts.used_today, who.id)
        allowed = services.team.quota.allowance
        answer["allowed"] = {
            "requests": allowed.requests, "runs": allowed.runs, "tokens": allowed.tokens, "cost": allowed.cost
        }  # fmt: skip
    return json_answer(answer)


@router.get("/me/shared", response_model=Items)
async def list_shared_with_me(team: People, who: Who) -> Response:
    """List the sessions that others have shared with you."""
    return items(await asyncio.to_thread(team.accounts.invitations, who.email))


@router.get("/me/api-keys", response_model=Items)
async def list_my_keys(team: People, who: Who) -> Response:
    """List your API keys, without their secrets."""
    return items(await asyncio.to_thread(team.accounts.keys, who.id))


@router.post("/me/api-keys", status_code=201, response_model=ApiKey)
async def create_my_key(team: People, who: Who, new: NewApiKey) -> Response:
    """Make an API key that may do as much as you, or less; its secret is in this answer alone."""
    return await _new_key(team, who.id, new, who.level)


@router.delete("/me/api-keys/{key_id}", status_code=204)
async def revoke_my_key(services: Served, team: People, who: Who, key_id: str) -> Response:
    """Make one of your keys worthless."""
    if not await asyncio.to_thread(team.accounts.revoke_key, key_id, who.id):
        raise Problem(404, "key-not-found", "There is no such key")
    await services.streams.check()
    return Response(status_code=204)


@router.get("/me/provider-keys", response_model=Items)
async def list_my_provider_keys(team: People, who: Who) -> Response:
    """List the providers for which you have stored a key of your own; the keys are never returned."""
    rows = await asyncio.to_thread(
        team.accounts.tables.rows,
        "SELECT provider, created FROM provider_keys WHERE person = ? ORDER BY provider",
        who.id,
    )
    return items([{"provider": provider, "created": created} for provider, created in rows])


@router.put("/me/provider-keys/{provider}", status_code=204)
async def set_my_provider_key(
    services: Served, team: People, who: Who, provider: str, change: KeyChange
) -> Response:
    """Store a key of your own, encrypted, after asking the provider whether it takes it; your runs use it."""
    if provider not in services.app.providers:
        raise Problem(404, "provider-not-found", "There is no such provider")
    if await asyncio.to_thread(team.accounts.find, who.id) is None:
        raise Problem(409, "no-person", "The operator stores keys with PUT /v1/keys")
    if change.test:
        config = services.app.config
        agent = str(config.get("default_agent") or next(iter(config.get("agents", {})), ""))
        try:
            await asyncio.to_thread(services.catalogue.try_key, provider, change.key, agent)
        except AgentError as error:
            raise Problem(422, "key-refused", "The provider did not take the key", str(error)) from error
    sealed = await asyncio.to_thread(team.vault.seal, change.key, whose=who.id)
    await asyncio.to_thread(
        team.accounts.tables.run,
        "INSERT INTO provider_keys (person, provider, sealed, created) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (person, provider) DO UPDATE SET sealed = excluded.sealed, created = excluded.created",
        who.id,
        provider,
        sealed,
        time.time(),
    )
    return Response(status_code=204)


@router.delete("/me/provider-keys/{provider}", status_code=204)
async def remove_my_provider_key(team: People, who: Who, provider: str) -> Response:
    """Forget a key of your own."""
    sql = "DELETE FROM provider_keys WHERE person = ? AND provider = ?"
    if not await asyncio.to_thread(team.accounts.tables.run, sql, who.id, provider):
        raise Problem(404, "key-not-found", "You have stored no key for that provider")
    return Response(status_code=204)


@router.get("/people", response_model=Items)
async def list_people(team: People, who: Who) -> Response:
    """List the people of your tenant; as the operator, all."""
    return items(await asyncio.to_thread(team.accounts.people, who.tenant))


@router.post("/people", status_code=201, response_model=Person)
async def add_person(team: People, who: Who, new: NewPerson) -> Response:
    """Add somebody: to your tenant or, as the operator, to any."""
    if new.id == Principal().id or new.id.startswith(LINK_ID):
        raise Problem(422, "invalid-argument", "The operator and links have such ids", "Choose another id.")
    if who.tenant is not None:
        _check_addition(new)
    tenant = who.tenant if who.tenant is not None else new.tenant
    if tenant is None:
        raise Problem(422, "invalid-argument", "Name the tenant of the person")
    person = await asyncio.to_thread(
        team.accounts.add, new.id, tenant=tenant, role=new.role, name=new.name, email=new.email
    )
    if person.tenant != tenant:
        raise Problem(409, "person-exists", "Somebody of that id is there already")
    return json_answer(person.to_dict(), 201)


def _check_addition(new: NewPerson) -> None:
    """Refuse what an owner may not say of a person: it would count for other tenants, too.

    Sessions are shared with addresses, and whoever logs in is known by the provider's id.

    Raises:
        Problem: If the owner says it.
    """
    if new.email:
        raise Problem(
            403,
            "not-allowed",
            "Only the operator may say which address is somebody's",
            "Leave `email` out: the provider confirms it when the person logs in.",
        )
    if PROVIDER_MARK in new.id:
        raise Problem(
            403,
            "not-allowed",
            "Only the operator may add people of a provider",
            f"They are added when they log in. Choose an id without {PROVIDER_MARK}.",
        )


@router.patch("/people/{person_id:path}", response_model=Person)
async def change_person(
    services: Served, team: People, who: Who, person_id: str, change: PersonChange
) -> Response:
    """Give somebody another role, or lock them out."""
    found = await asyncio.to_thread(
        team.accounts.change, person_id, who.tenant, role=change.role, disabled=change.disabled
    )
    if found is None:
        raise Problem(404, "person-not-found", "There is nobody of that id")
    await services.streams.check()
    return json_answer(found.to_dict())


@router.post("/people/api-keys", status_code=201, response_model=ApiKey)
async def create_key_for(
    team: People, who: Who, new: NewApiKey, person_id: Annotated[str, Query(max_length=500)]
) -> Response:
    """Make an API key for somebody of your tenant."""
    person = await asyncio.to_thread(team.accounts.find, person_id)
    if person is None or (who.tenant is not None and person.tenant != who.tenant):
        raise Problem(404, "person-not-found", "There is nobody of that id")
    return await _new_key(team, person.id, new, who.level)


async def _new_key(team: People, person_id: str, new: NewApiKey, level: Level) -> Response:
    if Level[new.scope.upper()] > level:
        raise Problem(403, "not-allowed", "A key may not do more than whoever makes it")
    if await asyncio.to_thread(team.accounts.find, person_id) is None:
        raise Problem(409, "no-person", "The operator has the token of the server, and needs no key")
    key, secret = await asyncio.to_thread(
        team.accounts.new_key, person_id, name=new.name, scope=new.scope, seconds=new.seconds
    )
    return json_answer({**key.to_dict(), "secret": secret}, 201)


@router.get("/sessions/{session_id}/shares", response_model=Items)
async def list_shares(services: Served, team: People, session_id: str) -> Response:
    """List how a session is shared."""
    return items(await asyncio.to_thread(team.accounts.shares, session_id, _tenant(services)))


@router.post("/sessions/{session_id}/shares", status_code=201, response_model=Share)
async def invite(services: Served, team: People, who: Who, session_id: str, new: Invitation) -> Response:
    """Invite somebody to a session, by the address with which they log in."""
    share = await asyncio.to_thread(
        team.accounts.invite,
        session_id,
        _tenant(services),
        email=new.email,
        role=new.role,
        made_by=who.id,
        seconds=new.seconds,
    )
    return json_answer(share.to_dict(), 201)


@router.post("/sessions/{session_id}/links", status_code=201, response_model=Share)
async def create_link(
    services: Served,
    team: People,
    who: Who,
    session_id: str,
    new: Annotated[NewLink | None, Body()] = None,
) -> Response:
    """Make a link by which anybody can read a session, until it is revoked; its secret is shown once."""
    seconds = (new or NewLink()).seconds
    share, secret = await asyncio.to_thread(
        team.accounts.new_link, session_id, _tenant(services), made_by=who.id, seconds=seconds
    )
    return json_answer({**share.to_dict(), "secret": secret}, 201)


@router.delete("/sessions/{session_id}/shares/{share_id}", status_code=204)
async def revoke_share(services: Served, team: People, session_id: str, share_id: str) -> Response:
    """Take an invitation or a link back."""
    if not await asyncio.to_thread(team.accounts.revoke_share, share_id, session_id, _tenant(services)):
        raise Problem(404, "share-not-found", "The session is not shared in that way")
    await services.streams.check()
    return Response(status_code=204)


def _tenant(services: Served) -> str:
    if services.tenant is None:
        raise Problem(409, "no-person", "The operator belongs to no tenant: share as one of its people")
    return services.tenant


@router.get("/audit", response_model=Items)
async def read_audit(
    team: People,
    who: Who,
    before: Annotated[float | None, Query(description="Only what happened before this moment.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List what was done and refused in your tenant, the latest first; as the operator, everywhere."""
    return items(await asyncio.to_thread(team.accounts.noted, who.tenant, before=before, limit=limit))
