"""What a client asks a server, once for clients that wait and for those on an event loop.

An operation is a generator: it yields a `Call`, is sent the `Answer`, and returns a value. A driver makes the
calls. Calls that create something have a key, so they can be repeated when an answer was lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from agent_client.errors import refusal
from agent_client.values import Approval, Asset, Grant, Page, Session, Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
_KEYED = re.compile(
    r"/v1/sessions|/v1/sessions/[^/]+/(runs|inputs)|/v1(/sessions/[^/]+)?/actions/[^/]+/[^/]+"
)
"""Where a server takes an `Idempotency-Key`, so that a request has no effect twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to a server.

    Attributes:
        repeatable: Whether it may be sent again when nobody knows what became of it.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answers."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Return the content; None if there is none, or it is not JSON."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None


Operation = Generator[Call, Answer, T]


def ask(
    method: str,
    path: str,
    body: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Operation[Any]:
    """Make a call and return what is in the answer.

    Raises:
        Refused: If the server says no.
    """
    answer = yield call(method, path, body, params=params, headers=headers)
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - what HTTP calls success
        raise refusal(answer.status, answer.json())
    return answer.json()


def call(
    method: str,
    path: str,
    body: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Call:
    """Return a call with JSON as its content; one that creates something gets a key."""
    given = {name: _text(value) for name, value in (params or {}).items() if value is not None}
    own = dict(headers or {})
    content = None
    if body is not None:
        own["content-type"] = "application/json"
        content = json.dumps(body).encode()
    keyed = method == "POST" and _KEYED.fullmatch(path) is not None
    if keyed:
        own.setdefault("idempotency-key", uuid4().hex)
    repeatable = keyed or method in ("GET", "PUT", "PATCH")
    return Call(method=method, path=path, params=given, headers=own, content=content, repeatable=repeatable)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def at(session_id: str, *rest: object) -> str:
    """Return the path of a session, or of something in it."""
    return "/".join(["/v1/sessions", *(quote(str(step), safe="") for step in (session_id, *rest))])


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# Sessions


def create_session(
    agent_id: str | None, title: str | None, model: str | None, metadata: Mapping[str, Any] | None
) -> Operation[Session]:
    body = _given(agent_id=agent_id, title=title, model=model, metadata=metadata)
    return Session.from_dict((yield from ask("POST", "/v1/sessions", body)))


def list_sessions(query: str | None, cursor: str | None, limit: int) -> Operation[Page]:
    params = {"query": query, "cursor": cursor, "limit": limit}
    found = yield from ask("GET", "/v1/sessions", params=params)
    return Page(tuple(map(Session.from_dict, found["items"])), found["next_cursor"])


def session(session_id: str) -> Operation[Session]:
    return Session.from_dict((yield from ask("GET", at(session_id))))


def state(session_id: str) -> Operation[dict[str, Any]]:
    found: dict[str, Any] = yield from ask("GET", at(session_id, "state"))
    return found


def change(session_id: str, title: str | None, agent_id: str | None, model: str | None) -> Operation[Session]:
    body = _given(title=title, agent_id=agent_id, model=model)
    return Session.from_dict((yield from ask("PATCH", at(session_id), body)))


def delete(session_id: str) -> Operation[None]:
    yield from ask("DELETE", at(session_id))


def messages(session_id: str, before: int | None, limit: int) -> Operation[list[dict[str, Any]]]:
    found = yield from ask("GET", at(session_id, "messages"), params={"before": before, "limit": limit})
    return list(found["items"])


def fork(session_id: str, upto_index: int, agent_id: str | None) -> Operation[Session]:
    body = _given(upto_index=upto_index, agent_id=agent_id)
    return Session.from_dict((yield from ask("POST", at(session_id, "fork"), body)))


def edit(session_id: str, index: int, content: str) -> Operation[Session]:
    path = at(session_id, "messages", index, "edit")
    return Session.from_dict((yield from ask("POST", path, {"content": content})))


def regenerate(session_id: str, index: int) -> Operation[Session]:
    return Session.from_dict((yield from ask("POST", at(session_id, "messages", index, "regenerate"))))


def branches(session_id: str) -> Operation[list[Session]]:
    found = yield from ask("GET", at(session_id, "branches"))
    return [Session.from_dict(one) for one in found["items"]]


def usage(session_id: str) -> Operation[dict[str, Any]]:
    found: dict[str, Any] = yield from ask("GET", at(session_id, "usage"))
    return found


# Runs


def run_body(text: str, attachments: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return what asks for a run."""
    return {"text": text, "attachments": [dict(one) for one in attachments], **_given(**more)}


def logged_events(session_id: str, after: int, limit: int) -> Operation[list[dict[str, Any]]]:
    found = yield from ask(
        "GET",
        at(session_id, "events"),
        params={"after": after, "limit": limit},
        headers={"accept": "application/json"},
    )
    return list(found["items"])


def cancel(session_id: str) -> Operation[bool]:
    return bool((yield from ask("POST", at(session_id, "cancel")))["stopped"])


def interrupt(session_id: str) -> Operation[bool]:
    return bool((yield from ask("POST", at(session_id, "interrupt")))["stopped"])


def enqueue(
    session_id: str, text: str, mode: str, attachments: Sequence[Mapping[str, Any]]
) -> Operation[Waiting]:
    body = {"text": text, "mode": mode, "attachments": [dict(one) for one in attachments]}
    return Waiting.from_dict((yield from ask("POST", at(session_id, "inputs"), body)))


def queued(session_id: str) -> Operation[list[Waiting]]:
    found = yield from ask("GET", at(session_id, "inputs"))
    return [Waiting.from_dict(one) for one in found["items"]]


def withdraw(session_id: str, seq: int) -> Operation[None]:
    yield from ask("DELETE", at(session_id, "inputs", seq))


# Decisions


def approvals(session_id: str | None, *, decided: bool) -> Operation[list[Approval]]:
    params = {"session_id": session_id, "decided": decided}
    found = yield from ask("GET", "/v1/approvals", params=params)
    return [Approval.from_dict(one) for one in found["items"]]


def decide(approval_id: str, decision: Mapping[str, Any]) -> Operation[Approval]:
    path = f"/v1/approvals/{quote(approval_id, safe='')}"
    return Approval.from_dict((yield from ask("POST", path, dict(decision))))


def grants(session_id: str | None) -> Operation[list[Grant]]:
    found = yield from ask("GET", "/v1/grants", params={"session_id": session_id})
    return [Grant.from_dict(one) for one in found["items"]]


def grant(
    pattern: str, scope: str, session_id: str | None, project: str | None, effect: str
) -> Operation[Grant]:
    body = _given(pattern=pattern, scope=scope, session_id=session_id, project=project, effect=effect)
    return Grant.from_dict((yield from ask("POST", "/v1/grants", body)))


def revoke(grant_id: str) -> Operation[None]:
    yield from ask("DELETE", f"/v1/grants/{quote(grant_id, safe='')}")


# Plugins, files, and what there is


def actions(session_id: str | None) -> Operation[list[dict[str, Any]]]:
    path = "/v1/actions" if session_id is None else at(session_id, "actions")
    return list((yield from ask("GET", path))["items"])


def run_action(
    session_id: str | None, plugin: str, action_id: str, params: Mapping[str, Any], *, confirmed: bool
) -> Operation[dict[str, Any]]:
    start = "/v1" if session_id is None else at(session_id)
    path = f"{start}/actions/{quote(plugin, safe='')}/{quote(action_id, safe='')}"
    body = {"params": dict(params), "confirmed": confirmed}
    found: dict[str, Any] = (yield from ask("POST", path, body))["result"]
    return found


def listed(what: str) -> Operation[list[dict[str, Any]]]:
    """Return a list that needs no further arguments: agents, models, providers, plugins."""
    return list((yield from ask("GET", f"/v1/{what}"))["items"])


def add_asset(session_id: str, data: bytes, name: str, media_type: str | None) -> Operation[Asset]:
    answer = yield Call(
        method="POST",
        path=at(session_id, "assets"),
        params={"name": name},
        headers={"content-type": media_type or "application/octet-stream"},
        content=data,
        repeatable=False,
    )
    if answer.status >= 300:  # noqa: PLR2004 - no success
        raise refusal(answer.status, answer.json())
    return Asset.from_dict(answer.json())


def read_asset(session_id: str, asset_id: str) -> Operation[bytes]:
    answer = yield call("GET", at(session_id, "assets", asset_id))
    if answer.status >= 300:  # noqa: PLR2004 - no success
        raise refusal(answer.status, answer.json())
    return answer.content


def assets(session_id: str) -> Operation[list[Asset]]:
    found = yield from ask("GET", at(session_id, "assets"))
    return [Asset.from_dict(one) for one in found["items"]]
