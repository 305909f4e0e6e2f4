"""An authorisation server on this machine: device codes, PKCE, rotating refresh tokens, revocation."""

from __future__ import annotations

import json
import secrets
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from oauth_login.servers import Server
from oauth_login.tokens import TokenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Authority:
    """The server: what it was asked, and what it should answer."""

    url: str = ""
    expires_in: int = 3600
    approved: bool = False
    denied: bool = False
    slow_down: int = 0
    drop_refreshes: int = 0
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refresh_tokens: set[str] = field(default_factory=set)
    revoked: list[str] = field(default_factory=list)
    refreshes: int = 0
    polls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self) -> dict[str, Any]:
        refresh = secrets.token_hex(8)
        self.refresh_tokens.add(refresh)
        token = {"access_token": secrets.token_hex(8), "refresh_token": refresh, "token_type": "Bearer"}
        # Its clock is hours off, which must not matter.
        return {**token, "expires_in": self.expires_in, "expires_at": 1}

    def answer(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:  # noqa: PLR0911
        grant = form.get("grant_type", "")
        if grant == "refresh_token":
            self.refreshes += 1
            if form["refresh_token"] not in self.refresh_tokens:
                return 400, {"error": "invalid_grant"}
            self.refresh_tokens.discard(form["refresh_token"])  # each is good for one use
            return 200, self.token()
        if grant == "authorization_code":
            known = self.codes.pop(form["code"], None)
            proof = create_s256_code_challenge(form.get("code_verifier", ""))
            if known is None or proof != known["code_challenge"]:
                return 400, {"error": "invalid_grant"}
            return 200, self.token()
        self.polls += 1
        if self.slow_down:
            self.slow_down -= 1
            return 400, {"error": "slow_down"}
        if self.denied:
            return 400, {"error": "access_denied"}
        return (200, self.token()) if self.approved else (400, {"error": "authorization_pending"})


def handler_of(authority: Authority) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: one[0] for key, one in parse_qs(parts.query).items()}
            if parts.path.startswith("/.well-known"):
                names = ("token", "device_authorization", "authorization", "revocation")
                self.reply(200, {f"{name}_endpoint": f"{authority.url}/{name}" for name in names})
                return
            code = secrets.token_hex(4)
            authority.codes[code] = query
            answer = {"error": "access_denied"} if authority.denied else {"code": code}
            self.send_response(302)
            self.send_header(
                "Location", f"{query['redirect_uri']}?{urlencode({**answer, 'state': query['state']})}"
            )
            self.end_headers()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {key: one[0] for key, one in parse_qs(body).items()}
            with authority.lock:
                if self.path == "/device_authorization":
                    where = {"verification_uri": "https://example.test/device", "user_code": "ABCD-EFGH"}
                    self.reply(200, {**where, "device_code": "secret", "expires_in": 600, "interval": 5})
                elif self.path == "/revocation":
                    authority.revoked.append(form["token"])
                    self.reply(200, {})
                elif form.get("grant_type") == "refresh_token" and authority.drop_refreshes:
                    authority.drop_refreshes -= 1
                    self.close_connection = True  # the answer is lost
                else:
                    self.reply(*authority.answer(form))

        def reply(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_given: Any) -> None:
            return None

    return Handler


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
