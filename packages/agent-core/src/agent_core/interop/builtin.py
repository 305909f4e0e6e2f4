"""The formats that every registry starts with."""

from __future__ import annotations

from agent_core.interop import anthropic, gemini, openai_chat, openai_responses
from agent_core.interop.core_text import CORE_TEXT
from agent_core.interop.table import FormatTable, FormatTables

BUILT_IN = FormatTables(
    calls=FormatTable(
        "call",
        (
            *openai_chat.CALL_FORMATS,
            *openai_responses.CALL_FORMATS,
            *anthropic.CALL_FORMATS,
            *gemini.CALL_FORMATS,
        ),
    ),
    schemas=FormatTable(
        "schema",
        (
            *openai_chat.SCHEMA_FORMATS,
            *openai_responses.SCHEMA_FORMATS,
            *anthropic.SCHEMA_FORMATS,
            *gemini.SCHEMA_FORMATS,
        ),
    ),
    results=FormatTable(
        "result",
        (
            CORE_TEXT,
            *openai_chat.RESULT_FORMATS,
            *openai_responses.RESULT_FORMATS,
            *anthropic.RESULT_FORMATS,
            *gemini.RESULT_FORMATS,
        ),
    ),
)
