"""Who may write a session: one process at a time, for as long as it says that it still does.

The right is a row that every save looks at in its own transaction. Its number rises with every taking, so
a process that was stopped and goes on later, when somebody else has taken over, is refused.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.errors import LeaseLost, SessionHeld
from agent_app.store.base import Lease

if TYPE_CHECKING:
    from agent_app.store.database import Transaction

_OWNER = re.compile(r"process (\d+) on (.+)$")


def this_process() -> str:
    """Return a name for this process that tells a person which one it is."""
    program = Path(sys.argv[0] or "python").name
    return f"{program}, process {os.getpid()} on {socket.gethostname()}"


def is_gone(owner: str) -> bool:
    """Say whether an owner is a process of this machine that has ended."""
    found = _OWNER.search(owner)
    # On Windows, asking by signal 0 would interrupt the process.
    if found is None or found[2] != socket.gethostname() or sys.platform == "win32":
        return False
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def acquire(
    transaction: Transaction,
    session_id: str,
    owner: str,
    held: Lease | None,
    *,
    now: float,
    seconds: float,
    take_over: bool,
) -> Lease:
    """Take the right to write a session that is held for the length of the transaction.

    Args:
        held: The right of the last who took it.

    Raises:
        SessionHeld: If somebody else has it, is alive, and is not to be overruled.
    """
    if held is not None and held.owner != owner and is_good(held, now) and not take_over:
        raise SessionHeld(session_id, held)
    last = transaction.rows("SELECT highest FROM past")[0][0] if held is None else held.token
    token = last + 1
    transaction.run(
        "INSERT INTO leases (session, owner, token, expires) VALUES (?, ?, ?, ?) ON CONFLICT (session) DO "
        "UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires",
        session_id, owner, token, now + seconds,
    )  # fmt: skip
    return Lease(session_id=session_id, owner=owner, token=token, expires=now + seconds)


def renew(transaction: Transaction, lease: Lease, *, now: float, seconds: float) -> Lease:
    """Keep the right for longer."""
    check_own(_holder(transaction, lease.session_id), lease)
    transaction.run("UPDATE leases SET expires = ? WHERE session = ?", now + seconds, lease.session_id)
    return Lease(session_id=lease.session_id, owner=lease.owner, token=lease.token, expires=now + seconds)


def release(transaction: Transaction, lease: Lease) -> None:
    """Give the right back; its number rises, so that it cannot be used any more."""
    transaction.run(
        "UPDATE leases SET expires = 0, token = token + 1 WHERE session = ? AND token = ?",
        lease.session_id, lease.token,
    )  # fmt: skip


def _holder(transaction: Transaction, session_id: str) -> Lease | None:
    rows = transaction.rows("SELECT owner, token, expires FROM leases WHERE session = ?", session_id)
    if not rows:
        return None
    owner, token, expires = rows[0]
    return Lease(session_id=session_id, owner=owner, token=token, expires=expires)


def is_good(lease: Lease, now: float) -> bool:
    """Say whether whoever took a right still has it."""
    return lease.expires > now and not is_gone(lease.owner)


def check(held: Lease | None, session_id: str, lease: Lease | None, now: float) -> None:
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
    elif held is not None and is_good(held, now):
        raise SessionHeld(session_id, held)


def check_own(held: Lease | None, lease: Lease) -> None:
    """Refuse a writer whose right is somebody else's now.

    Raises:
        LeaseLost: If it is.
    """
    if held is None or (held.session_id, held.token) != (lease.session_id, lease.token):
        raise LeaseLost(lease.session_id, lease.owner)
