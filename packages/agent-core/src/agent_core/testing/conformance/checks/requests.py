"""Checks of whole requests, sent through a core."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.errors import AgentError
from agent_core.frozen import freeze
from agent_core.testing.conformance.case import session_of
from agent_core.testing.conformance.difference import difference
from agent_core.testing.conformance.examine import IN_REQUESTS
from agent_core.testing.conformance.report import Fault, Faults, NotApplicable
from agent_core.testing.conformance.shapes import shape_problem
from agent_core.testing.conformance.stage import staged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_core.core import AgentCore
    from agent_core.session import Session
    from agent_core.testing.conformance.case import Case, Exchange
    from agent_core.testing.conformance.stage import Stage

T = TypeVar("T")


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
    """A stream, a call and their async twins come to the same session."""
    case.trust(*IN_REQUESTS)
    expected: dict[str, Any] | None = None
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
        told = None if expected is None else difference(expected, session.to_dict(), "session")
        expected = session.to_dict() if expected is None else expected
        if told is not None:
            yield Fault(_hook_behind(case, way.__name__), f"{way.__name__} comes to another session: {told}")


def an_empty_answer_is_finalized(case: Case) -> Faults:
    """A turn that is cut short before its first chunk can be finalized, and a chunk may bring nothing."""
    case.require("finalize", "process_chunk")
    case.trust(*IN_REQUESTS)
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
        told = difference(alone, afterwards, "session")
        if told is not None:
            hook = _hook_behind(case, "send_request_stream")
            yield Fault(hook, f"answers differently after a stream was closed early: {told}")


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
        told = difference(alone, _session_in(final).to_dict(), "session")
        if told is not None:
            hook = _hook_behind(case, "send_request_stream")
            yield Fault(hook, f"two streams at once get into each other's way: {told}")
            return


def cancelling_an_unknown_request_is_harmless(case: Case) -> Faults:
    """A request may be over, or not begun, when somebody cancels it."""
    case.require("cancel_request")
    hook = case.wrapper.hook("cancel_request")
    assert hook is not None
    try:
        hook("conformance-no-such-request")
    except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
        yield Fault("cancel_request", f"raised {type(error).__name__} for an unknown request: {error}")


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


def _says_something(event: dict[str, Any]) -> bool:
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


def _lone(case: Case) -> dict[str, Any]:
    """Return what a stream comes to that nothing disturbs.

    Raises:
        NotApplicable: If there is none; another check tells why.
    """
    case.trust(*IN_REQUESTS)
    if case.kind == "provider" and not getattr(case.wrapper, "can_stream", False):
        raise NotApplicable("the provider does not stream")
    with case.answered() as exchange:
        try:
            return Asked(case, exchange).send_request_stream().to_dict()
        except AgentError as error:
            raise NotApplicable(f"requests have to be mended first: {error}") from error


def _empty_faults(stage: Stage, hook: str, given: tuple[Any, ...]) -> Faults:
    try:
        problem = shape_problem(hook, stage.wrapper.hook(hook)(*given))
    except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
        problem = f"raised {type(error).__name__}: {error}"
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


def _session_in(final: Any) -> Session:
    session: Session = final["session"]
    return session


def run_async(start: Callable[[], Awaitable[T]]) -> T:
    """Run on an event loop of its own; the caller may have one already, so in another thread."""
    import asyncio

    async def run() -> T:
        return await start()

    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(run()))
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            outcome.append(error)

    thread = threading.Thread(target=work, name="conformance-loop")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    result: T = outcome[0]
    return result
