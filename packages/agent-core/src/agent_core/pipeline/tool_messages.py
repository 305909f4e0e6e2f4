"""What the model, and the person, read of a tool call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.display import clean_tool_display
from agent_core.errors import AgentError
from agent_core.interop import CORE_TEXT_TOOL_RESULT_FORMAT_ID, TOOL_RESULT_FIELD, ToolInteropTarget
from agent_core.log import get_logger

if TYPE_CHECKING:
    from agent_core.pipeline.tool_calls import ReadyCall, ToolHost

_log = get_logger("tools")


def result_message(
    host: ToolHost, ready: ReadyCall, metadata: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    """Return the tool message for a call that gave one."""
    try:
        return _formatted(host, ready, metadata, result)
    except Exception as error:  # noqa: BLE001  # hooks, and data that says it is a dict, are a stranger's
        text = f"the tool ran, but its result cannot be read: {said(error)}"
        return error_message(metadata, "unreadable_result", text)


def _formatted(
    host: ToolHost, ready: ReadyCall, metadata: dict[str, Any], result: dict[str, Any]
) -> dict[str, Any]:
    interop = host.table.interop
    formatted = ready.binding.plugin.format_tool_result(result, ready.binding.state)
    inspected = interop.inspect_result(formatted)
    failed = result.get("success") is False or inspected.is_error
    structured = _structured(host, ready, formatted, inspected.format_id, failed=failed)
    told = interop.inspect_result(structured)
    display = _display(ready, inspected.text, result) or told.display
    if display is not None:
        metadata["display"] = display
    if failed:
        metadata["error"] = {"type": "tool_failed"}
    return {"role": "tool", "content": told.text, "metadata": metadata, TOOL_RESULT_FIELD: structured}


def _structured(
    host: ToolHost, ready: ReadyCall, formatted: Any, format_id: str, *, failed: bool
) -> dict[str, Any]:
    """Return the result in the format in which the tool gave it, or else as the core's text."""
    if isinstance(formatted, dict) and format_id not in ("", CORE_TEXT_TOOL_RESULT_FORMAT_ID):
        return formatted
    target = ToolInteropTarget("core.tool_result", ready.call)
    structured = host.table.interop.convert_tool_result(
        formatted, target=target, target_formats=[CORE_TEXT_TOOL_RESULT_FORMAT_ID]
    )
    # A hook that makes text of a failure has lost the mark, and providers are told by it.
    return {**structured, "is_error": True} if failed else structured


def _display(ready: ReadyCall, text: str, result: dict[str, Any]) -> dict[str, Any] | None:
    try:
        shown = ready.binding.plugin.to_display_format(text, result, ready.binding.state)
        return None if shown is None else clean_tool_display(shown)
    except AgentError as error:
        # What the person sees is a courtesy; the result itself is what counts.
        _log.warning("tool_display_failed", tool=ready.call.tool_name, error=str(error))
        return None


def error_message(metadata: dict[str, Any], kind: str, text: str) -> dict[str, Any]:
    """Return the tool message for a call that gave no result; *kind* is a word for programs."""
    content = f"Error: {text}"
    return {
        "role": "tool",
        "content": content,
        "metadata": {**metadata, "error": {"type": kind}},
        TOOL_RESULT_FIELD: {"type": "tool_result", "text": content, "is_error": True},
    }


def said(error: BaseException) -> str:
    """Return an error in words; it is a stranger's, so even that may fail."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001
        return name
    return text if isinstance(error, AgentError) else f"{name}: {text}" if text else name
