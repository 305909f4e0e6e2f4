"""A client that waits for answers."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx2

from agent_client import calls
from agent_client.calls import Answer, Call, Operation
from agent_client.connection import (
    OK,
    PATIENT,
    Tries,
    Unavailable,
    decision_of,
    event_stream,
    lost,
    no_stream,
    request_of,
    result_of,
    run_stream,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from agent_client.connection import Resumable
    from agent_client.values import Approval, Asset, Event, Grant, Page, Result, Session, Waiting

T = TypeVar("T")


class Client:
    """A client that waits for answers.

    Use it in a ``with`` block, or call `close()`. Calls are repeated when the server cannot be reached for a
    moment, and never have an effect twice. Streams go on by themselves when a connection breaks.

    Args:
        url: Where the server is.
        token: What `agent serve` keeps in its file, or was given.
        seconds: How long an answer may take.
        patience: How many seconds a stream tries to connect again before it gives up.
    """

    def __init__(
        self, url: str, token: str | None = None, *, seconds: float = 60.0, patience: float = 60.0
    ) -> None:
        self._url = url
        self._patience = patience
        self._http = httpx2.Client(**settings(url, token, seconds))

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _do(self, operation: Operation[T]) -> T:
        sent = next(operation)
        while True:
            answer = self._answer(sent)
            try:
                sent = operation.send(answer)
            except StopIteration as done:
                found: T = done.value
                return found

    def _answer(self, sent: Call) -> Answer:
        tries = Tries(self._url, sent)
        while True:
            try:
                found = self._http.send(request_of(self._http, sent))
                answer = Answer(found.status_code, found.headers, found.content)
                if tries.suffices(answer):
                    return answer
            except httpx2.TransportError as error:
                tries.failed(error)
            time.sleep(tries.pause)

    def run(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        overrides: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        take_over: bool | None = None,
    ) -> Generator[Event, None, None]:
        """Say something in a session; yield what happens, and last `final` or `error`.

        The run goes on when you leave; `cancel` stops it, and `events` finds it again.

        Raises:
            Refused: If it cannot begin: the session is running, there is nothing to say.
            ConnectionLost: If the server cannot be reached for too long.
        """
        more = {"overrides": overrides, "limits": limits, "take_over": take_over}
        return self._stream(run_stream(session_id, text, attachments, **more))

    def ask(self, session_id: str, text: str = "", **request: Any) -> Result:
        """Do what `run` does, and return what came of it.

        Raises:
            RunFailed: If the run ended with an error.
        """
        last = None
        with closing(self.run(session_id, text, **request)) as events:
            for event in events:
                last = event
        return result_of(session_id, last)

    def events(self, session_id: str | None = None, after: str | None = None) -> Generator[Event, None, None]:
        """Yield the events of a session behind an id, then those to come; without a session, those of all.

        Raises:
            CursorGone: If there is no event of that id.
        """
        return self._stream(event_stream(session_id, after))

    def _stream(self, stream: Resumable) -> Generator[Event, None, None]:
        heard = time.monotonic()
        while not stream.is_over:
            before = stream.last_id
            try:
                for event in self._connection(stream):
                    heard = time.monotonic()
                    yield event
            except (httpx2.TransportError, Unavailable) as error:
                if time.monotonic() - heard > self._patience:
                    raise lost(self._url, error) from error
            if not stream.is_over and stream.last_id == before:  # else something came: go on at once
                time.sleep(stream.retry)

    def _connection(self, stream: Resumable) -> Iterator[Event]:
        request = request_of(self._http, stream.next_call())
        request.extensions["timeout"] = PATIENT
        answer = self._http.send(request, stream=True)
        try:
            if answer.status_code != OK:
                raise no_stream(Answer(answer.status_code, {}, answer.read()))
            for piece in answer.iter_bytes():
                yield from stream.feed(piece)
                if stream.is_over:
                    return
        finally:
            answer.close()

    def logged_events(self, session_id: str, *, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """Return some events of a session's log behind a number, without waiting for more."""
        return self._do(calls.logged_events(session_id, after, limit))

    def create_session(
        self,
        agent_id: str | None = None,
        *,
        title: str | None = None,
        model: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Make a session."""
        return self._do(calls.create_session(agent_id, title, model, metadata))

    def list_sessions(self, query: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
        """Return sessions by pages, the last changed first; with a query those that have its words."""
        return self._do(calls.list_sessions(query, cursor, limit))

    def session(self, session_id: str) -> Session:
        """Return what is known of a session."""
        return self._do(calls.session(session_id))

    def state(self, session_id: str) -> dict[str, Any]:
        """Return whether a session runs, what waits there, and its last event."""
        return self._do(calls.state(session_id))

    def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        agent_id: str | None = None,
        model: str | None = None,
    ) -> Session:
        """Give a session another title, agent or model."""
        return self._do(calls.change(session_id, title, agent_id, model))

    def delete_session(self, session_id: str) -> None:
        """Delete a session."""
        self._do(calls.delete(session_id))

    def messages(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Return the last messages of a session, or those before an index."""
        return self._do(calls.messages(session_id, before, limit))

    def fork_session(self, session_id: str, *, upto_index: int, agent_id: str | None = None) -> Session:
        """Make a branch that ends with a message."""
        return self._do(calls.fork(session_id, upto_index, agent_id))

    def edit_message(self, session_id: str, index: int, content: str) -> Session:
        """Make a branch that ends with another version of a message."""
        return self._do(calls.edit(session_id, index, content))

    def regenerate(self, session_id: str, index: int = -1) -> Session:
        """Make a branch that ends before an answer."""
        return self._do(calls.regenerate(session_id, index))

    def branches(self, session_id: str) -> list[Session]:
        """Return a session with all that it was forked from, and their forks."""
        return self._do(calls.branches(session_id))

    def usage(self, session_id: str) -> dict[str, Any]:
        """Return what models used in a session."""
        return self._do(calls.usage(session_id))

    def cancel(self, session_id: str) -> bool:
        """Stop the run of a session; False if there is none."""
        return self._do(calls.cancel(session_id))

    def interrupt(self, session_id: str) -> bool:
        """Have a run answer now what was queued for it; False if there is none."""
        return self._do(calls.interrupt(session_id))

    def enqueue(
        self,
        session_id: str,
        text: str,
        mode: str = "steer",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
    ) -> Waiting:
        """Say something while a run goes on: after its step, then ("queue"), or now ("interrupt")."""
        return self._do(calls.enqueue(session_id, text, mode, attachments))

    def queued(self, session_id: str) -> list[Waiting]:
        """Return the messages that wait to be delivered."""
        return self._do(calls.queued(session_id))

    def withdraw(self, session_id: str, seq: int) -> None:
        """Take a message back that waits."""
        self._do(calls.withdraw(session_id, seq))

    def approvals(self, session_id: str | None = None, *, decided: bool = False) -> list[Approval]:
        """Return the decisions that runs wait for."""
        return self._do(calls.approvals(session_id, decided=decided))

    def decide(self, approval_id: str, *, approved: bool | None = None, **decision: Any) -> Approval:
        """Decide, with `reason`, `value` or `grant` if needed; the run goes on unless `go_on` is False."""
        return self._do(calls.decide(approval_id, decision_of(decision, approved=approved)))

    def grants(self, session_id: str | None = None) -> list[Grant]:
        """Return what was granted for longer than one call."""
        return self._do(calls.grants(session_id))

    def grant(
        self,
        pattern: str,
        *,
        scope: str,
        session_id: str | None = None,
        project: str | None = None,
        effect: str = "allow",
    ) -> Grant:
        """Let the calls that fit a pattern run from now on, or forbid them."""
        return self._do(calls.grant(pattern, scope, session_id, project, effect))

    def revoke(self, grant_id: str) -> None:
        """Take a grant back."""
        self._do(calls.revoke(grant_id))

    def actions(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Return what plugins can do, in a session or at all."""
        return self._do(calls.actions(session_id))

    def run_action(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        session_id: str | None = None,
        confirmed: bool = False,
    ) -> dict[str, Any]:
        """Run an action, and return its result; one that asks first runs only if it is *confirmed*."""
        operation = calls.run_action(session_id, plugin, action_id, params or {}, confirmed=confirmed)
        return self._do(operation)

    def request(
        self, method: str, path: str, body: Any = None, *, params: Mapping[str, Any] | None = None
    ) -> Any:
        """Make a call that has no method here, such as ``("GET", "/v1/settings")``; return what is answered.

        Raises:
            Refused: If the server says no.
        """
        return self._do(calls.ask(method, path, body, params=params))

    def agents(self) -> list[dict[str, Any]]:
        """Return the declared agents."""
        return self._do(calls.listed("agents"))

    def models(self) -> list[dict[str, Any]]:
        """Return the declared models."""
        return self._do(calls.listed("models"))

    def add_asset(self, session_id: str, data: bytes, *, name: str, media_type: str | None = None) -> Asset:
        """Keep a file for a session."""
        return self._do(calls.add_asset(session_id, data, name, media_type))

    def assets(self, session_id: str) -> list[Asset]:
        """Return the files of a session."""
        return self._do(calls.assets(session_id))

    def read_asset(self, session_id: str, asset_id: str) -> bytes:
        """Return the content of a file."""
        return self._do(calls.read_asset(session_id, asset_id))
