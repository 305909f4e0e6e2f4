"""The application of a server, for a chat and for commands that otherwise use this user's own.

`RemoteApplication` answers to the names of `AgentApplication` that a chat needs, so the chat knows one
interface. Values are the application's own types. What only the process of the agent can do (resolve it,
complete its commands) raises `NotOnServer`, which the chat shows like every other error.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from agent_app.errors import SessionHeld, SessionNotFound
from agent_app.services import AGENT
from agent_app.store.base import Approval, Grant, Lease, Page, SessionInfo, Waiting
from agent_core import AgentError, Message, Session
from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from agent_app import AgentApplication
    from agent_client import AsyncClient, Client, ClientError
    from agent_terminal_app.paths import Paths

TOKEN_VARIABLE = "AGENT_SERVER_TOKEN"  # noqa: S105 - the name of a variable
_PAGE = 500


class ServerError(AgentError):
    """A server refuses something, or cannot be reached."""


class NotOnServer(AgentError, AttributeError):
    """Something needs the agent in this process, and it is in that of a server."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the agent is on a server, which does not offer this here ({name})")


class NoWindows:
    """The context windows of models that a server asks: it knows them, and the chat does not."""

    def known(self, _model_id: str) -> int | None:
        return None

    def was_looked_for(self, _model_id: str) -> bool:
        return True

    def find(self, _agent_id: str, _model_id: str) -> int | None:
        return None

    def reads_only_text(self, _agent_id: str, _model_id: str) -> bool:
        return False


