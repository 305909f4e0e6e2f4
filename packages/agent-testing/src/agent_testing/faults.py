"""Everything that goes wrong between a provider and its server, by name, and tests that try all of it."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from agent_core import AgentCore
from agent_provider_kit import (
    ApiKey,
    Dicts,
    Exchange,
    JsonObject,
    KeyRefused,
    LimitReached,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    SseDecoder,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
)
from agent_testing.replies import ServerReply, captive_portal, error_reply, redirect
from agent_testing.server import ScriptedServer
from agent_testing.talk import DRIVERS, PATIENCE, Talk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from agent_provider_kit import HttpProvider, HttpRequest, Reply
    from agent_testing.server import ReceivedRequest


_PATIENCE = 0.1  # seconds
_AT_A_TIME = 50


class Fault(NamedTuple):
    """One thing that goes wrong.

    Attributes:
        apply: Returns the reply with the fault in it.
        failure: What a provider has to raise.
        streams_only: Whether an answer in one piece cannot have it.
    """

    apply: Callable[[ServerReply], ServerReply]
    failure: type[ProviderFailure]
    streams_only: bool = False


def _status(status: int, code: str, retry_after: float | None = None) -> Callable[[ServerReply], ServerReply]:
    return lambda _reply: error_reply(status, f"this is a {status}", code=code, retry_after=retry_after)


FAULTS: dict[str, Fault] = {
    "reset before the reply": Fault(ServerReply.refuse, Unreachable),
    "cut in the middle": Fault(ServerReply.cut, StreamCutOff),
    "reset in the middle": Fault(ServerReply.reset, StreamCutOff),
    "ended in the middle": Fault(ServerReply.end, StreamCutOff, streams_only=True),
    "no end event": Fault(ServerReply.without_end, StreamCutOff, streams_only=True),
    "nothing at all": Fault(lambda _reply: ServerReply(stream=b""), StreamCutOff, streams_only=True),
    "half a JSON object": Fault(ServerReply.garbled, StreamMalformed),
    "401": Fault(_status(401, "invalid_api_key"), KeyRefused),
    "402": Fault(_status(402, "insufficient_quota"), LimitReached),
    "429": Fault(_status(429, "rate_limit_exceeded"), Overloaded),
    "429 with Retry-After": Fault(_status(429, "rate_limit_exceeded", 7.0), Overloaded),
    "500": Fault(_status(500, "server_error"), Overloaded),
    "502": Fault(_status(502, "bad_gateway"), Overloaded),
    "503": Fault(_status(503, "unavailable"), Overloaded),
    "504": Fault(_status(504, "timeout"), Overloaded),
    "529": Fault(_status(529, "overloaded_error"), Overloaded),
    "captive portal": Fault(lambda _reply: captive_portal(), NotTheProvider),
    "redirect": Fault(lambda _reply: redirect(), NotTheProvider),
}
"""Faults after which a request must not succeed. A stall is not among them: it ends when time or
patience does."""

ENDLESS: dict[str, Fault] = {
    "endless headers": Fault(ServerReply.drip_headers, Unreachable),
    "endless comments": Fault(lambda reply: reply.drip(b": ping\n\n"), StreamCutOff, streams_only=True),
    "endless empty events": Fault(lambda reply: reply.drip(b"data:\n\n"), StreamCutOff, streams_only=True),
    "endless nameless events": Fault(
        lambda reply: reply.drip(b"event: ping\n\n"), StreamCutOff, streams_only=True
    ),
    "endless blanks": Fault(lambda reply: reply.drip(b" ", 0), StreamCutOff),
    "endless blank lines": Fault(lambda reply: reply.drip(b"\r\n"), StreamCutOff),
    "one byte at a time": Fault(lambda reply: reply.drip(b"x", 7), StreamCutOff),
}
"""Servers that show again and again that they are there, and never send more of an answer. They end when
patience does: give a request a small `content_timeout`, and a small `first_byte_timeout` for the headers."""


class FaultTests:
    """Tests that every provider over HTTP has to pass, for its own tests to inherit.

    ::

        class TestFaults(FaultTests):
            provider = MyProvider
            config = {"model": "my-model", "api_key": "a secret key"}
            answers = {"text": my_reply("A drink."), "calls": my_reply(tool_calls=[ToolCall("brew", {})])}
            pings = {"a ping": sse_event({}, "ping")}

    Attributes:
        provider: The provider's class.
        config: Settings of the requests, a model and a key among them.
        path: What follows the server's address in `base_url`.
        answers: Good answers of every kind that the provider's API has. Each is cut in many places. The
            first one also has each fault put into it, so it should be a text of several words.
        pings: Events that bring nothing of an answer; a function makes one of a number that rises from 0.
    """

    provider: ClassVar[type[HttpProvider]]
    config: ClassVar[Mapping[str, Any]]
    path: ClassVar[str] = ""
    answers: ClassVar[Mapping[str, ServerReply]]
    pings: ClassVar[Mapping[str, bytes | Callable[[int], bytes]]] = {}

    def test_every_fault_becomes_the_failure_that_it_is(self) -> None:
        """By each of the four ways to send a request; and no error shows the key."""
        with ScriptedServer() as server:
            for name, fault in FAULTS.items():
                for drive in DRIVERS:
                    talk = Talk(server, self.provider(), path=self.path, **self.config)
                    talk.drive = drive
                    if talk.streams or not fault.streams_only:
                        self._check_fault(talk, name, fault)

    def test_a_server_that_sends_no_content_is_left(self) -> None:
        """Signs of life are not progress: a reply that brings nothing ends when patience does."""
        asked = [
            (f"{name}, by a {'stream' if streams else 'call'}", fault, streams)
            for name, fault in ENDLESS.items()
            for streams in ((True,) if fault.streams_only else (True, False))
        ]
        asked += [
            (name, Fault(partial(ServerReply.drip, filler=ping), StreamCutOff), True)
            for name, ping in self.pings.items()
        ]

        def reply(request: ReceivedRequest) -> ServerReply:
            return asked[_number_in(request.body)][1].apply(self._answer)

        async def ask_all(asking: _Asking) -> list[_Outcome]:
            # They all wait for the same patience to end, so they wait together.
            waiting = []
            for number, (_name, fault, streams) in enumerate(asked):
                patience = "first_byte_timeout" if fault.failure is Unreachable else "content_timeout"
                waiting.append(asking.ask(number, streams=streams, **{patience: _PATIENCE}))
            return await asyncio.gather(*waiting)

        with ScriptedServer(otherwise=reply) as server:
            outcomes = asyncio.run(ask_all(self._asking(self.provider(), f"{server.url}{self.path}")))
            server.wait_until_closed()
        for (name, fault, _streams), outcome in zip(asked, outcomes, strict=True):
            assert type(outcome.failure) is fault.failure, f"{name}: {outcome.failure!r}"

    def test_whatever_is_shown_is_progress(self) -> None:
        """And the end is progress too, so that what comes after it has its time."""
        for name, answer in self.answers.items():
            provider, reply = self._new_reply()
            for event in filter(None, map(provider.decode, SseDecoder().feed(answer.stream or b""))):
                before, ended = reply.progress, reply.ended()
                shown = reply.add(event)
                moved = any(map(_brings_content, shown)) or reply.ended() != ended
                assert reply.progress > before or not moved, f"{name}: {event!r} is not counted as progress"
            assert reply.ended(), f"{name}: the end was not noticed"

    def test_a_stream_that_ends_anywhere_is_whole_only_if_it_said_how(self) -> None:
        """What had arrived is kept: the text that was shown, and calls whose arguments were complete.

        It is cut at every seventh byte, and at every byte of its end.
        """
        for name, answer in self.answers.items():
            stream = answer.stream or b""
            [complete] = self._read(stream).messages
            end_at = answer.end_at or 0
            for position in sorted({*range(0, len(stream), 7), *range(max(0, end_at - 9), len(stream))}):
                where, outcome = f"{name}, cut after {position} bytes", self._read(stream[:position])
                whole = outcome.failure is None
                assert not whole or position > end_at, f"{where}: its end was not announced"
                for message in outcome.messages:
                    _check_kept(where, message, complete, outcome)

    def test_a_request_whose_stream_ends_early_fails_and_keeps_what_came(self) -> None:
        """Within and between all events, and over a real connection after some of them."""
        for name, answer in self.answers.items():
            stream = answer.stream or b""
            ends = _borders_in(stream)
            positions = sorted(
                {0, len(stream), *ends, *(end - 2 for end in ends), *(end - 9 for end in ends)}
            )
            transport = _CutTransport(stream)
            asking = self._asking(self.provider(partial(_itself, transport)))
            _check_cuts(name, asking.ask_at(positions), positions, answer.end_at or 0)

        answer, stream = self._answer, self._answer.stream or b""
        positions = [*_borders_in(stream)[:-1:2], len(stream)]

        def reply(request: ReceivedRequest) -> ServerReply:
            number = _number_in(request.body)
            breaks = (answer.cut, answer.end, answer.reset)
            return answer if number == len(stream) else breaks[number % 3](number)

        with ScriptedServer(otherwise=reply) as server:
            asking = self._asking(self.provider(), f"{server.url}{self.path}")
            _check_cuts("the first answer", asking.ask_at(positions), positions, answer.end_at or 0)

    def test_an_answer_in_one_piece_that_ends_early_is_a_failure(self) -> None:
        body = self._answer.body
        positions = [*range(0, len(body), 7), len(body) - 1, len(body)]
        asking = self._asking(self.provider(partial(_itself, _CutTransport(body))))
        *cut, whole = asking.ask_at(positions, streams=False)
        assert whole.failure is None, repr(whole.failure)
        for position, outcome in zip(positions, cut, strict=False):
            assert outcome.failure is not None, f"a success after {position} of {len(body)} bytes"

    def test_the_borders_between_reads_do_not_matter(self) -> None:
        with ScriptedServer() as server:
            asking = self._asking(self.provider(), f"{server.url}{self.path}")
            for name, answer in self.answers.items():
                server.play(answer, answer.in_pieces(1), answer.in_pieces(7))
                whole, *others = (asking.ask_at([0])[0] for _ in range(3))
                assert whole.failure is None, f"{name}: {whole.failure!r}"
                assert others == [whole, whole], f"{name} depends on how it is cut into reads"

    @property
    def _answer(self) -> ServerReply:
        return next(iter(self.answers.values()))

    def _new_reply(self) -> tuple[HttpProvider, Reply]:
        provider = self.provider()
        exchange = Exchange(provider.name, "stream_api", "http://here.invalid", ApiKey("", ""))
        return provider, provider.new_reply({}, exchange)

    def _read(self, stream: bytes) -> _Outcome:
        """Read a stream without a request around it, which takes a fraction of the time."""
        provider, reply = self._new_reply()
        decoder, shown = SseDecoder(), list[str]()
        failure: Exception | None = None
        try:
            for event in filter(None, map(provider.decode, (*decoder.feed(stream), *decoder.finish()))):
                shown += (partial["content"] for partial in reply.add(event))
        except (ValueError, ProviderFailure) as error:
            failure = error
        if not reply.ended():
            failure = failure or EOFError()
        read = getattr(provider, "from_native_messages", list)  # a hook that may be left out
        messages: Dicts = read(reply.items())
        return _Outcome(failure, messages, "".join(shown))

    def _asking(self, provider: HttpProvider, base_url: str = "http://cut.invalid") -> _Asking:
        address = {"provider": provider.name, "base_url": base_url, "connect_timeout": PATIENCE}
        return _Asking(provider, {**self.config, **address})

    def _check_fault(self, talk: Talk, name: str, fault: Fault) -> None:
        where = f"{name}, {talk.drive.__name__}"
        failure = _failure_of(talk.add("user", "Hi"), fault.apply(self._answer))
        assert type(failure) is fault.failure, f"{where}: {failure!r} is not a {fault.failure.__name__}"
        assert failure.next_step in str(failure), f"{where}: {failure} names no next step"
        assert failure.key_origin == "config['api_key']", f"{where}: {failure.key_origin}"
        assert failure.retry_after == (7.0 if "Retry-After" in name else None), where
        everything = f"{failure} {failure!r} {vars(failure)}"
        assert str(self.config["api_key"]) not in everything, f"{where}: the error shows the key"


class _Outcome(NamedTuple):
    """What a request came to: the messages that were kept, and the text that was shown before that."""

    failure: Exception | None
    messages: Dicts
    shown: str


class _Asking:
    """Sends many requests at a time, each of which has a number in its question."""

    def __init__(self, provider: HttpProvider, config: JsonObject) -> None:
        self._core = AgentCore()
        self._core.register_provider(provider)
        self._config = config

    def ask_at(self, numbers: Sequence[int], *, streams: bool = True) -> list[_Outcome]:
        async def ask_some() -> list[_Outcome]:
            outcomes: list[_Outcome] = []
            for start in range(0, len(numbers), _AT_A_TIME):
                some = numbers[start : start + _AT_A_TIME]
                outcomes += await asyncio.gather(*(self.ask(number, streams=streams) for number in some))
            return outcomes

        return asyncio.run(ask_some())

    async def ask(self, number: int, *, streams: bool, **settings: Any) -> _Outcome:
        session = self._core.add_message(self._core.create_session("asking"), "user", f"number {number}")
        config, shown = {**self._config, **settings}, list[str]()
        try:
            if not streams:
                return _Outcome(None, (await self._core.send_request_async(session, config))[1], "")
            async for event in self._core.send_request_stream_async(session, config):
                if event["type"] == "final":
                    return _Outcome(None, event["messages"], "".join(shown))
                shown.append(event["message"]["content"])
        except ProviderFailure as failure:
            return _Outcome(failure, (failure.partial or {"messages": []})["messages"], "".join(shown))
        raise AssertionError("the stream has no end, and nothing was raised")


class _CutTransport:
    """A transport, and the reply that it gives: one that ends after as many bytes as the question says."""

    status = 200
    headers: Mapping[str, str] = {"Content-Type": "text/event-stream"}

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def send(self, request: HttpRequest) -> _CutTransport:
        return _CutTransport(self._content[: _number_in(request.body or b"")])

    async def read(self, most: int | None = None) -> bytes:
        return self._content

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._content

    def moved_on(self) -> None:
        pass

    def close(self) -> None:
        pass


def _failure_of(talk: Talk, reply: ServerReply) -> ProviderFailure | None:
    try:
        talk.ask(reply)
    except ProviderFailure as failure:
        return failure
    return None


def _number_in(body: bytes) -> int:
    found = re.search(rb"number (\d+)", body)
    assert found is not None, body
    return int(found[1])


def _borders_in(stream: bytes) -> list[int]:
    return [found.end() for found in re.finditer(rb"\r?\n\r?\n", stream)]


def _itself(transport: _CutTransport) -> _CutTransport:
    return transport


def _check_cuts(name: str, outcomes: list[_Outcome], positions: Sequence[int], end_at: int) -> None:
    """Check the outcomes of one answer that ends at ever later positions, whole at last."""
    whole = outcomes[-1]
    assert whole.failure is None, f"{name}: {whole.failure!r}"
    [complete] = whole.messages
    assert complete["metadata"].get("ending"), f"{name}: the message has no metadata['ending']"
    for position, outcome in zip(positions[:-1], outcomes, strict=False):
        where = f"{name}, cut after {position} bytes"
        if outcome.failure is None:
            assert position > end_at, f"{where}: a success, though the end was not announced"
        else:
            broken = isinstance(outcome.failure, StreamCutOff | StreamMalformed)
            assert broken, f"{where}: {outcome.failure!r}"
        assert outcome.messages or not outcome.shown, f"{where}: {outcome.shown!r} was shown and not kept"
        for message in outcome.messages:
            interrupted = "interrupted" in message["metadata"]
            assert interrupted is (outcome.failure is not None), f"{where}: {message}"
            _check_kept(where, message, complete, outcome)


def _check_kept(where: str, message: JsonObject, complete: JsonObject, outcome: _Outcome) -> None:
    about, expected = message["metadata"], complete["metadata"]
    assert complete["content"].startswith(message["content"]), f"{where}: {message['content']!r}"
    assert message["content"] == outcome.shown, f"{where}: kept {message['content']!r}, not {outcome.shown!r}"
    calls = about.get("tool_calls") or []
    assert calls == (expected.get("tool_calls") or [])[: len(calls)], f"{where}: {calls}"
    cut_off = {call["id"] for call in about.get("incomplete_tool_calls") or []}
    assert not cut_off & {call["id"] for call in calls}, f"{where}: {cut_off} is complete and cut off"
    if outcome.failure is None:  # some servers send the token counts behind the end
        lost = "usage" in expected and "usage" not in about
        assert about.get("usage_missing") or not lost, f"{where}: nobody says that the counts are missing"
        known, whole = ({"usage": expected.get("usage"), **each} for each in (about, expected))
        assert {**known, "usage_missing": None} == {**whole, "usage_missing": None}, where


def _brings_content(partial: Mapping[str, Any]) -> bool:
    """Say whether a partial message has more of the answer: a call's name alone, or a status, is none."""
    call = partial.get("tool_call") or {}
    said = [partial.get(field) for field in ("content", "reasoning", "refusal", "audio")]
    return any((*said, call.get("arguments"), call.get("input")))
