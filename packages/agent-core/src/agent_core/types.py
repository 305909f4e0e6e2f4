"""The contracts that plugins fulfil, and the values that they meet.

A plugin is any class with a `name` and a `version`. It writes only the hooks that it needs, and of
each only the arguments that it cares for: everything after ``*`` below may be left out, and is passed
by name. What a plugin is lent (messages, native messages, configuration, context) is frozen: it
returns changed copies. Its `state` belongs to one request and may be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agent_core.frozen import Dicts, JsonObject, State
from agent_core.messages import Message, MessageRole
from agent_core.models import ToolDescriptor
from agent_core.session import Session
from agent_core.steps import Batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from agent_core.interop import ToolInteropRegistry

__all__ = [
    "BasePlugin",
    "Batch",
    "FeaturePlugin",
    "Message",
    "MessageRole",
    "ProviderExtensionPlugin",
    "ProviderPlugin",
    "Session",
    "ToolDescriptor",
    "ToolPlugin",
]

Config: TypeAlias = JsonObject
Context: TypeAlias = JsonObject | None


class BasePlugin(Protocol):
    """What every kind of plugin may have.

    Attributes:
        name: How configuration and errors call it.
        version: Its version.
        priority: Lower runs first among features and tools; 100 by default.
        default_enabled: False for plugins that must be listed in `enabled_plugins`.
    """

    name: str
    version: str
    priority: int = 100
    default_enabled: bool = True

    def get_config_schema(self) -> JsonObject:
        """Return a descriptor for each configuration key that the plugin reads."""
        ...

    def get_ui_elements(self, config: Config, *, tags: list[str], models: Dicts, context: Context) -> Dicts:
        """Return what a front end should show for this configuration."""
        ...

    def get_tags(self, config: Config, *, models: Dicts, context: Context) -> list[str]:
        """Return the capability tags that the plugin contributes while it is on."""
        ...

    def required_tags(self) -> list[str]:
        """Return the tags that must all be there for the plugin to be on."""
        ...

    def forbidden_tags(self) -> list[str]:
        """Return the tags of which none may be there for the plugin to be on."""
        ...

    def is_enabled(self, config: Config, *, tags: list[str], models: Dicts, context: Context) -> bool | None:
        """Return True or False to decide it, None to leave it to the tags. Called in every round."""
        ...


class _ActsOnSessions(Protocol):
    def get_actions(self, *, state: State, context: Context) -> Dicts:
        """Return the actions that the plugin offers for a session; `trigger` makes one automatic."""
        ...

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: JsonObject,
        *,
        context: Context,
        state: State,
    ) -> JsonObject:
        """Run an action: return new `native_messages`, a `session_metadata` patch, a `display`."""
        ...


class ProviderPlugin(BasePlugin, Protocol):
    """Talks to a model: at least one of the four API hooks is needed.

    Attributes:
        accepts_unlisted_models: True if models outside `get_models` can be asked for.
        one_item_per_message: True if `to_native_messages` makes one native item of every message. Otherwise
            it is asked a second time, message by message, to find out which items belong to which.
        tool_schema_formats: The formats in which tool schemas should arrive in ``config["tools"]``.
    """

    accepts_unlisted_models: bool = False
    one_item_per_message: bool = False
    tool_schema_formats: tuple[str, ...] = ()

    def init(self, config: Config, *, context: Context) -> State:
        """Return the state of a new request, edit or action; called first, with ``config["tools"]``."""
        ...

    def get_models(self, config: Config, *, context: Context) -> Dicts:
        """Return the models on offer, each with an `id`. Remembered between requests."""
        ...

    def to_native_messages(self, messages: Dicts, *, state: State, context: Context) -> Dicts:
        """Return messages in the provider's own form. Stateless."""
        ...

    def from_native_messages(self, native_messages: Dicts, *, state: State, context: Context) -> Dicts:
        """Return the provider's own messages in readable form. Stateless."""
        ...

    def initialize_request(
        self, native_messages: Dicts, state: State, *, context: Context
    ) -> tuple[Dicts, State]:
        """Prepare a request; called right before the model is asked."""
        ...

    def call_api(
        self, native_messages: Dicts, state: State, *, request_id: str | None, memory: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Ask the model and return (partials, final_messages, native_messages, state)."""
        ...

    def call_api_async(
        self, native_messages: Dicts, state: State, *, request_id: str | None, memory: State
    ) -> Awaitable[tuple[Dicts, Dicts, Dicts, State]]:
        """Do what `call_api` does, on an event loop."""
        ...

    def stream_api(
        self, native_messages: Dicts, state: State, *, request_id: str | None, memory: State
    ) -> Iterator[Any]:
        """Ask the model and yield raw chunks, or a `Batch` with all chunks of one read."""
        ...

    def stream_api_async(
        self, native_messages: Dicts, state: State, *, request_id: str | None, memory: State
    ) -> AsyncIterator[Any]:
        """Do what `stream_api` does, on an event loop."""
        ...

    def process_chunk(
        self, chunk: Any, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Return (partials, final_messages, native_messages, state). Called for every chunk: be quick."""
        ...

    def finalize(
        self, native_messages: Dicts, state: State, *, context: Context
    ) -> tuple[Dicts, Dicts, State]:
        """Return (final_messages, native_messages, state) when the answer is complete or was cut short."""
        ...

    def repair_native(
        self, native_messages: Dicts, *, context: Context, memory: State
    ) -> tuple[Dicts, list[str]]:
        """Return messages that it accepts, and a line for each change. Called right before sending.

        Deterministic and idempotent; never drops what a person said. `memory` is a dict of the
        conversation's own, which later requests find again as long as it is in this process. Here and in
        the hooks that ask the model, a provider keeps there what it would otherwise find out again for
        every message of a long history. Forks share it, so whatever is found there has to be compared.
        """
        ...

    def cancel_request(self, request_id: str) -> None:
        """Stop working on a request, so that a read which waits for it ends. From any thread."""
        ...

    def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
        """Add the provider's own formats of tool calls, schemas and results."""
        ...


class _FollowsProvider(BasePlugin, _ActsOnSessions, Protocol):
    def init(self, config: Config, state: State, *, context: Context) -> State:
        """Return the request's state with what the plugin adds to it."""
        ...

    def get_models(self, config: Config, models: Dicts, *, context: Context) -> Dicts:
        """Return the models after adding, changing or removing some."""
        ...

    def to_native_messages(
        self, messages: Dicts, native_messages: Dicts, *, state: State, context: Context
    ) -> Dicts:
        """Return the native form of *messages*; *native_messages* is what earlier plugins made of them."""
        ...

    def from_native_messages(
        self, native_messages: Dicts, messages: Dicts, *, state: State, context: Context
    ) -> Dicts:
        """Return the readable form of *native_messages*; *messages* is what earlier plugins made of them."""
        ...

    def initialize_request(
        self, native_messages: Dicts, state: State, *, context: Context
    ) -> tuple[Dicts, State]:
        """Prepare a request; what is changed in the native messages becomes part of the session."""
        ...

    def finalize(
        self, final_messages: Dicts, native_messages: Dicts, state: State, *, context: Context
    ) -> tuple[Dicts, Dicts, State]:
        """Adjust the turn's native messages once the provider is done."""
        ...


class ProviderExtensionPlugin(_FollowsProvider, Protocol):
    """Belongs to a provider and sees every chunk of its answers."""

    def process_chunk(
        self, chunk: Any, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Return (partials, finals, native_messages, state). Called for every chunk: be quick."""
        ...


class FeaturePlugin(_FollowsProvider, Protocol):
    """Works with any provider; never sees single chunks."""

    def prepare_tools(
        self, tools: list[ToolDescriptor], *, config: Config, context: Context
    ) -> list[ToolDescriptor]:
        """Return the tools for the model: some removed, reordered, or with another description."""
        ...

    def get_template(self, *, config: Config) -> str:
        """Return a template text for applications."""
        ...

    def get_completions(self, config: Config, text: str) -> Dicts:
        """Return suggestions for the text before the cursor."""
        ...

    def apply_completion(self, config: Config, text: str, completion: JsonObject) -> str:
        """Return what an accepted suggestion becomes, or an empty string to leave it."""
        ...


class ToolPlugin(BasePlugin, Protocol):
    """Runs tools for the model. `stream_tool` may take the place of `execute_tool`; either may be async.

    Attributes:
        timeout: After how many seconds a call is given up, for all tools or by name.
        stateless: True if it needs no state and always offers the same; it is asked only once then.
        streams: False if its `stream_tool` is not to be used.
        blocking: False if its tools take no time to speak of, so that an event loop calls them itself.
        is_async: True if `execute_tool` or `stream_tool` is async without looking so.
    """

    timeout: float | dict[str, float] | None = None
    stateless: bool = False
    streams: bool = True
    blocking: bool = True
    is_async: bool = False

    def init(self, *, config: Config, context: Context) -> State:
        """Return the state with which the plugin's tools run."""
        ...

    def get_tool_schemas(self, *, state: State, context: Context) -> Dicts:
        """Return the tools' schemas, in any format that the tool interop registry knows."""
        ...

    def execute_tool(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        cancellation: Any,
        context: Context,
        prepared: JsonObject,
    ) -> Any:
        """Run a tool and return its result: a dict with `success`, or any value."""
        ...

    def stream_tool(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        cancellation: Any,
        context: Context,
        prepared: JsonObject,
    ) -> Iterator[JsonObject] | AsyncIterator[JsonObject]:
        """Run a tool, yielding ``{"part": …}`` as it goes and a dict with `success` at its end."""
        ...

    def execute_tool_async(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        cancellation: Any,
        context: Context,
        prepared: JsonObject,
    ) -> Awaitable[Any]:
        """Do what `execute_tool` does, on an event loop; for plugins that have both."""
        ...

    def stream_tool_async(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        cancellation: Any,
        context: Context,
        prepared: JsonObject,
    ) -> AsyncIterator[JsonObject]:
        """Do what `stream_tool` does, on an event loop; for plugins that have both."""
        ...

    def format_tool_result(self, result: JsonObject, *, state: State) -> Any:
        """Return a result as the model should read it: text or a structured result."""
        ...

    def to_display_format(self, text: str, *, result: JsonObject, state: State) -> JsonObject:
        """Return a result as a person should see it."""
        ...

    def format_tool_call_preview(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        prepared: JsonObject,
    ) -> str:
        """Return one line that tells a person what a call will do."""
        ...

    def format_tool_call_display(
        self,
        tool_name: str,
        arguments: Any,
        *,
        state: State,
        payload_kind: str,
        payload_format: str,
        payload_metadata: JsonObject,
        tool_call: JsonObject,
        context: Context,
        prepared: JsonObject,
    ) -> JsonObject | None:
        """Return what a person should see of a call before it runs, such as a diff, without any effect."""
        ...

    def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
        """Add the plugin's own formats of tool calls, schemas and results."""
        ...
