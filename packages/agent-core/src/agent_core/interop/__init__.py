"""Tool calls, tool schemas and tool results of different wire formats, by id, and their conversion.

A request without tools does without all of it, so a name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_core.interop.formats import (
        ANTHROPIC_TOOL_FORMAT_ID,
        ANTHROPIC_TOOL_RESULT_FORMAT_ID,
        ANTHROPIC_TOOL_USE_FORMAT_ID,
        CORE_TEXT_TOOL_RESULT_FORMAT_ID,
        GEMINI_FUNCTION_CALL_FORMAT_ID,
        GEMINI_FUNCTION_DECLARATION_FORMAT_ID,
        GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
        OPENAI_CHAT_CUSTOM_FORMAT_ID,
        OPENAI_CHAT_FUNCTION_FORMAT_ID,
        OPENAI_CHAT_TOOL_RESULT_FORMAT_ID,
        OPENAI_RESPONSES_CUSTOM_FORMAT_ID,
        OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID,
        OPENAI_RESPONSES_FUNCTION_FORMAT_ID,
        OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID,
        TOOL_RESULT_FIELD,
        InspectedSchema,
        ToolCallFormat,
        ToolInteropTarget,
        ToolResultFormat,
        ToolSchemaFormat,
    )
    from agent_core.interop.registry import ToolInteropRegistry
    from agent_core.interop.wire import unwrap_call, unwrap_schema, wrap_call, wrap_schema
    from agent_core.values import PayloadKind, ToolCall, ToolResult

__all__ = [
    "ANTHROPIC_TOOL_FORMAT_ID",
    "ANTHROPIC_TOOL_RESULT_FORMAT_ID",
    "ANTHROPIC_TOOL_USE_FORMAT_ID",
    "CORE_TEXT_TOOL_RESULT_FORMAT_ID",
    "GEMINI_FUNCTION_CALL_FORMAT_ID",
    "GEMINI_FUNCTION_DECLARATION_FORMAT_ID",
    "GEMINI_FUNCTION_RESPONSE_FORMAT_ID",
    "OPENAI_CHAT_CUSTOM_FORMAT_ID",
    "OPENAI_CHAT_FUNCTION_FORMAT_ID",
    "OPENAI_CHAT_TOOL_RESULT_FORMAT_ID",
    "OPENAI_RESPONSES_CUSTOM_FORMAT_ID",
    "OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID",
    "OPENAI_RESPONSES_FUNCTION_FORMAT_ID",
    "OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID",
    "TOOL_RESULT_FIELD",
    "InspectedSchema",
    "PayloadKind",
    "ToolCall",
    "ToolCallFormat",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "ToolResult",
    "ToolResultFormat",
    "ToolSchemaFormat",
    "unwrap_call",
    "unwrap_schema",
    "wrap_call",
    "wrap_schema",
]

HOMES = {
    "agent_core.interop.formats": (
        "ANTHROPIC_TOOL_FORMAT_ID",
        "ANTHROPIC_TOOL_RESULT_FORMAT_ID",
        "ANTHROPIC_TOOL_USE_FORMAT_ID",
        "CORE_TEXT_TOOL_RESULT_FORMAT_ID",
        "GEMINI_FUNCTION_CALL_FORMAT_ID",
        "GEMINI_FUNCTION_DECLARATION_FORMAT_ID",
        "GEMINI_FUNCTION_RESPONSE_FORMAT_ID",
        "OPENAI_CHAT_CUSTOM_FORMAT_ID",
        "OPENAI_CHAT_FUNCTION_FORMAT_ID",
        "OPENAI_CHAT_TOOL_RESULT_FORMAT_ID",
        "OPENAI_RESPONSES_CUSTOM_FORMAT_ID",
        "OPENAI_RESPONSES_CUSTOM_OUTPUT_FORMAT_ID",
        "OPENAI_RESPONSES_FUNCTION_FORMAT_ID",
        "OPENAI_RESPONSES_FUNCTION_OUTPUT_FORMAT_ID",
        "TOOL_RESULT_FIELD",
        "InspectedSchema",
        "ToolCallFormat",
        "ToolInteropTarget",
        "ToolResultFormat",
        "ToolSchemaFormat",
    ),
    "agent_core.interop.registry": ("ToolInteropRegistry",),
    "agent_core.interop.wire": ("unwrap_call", "unwrap_schema", "wrap_call", "wrap_schema"),
    "agent_core.values": ("PayloadKind", "ToolCall", "ToolResult"),
}
__getattr__ = lazy_names(__name__, HOMES)
