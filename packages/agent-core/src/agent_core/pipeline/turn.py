"""One question to the model, from start to end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError, ArgumentTypeError, PluginError, ProviderError, RequestCancelled
from agent_core.frozen import FrozenList, freeze
from agent_core.pipeline.finish import TurnResult, finish
from agent_core.pipeline.prepare import Draft, prepare
from agent_core.plugin.hooks import expect, expect_dicts, name_error, wrong_answer
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, ask

if TYPE_CHECKING:
    from agent_core.cancellation import CancellationToken
    from agent_core.pipeline.request import Request


def request_turn(request: Request) -> Flow[TurnResult]:
    """Ask the model once and return the session with its answer."""
    watch = CancelWatch(request)
    try:
        draft = yield from ask_model(request, prepare(request), watch)
    finally:
        watch.stop()
    result = yield from finish(request, draft)
    yield Emit([result.event()])
    return result


class CancelWatch:
    """Passes a cancellation on to the provider, and remembers that it came."""

    def __init__(self, request: Request) -> None:
        self.cancelled = False
        self._request = request
        self._token: CancellationToken | None = request.cancellation
        if self._token is not None:
            if not hasattr(self._token, "add_callback"):
                raise ArgumentTypeError("cancellation must have add_callback and remove_callback")
            self._key = self._token.add_callback(self._cancel)

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
            self._token.remove_callback(self._key)

    def _cancel(self) -> None:
        self.cancelled = True
        if self._request.request_id is not None:
            self._request.resolution.provider.provider.cancel_request(self._request.request_id)


def ask_model(request: Request, draft: Draft, watch: CancelWatch) -> Flow[Draft]:
    """Send the question and collect the answer, in chunks if wanted or if there is no other way."""
    provider = request.resolution.provider.provider
    if provider.can_stream and (request.stream or not provider.can_call):
        return (yield from read_stream(request, draft, watch))
    return (yield from call_api(request, draft, watch))


def call_api(request: Request, draft: Draft, watch: CancelWatch) -> Flow[Draft]:
    """Ask for the answer in one piece."""
    provider = request.resolution.provider.provider
    try:
        watch.check()
        work = provider.call_work(draft.native, draft.state, request.request_id)
        answer = yield from ask(Run(work))
    except RequestCancelled:
        return replace(draft, interrupted="cancelled")
    except Exception as error:
        if watch.cancelled:
            return replace(draft, interrupted="cancelled")
        raise _named(provider.name, "call_api", error, ProviderError) from error
    partials, finals, native, state = provider.read_answer(answer, draft.native)
    if request.stream and partials:
        yield Emit([{"type": "partial", "message": message} for message in partials])
    return replace(draft, finals=finals, native=native, state=state)


def read_stream(request: Request, draft: Draft, watch: CancelWatch) -> Flow[Draft]:
    """Ask for the answer in chunks and let provider and extensions look at each.

    Features have no part in this: it is the hot path, written out in one loop for that reason.
    """
    provider = request.resolution.provider
    process, extensions = provider.chunk_hooks()
    native: Any = draft.native
    state = draft.state
    collected: list[Any] = []
    show = request.stream
    who, hook = provider.name, "stream_api"
    try:
        watch.check()
        work = provider.provider.stream_work(native, state, request.request_id)
        reader = yield from ask(OpenStream(work, cancellation=watch.for_reader))
        read = Read(reader)
        while (batch := (yield read)) is not None:
            events = []
            hook = "process_chunk"
            for chunk in batch:
                partials, finals, native, state = process(chunk, native, state)
                for who, extend in extensions:  # noqa: B007 - names the culprit if it raises
                    partials, finals, native, state = extend(chunk, partials, finals, native, state)
                who = provider.name
                if finals:
                    collected += finals
                if show:
                    events += [{"type": "partial", "message": message} for message in partials]
            hook = "stream_api"
            if events:
                yield Emit(events)
            watch.check()
        yield CloseStream(reader)
    except RequestCancelled:
        return _progress(draft, provider.name, collected, native, state, "cancelled")
    except Exception as error:
        stopped = _progress(draft, provider.name, collected, native, state, "cancelled")
        if watch.cancelled and hook == "stream_api":
            return stopped
        failure = _stream_failure(who, hook, error)
        yield from _keep_partial(request, replace(stopped, interrupted="error"), failure)
        raise failure from error
    return _progress(draft, provider.name, collected, native, state, None)


def _progress(
    draft: Draft, provider: str, finals: list[Any], native: Any, state: Any, interrupted: str | None
) -> Draft:
    """Check and freeze what the hot path took on trust."""
    expect(provider, "process_chunk", state, dict, "the state, a dict")
    frozen = FrozenList(map(freeze, expect_dicts(provider, "process_chunk", finals)))
    if native is not draft.native:
        native = FrozenList(map(freeze, expect_dicts(provider, "process_chunk", native)))
    return replace(draft, finals=frozen, native=native, state=state, interrupted=interrupted)


def _stream_failure(who: str, hook: str, error: Exception) -> AgentError:
    if hook == "stream_api":
        return _named(who, hook, error, ProviderError)
    trace = error.__traceback__
    if isinstance(error, (TypeError, ValueError)) and trace is not None and trace.tb_next is None:
        # Raised in our own frame: what the hook returned could not be taken apart.
        return wrong_answer(who, hook, "(partials, final_messages, native_messages, state)", None)
    return _named(who, hook, error, PluginError)


def _keep_partial(request: Request, draft: Draft, failure: AgentError) -> Flow[None]:
    """Attach what the turn had brought before it failed."""
    try:
        result = yield from finish(request, draft)
    except AgentError:
        return  # not even that can be kept; the failure itself is what counts
    if result.messages:
        failure.partial = dict(result.event())


def _named(who: str, hook: str, error: Exception, kind: type[PluginError]) -> AgentError:
    return error if isinstance(error, AgentError) else name_error(who, hook, error, kind)
