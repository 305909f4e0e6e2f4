"""Several processes at work on one store, killed at any moment, lose nothing and deliver nothing twice."""

from __future__ import annotations

import random
import signal
from typing import IO, TYPE_CHECKING, cast

from agent_app.store import open_store

if TYPE_CHECKING:
    from faults.conftest import Bench

CLIENTS = 4
ENDLESS = "100000"


def read_lines(stream: IO[str] | None, count: int) -> None:
    """Wait until a process has told of that many rounds."""
    for _ in range(count):
        assert cast("IO[str]", stream).readline(), "the process ended by itself"


def test_clients_killed_at_random_lose_nothing_and_deliver_every_message_once(bench: Bench) -> None:
    chance = random.Random(1)
    for cycle in range(100 if bench.long else 2):
        clients = [
            bench.start("crowd.py", bench.url, str(bench.ledger), f"cycle {cycle}, client {each}", ENDLESS)
            for each in range(CLIENTS)
        ]
        read_lines(clients[0].stdout, chance.randint(1, 25))
        for client in clients:
            client.kill()

        for client in clients:
            _, errors = client.communicate(timeout=60)
            assert client.returncode == -signal.SIGKILL, errors
            bench.running.remove(client)
        bench.examine()


def test_processes_that_make_the_same_store_at_once_all_find_it_made(bench: Bench) -> None:
    for number in range(30 if bench.long else 1):
        case = bench.anew(str(number))
        clients = [
            case.start("crowd.py", case.url, str(case.ledger), f"client {each}", "3") for each in range(6)
        ]

        for client in clients:
            _, errors = client.communicate(timeout=60)
            assert client.returncode == 0, errors
            bench.running.remove(client)
        store = open_store(case.url)
        told = len(store.load("shared").session.messages) + len(store.inputs("shared"))
        store.close()
        assert told == 6 * 3
        case.examine()
