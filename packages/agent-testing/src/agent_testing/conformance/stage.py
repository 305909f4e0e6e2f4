"""A request prepared up to the point where a hook can be called by hand, and what hooks must answer.

What each hook must answer is what its contract in `agent_core.types` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from agent_core.actions import RESPONSE_FINALIZE, Action
from agent_core.context import build_context
from agent_core.drivers import EventStream, call
from agent_core.errors import PluginError
from agent_core.frozen import FrozenDict, FrozenList, freeze, thaw
from agent_core.interop import ToolInteropRegistry
from agent_core.messages import Message
from agent_core.models import ToolDescriptor
from agent_core.plugin.hooks import calling
from agent_core.plugin.provider import BoundProvider, ProviderWrapper
from agent_core.resolve.lookup import with_defaults
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, Work, ask
from agent_testing.conformance.case import ANSWER, NotApplicable, conversation, descriptors, session_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.session import Session
    from agent_provider_kit import Dicts, JsonObject
    from agent_testing.conformance.case import Case, Exchange

_LONGEST = 80
Fits = Callable[[object], bool]
REQUEST_ID = "conformance"


def difference(one: object, other: object, path: str) -> str | None:
    """Return the first place where *one* and *other* differ and what stands there, or None."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}, key=str):
            if key not in one or key not in other:
                has, lacks = (one, "second") if key in one else (other, "first")
                return f"{path}.{key} is {shown(has[key])}, and not there in the {lacks}"
            if (differs := difference(one[key], other[key], f"{path}.{key}")) is not None:
                return differs
        return None
    if isinstance(one, list) and isinstance(other, list):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            if (differs := difference(left, right, f"{path}[{index}]")) is not None:
                return differs
        return None if len(one) == len(other) else f"{path} has {len(one)} items, and then {len(other)}"
    return None if one == other else f"{path} is {shown(one)}, and then {shown(other)}"


