"""The ids of the built-in formats.

A call and the schema of its tool often share an id: calls, schemas and results are three families,
and an id is unique within its own.
"""

from __future__ import annotations

from typing import Final

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
