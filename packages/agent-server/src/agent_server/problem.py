"""What went wrong, as RFC 9457 has it (`application/problem+json`): what to do next, never a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent_app import errors as stored
from agent_app.assets import AssetNotFound, AssetRefused
from agent_app.transfer import ImportRefused
from agent_core import errors as core
from agent_core.log import get_logger
from agent_server.feed import Gone
from agent_server.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Scope

MEDIA_TYPE = "application/problem+json"
REQUEST_ID = "keelwork.request_id"
"""Where the id of a request is in its scope."""
_log = get_logger("server")


class Problem(Exception):
    """A request cannot be answered; whoever raises it says how.

    Args:
        kind: A word that programs can rely on, such as "session-not-found".
        errors: What is wrong with single fields: `field` and `message` of each.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str = "",
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        self.title = title
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        super().__init__(f"{title}: {detail}")

    def response(self, scope: Scope) -> Response:
        """Return it as a response to a request."""
        body: dict[str, Any] = {
            "type": f"urn:keelwork:{self.kind}",
            "title": self.title,
            "status": self.status,
        }
        if self.detail:
            body["detail"] = self.detail
        body["request_id"] = scope.get(REQUEST_ID, "")
        if self.errors:
            body["errors"] = self.errors
        return Response(to_json(body), self.status, {"cache-control": "no-store", **self.headers}, MEDIA_TYPE)


_KINDS: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (stored.SessionNotFound, 404, "session-not-found", "There is no such session"),
    (stored.SessionExists, 409, "session-exists", "A session of that id exists"),
    (stored.SessionBusy, 409, "session-busy", "The session is running"),
    (stored.SessionHeld, 409, "session-held", "Another process uses the session"),
    (stored.RevisionConflict, 412, "revision-conflict", "The session was changed since you read it"),
    (stored.WriteRefused, 409, "write-refused", "The change was not stored"),
    (stored.DecisionNotAccepted, 409, "decision-not-accepted", "The decision was not accepted"),
    (stored.StoreUnavailable, 503, "store-unavailable", "The database cannot be used now"),
    (AssetNotFound, 404, "asset-not-found", "There is no such asset"),
    (AssetRefused, 413, "asset-refused", "The asset was not accepted"),
    (ImportRefused, 422, "import-refused", "The file was not imported"),
    (Gone, 410, "cursor-gone", "There is no such event"),
    (core.MessageIndexError, 422, "message-not-found", "There is no such message"),
    (core.MessageEditError, 422, "message-edit", "That message cannot be edited so"),
    (core.UnknownActionError, 404, "action-not-found", "There is no such action"),
    (core.ActionInputError, 422, "action-input", "An input of the action does not fit"),
    (core.ActionNotConfirmedError, 409, "action-not-confirmed", "The action asks first"),
    (core.ActionError, 422, "action-failed", "The action cannot be run"),
    (core.ArgumentError, 422, "invalid-argument", "The request cannot be carried out"),
    (core.ConfigError, 422, "configuration", "A setting cannot be used"),
    (core.ResolveError, 422, "not-resolved", "Something that is named is not there"),
    (stored.StoreError, 500, "store-error", "The store has a problem"),
    (core.PluginError, 502, "plugin-failed", "A plugin failed"),
    (core.AgentError, 422, "refused", "The request cannot be carried out"),
)
"""What errors of the application mean; the first that fits counts."""


def _errors(error: BaseException) -> list[dict[str, str]]:
    """Return which field of the request an error is about, if it says so, and what to do about it."""
    if isinstance(error, core.ActionNotConfirmedError):
        return [{"field": "confirmed", "message": error.question}]
    field = getattr(error, "field", None)
    return [{"field": field, "message": str(error)}] if isinstance(field, str) else []


def problem_of(error: BaseException) -> Problem:
    """Return what an error means to whoever made the request."""
    if isinstance(error, Problem):
        return error
    for kind, status, word, title in _KINDS:
        if isinstance(error, kind):
            headers = {"retry-after": "1"} if status == 503 else None  # noqa: PLR2004 - as in the table
            return Problem(status, word, title, str(error), errors=_errors(error), headers=headers)
    _log.error("request_failed", error=repr(error), exc_info=error)
    return Problem(
        500,
        "bug",
        "The server made a mistake",
        "The log of the server has the details under this request id.",
    )
