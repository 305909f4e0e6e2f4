"""An authorisation server on this machine, made of authlib's parts and served over a real socket.

What a server decides is authlib's: who a client is, which codes and proofs fit, what a refused request says.
The tests say what a person does (`approved`, `denied`) and what goes wrong on the way.
"""

# mypy: disable-error-code="misc"
# authlib has no types, so all of its classes are Any.

from __future__ import annotations

import json
import secrets
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Error, OAuth2Request, TokenMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialDict

from oauth_login.servers import Server
from oauth_login.tokens import TokenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENT_ID = "keelwork"
PUBLIC = ["none"]


class Keelwork(ClientMixin):
    """The one client that the server knows: it has no secret, and lands on this machine."""

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri.startswith("http://127.0.0.1:")

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return True


@dataclass
class Issued(TokenMixin):
    """A token that the server gave out."""

    token: dict[str, Any]

    def check_client(self, client: Any) -> bool:
        return bool(client.get_client_id() == CLIENT_ID)

    def get_scope(self) -> str:
        return str(self.token.get("scope", ""))


@dataclass
class Code:
    """What an authorisation code stands for."""

    code: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class ByCode(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = PUBLIC

    def save_authorization_code(self, code: str, request: Any) -> None:
        asked = request.payload.data
        proof = asked["code_challenge"], asked["code_challenge_method"]
        self.server.codes[code] = Code(code, asked["redirect_uri"], request.payload.scope or "", *proof)

    def query_authorization_code(self, code: str, client: Any) -> Code | None:
        found: Code | None = self.server.codes.get(code)
        return found

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return "Ada"


class ByDevice(DeviceCodeGrant):
    def query_device_credential(self, device_code: str) -> Any:
        return self.server.device_codes.get(device_code)

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        return ("Ada", not self.server.denied) if self.server.denied or self.server.approved else None

    def should_slow_down(self, credential: Any) -> bool:
        self.server.slow_down -= 1
        return bool(self.server.slow_down >= 0)


class Rotating(RefreshTokenGrant):
    """Each refresh token is good for one use."""

    TOKEN_ENDPOINT_AUTH_METHODS = PUBLIC
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Issued | None:
        self.server.refreshes += 1
        found: Issued | None = self.server.refresh_tokens.get(refresh_token)
        return found

    def authenticate_user(self, refresh_token: Issued) -> str:
        return "Ada"

    def revoke_old_credential(self, refresh_token: Issued) -> None:
        del self.server.refresh_tokens[refresh_token.token["refresh_token"]]


class DeviceCodes(DeviceAuthorizationEndpoint):
    EXPIRES_IN = 600

    @property
    def INTERVAL(self) -> int:  # noqa: N802 - authlib's name
        return int(self.server.interval)

    def get_verification_uri(self) -> str:
        return f"{self.server.url}/device"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        credential = DeviceCredentialDict(client_id=client_id, scope=scope, **data)
        self.server.device_codes[data["device_code"]] = credential


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = PUBLIC

    def query_token(self, token_string: str, token_type_hint: str | None) -> Issued | None:
        found: Issued | None = self.server.refresh_tokens.get(token_string)
        return found

    def revoke_token(self, token: Issued, request: Any) -> None:
        self.server.refresh_tokens.pop(token.token["refresh_token"])
        self.server.revoked.append(token.token["refresh_token"])


class FormRequest(OAuth2Request):
    """A request as authlib reads it; a proxy in front of a real server speaks TLS."""

    def __init__(self, method: str, path: str, fields: dict[str, str]) -> None:
        super().__init__(method, f"https://127.0.0.1{path}", headers={})
        self.payload = BasicOAuth2Payload(fields)
        self._fields = fields

    @property
    def form(self) -> dict[str, str]:
        return self._fields if self.method == "POST" else {}

    @property
    def args(self) -> dict[str, str]:
        return {} if self.method == "POST" else self._fields


class Authority(AuthorizationServer):
    """The server.

    Attributes:
        approved: Whether the person has said yes.
        denied: Whether the person has said no.
        interval: How many seconds a device must leave between two questions.
        slow_down: How many of the next questions come too soon.
        drop_requests: How many of the next refreshes are lost before the server has read them.
        drop_answers: How many of the next answers to a refresh are lost.
        revoked: The refresh tokens that were handed back.
        refreshes: How often somebody tried to refresh.
        polls: How often a device asked for its token.
        visitors: How programs introduced themselves.
    """

    def __init__(self) -> None:
        super().__init__()
        self.url = ""
        self.approved = self.denied = False
        self.interval = 5
        self.visitors: set[str] = set()
        self.slow_down = self.drop_requests = self.drop_answers = self.refreshes = self.polls = 0
        self.codes: dict[str, Code] = {}
        self.device_codes: dict[str, Any] = {}
        self.refresh_tokens: dict[str, Issued] = {}
        self.revoked: list[str] = []
        self.lock = threading.Lock()
        self.register_grant(ByCode, [CodeChallenge(required=True)])
        self.register_grant(ByDevice)
        self.register_grant(Rotating)
        self.register_endpoint(DeviceCodes)
        self.register_endpoint(Revocation)
        self.register_token_generator("default", BearerTokenGenerator(_random, _random, 3600))

    def token(self) -> dict[str, Any]:
        """Give out a token to somebody who has logged in before."""
        token: dict[str, Any] = self.generate_token("refresh_token", Keelwork(), "Ada", "read")
        self.save_token(token, None)
        return token

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        token["expires_at"] = 1  # the server's clock is years off, which must not matter
        self.refresh_tokens[token["refresh_token"]] = Issued(token)

    def query_client(self, client_id: str) -> Keelwork | None:
        return Keelwork() if client_id == CLIENT_ID else None

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        return None

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, dict[str, str]]:
        return status, body, dict(headers)

    def authorize(self, request: FormRequest) -> tuple[int, Any, dict[str, str]]:
        """Answer a browser, at once: the person has decided."""
        try:
            grant = self.get_consent_grant(request, "Ada")
        except OAuth2Error as error:
            refused: tuple[int, Any, dict[str, str]] = self.handle_error_response(request, error)
            return refused
        answer: tuple[int, Any, dict[str, str]] = self.create_authorization_response(
            request, None if self.denied else "Ada", grant
        )
        return answer


