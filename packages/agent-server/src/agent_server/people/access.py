"""Who makes a request where there are several people: by a key, a token of the provider, a cookie, a link.

Every request that changes something, and every one that was refused, is written down.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import secrets
import time
from typing import TYPE_CHECKING

from agent_core.log import get_logger
from agent_server.access import COOKIE_SECONDS
from agent_server.people.accounts import KEY_MARK, LINK_MARK, PROVIDER_MARK
from agent_server.principal import PRINCIPAL, ROLES, SAFE, SCOPES, Level, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_server.access import LocalAccess
    from agent_server.people.accounts import Accounts, Person
    from agent_server.people.oidc import OidcProvider
    from agent_server.people.quota import Quota
    from agent_server.people.vault import Vault

LOGIN_SECONDS = 600
LOGIN_PATH = "/login/oidc"
LINK_ID = "link "
"""With what the id of somebody who has a link begins."""


class TeamAccess:
    """The access of several people. The token of the server is its operator's.

    Args:
        local: Knows the operator's token, links and cookies.
        accounts: Knows people and their keys.
        vault: Signs cookies.
        quota: Counts requests.
        provider: Logs people in, if there is one.
        clock: The time, in seconds since 1970.
    """

    def __init__(
        self,
        local: LocalAccess,
        accounts: Accounts,
        vault: Vault,
        quota: Quota,
        provider: OidcProvider | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.local = local
        self.accounts = accounts
        self.vault = vault
        self.quota = quota
        self.provider = provider
        self._clock = clock

    @property
    def login(self) -> str:
        """Where people log in, if they have a provider for that."""
        return "" if self.provider is None else LOGIN_PATH

    async def bearer(self, token: str) -> Principal | None:
        """Return whose token that is."""
        if token.startswith(KEY_MARK):
            found = await asyncio.to_thread(self.accounts.key_of, token)
            if found is None:
                return None
            key, person = found
            return _principal(person, min(person.level, SCOPES[key.scope]))
        if token.startswith(LINK_MARK):
            share = await asyncio.to_thread(self.accounts.link_of, token)
            if share is None:
                return None
            return Principal(
                id=f"{LINK_ID}{share.id}", tenant=share.tenant, level=ROLES[share.role], session=share.session
            )
        known = await self.local.bearer(token)
        if known is not None or self.provider is None or token.count(".") != 2:  # noqa: PLR2004 - a JWT has
            return known
        settings = self.provider.settings
        claims = await self.provider.claims(token, audience=settings.audience or settings.client_id)
        person = await self.person_of(claims)
        return None if person.disabled else _principal(person, person.level)

    async def cookie(self, value: str) -> Principal | None:
        """Return whose browser has a cookie: that of a person, the operator's, or the secret of a link."""
        if value.startswith(LINK_MARK):
            return await self.bearer(value)
        content, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self.vault.sign(content).encode()):
            return await self.local.cookie(value)
        ends, _, rest = content.partition(".")
        if not ends.isdecimal() or int(ends) <= self._clock():
            return None
        person_id = base64.urlsafe_b64decode(rest.partition(".")[0]).decode()
        person = await asyncio.to_thread(self.accounts.find, person_id)
        return None if person is None or person.disabled else _principal(person, person.level)

    def new_cookie(self, person: Person) -> str:
        """Return a cookie by which the browser of a person is known."""
        name = base64.urlsafe_b64encode(person.id.encode()).decode()
        content = f"{int(self._clock()) + COOKIE_SECONDS}.{name}.{secrets.token_urlsafe(16)}"
        return f"{content}.{self.vault.sign(content)}"

    async def person_of(self, claims: Mapping[str, Any]) -> Person:
        """Return the person whom the provider names; one who comes for the first time is added.

        What the provider says of a person's name and address now is what counts from now on.
        """
        assert self.provider is not None
        settings = self.provider.settings
        person_id = f"{settings.issuer}{PROVIDER_MARK}{claims['sub']}"
        named = claims.get(settings.tenant_claim) if settings.tenant_claim else None
        tenant, role = (str(named), settings.role) if named else (f"of {person_id}", "owner")
        # An address that nobody has confirmed would open what others have shared with its owner.
        email = str(claims.get("email") or "") if claims.get("email_verified") is True else ""
        name = str(claims.get("name") or "")
        person = await asyncio.to_thread(
            self.accounts.add, person_id, tenant=tenant, role=role, name=name, email=email
        )
        # A token that says nothing of these, as tokens of programs may, leaves them as they are.
        known = (
            name if "name" in claims else person.name,
            email.lower() if "email" in claims else person.email,
        )
        if known == (person.name, person.email):
            return person
        return await asyncio.to_thread(self.accounts.describe, person, name=known[0], email=known[1])

    async def check(self, principal: Principal) -> None:
        """Count a request.

        Raises:
            Problem: If somebody makes too many.
        """
        if principal.level < Level.OPERATE:
            await self.quota.check_rate(principal.id)


def _principal(person: Person, level: Level) -> Principal:
    return Principal(id=person.id, tenant=person.tenant, level=level, email=person.email)


_REFUSALS = frozenset({401, 403, 429})
_log = get_logger("server")


class Audited:
    """Writes down who asked for what, when, from where, and what came of it; never what was said."""

    def __init__(self, app: ASGIApp, accounts: Accounts) -> None:
        self._app = app
        self._accounts = accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if scope["method"] not in SAFE or status in _REFUSALS:
                    await self._note(scope, status)  # first: what is answered is written down
            await send(message)

        await self._app(scope, receive, send_noted)

    async def _note(self, scope: Scope, status: int) -> None:
        who: Principal | None = scope.get(PRINCIPAL)
        client = scope.get("client")
        try:
            await asyncio.to_thread(
                self._accounts.note,
                tenant="" if who is None or who.tenant is None else who.tenant,
                person="" if who is None else who.id,
                action=scope["method"],
                target=scope["path"][:500],
                outcome=str(status),
                address="" if client is None else str(client[0]),
            )
        except Exception as error:  # whatever a database raises: the request goes on
            _log.error("audit_not_written", error=repr(error), path=scope["path"])
