"""Who may: a token for programs, a cookie for browsers, and not a word to pages of other sites.

A server on a laptop can be reached by every page that its user opens: by a request to 127.0.0.1, or through a
name that suddenly means 127.0.0.1. So each request needs a token, wherever it comes from, and before that:

- its Host must be a name of this server (421), which stops names that were rebound;
- its Origin, if it has one, must be this server (403), and `Sec-Fetch-Site` must not name another site;
- a cookie counts for requests of our own pages alone: it is SameSite=Strict, and whatever changes something
  needs a header besides that no form can send.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Protocol

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse

from agent_server.principal import PRINCIPAL, SAFE, Principal, needed
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

AUTHENTICATE = "keelwork.authenticate"
"""Where the scope of a request has what finds out anew who makes it."""
COOKIE = "keelwork"
CSRF_HEADER = "x-keelwork"
"""A header that no form can send, and no script of another site without asking first."""
LINK_SECONDS = 600.0
"""How long a link that logs a browser in can be used."""
COOKIE_SECONDS = 30 * 86400
SHORTEST_TOKEN = 16
OPEN_PATHS = frozenset({"/livez", "/readyz", "/login", "/login/oidc", "/login/oidc/callback"})
"""What is answered without a token: whether the server is there, and what logs a browser in."""


_LINKS = frozenset({"/", "/login", "/login/oidc", "/login/oidc/callback"})
"""What pages of other sites may link to, the provider of logins among them."""


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


_STRANGER = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><title>Keelwork</title>
<h1>You are not logged in</h1>
<p>{how}</p></html>
"""
_STRANGER_HEADERS = {
    "content-security-policy": "default-src 'none'; img-src data:",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Access(Protocol):
    """Knows who may."""

    @property
    def login(self) -> str:
        """Where people log in; empty if each link to do so is handed to them."""

    async def bearer(self, token: str) -> Principal | None:
        """Return whose token that is; None if it is nobody's."""

    async def cookie(self, value: str) -> Principal | None:
        """Return whose browser has a cookie; None if it is nobody's."""

    async def check(self, principal: Principal) -> None:
        """Count a request.

        Raises:
            Problem: If somebody makes too many.
        """


def new_token() -> str:
    """Return a token that nobody guesses."""
    return secrets.token_urlsafe(32)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class LocalAccess:
    """The access of one person: a token, links that work once, and the browsers that have used one.

    A cookie says when it ends, and is signed with a key made from the token: it survives a restart of the
    server, and a new token makes all of them worthless.
    """

    login = ""

    def __init__(self, token: str, *, clock: Callable[[], float] = time.time) -> None:
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise ValueError(f"a token has at least {SHORTEST_TOKEN} printable ASCII characters")
        self._token = _digest(token)
        self._key = _digest(f"cookie {token}")
        self._clock = clock
        self._links: dict[bytes, float] = {}

    def accepts(self, token: str) -> bool:
        """Say whether that is the token; takes as long for one wrong token as for another."""
        return hmac.compare_digest(self._token, _digest(token))

    async def bearer(self, token: str) -> Principal | None:
        """Return the owner of the token, who may do everything."""
        return Principal() if self.accepts(token) else None

    async def cookie(self, value: str) -> Principal | None:
        """Return the owner of the token, if it is their browser."""
        return Principal() if self.accepts_cookie(value) else None

    async def check(self, principal: Principal) -> None:
        """Do nothing: one person may make as many requests as the machine takes."""

    def new_link(self) -> str:
        """Return the secret of a link that logs a browser in, once and soon."""
        now = self._clock()
        self._links = {link: ends for link, ends in self._links.items() if ends > now}
        secret = new_token()
        self._links[_digest(secret)] = now + LINK_SECONDS
        return secret

    def use_link(self, secret: str) -> str | None:
        """Return the cookie for whoever has a link; None if it was used already, or is too old."""
        ends = self._links.pop(_digest(secret), 0.0)
        if ends <= self._clock():
            return None
        content = f"{int(self._clock()) + COOKIE_SECONDS}.{secrets.token_urlsafe(16)}"
        return f"{content}.{self._sign(content)}"

    def accepts_cookie(self, cookie: str) -> bool:
        """Say whether a browser has a cookie of ours that is still good."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return False
        ends = content.partition(".")[0]
        return ends.isdecimal() and int(ends) > self._clock()

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


class Proxies:
    """The proxies in front of the server, whose word counts for whether a browser came by TLS.

    Everybody can send `X-Forwarded-Proto`, so it is read from these addresses alone.

    Args:
        addresses: Their addresses, or networks such as 10.0.0.0/8.

    Raises:
        ValueError: If one of them is neither.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks = [_network(address) for address in addresses]

    def scheme(self, scope: Scope) -> str:
        """Return `https` or `http`: how the browser's request came to us, or to the proxy before us."""
        said = [value for name, value in scope["headers"] if name == b"x-forwarded-proto"]
        if not said or not self._trust(scope.get("client")):
            return str(scope["scheme"])
        # A proxy that adds to what it was sent adds at the end: what comes before may be the client's.
        return "https" if said[-1].rpartition(b",")[2].strip().lower() == b"https" else "http"

    def _trust(self, client: tuple[str, int] | None) -> bool:
        try:
            address = ipaddress.ip_address(client[0] if client else "")
        except ValueError:  # no socket of the network
            return False
        mapped = getattr(address, "ipv4_mapped", None)  # as a socket for both versions shows version 4
        return any((mapped or address) in network for network in self._networks)


def _network(address: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        given = ipaddress.ip_interface(address)
    except ValueError:
        raise ValueError(
            f"{address!r} is neither an address nor a network such as 10.0.0.0/8; names are not looked up"
        ) from None
    if given.ip != given.network.network_address:
        raise ValueError(
            f"{address!r} is one address with the size of a network: write {given.ip}, or {given.network} "
            "for all proxies there"
        )
    return given.network


class Gate:
    """Lets those requests through that may be made; the others get an answer that says why not.

    Args:
        access: Knows who may.
        hosts: The names under which the server is reached, without ports.
    """

    def __init__(self, app: ASGIApp, access: Access, hosts: Collection[str]) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":  # there are none; a page of another site need not learn more
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        try:
            scope[PRINCIPAL] = await self._check(scope)
        except Problem as problem:
            await self._refusal(scope, problem)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, problem: Problem) -> Response:
        """Return the answer to a request that may not be made; people who open the page can read why."""
        is_page = scope["path"] == "/" and "text/html" in Headers(scope=scope).get("accept", "")
        if problem.kind != "unauthorized" or not is_page:
            return problem.response(scope)
        how = "Open the link that <code>agent serve</code> prints. It works once: start it again for another."
        if self._access.login:
            how = f'<a href="{self._access.login}">Log in</a>'
        return HTMLResponse(
            _STRANGER.format(how=how), problem.status, {**problem.headers, **_STRANGER_HEADERS}
        )

    async def _check(self, scope: Scope) -> Principal | None:
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_site(scope, headers)
        _check_path(scope["path"])
        if scope["path"] in OPEN_PATHS:
            return None
        principal = scope[PRINCIPAL] = await self._authenticated(scope, headers)
        scope[AUTHENTICATE] = partial(self._authenticated, scope, headers)
        await self._access.check(principal)
        if principal.level < needed(scope["method"], scope["path"]):
            raise Problem(403, "not-allowed", "Your role, or the scope of your key, does not allow that")
        return principal

    async def _authenticated(self, scope: Scope, headers: Headers) -> Principal:
        bearer = _bearer(headers)
        if bearer is not None:
            principal = await self._access.bearer(bearer)
            if principal is None:
                raise _unauthorized(
                    "The token is not one of this server, or not good any more.", "invalid_token"
                )
            return principal
        cookie = _cookie(headers)
        principal = None if cookie is None else await self._access.cookie(cookie)
        if principal is None:
            raise _unauthorized(
                "Send `Authorization: Bearer TOKEN`, or open the link that `agent serve` prints."
            )
        if scope["method"] not in SAFE and CSRF_HEADER not in headers:
            raise Problem(
                403, "csrf", "The request may come from another page", f"Send the header {CSRF_HEADER}: 1."
            )
        return principal

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        if len(given) != 1 or _host_name(given[0]) not in self._hosts:
            raise Problem(
                421,
                "unknown-host",
                "This server is not known under that name",
                "Use the address that `agent serve` prints, or start it with --allow-host NAME.",
            )

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        origins = headers.getlist("origin")
        own = {f"{scheme}://{headers['host'].lower()}" for scheme in ("http", "https")}
        if any(origin.lower() not in own for origin in origins):
            raise Problem(403, "foreign-origin", "Pages of other sites may not use this server")
        site = headers.get("sec-fetch-site", "none")
        is_link = scope["path"] in _LINKS and scope["method"] in SAFE
        if site not in ("none", "same-origin") and not is_link:
            raise Problem(403, "foreign-site", "Pages of other sites may not use this server")


def _check_path(path: str) -> None:
    """Refuse control characters: a route leaves a line break at the end out, what a path needs does not.

    Raises:
        Problem: If there are any.
    """
    if _CONTROL.search(path):
        raise Problem(400, "invalid-path", "The address has a control character, such as a line break")


def _host_name(host: str) -> str:
    """Return a Host without its port; an address of version 6 stays in brackets."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() and not host.endswith("]") else host.lower()


def _bearer(headers: Headers) -> str | None:
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str | None:
    found: list[str] = []
    for header in headers.getlist("cookie"):
        try:
            found += [morsel.value for name, morsel in SimpleCookie(header).items() if name == COOKIE]
        except CookieError:
            continue
    return found[0] if len(found) == 1 else None


def _unauthorized(detail: str, error: str = "") -> Problem:
    challenge = f'Bearer realm="keelwork", error="{error}"' if error else 'Bearer realm="keelwork"'
    return Problem(401, "unauthorized", "A token is needed", detail, headers={"www-authenticate": challenge})
