"""Servers on one PostgreSQL, and the workers that run what they are asked: all are real processes."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

pytest.importorskip("agent_durable")
pytest.importorskip("dbos")

from agent_app.errors import StoreUnavailable
from agent_app.store import open_store
from agent_app.testing.postgres import create_database, shared_server
from agent_server.testing import read_events, text_of, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_server.testing import Event

TOKEN = "a-token-that-all-servers-have"
PEOPLE = ("--team", "--limit-requests", "20", "--limit-runs", "2")
PLUGINS = """
import itertools, os, time
from agent_core.testing import Reply, ScriptedProvider, ToolCall


def answer(messages):
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    words = str(messages[asked]["content"]).split()
    done = [one for one in messages[asked:] if one["role"] == "tool"]
    if words[0] == "count" and len(done) < int(words[1]):
        return Reply(tool_calls=[ToolCall("note", {"number": len(done)}, f"q{asked}c{len(done)}")])
    if words[0] == "pay" and not done:
        return Reply(tool_calls=[ToolCall("pay", {"number": 1}, f"p{asked}")])
    return Reply(chunks=[f"said {len(done)}: ", *(f"{word} " for word in words)])


class Tester(ScriptedProvider):
    def __init__(self):
        super().__init__(itertools.repeat(answer), name="tester")

    def init(self, config):
        with open(os.environ["NOTES"] + ".keys", "a") as file:
            file.write(f"{config.get('api_key')}\\n")
        return super().init(config)


class Notes:
    name = "notes"
    version = "1"

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {"number": {"type": "integer"}}}
        return [
            {"type": "function", "function": {"name": name, "parameters": parameters}}
            for name in ("note", "pay")
        ]

    def execute_tool(self, tool_name, arguments, context):
        with open(os.environ["NOTES"], "a") as file:
            file.write(f"{context['session_id']} {tool_name} {arguments['number']}\\n")
        time.sleep(0.2)
        return {"success": True, "result": "noted"}
