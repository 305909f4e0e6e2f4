"""A PostgreSQL server, and workers as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing.postgres import EmbeddedPostgres
from agent_durable import DurableRuns, open_engine

sys.path.insert(0, str(Path(__file__).parent))
from program import application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Opening = Callable[..., AbstractContextManager["Site"]]

    from agent_app import AgentApplication
    from agent_durable import JobInfo

PATIENCE = 300.0  # on a machine as busy as machines of tests are
SILENT_SECONDS = "3"
Limits = dict[str, tuple[int, float]]


class WorkerProcess:
    """A worker that can be killed, and says what it does."""

    def __init__(self, url: str, folder: Path, *arguments: str, **environment: str) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        program = Path(__file__).parent / "program.py"
        with (folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(program), url, str(folder), *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment},
            )
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, word: str) -> str:
        """Wait until it says something that begins with a word, and return the line."""
        with self._changed:
            self._changed.wait_for(lambda: self._saying(word) or self.process.poll() is not None, PATIENCE)
            line = self._saying(word)
        assert line is not None, f"the worker did not say {word!r}"
        return line

    @property
    def is_ready(self) -> bool:
        """Whether it is at work."""
        return self._saying("ready") is not None

    def kill(self) -> None:
        """Let it die at once."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> str:
        """Ask it to stop, and return what it says about that."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        return self.wait_for("handed over")

    def _saying(self, word: str) -> str | None:
        return next((line for line in self.lines if line.startswith(word)), None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._changed:
                    self.lines.append(line.rstrip())
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


class Site:
    """A database, workers on it, and an application that sends them work."""

    def __init__(self, url: str, folder: Path, *, limits: Limits | None = None, **sections: Any) -> None:
        self.url = url
        self.folder = folder
        self.limits = limits or {}
        self.app: AgentApplication = application(url, **sections)
        self.engine, self.workers = open_engine(url)
        self.runs = DurableRuns(self.app, self.engine)
        self._processes: list[WorkerProcess] = []

    def worker(self, *arguments: str, **environment: str) -> WorkerProcess:
        """Start a worker; it is at work when this returns."""
        process = self.worker_soon(*arguments, **environment)
        process.wait_for("ready")
        return process

    def worker_soon(self, *arguments: str, **environment: str) -> WorkerProcess:
        """Start a worker, and do not wait for it."""
        limits = json.dumps([(whom, *rate) for whom, rate in self.limits.items()])
        url = environment.pop("URL", self.url)
        settings = {"SILENT_SECONDS": SILENT_SECONDS, "LIMITS": limits, **environment}
        process = WorkerProcess(url, self.folder, *arguments, **settings)
        self._processes.append(process)
        return process

    def say(self, text: str, session_id: str | None = None, **job: Any) -> tuple[str, str]:
        """Say something in a session, or in a new one; return it and the run."""
        session_id = session_id or self.app.create_session("counter").session_id
        return session_id, self.runs.say(session_id, text, **job)

    def info(self, run_id: str) -> JobInfo:
        """Return what is known of a run."""
        found = self.runs.job(run_id)
        assert found is not None
        return found

    def effects(self) -> list[str]:
        """Return what tools have done."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def wait(self, what: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until something is so."""
        until = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < until, f"waited in vain: {self.state()}"
            threading.Event().wait(0.1)

    def wait_over(self, *run_ids: str, seconds: float = PATIENCE) -> list[str]:
        """Wait until runs are over, and return how they ended."""

        def statuses() -> list[str]:
            return [info.status if (info := self.runs.job(one)) else "" for one in run_ids]

        self.wait(lambda: not {"waiting", "running", ""} & set(statuses()), seconds)
        return statuses()

    def state(self) -> list[object]:
        """Return what is known of everything, for whoever must find out why something did not happen."""
        held = {job.job.session_id: None for job in self.runs.jobs()}
        holders = {session_id: self.app.store.holder(session_id) for session_id in held}
        return [*self.workers.all(), *self.runs.jobs(), holders, (self.folder / "errors").read_text()[-2000:]]

    def close(self) -> None:
        """End everything."""
        for process in self._processes:
            if process.process.poll() is None:
                process.kill()
        self.engine.stop()
        self.workers.close()
        self.app.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A running server."""
    try:
        server = EmbeddedPostgres()
        server.start()
    except StoreUnavailable as error:
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def site(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Site]:
    """An empty database with nobody at work."""
    yield from open_site(postgres, tmp_path)


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A database with one worker, for all tests of a module that leave it alive."""
    with contextmanager(open_site)(postgres, tmp_path_factory.mktemp("shop")) as place:
        place.worker(TOOL_SECONDS="0.1")
        yield place


@pytest.fixture
def opening() -> Opening:
    """Give the function that opens an empty database with other limits, for a ``with`` statement."""
    return contextmanager(open_site)


def open_site(postgres: EmbeddedPostgres, folder: Path, limits: Limits | None = None) -> Iterator[Site]:
    """Yield an empty database, and end everything on it afterwards."""
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS agent_store CASCADE")
        connection.execute("DROP SCHEMA IF EXISTS dbos CASCADE")
        connection.execute("DROP TABLE IF EXISTS agent_workers")
    first = Site(postgres.url, folder, limits=limits)
    try:
        yield first
    finally:
        first.close()
