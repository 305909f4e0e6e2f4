"""The platform's own result, and the reading of whatever else a tool may return.

The shape is ``{"type": "tool_result", "text": "…"}``, with ``is_error``, ``display`` and ``parts``
where there is something to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.frozen import JsonObject, thaw
from agent_core.interop.formats import CORE_TEXT_TOOL_RESULT_FORMAT_ID, ToolInteropTarget, ToolResultFormat
from agent_core.interop.parts import Part, as_text, beside_text, is_known, read_content, text_part
from agent_core.interop.wire import has_type
from agent_core.values import ToolResult

_ANSWERS = ("result", "content", "output")
_FOR_OTHERS = ("display", "state_update")
_ENVELOPE = frozenset({*_ANSWERS, "success", "error", "is_error", "isError", "display", "state_update"})


def read_anything(value: object) -> ToolResult:
    """Read a value that is in no format.

    Text is itself. A dict made only of ``success``, ``result``, ``content``, ``output``, ``error``,
    ``is_error``, ``display`` and ``state_update`` is opened: its text is the error and the answer. All
    else is JSON, so that nothing a tool says is lost.
    """
    if isinstance(value, Mapping):
        return _read_mapping(value)
    text, parts = _read_answer(value)
    return _inspected(value, text=text, parts=parts)


def read_outcome(outcome: Mapping[str, object]) -> tuple[str, tuple[Part, ...], bool]:
    """Return the text, the parts and whether it failed, of an object that reports an outcome."""
    failed = _failed(outcome)
    error = outcome.get("error")
    answers = [outcome[key] for key in _ANSWERS if outcome.get(key) is not None]
    if len(answers) > 1 or not outcome.keys() <= _ENVELOPE or not (answers or error):
        return as_text({key: item for key, item in outcome.items() if key not in _FOR_OTHERS}), (), failed
    text, parts = _read_answer(answers[0]) if answers else ("", ())
    if not error:
        return text, parts, failed
    said = as_text(error)
    return (f"{said}\n{text}" if text else said), ((text_part(said), *parts) if parts else ()), failed


def _read_mapping(value: Mapping[str, object]) -> ToolResult:
    text, parts, failed = read_outcome(value)
    return _inspected(value, text=text, parts=parts, is_error=failed, display=value.get("display"))


def _read_answer(answer: object) -> tuple[str, tuple[Part, ...]]:
    """Read content parts as such, but only where no other list could be meant."""
    if isinstance(answer, (list, tuple)) and answer and all(map(is_known, answer)):
        return read_content(answer)
    return as_text(answer), ()


def _failed(outcome: Mapping[str, object]) -> bool:
    if outcome.get("is_error") is True or outcome.get("isError") is True:
        return True
    success = outcome.get("success")
    return success is False or (success is not True and bool(outcome.get("error")))


def _matches(value: Any) -> bool:
    return has_type(value, "tool_result") and isinstance(value.get("text"), str)


def _inspect(value: Any) -> ToolResult:
    return _inspected(
        value,
        text=value["text"],
        parts=beside_text(value["text"], value["parts"]) if "parts" in value else (),
        is_error=value.get("is_error") is True,
        display=value.get("display"),
    )


def _inspected(
    raw: object, *, text: str, parts: tuple[Part, ...], is_error: bool = False, display: object = None
) -> ToolResult:
    return ToolResult(
        text=text,
        display=thaw(dict(display)) if isinstance(display, Mapping) else None,
        is_error=is_error,
        parts=parts,
        raw=raw,
        format_id=CORE_TEXT_TOOL_RESULT_FORMAT_ID,
    )


def build_core_text(result: ToolResult, _target: ToolInteropTarget | None = None) -> JsonObject:
    built: JsonObject = {"type": "tool_result", "text": result.text}
    if result.is_error:
        built["is_error"] = True
    if result.display is not None:
        built["display"] = result.display
    if result.parts:
        built["parts"] = list(result.parts)
    return built


def _tidy(result: ToolResult) -> Mapping[str, object]:
    # What `read_anything` read counts as core text too, but does not have its shape yet.
    raw: Mapping[str, Any] = result.raw if _matches(result.raw) else build_core_text(result)
    return raw


CORE_TEXT = ToolResultFormat(
    id=CORE_TEXT_TOOL_RESULT_FORMAT_ID, matches=_matches, inspect=_inspect, build=build_core_text, tidy=_tidy
)
