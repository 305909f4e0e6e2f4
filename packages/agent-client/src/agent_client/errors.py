"""What can go wrong between a client and a server.

::

    ClientError
    ├── Refused              the server has answered, and the answer is no; status, kind, detail, errors
    │   ├── NotFound         404
    │   ├── Conflict         409, 412: somebody else was first
    │   ├── NotAllowed       401, 403
    │   └── CursorGone       410: there is no such event; read the session again
    ├── RunFailed            a run ended with an error; type, message
    └── ConnectionLost       the server cannot be reached, also after some tries
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientError(Exception):
    """Root of everything that goes wrong here."""


class ConnectionLost(ClientError):
    """The server cannot be reached, or the connection broke and could not be made again."""


class RunFailed(ClientError):
    """A run ended with an error; what it produced before is in the session.

    Attributes:
        error: What the run said: `type`, `message` and perhaps more.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.error = dict(error)
        super().__init__(str(error.get("message") or "the run failed"))


class Refused(ClientError):
    """The server refuses a request.

    Attributes:
        status: The status of HTTP.
        kind: A word for programs, such as "session-not-found".
        title: What is wrong, in general.
        detail: What is wrong with this request, and what to do next.
        errors: What is wrong with single fields.
        request_id: Under which the log of the server has it.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.kind = str(problem.get("type", "")).rpartition(":")[2]
        self.title = str(problem.get("title") or f"status {status}")
        self.detail = str(problem.get("detail") or "")
        self.errors: list[dict[str, Any]] = list(problem.get("errors") or ())
        self.request_id = str(problem.get("request_id") or "")
        fields = "; ".join(f"{one.get('field')}: {one.get('message')}" for one in self.errors)
        super().__init__(": ".join(filter(None, (self.title, self.detail, fields))))


class NotFound(Refused):
    """There is no such thing."""


class Conflict(Refused):
    """Somebody else was first: the session runs, or was changed."""


class NotAllowed(Refused):
    """The token is missing or wrong, or does not suffice."""


class CursorGone(Refused):
    """There is no event of that id."""


_KINDS: dict[int, type[Refused]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: CursorGone,
    412: Conflict,
}


def refusal(status: int, problem: Any) -> Refused:
    """Return the error that an answer means."""
    about = problem if isinstance(problem, dict) else {}
    return _KINDS.get(status, Refused)(status, about)
