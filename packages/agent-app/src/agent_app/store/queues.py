"""What belongs to a session besides its messages: events, inputs, approvals, intents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app.errors import DecisionNotAccepted, InputWithdrawn, SessionNotFound
from agent_app.store.base import Approval, Changes, InputMode, Lease, Waiting
from agent_app.store.database import HIGHEST
from agent_app.store.records import decode_stored as decode, encode
from agent_app.store.sessions import is_name, key_hash, retitle
from agent_app.store.tenants import condition
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app.store.database import Database, Row, Transaction

_APPROVAL = "id, session, body, created, decision, used"
_BATCH = 20  # events that one statement writes
_OWN = "session IN (SELECT id FROM sessions WHERE tenant = ?)"


def write(database: Database, transaction: Transaction, session_id: str, changes: Changes) -> list[int]:
    """Write what comes with a save, and return the numbers of its events."""
    numbers = add_events(database, transaction, session_id, changes.events)
    _take_inputs(transaction, session_id, changes.take_inputs)
    for approval in changes.approvals:
        _add_approval(transaction, session_id, approval)
    for approval_id in changes.use_approvals:
        _use_approval(transaction, session_id, approval_id)
    for approval_id, decision in changes.settle_approvals.items():
        _settle_approval(transaction, session_id, approval_id, decision)
    for call_id, details in changes.intents.items():
        transaction.run(
            "INSERT INTO intents (session, call_hash, body) VALUES (?, ?, ?) "
            "ON CONFLICT (session, call_hash) DO UPDATE SET body = excluded.body",
            session_id, key_hash(call_id), encode([call_id, details]),
        )  # fmt: skip
    if changes.title is not None and (title := retitle(transaction, session_id, *changes.title)) is not None:
        add_events(database, transaction, session_id, [{"type": "session_renamed", "title": title}])
    if changes.agent_id is not None:
        transaction.run("UPDATE sessions SET agent_id = ? WHERE id = ?", changes.agent_id, session_id)
    for call_id in changes.results:
        transaction.run(
            "DELETE FROM intents WHERE session = ? AND call_hash = ?", session_id, key_hash(call_id)
        )
    return numbers


def _take_inputs(transaction: Transaction, session_id: str, seqs: Sequence[int]) -> None:
    """Let messages leave the queue that a session now has.

    Raises:
        InputWithdrawn: If one is not there any more: it must not be delivered and taken back as well.
    """
    gone = [seq for seq in seqs if not drop_input(transaction, session_id, seq)]
    if gone:
        raise InputWithdrawn(session_id, gone)


def _use_approval(transaction: Transaction, session_id: str, approval_id: str) -> None:
    """Note that a session has gone on with a decision.

    Raises:
        DecisionNotAccepted: If there is no such decision of this session that is still to be used.
    """
    used = is_name(approval_id) and transaction.run(
        "UPDATE approvals SET used = 1 WHERE id = ? AND session = ? AND decision IS NOT NULL AND used = 0",
        approval_id, session_id,
    )  # fmt: skip
    if not used:
        raise DecisionNotAccepted(
            f"session {session_id!r} cannot continue with approval {approval_id!r}: it has no decision of "
            "that id, or has used it already; nothing was saved"
        )


def _settle_approval(
    transaction: Transaction, session_id: str, approval_id: str, decision: Mapping[str, Any]
) -> None:
    """Close a question that the session does not ask any more; a decision that was made stays."""
    transaction.run(
        "UPDATE approvals SET used = 1, decision = coalesce(decision, ?) "
        "WHERE id = ? AND session = ? AND used = 0",
        encode(decision), approval_id, session_id,
    )  # fmt: skip


def _add_approval(transaction: Transaction, session_id: str, approval: Approval) -> None:
    if not is_name(approval.id):
        raise ArgumentError(f"{approval.id!r} is not an id of an approval: 1 to 500 readable characters are")
    transaction.run(
        "INSERT INTO approvals (id, session, body, created) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        approval.id, session_id, encode(approval.suspension), approval.created,
    )  # fmt: skip
    owner = transaction.rows("SELECT session FROM approvals WHERE id = ?", approval.id)[0][0]
    if owner != session_id:
        raise ArgumentError(f"approval {approval.id!r} belongs to session {owner!r}: ids are used once")


def add_events(
    database: Database, transaction: Transaction, session_id: str, events: Sequence[Mapping[str, Any]]
) -> list[int]:
    """Write events to a session's log and to the feed, and return their numbers in the log."""
    if not events:
        return []
    numbers: list[int] = []
    for start in range(0, len(events), _BATCH):
        bodies = [encode(_with_type_first(event)) for event in events[start : start + _BATCH]]
        values = ", ".join(f"({place}, ?)" for place in range(1, len(bodies) + 1))
        insert = (
            "INSERT INTO events (session, seq, body) SELECT ?, "
            "(SELECT coalesce(max(seq), 0) FROM events WHERE session = ?) + new.column1, new.column2 "
            f"FROM (VALUES {values}) AS new RETURNING seq"
        )
        numbers += database.log(transaction, session_id, insert, [session_id, session_id, *bodies])
    return numbers


