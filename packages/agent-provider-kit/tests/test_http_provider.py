"""What every provider over HTTP has from the kit, with a wire format of one word per event."""

from __future__ import annotations

import asyncio
import threading
import traceback
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
import pytest
from raw_server import RawServer

from agent_core import AgentCore, Cancellation, ConfigError, RequestCancelled, Session
from agent_provider_kit import (
    ApiKey,
    Exchange,
    HttpProvider,
    KeyMissing,
    NotTheProvider,
    Overloaded,
    ProviderFailure,
    ReplyTooLarge,
    SseEvent,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
    failure_in_reply,
    http_provider,
)
from agent_testing import (
    ENDLESS,
    FAULTS,
    ScriptedServer,
    ServerReply,
    captive_portal,
    chat_models,
    error_reply,
    json_reply,
    sse_event,
    sse_reply,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_provider_kit import Transport

Dicts = list[dict[str, Any]]


class WordReply:
    """Words, and an end."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.progress = 0
        self.words: list[str] = []
        self.end: str | None = None

    def add(self, event: dict[str, Any]) -> Dicts:
        if "error" in event:
            raise failure_in_reply(self.exchange, event["error"])
        self.end = event.get("end", self.end)
        self.progress += not event.keys().isdisjoint({"word", "end"})
        if "word" not in event:
            return []
        self.words.append(event["word"])
        return [{"role": "assistant", "content": event["word"]}]

    def take(self, body: dict[str, Any]) -> None:
        for word in body.get("words", []):
            self.add({"word": word})
        self.add({key: body[key] for key in ("end", "error") if key in body})

    def ended(self) -> bool:
        return self.end is not None

    def items(self) -> Dicts:
        return [{"role": "assistant", "content": " ".join(self.words)}] if self.words else []


class WordProvider(HttpProvider):
    name = "words"
    default_base_url = "http://words.invalid"
    key_variables = ("WORDS_API_KEY",)
    settings: ClassVar[dict[str, dict[str, Any]]] = {"language": {"type": "string"}}

    def endpoint(self, config: Mapping[str, Any], *, stream: bool) -> str:
        return "/stream" if stream else "/call"

    def auth_headers(self, config: Mapping[str, Any], key: ApiKey) -> dict[str, str]:
        return {"X-Api-Key": key.value}

    def request_body(self, native_messages: Dicts, state: dict[str, Any], *, stream: bool) -> dict[str, Any]:
        return {"messages": native_messages, "stream": stream, "tools": state["tools"]}

    def new_reply(self, state: dict[str, Any], exchange: Exchange) -> WordReply:
        return WordReply(exchange)

    def decode(self, event: SseEvent) -> Any:
        return orjson.loads(event.data) if event.data else None


def words(*said: str, end: str | None = "stop") -> ServerReply:
    told = b"".join(sse_event({"word": word}) for word in said)
    ending = {"end": end} if end else {}
    return ServerReply(
        body=orjson.dumps({"words": said, **ending}),
        stream=told + (sse_event({"end": end}) if end else b""),
        end_at=len(told),
    )


@pytest.fixture
def core() -> AgentCore:
    core = AgentCore()
    core.register_provider(WordProvider())
    return core


@pytest.fixture
def asked(core: AgentCore) -> Session:
    return core.add_message(core.create_session("s"), "user", "Say something")


@pytest.fixture
def config(scripted_server: ScriptedServer) -> dict[str, Any]:
    return {"provider": "words", "model": "m", "base_url": scripted_server.url, "api_key": "sk-very-secret"}


def stream(core: AgentCore, session: Session, config: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return list(core.send_request_stream(session, config, **options))


def said(events: list[dict[str, Any]]) -> list[str]:
    return [event["message"]["content"] for event in events if event["type"] == "partial"]


class TestAsking:
    def test_a_call_and_a_stream_say_the_same(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(words("one", "two"), words("one", "two"))

        called, messages = core.send_request(asked, config)
        events = stream(core, asked, config)

        assert said(events) == ["one", "two"]
        assert messages[0]["content"] == "one two"
        assert called == events[-1]["session"]
        assert [request.path for request in scripted_server.requests] == ["/call", "/stream"]

    def test_the_request_carries_body_key_and_headers(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(words("one"))
        own = {"extra_headers": {"X-Own": "1", "User-Agent": "mine"}, "extra_body": {"seed": 7, "stream": 0}}

        core.send_request(asked, {**config, **own})

        request = scripted_server.request
        assert request.json == {
            "messages": [{"role": "user", "content": "Say something"}],
            "stream": 0,
            "tools": [],
            "seed": 7,
        }
        expected = {"x-api-key": "sk-very-secret", "x-own": "1", "user-agent": "mine"}
        assert expected.items() <= request.headers.items()
        assert request.headers["content-type"] == "application/json"

    def test_a_header_of_ones_own_replaces_another_whatever_its_case(
        self, core: AgentCore, asked: Session, config: dict[str, Any], runner: asyncio.Runner
    ) -> None:
        own = {"X-API-Key": "mine", "user-agent": "me", "content-type": "application/json; charset=utf-8"}
        arrived: list[bytes] = []

        async def serve() -> None:
            body = words("one").body
            async with RawServer(
                [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)]
            ) as raw:
                settings = {**config, "base_url": raw.url, "extra_headers": own}
                await asyncio.to_thread(core.send_request, asked, settings)
                arrived.extend(raw.requests[0].lower().split(b"\r\n"))

        runner.run(serve())
        once = (b"x-api-key", b"user-agent", b"content-type")
        assert [line for line in arrived if line.startswith(once)] == [
            b"content-type: application/json; charset=utf-8",
            b"user-agent: me",
            b"x-api-key: mine",
        ]

    def test_without_a_key_no_header_carries_one(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(words("one"))

        core.send_request(asked, {**config, "api_key": ""})

        assert "x-api-key" not in scripted_server.request.headers
        assert scripted_server.request.headers["user-agent"] == f"keelwork/{HttpProvider.version}"

    def test_a_slash_at_the_end_of_the_address_does_no_harm(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(words("one"))

        core.send_request(asked, {**config, "base_url": f"{scripted_server.url}/v1/"})

        assert scripted_server.request.path == "/v1/call"

    @pytest.mark.parametrize("size", [1, 7, 4096])
    def test_it_does_not_matter_how_a_stream_is_cut_into_reads(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        size: int,
    ) -> None:
        scripted_server.play(words("one", "zwei", "três").in_pieces(size))

        assert said(stream(core, asked, config)) == ["one", "zwei", "três"]

    def test_what_arrives_is_shown_before_more_arrives(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        reply = words("one", "two")
        scripted_server.play(reply.stall((reply.stream or b"").index(b"\n\n") + 2))
        events = core.send_request_stream(asked, config)

        first = next(events)
        scripted_server.wait_until_stalled()
        scripted_server.release()

        assert said([first, *events]) == ["one", "two"]


class TestFailing:
    @pytest.mark.parametrize("streaming", [False, True], ids=["call", "stream"])
    @pytest.mark.parametrize("name", FAULTS)
    def test_every_fault_is_a_failure_of_its_kind(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        name: str,
        streaming: bool,
    ) -> None:
        fault = FAULTS[name]
        if fault.streams_only and not streaming:
            pytest.skip("only streams have it")
        scripted_server.play(fault.apply(words("one", "two", "three")))
        ask = partial(stream, core) if streaming else core.send_request

        with pytest.raises(ProviderFailure) as failed:
            ask(asked, config)

        assert type(failed.value) is fault.failure
        assert failed.value.hook == ("stream_api" if streaming else "call_api")
        assert scripted_server.url.removeprefix("http://") in str(failed.value)
        assert "sk-very-secret" not in f"{failed.value!r}{failed.value}"
        if "Retry-After" in name:
            assert failed.value.retry_after == 7.0

    def test_the_events_before_nonsense_are_kept(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(sse_reply({"word": "one"}, {"word": "two"}, '{"half": ', {"word": "three"}))

        with pytest.raises(StreamMalformed, match="an event that makes no sense") as failed:
            stream(core, asked, config)

        assert failed.value.partial is not None
        assert failed.value.partial["messages"][0]["content"] == "one two"
        assert failed.value.partial["interrupted"] is True

    def test_nonsense_after_the_end_does_no_harm(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(sse_reply({"word": "one"}, {"end": "stop"}, '{"half": '))

        assert said(stream(core, asked, config)) == ["one"]

    def test_a_connection_that_breaks_after_the_end_does_no_harm(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        told = (words("one").stream or b"") + b": and then\n\n"
        scripted_server.play(ServerReply(stream=told).cut(-4))

        assert said(stream(core, asked, config)) == ["one"]

    def test_an_error_in_the_middle_of_a_stream_keeps_what_came_before(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(sse_reply({"word": "one"}, {"error": {"message": "busy", "code": 503}}))

        with pytest.raises(Overloaded, match="busy") as failed:
            stream(core, asked, config)

        assert failed.value.partial is not None
        assert failed.value.partial["messages"][0]["content"] == "one"

    def test_an_error_that_is_no_event_is_understood(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        told = sse_event({"word": "one"}) + b'{"error": {"message": "busy", "code": 503}}\n'
        scripted_server.play(ServerReply(stream=told))

        with pytest.raises(Overloaded, match="busy"):
            stream(core, asked, config)

    def test_an_error_that_breaks_off_is_still_that_error(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(error_reply(503, "busy").cut(5))

        with pytest.raises(Overloaded, match="answered 503") as failed:
            core.send_request(asked, config)
        assert failed.value.request_id == "req_scripted"

    def test_text_in_place_of_events_is_quoted(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(ServerReply(stream=b"upstream connect error sk-very-secret"))

        with pytest.raises(StreamCutOff, match=r"upstream connect error \[secret\]"):
            stream(core, asked, config)

    def test_a_page_that_says_it_is_events_is_a_page(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(ServerReply(stream=captive_portal().body))

        with pytest.raises(NotTheProvider, match="sent a web page"):
            stream(core, asked, config)

    def test_a_page_leaves_no_connection_open(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(captive_portal().stall())

        with pytest.raises(NotTheProvider):
            core.send_request(asked, config)
        scripted_server.wait_until_hung_up()

    def test_an_event_without_end_is_malformed(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("agent_provider_kit.http_provider.SseDecoder", _small_decoder)
        scripted_server.play(ServerReply(stream=b"data: " + b"x" * 1000))

        with pytest.raises(StreamMalformed, match="larger than 100 bytes"):
            stream(core, asked, config)

    def test_patience_that_ends_is_a_failure_that_says_where(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        reply = words("one", "two")
        half = (reply.stream or b"").index(b"\n\n") + 2
        scripted_server.play(reply.never_begin(), reply.stall(half))

        with pytest.raises(Unreachable, match=r"no reply within 0\.05 seconds"):
            stream(core, asked, {**config, "first_byte_timeout": 0.05})
        with pytest.raises(StreamCutOff, match=r"nothing arrived for 0\.5 seconds") as failed:
            stream(core, asked, {**config, "idle_timeout": 0.5})
        assert failed.value.partial is not None
        assert failed.value.partial["messages"][0]["content"] == "one"

    @pytest.mark.parametrize("streaming", [False, True], ids=["call", "stream"])
    @pytest.mark.parametrize("name", ENDLESS)
    def test_signs_of_life_are_no_progress(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        name: str,
        streaming: bool,
    ) -> None:
        fault = ENDLESS[name]
        if fault.streams_only and not streaming:
            pytest.skip("only streams have it")
        patience = "first_byte_timeout" if fault.failure is Unreachable else "content_timeout"
        scripted_server.play(fault.apply(words("one", "two", "three")))
        ask = partial(stream, core) if streaming else core.send_request

        with pytest.raises(fault.failure) as failed:
            ask(asked, {**config, patience: 0.1})

        assert ("content_timeout" if fault.failure is StreamCutOff else "no reply within") in str(
            failed.value
        )
        scripted_server.wait_until_hung_up()

    def test_events_that_say_nothing_are_no_progress(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        reply = words("one", "two")
        scripted_server.play(reply.drip(lambda number: sse_event({"ping": number})))

        with pytest.raises(StreamCutOff, match="no content arrived"):
            stream(core, asked, {**config, "content_timeout": 0.1})
        scripted_server.wait_until_hung_up()

    @pytest.mark.parametrize(
        ("address", "advice"),
        [
            ("localhost:1/v1", "http://localhost:1/v1"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("api.openai.com/v1", "https://api.openai.com/v1"),
            ("htps://api.openai.com/v1", "https://api.openai.com/v1"),
            ("//api.openai.com/v1", "https://api.openai.com/v1"),
            ("http:/localhost:1/v1", "http://localhost:1/v1"),
        ],
    )
    def test_an_address_without_a_scheme_says_so(
        self, core: AgentCore, asked: Session, config: dict[str, Any], address: str, advice: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            core.send_request(asked, {**config, "base_url": address})

        assert caught.value.field == "base_url"
        assert str(caught.value) == (
            f"base_url {address!r} does not begin with http:// or https://: write {advice}"
        )

    def test_a_password_in_an_address_without_a_scheme_is_not_shown(
        self, core: AgentCore, asked: Session, config: dict[str, Any]
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            core.send_request(asked, {**config, "base_url": "me:word-word@x.test/v1"})

        assert "me:[secret]@x.test" in str(caught.value) and "word-word" not in str(caught.value)

    @pytest.mark.parametrize(
        ("settings", "field"),
        [
            ({"extra_headers": {"Cookie": ["tok-12345678"]}}, "extra_headers"),
            ({"extra_headers": {"Cookie": None}}, "extra_headers"),
            ({"extra_headers": {"Cookie": "tok-12345678\nx: y"}}, "extra_headers"),
            ({"extra_headers": {"Not: a name": "tok-12345678"}}, "extra_headers"),
            ({"extra_headers": {5: "tok-12345678"}}, "extra_headers"),
            ({"extra_headers": ["Cookie: tok-12345678"]}, "extra_headers"),
            ({"extra_query": "key=tok-12345678"}, "extra_query"),
            ({"extra_body": "tok-12345678"}, "extra_body"),
            ({"api_key": "tok-12345678\nmore"}, "api_key"),
            ({"api_key": "tok-12345678\udcff"}, "api_key"),
            ({"extra_headers": {"Cookie": "tok-12345678\udcff"}}, "extra_headers"),
        ],
    )
    def test_settings_that_cannot_be_sent_are_named_and_not_shown(
        self, core: AgentCore, asked: Session, config: dict[str, Any], settings: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            core.send_request(asked, {**config, **settings})

        assert caught.value.field == field and field in str(caught.value)
        assert "tok-12345678" not in "".join(traceback.format_exception(caught.value))

    def test_an_exchange_does_not_print_what_is_secret_in_it(self, exchange: Exchange) -> None:
        shown = repr(exchange._replace(url="https://me:word-word@x.test", other_secrets=("tok-12345",)))

        assert "x.test" in shown
        assert not any(secret in shown for secret in ("word-word", "tok-12345", "sk-very-secret"))

    def test_a_token_in_a_header_of_ones_own_is_masked(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(error_reply(400, "bad token tok-12345678"))
        headers = {"Authorization": "Bearer tok-12345678", "X-Plain": "bad"}

        with pytest.raises(ProviderFailure, match=r"bad token \[secret\]"):
            core.send_request(asked, {**config, "extra_headers": headers})


def _small_decoder() -> Any:
    from agent_provider_kit import SseDecoder

    return SseDecoder(largest=100)


class TestServersThatDoNotStream:
    @pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
    @pytest.mark.parametrize("pretty", [False, True])
    def test_an_answer_in_one_piece_is_taken(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        content_type: str,
        pretty: bool,
    ) -> None:
        body = orjson.dumps(
            {"words": ["one", "two"], "end": "stop"}, option=orjson.OPT_INDENT_2 if pretty else 0
        )
        scripted_server.play(ServerReply(body=body, content_type=content_type))

        assert stream(core, asked, config)[-1]["messages"][0]["content"] == "one two"

    def test_half_of_it_is_cut_off(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(ServerReply(body=b'{"words": ["one", '))

        with pytest.raises(StreamCutOff):
            stream(core, asked, config)

    @pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/octet-stream"])
    def test_events_under_a_wrong_label_are_events(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        content_type: str,
    ) -> None:
        scripted_server.play(words("one", "two").labelled(content_type))

        assert said(stream(core, asked, config)) == ["one", "two"]

    @pytest.mark.parametrize("body", [b"[]", b"7", b"", b"\xff"])
    def test_an_answer_that_is_no_object_is_malformed(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        body: bytes,
    ) -> None:
        scripted_server.play(ServerReply(body=body))

        with pytest.raises(StreamMalformed, match="not a JSON object"):
            core.send_request(asked, config)


STALLS = {
    "before the reply": lambda reply: reply.never_begin(),
    "in its middle": lambda reply: reply.stall((reply.stream or b"").index(b"\n\n") + 2),
}


class TestCancelling:
    @pytest.mark.parametrize("streaming", [False, True], ids=["call", "stream"])
    @pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
    def test_a_caller_that_waits_is_let_go_and_the_connection_closed(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        stall: Any,
        streaming: bool,
    ) -> None:
        scripted_server.play(stall(words("one", "two")))
        cancellation = Cancellation()
        outcome: list[Any] = []

        def ask() -> None:
            if streaming:
                outcome.append(stream(core, asked, config, cancellation=cancellation)[-1]["interrupted"])
            else:
                outcome.append(core.send_request(asked, config, cancellation=cancellation)[1])

        thread = threading.Thread(target=ask)
        thread.start()
        scripted_server.wait_until_stalled()
        cancellation.cancel()
        thread.join(60)

        scripted_server.wait_until_hung_up()
        assert outcome == [True if streaming else []]

    @pytest.mark.parametrize("streaming", [False, True], ids=["call", "stream"])
    @pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
    def test_a_caller_on_a_loop_is_let_go_and_the_connection_closed(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        stall: Any,
        streaming: bool,
        runner: asyncio.Runner,
    ) -> None:
        scripted_server.play(stall(words("one", "two")))
        cancellation = Cancellation()

        async def ask() -> Any:
            if streaming:
                events = core.send_request_stream_async(asked, config, cancellation=cancellation)
                return [event async for event in events][-1]["interrupted"]
            return (await core.send_request_async(asked, config, cancellation=cancellation))[1]

        async def ask_and_cancel() -> Any:
            task = asyncio.ensure_future(ask())
            await asyncio.to_thread(scripted_server.wait_until_stalled)
            cancellation.cancel()
            outcome = await task
            await asyncio.to_thread(scripted_server.wait_until_hung_up)
            return outcome

        assert runner.run(ask_and_cancel()) == (True if streaming else [])

    def test_what_had_arrived_is_kept(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        reply = words("one", "two")
        scripted_server.play(STALLS["in its middle"](reply))
        cancellation = Cancellation()
        events = core.send_request_stream(asked, config, cancellation=cancellation)

        assert said([next(events)]) == ["one"]
        cancellation.cancel()
        final = next(events)

        assert final["type"] == "final"
        assert final["messages"][0]["content"] == "one"
        assert final["messages"][0]["metadata"]["interrupted"] == "cancelled"

    def test_closing_a_stream_closes_its_connection(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(STALLS["in its middle"](words("one", "two")))
        events = core.send_request_stream(asked, config)
        next(events)

        events.close()

        scripted_server.wait_until_hung_up()

    def test_other_requests_go_on(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        stalled = STALLS["in its middle"](words("one", "two"))
        scripted_server.play(stalled, stalled)
        cancellation = Cancellation()
        cancelled = core.send_request_stream(asked, config, cancellation=cancellation)
        other = core.send_request_stream(asked, config, cancellation=Cancellation())
        next(cancelled), next(other)

        cancellation.cancel()
        list(cancelled)
        scripted_server.wait_until_hung_up()
        scripted_server.release()

        assert said(list(other)) == ["two"]

    def test_the_hook_itself_raises_the_signal(
        self, config: dict[str, Any], scripted_server: ScriptedServer, runner: asyncio.Runner
    ) -> None:
        scripted_server.play(words("one").never_begin())
        provider = WordProvider()

        async def ask() -> None:
            pieces = provider.stream_api_async([], provider.init(config), request_id="r1")
            async with aclosing(pieces) as batches:  # type: ignore[type-var]
                reading = asyncio.ensure_future(anext(batches))
                await asyncio.to_thread(scripted_server.wait_until_stalled)
                provider.cancel_request("r1")
                await reading

        with pytest.raises(RequestCancelled):
            runner.run(ask())

    def test_cancelling_an_unknown_request_does_nothing(self) -> None:
        WordProvider().cancel_request("never heard of")


class TestModels:
    def test_the_configured_model_is_offered_without_asking_anyone(self) -> None:
        assert WordProvider().get_models({"model": "m"}) == [{"id": "m"}]
        assert WordProvider().get_models({}) == []

    def test_a_server_is_asked_for_its_models(
        self, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(chat_models("a", "b"))

        models = WordProvider().get_models({**config, "discover_models": True})

        assert [model["id"] for model in models] == ["a", "b"]
        assert (scripted_server.request.method, scripted_server.request.path) == ("GET", "/models")
        assert scripted_server.request.headers["x-api-key"] == "sk-very-secret"

    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            (error_reply(500), Overloaded),
            (captive_portal(), NotTheProvider),
            (json_reply([]), StreamMalformed),
            (chat_models("a").cut(5), StreamCutOff),
        ],
    )
    def test_a_server_that_cannot_tell_is_a_failure(
        self,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        reply: ServerReply,
        expected: type[ProviderFailure],
    ) -> None:
        scripted_server.play(reply)

        with pytest.raises(expected) as failed:
            WordProvider().get_models({**config, "discover_models": True})
        assert failed.value.hook == "get_models"

    def test_a_list_of_something_else_is_empty(
        self, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(json_reply({"data": ["a", None]}))

        assert WordProvider().get_models({**config, "discover_models": True}) == []


def test_settings_and_tags_of_the_provider_are_added_to_those_of_all() -> None:
    provider = WordProvider()

    assert {"language", "model", "api_key", "base_url", "idle_timeout"} <= set(provider.get_config_schema())
    assert provider.get_tags({}) == ["tools"]
    assert provider.get_tags({"capabilities": ["vision"]}) == ["vision"]


@pytest.mark.parametrize(
    ("hook", "arguments"),
    [
        ("endpoint", ({},)),
        ("auth_headers", ({}, ApiKey("", ""))),
        ("request_body", ([], {})),
        ("new_reply", ({}, Exchange("a", "b", "c", ApiKey("", "")))),
        ("decode", (SseEvent(b""),)),
    ],
)
def test_a_provider_without_a_format_says_so(hook: str, arguments: tuple[Any, ...]) -> None:
    options = {"stream": False} if hook in ("endpoint", "request_body") else {}

    with pytest.raises(NotImplementedError):
        getattr(HttpProvider(), hook)(*arguments, **options)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "set WORDS_API_KEY, or the provider's setting api_key"),
        ({"api_key": ""}, "set WORDS_API_KEY, or the provider's setting api_key"),
        ({"base_url": "http://words.invalid/"}, "set WORDS_API_KEY, or the provider's setting api_key"),
        ({"base_url": "http://127.0.0.1:9", "api_key": "", "api_key_origin": "nowhere: a drawer is empty"},
         "a drawer is empty"),
    ],
    ids=["no setting", "an empty one", "its own address", "one that was meant"],
)  # fmt: skip
def test_without_a_key_where_one_is_needed_nothing_is_sent(config: dict[str, Any], told: str) -> None:
    core = AgentCore()
    core.register_provider(WordProvider(_nobody))
    session = core.add_message(core.create_session(), "user", "hi")

    with pytest.raises(KeyMissing, match="needs an API key, and there is none") as failed:
        core.send_request(session, config)

    assert failed.value.next_step == told
    assert (failed.value.category, failed.value.retryable) == ("auth", False)
    assert str(WordProvider(_nobody).missing_key(config)) == str(failed.value)


@pytest.mark.parametrize(
    "config",
    [
        {"api_key": "sk-1"},
        {"base_url": "http://127.0.0.1:9"},
        {"base_url": "http://127.0.0.1:9", "api_key": ""},
        {"extra_headers": {"Authorization": "Bearer sk-1"}},
    ],
    ids=["a key", "another address", "another address without one", "a header that has one"],
)
def test_a_key_is_not_missed_where_none_is_needed(config: dict[str, Any]) -> None:
    assert WordProvider(_nobody).missing_key(config) is None


def _nobody() -> Transport:
    raise AssertionError("something would have been sent")


class TestVolume:
    """A server that never stops talking is cut off, with a clear reason."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_provider, "LARGEST_REPLY", 50_000)

    def test_a_reply_that_is_too_large_is_not_read_to_its_end(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        scripted_server.play(words(*["x" * 1_000] * 100), words(*["x" * 1_000] * 100))

        for send in (core.send_request, lambda *given: list(core.send_request_stream(*given))):
            with pytest.raises(ReplyTooLarge, match="in one reply; it was cut off there") as failed:
                send(asked, config)
            assert not failed.value.retryable

    @pytest.mark.parametrize(
        "item",
        [
            {"tool_calls": [{}] * 300},
            {"content": [{"type": "tool_use"}] * 300},
            {"parts": [{"functionCall": {}}] * 300},
        ],
    )
    def test_a_reply_with_too_many_calls_ends_the_request(
        self,
        core: AgentCore,
        asked: Session,
        config: dict[str, Any],
        scripted_server: ScriptedServer,
        monkeypatch: pytest.MonkeyPatch,
        item: dict[str, Any],
    ) -> None:
        scripted_server.play(words("one"))
        monkeypatch.setattr(WordReply, "items", lambda _reply: [item])

        with pytest.raises(ReplyTooLarge, match="asks for 300 tool calls at once, and 256 may be"):
            core.send_request(asked, config)

    def test_a_key_that_comes_back_in_a_header_is_not_kept(
        self, core: AgentCore, asked: Session, config: dict[str, Any], scripted_server: ScriptedServer
    ) -> None:
        reply = words("one")
        scripted_server.play(replace(reply, headers={**reply.headers, "x-request-id": "id-sk-very-secret"}))

        answered, _messages = core.send_request(asked, config)

        assert "sk-very-secret" not in str(answered.to_dict())
