"""The core of the agent platform: sessions and configurations go in, new sessions come out.

Start with `AgentCore`. Everything between a session and its successor is plugins: providers,
provider extensions, features and tools; `agent_core.types` has their contracts, and
`agent_core.testing` has providers that need no model.
"""

from agent_core.actions import RESPONSE_FINALIZE, STANDARD_LIFECYCLES
from agent_core.cancellation import Cancellation, CancellationToken
from agent_core.context import build_context
from agent_core.core import AgentCore
from agent_core.display import DisplayReport, validate_display
from agent_core.drivers import AsyncEventStream, EventStream
from agent_core.errors import (
    ActionError,
    ActionInputError,
    AgentError,
    ArgumentError,
    ArgumentTypeError,
    ConfigError,
    ConfigTypeError,
    DuplicatePluginError,
    MessageEditError,
    MessageIndexError,
    ModelNotFoundError,
    NativeHistoryError,
    NoProviderError,
    PluginError,
    PluginMutationError,
    PluginNotFoundError,
    ProviderError,
    ProviderNotFoundError,
    RegistrationError,
    RequestCancelled,
    ResolveError,
    SessionError,
    SessionFormatError,
    ToolError,
    ToolIdConflictError,
    UnknownActionError,
)
from agent_core.events import Event, FinalEvent, PartialEvent
from agent_core.functions import FunctionTool, tool
from agent_core.history import History
from agent_core.interop import ToolInteropRegistry, ToolInteropTarget
from agent_core.messages import Message, MessageRole
from agent_core.models import ModelSnapshot, ToolDescriptor
from agent_core.plugin.discovery import InstalledPlugin, find_installed
from agent_core.plugin.model_cache import ModelDiscoveryCache
from agent_core.resolve import Decision, Resolution
from agent_core.session import Session
from agent_core.steps import Batch

__all__ = [
    "RESPONSE_FINALIZE",
    "STANDARD_LIFECYCLES",
    "ActionError",
    "ActionInputError",
    "AgentCore",
    "AgentError",
    "ArgumentError",
    "ArgumentTypeError",
    "AsyncEventStream",
    "Batch",
    "Cancellation",
    "CancellationToken",
    "ConfigError",
    "ConfigTypeError",
    "Decision",
    "DisplayReport",
    "DuplicatePluginError",
    "Event",
    "EventStream",
    "FinalEvent",
    "FunctionTool",
    "History",
    "InstalledPlugin",
    "Message",
    "MessageEditError",
    "MessageIndexError",
    "MessageRole",
    "ModelDiscoveryCache",
    "ModelNotFoundError",
    "ModelSnapshot",
    "NativeHistoryError",
    "NoProviderError",
    "PartialEvent",
    "PluginError",
    "PluginMutationError",
    "PluginNotFoundError",
    "ProviderError",
    "ProviderNotFoundError",
    "RegistrationError",
    "RequestCancelled",
    "Resolution",
    "ResolveError",
    "Session",
    "SessionError",
    "SessionFormatError",
    "ToolDescriptor",
    "ToolError",
    "ToolIdConflictError",
    "ToolInteropRegistry",
    "ToolInteropTarget",
    "UnknownActionError",
    "build_context",
    "find_installed",
    "tool",
    "validate_display",
]
