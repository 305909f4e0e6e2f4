"""Real traffic with model servers: recorded once, replayed and read, or kept from happening in a test.

A recording has one file per test. Requests are matched by what they ask (method, path, body), not by
their order, so that parallel requests replay as well; the same question asked again gets the next answer
that was recorded for it. Headers are never written. Keys that were sent in a header, in the address or in a
form are blotted out wherever they occur, and so are fields of the body whose names say that they are secret,
and whatever looks like a key. What a server gave and a later request used as its key is blotted out as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from agent_core.encoding import canonical
from agent_plugin_kit.secrets import SHAPES
from agent_provider_kit.transport import real_transport
from agent_testing.replies import ServerReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from agent_provider_kit import JsonObject
    from agent_provider_kit.transport import HttpRequest, HttpResponse, Transport

BLOT = "***"
_KEY_HEADERS = ("authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")
_TELLING = (  # parts of names
    r"(?:api|private)_?key|secret|passw|passphrase|(?:access|refresh|id|auth)_?token|authorization|assertion"
)
_SECRET_NAME = re.compile(_TELLING, re.IGNORECASE)
_SECRET_PARAMETER = re.compile(
    rf"(?:^|[?&])(?:key|token|sig|[^=&?]*(?:{_TELLING})[^=&]*)=([^&]+)", re.IGNORECASE
)
_LEAST_SECRET = 6


class NotRecorded(AssertionError):
    """A test asks a model something that its recording does not have."""


class RealProviderReached(AssertionError):
    """A test would have asked a real model."""


class Guard:
    """A transport that reaches servers on this machine and no others.

    Attributes:
        refused: What was not sent, and why.
    """

    def __init__(self) -> None:
        self.refused: list[RealProviderReached] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        host = urlsplit(request.url).hostname or ""
        if not is_local(host):
            self.refused.append(
                RealProviderReached(
                    f"the test would have asked a real model at {host}: use "
                    "agent.override(model=TestModel()), a recording (the fixture agent_recording), or mark "
                    "the test with agent_live"
                )
            )
            raise self.refused[-1]
        return await real_transport().send(request)


class Recorder:
    """A transport that writes down what passes through it.

    Attributes:
        interactions: What was asked and answered so far.
    """

    def __init__(self, inner: Transport) -> None:
        self.interactions: list[dict[str, Any]] = []
        self._inner = inner
        self._secrets: set[str] = set()

    async def send(self, request: HttpRequest) -> HttpResponse:
        response = await self._inner.send(request)
        return _Recorded(self, request, response)

    def add(self, request: HttpRequest, response: HttpResponse, body: bytes) -> None:
        """Write down one question and its answer, without what nobody may read."""
        secrets = _secrets_of(request)
        self._secrets.update(secrets)
        kind = {name.lower(): value for name, value in response.headers.items()}.get("content-type", "")
        interaction = {
            "request": asked(request),
            "response": {
                "status": response.status,
                "content_type": kind,
                "body": body.decode(errors="replace"),
            },
        }
        self.interactions.append(_blotted(interaction, secrets))

    def recording(self) -> dict[str, Any]:
        """Return everything that was written down; no answer has a key that any request was sent with."""
        interactions = [
            {**one, "response": _blotted(one["response"], sorted(self._secrets))} for one in self.interactions
        ]
        return {"interactions": interactions}

    def save(self, file: Path) -> None:
        """Write the recording."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(self.recording(), option=orjson.OPT_INDENT_2) + b"\n")


