"""For plugin authors and applications: providers that need no model, and checks of one's own plugins."""

from agent_core.testing.echo import EchoProvider
from agent_core.testing.script import Reply, ToolCall
from agent_core.testing.scripted import ScriptedProvider, ScriptEnded, SeenRequest
from agent_core.testing.scripted_io import ScriptedIO

__all__ = [
    "EchoProvider",
    "Reply",
    "ScriptEnded",
    "ScriptedIO",
    "ScriptedProvider",
    "SeenRequest",
    "ToolCall",
]
