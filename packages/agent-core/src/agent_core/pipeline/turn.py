"""One question to the model, from start to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core.cancellation import check_token, on_cancel
from agent_core.errors import AgentError, PluginError, ProviderError, RequestCancelled
from agent_core.frozen import FrozenList
from agent_core.log import get_logger
from agent_core.pipeline.finish import TurnResult, finish
from agent_core.pipeline.prepare import Draft, prepare
from agent_core.plugin.hooks import expect, expect_dicts, expect_tuple, frozen_dicts, name_error
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, Work, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from agent_core.cancellation import CancellationToken
    from agent_core.pipeline.request import Request
    from agent_core.plugin.provider import ProviderWrapper

_log = get_logger("pipeline")
_core_log = get_logger("core")
_chunk_log = get_logger("chunk_processing")
_SHOWN = 1000  # characters of a conversation in a line of the log
_ANSWER, _KINDS = "(partials, final_messages, native_messages, state)", (list, list, list, dict)
Hook = Callable[..., Any]
Extenders = tuple[tuple[str, Hook], ...]


def request_turn(request: Request) -> Flow[TurnResult]:
    """Ask the model once and return the session with its answer."""
    watch = CancelWatch(request)
    try:
        ask_model = read_stream if reads_stream(request) else call_api
        draft = prepare(request)
        _log_question(request, draft)
        draft = yield from ask_model(request, draft, watch)
    finally:
        watch.stop()
    result = yield from finish(request, draft)
    _log_answer(request, result)
    if not request.stream:
        return result
    try:
        yield Emit([result.event()])
    except RequestCancelled:  # at the last event: all is done, and a loop around us must still stop
        return replace(result, left=True)
    return result


# What was said is only in lines of level debug: a log of level info is kept, and sent to others.


def _log_question(request: Request, draft: Draft) -> None:
    if _core_log.is_enabled("debug"):
        event = "start streaming request" if request.stream else "sending request"
        asked = {"native_messages": _clip(draft.native), "request": str(draft.state.get("request"))[:_SHOWN]}
        _core_log.debug(event, **asked)


def _log_answer(request: Request, result: TurnResult) -> None:
    if request.stream:
        if _core_log.is_enabled("debug"):
            _core_log.debug("streaming request complete", final_message=_clip(result.messages))
    elif _core_log.is_enabled("info"):
        provider, model = request.resolution.provider.name, request.resolution.model
        _core_log.info("send_request_complete", provider=provider, model=model, messages=len(result.messages))


def _clip(items: Sequence[object]) -> str:
    """Return the last items as text, without wording a long conversation whole."""
    text = ""
    for item in reversed(items):
        text = f"{item!r} {text}"
        if len(text) > _SHOWN:
            break
    return text[-_SHOWN:].rstrip()


def _logging_chunks(process: Hook, extensions: Extenders) -> tuple[Hook, Extenders]:
    """Return the hooks of the hot path with the last of them writing down what a chunk came to."""
    if not extensions:
        return _logged(process), ()
    *others, (name, last) = extensions
    return process, (*others, (name, _logged(last)))


def _logged(hook: Hook) -> Hook:
    def logged(*given: object) -> Any:
        answer = hook(*given)
        if isinstance(answer, tuple) and len(answer) == len(_KINDS):
            partials, finals, _native, _state = answer
            for message in partials or ():
                _chunk_log.debug("partial message received", partial=message)
            if finals:
                _chunk_log.debug("final message received", final=finals)
        return answer

    return logged


class CancelWatch:
    """Passes a cancellation on to the provider, and remembers that it came."""

    def __init__(self, request: Request) -> None:
        self.cancelled = False
        self._request = request
        self._token: CancellationToken | None = request.cancellation
        if self._token is not None:
            check_token(self._token)
            self._forget = on_cancel(self._token, self._cancel)

    @property
    def for_reader(self) -> CancellationToken | None:
        """The token, if the provider has no way of its own to stop a read that hangs."""
        knows_how = self._request.resolution.provider.provider.has("cancel_request")
        return None if knows_how else self._token

    def check(self) -> None:
        """Leave if the caller has cancelled."""
        if self.cancelled:
            raise RequestCancelled

    def stop(self) -> None:
        """Forget the callback, whatever happened."""
        if self._token is not None:
            self._forget()

    def _cancel(self) -> None:
        self.cancelled = True
        provider, request_id = self._request.resolution.provider.provider, self._request.request_id
        if request_id is None:
            return
        try:
            provider.cancel_request(request_id)
        except PluginError as error:  # not the fault of whoever cancels; the request still ends
            _log.warning("cancel_request_failed", plugin=provider.name, error=str(error))


def reads_stream(request: Request) -> bool:
    """Say whether the answer comes in chunks: if that is wanted, or if there is no other way."""
    provider = request.resolution.provider.provider
    return provider.can_stream and (request.stream or not provider.can_call)


def call_api(request: Request, draft: Draft, watch: CancelWatch) -> Flow[Draft]:
    """Ask for the answer in one piece."""
    provider = request.resolution.provider.provider
    hook = _api_hook(provider, "call_api")
    try:
        watch.check()
        work = provider.api_work(
            "call_api", draft.native, draft.state, request.request_id, draft.before.seal.memory
        )
        answer = yield from _call(work, watch)
    except RequestCancelled:
        return replace(draft, interrupted="cancelled")
    except Exception as error:
        if watch.cancelled:
            return replace(draft, interrupted="cancelled")
        raise _named(provider.name, hook, error, ProviderError) from error
    partials, finals, native, state = expect_tuple(provider.name, hook, answer, _KINDS, _ANSWER)
    native = draft.ledger.take_native(provider.name, hook, draft.native, native)
    draft = _progress(draft, (provider.name, hook), finals, native, state, None)
    try:
        if request.stream and partials:
            yield Emit([{"type": "partial", "message": message} for message in partials])
        watch.check()
    except RequestCancelled:
        return replace(draft, interrupted="cancelled")
    return draft


def _call(work: Work[Any], watch: CancelWatch) -> Flow[Any]:
    """Wait for an answer; one that can only be given up from outside is waited for as a stream of one."""
    if watch.for_reader is None:
        return (yield from ask(Run(work)))
    blocking, awaitable = work

    async def once() -> AsyncIterator[Any]:
        assert awaitable is not None
        yield await awaitable()

    single: Work[Any] = Work(
        blocking=None if blocking is None else lambda: (blocking(),),
        awaitable=None if awaitable is None else once,
    )
    reader = yield from ask(OpenStream(single, cancellation=watch.for_reader))
    answers = yield from ask(Read(reader))
    yield CloseStream(reader)
    return answers[0] if answers else None


def read_stream(request: Request, draft: Draft, watch: CancelWatch) -> Flow[Draft]:  # noqa: C901, PLR0912 - hot path
    """Ask for the answer in chunks and let provider and extensions look at each.

    Features have no part in this: it is the hot path, written out in one loop for that reason.
    """
    provider = request.resolution.provider
    hot = provider.chunk_hooks()
    if _chunk_log.is_enabled("debug"):
        hot = _logging_chunks(*hot)
    process, extensions = _checking(provider.name, *hot)
    ledger = draft.ledger
    native: Any = draft.native
    kept = draft.native
    state = draft.state
    collected: list[Any] = []
    show = request.stream
    name = who = provider.name
    hook = "stream_api"
    asked = (name, "process_chunk")
    try:
        watch.check()
        work = provider.provider.api_work(
            "stream_api", native, state, request.request_id, draft.before.seal.memory
        )
        reader = yield from ask(OpenStream(work, cancellation=watch.for_reader))
        # A caller that cancels at an event wants none that comes later: it is not even waited for.
        read = Read(reader, watch.check)
        while (batch := (yield read)) is not None:
            events = []
            hook = "process_chunk"
            for chunk in batch:
                partials, finals, native, state = process(chunk, native, state)
                if native is not kept:
                    native = kept = ledger.take_native(name, hook, kept, native)
                for who, extend in extensions:
                    given = finals
                    partials, finals, native, state = extend(chunk, partials, finals, native, state)
                    if native is not kept:
                        native = kept = ledger.take_adjusted(who, hook, kept, native, given)
                    if finals is not given:
                        finals = ledger.take_finals(who, hook, given, finals)
                who = name
                if finals:
                    collected += finals
                if show:
                    for message in partials:
                        events.append({"type": "partial", "message": message})  # noqa: PERF401 - mostly one
                process, extensions = hot  # who answered well once is trusted from then on
            hook = "stream_api"
            read.events = events
        yield CloseStream(reader)
        watch.check()
    except RequestCancelled:
        return _progress(draft, asked, collected, native, state, "cancelled")
    except Exception as error:
        stopped = _progress(draft, asked, collected, native, state, "cancelled")
        if watch.cancelled and hook == "stream_api":
            return stopped
        failure = _stream_failure(provider.provider, who, hook, error)
        yield from _keep_partial(request, replace(stopped, interrupted="error"), failure)
        raise failure from error
    return _progress(draft, asked, collected, native, state, None)


def _progress(
    draft: Draft, asked: tuple[str, str], finals: list[Any], native: Any, state: Any, interrupted: str | None
) -> Draft:
    """Check and freeze what *asked*, a plugin's hook, has brought and was trusted with until now."""
    expect(*asked, state, dict, "the state, a dict")
    frozen = FrozenList(frozen_dicts(*asked, finals))
    if native.__class__ is not FrozenList:  # the ledger makes it one, so nobody has looked at this yet
        native = FrozenList(frozen_dicts(*asked, native))
    return draft.after(frozen, native, state, interrupted)


