"""What each hook must answer, as its contract in `agent_core.types` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_core.models import ToolDescriptor
from agent_core.testing.conformance.difference import shown

Fits = Callable[[Any], bool]


def _dicts(answer: Any) -> bool:
    return isinstance(answer, list) and all(isinstance(item, dict) for item in answer)


def _strings(answer: Any) -> bool:
    return isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(i, str) for i in answer)


def _dict(answer: Any) -> bool:
    return isinstance(answer, dict)


def _models(answer: Any) -> bool:
    return _dicts(answer) and all(isinstance(model.get("id"), str) and model["id"] for model in answer)


def _descriptors(answer: Any) -> bool:
    return isinstance(answer, (list, tuple)) and all(isinstance(item, ToolDescriptor) for item in answer)


def _settings(answer: Any) -> bool:
    return isinstance(answer, Mapping) and all(isinstance(value, Mapping) for value in answer.values())


def _parts(*parts: Fits) -> Fits:
    def fits(answer: Any) -> bool:
        if not isinstance(answer, tuple) or len(answer) != len(parts):
            return False
        return all(part(item) for part, item in zip(parts, answer, strict=True))

    return fits


def _action_result(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    lists = (answer.get(key) for key in ("native_messages", "final_messages"))
    dicts = (answer.get(key) for key in ("session_metadata", "error"))
    return all(v is None or _dicts(v) for v in lists) and all(v is None or _dict(v) for v in dicts)


SHAPES: Mapping[str, tuple[Fits, str]] = {
    "get_config_schema": (_settings, "a dict with a dict for each key"),
    "get_ui_elements": (_dicts, "a list of dicts"),
    "get_tags": (_strings, "a list of strings"),
    "required_tags": (_strings, "a list of strings"),
    "forbidden_tags": (_strings, "a list of strings"),
    "is_enabled": (lambda answer: answer is None or isinstance(answer, bool), "True, False or None"),
    "init": (_dict, "the state, a dict"),
    "get_models": (_models, "a list of dicts, each with an id"),
    "to_native_messages": (_dicts, "a list of dicts"),
    "from_native_messages": (_dicts, "a list of dicts"),
    "initialize_request": (_parts(_dicts, _dict), "(native_messages, state)"),
    "process_chunk": (_parts(_dicts, _dicts, _dicts, _dict), "(partials, finals, native_messages, state)"),
    "finalize": (_parts(_dicts, _dicts, _dict), "(final_messages, native_messages, state)"),
    "get_actions": (_dicts, "a list of dicts"),
    "execute_action": (_action_result, "a dict, with lists of messages and a session_metadata dict"),
    "prepare_tools": (_descriptors, "a list of ToolDescriptor"),
    "get_template": (lambda answer: isinstance(answer, str), "a string"),
    "get_completions": (_dicts, "a list of dicts"),
    "apply_completion": (lambda answer: isinstance(answer, str), "a string"),
    "get_tool_schemas": (_dicts, "a list of dicts"),
    "register_tool_formats": (lambda _answer: True, "nothing"),
}


def shape_problem(hook: str, answer: Any) -> str | None:
    """Return what is wrong with the kind of *answer*, or None."""
    fits, expected = SHAPES[hook]
    return None if fits(answer) else f"must return {expected}, returned {shown(answer)}"


def public_part(answer: Any) -> Any:
    """Return what of an answer leaves the request: all but the state, descriptors as dicts."""
    if isinstance(answer, tuple):
        return list(answer[:-1])
    if _descriptors(answer):
        return [[tool.name, tool.schema, tool.metadata, tool.prepared] for tool in answer]
    return answer
