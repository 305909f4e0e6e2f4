"""What every route works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from agent_app.catalogue import Catalogue
from agent_server.access import PRINCIPAL, LocalAccess, Principal
from agent_server.event_stream import Streams
from agent_server.feed import Feeds
from agent_server.host import Host
from agent_server.idempotency import Repeats
from agent_server.runs import Runs

if TYPE_CHECKING:
    from agent_app import AgentApplication


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that belongs to one server."""

    app: AgentApplication
    access: LocalAccess
    host: Host
    catalogue: Catalogue
    feeds: Feeds
    streams: Streams
    runs: Runs
    repeats: Repeats = field(default_factory=Repeats)


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _who(request: Request) -> Principal:
    principal: Principal = request.scope[PRINCIPAL]
    return principal


Served = Annotated[Services, Depends(_services)]
"""The services of the server that answers a request."""

Who = Annotated[Principal, Depends(_who)]
"""Who makes a request."""
