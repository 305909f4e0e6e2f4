"""People and what they may: their roles, API keys, shared sessions, and a record of what they did.

Whoever is not in a tenant cannot see that it has any sessions. Inside a tenant a role says what somebody may:
a viewer reads, an editor also runs agents and changes sessions, an owner also manages people and keys. A
session can be shared with one person more, by e-mail address, or with whoever has a link, to read.

Keys and links are random, so a plain hash of them is enough to keep: nobody finds 256 bits by trying.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_server.principal import ROLES, SCOPES
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_server.people.tables import Tables
    from agent_server.principal import Level

KEY_MARK = "kw_"
LINK_MARK = "kwl_"
PROVIDER_MARK = "#"
"""What stands between a provider and a person in the id of somebody who has logged in."""
_PERSON = "id, tenant, role, name, email, created, disabled"
_KEY = "id, person, name, scope, created, expires, revoked"
_SHARE = "id, session, tenant, email, role, created, expires, made_by, revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may use the server."""

    id: str
    tenant: str
    role: str
    name: str = ""
    email: str = ""
    created: float = 0.0
    disabled: bool = False

    @property
    def level(self) -> Level:
        return ROLES[self.role]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key of a person; the secret itself is known to whoever made it, once."""

    id: str
    person: str
    name: str
    scope: str
    created: float
    expires: float | None
    revoked: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A session that somebody else may see: an invited person, or whoever has a link."""

    id: str
    session: str
    tenant: str
    email: str | None
    role: str
    created: float
    expires: float | None
    made_by: str
    revoked: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "kind": "link" if self.email is None else "invitation"}


