"""Logging in with an OpenID provider: the code flow with PKCE for browsers, and its tokens for programs.

Tokens are checked with joserfc. The provider's keys are kept for an hour; a token that is signed with another
key has them fetched again, at most every few seconds, so a provider can change its keys at any time.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from agent_core.product import USER_AGENT
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx2

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a pair of keys; a shared secret, or none, is not accepted whatever a token says."""
KEPT_SECONDS = 3600.0
AGAIN_SECONDS = 5.0
LEEWAY = 60
_TIMEOUT = 10.0
_LONGEST_TOKEN = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """How people log in.

    Attributes:
        issuer: The address of the provider, as its tokens have it.
        client_id: What the server is called there.
        public_url: Where browsers reach this server: the provider sends them back there.
        client_secret: By which it proves that, if the provider wants a proof.
        audience: Whom tokens of programs must be for; the client id by default.
        tenant_claim: Which claim names the tenant; without it, everybody has one of their own.
        role: The role of people who come for the first time, where a claim names their tenant.
    """

    issuer: str
    client_id: str
    public_url: str
    client_secret: str = ""
    audience: str = ""
    tenant_claim: str = ""
    role: str = "editor"


class LoginRefused(Problem):
    """Somebody could not be logged in."""

    def __init__(self, detail: str) -> None:
        super().__init__(401, "login-refused", "The login did not succeed", detail)


class OidcProvider:
    """One provider.

    Args:
        clock: The time, in seconds since 1970.
    """

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], float] = time.time) -> None:
        import httpx2  # of the extra "team"

        if urlsplit(settings.issuer).scheme != "https" and not _is_local(settings.issuer):
            raise ValueError(f"the provider {settings.issuer} must be reached by https://")
        self.settings = settings
        self._clock = clock
        self._http: httpx2.AsyncClient = httpx2.AsyncClient(
            headers={"User-Agent": USER_AGENT}, timeout=_TIMEOUT, follow_redirects=False
        )
        self._about: Mapping[str, Any] | None = None
        self._keys: Any = None
        self._fetched = 0.0
        self._fetching = asyncio.Lock()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    # Tokens

    async def claims(self, token: str, *, audience: str, nonce: str | None = None) -> Mapping[str, Any]:
        """Return what a token says, if the provider signed it, for us, and it is still good.

        Raises:
            LoginRefused: If not.
        """
        from joserfc import jwt
        from joserfc.errors import JoseError

        if len(token) > _LONGEST_TOKEN:
            raise LoginRefused("The token is too long.")
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY,
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            decoded = jwt.decode(token, await self._keys_for(token), algorithms=list(ALGORITHMS))
            registry.validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise LoginRefused("The token is not one of the provider for this server, or too old.") from error
        if nonce is not None and decoded.claims.get("nonce") != nonce:
            raise LoginRefused("The token belongs to another login.")
        return dict(decoded.claims)

    async def _keys_for(self, token: str) -> Any:
        """Return the provider's keys: those that are kept, unless the token names another one."""
        kid = _header(token).get("kid")
        now = self._clock()
        known = {key.kid for key in self._keys.keys} if self._keys is not None else set()
        if self._keys is not None and now - self._fetched < KEPT_SECONDS and (kid is None or kid in known):
            return self._keys
        async with self._fetching:
            if self._keys is None or self._clock() - self._fetched >= AGAIN_SECONDS:
                from joserfc.jwk import KeySet

                found = await self._get((await self._discovered())["jwks_uri"])
                self._keys, self._fetched = KeySet.import_key_set(found), self._clock()
        return self._keys

    async def _discovered(self) -> Mapping[str, Any]:
        if self._about is None:
            about = await self._get(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if about.get("issuer") != self.settings.issuer:
                raise LoginRefused("The provider says that it is another one.")
            self._about = about
        return self._about

    async def _get(self, url: str) -> Any:
        import httpx2

        try:
            answer = await self._http.get(url)
            return answer.raise_for_status().json()
        except (httpx2.HTTPError, ValueError) as error:
            raise Problem(
                502, "provider-unreachable", "The login provider cannot be asked", "Try again.",
                headers={"retry-after": "5"},
            ) from error  # fmt: skip

    # The login of a browser

    async def begin(self, redirect: str) -> tuple[str, str]:
        """Return the address at which somebody logs in, and what to remember until they come back."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": "openid profile email",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = (await self._discovered())["authorization_endpoint"]
        join = "&" if urlsplit(endpoint).query else "?"
        kept = base64.urlsafe_b64encode(json.dumps([state, nonce, verifier]).encode()).decode()
        return f"{endpoint}{join}{urlencode(asked)}", kept

    async def finish(self, kept: str, *, code: str, state: str, redirect: str) -> Mapping[str, Any]:
        """Return who has logged in.

        Raises:
            LoginRefused: If it is not the login that was begun, or the provider does not confirm it.
        """
        import httpx2

        try:
            wanted, nonce, verifier = json.loads(base64.urlsafe_b64decode(kept))
        except ValueError as error:
            raise LoginRefused("The login was not begun here. Begin again.") from error
        if not secrets.compare_digest(str(wanted), state):
            raise LoginRefused("The login was not begun here. Begin again.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self.settings.client_id,
            "code_verifier": verifier,
        }
        if self.settings.client_secret:
            form["client_secret"] = self.settings.client_secret
        endpoint = (await self._discovered())["token_endpoint"]
        try:
            answer = await self._http.post(endpoint, data=form)
            token = answer.raise_for_status().json()["id_token"]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            raise LoginRefused("The provider did not confirm the login.") from error
        return await self.claims(str(token), audience=self.settings.client_id, nonce=nonce)


def _header(token: str) -> Mapping[str, Any]:
    try:
        head = token.partition(".")[0]
        found = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
