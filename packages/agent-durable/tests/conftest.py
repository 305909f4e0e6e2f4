"""A PostgreSQL server, and workers as processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.errors import StoreUnavailable
from agent_app.testing.postgres import EmbeddedPostgres, create_database, drop_database, shared_server
from agent_durable import DurableRuns, open_engine

sys.path.insert(0, str(Path(__file__).parent))
from program import application, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection

    Opening = Callable[..., AbstractContextManager["Site"]]

    from agent_app import AgentApplication
    from agent_durable import JobInfo

PATIENCE = 300.0  # on a machine as busy as machines of tests are
SILENT_SECONDS = "3"
Limits = dict[str, tuple[int, float]]


# Forked from a process that has imported everything: importing takes longer than most of what workers do
# here.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["agent_app.store.postgres", "agent_core.testing", "agent_durable.dbos_engine", "agent_durable.workers"]
)


class WorkerProcess:
    """A worker that can be killed, and reports what it does."""

    def __init__(self, url: str, folder: Path, version: str = "1", **environment: str) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()
        reader, writer = _processes.Pipe(duplex=False)
        self.process = _processes.Process(
            target=work, args=(url, folder, version, environment, writer), daemon=True
        )
        self.process.start()
        writer.close()
        threading.Thread(target=self._read, args=(reader,), daemon=True).start()

    def wait_for(self, word: str) -> str:
        """Wait until it reports something that begins with a word, and return the line."""
        with self._changed:
            self._changed.wait_for(lambda: self._line(word) or self.has_ended, PATIENCE)
            line = self._line(word)
        assert line is not None, f"the worker did not report {word!r}"
        return line

    @property
    def id(self) -> str:
        return self.wait_for("ready").split()[1]

    @property
    def has_ended(self) -> bool:
        return self.process.exitcode is not None

    @property
    def is_ready(self) -> bool:
        return self._line("ready") is not None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self) -> int | None:
        """Wait until it has ended, and return its exit code."""
        self.process.join(PATIENCE)
        return self.process.exitcode

    def stop(self) -> str:
        """Ask it to stop, and return the line about what it handed over."""
        self.signal(signal.SIGTERM)
        self.wait()
        return self.wait_for("handed over")

    def _line(self, word: str) -> str | None:
        return next((line for line in self.lines if line.startswith(word)), None)

    def _read(self, reader: Connection) -> None:
        with reader, suppress(EOFError):
            while True:
                line = reader.recv()
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        self.process.join()
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
        self.runs = DurableRuns(self.app, self.engine, self.workers)
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
            assert time.monotonic() < until, f"it did not happen: {self.state()}"
            threading.Event().wait(0.1)

    def wait_over(self, *run_ids: str, seconds: float = PATIENCE) -> list[str]:
        """Wait until runs are over, and return how they ended."""

        def statuses() -> list[str]:
            return [info.status if (info := self.runs.job(one)) else "" for one in run_ids]

        self.wait(lambda: not {"waiting", "running", ""} & set(statuses()), seconds)
        return statuses()

    def state(self) -> list[object]:
        """Return what is known of everything, to find out why something did not happen."""
        sessions = dict.fromkeys(job.job.session_id for job in self.runs.jobs())
        holders = {session_id: self.app.store.holder(session_id) for session_id in sessions}
        return [*self.workers.all(), *self.runs.jobs(), holders, (self.folder / "errors").read_text()[-2000:]]

    def close(self) -> None:
        """End everything."""
        for process in self._processes:
            if not process.has_ended:
                process.kill()
        self.engine.stop()
        self.workers.close()
        self.app.close()


@pytest.fixture(scope="session")
def server() -> str:
    """The URL of the server that all tests share."""
    try:
        return shared_server()
    except StoreUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def template(server: str) -> str:
    """A database with all tables: copying it is much faster than creating them again."""
    url = create_database(server)
    with closing(Site(url, Path())) as site:
        site.runs.queue()
        site.workers.all()
    return url


@pytest.fixture
def opening(server: str, template: str, tmp_path: Path) -> Opening:
    """Give the function that opens an empty database, for a ``with`` statement."""

    @contextmanager
    def open_site(**settings: Any) -> Iterator[Site]:
        with open_copy(server, template, tmp_path, **settings) as site:
            yield site

    return open_site


@pytest.fixture
def site(opening: Opening) -> Iterator[Site]:
    """An empty database without workers."""
    with opening() as made:
        yield made


@pytest.fixture(scope="module")
def shop(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A database with one worker, for all tests of a module that leave it alive."""
    with open_copy(server, template, tmp_path_factory.mktemp("shop")) as place:
        place.worker(TOOL_SECONDS="0.1")
        yield place


@contextmanager
def open_copy(server: str, template: str, folder: Path, **settings: Any) -> Iterator[Site]:
    url = create_database(server, template=template)
    try:
        with closing(Site(url, folder, **settings)) as site:
            yield site
    finally:
        drop_database(url)


@pytest.fixture(scope="session")
def postgres(server: str) -> Iterator[EmbeddedPostgres]:
    """A server that tests may stop and start, since no other test uses it."""
    with EmbeddedPostgres() as own:
        yield own


@pytest.fixture
def own_site(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Site]:
    """An empty database on that server."""
    with closing(Site(create_database(postgres.url), tmp_path)) as site:
        yield site