def _stream_failure(provider: ProviderWrapper, who: str, hook: str, error: Exception) -> AgentError:
    if hook == "stream_api":
        return _named(who, _api_hook(provider, hook), error, ProviderError)
    trace = error.__traceback__
    if isinstance(error, (TypeError, ValueError)) and trace is not None and trace.tb_next is None:
        # Raised in our own frame: what the hook returned could not be taken apart.
        return PluginError(who, hook, f"must return {_ANSWER}: {error}")
    return _named(who, hook, error, PluginError)


def _keep_partial(request: Request, draft: Draft, failure: AgentError) -> Flow[None]:
    """Attach what the turn had brought before it failed."""
    try:
        result = yield from finish(request, draft)
    except AgentError as error:
        failure.partial = error.partial
        return
    if result.messages:
        failure.partial = dict(result.event())


def _checking(provider: str, process: Hook, extensions: Extenders) -> tuple[Hook, Extenders]:
    """Return the hooks of the hot path with a close look at what they answer."""
    return _checked(provider, process), tuple((name, _checked(name, hook)) for name, hook in extensions)


def _checked(plugin: str, hook: Hook) -> Hook:
    def checked(*given: object) -> Any:
        answer = expect_tuple(plugin, "process_chunk", hook(*given), _KINDS, _ANSWER)
        _partials, finals, native, _state = answer
        expect_dicts(plugin, "process_chunk", finals)
        if native is not given[-2]:
            expect_dicts(plugin, "process_chunk", native)
        return answer

    return checked


def _api_hook(provider: ProviderWrapper, hook: str) -> str:
    """Return the hook's name, or that of its async twin if the provider has only that."""
    return hook if provider.has(hook) else f"{hook}_async"


def _named(who: str, hook: str, error: Exception, kind: type[PluginError]) -> AgentError:
    return error if isinstance(error, AgentError) else name_error(who, hook, error, kind)
