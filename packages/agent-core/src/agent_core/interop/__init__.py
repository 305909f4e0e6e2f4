"""Tool calls, tool schemas and tool results of different wire formats, by id, and their conversion."""

from agent_core.interop.formats import ToolCallFormat, ToolResultFormat, ToolSchemaFormat
from agent_core.interop.ids import (
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
)
from agent_core.interop.registry import ToolInteropRegistry
from agent_core.interop.text_tools import unwrap_call, unwrap_schema, wrap_call, wrap_schema
from agent_core.interop.values import (
    InspectedCall,
    InspectedResult,
    InspectedSchema,
    PayloadKind,
    ToolInteropTarget,
)

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
    "InspectedCall",
    "InspectedResult",
    "InspectedSchema",
    "PayloadKind",
    "ToolCallFormat",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "ToolResultFormat",
    "ToolSchemaFormat",
    "unwrap_call",
    "unwrap_schema",
    "wrap_call",
    "wrap_schema",
]
