"""Inspected calls and schemas from the pieces that the formats find in their own places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.errors import ToolError
from agent_core.interop.fields import kind_of, name_in, text_in
from agent_core.interop.text_tools import memory_of
from agent_core.interop.values import PLAIN_TEXT, InspectedCall, InspectedSchema

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def json_call(
    format_id: str,
    raw: Mapping[str, Any],
    *,
    name: str,
    call_id: str | None,
    decoded: tuple[Any, str | None],
    extra: dict[str, Any],
) -> InspectedCall:
    """Return a call with arguments, *decoded* as `agent_core.interop.arguments` does it."""
    payload, problem = decoded
    return InspectedCall(
        call_id=call_id,
        tool_name=name,
        payload=payload,
        payload_metadata=metadata(extra),
        raw=raw,
        format_id=format_id,
        problem=problem,
    )


def text_call(
    format_id: str,
    raw: Mapping[str, Any],
    *,
    body: Mapping[str, Any],
    call_id: str | None,
    extra: dict[str, Any],
) -> InspectedCall:
    """Return a call whose *body* has a name and freeform input."""
    return InspectedCall(
        call_id=call_id,
        tool_name=name_in(body),
        payload=text_in(body, "input"),
        payload_kind="text",
        payload_format=syntax_of(flat_grammar(body.get("format"))),
        payload_metadata=metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def json_schema(
    format_id: str,
    raw: Mapping[str, Any],
    *,
    body: Mapping[str, Any],
    parameters: Any,
    extra: dict[str, Any],
    strict: bool = False,
) -> InspectedSchema:
    """Return a tool whose arguments are described by JSON Schema; None means no arguments."""
    described = NO_PARAMETERS if parameters is None else parameters
    if not isinstance(described, Mapping):
        raise ToolError(name_in(body), f"its parameters must be an object, got {kind_of(parameters)}")
    enforced = {"strict": True} if strict else {}
    return InspectedSchema(
        name=name_in(body),
        description=text_in(body, "description"),
        parameters=described,
        payload_metadata=enforced | memory_of(described) | metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def text_schema(
    format_id: str, raw: Mapping[str, Any], *, body: Mapping[str, Any], extra: dict[str, Any]
) -> InspectedSchema:
    """Return a tool that takes freeform text, perhaps within a grammar."""
    grammar = flat_grammar(body.get("format"))
    limits = {} if syntax_of(grammar) == PLAIN_TEXT else {"format": grammar}
    return InspectedSchema(
        name=name_in(body),
        description=text_in(body, "description"),
        payload_kind="text",
        payload_format=syntax_of(grammar),
        payload_metadata=limits | metadata(extra),
        raw=raw,
        format_id=format_id,
    )


def metadata(extra: dict[str, Any]) -> dict[str, Any]:
    """Return payload metadata with the fields that only one format knows."""
    return {"extra": extra} if extra else {}


def flat_grammar(text_format: Any) -> dict[str, Any]:
    """Return a text format the way the Responses API writes it; Chat nests the grammar once more."""
    if not isinstance(text_format, Mapping):
        return {"type": PLAIN_TEXT}
    inner = text_format.get("grammar")
    return {"type": "grammar", **inner} if isinstance(inner, Mapping) else dict(text_format)


def syntax_of(text_format: Mapping[str, Any]) -> str:
    """Return the payload format of text: its grammar's syntax, or else the type."""
    return str(text_format.get("syntax") or text_format.get("type") or PLAIN_TEXT)


def need_json(value: InspectedCall | InspectedSchema) -> None:
    """Refuse a text payload, for formats that only know JSON.

    Raises:
        ToolError: If the payload is text.
    """
    if value.payload_kind != "json":
        raise ToolError(_name(value), "this format takes JSON arguments, not freeform text")


def need_text(value: InspectedCall | InspectedSchema) -> None:
    """Refuse a JSON payload, for formats that only know text.

    Raises:
        ToolError: If the payload is JSON.
    """
    if value.payload_kind != "text":
        raise ToolError(_name(value), "this format takes freeform text, not JSON arguments")


def _name(value: InspectedCall | InspectedSchema) -> str:
    return value.tool_name if isinstance(value, InspectedCall) else value.name