"""
CONFIG = """
default_agent = "answering"
plugin_ids = ["notes"]
[agents.answering]
model = "test"
[models.test]
provider = "tester"
model = "one"
[permissions]
allow = ["note"]
ask = ["pay"]
"""


@dataclass(frozen=True)
class Server:
    """A server that runs, and somebody who may use it."""

    process: subprocess.Popen[str]
    client: httpx2.Client

    def new_session(self) -> str:
        found: str = self.client.post("/v1/sessions", json={}).raise_for_status().json()["id"]
        return found

    def start(self, session_id: str, text: str, **headers: str) -> dict[str, Any]:
        answer = self.client.post(f"/v1/sessions/{session_id}/runs", json={"text": text}, headers=headers)
        assert answer.status_code == 202, answer.text
        started: dict[str, Any] = answer.json()
        return started

    def person(self, name: str) -> str:
        """Add somebody, and return their key."""
        about = {"id": name, "tenant": name, "role": "owner"}
        self.client.post("/v1/people", json=about).raise_for_status()
        made = self.client.post("/v1/people/api-keys", params={"person_id": name}, json={"scope": "manage"})
        secret: str = made.raise_for_status().json()["secret"]
        return secret

    def as_one(self, key: str) -> httpx2.Client:
        """Return what asks as the owner of a key."""
        own = {"authorization": f"Bearer {key}"}
        return httpx2.Client(base_url=self.client.base_url, headers=own, timeout=120)

    @contextmanager
    def follow(self, session_id: str, after: str = "0") -> Iterator[Iterator[Event]]:
        path = f"/v1/sessions/{session_id}/events?after={after}"
        with self.client.stream("GET", path, headers={"accept": "text/event-stream"}) as answer:
            assert answer.status_code == 200
            yield read_events(answer.iter_lines())


@dataclass(frozen=True)
class Site:
    """A home with settings and plugins, a database, and the processes that were started."""

    home: Path
    environment: dict[str, str]
    database: str
    stack: ExitStack

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agent_terminal_app", *arguments]
        process = subprocess.Popen(
            command, cwd=self.home, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.stack.callback(end, process)
        return process

    def serve(self, *arguments: str) -> Server:
        process = self.popen("serve", "--port", "0", "--store", self.database, *arguments)
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        own = {"authorization": f"Bearer {TOKEN}"}
        client = self.stack.enter_context(httpx2.Client(base_url=url, headers=own, timeout=120))
        return Server(process, client)

    def notes(self, session_id: str) -> list[str]:
        file = self.home / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith(session_id)]


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def opening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Site]]:
    try:
        database = create_database(shared_server())
    except StoreUnavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("servers")
    site, home = folder / "site", folder / "home"
    about, config = site / "tester-1.0.dist-info", home / "config" / "agent"
    about.mkdir(parents=True)
    config.mkdir(parents=True)
    (site / "tester_plugins.py").write_text(PLUGINS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tester\nVersion: 1.0\n")
    groups = ["[agent_platform.providers]", "tester = tester_plugins:Tester"]
    groups += ["[agent_platform.tools]", "notes = tester_plugins:Notes"]
    (about / "entry_points.txt").write_text("\n".join(groups) + "\n")
    (config / "config.toml").write_text(CONFIG)
    places = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("data", "config", "state", "cache")}
    environment = {
        **os.environ, **places, "HOME": str(home), "AGENT_KEYRING": "off", "PYTHONPATH": str(site),
        "NOTES": str(home / "notes"), "AGENT_SERVER_TOKEN": TOKEN,
    }  # fmt: skip
    with ExitStack() as stack:
        yield lambda: Site(home, environment, database, stack)


@pytest.fixture(scope="module")
def site(opening: Callable[[], Site]) -> Site:
    return opening()


@pytest.fixture(scope="module")
def first(site: Site) -> Server:
    """A server with a worker of its own."""
    return site.serve("--workers", "1", *PEOPLE)


@pytest.fixture(scope="module")
def second(site: Site, first: Server) -> Server:
    """A server that has none."""
    return site.serve("--workers", "0", *PEOPLE)


def test_any_server_streams_what_a_worker_runs(first: Server, second: Server) -> None:
    session_id = second.new_session()

    started = second.start(session_id, "hello there")
    with second.follow(session_id, started["after"]) as here, first.follow(session_id) as there:
        seen, whole = until(here, "final"), until(there, "final")
    asked = first.client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "again"})

    assert text_of(seen) == text_of(whole) == "said 0: hello there "
    assert [event.data["seq"] for event in whole] == list(range(1, len(whole) + 1))
    assert asked.json()["text"] == "said 0: again "


def test_a_request_that_is_repeated_at_another_server_is_one_run(first: Server, second: Server) -> None:
    session_id = first.new_session()

    begun = first.start(session_id, "once", **{"Idempotency-Key": "k1"})
    again = second.start(session_id, "once", **{"Idempotency-Key": "k1"})
    with second.follow(session_id, again["after"]) as events:
        until(events, "final")
    later = second.start(session_id, "once", **{"Idempotency-Key": "k1"})

    assert begun["after"] == again["after"] == later["after"]
    messages = first.client.get(f"/v1/sessions/{session_id}/messages").json()["items"]
    assert [message["role"] for message in messages if message["role"] != "system"] == ["user", "assistant"]


def test_a_session_that_runs_is_busy_for_all_and_can_be_cancelled_by_any(
    first: Server, second: Server
) -> None:
    session_id = first.new_session()
    first.start(session_id, "count 200")
    with first.follow(session_id) as events:
        until(events, "tool_call_result")
        busy = second.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "me too"})
        stopped = second.client.post(f"/v1/sessions/{session_id}/cancel")
        last = until(events, "final")[-1]

    assert busy.status_code == 409
    assert stopped.json() == {"stopped": True}
    assert last.data["reason"]["code"] == "cancelled"
    assert first.client.delete(f"/v1/sessions/{session_id}").status_code == 204


def test_of_two_requests_in_the_same_instant_one_begins_a_run(first: Server, second: Server) -> None:
    sessions = [first.new_session() for _ in range(8)]
    together = threading.Barrier(2)

    def begin(server: Server, session_id: str) -> int:
        together.wait(60)
        return server.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count 300"}).status_code

    with ThreadPoolExecutor(2) as both:
        asked = [
            [both.submit(begin, server, session_id) for server in (first, second)] for session_id in sessions
        ]
        answers = [sorted(one.result() for one in pair) for pair in asked]
    for session_id in sessions:
        first.client.post(f"/v1/sessions/{session_id}/cancel")

    assert answers == [[202, 409]] * len(sessions)


def test_what_a_person_may_ask_for_is_counted_for_all_servers_together(first: Server, second: Server) -> None:
    key = first.person("ada")
    with first.as_one(key) as here, second.as_one(key) as there:
        sessions = [here.post("/v1/sessions", json={}).raise_for_status().json()["id"] for _ in range(3)]
        clients = [here, there, there]
        runs = [
            client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count 300"})
            for client, session_id in zip(clients, sessions, strict=True)
        ]
        for session_id in sessions:
            first.client.post(f"/v1/sessions/{session_id}/cancel")
        asked = [client.get("/v1/me").status_code for client in [here, there] * 20]

    assert [run.status_code for run in runs] == [202, 202, 429]
    assert "2 runs at a time" in runs[-1].json()["detail"]
    # Twenty in a minute, of which six were made: a slow machine brings some more on the way.
    assert 14 <= asked.count(200) < 34
    assert set(asked) == {200, 429}


def test_a_key_of_a_persons_own_reaches_the_worker_and_is_written_nowhere(
    site: Site, first: Server, second: Server
) -> None:
    own = "the-key-of-eve-that-nobody-else-has"
    with second.as_one(first.person("eve")) as eve, second.as_one(first.person("joe")) as joe:
        kept = eve.put("/v1/me/provider-keys/tester", json={"key": own, "test": False})
        for client in (eve, joe):
            session_id = client.post("/v1/sessions", json={}).raise_for_status().json()["id"]
            answer = client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "hello"})
            assert answer.json()["text"] == "said 0: hello "
    seen = site.home / "notes.keys"
    keys = seen.read_text().splitlines()

    assert kept.status_code == 204, kept.text
    assert own in keys
    assert keys[-1] == "None"
    assert own not in everything_in(site.database)
    files = [file for file in site.home.rglob("*") if file.is_file() and file != seen]  # logs among them
    assert not any(own.encode() in file.read_bytes() for file in files)


def everything_in(database: str) -> str:
    """Return all rows of all tables of a database, with bytes as text."""
    import psycopg

    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT LIKE 'pg\\_%' "
            "AND schemaname <> 'information_schema'"
        ).fetchall()
        rows = [row for (name,) in tables for row in connection.execute(f"SELECT * FROM {name}".encode())]
    assert len(rows) > 20
    return str(rows)


def test_a_decision_that_one_server_takes_lets_a_worker_go_on(first: Server, second: Server) -> None:
    session_id = first.new_session()
    waits = first.client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "pay now"}).json()
    approval = second.client.get("/v1/approvals", params={"session_id": session_id}).json()["items"][0]

    with first.follow(session_id, str(waits["messages"] and 1)) as events:
        until(events, "final")
        decided = second.client.post(f"/v1/approvals/{approval['id']}", json={"approved": True})
        answered = until(events, "final")

    assert decided.status_code == 200, decided.text
    assert text_of(answered) == "said 1: pay now "


def test_a_message_in_the_middle_of_a_run_reaches_its_worker(first: Server, second: Server) -> None:
    session_id = first.new_session()
    first.start(session_id, "count 300")
    with first.follow(session_id) as events:
        until(events, "tool_call_result")
        said = second.client.post(
            f"/v1/sessions/{session_id}/inputs", json={"text": "stop it", "mode": "interrupt"}
        )
        ended = until(events, "final")

    assert said.status_code == 201
    assert "stop it" in text_of(ended)


def test_a_file_that_was_uploaded_reaches_the_worker_with_its_message(first: Server, second: Server) -> None:
    session_id = first.new_session()
    path = f"/v1/sessions/{session_id}"
    stored = second.client.post(f"{path}/assets", params={"name": "n.txt"}, content=b"words in a file").json()
    attached = {"text": "look", "attachments": [{"type": "asset", "asset_id": stored["id"]}]}
    unknown = {"text": "look", "attachments": [{"type": "asset", "asset_id": "asset_unknown"}]}

    refused = first.client.post(f"{path}/runs?wait=true", json=unknown)
    answered = first.client.post(f"{path}/runs?wait=true", json=attached)

    assert refused.status_code == 404
    assert answered.status_code == 200, answered.text
    messages = second.client.get(f"{path}/messages").json()["items"]
    (said,) = [message for message in messages if message["role"] == "user"]
    assert [part["type"] for part in said["multipartContent"]] == ["text", "file"]
    assert base64.b64decode(said["multipartContent"][1]["data"]) == b"words in a file"


def test_a_message_that_waits_and_then_interrupts_keeps_all_its_parts(first: Server, second: Server) -> None:
    session_id = first.new_session()
    path = f"/v1/sessions/{session_id}"
    parts = [{"type": "text", "text": "File n.txt: words"}]
    first.start(session_id, "count 300")
    with first.follow(session_id) as events:
        until(events, "tool_call_result")
        waiting = {"text": "stop it", "mode": "queue", "attachments": parts}
        second.client.post(f"{path}/inputs", json=waiting).raise_for_status()
        stopped = second.client.post(f"{path}/interrupt")
        until(events, "final")

    assert stopped.json() == {"stopped": True}
    messages = first.client.get(f"{path}/messages").json()["items"]
    said = next(message for message in messages if message["content"] == "stop it")
    assert said["multipartContent"] == [{"type": "text", "text": "stop it"}, *parts]


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that a process has started, from any of its threads."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_a_worker_that_dies_is_replaced_and_its_runs_are_finished(
    site: Site, first: Server, second: Server
) -> None:
    session_id = second.new_session()
    second.start(session_id, "count 12")
    with second.follow(session_id) as events:
        until(events, "tool_call_result")
        (worker,) = children(first.process)
        os.kill(worker, signal.SIGKILL)
        rest = until(events, "final")

    assert rest[-1].data["text"] == "said 12: count 12 "
    assert children(first.process) != [worker]
    notes = site.notes(session_id)
    assert set(notes) == {f"note {number}" for number in range(12)}
    assert len(notes) <= 13  # the call in the middle of which it died may have run already


@pytest.mark.slow
def test_a_server_that_stops_loses_nothing(site: Site, first: Server, second: Server) -> None:
    """Its worker hands its runs over, its readers are told to connect again, and others finish the runs."""
    leaving = site.serve("--workers", "1")
    first.process.send_signal(signal.SIGTERM)  # from now on the worker of the other one has all runs
    assert first.process.wait(180) == 0
    sessions = [leaving.new_session() for _ in range(3)]
    for session_id in sessions:
        leaving.start(session_id, "count 12")
    with ExitStack() as stack:
        streams = [stack.enter_context(leaving.follow(session_id)) for session_id in sessions]
        before = [until(events, "tool_call_result") for events in streams]
        leaving.process.send_signal(signal.SIGTERM)
        before = [[*seen, *events] for seen, events in zip(before, streams, strict=True)]
    assert leaving.process.wait(180) == 0

    site.popen("worker", "--database", site.database)
    for session_id, seen in zip(sessions, before, strict=True):
        assert seen[-1].name == "reconnect"
        place = [event.id for event in seen if event.id][-1]
        with second.follow(session_id, place) as events:
            after = until(events, "final")
        numbers = [event.data["seq"] for event in [*seen, *after] if "seq" in event.data]
        assert numbers == list(range(1, len(numbers) + 1))
        assert after[-1].data["text"] == "said 12: count 12 "
        assert sorted(site.notes(session_id)) == sorted(f"note {number}" for number in range(12))
    with closing(open_store(site.database)) as store:
        assert not any(store.inputs(session_id) for session_id in sessions)


async def read_to_the_end(addresses: list[str], session_id: str, number: int) -> list[tuple[str, int, str]]:
    """Follow a session until its run is over, at another server whenever one is gone: id, number and type."""
    seen: list[tuple[str, int, str]] = []
    place = "0"
    for turn in itertools.count(number):
        host, _, port = addresses[turn % len(addresses)].rpartition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(0.1)
            continue
        asked = f"GET /v1/sessions/{session_id}/events HTTP/1.0\r\nhost: {host}\r\nlast-event-id: {place}\r\n"
        writer.write(f"{asked}authorization: Bearer {TOKEN}\r\n\r\n".encode())
        current = ""
        try:
            while line := (await reader.readline()).decode():
                if line.startswith("id: "):
                    current = line[4:].strip()
                elif line.startswith("data: ") and "type" in (data := json.loads(line[6:])):
                    place = current
                    seen.append((place, data["seq"], data["type"]))
                    if data["type"] in ("final", "error"):
                        return seen
        except OSError:
            pass
        finally:
            writer.close()
    raise AssertionError


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_every_reader_gets_every_event_in_order_though_a_server_and_a_worker_die(site: Site) -> None:
    """`SERVE_RUNS=500 SERVE_READERS=2000` is the size that the page on growth speaks of."""
    runs, readers = int(os.environ.get("SERVE_RUNS", "20")), int(os.environ.get("SERVE_READERS", "80"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    lost, kept = site.serve("--workers", "1"), site.serve("--workers", "1")
    servers = [lost, kept]
    addresses = [f"{one.client.base_url.host}:{one.client.base_url.port}" for one in servers]
    sessions = [kept.new_session() for _ in range(runs)]
    dying = [lost.process.pid, *children(lost.process)]

    async def follow_all() -> list[list[tuple[str, int, str]]]:
        following = [
            asyncio.create_task(read_to_the_end(addresses, sessions[number % runs], number // runs))
            for number in range(readers)
        ]
        for number, session_id in enumerate(sessions):
            await asyncio.to_thread(servers[number % 2].start, session_id, "count 3")
        while sum(task.done() for task in following) < readers // 4:  # noqa: ASYNC110 - tasks that end
            await asyncio.sleep(0.05)
        for pid in dying:
            os.kill(pid, signal.SIGKILL)
        return await asyncio.gather(*following)

    logs = asyncio.run(follow_all())

    for number, seen in enumerate(logs):
        assert [seq for _place, seq, _kind in seen] == list(range(1, len(seen) + 1))
        assert seen[-1][2] == "final"
        assert seen == logs[number % runs]  # all readers of a session have seen the same


def test_workers_need_a_database_that_they_share(site: Site) -> None:
    command = [sys.executable, "-m", "agent_terminal_app", "serve", "--workers", "2"]
    done = subprocess.run(
        command, env=site.environment, cwd=site.home, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "--workers needs --store" in done.stderr
    assert json.dumps(TOKEN) not in done.stderr
