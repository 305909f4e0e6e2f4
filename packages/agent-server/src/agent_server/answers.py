"""What the application's values look like in answers."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent_app.events import plain
from agent_server.problem import Problem
from agent_server.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app import SessionInfo


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a response that nobody keeps."""
    own = {"cache-control": "no-store", **(headers or {})}
    return Response(to_json(value), status, own, "application/json")


def items(values: Sequence[Any]) -> Response:
    """Return a list as a response."""
    return json_answer({"items": [one.to_dict() if hasattr(one, "to_dict") else one for one in values]})


def info_answer(info: SessionInfo, status: int = 200) -> Response:
    """Return what a list shows of a session, with an ETag."""
    headers = {"etag": etag(info)}
    if status == 201:  # noqa: PLR2004 - Created
        headers["location"] = f"/v1/sessions/{info.id}"
    return json_answer(info.to_dict(), status, headers)


def etag(info: SessionInfo) -> str:
    """Return a tag that another version of a session does not have."""
    version = (info.revision, info.title, info.agent_id, info.parent_id)
    return f'"{sha256(to_json(version)).hexdigest()[:20]}"'


def check_match(info: SessionInfo, if_match: str | None) -> None:
    """Refuse a change of a session that has changed since the client read it.

    Raises:
        Problem: If the header names other revisions.
    """
    if if_match is None or if_match.strip() == "*":
        return
    tags = [tag.strip() for tag in if_match.split(",")]
    if etag(info) not in tags:
        raise Problem(
            412,
            "revision-conflict",
            "The session was changed since you read it",
            "Read it again, and repeat what you want to change.",
            headers={"etag": etag(info)},
        )


def run_result(session_id: str, final: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run came to."""
    shown = plain(final)  # type: ignore[arg-type]  # any event
    names = ("text", "reason", "usage", "approvals", "messages")
    return {"session_id": session_id, **{name: shown.get(name) for name in names}}