def _random(**_given: Any) -> str:
    return secrets.token_hex(8)


def handler_of(authority: Authority) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one class
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path.startswith("/.well-known"):
                authority.visitors.add(self.headers["User-Agent"])
                names = ("token", "device_authorization", "authorization", "revocation")
                self.reply(200, {f"{name}_endpoint": f"{authority.url}/{name}" for name in names}, {})
            elif parts.path == "/device":  # the person who opens it says yes to the code in it
                known = [one.get_user_code() for one in authority.device_codes.values()]
                authority.approved = _fields(parts.query).get("user_code") in known
                self.reply(200, "Thank you.", {"Content-Type": "text/plain"})
            else:
                self.reply(*authority.authorize(FormRequest("GET", self.path, _fields(parts.query))))

        def do_POST(self) -> None:
            authority.visitors.add(self.headers["User-Agent"])
            fields = _fields(self.rfile.read(int(self.headers["Content-Length"])).decode())
            request = FormRequest("POST", self.path, fields)
            with authority.lock:
                self.answer(request, is_refresh=fields.get("grant_type") == "refresh_token")

        def answer(self, request: FormRequest, *, is_refresh: bool) -> None:
            if is_refresh and authority.drop_requests:
                authority.drop_requests -= 1
                self.close_connection = True
                return
            if self.path == "/token":
                authority.polls += "device_code" in request.form
                answer = authority.create_token_response(request)
            else:
                answer = authority.create_endpoint_response(self.path.strip("/"), request)
            if is_refresh and authority.drop_answers:
                authority.drop_answers -= 1
                self.close_connection = True
                return
            self.reply(*answer)

        def reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_given: Any) -> None:
            return None

    return Handler


def _fields(text: str) -> dict[str, str]:
    return {key: one[0] for key, one in parse_qs(text).items()}


@pytest.fixture
def authority() -> Iterator[Authority]:
    made = Authority()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(made)) as http:
        made.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield made
        http.shutdown()
        thread.join()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> TokenStore:
    monkeypatch.setenv("AGENT_KEYRING", "off")
    return TokenStore(tmp_path / "oauth", clock)


@pytest.fixture
def server(authority: Authority) -> Server:
    return Server(name="house", client_id="keelwork", scopes=("read",), issuer=authority.url)