def digest(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts:
    """The people of a server. All methods block: call them in threads.

    Args:
        clock: The time, in seconds since 1970.
    """

    def __init__(self, tables: Tables, *, clock: Callable[[], float] = time.time) -> None:
        self.tables = tables
        self._clock = clock

    # People

    def add(self, person_id: str, *, tenant: str, role: str, name: str = "", email: str = "") -> Person:
        """Add a person, or return the one of that id.

        Raises:
            Problem: If there is no such role.
        """
        _check(role, ROLES, "role")
        self.tables.run(
            f"INSERT INTO people ({_PERSON}) VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT (id) DO NOTHING",
            person_id, tenant, role, name, email.lower(), self._clock(),
        )  # fmt: skip
        found = self.find(person_id)
        assert found is not None
        return found

    def find(self, person_id: str) -> Person | None:
        rows = self.tables.rows(f"SELECT {_PERSON} FROM people WHERE id = ?", person_id)
        return _person(rows[0]) if rows else None

    def people(self, tenant: str | None) -> list[Person]:
        """Return the people of a tenant, or all."""
        if tenant is None:
            rows = self.tables.rows(f"SELECT {_PERSON} FROM people ORDER BY id")
        else:
            rows = self.tables.rows(f"SELECT {_PERSON} FROM people WHERE tenant = ? ORDER BY id", tenant)
        return [_person(row) for row in rows]

    def change(
        self, person_id: str, tenant: str | None, *, role: str | None, disabled: bool | None
    ) -> Person | None:
        """Give a person another role, or lock one out; None if the tenant has nobody of that id."""
        if role is not None:
            _check(role, ROLES, "role")
        known = self.find(person_id)
        if known is None or (tenant is not None and known.tenant != tenant):
            return None
        self.tables.run(
            "UPDATE people SET role = ?, disabled = ? WHERE id = ?",
            role or known.role, int(known.disabled if disabled is None else disabled), person_id,
        )  # fmt: skip
        return self.find(person_id)

    def describe(self, person: Person, *, name: str, email: str) -> Person:
        """Give a person another name and address."""
        self.tables.run("UPDATE people SET name = ?, email = ? WHERE id = ?", name, email.lower(), person.id)
        return replace(person, name=name, email=email.lower())

    # API keys

    def new_key(self, person_id: str, *, name: str, scope: str, seconds: float | None) -> tuple[ApiKey, str]:
        """Make a key, and return it with its secret, which nobody can find out later."""
        _check(scope, SCOPES, "scope")
        secret, now = f"{KEY_MARK}{secrets.token_urlsafe(32)}", self._clock()
        key_id, expires = uuid4().hex, None if seconds is None else now + seconds
        self.tables.run(
            f"INSERT INTO api_keys (hash, {_KEY}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
            digest(secret), key_id, person_id, name, scope, now, expires,
        )  # fmt: skip
        key = ApiKey(
            id=key_id, person=person_id, name=name, scope=scope, created=now, expires=expires, revoked=None
        )
        return key, secret

    def keys(self, person_id: str) -> list[ApiKey]:
        rows = self.tables.rows(f"SELECT {_KEY} FROM api_keys WHERE person = ? ORDER BY created", person_id)
        return [_key(row) for row in rows]

    def revoke_key(self, key_id: str, person_id: str) -> bool:
        """Make a key of a person worthless; False if there is none of that id."""
        sql = "UPDATE api_keys SET revoked = ? WHERE id = ? AND person = ? AND revoked IS NULL"
        return bool(self.tables.run(sql, self._clock(), key_id, person_id))

    def key_of(self, secret: str) -> tuple[ApiKey, Person] | None:
        """Return the key that a secret is, and whose it is; None if it is none, or is not good any more."""
        rows = self.tables.rows(f"SELECT {_KEY} FROM api_keys WHERE hash = ?", digest(secret))
        if not rows:
            return None
        key = _key(rows[0])
        if key.revoked is not None or (key.expires is not None and key.expires <= self._clock()):
            return None
        person = self.find(key.person)
        return None if person is None or person.disabled else (key, person)

    def sealed_key(self, person_id: str, provider: str) -> str | None:
        """Return the key that a person has stored for a provider, as the vault has sealed it."""
        sql = "SELECT sealed FROM provider_keys WHERE person = ? AND provider = ?"
        rows = self.tables.rows(sql, person_id, provider)
        return str(rows[0][0]) if rows else None

    # Shared sessions

    def invite(
        self, session: str, tenant: str, *, email: str, role: str, made_by: str, seconds: float | None
    ) -> Share:
        """Let one person more see a session, or work in it."""
        _check(role, {name: level for name, level in ROLES.items() if name != "owner"}, "role")
        return self._share(session, tenant, email.lower(), None, role, made_by, seconds)

    def invite_to_branch(self, email: str, session: str, branch: str) -> None:
        """Let a guest use a branch that they made, as long and as much as the session that it comes from.

        Such an invitation has the id of the other one and something more, and is revoked with it.
        """
        share = self.invitation_of(email, session)
        if share is not None:
            self._store_share(replace(share, id=f"{share.id}.{uuid4().hex[:8]}", session=branch), None)

    def new_link(
        self, session: str, tenant: str, *, made_by: str, seconds: float | None
    ) -> tuple[Share, str]:
        """Let whoever has a secret read a session, and return that secret."""
        secret = f"{LINK_MARK}{secrets.token_urlsafe(32)}"
        return self._share(session, tenant, None, digest(secret), "viewer", made_by, seconds), secret

    def _share(
        self,
        session: str,
        tenant: str,
        email: str | None,
        hashed: str | None,
        role: str,
        made_by: str,
        seconds: float | None,
    ) -> Share:
        now = self._clock()
        share = Share(
            id=uuid4().hex, session=session, tenant=tenant, email=email, role=role, created=now,
            expires=None if seconds is None else now + seconds, made_by=made_by, revoked=None,
        )  # fmt: skip
        self._store_share(share, hashed)
        return share

    def _store_share(self, share: Share, hashed: str | None) -> None:
        self.tables.run(
            f"INSERT INTO shares (hash, {_SHARE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            hashed, share.id, share.session, share.tenant, share.email, share.role, share.created,
            share.expires, share.made_by,
        )  # fmt: skip

    def shares(self, session: str, tenant: str) -> list[Share]:
        """Return how a session is shared now."""
        rows = self.tables.rows(
            f"SELECT {_SHARE} FROM shares WHERE session = ? AND tenant = ? AND revoked IS NULL "
            "ORDER BY created",
            session, tenant,
        )  # fmt: skip
        return [share for row in rows if self._is_good(share := _share(row))]

    def revoke_share(self, share_id: str, session: str, tenant: str) -> bool:
        """Take a share back, with those of branches that were made by it; False if there is none."""
        sql, now = "UPDATE shares SET revoked = ? WHERE {} AND tenant = ? AND revoked IS NULL", self._clock()
        if not self.tables.run(sql.format("id = ? AND session = ?"), now, share_id, session, tenant):
            return False
        self.tables.run(sql.format("id LIKE ?"), now, f"{share_id}.%", tenant)
        return True

    def link_of(self, secret: str) -> Share | None:
        """Return the link that a secret is; None if it is none, or is not good any more."""
        rows = self.tables.rows(f"SELECT {_SHARE} FROM shares WHERE hash = ?", digest(secret))
        return share if rows and self._is_good(share := _share(rows[0])) else None

    def invitation_of(self, email: str, session: str) -> Share | None:
        """Return the invitation of a person to a session of another tenant."""
        if not email:
            return None
        rows = self.tables.rows(
            f"SELECT {_SHARE} FROM shares WHERE session = ? AND email = ? AND revoked IS NULL "
            "ORDER BY created",
            session, email,
        )  # fmt: skip
        good = [share for row in rows if self._is_good(share := _share(row))]
        return max(good, key=lambda share: ROLES[share.role], default=None)

    def invitations(self, email: str) -> list[Share]:
        """Return the sessions that others have shared with a person."""
        if not email:
            return []
        sql = f"SELECT {_SHARE} FROM shares WHERE email = ? AND revoked IS NULL ORDER BY created"
        return [share for row in self.tables.rows(sql, email) if self._is_good(share := _share(row))]

    def _is_good(self, share: Share) -> bool:
        return share.revoked is None and (share.expires is None or share.expires > self._clock())

    # What happened

    def note(self, *, tenant: str, person: str, action: str, target: str, outcome: str, address: str) -> None:
        """Write down what somebody did."""
        self.tables.run(
            "INSERT INTO audit (id, at, tenant, person, action, target, outcome, address) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            uuid4().hex, self._clock(), tenant, person, action, target, outcome, address,
        )  # fmt: skip

    def noted(
        self, tenant: str | None, *, before: float | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return what happened last in a tenant, or at all."""
        names = ("id", "at", "tenant", "person", "action", "target", "outcome", "address")
        where, values = ["1 = 1"], list[Any]()
        for condition, value in (("tenant = ?", tenant), ("at < ?", before)):
            if value is not None:
                where.append(condition)
                values.append(value)
        rows = self.tables.rows(
            f"SELECT {', '.join(names)} FROM audit WHERE {' AND '.join(where)} ORDER BY at DESC, id LIMIT ?",
            *values, limit,
        )  # fmt: skip
        return [dict(zip(names, row, strict=True)) for row in rows]

    def add_usage(self, person: str, *, runs: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Count what a person used today."""
        self.tables.run(
            "INSERT INTO usage (person, day, runs, tokens, cost) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (person, day) DO UPDATE SET runs = usage.runs + excluded.runs, "
            "tokens = usage.tokens + excluded.tokens, cost = usage.cost + excluded.cost",
            person, self.day(), runs, tokens, cost,
        )  # fmt: skip

    def used_today(self, person: str) -> dict[str, float]:
        sql = "SELECT runs, tokens, cost FROM usage WHERE person = ? AND day = ?"
        rows = self.tables.rows(sql, person, self.day())
        runs, tokens, cost = rows[0] if rows else (0, 0, 0.0)
        return {"runs": runs, "tokens": tokens, "cost": cost}

    def day(self) -> str:
        """Return today's date, which is the same everywhere."""
        return time.strftime("%Y-%m-%d", time.gmtime(self._clock()))


def _check(word: str, known: Any, what: str) -> None:
    if word not in known:
        raise Problem(
            422, "invalid-argument", f"There is no {what} {word!r}", f"There are {', '.join(known)}."
        )


def _person(row: Sequence[Any]) -> Person:
    person_id, tenant, role, name, email, created, disabled = row
    return Person(
        id=person_id,
        tenant=tenant,
        role=role,
        name=name,
        email=email,
        created=created,
        disabled=bool(disabled),
    )


def _key(row: Sequence[Any]) -> ApiKey:
    key_id, person, name, scope, created, expires, revoked = row
    return ApiKey(
        id=key_id, person=person, name=name, scope=scope, created=created, expires=expires, revoked=revoked
    )


def _share(row: Sequence[Any]) -> Share:
    share_id, session, tenant, email, role, created, expires, made_by, revoked = row
    return Share(
        id=share_id, session=session, tenant=tenant, email=email, role=role, created=created,
        expires=expires, made_by=made_by, revoked=revoked,
    )  # fmt: skip
