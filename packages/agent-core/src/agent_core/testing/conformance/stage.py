"""A request that is prepared up to the point where a hook can be called by hand."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from agent_core.actions import RESPONSE_FINALIZE, Action
from agent_core.context import build_context
from agent_core.drivers import EventStream, call
from agent_core.errors import PluginError
from agent_core.frozen import FrozenDict, FrozenList, freeze, thaw
from agent_core.interop import ToolInteropRegistry
from agent_core.messages import Message
from agent_core.plugin.hooks import calling
from agent_core.plugin.provider import BoundProvider, ProviderWrapper
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, Work, ask
from agent_core.testing.conformance.case import session_of
from agent_core.testing.conformance.report import NotApplicable
from agent_core.testing.conformance.samples import ANSWER, conversation, descriptors
from agent_core.testing.conformance.shapes import shape_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_core.session import Session
    from agent_core.testing.conformance.case import Case, Exchange

Dicts = list[dict[str, Any]]
REQUEST_ID = "conformance"


@contextmanager
def staged(case: Case) -> Iterator[Stage]:
    """Prepare a request, in an exchange if the author gave one."""
    with ExitStack() as stack:
        try:
            exchange = stack.enter_context(case.answered())
        except NotApplicable:
            exchange = None
        yield Stage(case, exchange)


class Stage:
    """The plugin, its provider, and the values that its hooks are lent."""

    def __init__(self, case: Case, exchange: Exchange | None) -> None:
        self.case = case
        self.wrapper: Any = case.wrapper
        self.is_answered = exchange is not None
        asked = () if exchange is None else exchange.messages
        self.messages = [*conversation(), *(Message.from_dict(message).to_dict() for message in asked)]
        self.request_config = case.request_config(exchange)
        self.config = {**self.request_config, "tools": []}
        self.core = case.core()
        self.provider: Any = (
            case.wrapper if case.kind == "provider" else ProviderWrapper(case.make_provider())
        )

    def state(self) -> Any:
        """Return the state of a new request."""
        config, context = freeze(self.config), self.context()
        if self.case.kind in ("provider", "tool"):
            return self.wrapper.init(config, context)
        return self.wrapper.init(config, self.provider.init(config, context), context)

    def native(self, messages: Dicts | None = None) -> Dicts:
        """Return messages in the provider's form, by default the whole conversation."""
        messages = self.messages if messages is None else messages
        native: Dicts = thaw(self.provider.to_native(freeze(messages), self.state(), self.context()))
        return native

    def session(self) -> Session:
        """Return the conversation as a session."""
        return session_of(self.core, self.messages)

    def context(self) -> FrozenDict:
        """Return what plugins are told about the request."""
        tools = FrozenList(descriptors())
        kinds = ("provider", "extension", "feature", "tool")
        plugins = {f"{kind}s": [self.case.name] if kind == self.case.kind else [] for kind in kinds}
        return build_context(
            {
                "core": self.core,
                "config": freeze(self.config),
                "trigger_source": "core",
                "provider": self.provider.name,
                "enabled_plugin_ids": freeze(plugins),
                "disabled_plugins": FrozenList(),
                "force_enabled_plugins": FrozenList(),
                "tags": FrozenList(),
                "models": freeze(self.models()),
                "available_tools": tools,
                "tools": tools,
                "session": self.session().frozen_dict(),
                "request_id": REQUEST_ID,
                "stream": False,
            }
        )

    def models(self) -> Dicts:
        """Return a model or two, the configured one among them."""
        wanted = self.config.get("model") or "small"
        return [{"id": wanted, "name": "Wanted"}, {"id": "conformance-large", "name": "Large"}]

    def opened(self) -> tuple[FrozenList, dict[str, Any]]:
        """Return native messages and state right before the model is asked."""
        native, state = freeze(self.native()), self.state()
        opened: tuple[FrozenList, dict[str, Any]] = self.provider.initialize_request(
            native, state, self.context()
        )
        return opened

    def chunks(self, native: FrozenList, state: dict[str, Any]) -> Iterator[Any]:
        """Ask the model and yield raw chunks."""
        with calling(self.provider.name, "stream_api"):
            yield from EventStream(_chunks(self.provider.stream_work(native, state, REQUEST_ID)))

    def process(
        self, chunk: Any, native: FrozenList, state: dict[str, Any]
    ) -> tuple[Dicts, Dicts, FrozenList, dict[str, Any]]:
        """Let the provider take a chunk."""
        with calling(self.provider.name, "process_chunk"):
            answer = self.provider.hook("process_chunk")(chunk, native, state)
        problem = shape_problem("process_chunk", answer)
        if problem is not None:
            raise PluginError(self.provider.name, "process_chunk", problem)
        partials, finals, native, state = answer
        return partials, finals, native, state

    def turn(self) -> tuple[FrozenList, dict[str, Any]]:
        """Ask the model and return native messages and state as `finalize` gets them."""
        native, state = self.opened()
        if not self.provider.can_stream:
            with calling(self.provider.name, "call_api"):
                answer = call(ask(Run(self.provider.call_work(native, state, REQUEST_ID))))
            _partials, _finals, native, state = self.provider.read_answer(answer, native)
            return native, state
        for chunk in self.chunks(native, state):
            _partials, _finals, native, state = self.process(chunk, native, state)
        return native, state

    def actions(self) -> list[Action]:
        """Return the actions that the plugin offers."""
        offered: list[Action] = self.wrapper.get_actions(self.state(), self.context())
        return offered

    def lend(self, hook: str) -> dict[str, Any]:
        """Return a value for each documented argument of *hook*, plain and made for this call."""
        [spec] = [spec for spec in self.wrapper.hooks if spec.name == hook]
        lent = {name: _VALUES[name](self) for name in spec.arguments}
        if hook == "get_models":
            lent["context"] = None  # models are asked for before there is a request
        if hook == "finalize" and self.case.kind == "provider":
            native, lent["state"] = self.turn()
            lent["native_messages"] = thaw(native)
        elif hook == "finalize":
            lent["native_messages"] += thaw(lent["final_messages"])
        return lent

    def lend_action(self, action: Action, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with which *action* is run."""
        session, native, context = self.session(), self.native(), self.context()
        bound = BoundProvider(self.provider, (self.wrapper,) if self.case.kind == "extension" else ())
        features = FrozenList([self.wrapper] if self.case.kind == "feature" else [])
        told = {
            **{key: context[key] for key in ("core", "config", "trigger_source", "session")},
            "lifecycle": action.triggers[0] if action.triggers else None,
            "request_context": context,
            "request_runtime": FrozenDict(provider=bound, features=features),
        }
        if action.matches(RESPONSE_FINALIZE):
            told |= {"final_messages": freeze([ANSWER]), "native_messages": freeze(native), "stream": False}
            told |= {
                "native_final_messages": freeze(native[-1:]),
                "turn_native_start_index": len(native) - 1,
            }
        return {
            "action_id": action.id,
            "session": session,
            "native_messages": native,
            "params": params,
            "context": build_context(told),
            "state": self.state(),
        }

    def interop(self) -> ToolInteropRegistry:
        """Return the formats of tool calls, with those that the plugin adds."""
        registry = ToolInteropRegistry.default().copy()
        if self.wrapper.has("register_tool_formats"):
            with calling(self.case.name, "register_tool_formats"):
                self.wrapper.hook("register_tool_formats")(registry)
        return registry


def _chunks(work: Work[Any]) -> Flow[None]:
    reader = yield from ask(OpenStream(work))
    while (batch := (yield from ask(Read(reader)))) is not None:
        yield Emit(batch)
    yield CloseStream(reader)


_VALUES: dict[str, Callable[[Stage], Any]] = {
    "config": lambda stage: thaw(stage.config),
    "context": lambda stage: stage.context(),
    "messages": lambda stage: thaw(stage.messages),
    "native_messages": lambda stage: stage.native(),
    "state": lambda stage: stage.state(),
    "models": lambda stage: stage.models(),
    "tags": lambda stage: thaw(stage.wrapper.required_tags()),
    "final_messages": lambda stage: stage.native([ANSWER]),
    "tools": lambda _stage: descriptors(),
    "text": lambda _stage: "What is te",
    "completion": lambda _stage: {"replacement": "tea", "start": -2, "display": "tea"},
    "registry": lambda _stage: ToolInteropRegistry.default().copy(),
}
