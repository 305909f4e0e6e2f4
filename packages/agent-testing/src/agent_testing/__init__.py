"""For tests of plugins: a conformance kit, servers that play a script, faults, recorded traffic.

The conformance kit is in `agent_testing.conformance`, the pytest fixtures in `agent_testing.fixtures`.
Providers that need no server at all, `EchoProvider` and `ScriptedProvider`, are in `agent_core.testing`.
"""

from agent_core.testing import ToolCall
from agent_testing.anthropic import ANTHROPIC_USAGE, anthropic_models, anthropic_reply
from agent_testing.chat import CHAT_USAGE, chat_chunk, chat_models, chat_reply
from agent_testing.faults import ENDLESS, FAULTS, Fault, FaultTests
from agent_testing.gemini import GEMINI_USAGE, gemini_models, gemini_reply
from agent_testing.models import FunctionModel, ModelRequest, TestModel, example
from agent_testing.replies import (
    Break,
    ServerReply,
    captive_portal,
    error_reply,
    json_reply,
    redirect,
    sse_event,
    sse_reply,
)
from agent_testing.responses import RESPONSES_USAGE, responses_reply
from agent_testing.server import Line, ReceivedRequest, ScriptedServer
from agent_testing.talk import DRIVERS, Drive, Talk
from agent_testing.traffic import NotRecorded, RealProviderReached, Recorded, read_recording, read_recordings
from agent_testing.users import Conversation, converse

__all__ = [
    "ANTHROPIC_USAGE",
    "CHAT_USAGE",
    "DRIVERS",
    "ENDLESS",
    "FAULTS",
    "GEMINI_USAGE",
    "RESPONSES_USAGE",
    "Break",
    "Conversation",
    "Drive",
    "Fault",
    "FaultTests",
    "FunctionModel",
    "Line",
    "ModelRequest",
    "NotRecorded",
    "RealProviderReached",
    "ReceivedRequest",
    "Recorded",
    "ScriptedServer",
    "ServerReply",
    "Talk",
    "TestModel",
    "ToolCall",
    "anthropic_models",
    "anthropic_reply",
    "captive_portal",
    "chat_chunk",
    "chat_models",
    "chat_reply",
    "converse",
    "error_reply",
    "example",
    "gemini_models",
    "gemini_reply",
    "json_reply",
    "read_recording",
    "read_recordings",
    "redirect",
    "responses_reply",
    "sse_event",
    "sse_reply",
]
