"""A process that dies at any of its writes leaves a store that is whole and has what was acknowledged."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from agent_app.store import open_store

if TYPE_CHECKING:
    from faults.conftest import Bench

    from agent_app.store.base import SessionStore


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(("call", "some"), [("pwrite64", 8), ("fdatasync", 4)])
def test_killed_at_any_write_the_store_has_what_was_acknowledged_and_continues(
    bench: Bench, call: str, some: int
) -> None:
    for number in bench.numbers(call, some):
        case = bench.anew(str(number))

        status, _, errors = case.converse(call, f"signal=SIGKILL:when={number}")

        assert status == -signal.SIGKILL, errors
        assert_whole(case.url)
        case.examine()


def assert_whole(url: str) -> None:
    """Every save brought its message and what belongs to it, or neither."""
    store = open_store(url)
    for session_id in store:
        _assert_whole(store, session_id)
    store.close()


def _assert_whole(store: SessionStore, session_id: str) -> None:
    said = {str(message.content) for message in store.load(session_id).session.messages}
    approvals = {approval.id.removesuffix(" approval"): approval for approval in store.approvals(session_id)}
    running = store.open_intents(session_id)
    for mark, approval in approvals.items():
        assert f"{mark}: looked" in said
        assert f"{mark} call" not in running
        assert approval.used == (f"{mark}: went on" in said)
    if "fork" not in session_id:
        assert len(approvals) == sum(text.endswith(": looked") for text in said)
