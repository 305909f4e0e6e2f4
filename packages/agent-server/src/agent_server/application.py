"""The HTTP application: routes on an `AgentApplication`, behind a gate."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from agent_app.catalogue import Catalogue
from agent_core import AgentError
from agent_server.access import Gate, Proxies
from agent_server.event_stream import RAW_SEND, Streams
from agent_server.feed import Feeds, Gone
from agent_server.host import NoHost
from agent_server.limits import Bounded, Compressed, Limits
from agent_server.metrics import Counted
from agent_server.people.access import Audited
from agent_server.problem import REQUEST_ID, Problem, problem_of
from agent_server.routes import (
    agents,
    assets,
    catalogue,
    decisions,
    events,
    health,
    page,
    people,
    plugins,
    runs,
    sessions,
)
from agent_server.runs import LocalRuns
from agent_server.schemas import ProblemDetails
from agent_server.services import Services
from agent_server.shortcut import Shortcut
from agent_server.workers import WorkerRuns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_app import AgentApplication
    from agent_server.access import Access
    from agent_server.host import Host
    from agent_server.people.team import Team
    from agent_server.workers import Workers

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names under which a server of this machine is reached."""
LOCAL_PROXIES = ("127.0.0.1", "::1")
"""Where a proxy of this machine comes from."""


class Server:
    """An ASGI application that serves an `AgentApplication`.

    Args:
        app: What is served; the caller closes it.
        access: Knows who may.
        host: Knows settings and keys, if somebody does.
        hosts: The names under which the server is reached, without ports.
        proxies: Addresses or networks of the proxies that may say whether a browser came by TLS.
        limits: How large and slow requests may be.
        heartbeat: After how many seconds of silence a reader of events hears that the server is there.
        patience: How many seconds such a reader may take nothing before it is cut off.
        grace: How many seconds runs have to finish when the server stops, before they are cancelled.
        team: The people, if there are several; then *access* is a `TeamAccess`.
        workers: Sends runs to workers, which share the database; without them, this process runs them.

    Attributes:
        services: What the routes work with.
        api: The FastAPI application behind the gate.
    """

    def __init__(
        self,
        app: AgentApplication,
        access: Access,
        *,
        host: Host | None = None,
        hosts: Sequence[str] = LOOPBACK,
        proxies: Sequence[str] = LOCAL_PROXIES,
        limits: Limits | None = None,
        heartbeat: float = 10.0,
        patience: float = 30.0,
        grace: float = 20.0,
        workers: Workers | None = None,
        team: Team | None = None,
    ) -> None:
        feeds, program = Feeds(app), host or NoHost()
        self.api = describe_api()
        counted = Counted(Shortcut(self.api))
        self.services = Services(
            app=app,
            access=access,
            host=program,
            catalogue=Catalogue(app, program.key_of),
            feeds=feeds,
            streams=Streams(heartbeat=heartbeat, patience=patience),
            runs=LocalRuns(app, feeds) if workers is None else WorkerRuns(app, workers),
            team=team,
            metrics=counted,
        )
        self.api.state.services = self.services
        self._grace = grace
        self._proxies = Proxies(proxies)
        inner = Bounded(Compressed(counted), limits or Limits())
        entrance: ASGIApp = Gate(inner, access, hosts)
        if team is not None:
            entrance = Audited(entrance, team.accounts)
        self._entrance: ASGIApp = Numbered(entrance)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[RAW_SEND] = send
        if scope["type"] == "http":
            scope["scheme"] = self._proxies.scheme(scope)
        await self._entrance(scope, receive, send)

    async def stop(self) -> None:
        """Let runs of this process finish, or cancel them in the end; tell readers to connect again."""
        await self.services.runs.stop(self._grace)  # readers see their ends
        await self.services.streams.close()
        await self.services.feeds.close()
        if self.services.team is not None:
            await self.services.team.close()


_PROBLEM: dict[str, Any] = {
    "description": "What is wrong with the request, as RFC 9457 has it.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}


class _Api(FastAPI):
    """FastAPI, whose description also has how requests prove who they are, and what problems look like."""

    def openapi(self) -> dict[str, Any]:
        described = super().openapi()
        components = described.setdefault("components", {})
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        components["schemas"]["ProblemDetails"] = ProblemDetails.model_json_schema()
        described["security"] = [{"token": []}]
        return described


_ROUTES = (health, sessions, runs, events, decisions, plugins, assets, catalogue, agents, people, page)


def describe_api() -> FastAPI:
    """Return the routes, which can be described without an application."""
    api = _Api(
        title="Keelwork",
        version=version("keelwork-server"),
        description="Sessions and agents over HTTP.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        generate_unique_id_function=lambda route: route.name,
        responses={"4XX": _PROBLEM, "5XX": _PROBLEM},
    )
    for module in _ROUTES:
        api.include_router(module.router)
    for kind in (Problem, AgentError, Gone, Exception):
        api.add_exception_handler(kind, _on_error)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    api.add_exception_handler(HTTPException, _on_http)
    return api


async def _on_error(request: Request, error: Exception) -> Response:
    return problem_of(error).response(request.scope)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"field": ".".join(str(step) for step in one["loc"]), "message": one["msg"]} for one in error.errors()
    ]
    return Problem(
        422, "invalid-request", "The request does not fit", "See errors for the fields.", errors=errors
    ).response(request.scope)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, "http", str(error.detail), headers=error.headers)
    return problem.response(request.scope)


class Numbered:
    """Gives each request an id, which answers and the log have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = uuid4().hex
        own = [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]

        async def send_numbered(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        with suppress(Exception):  # it is answered and logged, and the server goes on
            await self._app(scope, receive, send_numbered)


def create_server(app: AgentApplication, access: Access, **settings: Any) -> Server:
    """Return the ASGI application that serves an `AgentApplication`; see `Server`."""
    return Server(app, access, **settings)
