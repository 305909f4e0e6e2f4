"""Clouds for tests: who signed a request, tokens for a service account, streams in Amazon's form.

Signatures and tokens are checked here from the documentation, without the libraries that made them.
"""

from __future__ import annotations

import hmac
import re
import struct
from base64 import b64encode, urlsafe_b64decode
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit
from zlib import crc32

import orjson

from agent_testing.replies import ServerReply, json_reply

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_testing.server import Line, ReceivedRequest

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>[^,]+), SignedHeaders=(?P<headers>[^,]+), "
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
AMAZON_EVENT_STREAM = "application/vnd.amazon.eventstream"


def signed_by(request: ReceivedRequest, secret_key: str) -> str:
    """Return the access key and the scope with which a request was signed, "KEY/DATE/REGION/SERVICE/...".

    See docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.

    Raises:
        AssertionError: If it was not, or not with *secret_key*, or changed afterwards.
    """
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    assert found is not None, f"no signature: {request.headers.get('authorization')!r}"
    parts = urlsplit(request.target)
    query = sorted(parse_qsl(parts.query, keep_blank_values=True))
    names = found["headers"].split(";")
    canonical = "\n".join(
        (
            request.method,
            quote(parts.path, safe="/-_.~"),
            "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
            "",
            found["headers"],
            sha256(request.body).hexdigest(),
        )
    )
    moment = request.headers["x-amz-date"]
    text = "\n".join(("AWS4-HMAC-SHA256", moment, found["scope"], sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret_key}".encode()
    for part in (*found["scope"].split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    assert hmac.compare_digest(key.hex(), found["signature"]), "the signature is of something else"
    return f"{found['key']}/{found['scope']}"


def bedrock_reply(reply: ServerReply, *, then: bytes = b"") -> ServerReply:
    """Return an answer of Anthropic's as Bedrock sends it; *then* are frames behind its events."""
    lines = (reply.stream or b"").split(b"\n")
    events = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    frames = (amazon_frame({"bytes": b64encode(event).decode(), "p": "abc"}) for event in events)
    return replace(reply, stream=b"".join(frames) + then, content_type=None, end_at=None).labelled(
        AMAZON_EVENT_STREAM
    )


def amazon_frame(payload: Mapping[str, Any], exception: str | None = None) -> bytes:
    """Return one message of an event stream of Amazon's: an event, or an exception of that type."""
    headers = {":content-type": "application/json"}
    if exception is None:
        headers |= {":event-type": "chunk", ":message-type": "event"}
    else:
        headers |= {":exception-type": exception, ":message-type": "exception"}
    encoded = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), value.encode())
        for name, value in headers.items()
    )
    body = orjson.dumps(payload)
    prelude = struct.pack("!II", 16 + len(encoded) + len(body), len(encoded))
    prelude += struct.pack("!I", crc32(prelude))
    message = prelude + encoded + body
    return message + struct.pack("!I", crc32(message))


class ServiceAccount:
    """A service account of Google's, and the server that gives it tokens.

    Args:
        email: Its name.
    """

    def __init__(self, email: str = "tea@project.iam.gserviceaccount.test") -> None:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa

        self.email = email
        self.asked = 0
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        self._verify = partial(key.public_key().verify, padding=padding.PKCS1v15(), algorithm=hashes.SHA256())

    def write(self, file: Path, token_uri: str, project: str = "tea-project") -> Path:
        """Write the file that Google gives out for such an account."""
        content = {
            "type": "service_account",
            "project_id": project,
            "private_key_id": "1",
            "private_key": self._pem,
            "client_email": self.email,
            "token_uri": token_uri,
        }
        file.write_bytes(orjson.dumps(content))
        return file

    def grant(self, token: str, lifetime: int = 3600) -> Line:
        """Return a line of a script that gives out *token*, if the account itself asks for it."""

        def answer(request: ReceivedRequest) -> ServerReply:
            self.asked += 1
            form = parse_qs(request.body.decode())
            head, body, signature = form["assertion"][0].split(".")
            self._verify(urlsafe_b64decode(signature + "=="), f"{head}.{body}".encode())
            claims = orjson.loads(urlsafe_b64decode(body + "=="))
            if claims["iss"] != self.email or "cloud-platform" not in claims["scope"]:
                return json_reply({"error": "invalid_grant", "error_description": "for somebody else"}, 400)
            return json_reply({"access_token": token, "expires_in": lifetime, "token_type": "Bearer"})

        return answer
