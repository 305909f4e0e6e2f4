"""What providers over HTTP have in common; a provider adds its wire format.

A provider of this kind writes only awaitable forms: synchronous callers are served by the core's
background loop. Per request there is one `Reply`, which takes what arrives and knows at the end whether
the answer was complete.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import orjson

from agent_core import Batch, ConfigError
from agent_core.io import run_awaitable
from agent_provider_kit.cancellation import RunningRequests
from agent_provider_kit.error_replies import failure_of_reply, looks_like_html
from agent_provider_kit.failures import (
    Exchange,
    KeyMissing,
    NotTheProvider,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
)
from agent_provider_kit.keys import ApiKey, brings_its_own_key, find_key, secrets_in
from agent_provider_kit.settings import COMMON_SETTINGS, timeouts
from agent_provider_kit.sse import SseDecoder, SseError, SseEvent
from agent_provider_kit.transport import HttpRequest, HttpResponse, Transport, default_transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agent_provider_kit.wire import Config, Dicts, JsonObject, State

_OK = 200


class Reply(Protocol):
    """One answer in the making.

    Attributes:
        progress: Rises whenever something arrives that belongs to the answer: words, thoughts, arguments of
            a call, other counts of tokens, another state. Pings, empty pieces and what is already known leave
            it as it is; a reply in which it does not rise for `content_timeout` is ended.
    """

    progress: int

    def add(self, event: Any) -> Dicts:
        """Take one decoded event of a stream and return the partial messages that it brings."""
        ...

    def take(self, body: JsonObject) -> None:
        """Take an answer that came in one piece."""
        ...

    def ended(self) -> bool:
        """Say whether the provider said how the answer ended."""
        ...

    def items(self) -> Dicts:
        """Return the native items of the answer as far as it has come."""
        ...


class HttpProvider:
    """Base of providers over HTTP.

    Attributes:
        default_base_url: Used where the configuration has none.
        key_variables: Environment variables that may hold the key.
        settings: The provider's own configuration keys, in addition to `COMMON_SETTINGS`.
        default_tags: Capabilities that its models usually have.
    """

    name: str
    version = "0.1.0"
    accepts_unlisted_models = True
    default_base_url: ClassVar[str] = ""
    key_variables: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[dict[str, JsonObject]] = {}
    default_tags: ClassVar[tuple[str, ...]] = ("tools",)

    def __init__(self, transport: Callable[[], Transport] = default_transport) -> None:
        self._transport = transport
        self._running = RunningRequests()

    # What a provider adds

    def endpoint(self, config: Config, *, stream: bool) -> str:
        """Return the address of the API, below the base address."""
        raise NotImplementedError

    def auth_headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        """Return the headers that carry the key."""
        raise NotImplementedError

    def request_body(self, native_messages: Dicts, state: State, *, stream: bool) -> JsonObject:
        """Return the body of a request."""
        raise NotImplementedError

    def new_reply(self, state: State, exchange: Exchange) -> Reply:
        """Return an empty answer."""
        raise NotImplementedError

    def decode(self, event: SseEvent) -> Any:
        """Return the decoded event, or something empty for one that means nothing.

        Raises:
            ValueError: If it makes no sense.
        """
        raise NotImplementedError

    def read_models(self, body: JsonObject) -> Dicts:
        """Return the models out of the server's list."""
        return [dict(model) for model in body.get("data") or [] if isinstance(model, dict)]

    def models_endpoint(self) -> str:
        """Return the address of the list of models, below the base address."""
        return "/models"

    # The hooks

    def get_config_schema(self) -> JsonObject:
        """Return the configuration keys of the provider."""
        return {**COMMON_SETTINGS, **self.settings}

    def get_tags(self, config: JsonObject) -> list[str]:
        """Return what the model can do, according to the configuration, or to what its models usually can."""
        return list(config.get("capabilities") or self.default_tags)

    def get_models(self, config: JsonObject) -> Dicts:
        """Return the server's models if `discover_models` is set, else the configured one."""
        if not config.get("discover_models"):
            return [{"id": config["model"]}] if config.get("model") else []
        return run_awaitable(lambda: self._discover(config))

    def init(self, config: JsonObject) -> State:
        """Return the state of a request."""
        state: State = {"config": config, "tools": config.get("tools") or []}
        state["reply"] = self.new_reply(state, self._exchange(config, "stream_api"))
        return state

    async def call_api_async(
        self,
        native_messages: Dicts,
        state: State,
        request_id: str | None = None,
        memory: State | None = None,
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Ask for the answer in one piece."""
        state["memory"] = memory
        exchange = self._exchange(state["config"], "call_api")
        reply = state["reply"] = self.new_reply(state, exchange)
        with self._running.watch(request_id) as running:
            response = await running.reach(self._send(native_messages, state, exchange, stream=False))
            reply.take(await self._read_json(response, exchange))
        return [], [], native_messages, state

    async def stream_api_async(
        self,
        native_messages: Dicts,
        state: State,
        request_id: str | None = None,
        memory: State | None = None,
    ) -> AsyncIterator[Batch]:
        """Ask for the answer in pieces; each read of the socket gives one batch of decoded events."""
        state["memory"] = memory
        exchange = self._exchange(state["config"], "stream_api")
        reply: Reply = state["reply"]
        decoder, broken, progress = SseDecoder(), None, reply.progress
        with self._running.watch(request_id) as running:
            response = await running.reach(self._send(native_messages, state, exchange, stream=True))
            try:
                async with aclosing(response.chunks()) as pieces:
                    async for piece in pieces:
                        batch, nonsense = self._decode(decoder.feed(piece), exchange)
                        yield batch
                        # What was yielded has been processed by now, so the reply knows how it stands.
                        if nonsense is not None and not reply.ended():
                            raise nonsense
                        if reply.progress != progress:
                            progress = reply.progress
                            response.moved_on()
            except SseError as error:
                raise StreamMalformed(exchange, str(error)) from error
            except OSError as error:
                broken = error
            batch, _half_an_event = self._decode(decoder.finish(), exchange)
            yield batch
            if not reply.ended():
                self._settle(reply, decoder.stray, exchange, broken)

    def process_chunk(
        self, chunk: Any, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Add one event to the reply."""
        return state["reply"].add(chunk), [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items, complete or not."""
        items = state["reply"].items()
        return items, [*native_messages, *items], state

    def cancel_request(self, request_id: str) -> None:
        """End a request that is under way and close its connection."""
        self._running.cancel(request_id)

    # For front ends

    def missing_key(self, config: Config) -> KeyMissing | None:
        """Return what a request would fail with for want of a key; None if it has one, or needs none.

        A key is needed at the provider's own address, and where the configuration says why the one that was
        meant is not there. Another address may be the user's own server, which may need none.
        """
        return self._missing_key(config, self._exchange(config, "init"))

    # Behind the hooks

    def _exchange(self, config: Config, hook: str) -> Exchange:
        key = find_key(config, *self.key_variables)
        return Exchange(self.name, hook, self._base_url(config), key, secrets_in(config))

    def _base_url(self, config: Config) -> str:
        return str(config.get("base_url") or self.default_base_url).rstrip("/")

    def _missing_key(self, config: Config, exchange: Exchange) -> KeyMissing | None:
        if exchange.key.value or brings_its_own_key(config) or not self.key_variables:
            return None
        meant = exchange.key.reason or exchange.url == self._base_url({})
        return KeyMissing(exchange, self.key_variables) if meant else None

    def _check(self, config: Config, exchange: Exchange) -> None:
        """Refuse to send what cannot be answered; a network that is down would hide why.

        Raises:
            KeyMissing: If there is no key, and one is needed.
            ConfigError: If the address has no scheme.
        """
        if not exchange.url.startswith(("https://", "http://")):
            raise ConfigError(_without_scheme(exchange), field="base_url")
        missing = self._missing_key(config, exchange)
        if missing is not None:
            raise missing

    async def _send(
        self, native_messages: Dicts, state: State, exchange: Exchange, *, stream: bool
    ) -> HttpResponse:
        config = state["config"]
        self._check(config, exchange)
        body = {
            **self.request_body(native_messages, state, stream=stream),
            **(config.get("extra_body") or {}),
        }
        request = HttpRequest(
            "POST",
            exchange.url + self.endpoint(config, stream=stream),
            {"Content-Type": "application/json", **self._headers(config, exchange.key)},
            orjson.dumps(body),
            timeouts(config),
        )
        return await self._accept(await self._reach(request, exchange), exchange)

    async def _reach(self, request: HttpRequest, exchange: Exchange) -> HttpResponse:
        try:
            return await self._transport().send(request)
        except OSError as error:  # TimeoutError and ConnectionError are OSErrors
            raise Unreachable(exchange, f"cannot reach {exchange.host}: {error}") from error

    async def _accept(self, response: HttpResponse, exchange: Exchange) -> HttpResponse:
        """Return the response if it is the provider's answer, and raise what else it means."""
        if response.status != _OK:
            raise failure_of_reply(exchange, response.status, response.headers, await _read(response))
        if "html" in response.headers.get("Content-Type", "").lower():
            response.close()
            raise NotTheProvider(exchange, f"{exchange.host} sent a web page", status=response.status)
        return response

    def _headers(self, config: Config, key: ApiKey) -> dict[str, str]:
        auth = self.auth_headers(config, key) if key.value else {}
        return {"User-Agent": "agent-platform", **auth, **(config.get("extra_headers") or {})}

    def _decode(self, events: list[SseEvent], exchange: Exchange) -> tuple[Batch, StreamMalformed | None]:
        """Return the decoded events up to the first that makes no sense, and what to say about that."""
        batch = Batch()
        try:
            batch.extend(filter(None, map(self.decode, events)))
        except ValueError as error:
            nonsense = StreamMalformed(
                exchange, f"{exchange.host} sent an event that makes no sense: {error}"
            )
            nonsense.__cause__ = error
            return batch, nonsense
        return batch, None

    def _settle(self, reply: Reply, stray: bytes, exchange: Exchange, broken: OSError | None) -> None:
        """Make sense of a stream that ended without saying so: perhaps it was not a stream."""
        if looks_like_html(stray):
            raise NotTheProvider(exchange, f"{exchange.host} sent a web page")
        if broken is not None:
            raise StreamCutOff(exchange, f"the stream from {exchange.host} broke: {broken}") from broken
        whole = _json_object(stray)
        if whole is None:
            raise StreamCutOff(
                exchange,
                f"{exchange.host} ended the stream without saying how the answer ends",
                provider_message=stray.decode("utf-8", "replace"),
            )
        reply.take(whole)  # the server does not stream, or sent an error

    async def _read_json(self, response: HttpResponse, exchange: Exchange) -> JsonObject:
        try:
            body = await response.read()
        except OSError as error:
            raise StreamCutOff(exchange, f"the reply of {exchange.host} broke off: {error}") from error
        parsed = _json_object(body)
        if parsed is None:
            raise StreamMalformed(
                exchange, f"{exchange.host} answered with something that is not a JSON object"
            )
        return parsed

    async def _discover(self, config: Config) -> Dicts:
        exchange = self._exchange(config, "get_models")
        self._check(config, exchange)
        request = HttpRequest(
            "GET",
            exchange.url + self.models_endpoint(),
            self._headers(config, exchange.key),
            None,
            timeouts(config),
        )
        response = await self._accept(await self._reach(request, exchange), exchange)
        return self.read_models(await self._read_json(response, exchange))


def _without_scheme(exchange: Exchange) -> str:
    url = exchange.redact(exchange.url)
    host = url.partition("://")[2] or url
    local = re.match(r"(localhost|127\.|\[::1\]|[^./]+(:\d+)?(/|$))", host)
    return (
        f"base_url {url!r} does not begin with http:// or https://: "
        f"write {'http' if local else 'https'}://{host}"
    )


def _json_object(body: bytes) -> JsonObject | None:
    try:
        parsed = orjson.loads(body)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


async def _read(response: HttpResponse) -> bytes:
    try:
        return await response.read()
    except OSError:
        return b""