def _with_type_first(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event such that its row begins with its type, by which some are found again (`USAGE`)."""
    return {"type": event["type"], **event} if "type" in event else dict(event)


def read_events(transaction: Transaction, session_id: str, after: int, limit: int) -> list[dict[str, Any]]:
    """Return logged events behind a number."""
    rows = transaction.rows(
        "SELECT seq, body FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?",
        session_id, after, limit,
    )  # fmt: skip
    return [{**decode(body), "seq": seq} for seq, body in rows]


def last_events(
    transaction: Transaction, session_id: str, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Return the last events of a log, or those before a number, the latest first."""
    below = HIGHEST if before is None else before
    rows = transaction.rows(
        "SELECT seq, body FROM events WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        session_id, below, limit,
    )  # fmt: skip
    return [{**decode(body), "seq": seq} for seq, body in rows]


def usage_events(database: Database, transaction: Transaction, session_id: str) -> list[dict[str, Any]]:
    """Return the events of a log that tell what models used."""
    rows = transaction.rows(
        f"SELECT seq, body FROM {database.usage_events} AND session = ? ORDER BY seq", session_id
    )
    return [{**decode(body), "seq": seq} for seq, body in rows]


def put_input(
    transaction: Transaction, session_id: str, message: Mapping[str, Any], mode: InputMode, now: float
) -> Waiting:
    """Keep a message until it is delivered."""
    # Numbers are never used again, even if the queue was empty in between: acknowledgements name them.
    seq = transaction.rows(
        "UPDATE sessions SET last_input = last_input + 1 WHERE id = ? RETURNING last_input", session_id
    )[0][0]
    transaction.run(
        "INSERT INTO inputs (session, seq, body, mode, created) VALUES (?, ?, ?, ?, ?)",
        session_id, seq, encode(message), mode, now,
    )  # fmt: skip
    return Waiting(seq=seq, session_id=session_id, message=dict(message), mode=mode, created=now)


def inputs(transaction: Transaction, session_id: str) -> list[Waiting]:
    """Return the messages that wait, in order.

    Raises:
        SessionNotFound: If there is no such session.
    """
    own, tenant = condition(transaction, "s.tenant")
    rows = is_name(session_id) and transaction.rows(
        "SELECT i.seq, i.body, i.mode, i.created FROM sessions s LEFT JOIN inputs i ON i.session = s.id "
        f"WHERE s.id = ? AND {own} ORDER BY i.seq",
        session_id, *tenant,
    )  # fmt: skip
    if not rows:
        raise SessionNotFound(session_id)
    return [
        Waiting(seq=seq, session_id=session_id, message=decode(body), mode=mode, created=created)
        for seq, body, mode, created in rows
        if seq is not None
    ]


def waiting_since(transaction: Transaction, moment: float) -> list[tuple[str, int]]:
    """Return the sessions with messages that were put there before a moment, each with the last of them."""
    rows = transaction.rows(
        "SELECT session, max(seq) FROM inputs WHERE created <= ? GROUP BY session ORDER BY session", moment
    )
    return [(session_id, seq) for session_id, seq in rows]


def edit_input(
    transaction: Transaction, session_id: str, seq: int, message: Mapping[str, Any], mode: InputMode
) -> Waiting | None:
    """Change a waiting message, and return it; None if it does not wait any more."""
    rows = transaction.rows(
        "UPDATE inputs SET body = ?, mode = ? WHERE session = ? AND seq = ? RETURNING created",
        encode(message), mode, session_id, seq,
    )  # fmt: skip
    if not rows:
        return None
    return Waiting(seq=seq, session_id=session_id, message=dict(message), mode=mode, created=rows[0][0])


def claim_inputs(transaction: Transaction, lease: Lease, seqs: Sequence[int]) -> list[int]:
    """Note by whom messages are being delivered, and return those that still wait."""
    sql = "UPDATE inputs SET taken = ? WHERE session = ? AND seq = ?"
    return [seq for seq in seqs if transaction.run(sql, lease.token, lease.session_id, seq)]


def is_claimed(transaction: Transaction, holder: Lease, seq: int) -> bool:
    """Say whether the one who holds a session is delivering a message."""
    rows = transaction.rows(
        "SELECT 1 FROM inputs WHERE session = ? AND seq = ? AND taken = ?",
        holder.session_id, seq, holder.token,
    )  # fmt: skip
    return bool(rows)


def drop_input(transaction: Transaction, session_id: str, seq: int) -> bool:
    """Remove a waiting message, and say whether it was there."""
    return bool(transaction.run("DELETE FROM inputs WHERE session = ? AND seq = ?", session_id, seq))


def approvals(transaction: Transaction, session_id: str | None, *, undecided: bool) -> list[Approval]:
    """Return the approvals of a session, or of all, in the order in which they were asked for."""
    where, values = ["1 = 1"], list[Any]()
    if session_id is not None:
        where.append("session = ?")
        values.append(session_id)
    if undecided:
        where.append("decision IS NULL")
    if transaction.tenant is not None:
        where.append(_OWN)
        values.append(transaction.tenant)
    rows = transaction.rows(
        f"SELECT {_APPROVAL} FROM approvals WHERE {' AND '.join(where)} ORDER BY created, id",
        *values,
    )
    return [_approval(row) for row in rows]


def open_approvals(transaction: Transaction, session_id: str) -> list[Approval]:
    """Return the approvals of a session that no run has gone on with."""
    rows = transaction.rows(
        f"SELECT {_APPROVAL} FROM approvals WHERE session = ? AND used = 0 ORDER BY created, id", session_id
    )
    return [_approval(row) for row in rows]


def unused_decisions(transaction: Transaction) -> list[Approval]:
    """Return the approvals that are decided and that no run has gone on with, in all sessions."""
    rows = transaction.rows(
        f"SELECT {_APPROVAL} FROM approvals WHERE decision IS NOT NULL AND used = 0 ORDER BY created, id"
    )
    return [_approval(row) for row in rows]


def decide(transaction: Transaction, approval_id: str, decision: Mapping[str, Any]) -> Approval:
    """Keep a decision; the first one counts.

    Raises:
        DecisionNotAccepted: If there is no such approval, or it is decided already.
    """
    if not is_name(approval_id):
        raise DecisionNotAccepted(f"{approval_id!r} is not an id of an approval")
    own, tenant = ("1 = 1", []) if transaction.tenant is None else (_OWN, [transaction.tenant])
    changed = transaction.run(
        f"UPDATE approvals SET decision = ? WHERE id = ? AND decision IS NULL AND {own}",
        encode(decision), approval_id, *tenant,
    )  # fmt: skip
    rows = transaction.rows(f"SELECT {_APPROVAL} FROM approvals WHERE id = ? AND {own}", approval_id, *tenant)
    if not rows:
        raise DecisionNotAccepted(f"there is no approval {approval_id!r}: it may belong to a deleted session")
    if not changed:
        raise DecisionNotAccepted(f"approval {approval_id!r} was decided already")
    return _approval(rows[0])


def open_intents(transaction: Transaction, session_id: str) -> dict[str, Mapping[str, Any]]:
    """Return the tool calls that were about to run and have no result."""
    rows = transaction.rows("SELECT body FROM intents WHERE session = ? ORDER BY call_hash", session_id)
    return dict(sorted(tuple(decode(row[0])) for row in rows))


def _approval(row: Row) -> Approval:
    approval_id, session_id, body, created, decision, used = row
    return Approval(
        id=approval_id,
        session_id=session_id,
        suspension=decode(body),
        created=created,
        decision=None if decision is None else decode(decision),
        used=bool(used),
    )
