"""A provider as the pipeline sees it, alone and together with its extensions."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar

from agent_core.drivers import call
from agent_core.errors import ProviderError, RegistrationError
from agent_core.frozen import Dicts, FrozenDict, FrozenList, JsonObject, State, freeze
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper
from agent_core.plugin.feature import ExtensionWrapper
from agent_core.plugin.hooks import Adapter, HookSpec, calling, expect, expect_strings, expect_tuple
from agent_core.steps import CloseStream, OpenStream, Read, Run, Work, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.steps import Flow, Reader

API_HOOKS = ("call_api", "stream_api", "call_api_async", "stream_api_async")

ApiAnswer = tuple[list[Any], FrozenList, FrozenList, State]


class ProviderWrapper(PluginWrapper):
    """A plugin that talks to a model."""

    kind = "provider"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *COMMON_HOOKS,
        HookSpec("init", ("config", "context"), 1),
        HookSpec("get_models", ("config", "context"), 1),
        HookSpec("initialize_request", ("native_messages", "state", "context"), 2),
        HookSpec("to_native_messages", ("messages", "state", "context"), 1),
        HookSpec("from_native_messages", ("native_messages", "state", "context"), 1),
        *(HookSpec(name, ("native_messages", "state", "request_id", "memory"), 2) for name in API_HOOKS),
        HookSpec("process_chunk", ("chunk", "native_messages", "state"), 3),
        HookSpec("finalize", ("native_messages", "state", "context"), 2),
        HookSpec("cancel_request", ("request_id",), 1),
        HookSpec("repair_native", ("native_messages", "context", "memory"), 1),
        HookSpec("register_tool_formats", ("registry",), 1),
    )

    def __init__(self, plugin: object, extensions: Sequence[object] = ()) -> None:
        super().__init__(plugin)
        self.extensions = tuple(ExtensionWrapper(extension) for extension in extensions)
        self.accepts_unlisted_models = getattr(self.plugin, "accepts_unlisted_models", False) is True
        self.one_item_per_message = getattr(self.plugin, "one_item_per_message", False) is True
        self.tool_schema_formats = _read_formats(self.name, self.plugin)
        if not any(self.has(name) for name in API_HOOKS):
            raise RegistrationError(self.name, f"a provider needs one of {', '.join(API_HOOKS)}")
        if self.can_stream and not self.has("process_chunk"):
            raise RegistrationError(self.name, "a provider that streams needs process_chunk")

    def with_extension(self, extension: ExtensionWrapper) -> ProviderWrapper:
        """Return the provider with one more extension."""
        provider = copy(self)
        provider.extensions = (*self.extensions, extension)
        return provider

    @property
    def can_stream(self) -> bool:
        """True if it sends its answer in chunks."""
        return self.has("stream_api") or self.has("stream_api_async")

    @property
    def can_call(self) -> bool:
        """True if it can give its answer in one piece."""
        return self.has("call_api") or self.has("call_api_async")

    def init(self, config: FrozenDict, context: object = None) -> JsonObject:
        """Return the state of a new request."""
        own = self.own_config(config)
        return self._state("init", {"config": own}, own, context)

    def get_models(self, config: FrozenDict, context: object = None) -> Dicts:
        """Return the models that the provider offers; it may ask its server."""
        return self._dicts("get_models", self.own_config(config), context)

    def initialize_request(
        self, native: FrozenList, state: State, context: object = None
    ) -> tuple[FrozenList, State]:
        """Let the provider prepare a new request."""
        return self._native_and_state("initialize_request", native, state, context)

    def to_native_messages(self, messages: FrozenList, state: State, context: object) -> FrozenList:
        """Return messages in the provider's own form; one without that hook takes them as they are."""
        if not self.has("to_native_messages"):
            return FrozenList([_without_core_fields(message) for message in messages])
        answer = self._call("to_native_messages", None, messages, state, context)
        return self._native("to_native_messages", answer, FrozenList())

    def to_native_one_by_one(
        self, messages: FrozenList, state: State, context: object
    ) -> list[Sequence[object]]:
        """Return what the provider makes of each message alone; not frozen, since it is only compared."""
        if not self.has("to_native_messages"):
            return [[_without_core_fields(message)] for message in messages]
        hook = "to_native_messages"
        alone = [self._call(hook, None, FrozenList([message]), state, context) for message in messages]
        return [expect(self.name, hook, answer, list, "a list of dicts") for answer in alone]

    def from_native_messages(self, native: FrozenList, state: State, context: object) -> FrozenList:
        """Return readable messages made of the provider's own."""
        answer = self._call("from_native_messages", native, native, state, context)
        return self._native("from_native_messages", answer, FrozenList())

    def finalize(
        self, native: FrozenList, state: State, context: object
    ) -> tuple[FrozenList, FrozenList, State]:
        """Return the finals that are still due, all native messages, and the state."""
        answer = self._call("finalize", ([], native, state), native, state, context)
        expected = "(final_messages, native_messages, state)"
        finals, items, state = expect_tuple(self.name, "finalize", answer, (list, list, dict), expected)
        frozen = self._native("finalize", finals, FrozenList())
        if frozen and items[: len(native)] == native and _are_same(items[len(native) :], finals):
            return frozen, FrozenList([*native, *frozen]), state  # as nearly all providers have it
        return frozen, self._native("finalize", items, native), state

    def repair_native(
        self, native: FrozenList, context: object, memory: State
    ) -> tuple[FrozenList, list[str]]:
        """Return native messages that the provider's server accepts, and a line for each change."""
        if not self.has("repair_native"):
            return native, []
        answer = self._call("repair_native", None, native, context, memory)
        expected = "(native_messages, report)"
        items, report = expect_tuple(self.name, "repair_native", answer, (list, list), expected)
        lines = expect_strings(self.name, "repair_native", report)
        return (self._native("repair_native", items, native), lines) if lines else (native, [])

    def cancel_request(self, request_id: str) -> None:
        """Tell the provider to stop working on a request."""
        self._call("cancel_request", None, request_id)

    def api_work(self, hook: str, *given: object) -> Work[Any]:
        """Return the question to the model, which `call_api` or `stream_api` asks, with what they take."""
        blocking, awaitable = self.hook(hook), self.hook(f"{hook}_async")
        return Work(
            blocking=None if blocking is None else partial(blocking, *given),
            awaitable=None if awaitable is None else partial(awaitable, *given),
        )

    def read_answer(self, answer: object, native: FrozenList) -> ApiAnswer:
        """Check what `call_api` returned."""
        expected = "(partials, final_messages, native_messages, state)"
        partials, finals, items, state = expect_tuple(
            self.name, "call_api", answer, (list, list, list, dict), expected
        )
        finals = self._native("call_api", finals, FrozenList())
        return partials, finals, self._native("call_api", items, native), state


