"""For tests of providers: a real server that plays a script, and replies in every wire format.

The pytest fixture is in `agent_provider_kit.testing.fixtures`.
"""

from agent_core.testing import ToolCall
from agent_provider_kit.testing.anthropic import ANTHROPIC_USAGE, anthropic_models, anthropic_reply
from agent_provider_kit.testing.chat import CHAT_USAGE, chat_chunk, chat_models, chat_reply
from agent_provider_kit.testing.faults import FAULTS, Fault
from agent_provider_kit.testing.gemini import GEMINI_USAGE, gemini_models, gemini_reply
from agent_provider_kit.testing.recordings import Recorded, read_recording
from agent_provider_kit.testing.replies import (
    Break,
    ServerReply,
    captive_portal,
    error_reply,
    json_reply,
    redirect,
    sse_event,
    sse_reply,
)
from agent_provider_kit.testing.responses import RESPONSES_USAGE, responses_reply
from agent_provider_kit.testing.server import Line, ReceivedRequest, ScriptedServer
from agent_provider_kit.testing.talk import DRIVERS, Drive, Talk

__all__ = [
    "ANTHROPIC_USAGE",
    "CHAT_USAGE",
    "DRIVERS",
    "FAULTS",
    "GEMINI_USAGE",
    "RESPONSES_USAGE",
    "Break",
    "Drive",
    "Fault",
    "Line",
    "ReceivedRequest",
    "Recorded",
    "ScriptedServer",
    "ServerReply",
    "Talk",
    "ToolCall",
    "anthropic_models",
    "anthropic_reply",
    "captive_portal",
    "chat_chunk",
    "chat_models",
    "chat_reply",
    "error_reply",
    "gemini_models",
    "gemini_reply",
    "json_reply",
    "read_recording",
    "redirect",
    "responses_reply",
    "sse_event",
    "sse_reply",
]
