"""What every route works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from agent_server.access import LocalAccess
from agent_server.event_stream import Streams
from agent_server.feed import Feeds
from agent_server.runs import Runs

if TYPE_CHECKING:
    from agent_app import AgentApplication


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that belongs to one server."""

    app: AgentApplication
    access: LocalAccess
    feeds: Feeds
    streams: Streams
    runs: Runs

    @classmethod
    def of(
        cls, app: AgentApplication, access: LocalAccess, *, heartbeat: float = 10.0, patience: float = 30.0
    ) -> Services:
        """Make what an application needs to be served."""
        feeds = Feeds(app)
        streams = Streams(heartbeat=heartbeat, patience=patience)
        return cls(app=app, access=access, feeds=feeds, streams=streams, runs=Runs(app, feeds))


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Served = Annotated[Services, Depends(_services)]
"""The services of the server that answers a request."""
