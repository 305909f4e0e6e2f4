"""For plugin authors and applications: providers that need no model, and an IO that needs no world."""

from agent_core.testing.echo import EchoProvider
from agent_core.testing.scripted import (
    Reply,
    ScriptedIO,
    ScriptedProvider,
    ScriptEnded,
    SeenRequest,
    ToolCall,
)

__all__ = [
    "EchoProvider",
    "Reply",
    "ScriptEnded",
    "ScriptedIO",
    "ScriptedProvider",
    "SeenRequest",
    "ToolCall",
]
