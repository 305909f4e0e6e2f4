"""The core of the agent platform: sessions and configurations go in, new sessions come out.

Start with `AgentCore`. Everything between a session and its successor is plugins: providers,
provider extensions, features and tools; `agent_core.types` has their contracts, and
`agent_core.testing` has providers that need no model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_core.actions import RESPONSE_FINALIZE, STANDARD_LIFECYCLES
    from agent_core.cancellation import Cancellation, CancellationToken
    from agent_core.config import plugin_config
    from agent_core.context import build_context
    from agent_core.core import AgentCore
    from agent_core.display import DisplayReport, validate_display
    from agent_core.drivers import AsyncEventStream, EventStream
    from agent_core.errors import (
        ActionCancelledError,
        ActionError,
        ActionInputError,
        ActionNotConfirmedError,
        ActionTimeoutError,
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
        ToolSuspended,
        UnknownActionError,
    )
    from agent_core.events import Event, FinalEvent, PartialEvent
    from agent_core.functions import File, FunctionTool, ToolReturn, tool
    from agent_core.history import History
    from agent_core.interop import ToolInteropRegistry, ToolInteropTarget
    from agent_core.messages import Message, MessageRole
    from agent_core.models import ModelDiscoveryCache, ModelSnapshot, ToolDescriptor
    from agent_core.plugin.discovery import InstalledPlugin, find_installed
    from agent_core.resolve import Decision, Resolution
    from agent_core.session import Session
    from agent_core.steps import Batch

__all__ = [
    "RESPONSE_FINALIZE",
    "STANDARD_LIFECYCLES",
    "ActionCancelledError",
    "ActionError",
    "ActionInputError",
    "ActionNotConfirmedError",
    "ActionTimeoutError",
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
    "File",
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
    "ToolReturn",
    "ToolSuspended",
    "UnknownActionError",
    "build_context",
    "find_installed",
    "plugin_config",
    "tool",
    "validate_display",
]

# A name is loaded when it is first used, so that a program pays only for the parts that it touches.
_HOMES = {
    "agent_core.actions": ("RESPONSE_FINALIZE", "STANDARD_LIFECYCLES"),
    "agent_core.cancellation": ("Cancellation", "CancellationToken"),
    "agent_core.config": ("plugin_config",),
    "agent_core.context": ("build_context",),
    "agent_core.core": ("AgentCore",),
    "agent_core.display": ("DisplayReport", "validate_display"),
    "agent_core.drivers": ("AsyncEventStream", "EventStream"),
    "agent_core.errors": (
        "ActionCancelledError",
        "ActionError",
        "ActionInputError",
        "ActionNotConfirmedError",
        "ActionTimeoutError",
        "AgentError",
        "ArgumentError",
        "ArgumentTypeError",
        "ConfigError",
        "ConfigTypeError",
        "DuplicatePluginError",
        "MessageEditError",
        "MessageIndexError",
        "ModelNotFoundError",
        "NativeHistoryError",
        "NoProviderError",
        "PluginError",
        "PluginMutationError",
        "PluginNotFoundError",
        "ProviderError",
        "ProviderNotFoundError",
        "RegistrationError",
        "RequestCancelled",
        "ResolveError",
        "SessionError",
        "SessionFormatError",
        "ToolError",
        "ToolIdConflictError",
        "ToolSuspended",
        "UnknownActionError",
    ),
    "agent_core.events": ("Event", "FinalEvent", "PartialEvent"),
    "agent_core.functions": ("File", "FunctionTool", "ToolReturn", "tool"),
    "agent_core.history": ("History",),
    "agent_core.interop": ("ToolInteropRegistry", "ToolInteropTarget"),
    "agent_core.messages": ("Message", "MessageRole"),
    "agent_core.models": ("ModelDiscoveryCache", "ModelSnapshot", "ToolDescriptor"),
    "agent_core.plugin.discovery": ("InstalledPlugin", "find_installed"),
    "agent_core.resolve": ("Decision", "Resolution"),
    "agent_core.session": ("Session",),
    "agent_core.steps": ("Batch",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
