"""What every route works with."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated
from weakref import WeakValueDictionary

from fastapi import Depends, Request

from agent_app.catalogue import Catalogue
from agent_app.errors import SessionNotFound, StoreUnavailable
from agent_core import AgentError
from agent_server.access import AUTHENTICATE, Access
from agent_server.event_stream import Streams
from agent_server.feed import Feeds
from agent_server.host import Host
from agent_server.idempotency import Repeats
from agent_server.metrics import Counted
from agent_server.people.team import Team
from agent_server.principal import PRINCIPAL, ROLES, Principal, needed
from agent_server.problem import Problem
from agent_server.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from agent_app import AgentApplication

_MOST_VIEWS = 1000
_BEHIND = re.compile(
    r"/v1/sessions/[^/]+/(next-request|config-schema|actions|messages/[^/]+/(request|edit-plan))"
)
"""What is behind a conversation: instructions and settings of the agent, which a link does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that belongs to one server.

    Attributes:
        app: The application; for a person, with the sessions of one tenant alone.
        team: The people, where there are several.
        tenant: Whose sessions there are; None for all.
    """

    app: AgentApplication
    access: Access
    host: Host
    catalogue: Catalogue
    feeds: Feeds
    streams: Streams
    runs: Runs
    metrics: Counted
    team: Team | None = None
    tenant: str | None = None
    repeats: Repeats = field(default_factory=Repeats)
    _changing: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _views: dict[str, Services] = field(default_factory=dict)

    def of_tenant(self, tenant: str) -> Services:
        """Return the same with the sessions of one tenant alone."""
        view = self._views.pop(tenant, None)
        if view is None:
            view = replace(self, app=self.app.of_tenant(tenant), tenant=tenant, _views={})
        self._views[tenant] = view
        if len(self._views) > _MOST_VIEWS:
            del self._views[next(iter(self._views))]
        return view

    def changing(self, session_id: str) -> asyncio.Lock:
        """Return what lets one request at a time look at a session and change it."""
        return self._changing.setdefault(session_id, asyncio.Lock())

    def is_guest(self, who: Principal) -> bool:
        """Say whether somebody belongs to another tenant, and was invited to a session of this one."""
        return self.team is not None and who.tenant is not None and who.tenant != self.tenant

    async def shared_with(self, who: Principal) -> Collection[str] | None:
        """Return the sessions that a guest may see; None for somebody of this tenant, who sees all."""
        if who.session is not None:
            return {who.session}
        if self.team is None or not self.is_guest(who):
            return None
        shares = await asyncio.to_thread(self.team.accounts.invitations, who.email)
        return {share.session for share in shares}


async def services_of(request: Request) -> Services:
    """Return what a request may work with; a session of another tenant is not there unless it is shared.

    Raises:
        SessionNotFound: If the session of its path is none that this person may see.
        Problem: If the person may not do that with it.
    """
    services: Services = request.app.state.services
    who: Principal | None = request.scope.get(PRINCIPAL)
    if who is None or who.tenant is None or services.team is None:
        return services
    session_id: str | None = request.path_params.get("session_id")
    if session_id is None and request.scope["path"].startswith("/v1/approvals"):
        session_id = request.query_params.get("session_id")
    own = services.of_tenant(who.tenant)
    if who.session is not None and session_id != who.session:
        raise Problem(403, "not-allowed", "The link is for one session")
    if who.session is not None and _BEHIND.fullmatch(request.scope["path"]):
        raise Problem(403, "not-allowed", "The link is for what was said")
    if session_id is None:
        return own
    try:
        await own.app.session_info_async(session_id)
    except SessionNotFound:
        share = await asyncio.to_thread(services.team.accounts.invitation_of, who.email, session_id)
        if share is None:
            raise
        if min(who.level, ROLES[share.role]) < needed(request.method, request.scope["path"]):
            raise Problem(403, "not-allowed", "You may read this session, and not change it") from None
        shared = services.of_tenant(share.tenant)
        await shared.app.session_info_async(session_id)
        return shared
    return own


def still_allowed(request: Request) -> Callable[[], Awaitable[bool]] | None:
    """Return what says whether a request would be allowed now, for an answer that takes long.

    Returns:
        None for whoever has the token of the server, which is good as long as the server runs.
    """
    who: Principal | None = request.scope.get(PRINCIPAL)
    if who is None or who.tenant is None:
        return None

    async def ask() -> bool:
        try:
            request.scope[PRINCIPAL] = await request.scope[AUTHENTICATE]()
            await services_of(request)
        except StoreUnavailable:  # which says nothing of who may
            return True
        except (Problem, AgentError):
            return False
        return True

    return ask


async def who_asks(request: Request) -> Principal:
    """Return who makes a request."""
    principal: Principal = request.scope[PRINCIPAL]
    return principal


async def _team(request: Request) -> Team:
    services: Services = request.app.state.services
    if services.team is None:
        raise Problem(
            409, "one-person", "This server is for one person", "Start it with --team to have several."
        )
    return services.team


Served = Annotated[Services, Depends(services_of)]
"""The services of the server that answers a request."""

Who = Annotated[Principal, Depends(who_asks)]
"""Who makes a request."""

People = Annotated[Team, Depends(_team)]
"""The people of the server."""
