"""Amazon Bedrock: requests are signed by botocore, and streams come in a binary form of events."""

from __future__ import annotations

import os
import threading
from base64 import b64decode
from importlib import import_module
from typing import TYPE_CHECKING, Any

import orjson

from agent_core import ConfigError, lazy
from agent_provider_kit.clouds.cloud import Cloud
from agent_provider_kit.failures import KeyRefused
from agent_provider_kit.keys import ApiKey
from agent_provider_kit.sse import SseError, SseEvent

if TYPE_CHECKING:
    from agent_provider_kit.failures import Exchange
    from agent_provider_kit.transport import HttpRequest
    from agent_provider_kit.wire import Config, JsonObject

BEDROCK_SETTINGS: dict[str, JsonObject] = {
    "cloud": {
        "type": "string",
        "enum": ["bedrock"],
        "description": "Who runs the model, if not the provider.",
    },
    "region": {
        "type": "string",
        "description": "Where the cloud runs the model; else what its variables say.",
    },
    "profile": {
        "type": "string",
        "description": "A profile of the AWS configuration; by default the one of the environment.",
    },
}
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
              "AWS_SHARED_CREDENTIALS_FILE")  # fmt: skip
_SERVICE = "bedrock"


class Bedrock(Cloud):
    """Amazon Bedrock. Without an API key of Bedrock, botocore finds the credentials and signs."""

    key_variables = ("AWS_BEARER_TOKEN_BEDROCK",)

    def base_url(self, config: Config) -> str:
        """Return the address of a region."""
        return f"https://bedrock-runtime.{region(config)}.amazonaws.com"

    def decoder(self) -> EventStreamDecoder:
        """Return what reads Amazon's event streams."""
        return EventStreamDecoder()

    async def authorize(
        self, request: HttpRequest, config: Config, exchange: Exchange
    ) -> tuple[HttpRequest, Exchange]:
        """Sign a request; in a thread, since credentials may have to be fetched."""
        if exchange.key.value:
            return request, exchange
        return await lazy.asyncio.to_thread(_sign, request, config, exchange)


def region(config: Config) -> str:
    """Return where the model runs.

    Raises:
        ConfigError: If nothing says so.
    """
    found = config.get("region") or next(filter(None, map(os.environ.get, _REGIONS)), None)
    if not found:
        raise ConfigError("cloud 'bedrock' needs a region: set region, or AWS_REGION", field="region")
    return str(found)


def _sign(request: HttpRequest, config: Config, exchange: Exchange) -> tuple[HttpRequest, Exchange]:
    credentials = _CREDENTIALS.find(config.get("profile"), exchange)
    signed = _botocore("awsrequest").AWSRequest(
        request.method, request.url, dict(request.headers), request.body or b""
    )
    _botocore("auth").SigV4Auth(credentials, _SERVICE, region(config)).add_auth(signed)
    key = ApiKey(credentials.secret_key, f"the AWS credentials of {credentials.access_key[:4]}…")
    secrets = (*exchange.other_secrets, *filter(None, (credentials.token,)))
    known = exchange._replace(key=key, other_secrets=secrets)
    return request._replace(headers=dict(signed.headers.items())), known


def _botocore(module: str) -> Any:
    try:
        return import_module(f"botocore.{module}")
    except ImportError as error:
        raise ConfigError(
            "cloud 'bedrock' needs botocore: pip install keelwork-provider-kit[bedrock]", field="cloud"
        ) from error


class _Credentials:
    """The credentials of this process, by profile; botocore renews those that expire."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str | None, ...], Any] = {}

    def find(self, profile: str | None, exchange: Exchange) -> Any:
        """Return credentials as they are now.

        Raises:
            KeyRefused: If there are none.
            ConfigError: If botocore is not installed.
        """
        key = (profile, *map(os.environ.get, _VARIABLES))
        try:
            with self._lock:
                if key not in self._known:
                    self._known[key] = _botocore("session").Session(profile=profile).get_credentials()
            found = self._known[key]
            frozen = None if found is None else found.get_frozen_credentials()
        except _botocore("exceptions").BotoCoreError as error:
            raise KeyRefused(exchange, f"the AWS credentials cannot be used: {error}") from error
        if frozen is None:
            raise KeyRefused(
                exchange,
                "there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, run `aws configure`, "
                "or name a profile",
            )
        return frozen


_CREDENTIALS = _Credentials()


class EventStreamDecoder:
    """Turns Amazon's event streams into the events that the provider itself would send."""

    def __init__(self) -> None:
        self._buffer = _botocore("eventstream").EventStreamBuffer()

    @property
    def stray(self) -> bytes:
        """Nothing: what is not in an event cannot be read."""
        return b""

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that are complete with *piece*."""
        self._buffer.add_data(piece)
        try:
            return [event for message in self._buffer if (event := _event(message)) is not None]
        except _botocore("eventstream").ParserError as error:
            raise SseError(f"the event stream cannot be read: {error}") from error

    def finish(self) -> list[SseEvent]:
        """Return nothing: half an event is none."""
        return []


def _event(message: Any) -> SseEvent | None:
    payload = orjson.loads(message.payload or b"{}")
    if message.headers.get(":message-type") != "event":
        kind = message.headers.get(":exception-type") or message.headers.get(":error-code") or "error"
        said = payload.get("message") or message.headers.get(":error-message") or ""
        return SseEvent(orjson.dumps({"type": "error", "error": {"type": kind, "message": said}}), b"error")
    encoded = payload.get("bytes")
    return None if encoded is None else SseEvent(b64decode(encoded))
