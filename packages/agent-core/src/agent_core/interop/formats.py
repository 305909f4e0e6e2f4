"""Wire formats of tool calls, schemas and results: their ids, what they say, and how one is described."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_core.frozen import EMPTY, JsonObject
from agent_core.values import JSON_OBJECT, PayloadKind, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# The ids of the built-in formats.
#
# A call and the schema of its tool often share an id: calls, schemas and results are three families,
# and an id is unique within its own.

TOOL_RESULT_FIELD: Final = "tool_result"
"""Where a tool message keeps its structured result."""

# Calls and schemas.
OPENAI_CHAT_FUNCTION_FORMAT_ID: Final = "openai.chat.function"
OPENAI_CHAT_CUSTOM_FORMAT_ID: Final = "openai.chat.custom"
OPENAI_RESPONSES_FUNCTION_FORMAT_ID: Final = "openai.responses.function"
OPENAI_RESPONSES_CUSTOM_FORMAT_ID: Final = "openai.responses.custom"

# Calls alone.
ANTHROPIC_TOOL_USE_FORMAT_ID: Final = "anthropic.tool_use"
GEMINI_FUNCTION_CALL_FORMAT_ID: Final = "gemini.function_call"

# Schemas alone.
ANTHROPIC_TOOL_FORMAT_ID: Final = "anthropic.tool"
GEMINI_FUNCTION_DECLARATION_FORMAT_ID: Final = "gemini.function_declaration"

# Results.
CORE_TEXT_TOOL_RESULT_FORMAT_ID: Final = "core.text"
OPENAI_CHAT_TOOL_RESULT_FORMAT_ID: Final = "openai.chat.tool"
OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID: Final = "openai.responses.function_call_output"
OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID: Final = "openai.responses.custom_tool_call_output"
ANTHROPIC_TOOL_RESULT_FORMAT_ID: Final = "anthropic.tool_result"
GEMINI_FUNCTION_RESPONSE_FORMAT_ID: Final = "gemini.function_response"


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedSchema:
    """One tool as it is offered to a model.

    Attributes:
        name: The tool's name; never blank.
        description: What the model reads about it, or "".
        parameters: JSON Schema of the arguments; empty for a tool of kind "text".
        payload_kind: "json" for arguments, "text" for freeform input.
        payload_format: "json_object", "text", or the syntax of the grammar ("lark", "regex").
        payload_metadata: `strict` when the arguments are to be enforced, `format` with the grammar
            of a text tool, `wrapped_text` when a text tool stands behind, and `extra`.
        raw: The schema as it was received.
        format_id: The format that it was read in.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    payload_kind: PayloadKind = "json"
    payload_format: str = JSON_OBJECT
    payload_metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    raw: Mapping[str, Any] = field(default_factory=lambda: EMPTY, compare=False)
    format_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ToolInteropTarget:
    """Whom a conversion is for.

    Attributes:
        name: Who asks, for messages: a provider's name, or "core.tool_result".
        call: The call that is converted or answered; its id and tool name go into what is built.
    """

    name: str
    call: ToolCall | None = None


# What a format is: an id and a few functions, so that a plugin can bring one of its own.
#
# ``matches`` is offered every value that someone inspects and must answer without raising. ``inspect``
# reads a value that matched. ``build`` writes what was read from any format; it raises `ToolError` for
# what the format cannot express, and the registry then tries the next way. ``tidy`` receives a value
# that is in this format already, and returns it ready to be sent: ``raw`` itself, unless ``matches``
# accepts shapes that the receiving end would refuse.


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFormat:
    """How one wire format writes a tool call; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], ToolCall]
    build: Callable[[ToolCall], JsonObject] | None = None
    tidy: Callable[[ToolCall], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchemaFormat:
    """How one wire format offers a tool; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], InspectedSchema]
    build: Callable[[InspectedSchema], JsonObject] | None = None
    tidy: Callable[[InspectedSchema], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultFormat:
    """How one wire format answers a tool call; without `build` it can only be read."""

    id: str
    matches: Callable[[Any], bool]
    inspect: Callable[[Any], ToolResult]
    build: Callable[[ToolResult, ToolInteropTarget], JsonObject] | None = None
    tidy: Callable[[ToolResult], Mapping[str, Any]] | None = None
