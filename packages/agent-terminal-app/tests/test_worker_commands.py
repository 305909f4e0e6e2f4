"""`agent worker`, `workers` and `runs` on a real PostgreSQL server; the workers are real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("agent_durable")
pytest.importorskip("dbos")

from agent_app.errors import StoreUnavailable
from agent_app.store import open_store
from agent_app.testing.postgres import EmbeddedPostgres
from agent_terminal_app.commands.workers import read_limits
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.testing.command import run_agent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 120
PROVIDER = """
import itertools
from agent_core.testing import Reply, ScriptedProvider, ToolCall


def answer(messages):
    last = messages[-1]
    if last["content"] == "write":
        return Reply(tool_calls=[ToolCall("write_file", {"path": "note.txt", "content": "hello"}, "c1")])
    return f"You said: {last['content']}"


class Tester(ScriptedProvider):
    def __init__(self):
        super().__init__(itertools.repeat(answer), name="tester")
"""
CONFIG = """
default_agent = "answering"
plugin_ids = ["files_tool"]
[agents.answering]
model = "test"
[models.test]
provider = "tester"
model = "one"
"""


@dataclass(frozen=True)
class Machine:
    """A home with settings, a provider that answers by a rule, and the address of a database."""

    home: Path
    environment: dict[str, str]
    server: EmbeddedPostgres

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agent_terminal_app", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {"cwd": self.home, "env": self.environment, "preexec_fn": heed_interrupts}
        return subprocess.Popen(command, text=True, **pipes, **options)  # type: ignore[call-overload, no-any-return]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = run_agent(*arguments, environment=self.environment, folder=self.home)
        return done.returncode, done.stdout, done.stderr


def heed_interrupts() -> None:
    """As in a terminal, also where these tests are background work themselves."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    site, home = folder / "site", folder / "home"
    about, config = site / "tester-1.0.dist-info", home / "config" / "agent"
    about.mkdir(parents=True)
    config.mkdir(parents=True)
    (site / "tester_provider.py").write_text(PROVIDER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tester\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agent_platform.providers]\ntester = tester_provider:Tester\n")
    (config / "config.toml").write_text(CONFIG)
    try:
        server = EmbeddedPostgres().start()
    except StoreUnavailable as error:
        pytest.skip(str(error))
    folders = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "data", "state", "cache")}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    loaded = {
        "AGENT_LOAD_PLUGINS": "tester,files_tool",
        "PYTHONPATH": str(site),
        "AGENT_DATABASE": server.url,
    }
    sys.path.insert(0, str(site))
    try:
        yield Machine(home, {**kept, **folders, **loaded, "HOME": str(home)}, server)
    finally:
        sys.path.remove(str(site))
        server.remove()


@pytest.fixture(scope="module")
def worker(machine: Machine) -> Iterator[subprocess.Popen[str]]:
    with machine.start("worker", "--concurrency", "2", "--limit", "tenant:closed=1/3600") as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "takes up to 2 runs at a time" in said
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("worker")
def test_an_answer_is_waited_for_and_only_the_new_one_is_shown(machine: Machine) -> None:
    code, out, err = machine.run("runs", "send", "hello", "--wait")
    assert (code, out) == (0, "You said: hello\n"), err
    session_id = err.split()[-1]

    code, out, err = machine.run("runs", "send", "once more", "--session", session_id, "--wait")

    assert (code, out) == (0, "You said: once more\n"), err


@pytest.mark.usefixtures("worker")
def test_a_run_is_listed_shown_and_tried_again(machine: Machine) -> None:
    run_id = machine.run("runs", "send", "hello")[1].strip()
    run = wait_over(machine, run_id)
    assert (run["status"], run["attempts"], run["text"]) == ("done", 1, "You said: hello")

    code, out, err = machine.run("runs", "list", "--status", "done")
    assert code == 0
    assert run_id in out
    assert out.startswith("RUN ")
    assert err.strip() == "0 waiting, the oldest for 0 s"
    assert "You said: hello" in machine.run("runs", "show", run_id)[1]

    code, again, _err = machine.run("runs", "retry", run_id)
    assert code == 0
    assert wait_over(machine, again.strip())["status"] == "done"
    code, _out, err = machine.run("runs", "cancel", run_id)
    assert code == 1
    assert "is over already" in err


@pytest.mark.usefixtures("worker")
def test_a_question_is_shown_and_answered(machine: Machine) -> None:
    code, _out, err = machine.run("runs", "send", "write", "--wait")
    assert code == Exit.APPROVAL
    run_id = err.split()[0]
    assert f"`agent runs approve {run_id}`" in err

    assert "write_file" in machine.run("runs", "show", run_id)[2]
    assert "waits for a decision" in machine.run("runs", "cancel", run_id)[2]
    assert "does not ask nonsense" in machine.run("runs", "approve", run_id, "--question", "nonsense")[2]
    assert not (machine.home / "note.txt").exists()
    code, going_on, err = machine.run("runs", "approve", run_id)
    assert code == 0, err

    assert wait_over(machine, going_on.strip())["status"] == "done"
    assert (machine.home / "note.txt").read_text() == "hello"
    assert "asks nothing" in machine.run("runs", "deny", going_on.strip())[2]


