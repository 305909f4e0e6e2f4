"""Permissions that outlive one call: kept once each, found by where they count."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import TYPE_CHECKING, get_args

from agent_app.store.base import Grant, GrantEffect, GrantScope
from agent_app.store.records import decode_stored as decode, encode
from agent_app.store.sessions import find, hold, is_name, tenant_of
from agent_app.store.tenants import condition
from agent_core import ArgumentError

if TYPE_CHECKING:
    from agent_app.store.database import Database, Row, Transaction

_GRANT = "id, body, created"


def check(grant: Grant) -> None:
    """Refuse a grant that could not be found again, or that nobody could understand.

    Raises:
        ArgumentError: With what is wrong about it.
    """
    if not is_name(grant.id):
        raise ArgumentError(f"{grant.id!r:.80} is not an id of a grant: 1 to 500 readable characters are")
    for what, value, known in (("effect", grant.effect, GrantEffect), ("scope", grant.scope, GrantScope)):
        if value not in get_args(known):
            raise ArgumentError(f"{value!r:.80} is no {what} of a grant: {', '.join(get_args(known))} are")
    if not isinstance(grant.pattern, str) or not grant.pattern:
        raise ArgumentError(f"grant {grant.id!r} has no pattern: say which calls it is for")
    if not isinstance(grant.key, str) or bool(grant.key) == (grant.scope == "always"):
        raise ArgumentError(
            f"grant {grant.id!r} has the key {grant.key!r:.80}: it must be the id of a session, the path of "
            "a project, or empty for always"
        )
    if not isinstance(grant.note, str) or not math.isfinite(grant.created):
        raise ArgumentError(f"grant {grant.id!r} needs a note that is text, and the time of its making")


def add(database: Database, transaction: Transaction, grant: Grant) -> Grant:
    """Keep a grant, and return the one that is kept: one that says the same may be there already.

    Raises:
        SessionNotFound: If it is for a session that is not there.
        ArgumentError: If its id is that of a grant that says something else.
    """
    session_id = grant.key if grant.scope == "session" else None
    if session_id is not None:
        hold(database, transaction, session_id)
    tenant = tenant_of(transaction, session_id)
    what = _hash(grant.effect, grant.pattern, grant.scope, grant.key, *_whose(tenant))
    made = transaction.run(
        "INSERT INTO grants (id, what, whose, session, body, created, tenant) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        grant.id, what, _hash(grant.scope, grant.key, *_whose(tenant)), session_id, _body(grant),
        grant.created, tenant,
    )  # fmt: skip
    if made:
        return grant
    rows = transaction.rows(f"SELECT {_GRANT} FROM grants WHERE what = ?", what)
    if rows:
        return _grant(rows[0])
    if transaction.rows("SELECT 1 FROM grants WHERE id = ?", grant.id):
        raise ArgumentError(f"the id {grant.id!r} belongs to another grant: ids are used once")
    return add(database, transaction, grant)  # what was in the way has been taken back


def find_all(transaction: Transaction, session_id: str | None, project: str | None) -> list[Grant]:
    """Return all grants, or those that count in a session and a project, in the order of their making."""
    if session_id is not None:
        find(transaction, session_id)
    whose = _whose(tenant_of(transaction, session_id))
    places = [_hash("always", "", *whose)]
    places += [_hash("session", session_id, *whose)] if session_id is not None else []
    places += [_hash("project", project, *whose)] if project is not None else []
    where = f"whose IN ({', '.join('?' * len(places))})"
    if session_id is None and project is None:
        where, places = "1 = 1", []
    own, tenant = condition(transaction, "tenant")
    rows = transaction.rows(
        f"SELECT {_GRANT} FROM grants WHERE {where} AND {own} ORDER BY created, id", *places, *tenant
    )
    return [_grant(row) for row in rows]


def remove(transaction: Transaction, grant_id: str) -> bool:
    """Take a grant back."""
    own, tenant = condition(transaction, "tenant")
    sql = f"DELETE FROM grants WHERE id = ? AND {own}"
    return is_name(grant_id) and bool(transaction.run(sql, grant_id, *tenant))


def _whose(tenant: str) -> tuple[str, ...]:
    """Return what the hashes of a grant have besides: those of the default tenant are as they always were."""
    return (tenant,) if tenant else ()


def _hash(*parts: str) -> bytes:
    return sha256(encode(parts)).digest()


def _body(grant: Grant) -> bytes:
    return encode([grant.effect, grant.pattern, grant.scope, grant.key, grant.note])


def _grant(row: Row) -> Grant:
    grant_id, body, created = row
    effect, pattern, scope, key, note = decode(body)
    return Grant(
        id=grant_id, pattern=pattern, effect=effect, scope=scope, key=key, created=created, note=note
    )
