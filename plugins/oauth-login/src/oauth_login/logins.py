"""Logins: by a code that is typed on another device (RFC 8628), or in a browser on this one (RFC 7636)."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from agent_core import AgentError
from agent_core.product import USER_AGENT
from oauth_login.tokens import TokenStore, client_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from oauth_login.servers import Server

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_WAITS = ("authorization_pending", "slow_down")
_SLOWER = 5
_USUAL_INTERVAL = 5
_VERIFIER = 48
_BROWSER_LOGIN = 600
_PAGE = b"<!doctype html><title>Login</title><p>You may close this page and go back to the program."


class LoginFailed(AgentError):
    """A login came to nothing; the message says why."""


@dataclass(slots=True, kw_only=True)
class Pending:
    """A login that somebody has to finish.

    Attributes:
        url: Where.
        code: What to type there; empty if the address says it all.
        expires_at: When it is too late, by our clock.
        interval: How many seconds to leave between two questions.
        asked_at: When the server was asked last.
    """

    server: Server
    url: str
    code: str = ""
    expires_at: float
    interval: float = 0.0
    asked_at: float = 0.0
    secret: str = ""
    landing: _Landing | None = field(default=None)


class Logins:
    """The logins that are under way in this process."""

    def __init__(self, store: TokenStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._pending: dict[str, Pending] = {}
        self._lock = threading.Lock()

    def begin(self, server: Server) -> Pending:
        """Begin a login; one that was begun before is forgotten.

        Raises:
            LoginFailed: If the server does not want it.
        """
        complete = server.complete()
        pending = self._by_code(complete) if complete.flow == "device" else self._by_browser(complete)
        with self._lock:
            before = self._pending.get(server.name)
            self._pending[server.name] = pending
        if before is not None and before.landing is not None:
            before.landing.close()
        return pending

    def check(self, name: str) -> str:
        """Return how a login stands: `none`, `waiting` or `done`; the token is kept then.

        Raises:
            LoginFailed: If it was denied, or it is too late.
        """
        with self._lock:
            pending = self._pending.get(name)
            if pending is None:
                return "done" if self._store.get(name) else "none"
            token = self._ask(pending)
            if token is None:
                return "waiting"
            del self._pending[name]
        self._store.set(name, token)
        return "done"

    def _by_code(self, server: Server) -> Pending:
        import httpx2  # heavy, and needed only to log in

        asked = {"client_id": server.client_id, "scope": " ".join(server.scopes)}
        try:
            answer = httpx2.post(
                server.device_authorization_endpoint,
                data=asked,
                headers={"User-Agent": USER_AGENT},
                timeout=30,
            )
            answer.raise_for_status()
            found = answer.json()
            return Pending(
                server=server,
                url=found.get("verification_uri_complete") or found["verification_uri"],
                code=found["user_code"],
                expires_at=self._clock() + float(found["expires_in"]),
                interval=float(found.get("interval", _USUAL_INTERVAL)),
                secret=found["device_code"],
            )
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            raise LoginFailed(f"{server.name} does not begin a login: {error}") from error

    def _by_browser(self, server: Server) -> Pending:
        from authlib.common.security import generate_token

        landing = _Landing()
        verifier = generate_token(_VERIFIER)
        with client_of(server, redirect_uri=landing.address, code_challenge_method="S256") as client:
            url, landing.state = client.create_authorization_url(
                server.authorization_endpoint, code_verifier=verifier
            )
        return Pending(
            server=server,
            url=url,
            expires_at=self._clock() + _BROWSER_LOGIN,
            secret=verifier,
            landing=landing,
        )

    def _ask(self, pending: Pending) -> dict[str, Any] | None:
        """Return the token if it is there by now."""
        import httpx2
        from authlib.integrations.base_client import OAuthError

        too_late = f"the login at {pending.server.name} took too long: begin another one"
        now = self._clock()
        if now >= pending.expires_at:
            self._drop(pending)
            raise LoginFailed(too_late)
        if pending.landing is None and now - pending.asked_at < pending.interval:
            return None  # the server wants to be asked less often
        pending.asked_at = now
        try:
            return self._by_landing(pending) if pending.landing else self._by_device(pending)
        except OAuthError as error:
            if error.error in _WAITS:
                pending.interval += _SLOWER if error.error == "slow_down" else 0
                return None
            self._drop(pending)
            if error.error == "expired_token":
                raise LoginFailed(too_late) from error
            why = "it was denied" if error.error == "access_denied" else error.error
            raise LoginFailed(f"the login at {pending.server.name} failed: {why}") from error
        except httpx2.HTTPError:
            return None  # lost on the way; the next question may come through

    def _by_device(self, pending: Pending) -> dict[str, Any]:
        server = pending.server
        with client_of(server) as client:
            token = client.fetch_token(
                server.token_endpoint, grant_type=DEVICE_GRANT, device_code=pending.secret
            )
        return dict(token)

    def _by_landing(self, pending: Pending) -> dict[str, Any] | None:
        from authlib.integrations.base_client import OAuthError

        server, landing = pending.server, pending.landing
        assert landing is not None
        if landing.arrived is None:
            return None
        if "error" in landing.arrived:
            raise OAuthError(landing.arrived["error"])
        if landing.arrived.get("state") != landing.state:
            raise OAuthError("the answer belongs to another login")
        with client_of(server, redirect_uri=landing.address) as client:
            token = client.fetch_token(
                server.token_endpoint, code=landing.arrived["code"], code_verifier=pending.secret
            )
        landing.close()
        return dict(token)

    def _drop(self, pending: Pending) -> None:
        self._pending.pop(pending.server.name, None)
        if pending.landing is not None:
            pending.landing.close()


class _Landing:
    """The page on this machine to which the browser comes back.

    Attributes:
        arrived: The parameters with which it came; None before.
        state: What they must have, so that no other page can bring a code of its own.
    """

    def __init__(self) -> None:
        self.arrived: dict[str, str] | None = None
        self.state = ""
        landing = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                found = {key: values[0] for key, values in parse_qs(parts.query).items()}
                if parts.path == "/callback" and landing.arrived is None and found:
                    landing.arrived = found
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(_PAGE)

            def log_message(self, *_given: Any) -> None:
                """Say nothing: the address has the code."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="oauth-landing", daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/callback"

    def close(self) -> None:
        """Stop listening."""
        threading.Thread(target=self._shut, daemon=True).start()

    def _shut(self) -> None:
        self._server.shutdown()
        self._server.server_close()
