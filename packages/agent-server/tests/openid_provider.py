"""An OpenID provider on a real socket: discovery, keys that change, the code flow with PKCE."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT = "keelwork"


class OpenIdProvider:
    """A provider at which one person is logged in.

    Attributes:
        claims: What it says of the person.
        asked: The paths that it was asked for.
        visitors: How those that send the person here introduced themselves.
    """

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {
            "sub": "ada", "name": "Ada", "email": "ada@example.com", "email_verified": True,
        }  # fmt: skip
        self.asked: list[str] = []
        self.visitors: set[str] = set()
        self._codes: dict[str, dict[str, str]] = {}
        self.keys: list[Any] = []
        self.new_key()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path)
                provider.asked.append(path.path)
                if path.path == "/.well-known/openid-configuration":
                    self._json(provider.about())
                elif path.path == "/keys":
                    self._json(KeySet(provider.keys).as_dict(private=False))
                else:
                    asked = {name: values[0] for name, values in parse_qs(path.query).items()}
                    code = f"code-{len(provider._codes)}"
                    provider._codes[code] = asked
                    back = urlencode({"code": code, "state": asked["state"]})
                    self.send_response(302)
                    self.send_header("location", f"{asked['redirect_uri']}?{back}")
                    self.end_headers()

            def do_POST(self) -> None:
                provider.visitors.add(self.headers["user-agent"])
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                asked = provider._codes.pop(form["code"], None)
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if asked is None or challenge != asked["code_challenge"]:
                    self._json({"error": "invalid_grant"}, 400)
                    return
                self._json({"id_token": provider.token(nonce=asked["nonce"]), "token_type": "Bearer"})

            def _json(self, value: Any, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(value).encode())

            def log_message(self, *_given: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def about(self) -> dict[str, str]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    def new_key(self, *, elliptic: bool = False) -> None:
        """Sign with a new key from now on, and forget the others."""
        about: Any = {"kid": f"key-{time.monotonic_ns()}"}
        self.keys = [ECKey.generate_key("P-256", about) if elliptic else RSAKey.generate_key(2048, about)]

    def token(self, *, key: Any = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Return a token about the person; None takes a claim out."""
        key = key or self.keys[0]
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 600, **self.claims}
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        algorithm = {"EC": "ES256", "RSA": "RS256"}[key.key_type]
        head = {"alg": algorithm, "kid": key.kid, **(header or {})}
        return jwt.encode(head, said, key, algorithms=[head["alg"]])

    def shared_secret_token(self) -> str:
        """Return a token that is signed with the public key as if it were a shared secret."""
        public = self.keys[0].as_pem(private=False)
        head = json.dumps({"alg": "HS256", "kid": self.keys[0].kid}).encode()
        signed = b".".join([base64.urlsafe_b64encode(head).rstrip(b"="), self.token().split(".")[1].encode()])
        signature = hmac.new(public, signed, "sha256").digest()
        return b".".join([signed, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