@pytest.mark.usefixtures("worker")
def test_a_run_goes_on_without_what_was_denied(machine: Machine) -> None:
    run_id = machine.run("runs", "send", "write")[1].strip()
    assert wait_over(machine, run_id)["status"] == "suspended"

    going_on = machine.run("runs", "deny", run_id, "--reason", "not on Mondays")[1].strip()

    assert "not on Mondays" in str(wait_over(machine, going_on)["text"])


@pytest.mark.usefixtures("worker")
def test_a_session_that_is_not_there_is_named(machine: Machine) -> None:
    code, _out, err = machine.run("runs", "send", "hello", "--session", "nonsense")

    assert code != 0
    assert "agent sessions list" in err


@pytest.mark.usefixtures("worker")
def test_a_run_that_waits_is_cancelled(machine: Machine) -> None:
    sent = ("runs", "send", "hello", "--tenant", "closed")
    first, second = (machine.run(*sent)[1].strip() for _ in range(2))
    assert wait_over(machine, first)["status"] == "done"
    assert show(machine, second)["status"] == "waiting"
    assert "1 waiting" in machine.run("runs", "list")[2]

    assert machine.run("runs", "cancel", second)[0] == 0

    assert show(machine, second)["status"] == "cancelled"


def test_workers_are_listed_and_stop_on_a_signal(machine: Machine, worker: subprocess.Popen[str]) -> None:
    [found] = json.loads(machine.run("workers", "--json")[1])
    assert (found["concurrency"], found["draining"]) == (2, False)
    _code, out, err = machine.run("workers")
    assert found["id"] in out
    assert "of tenant:closed at most 1 runs begin in 3600 s" in err

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(PATIENCE) == 0
    assert json.loads(machine.run("workers", "--json")[1]) == []


def test_a_run_that_nobody_knows_is_named(machine: Machine) -> None:
    code, _out, err = machine.run("runs", "show", "nonsense")

    assert code == Exit.USAGE
    assert "there is no run nonsense" in err


def test_a_database_that_is_away_is_an_error_that_says_so(machine: Machine) -> None:
    away = "postgresql://nobody:secret@127.0.0.1:9/none"
    code, out, err = machine.run("workers", "--database", away, "--database-wait", "0")

    assert (code, out) == (1, "")
    assert "database none on 127.0.0.1:9 cannot be reached" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, Exit.TERMINATED), (signal.SIGINT, Exit.INTERRUPTED)]
)
def test_a_worker_that_waits_for_its_database_ends_on_a_signal(
    machine: Machine, number: signal.Signals, code: Exit
) -> None:
    with machine.start("worker", "--database", "postgresql://nobody:secret@127.0.0.1:9/none") as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("agent: waiting for database none on 127.0.0.1:9, for 600 s at most")
        assert "secret" not in said

        process.send_signal(number)

        assert process.wait(PATIENCE) == code


def test_a_worker_that_starts_before_its_database_waits_for_it(machine: Machine) -> None:
    machine.server.stop()
    with machine.start("worker", "--most-waiting", "1") as process:
        assert process.stderr is not None
        assert "waiting for database postgres" in process.stderr.readline()

        machine.server.start()

        assert "takes up to 10 runs at a time" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    check_nobody_can_begin(machine)


def check_nobody_can_begin(machine: Machine) -> None:
    """A run that no worker can begin with says so; with it the queue is full, and the next one is refused."""
    code, out, err = machine.run("runs", "send", "hello")
    run_id, nobody = out.strip(), "no worker has answering."
    assert code == 0
    assert nobody in err
    assert nobody in str(show(machine, run_id)["obstacle"])
    _code, out, err = machine.run("runs", "list", "--status", "waiting")
    assert "nobody can" in out
    assert f"1 of these cannot begin: {nobody}" in err

    store = open_store(machine.server.url)
    sessions = set(store)
    code, out, err = machine.run("runs", "send", "and this")
    assert (code, out) == (Exit.LIMIT, "")
    assert "the queue of all runs is full: 1 wait, and at most 1 may; nothing was submitted" in err
    assert set(store) == sessions
    store.close()


def test_limits_are_read() -> None:
    assert read_limits(("tenant:a=b=10/60", "provider:x=1/0.5", "tenant:c=off")) == {
        "tenant:a=b": (10, 60.0),
        "provider:x": (1, 0.5),
        "tenant:c": None,
    }


@pytest.mark.parametrize(
    "text", ["", "tenant:a", "tenant:=1/2", "who:a=1/2", "tenant:a=x/2", "tenant:a=1", "tenant:a=0/2"]
)
def test_limits_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        read_limits((text,))


def show(machine: Machine, run_id: str) -> dict[str, object]:
    code, out, err = machine.run("runs", "show", run_id, "--json")
    assert code == 0, err
    found: dict[str, object] = json.loads(out)["run"]
    return found


def wait_over(machine: Machine, run_id: str) -> dict[str, object]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = show(machine, run_id)
        if found["status"] not in ("waiting", "running"):
            return found
    pytest.fail(f"run {run_id} is not over after {PATIENCE} s")
