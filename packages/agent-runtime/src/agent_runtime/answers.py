"""What the model reads of calls that no tool answered, and what a watcher sees of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical
from agent_core.frozen import freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.events import ToolCallPartial, ToolCallResult, ToolCallStart
    from agent_runtime.phases import CallView

NOT_RUN, BLOCKED, REFUSED = "not_run", "blocked", "refused"
"""Why a call has no result of its tool: the run was over, a gate said no, or a person did."""


def refusal(call: CallView, kind: str, text: str) -> dict[str, Any]:
    """Return the tool message of a call that was not run; *kind* is a word for programs."""
    metadata = {**_metadata(call), "error": {"type": kind}}
    result = {"type": "tool_result", "text": f"Error: {text}", "is_error": True}
    return {"role": "tool", "content": f"Error: {text}", "metadata": metadata, "tool_result": result}


def given_result(call: CallView, value: object, *, is_error: bool = False) -> dict[str, Any]:
    """Return the tool message of a call whose result came from elsewhere than its tool."""
    text = value if isinstance(value, str) else canonical(freeze(value)).decode()
    metadata: dict[str, Any] = _metadata(call)
    result: dict[str, Any] = {"type": "tool_result", "text": text}
    if is_error:
        metadata["error"], result["is_error"] = {"type": "tool_failed"}, True
    return {"role": "tool", "content": text, "metadata": metadata, "tool_result": result}


def start_event(call: CallView, preview: str, display: Mapping[str, Any] | None = None) -> ToolCallStart:
    """Return what a watcher sees when a call begins to run."""
    return {
        "type": "tool_call_start",
        "call_id": call.id,
        "name": call.name,
        "arguments": thaw(call.arguments),
        "preview": preview,
        "display": None if display is None else dict(display),
    }


def part_event(call: CallView, part: object) -> ToolCallPartial:
    """Return what a watcher sees of a tool's partial output."""
    return {"type": "tool_call_partial", "call_id": call.id, "name": call.name, "part": part}


def result_event(call: CallView, message: Mapping[str, Any], seconds: float = 0.0) -> ToolCallResult:
    """Return what a watcher sees when a call has its answer."""
    return {
        "type": "tool_call_result",
        "call_id": call.id,
        "name": call.name,
        "is_error": "error" in message["metadata"],
        "seconds": seconds,
        "message": dict(message),
    }


def _metadata(call: CallView) -> dict[str, Any]:
    return {"tool_call_id": call.id, "tool_name": call.name}