@dataclass(frozen=True, slots=True)
class BoundProvider:
    """A provider with the extensions that are on for one request.

    This is what plugins find as ``request_runtime["provider"]``.
    """

    provider: ProviderWrapper
    extensions: tuple[ExtensionWrapper, ...] = ()

    @property
    def name(self) -> str:
        return self.provider.name

    def init(self, config: FrozenDict, context: object = None) -> JsonObject:
        """Return the state of a new request, made by the provider and then by each extension."""
        state = self.provider.init(config, context)
        for extension in self.extensions:
            state = extension.init(config, state, context)
        return state

    def to_native_messages(self, messages: Dicts, state: State, context: object = None) -> FrozenList:
        """Return messages in native form: the provider's, adjusted by each extension."""
        lent = freeze(messages)
        native = self.provider.to_native_messages(lent, state, context)
        for extension in self.extensions:
            native = extension.to_native_messages(lent, native, state, context)
        return native

    def from_native_messages(
        self, native_messages: Dicts, state: State, context: object = None
    ) -> FrozenList:
        """Return readable messages: the provider's, adjusted by each extension."""
        native = freeze(native_messages)
        messages = self.provider.from_native_messages(native, state, context)
        for extension in self.extensions:
            messages = extension.from_native_messages(native, messages, state, context)
        return messages

    def initialize_request(
        self, native_messages: Dicts, state: State, context: object = None
    ) -> tuple[FrozenList, State]:
        """Prepare a new request: the provider first, then each extension."""
        native, state = self.provider.initialize_request(freeze(native_messages), state, context)
        for extension in self.extensions:
            native, state = extension.initialize_request(native, state, context)
        return native, state

    def call_api(self, native_messages: Dicts, state: State, request_id: str | None = None) -> ApiAnswer:
        """Ask the model and wait for its answer, whichever of the four API hooks the provider has.

        Returns:
            The partial messages, the native messages of the answer, all native messages, and the state.

        Raises:
            ProviderError: If the provider failed.
        """
        return call(self._ask(freeze(native_messages), state, request_id))

    def finalize(
        self, native_messages: Dicts, state: State, context: object = None
    ) -> tuple[FrozenList, FrozenList, State]:
        """Return the provider's last finals, all native messages and the state, as extensions leave them."""
        finals, native, state = self.provider.finalize(freeze(native_messages), state, context)
        for extension in self.extensions:
            finals, native, state = extension.finalize(finals, native, state, context)
        return finals, native, state

    def _ask(self, native: FrozenList, state: State, request_id: str | None) -> Flow[ApiAnswer]:
        provider = self.provider
        hook = "call_api" if provider.can_call else "stream_api"
        work = provider.api_work(hook, native, state, request_id, {})
        with calling(self.name, hook, ProviderError):
            if provider.can_call:
                return provider.read_answer((yield from ask(Run(work))), native)
            reader = yield from ask(OpenStream(work))
            return (yield from self._read_chunks(reader, native, state))

    def _read_chunks(self, reader: Reader, native: FrozenList, state: State) -> Flow[ApiAnswer]:
        process, extensions = self.chunk_hooks()
        said: list[Any] = []
        collected: list[Any] = []
        now: Any = native
        while (batch := (yield from ask(Read(reader)))) is not None:
            for chunk in batch:
                partials, finals, now, state = process(chunk, now, state)
                for _name, extend in extensions:
                    partials, finals, now, state = extend(chunk, partials, finals, now, state)
                said += partials
                collected += finals
        yield CloseStream(reader)
        return self.provider.read_answer((said, collected, now, state), native)

    def chunk_hooks(self) -> tuple[Adapter, tuple[tuple[str, Adapter], ...]]:
        """Return the hot path: the provider's `process_chunk` and those of the extensions."""
        first = self.provider.hook("process_chunk")
        assert first is not None
        found = ((extension.name, extension.hook("process_chunk")) for extension in self.extensions)
        return first, tuple((name, hook) for name, hook in found if hook is not None)


def _read_formats(name: str, plugin: object) -> tuple[str, ...]:
    formats = getattr(plugin, "tool_schema_formats", ())
    if not isinstance(formats, (list, tuple)) or not all(isinstance(item, str) for item in formats):
        raise RegistrationError(name, f"its tool_schema_formats must be a list of strings, not {formats!r}")
    return tuple(formats)


def _are_same(items: Sequence[object], others: Sequence[object]) -> bool:
    """Say whether two lists hold the very same objects."""
    return len(items) == len(others) and all(map(is_, items, others))


def _without_core_fields(message: FrozenDict) -> FrozenDict:
    return FrozenDict({key: value for key, value in message.items() if key != "metadata"})
