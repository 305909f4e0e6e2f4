"""Workers that a server starts for itself, as processes of their own: one that ends is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_terminal_app.output import say

if TYPE_CHECKING:
    from collections.abc import Iterator

STOP_SECONDS = 45.0
"""How long workers have to hand their runs over; `agent worker` itself takes 30 at most."""
AGAIN_SECONDS = 1.0
"""How long to wait before a worker that ended is started again."""
_DATABASE = "AGENT_DATABASE"
_NOTHING = subprocess.DEVNULL


@contextmanager
def worker_processes(count: int, database: str, model: str | None) -> Iterator[None]:
    """Keep some workers at work while the block lasts; then each hands over the runs that it has."""
    stop = threading.Event()
    threads = [threading.Thread(target=_keep, args=(database, model, stop)) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _keep(database: str, model: str | None, stop: threading.Event) -> None:
    """Start a worker, and another one when it ends, until it should stop."""
    command = [sys.executable, "-m", "agent_terminal_app", "worker"]
    command += [] if model is None else ["--model", model]
    environment = {**os.environ, _DATABASE: database}  # not an argument: the address may have a password
    while not stop.is_set():
        # A session of its own: Ctrl+C is for the server, which stops its readers before its workers.
        with subprocess.Popen(  # noqa: S603 - our own program
            command, env=environment, stdin=_NOTHING, stdout=_NOTHING, start_new_session=True
        ) as process:
            while process.poll() is None and not stop.wait(0.2):
                pass
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                _wait(process)
        if not stop.is_set():
            say(f"agent: a worker ended with code {process.returncode}; another one is started")
            stop.wait(AGAIN_SECONDS)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # others take its runs, as of any worker that dies
