"""What a remote agent answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_runtime.results import Usage

_PROBLEMS = {
    "failed": "failed",
    "rejected": "refused the task",
    "canceled": "cancelled the task",
    "input_required": "asks for more before it goes on",
    "auth_required": "asks for authorisation before it goes on",
}


@dataclass(frozen=True, slots=True)
class RemoteReply:
    """How a remote agent's task ended.

    Attributes:
        text: Its result; if it has none, its words about why.
        state: The task's state: completed, failed, rejected, canceled, input_required or auth_required.
        task_id: The task's id over there; empty if it answered without making a task.
        usage: What it used, if it tells.
    """

    text: str
    state: str
    task_id: str = ""
    usage: Usage | None = None

    @property
    def error(self) -> str | None:
        """The sentence that says why there is no result; None if there is one."""
        if self.state == "completed":
            return None
        problem = _PROBLEMS.get(self.state, f"ended as {self.state!r}")
        return f"the remote agent {problem}: {self.text or 'it gave no reason'}"

    def to_result(self) -> dict[str, Any]:
        """Return the reply as the result of a tool."""
        if self.error is not None:
            return {"success": False, "error": self.error}
        return {"success": True, "result": self.text}