class RemoteApplication:
    """The sessions and agents of a server.

    Every method has a twin with `_async`, which waits for it in a thread.

    Args:
        url: Where the server is.
        token: Who asks.

    Attributes:
        problems: Of plugins: the server has them.
        is_ephemeral: Never; a server keeps its sessions.
    """

    problems = ()
    is_ephemeral = False

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self.windows = NoWindows()
        self._token = token
        self._client: Client = lazy.Client(url, token)
        self._new_client: Callable[[], AsyncClient] = partial(lazy.AsyncClient, url, token)
        self._error: type[ClientError] = lazy.ClientError

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def __getattr__(self, name: str) -> Any:
        method = name.removesuffix("_async")
        if method != name and hasattr(type(self), method):
            return partial(asyncio.to_thread, getattr(self, method))
        raise NotOnServer(name)

    @contextmanager
    def _asking(self, session_id: str = "") -> Iterator[Client]:
        """Give the client; what it raises becomes an error of the application.

        Raises:
            SessionNotFound, SessionHeld, ServerError: As the server says.
        """
        try:
            yield self._client
        except self._error as error:
            raise self._read_error(error, session_id) from error

    def _read_error(self, error: ClientError, session_id: str) -> AgentError:
        kind = getattr(error, "kind", "")
        if kind == "session-not-found":
            return SessionNotFound(session_id)
        if kind in ("session-held", "session-busy"):
            holder = None
            with suppress(AgentError):
                holder = self.holder(session_id)
            return SessionHeld(session_id, holder or _lease(session_id, {"owner": "the server"}))
        return ServerError(f"{self.url}: {error}")

    # Sessions

    @cached_property
    def config(self) -> dict[str, Any]:
        """The agents and models of the server, by id."""
        with self._asking() as client:
            agents, models = client.agents(), client.models()
        default = next((one["id"] for one in agents if one["default"]), None)
        return {
            "agents": {one["id"]: one for one in agents},
            "models": {one["id"]: one for one in models},
            **({} if default is None else {"default_agent": default}),
        }

    def choose_session(self, session: str | None, agent: str | None, model: str | None) -> str:
        """Return the id of the session to use: a new one or a stored one, with agent and model asked for."""
        with self._asking(session or "") as client:
            if session is None:
                return client.create_session(agent, model=model).id
            if agent is not None or model is not None:
                client.change_session(session, agent_id=agent, model=model)
            return client.session(session).id

    def create_session(self, agent_id: str | None = None, **_more: Any) -> Session:
        """Make a session; it works in a folder of the server, and not in one of this computer."""
        with self._asking() as client:
            return Session(client.create_session(agent_id).id)

    def session_info(self, session_id: str) -> SessionInfo:
        with self._asking(session_id) as client:
            return _info(client.session(session_id))

    def list_sessions(self, query: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
        with self._asking() as client:
            found = client.list_sessions(query, cursor, limit)
        return Page(tuple(_info(one) for one in found.sessions), found.cursor)

    def find_sessions(self, given: str, limit: int = 50) -> list[SessionInfo]:
        """Return the sessions whose id begins with a text, then those whose title it is, of the last ones."""
        page = self.list_sessions(limit=_PAGE)
        begun = [info for info in page if info.id.startswith(given)]
        titled = [info for info in page if info.title == given and info not in begun]
        return [*begun[:limit], *titled[:limit]]

    def first_messages(self, session_ids: Sequence[str]) -> dict[str, Message]:
        found = {one: self.read_messages(one, before=1, limit=1) for one in session_ids}
        return {session_id: messages[0] for session_id, messages in found.items() if messages}

    def session_usage(self, session_id: str) -> dict[str, Any]:
        with self._asking(session_id) as client:
            return client.usage(session_id)

    def read_messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        with self._asking(session_id) as client:
            return [_message(one) for one in client.messages(session_id, before=before, limit=limit)]

    def load_session(self, session_id: str) -> Session:
        """Return a session with all its messages; of its metadata, what the server tells."""
        info = self.session_info(session_id)
        messages: list[Message] = []
        before = info.messages
        while before > 0:
            page = self.read_messages(session_id, before=before, limit=_PAGE)
            messages[:0] = page
            before -= len(page) or before
        return Session(session_id, messages, {} if info.agent_id is None else {AGENT: info.agent_id})

    def rename_session(self, session_id: str, title: str) -> SessionInfo:
        with self._asking(session_id) as client:
            return _info(client.change_session(session_id, title=title))

    def delete_session(self, session_id: str, reason: str = "") -> None:
        with self._asking(session_id) as client:
            client.delete_session(session_id)

    def switch_agent(self, session_id: str, agent_id: str) -> Session:
        with self._asking(session_id) as client:
            client.change_session(session_id, agent_id=agent_id)
        return Session(session_id)

    def use_model(self, session_id: str, model: str) -> None:
        """Have another model answer in a session; an empty name means the agent's own."""
        with self._asking(session_id) as client:
            client.change_session(session_id, model=model)

    def fork_session(self, session_id: str, *, upto_index: int, agent_id: str | None = None) -> Session:
        with self._asking(session_id) as client:
            return Session(client.fork_session(session_id, upto_index=upto_index, agent_id=agent_id).id)

    def edit_message(self, session_id: str, index: int, content: str) -> Session:
        with self._asking(session_id) as client:
            return Session(client.edit_message(session_id, index, content).id)

    def regenerate(self, session_id: str, index: int) -> Session:
        with self._asking(session_id) as client:
            return Session(client.regenerate(session_id, index).id)

    def branches(self, session_id: str) -> list[SessionInfo]:
        with self._asking(session_id) as client:
            return [_info(one) for one in client.branches(session_id)]

    def session_state(self, session_id: str) -> dict[str, Any]:
        with self._asking(session_id) as client:
            return client.state(session_id)

    def holder(self, session_id: str) -> Lease | None:
        held = self.session_state(session_id)["holder"]
        return None if held is None else _lease(session_id, held)

    def run_session_lifecycle(self, _name: str, session: Session) -> tuple[Session, list[Any]]:
        """Do nothing: the server runs the lifecycles of its sessions."""
        return session, []

    # Runs

    @contextmanager
    def chat(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        limits: Mapping[str, Any] | None = None,
    ) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Say something in a session, and give what happens; a lost connection is made again."""
        with self._asking(session_id) as client:
            events = client.run(session_id, text, attachments=attachments, limits=limits or None)
            with closing(events):
                yield (event.data for event in events)

    @asynccontextmanager
    async def chat_async(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        take_over: bool = False,
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """Do what `chat` does, on the running event loop."""
        try:
            async with self._new_client() as client:
                events = client.run(session_id, text, attachments=attachments, take_over=take_over or None)
                async with aclosing(events):
                    yield self._events(session_id, events)
        except self._error as error:
            raise await asyncio.to_thread(self._read_error, error, session_id) from error

    async def _events(self, session_id: str, events: Any) -> AsyncIterator[Mapping[str, Any]]:
        async for event in events:
            if event.type in ("final", "turn_end"):  # as those of the application have it
                session = await asyncio.to_thread(self.load_session, session_id)
                yield {**event.data, "session": session}
            else:
                yield event.data

    def cancel(self, session_id: str) -> bool:
        """Stop the run of a session, without waiting for the server: the keyboard must not hang."""

        def ask() -> None:
            with suppress(AgentError), self._asking(session_id) as client:
                client.cancel(session_id)

        threading.Thread(target=ask, daemon=True).start()
        return True

    def enqueue(
        self,
        session_id: str,
        text: str,
        mode: str = "steer",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
    ) -> Waiting:
        with self._asking(session_id) as client:
            return _waiting(client.enqueue(session_id, text, mode, attachments=attachments))

    def queued(self, session_id: str) -> list[Waiting]:
        with self._asking(session_id) as client:
            return [_waiting(one) for one in client.queued(session_id)]

    def withdraw(self, session_id: str, seq: int) -> bool:
        with self._asking(session_id) as client:
            try:
                client.withdraw(session_id, seq)
            except self._error as error:
                if getattr(error, "kind", "") == "input-not-found":
                    return False
                raise
        return True

    def last_event(self, session_id: str) -> int:
        with self._asking(session_id) as client:
            return int(client.state(session_id)["last_event"])

    def events(self, session_id: str, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        with self._asking(session_id) as client:
            return client.logged_events(session_id, after=after, limit=limit)

    async def wait_for_run(self, session_id: str, after: int | None) -> Mapping[str, Any]:
        """Wait until a run begins in a session, whoever began it, and return the event with which it does.

        Args:
            after: Behind which event; None for those to come.

        Raises:
            ServerError: If the server cannot be reached any more.
        """
        if after is None:
            after = await asyncio.to_thread(self.last_event, session_id)
        try:
            async with (
                self._new_client() as client,
                aclosing(client.events(session_id, str(after))) as events,
            ):
                async for event in events:
                    if event.type == "run_start":
                        return event.data
        except self._error as error:
            raise await asyncio.to_thread(self._read_error, error, session_id) from error
        raise SessionNotFound(session_id)  # the events end when it is deleted

    # Decisions

    def approvals(self, session_id: str | None = None, *, decided: bool = False) -> list[Approval]:
        with self._asking(session_id or "") as client:
            found = client.approvals(session_id, decided=decided)
        return [
            Approval(
                id=one.id,
                session_id=one.session_id,
                suspension=one.suspension,
                created=one.created,
                decision=one.decision,
                used=one.used,
            )
            for one in found
        ]

    def decide(self, approval_id: str, decision: Any, *, session_id: str | None = None) -> None:
        """Decide; the chat asks for the run that continues with it, as it does of an application."""
        given = dict(decision) if isinstance(decision, dict) else {"approved": bool(decision)}
        with self._asking(session_id or "") as client:
            client.decide(approval_id, **given, go_on=False)

    def grants(self, session_id: str | None = None, _project: object = None) -> list[Grant]:
        with self._asking(session_id or "") as client:
            return [_grant(one) for one in client.grants(session_id)]

    def grant(
        self, pattern: str, *, scope: str, session_id: str | None = None, effect: str = "allow"
    ) -> Grant:
        with self._asking(session_id or "") as client:
            return _grant(client.grant(pattern, scope=scope, session_id=session_id, effect=effect))

    def revoke(self, grant_id: str) -> bool:
        with self._asking() as client:
            client.revoke(grant_id)
        return True

    # What plugins offer

    def get_actions(self, session_id: str | None = None) -> list[dict[str, Any]]:
        with self._asking(session_id or "") as client:
            return client.actions(session_id)

    def get_ui_schema(self, session_id: str | None = None) -> list[dict[str, Any]]:
        with self._asking(session_id or "") as client:
            found: list[dict[str, Any]] = client.request("GET", "/v1/ui", params={"session_id": session_id})[
                "items"
            ]
            return found

    def execute_application_action(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        with self._asking() as client:
            return client.run_action(plugin, action_id, params, confirmed=_is_confirmed(context))

    def execute_session_action(
        self,
        session_id: str,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, object] | None = None,
    ) -> tuple[Session, dict[str, Any]]:
        confirmed = _is_confirmed(context)
        with self._asking(session_id) as client:
            result = client.run_action(plugin, action_id, params, session_id=session_id, confirmed=confirmed)
            return Session(session_id), result

    def complete(self, session_id: str, text: str) -> list[dict[str, Any]]:
        """Return what the plugins of the session's agent suggest for a text."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/completions"
        with self._asking(session_id) as client:
            return list(client.request("POST", path, {"text": text})["items"])

    def apply_completion(self, session_id: str, text: str, completion: Mapping[str, Any]) -> str:
        """Return what a plugin makes of a suggestion that was accepted; empty to leave it as it is."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/completions"
        with self._asking(session_id) as client:
            asked = {"text": text, "completion": dict(completion)}
            return str(client.request("POST", path, asked)["text"] or "")


def _is_confirmed(context: Mapping[str, object] | None) -> bool:
    """Say whether the person said yes; the rest of the context is about this terminal."""
    return (context or {}).get("confirmed") is True


def _info(one: Any) -> SessionInfo:
    names = ("id", "title", "agent_id", "created", "updated", "messages", "revision", "parent_id", "match")
    return SessionInfo(**{name: getattr(one, name) for name in names}, extra=one.extra)


def _message(data: Mapping[str, Any]) -> Message:
    return Message.from_dict({key: value for key, value in data.items() if key != "index"})


def _waiting(one: Any) -> Waiting:
    return Waiting(
        seq=one.seq, session_id=one.session_id, message=one.message, mode=one.mode, created=one.created
    )


def _grant(one: Any) -> Grant:
    return Grant(
        id=one.id,
        pattern=one.pattern,
        effect=one.effect,
        scope=one.scope,
        key=one.key,
        created=one.created,
        note=one.note,
    )


def _lease(session_id: str, held: Mapping[str, Any]) -> Lease:
    return Lease(session_id=session_id, owner=held["owner"], token=0, expires=held.get("expires", 0.0))


def server_of(app: object) -> RemoteApplication | None:
    """Return the application if it is one of a server; None if it is this process's own."""
    return app if isinstance(app, RemoteApplication) else None


# Opening


def connect(url: str, paths: Paths) -> RemoteApplication:
    """Return the application of a server.

    Raises:
        CommandError: If the client is not installed, or the server refuses the token or cannot be reached.
    """
    try:
        application = RemoteApplication(url, find_token(url, paths))
    except ImportError as error:
        raise CommandError(
            "the client of servers is not installed",
            code=Exit.NOT_CONFIGURED,
            hint="pip install 'keelwork[server]'",
        ) from error
    return application


def connect_chat(url: str, paths: Paths) -> AgentApplication:
    """Return the same for a chat, after a first question: a wrong address or token is noticed at once.

    Raises:
        CommandError: As of `connect`.
    """
    application = connect(url, paths)
    try:
        with command_errors(url):
            _ = application.config
    except CommandError:
        application.close()
        raise
    # It has the names that a chat uses; the rest raises `NotOnServer`.
    return cast("AgentApplication", application)


@contextmanager
def command_errors(url: str) -> Iterator[None]:
    """Turn what a server refuses into an error of a command.

    Raises:
        CommandError: With what to do about it.
    """
    try:
        yield
    except (lazy.ClientError, ServerError) as error:
        cause = error.__cause__ if isinstance(error, ServerError) else error
        if isinstance(cause, lazy.NotAllowed):
            hint = f"put the token of the server into {TOKEN_VARIABLE}"
            problem = f"{url}: {cause}".removesuffix(".")
            raise CommandError(problem, code=Exit.NOT_CONFIGURED, hint=hint) from error
        if isinstance(cause, lazy.ConnectionLost):  # which names the server itself
            raise CommandError(str(cause), hint="is `agent serve` running there?") from error
        raise CommandError(f"{url}: {cause}") from error


@contextmanager
def open_remote(url: str, paths: Paths) -> Iterator[RemoteApplication]:
    """Open a server's application while the block lasts.

    Raises:
        CommandError: If it cannot be reached, or refuses something.
    """
    application = connect(url, paths)
    try:
        with command_errors(url):
            yield application
    finally:
        application.close()


def find_token(url: str, paths: Paths) -> str | None:
    """Return the token for a server: from the environment, or that of this user's own server."""
    given = os.environ.get(TOKEN_VARIABLE, "").strip()
    if given:
        return given
    try:
        running = json.loads((paths.state / "server.json").read_text(encoding="utf-8"))
        if running["url"] == url.rstrip("/"):
            return Path(running["token_file"]).read_text(encoding="ascii").strip()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None
