"""A disk that is full or broken for a while costs an error that says so, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.store import open_store
from agent_core import AgentCore, Message

if TYPE_CHECKING:
    from faults.conftest import Bench

ONE, MANY = 1, 12
"""How many writes in a row fail: one, or enough for several tries to fail."""


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(("width", "some"), [(ONE, 3), (MANY, 3)])
def test_a_full_disk_is_an_error_and_nothing_of_the_write_is_there(
    bench: Bench, width: int, some: int
) -> None:
    for number in bench.numbers("pwrite64", some, step=width):
        case = bench.anew(str(number))

        status, output, errors = case.converse(
            "pwrite64", f"error=ENOSPC:when={number}..{number + width - 1}"
        )

        assert status == 0, errors
        told = json.loads(output.splitlines()[-1])
        assert all("is full" in text or "cannot be used now" in text for text in told["errors"])
        assert told["doubtful"] == 0
        case.examine()


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(("width", "some"), [(ONE, 3), (MANY, 3)])
def test_a_disk_that_cannot_flush_is_an_error_and_nothing_acknowledged_is_lost(
    bench: Bench, width: int, some: int
) -> None:
    for number in bench.numbers("fdatasync", some):
        case = bench.anew(str(number))

        status, output, errors = case.converse("fdatasync", f"error=EIO:when={number}..{number + width - 1}")

        assert status == 0, errors
        told = json.loads(output.splitlines()[-1])
        assert all("cannot be used now" in text for text in told["errors"])
        assert not any("was not written" in text for text in told["errors"])
        case.examine()


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(("call", "fault"), [("pwrite64", "ENOSPC"), ("fdatasync", "EIO")])
def test_a_disk_that_stays_broken_is_reported_and_what_was_there_before_is_kept(
    bench: Bench, call: str, fault: str
) -> None:
    for number in bench.numbers(call, 3, step=10)[1:-1]:
        case = bench.anew(str(number))

        status, _, errors = case.converse(call, f"error={fault}:when={number}+")

        assert (status, "the store stayed unavailable" in errors) in {(1, True), (0, False)}
        case.examine()


def test_a_folder_that_cannot_be_made_is_named(bench: Bench) -> None:
    (bench.folder / "file").touch()

    with pytest.raises(StoreUnavailable, match=r"file/deeper.*cannot be opened"):
        open_store(f"sqlite:///{bench.folder}/file/deeper/sessions.db")


def test_a_store_with_a_limit_refuses_what_is_too_much_and_continues_with_less(bench: Bench) -> None:
    store = open_store(bench.url)
    stored = store.create(AgentCore().create_session("s"))
    with store.writing() as transaction:
        pages = transaction.rows("PRAGMA page_count")[0][0]
        transaction.run(f"PRAGMA max_page_count = {pages + 4}")
    long = AgentCore().append_messages(stored.session, [Message("user", "x" * 100_000)])

    with pytest.raises(StoreUnavailable, match="full"):
        store.save(long, stored)

    short = AgentCore().append_messages(stored.session, [Message("user", "x")])
    store.save(short, stored)
    assert store.load("s").session == short
    assert store.check(deep=True).problems == ()
