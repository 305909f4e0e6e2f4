"""What providers over HTTP have in common; a provider adds its wire format.

A provider of this kind writes only awaitable forms: synchronous callers are served by the core's
background loop. Per request there is one `Reply`, which takes what arrives and knows at the end whether
the answer was complete.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlencode, urlsplit

from agent_core import Batch, ConfigError, ProviderError, lazy
from agent_core.frozen import EMPTY, FrozenDict
from agent_core.io import run_awaitable
from agent_core.product import USER_AGENT
from agent_plugin_kit.credentials import is_reference
from agent_provider_kit.cancellation import RunningRequests
from agent_provider_kit.error_replies import failure_of_reply, known_as_and_limits, looks_like_html
from agent_provider_kit.failures import (
    Exchange,
    KeyMissing,
    LoginMissing,
    NotTheProvider,
    ReplyTooLarge,
    StreamCutOff,
    StreamMalformed,
    Unreachable,
)
from agent_provider_kit.keys import ApiKey, brings_its_own_key, find_key
from agent_provider_kit.settings import COMMON_SETTINGS, check_extras, timeouts
from agent_provider_kit.sse import SseDecoder, SseError, SseEvent
from agent_provider_kit.transport import (
    HttpRequest,
    HttpResponse,
    Timeouts,
    Transport,
    default_transport,
)
from agent_provider_kit.wire import TooDeep, decode_object, encode_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_provider_kit.cancellation import RunningRequest
    from agent_provider_kit.clouds import Cloud
    from agent_provider_kit.wire import Config, Dicts, JsonObject, State

_OK = 200
_CONTENT_TYPE = "Content-Type"
_HEADERS, _EXCHANGE = "reply_headers", "exchange"
_COUNTS = ("input_tokens", "totalTokens", "inputTokens")

Ask = Callable[[str, float], Awaitable["JsonObject"]]
"""Looks something up at an address below the base address, after so many seconds."""


LARGEST_REPLY = 64 * 1024 * 1024
"""How many bytes one reply may have: images in base64 fit, and what never ends does not fill the memory."""
MOST_CALLS = 256
"""How many tool calls one reply may ask for; each of them is stored, judged and answered."""
_LARGEST_ERROR = 1024 * 1024
_CALLS = ("function_call", "custom_tool_call", "tool_use")


class Reply(Protocol):
    """One answer in the making.

    Attributes:
        progress: Rises whenever something arrives that belongs to the answer: words, thoughts, arguments of
            a call, the end. Pings, empty pieces, counts of tokens, unknown fields and whatever else could go
            on for ever without an answer leave it as it is; a reply in which it does not rise for
            `content_timeout` is ended.
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
        clouds: Who else offers its models, by the name that the setting `cloud` has for them.
    """

    name: str
    version = "0.1.0"
    accepts_unlisted_models = True
    default_base_url: ClassVar[str] = ""
    key_variables: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[dict[str, JsonObject]] = {}
    default_tags: ClassVar[tuple[str, ...]] = ("tools",)
    clouds: ClassVar[Mapping[str, Cloud]] = {}

    def __init__(self, transport: Callable[[], Transport] = default_transport) -> None:
        self._transport = transport
        self._running = RunningRequests()
        self._last_config: tuple[Config, State] = (EMPTY, {})

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

    def count_request(self, native_messages: Dicts, state: State) -> tuple[str, JsonObject]:
        """Return the address and the body of a request that counts tokens.

        Raises:
            ProviderError: If the API has no such request.
        """
        raise ProviderError(self.name, "count_tokens", "the API has no request that counts tokens")

    def read_count(self, body: JsonObject) -> int | None:
        """Return the number of tokens out of the answer to such a request."""
        found = next((body[name] for name in _COUNTS if name in body), None)
        return found if isinstance(found, int) else None

    async def follow(self, state: State, body: JsonObject | None, ask: Ask) -> JsonObject | None:
        """Return the answer that a reply only promises; None if it promises nothing.

        Args:
            state: Of the request; its `reply` knows what a stream had brought when it ended.
            body: The reply if it came in one piece.
            ask: Looks something up at an address below the base address, after so many seconds.
        """
        return None

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
        exchange = self._exchange(config, "stream_api")
        state: State = {"config": config, "tools": config.get("tools") or [], _EXCHANGE: exchange}
        state["reply"] = self.new_reply(state, exchange)
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
        exchange = self._exchange_of(state, "call_api")
        reply = state["reply"] = self.new_reply(state, exchange)
        with self._running.watch(request_id) as running:
            response = await running.reach(self._send(native_messages, state, exchange, stream=False))
            state[_HEADERS] = response.headers
            body = await self._read_json(response, exchange)
            reply.take(await self.follow(state, body, self._asking(state, exchange, running)) or body)
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
        exchange = self._exchange_of(state, "stream_api")
        reply: Reply = state["reply"]
        cloud = self._cloud(state["config"])
        decoder = SseDecoder() if cloud is None else cloud.decoder()
        broken, progress = None, reply.progress
        with self._running.watch(request_id) as running:
            response = await running.reach(self._send(native_messages, state, exchange, stream=True))
            state[_HEADERS] = response.headers
            size = 0
            try:
                async with aclosing(response.chunks()) as pieces:
                    async for piece in pieces:
                        size += len(piece)
                        _check_size(size, exchange)
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
                asking = self._asking(state, exchange, running)
                rest = await self.follow(state, _json_object(decoder.stray), asking)
                if rest is None:
                    self._settle(reply, decoder.stray, exchange, broken)
                else:
                    reply.take(rest)

    def process_chunk(
        self, chunk: Any, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Add one event to the reply."""
        return state["reply"].add(chunk), [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return the reply's items, complete or not."""
        exchange = self._exchange_of(state, "finalize")
        items = _with_headers(state["reply"].items(), state.get(_HEADERS, EMPTY), exchange)
        calls = sum(map(_calls_in, items))
        if calls > MOST_CALLS:
            raise ReplyTooLarge(
                exchange,
                f"{exchange.host} asks for {calls:,} tool calls at once, and {MOST_CALLS} may be",
            )
        return items, [*native_messages, *items], state

    def count_tokens(self, native_messages: Dicts, config: JsonObject) -> int:
        """Ask the provider how many tokens a request with these items would have.

        Raises:
            ProviderError: If the API has no such request, or it fails.
        """
        return run_awaitable(lambda: self.count_tokens_async(native_messages, config))

    async def count_tokens_async(self, native_messages: Dicts, config: JsonObject) -> int:
        """Do the same on an event loop."""
        state = self.init(config)
        path, body = self.count_request(native_messages, state)
        exchange = self._exchange(config, "count_tokens")
        found = await self._read_json(await self._ask("POST", path, config, exchange, body), exchange)
        count = self.read_count(found)
        if count is None:
            raise StreamMalformed(exchange, f"{exchange.host} was asked for a number and sent none")
        return count

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

    def _cloud(self, config: Config) -> Cloud | None:
        name = config.get("cloud")
        if not name:
            return None
        if name not in self.clouds:
            known = ", ".join(map(repr, self.clouds)) or "none"
            raise ConfigError(f"cloud {name!r} is unknown to {self.name}: it knows {known}", field="cloud")
        return self.clouds[name]

    def _exchange(self, config: Config, hook: str) -> Exchange:
        return Exchange(self.name, hook, *self._address(config), config=config)

    def _address(self, config: Config) -> tuple[str, ApiKey]:
        """Return where to ask, and the key for it, both checked."""
        cloud = self._cloud(config)
        key = find_key(config, *(self.key_variables if cloud is None else cloud.key_variables))
        known = self._known(config)
        found: tuple[str, ApiKey] | None = known.get("address")
        if found is None or found[1] != key:  # that of the environment or of a login may change at any time
            check_extras(config, key)
            found = known["address"] = self._base_url(config), key
        return found

    def _known(self, config: Config) -> State:
        """Return what was found out about a configuration, for whoever finds out more.

        Most requests have the configuration of the one before, the very same frozen dict.
        """
        last, known = self._last_config
        if last is not config:
            known = {}
            if config.__class__ is FrozenDict:
                self._last_config = config, known
        return known

    def _exchange_of(self, state: State, hook: str) -> Exchange:
        """Return with whom a request talks: as it began, unless an extension has changed its settings."""
        known: Exchange | None = state.get(_EXCHANGE)
        if known is None or known.config is not state["config"]:
            return self._exchange(state["config"], hook)
        return Exchange(self.name, hook, known.url, known.key, config=known.config)

    def _base_url(self, config: Config) -> str:
        cloud = self._cloud(config)
        usual = self.default_base_url if cloud is None or config.get("base_url") else cloud.base_url(config)
        base = str(config.get("base_url") or usual).rstrip("/")
        return base if cloud is None else cloud.address(base)

    def _missing_key(self, config: Config, exchange: Exchange) -> KeyMissing | None:
        if exchange.key.value or brings_its_own_key(config) or not self.key_variables:
            return None
        if (cloud := self._cloud(config)) is not None:
            return KeyMissing(exchange, cloud.key_variables) if cloud.needs_key else None
        if is_reference(config.get("api_key")):
            return LoginMissing(exchange, self.key_variables)
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
        body = {
            **self.request_body(native_messages, state, stream=stream),
            **(config.get("extra_body") or {}),
        }
        return await self._ask("POST", self.endpoint(config, stream=stream), config, exchange, body)

    async def _ask(
        self, method: str, path: str, config: Config, exchange: Exchange, body: JsonObject | None = None
    ) -> HttpResponse:
        """Send one request to an address below the base address, and return the reply if it is a good one."""
        cloud = self._cloud(config)
        headers, query, patience = self._common(config, exchange, cloud)
        request = HttpRequest(
            method,
            with_query(exchange.url + path, query),
            headers if body is None else {_CONTENT_TYPE: "application/json", **headers},
            None if body is None else encode_body(body),
            patience,
        )
        if cloud is not None:
            request, exchange = await cloud.authorize(request, config, exchange)
        return await self._accept(await self._reach(request, exchange), exchange)

    def _common(
        self, config: Config, exchange: Exchange, cloud: Cloud | None
    ) -> tuple[dict[str, str], JsonObject, Timeouts]:
        """Return headers, query and timeouts of every request with a configuration, found out once.

        Raises:
            KeyMissing, ConfigError: If no request can be sent with it.
        """
        known = self._known(config)
        found: tuple[ApiKey, dict[str, str], JsonObject, Timeouts] | None = known.get("common")
        if found is None or found[0] != exchange.key:
            self._check(config, exchange)
            headers = self._headers(config, exchange.key)
            _check_password(exchange, headers)
            query = {**({} if cloud is None else cloud.query(config)), **(config.get("extra_query") or {})}
            found = known["common"] = exchange.key, headers, query, timeouts(config)
        return found[1:]

    def _asking(self, state: State, exchange: Exchange, running: RunningRequest) -> Ask:
        """Return a function that looks up an answer; cancelling the request ends it, too."""

        async def ask(path: str, delay: float) -> JsonObject:
            async def wait_and_ask() -> HttpResponse:
                await lazy.asyncio.sleep(delay)
                return await self._ask("GET", path, state["config"], exchange)

            return await self._read_json(await running.reach(wait_and_ask()), exchange)

        return ask

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
        cloud = self._cloud(config)
        given = self.auth_headers(config, key) if cloud is None else cloud.auth_headers(key)
        auth = given if key.value else {}
        # Each counts once, the last: case does not matter, and servers refuse two keys or types of content.
        lowered: dict[str, tuple[str, str]] = {}
        for headers in ({"User-Agent": USER_AGENT}, auth, config.get("extra_headers") or {}):
            for name, value in headers.items():
                spelled = _CONTENT_TYPE if name.lower() == _CONTENT_TYPE.lower() else name
                lowered[name.lower()] = spelled, value
        return dict(lowered.values())

    def _decode(self, events: list[SseEvent], exchange: Exchange) -> tuple[Batch, StreamMalformed | None]:
        """Return the decoded events up to the first that makes no sense, and what to say about that."""
        batch = Batch()
        try:
            batch.extend(filter(None, map(self.decode, events)))
        except (ValueError, RecursionError) as error:
            problem = TooDeep() if isinstance(error, RecursionError) else error
            nonsense = StreamMalformed(
                exchange, f"{exchange.host} sent an event that makes no sense: {problem}"
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
            body = await response.read(LARGEST_REPLY)
        except OSError as error:
            raise StreamCutOff(exchange, f"the reply of {exchange.host} broke off: {error}") from error
        _check_size(len(body), exchange)
        try:
            return decode_object(body)
        except TooDeep as error:
            raise StreamMalformed(
                exchange, f"{exchange.host} answered with JSON that cannot be used: {error}"
            ) from error
        except ValueError as error:
            raise StreamMalformed(
                exchange, f"{exchange.host} answered with something that is not a JSON object"
            ) from error

    async def _discover(self, config: Config) -> Dicts:
        exchange = self._exchange(config, "get_models")
        cloud = self._cloud(config)
        if cloud is not None and not cloud.lists_models:
            raise ConfigError(
                f"discover_models: {config['cloud']} has no list of its models; set model instead",
                field="discover_models",
            )
        response = await self._ask("GET", self.models_endpoint(), config, exchange)
        return self.read_models(await self._read_json(response, exchange))


def with_query(url: str, query: Mapping[str, Any]) -> str:
    """Return an address with more parameters."""
    if not query:
        return url
    more = urlencode({name: str(value) for name, value in query.items()})
    return f"{url}{'&' if '?' in url else '?'}{more}"


def _calls_in(item: Mapping[str, Any]) -> int:
    """Return how many tool calls a native item asks for, whoever's format it is."""
    called = len(item.get("tool_calls") or ()) + (item.get("type") in _CALLS or "functionCall" in item)
    for inside in (item.get("content"), item.get("parts")):
        if isinstance(inside, list):
            blocks = [one for one in inside if isinstance(one, Mapping)]
            called += sum([one.get("type") in _CALLS or "functionCall" in one for one in blocks])
    return called


def _check_size(size: int, exchange: Exchange) -> None:
    """Raise `ReplyTooLarge` if a reply has become larger than any answer is."""
    if size > LARGEST_REPLY:
        raise ReplyTooLarge(
            exchange,
            f"{exchange.host} sent more than {LARGEST_REPLY >> 20} MB in one reply; it was cut off there",
        )


def _with_headers(items: Dicts, headers: Mapping[str, str], exchange: Exchange) -> Dicts:
    """Keep the provider's id of the request and what it says about limits, with the last item."""
    known_as, limits = known_as_and_limits(headers)
    if not items or not (known_as or limits):
        return items
    # A server may send the key back in any header.
    known: JsonObject = {"request_id": exchange.redact(known_as)} if known_as else {}
    if limits:
        known["rate_limits"] = {name: exchange.redact(value) for name, value in limits.items()}
    return [*items[:-1], {**items[-1], "_metadata": {**(items[-1].get("_metadata") or {}), **known}}]


def _check_password(exchange: Exchange, headers: Mapping[str, str]) -> None:
    """Refuse an address with a password where the key goes into the same header."""
    if urlsplit(exchange.url).password and any(name.lower() == "authorization" for name in headers):
        raise ConfigError(
            "base_url has a password, which is sent in the header Authorization, and so is the key: "
            "take the password out of base_url, or set api_key to an empty text",
            field="base_url",
        )


def _without_scheme(exchange: Exchange) -> str:
    url = exchange.redact(exchange.url)
    host = re.sub(r"^\s*(?:\w+:)?/+", "", url).strip()
    local = re.match(r"(localhost|127\.|\[::1\]|[^./]+(:\d+)?(/|$))", host)
    return (
        f"base_url {url!r} does not begin with http:// or https://: "
        f"write {'http' if local else 'https'}://{host}"
    )


def _json_object(body: bytes) -> JsonObject | None:
    try:
        return decode_object(body)
    except ValueError:
        return None


async def _read(response: HttpResponse) -> bytes:
    """Return the beginning of a body that says what went wrong; what does not end is not read to its end."""
    pieces: list[bytes] = []
    try:
        async with aclosing(response.chunks()) as arriving:
            async for piece in arriving:
                pieces.append(piece)
                if sum(map(len, pieces)) > _LARGEST_ERROR:
                    response.close()
                    break
    except OSError:
        return b""
    return b"".join(pieces)
