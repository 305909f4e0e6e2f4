"""Values that pass through every layer in one shape: from a provider's answer to the screen.

They are frozen. Dicts of the same content exist only at the borders: on a provider's wire, in the store, and
where a plugin's hook takes or returns one.

Two tool calls, or results, are equal when they mean the same: `raw` and `format_id` say where a value came
from and take no part in the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_core.frozen import EMPTY, JsonObject

if TYPE_CHECKING:
    from collections.abc import Mapping

PayloadKind = Literal["json", "text"]
JSON_OBJECT = "json_object"
PLAIN_TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool.

    Attributes:
        call_id: What a result must quote to answer this call, or None when the call has none.
        tool_name: The tool that the model asked for; never blank.
        payload: The arguments: a dict of the receiver's own for kind "json", a str for kind "text",
            and the arguments' text, as received, where there is a `problem`.
        payload_kind: "json" for arguments, "text" for freeform input.
        payload_format: "json_object", "text", or the grammar's syntax where the call names one.
        payload_metadata: What else is known; `extra` has the fields that only its own format knows.
        raw: The call as it was received.
        format_id: The format that it was read in.
        problem: Why the payload cannot be used, in a sentence that can be shown to the model.
    """

    call_id: str | None
    tool_name: str
    payload: Any
    payload_kind: PayloadKind = "json"
    payload_format: str = JSON_OBJECT
    payload_metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    raw: Mapping[str, Any] = field(default_factory=lambda: EMPTY, compare=False)
    format_id: str = field(default="", compare=False)
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        text: All that is text in it.
        display: A payload for front ends; only the platform's own results carry one.
        call_id: The call that it answers, where the result says so.
        is_error: Whether the tool failed.
        parts: Empty when the text is everything; otherwise the whole content in order, text
            included, in the shapes that `agent_core.interop.parts` describes.
        raw: The result as it was received: a dict, or whatever the tool returned.
        format_id: The format that it was read in.
    """

    text: str
    display: JsonObject | None = None
    call_id: str | None = None
    is_error: bool = False
    parts: tuple[JsonObject, ...] = ()
    raw: Any = field(default=None, compare=False)
    format_id: str = field(default="", compare=False)