class Replayer:
    """A transport that answers from a recording and reaches nobody."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._answers: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
        for one in orjson.loads(file.read_bytes())["interactions"] if file.exists() else ():
            self._answers[canonical(one["request"])].append(one["response"])

    async def send(self, request: HttpRequest) -> HttpResponse:
        found = self._answers.get(canonical(_blotted(asked(request), _secrets_of(request))))
        if not found:
            problem = "has no answer to this question" if self._file.exists() else "is not there"
            raise NotRecorded(
                f"the recording {self._file} {problem} ({request.method} {urlsplit(request.url).path}): "
                "run pytest --agent-record to ask the real model once"
            )
        return _Replayed(found.pop(0) if len(found) > 1 else found[0])


def asked(request: HttpRequest) -> dict[str, Any]:
    """Return what a request asks, as a recording has it."""
    body: object = None
    if request.body:
        try:
            body = orjson.loads(request.body)
        except ValueError:
            body = request.body.decode(errors="replace")
    return {"method": request.method, "path": urlsplit(request.url).path, "body": body}


def is_local(host: str) -> bool:
    """Say whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _secrets_of(request: HttpRequest) -> list[str]:
    found = [
        value.removeprefix("Bearer ").removeprefix("bearer ")
        for name, value in request.headers.items()
        if name.lower() in _KEY_HEADERS
    ]
    found += _SECRET_PARAMETER.findall(request.url)
    if "form-urlencoded" in str(
        {name.lower(): value for name, value in request.headers.items()}.get("content-type")
    ):
        found += _SECRET_PARAMETER.findall((request.body or b"").decode(errors="replace"))
    return [secret for secret in found if len(secret) >= _LEAST_SECRET]


def _blotted(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: BLOT if _SECRET_NAME.search(key) and isinstance(item, str) else _blotted(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_blotted(item, secrets) for item in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, BLOT)
        for shape in SHAPES:
            if any(start in value for start in shape.starts):
                value = shape.expression.sub(lambda found: found[0].replace(found[1], BLOT), value)
    return value


class _Recorded:
    """A reply that is noted as it is read."""

    def __init__(self, recorder: Recorder, request: HttpRequest, response: HttpResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._recorder = recorder
        self._request = request
        self._response = response

    async def read(self, most: int | None = None) -> bytes:
        body = await self._response.read(most)
        self._recorder.add(self._request, self._response, body)
        return body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        pieces: list[bytes] = []
        try:
            async for piece in self._response.chunks():
                pieces.append(piece)
                yield piece
        finally:  # a reader may stop at the mark that ends a stream, before the connection does
            self._recorder.add(self._request, self._response, b"".join(pieces))

    def moved_on(self) -> None:
        self._response.moved_on()

    def close(self) -> None:
        self._response.close()


class _Replayed:
    """A reply out of a recording."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self.status: int = recorded["status"]
        self.headers: Mapping[str, str] = {"content-type": recorded["content_type"]}
        self._body: bytes = recorded["body"].encode()

    async def read(self, most: int | None = None) -> bytes:
        return self._body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body

    def moved_on(self) -> None:
        """Nothing waits for anything here."""

    def close(self) -> None:
        """Nothing is open here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One question and its answer.

    Attributes:
        request: The JSON body that was sent.
        streamed: Whether the answer is a stream.
        reply: The answer, to be played again.
    """

    method: str
    path: str
    request: JsonObject
    streamed: bool
    reply: ServerReply


def read_recording(file: Path) -> list[Recorded]:
    """Return the interactions of a recording, in their order."""
    return [_recorded(each) for each in orjson.loads(file.read_bytes())["interactions"]]


def read_recordings(folder: Path, pattern: str) -> dict[str, Recorded]:
    """Return the interactions of all recordings below *folder* that fit *pattern*, by file and number."""
    return {
        f"{file.stem}-{number}": recorded
        for file in sorted(folder.glob(pattern))
        for number, recorded in enumerate(read_recording(file))
    }


def _recorded(interaction: JsonObject) -> Recorded:
    asked, answered = interaction["request"], interaction["response"]
    body, kind = answered["body"].encode(), answered["content_type"]
    streamed = "event-stream" in kind
    return Recorded(
        method=asked["method"],
        path=asked["path"],
        request=asked.get("body") or {},
        streamed=streamed,
        reply=ServerReply(
            body=body, stream=body if streamed else None, status=answered["status"], content_type=kind
        ),
    )
