"""For tests: an application with a scripted provider and a tool, behind a server on a real socket."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from agent_server import LocalAccess, background, create_server
from agent_server.people.access import TeamAccess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_server.application import Server
    from agent_server.people.team import Team

TOKEN = "a-token-of-the-tests"  # noqa: S105 - no secret


@dataclass(frozen=True)
class Served:
    """A running server, and somebody who may use it."""

    app: AgentApplication
    server: Server
    access: LocalAccess
    url: str
    client: httpx2.Client
    stop: Callable[[], None]

    def new_session(self, **fields: Any) -> str:
        """Make a session and return its id."""
        answer = self.client.post("/v1/sessions", json=fields)
        assert answer.is_success, answer.text
        found: str = answer.json()["id"]
        return found

    def ask(self, session_id: str, text: str = "", **fields: Any) -> list[Event]:
        """Say something, and return all events up to the end of the run."""
        with self.streaming(
            "POST", f"/v1/sessions/{session_id}/runs", json={"text": text, **fields}
        ) as events:
            return list(events)

    @contextmanager
    def streaming(self, method: str, path: str, **more: Any) -> Iterator[Iterator[Event]]:
        """Give the events that a request is answered with."""
        headers = {"accept": "text/event-stream", **more.pop("headers", {})}
        with self.client.stream(method, path, headers=headers, **more) as answer:
            if not answer.is_success:
                answer.read()
            assert answer.is_success, answer.text
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield read_events(answer.iter_lines())

    @contextmanager
    def follow(self, session_id: str, after: str = "0") -> Iterator[Iterator[Event]]:
        """Give the events of a session behind a place."""
        with self.streaming("GET", f"/v1/sessions/{session_id}/events?after={after}") as events:
            yield events


@dataclass(frozen=True)
class Event:
    """An event as it was received; `name` is set for those of the transport."""

    id: str
    name: str
    data: dict[str, Any]

    @property
    def type(self) -> str:
        """What it is: the type of an event, or its name."""
        return str(self.data.get("type", self.name))


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """Read events from lines."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}


def text_of(events: Iterable[Event]) -> str:
    """Return the text that events add up to."""
    return "".join(event.data["text"] for event in events if event.type == "text")


class Paced:
    """Lets a provider send one piece at a time: give it to `ScriptedProvider` as `sleep`."""

    def __init__(self) -> None:
        self._room = threading.Semaphore(0)

    def release(self, pieces: int = 1) -> None:
        """Let some more pieces through."""
        self._room.release(pieces)

    async def __call__(self, _seconds: float) -> None:
        while not self._room.acquire(blocking=False):  # noqa: ASYNC110 - a test releases it, on no loop
            await asyncio.sleep(0.001)


class Serving:
    """Serves applications until it is closed.

    Args:
        folder: Where they keep their sessions and assets.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()

    def close(self) -> None:
        """End all servers and applications."""
        self._stack.close()

    def __call__(
        self,
        script: Iterable[Any] = (),
        *,
        plugins: Iterable[Any] = (),
        config: Mapping[str, Any] | None = None,
        store: str | None = None,
        provider: Any = None,
        **settings: Any,
    ) -> Served:
        """Serve an application whose model plays a script.

        Args:
            settings: As of `create_server`.
        """
        enter = self._stack.enter_context
        app = enter(
            AgentApplication(
                {**_CONFIG, **(config or {})},
                store=store or f"sqlite:///{self._folder}/app.db",
                assets=self._folder / "assets" if store is None else None,
                plugins=[provider or ScriptedProvider(script), *plugins],
                installed=False,
            )
        )
        access = LocalAccess(TOKEN)
        team: Team | None = settings.get("team")
        whoever: Any = access
        if team is not None:
            whoever = TeamAccess(access, team.accounts, team.vault, team.quota, team.provider)
        server = create_server(app, whoever, **settings)
        running = enter(ExitStack())
        url = running.enter_context(background(server))
        client = enter(httpx2.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60))
        return Served(app, server, access, url, client, running.close)


_CONFIG = {
    "agents": {"main": {"model": "m"}, "other": {"model": "m"}},
    "default_agent": "main",
    "models": {"m": {"provider": "scripted", "model": "m-1"}},
}


def until(events: Iterator[Event], kind: str) -> list[Event]:
    """Return events up to the first of a type."""
    seen = []
    for event in events:
        seen.append(event)
        if event.type == kind:
            return seen
    raise AssertionError(f"the events ended without {kind}: {[event.type for event in seen]}")


ASKS = {"permissions": {"default": "ask"}}
"""The configuration of an application in which every call is asked about."""


class Notes:
    """Writes notes; one that says "fail" fails.

    Attributes:
        written: The notes that were written.
    """

    name = "notes"
    version = "1"

    def __init__(self) -> None:
        self.written: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool, `note`."""
        properties = {"text": {"type": "string"}}
        parameters = {"type": "object", "properties": properties, "required": ["text"]}
        function = {"name": "note", "description": "Write a note.", "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Write a note."""
        if arguments["text"] == "fail":
            return {"success": False, "error": "the pen is broken"}
        self.written.append(arguments["text"])
        return {"success": True, "result": f"written: {arguments['text']}"}
