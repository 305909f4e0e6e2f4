"""Checks of whole requests: converting messages, sending them through a core, leaving early."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.errors import AgentError
from agent_core.frozen import freeze, thaw
from agent_core.interop import ToolInteropRegistry
from agent_core.interop.parts import read_part
from agent_testing.conformance.case import PARTS, Fault, Faults, NotApplicable, conversation, session_of
from agent_testing.conformance.hooks import IN_REQUESTS, trust
from agent_testing.conformance.stage import difference, shape_problem, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from agent_core.core import AgentCore
    from agent_core.session import Session
    from agent_provider_kit import Dicts, JsonObject
    from agent_testing.conformance.case import Case, Exchange
    from agent_testing.conformance.stage import Stage

T = TypeVar("T")


def a_round_trip_keeps_messages(case: Case) -> Faults:
    """To native and back, every role keeps its content, its tool calls and the call that it answers."""
    trust(case, "init", "to_native_messages", "from_native_messages")
    with staged(case) as stage:
        messages = conversation()
        came_back = _round_trip(stage, messages)
        if len(came_back) != len(messages):
            problem = f"makes {len(came_back)} messages of {len(messages)} that went to native"
            yield Fault("from_native_messages", problem)
            return
        for sent, got in zip(messages, came_back, strict=True):
            differs = difference(_essence(stage, sent), _essence(stage, got), sent["role"])
            if differs is not None:
                yield Fault("from_native_messages", f"does not bring back what went to native: {differs}")


def a_round_trip_keeps_parts(case: Case) -> Faults:
    """A message with an image keeps it, if the provider takes such messages at all."""
    trust(case, "init", "to_native_messages", "from_native_messages")
    with staged(case) as stage:
        try:
            came_back = _round_trip(stage, [PARTS])
        except AgentError as error:
            raise NotApplicable(f"the plugin does not take messages of several parts: {error}") from error
    parts = [message["multipartContent"] for message in came_back if message.get("multipartContent")]
    if not parts:
        raise NotApplicable("the plugin does not bring back parts of messages")
    sent, got = ([read_part(part) for part in each] for each in (PARTS["multipartContent"], parts[0]))
    differs = difference(
        sent, got, "multipartContent"
    )  # by what they mean: each provider has a form of its own
    if differs is not None:
        yield Fault("from_native_messages", f"does not bring back what went to native: {differs}")


def one_message_converts_as_in_a_batch(case: Case) -> Faults:
    """Messages converted one by one come to the same as all at once: sessions grow one by one."""
    case.require("to_native_messages")
    trust(case, "init", "to_native_messages")
    with staged(case) as stage:
        batch = _to_native(stage, conversation())
        alone = [item for message in conversation() for item in _to_native(stage, [message])]
    differs = difference(batch, alone, "native_messages")
    if differs is not None:
        yield Fault(
            "to_native_messages", f"converts messages one by one differently than all at once: {differs}"
        )


def _round_trip(stage: Stage, messages: Dicts) -> Dicts:
    native = freeze(stage.native(messages))
    came_back: Dicts = thaw(stage.provider.from_native_messages(native, stage.state(), stage.context()))
    return came_back


def _to_native(stage: Stage, messages: Dicts) -> Dicts:
    native = stage.native(messages)
    if stage.case.kind != "provider":
        arguments = (freeze(messages), freeze(native), stage.state(), stage.context())
        native = thaw(stage.wrapper.to_native_messages(*arguments))
    return native


def _essence(stage: Stage, message: JsonObject) -> JsonObject:
    """Return what of a message must survive: calls are compared by what they mean."""
    metadata = message.get("metadata") or {}
    interop = stage.interop() if stage.case.kind == "provider" else ToolInteropRegistry.default()
    calls = [interop.inspect_call(call) for call in metadata.get("tool_calls") or ()]
    return {
        "role": message.get("role"),
        "content": message.get("content"),
        "tool_calls": [[call.call_id, call.tool_name, call.payload] for call in calls],
        "tool_call_id": metadata.get("tool_call_id"),
    }


class Asked:
    """A core, a question, and the four ways to ask it."""

    def __init__(self, case: Case, exchange: Exchange) -> None:
        self.core: AgentCore = case.core()
        self.session: Session = session_of(self.core, exchange.messages)
        self.config = case.request_config(exchange)

    def send_request(self) -> Session:
        """Ask by a call."""
        return self.core.send_request(self.session, self.config)[0]

    def send_request_stream(self) -> Session:
        """Ask by a stream."""
        *_, final = self.core.send_request_stream(self.session, self.config)
        return _session_in(final)

    def send_request_async(self) -> Session:
        """Ask by an async call."""
        return run_async(lambda: self.core.send_request_async(self.session, self.config))[0]

    def send_request_stream_async(self) -> Session:
        """Ask by an async stream."""

        async def last() -> Any:
            *_, final = [e async for e in self.core.send_request_stream_async(self.session, self.config)]
            return final

        return _session_in(run_async(last))


_WAYS: tuple[Callable[[Asked], Session], ...] = (
    Asked.send_request_stream,
    Asked.send_request,
    Asked.send_request_stream_async,
    Asked.send_request_async,
)


def calls_streams_and_async_twins_agree(case: Case) -> Faults:
    """A stream, a call and their async forms come to the same session."""
    trust(case, *IN_REQUESTS)
    expected: JsonObject | None = None
    for way in _WAYS:
        with case.answered() as exchange:
            asked = Asked(case, exchange)
            try:
                session = way(asked)
            except AgentError as error:
                yield _failed(way.__name__, error)
                continue
        if len(session.messages) == len(asked.session.messages):
            yield Fault(_hook_behind(case, way.__name__), f"{way.__name__} brings no message")
            continue
        differs = None if expected is None else difference(expected, session.to_dict(), "session")
        expected = session.to_dict() if expected is None else expected
        if differs is not None:
            yield Fault(
                _hook_behind(case, way.__name__), f"{way.__name__} comes to another session: {differs}"
            )


def an_empty_answer_is_finalized(case: Case) -> Faults:
    """A turn that is cut short before its first chunk can be finalized, and a chunk may bring nothing."""
    case.require("finalize", "process_chunk")
    trust(case, *IN_REQUESTS)
    with staged(case) as stage:
        native, state = stage.opened()
        if case.wrapper.has("finalize"):
            finals = () if case.kind == "provider" else (freeze([]),)
            yield from _empty_faults(stage, "finalize", (*finals, native, state, stage.context()))
        if case.kind == "extension" and case.wrapper.has("process_chunk") and stage.is_answered:
            native, state = stage.opened()
            for chunk in list(stage.chunks(native, state)):
                yield from _empty_faults(stage, "process_chunk", (chunk, [], [], native, state))


def closing_early_keeps_a_partial(case: Case) -> Faults:
    """Leaving a stream keeps what was said, and the plugin serves the next request as ever."""
    alone = _lone(case)
    for leave in (_leave, _leave_async):
        with case.answered() as exchange:
            asked = Asked(case, exchange)
            try:
                result = leave(asked)
                afterwards = asked.send_request_stream().to_dict()
            except AgentError as error:
                yield _failed("a stream that is closed early, or the next one,", error)
                continue
        if result is None or not result.interrupted or not result.messages:
            yield Fault("finalize", "keeps nothing of a stream that is closed after its first words")
        differs = difference(alone, afterwards, "session")
        if differs is not None:
            hook = _hook_behind(case, "send_request_stream")
            yield Fault(hook, f"answers differently after a stream was closed early: {differs}")


def interleaved_requests_stay_apart(case: Case) -> Faults:
    """Two streams that are read in turns each come to what one alone comes to."""
    alone = _lone(case)
    with case.answered() as exchange:
        asked = Asked(case, exchange)
        streams = [asked.core.send_request_stream(asked.session, asked.config) for _ in range(2)]
        try:
            finals = _read_in_turns(streams)
        except AgentError as error:
            yield _failed("one of two interleaved streams", error)
            return
    for final in finals:
        differs = difference(alone, _session_in(final).to_dict(), "session")
        if differs is not None:
            hook = _hook_behind(case, "send_request_stream")
            yield Fault(hook, f"two streams at once get into each other's way: {differs}")
            return


def cancelling_an_unknown_request_is_harmless(case: Case) -> Faults:
    """A request may be over, or not begun, when somebody cancels it."""
    case.require("cancel_request")
    tried = case.try_hook("cancel_request", "conformance-no-such-request")
    if tried.error is not None:
        yield Fault("cancel_request", f"is called for an unknown request and {tried}")


def _leave(asked: Asked) -> Any:
    with asked.core.send_request_stream(asked.session, asked.config) as stream:
        for event in stream:
            if _says_something(event):
                break
        else:
            raise NotApplicable("the answer has no partial after which to leave")
    return stream.result


def _leave_async(asked: Asked) -> Any:
    async def leave() -> Any:
        async with asked.core.send_request_stream_async(asked.session, asked.config) as stream:
            async for event in stream:
                if _says_something(event):
                    break
        return stream.result

    return run_async(leave)


def _says_something(event: JsonObject) -> bool:
    return event["type"] == "partial" and bool(event["message"].get("content"))


def _read_in_turns(streams: list[Any]) -> list[Any]:
    """Advance the streams one event at a time and return the last event of each."""
    finals: list[Any] = [None] * len(streams)
    reading = dict(enumerate(streams))
    while reading:
        for index, stream in list(reading.items()):
            event = next(stream, None)
            if event is None:
                del reading[index]
            else:
                finals[index] = event
    return finals


def _lone(case: Case) -> JsonObject:
    """Return what a stream comes to that nothing disturbs.

    Raises:
        NotApplicable: If there is none; another check says why.
    """
    trust(case, *IN_REQUESTS)
    if case.kind == "provider" and not getattr(case.wrapper, "can_stream", False):
        raise NotApplicable("the provider does not stream")
    with case.answered() as exchange:
        try:
            return Asked(case, exchange).send_request_stream().to_dict()
        except AgentError as error:
            raise NotApplicable(f"requests must be fixed first: {error}") from error


def _empty_faults(stage: Stage, hook: str, given: tuple[Any, ...]) -> Faults:
    tried = stage.case.try_hook(hook, *given)
    problem = shape_problem(hook, tried.answer) if tried.error is None else str(tried)
    if problem is not None:
        yield Fault(hook, f"cannot do with an empty answer: it {problem}")


def _failed(way: str, error: AgentError) -> Fault:
    hook, problem = getattr(error, "hook", way), getattr(error, "problem", str(error))
    return Fault(hook, f"{way} fails: {problem}")


def _hook_behind(case: Case, way: str) -> str:
    """Return the hook that is most likely to blame when one way of asking goes wrong."""
    if case.kind != "provider":
        return "process_chunk" if case.wrapper.has("process_chunk") else "finalize"
    sync, twin = ("stream_api", "stream_api_async")
    if "stream" not in way and getattr(case.wrapper, "can_call", False):
        sync, twin = ("call_api", "call_api_async")
    names = (twin, sync) if way.endswith("async") else (sync, twin)
    return next((name for name in names if case.wrapper.has(name)), "call_api")


def _session_in(final: JsonObject) -> Session:
    session: Session = final["session"]
    return session


def run_async(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on an event loop of its own; the caller may have one already, so in another thread."""
    with ThreadPoolExecutor(1, "conformance-loop") as pool:
        return pool.submit(lambda: asyncio.run(start())).result()
