"""Who may write a session: one process at a time, for as long as it says that it still does.

The right is a row that every save looks at in its own transaction. Its number rises with every taking, so
a process that was stopped and goes on later, when somebody else has taken over, is refused. With its owner
the row has a proof, by which others see whether the owner lives; `processes` says how.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_app.errors import LeaseLost, SessionHeld
from agent_app.store import processes
from agent_app.store.base import Lease
from agent_app.store.sessions import PROOF, is_name, read_lease
from agent_app.store.tenants import condition

if TYPE_CHECKING:
    from agent_app.store.database import Transaction
    from agent_app.store.processes import Moment

_TAKE_FREE = (
    "INSERT INTO leases (session, owner, token, expires) "
    "SELECT s.id, ?, (SELECT highest + 1 FROM past), ? FROM sessions s WHERE s.id = ? AND {own} "
    "ON CONFLICT (session) DO UPDATE SET owner = excluded.owner, token = leases.token + 1, "
    "expires = excluded.expires WHERE leases.expires = 0 "
    "RETURNING token, (SELECT s.revision FROM sessions s WHERE s.id = leases.session), "
    "EXISTS (SELECT 1 FROM approvals a WHERE a.session = leases.session AND a.used = 0), "
    "EXISTS (SELECT 1 FROM inputs i WHERE i.session = leases.session)"
)


class Taken(NamedTuple):
    """The right to write a session, and what its new owner finds there.

    Attributes:
        revision: The session's revision.
        asks: Whether there may be approvals that no run has gone on with.
        waits: Whether messages may wait to be delivered.
    """

    lease: Lease
    revision: int
    asks: bool = True
    waits: bool = True


def this_process() -> str:
    """Return a name for this process that tells a person which one it is."""
    program = Path(sys.argv[0] or "python").name
    return f"{program}, process {os.getpid()} on {socket.gethostname()}"


def acquire(
    transaction: Transaction,
    session_id: str,
    owner: str,
    held: Lease | None,
    moment: Moment,
    *,
    seconds: float,
) -> Lease:
    """Take the right to write a session that is held for the length of the transaction.

    Args:
        held: The right of the last who took it.
    """
    last = transaction.rows("SELECT highest FROM past")[0][0] if held is None else held.token
    lease = _lease(session_id, owner, last + 1, moment, seconds)
    transaction.run(
        "INSERT INTO leases (session, owner, token, expires) VALUES (?, ?, ?, ?) ON CONFLICT (session) DO "
        "UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires",
        session_id, _written(lease), lease.token, lease.expires,
    )  # fmt: skip
    return lease


def take_free(
    transaction: Transaction, session_id: str, owner: str, moment: Moment, *, seconds: float
) -> Taken | None:
    """Take the right to write a session if it was given back, or nobody ever took it; all in one statement.

    Returns:
        None if the session or the right has to be looked at more closely.
    """
    if not is_name(session_id):
        return None
    lease = _lease(session_id, owner, 0, moment, seconds)
    own, tenant = condition(transaction, "s.tenant")
    taken = transaction.rows(_TAKE_FREE.format(own=own), _written(lease), lease.expires, session_id, *tenant)
    if not taken:
        return None
    token, revision, asks, waits = taken[0]
    if type(revision) is not int:  # a damaged row, which is reported by whoever reads it
        return None
    return Taken(replace(lease, token=token), revision, bool(asks), bool(waits))


def note_sight(transaction: Transaction, held: Lease, moment: Moment) -> None:
    """Note when we saw a right whose owner has a clock that we cannot compare with ours."""
    proof = processes.Proof.from_text(held.proof)
    sighted = None if proof is None else proof.sighted(moment)
    if sighted is not None:
        _write_owner(transaction, replace(held, proof=sighted.to_text()))


def renew(transaction: Transaction, lease: Lease, moment: Moment, *, seconds: float) -> Lease:
    """Keep the right for longer."""
    check_own(_holder(transaction, lease.session_id), lease)
    renewed = _lease(lease.session_id, lease.owner, lease.token, moment, seconds)
    _write_owner(transaction, renewed)
    return renewed


def release(transaction: Transaction, lease: Lease) -> None:
    """Give the right back; its number rises, so that it cannot be used any more."""
    transaction.run(
        "UPDATE leases SET expires = 0, token = token + 1 WHERE session = ? AND token = ?",
        lease.session_id, lease.token,
    )  # fmt: skip


def is_good(lease: Lease, moment: Moment) -> bool:
    """Say whether whoever took a right still has it."""
    if not lease.expires:  # it was given back
        return False
    proof = processes.Proof.from_text(lease.proof)
    if proof is None:  # a former version took it, by its wall clock
        return lease.expires > moment.now and not processes.is_gone_by_name(lease.owner)
    return proof.is_good(moment)


def is_free_for(held: Lease, owner: str, moment: Moment) -> bool:
    """Say whether an owner may take a right that somebody took: it is its own, or nobody has it any more."""
    return (held.owner == owner and _is_ours(held)) or not is_good(held, moment)


def check(held: Lease | None, session_id: str, lease: Lease | None, moment: Moment) -> None:
    """Refuse a writer who has no right to write.

    Args:
        held: The right of the last who took it.
        lease: The right that the writer has, or had.

    Raises:
        LeaseLost: If the right that the writer had is somebody else's now.
        SessionHeld: If the writer never had one and somebody else has.
    """
    if lease is not None:
        check_own(held, lease)
    elif held is not None and is_good(held, moment):
        raise SessionHeld(session_id, held)


def check_own(held: Lease | None, lease: Lease) -> None:
    """Refuse a writer whose right is somebody else's now.

    Raises:
        LeaseLost: If it is.
    """
    if held is None or (held.session_id, held.token) != (lease.session_id, lease.token):
        raise LeaseLost(lease.session_id, lease.owner)


def _lease(session_id: str, owner: str, token: int, moment: Moment, seconds: float) -> Lease:
    proof = processes.Proof(
        process=processes.this_process(), clock=moment.clock, due=moment.ticks + seconds, lasts=seconds
    )
    expires = max(1.0, moment.now + seconds)  # 0 says that it was given back, also by a clock that is at 1970
    return Lease(session_id=session_id, owner=owner, token=token, expires=expires, proof=proof.to_text())


def _is_ours(held: Lease) -> bool:
    """Say whether this process took a right: one of another container may have the same name and number."""
    proof = processes.Proof.from_text(held.proof)
    return proof is None or proof.process == processes.this_process()


def _written(lease: Lease) -> str:
    return f"{lease.owner}{PROOF}{lease.proof}"


def _write_owner(transaction: Transaction, lease: Lease) -> None:
    sql = "UPDATE leases SET owner = ?, expires = ? WHERE session = ?"
    transaction.run(sql, _written(lease), lease.expires, lease.session_id)


def _holder(transaction: Transaction, session_id: str) -> Lease | None:
    rows = transaction.rows("SELECT owner, token, expires FROM leases WHERE session = ?", session_id)
    if not rows:
        return None
    return read_lease(session_id, *rows[0])
