"""What the application's values look like in answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent_app.events import plain
from agent_server.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import SessionInfo


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as a response that nobody keeps."""
    return Response(
        to_json(value), status, {"cache-control": "no-store", **(headers or {})}, "application/json"
    )


def session_info(info: SessionInfo) -> dict[str, Any]:
    """Return what a list shows of a session."""
    return {name: getattr(info, name) for name in _INFO}


_INFO = (
    "id", "title", "agent_id", "created", "updated", "messages", "revision", "parent_id", "match", "extra",
)  # fmt: skip


def run_result(session_id: str, final: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run came to."""
    shown = plain(final)  # type: ignore[arg-type]  # any event
    names = ("text", "reason", "usage", "approvals", "messages")
    return {"session_id": session_id, **{name: shown.get(name) for name in names}}