def shown(value: object) -> str:
    """Return a value as it is written in a problem, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _dicts(answer: object) -> TypeGuard[Dicts]:
    return isinstance(answer, list) and all(isinstance(item, dict) for item in answer)


def _strings(answer: object) -> bool:
    return isinstance(answer, (list, tuple, set, frozenset)) and all(isinstance(i, str) for i in answer)


def _dict(answer: object) -> bool:
    return isinstance(answer, dict)


def _models(answer: object) -> bool:
    return _dicts(answer) and all(isinstance(model.get("id"), str) and model["id"] for model in answer)


def _descriptors(answer: object) -> bool:
    return isinstance(answer, (list, tuple)) and all(isinstance(item, ToolDescriptor) for item in answer)


def _settings(answer: object) -> bool:
    return isinstance(answer, Mapping) and all(isinstance(value, Mapping) for value in answer.values())


def _parts(*parts: Fits) -> Fits:
    def fits(answer: object) -> bool:
        if not isinstance(answer, tuple) or len(answer) != len(parts):
            return False
        return all(part(item) for part, item in zip(parts, answer, strict=True))

    return fits


def _action_result(answer: object) -> bool:
    if not isinstance(answer, dict):
        return False
    lists = (answer.get(key) for key in ("native_messages", "final_messages"))
    dicts = (answer.get(key) for key in ("session_metadata", "error"))
    return all(v is None or _dicts(v) for v in lists) and all(v is None or _dict(v) for v in dicts)


SHAPES: Mapping[str, tuple[Fits, str]] = {
    "get_config_schema": (_settings, "a dict with a dict for each key"),
    "get_ui_elements": (_dicts, "a list of dicts"),
    "get_tags": (_strings, "a list of strings"),
    "required_tags": (_strings, "a list of strings"),
    "forbidden_tags": (_strings, "a list of strings"),
    "is_enabled": (lambda answer: answer is None or isinstance(answer, bool), "True, False or None"),
    "init": (_dict, "the state, a dict"),
    "get_models": (_models, "a list of dicts, each with an id"),
    "to_native_messages": (_dicts, "a list of dicts"),
    "from_native_messages": (_dicts, "a list of dicts"),
    "initialize_request": (_parts(_dicts, _dict), "(native_messages, state)"),
    "process_chunk": (_parts(_dicts, _dicts, _dicts, _dict), "(partials, finals, native_messages, state)"),
    "finalize": (_parts(_dicts, _dicts, _dict), "(final_messages, native_messages, state)"),
    "get_actions": (_dicts, "a list of dicts"),
    "execute_action": (_action_result, "a dict, with lists of messages and a session_metadata dict"),
    "prepare_tools": (_descriptors, "a list of ToolDescriptor"),
    "get_template": (lambda answer: isinstance(answer, str), "a string"),
    "get_completions": (_dicts, "a list of dicts"),
    "apply_completion": (lambda answer: isinstance(answer, str), "a string"),
    "get_tool_schemas": (_dicts, "a list of dicts"),
    "register_tool_formats": (lambda _answer: True, "nothing"),
}


def shape_problem(hook: str, answer: object) -> str | None:
    """Return what is wrong with the kind of *answer*, or None."""
    fits, expected = SHAPES[hook]
    return None if fits(answer) else f"must return {expected}, returned {shown(answer)}"


def public_part(answer: Any) -> Any:
    """Return what of an answer leaves the request: all but the state, descriptors as dicts."""
    if isinstance(answer, tuple):
        return list(answer[:-1])
    if _descriptors(answer):
        return [[tool.name, tool.schema, tool.metadata, tool.prepared] for tool in answer]
    return answer


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
        usual, _ = with_defaults(freeze(self.request_config), [case.wrapper])
        self.config = {**thaw(usual), "tools": []}
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
        native: Dicts = thaw(self.provider.to_native_messages(freeze(messages), self.state(), self.context()))
        return native

    def session(self) -> Session:
        """Return the conversation as a session."""
        return session_of(self.core, self.messages)

    def context(self) -> FrozenDict:
        """Return what plugins know about the request."""
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

    def opened(self) -> tuple[FrozenList, JsonObject]:
        """Return native messages and state right before the model is asked."""
        native, state = freeze(self.native()), self.state()
        opened: tuple[FrozenList, JsonObject] = self.provider.initialize_request(
            native, state, self.context()
        )
        return opened

    def chunks(self, native: FrozenList, state: JsonObject) -> Iterator[Any]:
        """Ask the model and yield raw chunks."""
        with calling(self.provider.name, "stream_api"):
            yield from EventStream(
                _chunks(self.provider.api_work("stream_api", native, state, REQUEST_ID, {}))
            )

    def process(
        self, chunk: Any, native: FrozenList, state: JsonObject
    ) -> tuple[Dicts, Dicts, FrozenList, JsonObject]:
        """Let the provider take a chunk."""
        with calling(self.provider.name, "process_chunk"):
            answer = self.provider.hook("process_chunk")(chunk, native, state)
        problem = shape_problem("process_chunk", answer)
        if problem is not None:
            raise PluginError(self.provider.name, "process_chunk", problem)
        partials, finals, native, state = answer
        return partials, finals, native, state

    def turn(self) -> tuple[FrozenList, JsonObject]:
        """Ask the model and return native messages and state as `finalize` gets them."""
        native, state = self.opened()
        if not self.provider.can_stream:
            with calling(self.provider.name, "call_api"):
                answer = call(ask(Run(self.provider.api_work("call_api", native, state, REQUEST_ID, {}))))
            _partials, _finals, native, state = self.provider.read_answer(answer, native)
            return native, state
        for chunk in self.chunks(native, state):
            _partials, _finals, native, state = self.process(chunk, native, state)
        return native, state

    def actions(self) -> list[Action]:
        """Return the actions that the plugin offers."""
        offered: list[Action] = self.wrapper.get_actions(self.state(), self.context())
        return offered

    def lend(self, hook: str) -> JsonObject:
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

    def lend_action(self, action: Action, params: JsonObject) -> JsonObject:
        """Return the arguments with which *action* is run."""
        session, native, context = self.session(), self.native(), self.context()
        bound = BoundProvider(self.provider, (self.wrapper,) if self.case.kind == "extension" else ())
        features = FrozenList([self.wrapper] if self.case.kind == "feature" else [])
        known = {
            **{key: context[key] for key in ("core", "config", "trigger_source", "session")},
            "lifecycle": action.triggers[0] if action.triggers else None,
            "request_context": context,
            "request_runtime": FrozenDict(provider=bound, features=features),
        }
        if action.matches(RESPONSE_FINALIZE):
            known |= {"final_messages": freeze([ANSWER]), "native_messages": freeze(native), "stream": False}
            known |= {
                "native_final_messages": freeze(native[-1:]),
                "turn_native_start_index": len(native) - 1,
            }
        return {
            "action_id": action.id,
            "session": session,
            "native_messages": native,
            "params": params,
            "context": build_context(known),
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
