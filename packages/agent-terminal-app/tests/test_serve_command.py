"""`agent serve` in a process of its own, and `agent run --server`, which asks it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import pytest

from agent_app.store import open_store
from agent_terminal_app.testing.command import run_agent
from agent_testing.chat import chat_reply
from agent_testing.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Started(NamedTuple):
    """A server that runs, and what it printed."""

    url: str
    link: str
    process: subprocess.Popen[str]
    environment: Mapping[str, str]
    home: Path

    @property
    def token(self) -> str:
        return (self.home / "data" / "agent" / "server-token").read_text().strip()


def environment_of(home: Path) -> dict[str, str]:
    places = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("data", "config", "state", "cache")}
    return {**os.environ, **places, "HOME": str(home), "AGENT_KEYRING": "off", "AGENT_SERVER_TOKEN": ""}


@contextmanager
def started(home: Path, *arguments: str, **more: str) -> Iterator[Started]:
    environment = {**environment_of(home), **more}
    environment.pop("AGENT_SERVER_TOKEN")
    command = [sys.executable, "-m", "agent_terminal_app", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=home) as process:
        assert process.stdout is not None
        url, link = (process.stdout.readline().split()[-1] for _ in range(2))
        try:
            yield Started(url, link, process, environment, home)
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A user whose model is a server that says hello."""
    with ScriptedServer(otherwise=chat_reply("hello")) as model:
        config = tmp_path / "config" / "agent" / "config.toml"
        config.parent.mkdir(parents=True)
        address = f'[plugins.openai_compatible]\nbase_url = "{model.url}"\napi_key = ""\n'
        config.write_text(f'model = "openai_compatible:m"\nplugin_ids = []\n{address}')
        yield tmp_path


def test_a_server_starts_answers_and_stops(home: Path) -> None:
    with started(home) as server:
        own = {"authorization": f"Bearer {server.token}"}
        with httpx2.Client(base_url=server.url, headers=own, timeout=60) as client:
            session_id = client.post("/v1/sessions").json()["id"]
            asked = client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "hi"})
            settings = client.get("/v1/settings").json()["items"]
            findings = client.get("/v1/doctor").json()["items"]
            changed = client.put("/v1/settings/ui.theme", json={"value": "light"})
            unknown = client.put("/v1/settings/ui.no_such_setting", json={"value": 1})
        found = json.loads((home / "state" / "agent" / "server.json").read_text())
        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(60) == 0
    assert asked.json()["text"] == "hello"
    assert changed.json()["applies"] == "restart"
    assert 'theme = "light"' in (home / "config" / "agent" / "config.toml").read_text()
    assert unknown.status_code == 422
    assert found["url"] == server.url
    assert {one["name"]: one["value"] for one in settings}["model"] == "openai_compatible:m"
    assert {one["check"] for one in findings} >= {"configuration"}
    assert not (home / "state" / "agent" / "server.json").exists()
    assert (home / "data" / "agent" / "server-token").stat().st_mode & 0o777 == 0o600


def test_the_link_logs_a_browser_in_once(home: Path) -> None:
    with started(home) as server, httpx2.Client(base_url=server.url, timeout=60) as browser:
        assert browser.get("/v1/sessions").status_code == 401
        assert browser.get(server.link).status_code == 303
        assert browser.get("/v1/sessions").status_code == 200
        assert "<title>Keelwork</title>" in browser.get("/").text
        browser.cookies.clear()
        assert browser.get(server.link).status_code == 401


def test_sessions_work_in_the_folder_in_which_the_server_was_started(home: Path) -> None:
    with started(home) as server:
        headers = {"authorization": f"Bearer {server.token}"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
            session_id = client.post("/v1/sessions", json={}).json()["id"]

    with closing(open_store(f"sqlite:///{home}/data/agent/app.db")) as store:
        assert store.load(session_id).session.metadata["workspace_roots"] == [str(home)]


def test_a_script_asks_the_agent_of_a_server(home: Path) -> None:
    with started(home) as server:
        environment = dict(server.environment)
        asked = run_agent("run", "hi", "--server", server.url, environment=environment, folder=home)
        events = run_agent(
            "run", "hi", "--json", "--server", server.url, environment=environment, folder=home
        )
        wrong = {**environment, "AGENT_SERVER_TOKEN": "a-token-that-is-wrong"}
        refused = run_agent("run", "hi", "--server", server.url, environment=wrong, folder=home)

    assert (asked.returncode, asked.stdout) == (0, "hello\n")
    assert json.loads(events.stdout.splitlines()[-1])["type"] == "final"
    assert refused.returncode == 3
    assert "not good any more; put the token of the server into AGENT_SERVER_TOKEN" in refused.stderr
    gone = run_agent("run", "hi", "--server", server.url, environment=environment, folder=home)
    assert gone.returncode == 1
    assert gone.stderr.startswith(f"agent: {server.url} cannot be reached: ")
    assert "is `agent serve` running there?" in gone.stderr


def test_others_are_let_in_only_with_a_chosen_token(home: Path) -> None:
    environment = environment_of(home)
    del environment["AGENT_SERVER_TOKEN"]

    open_to_all = run_agent("serve", "--host", "0.0.0.0", environment=environment, folder=home)
    with_none = run_agent("serve", "--host", "0.0.0.0", "--token", "", environment=environment, folder=home)
    short = run_agent("serve", "--token", "short", environment=environment, folder=home)
    empty = run_agent("serve", "--token", "", environment=environment, folder=home)

    assert open_to_all.returncode == with_none.returncode == short.returncode == empty.returncode == 2
    assert "--token" in open_to_all.stderr
    assert "--token" in with_none.stderr
    assert "16" in short.stderr
    assert "16" in empty.stderr


def test_a_browser_is_opened_with_the_link_and_answered_while_it_is_open(home: Path) -> None:
    browser, opened = home / "browser", home / "opened"
    os.mkfifo(opened)
    address = "sys.argv[1].split('login')[0] + 'livez'"
    asks = f"import sys, urllib.request as r; print(r.urlopen({address}, timeout=30).status)"
    browser.write_text(f'#!/bin/sh\n{{ echo "$1"; {sys.executable} -c "{asks}" "$1"; }} > {opened}\n')
    browser.chmod(0o700)

    with started(home, "--open", BROWSER=str(browser)) as server:
        assert opened.read_text().split() == [server.link, "200"]


def test_a_given_token_and_store_are_used_and_the_kept_ones_are_not(home: Path) -> None:
    token, file = "a-token-of-my-own-choice", home / "other.db"

    with started(home, "--token", token, "--store", f"sqlite:///{file}") as server:
        made = httpx2.post(f"{server.url}/v1/sessions", headers={"authorization": f"Bearer {token}"})

    assert made.status_code == 201
    with closing(open_store(f"sqlite:///{file}")) as store:
        assert store.info(made.json()["id"]).id == made.json()["id"]
    assert not (home / "data" / "agent" / "server-token").exists()


def test_where_it_cannot_listen_is_said_with_what_to_do(home: Path) -> None:
    environment = environment_of(home)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = run_agent("serve", "--port", str(taken.getsockname()[1]), environment=environment, folder=home)
    name = ("serve", "--token", "a-token-of-my-own-choice", "--host", "no-such-name.invalid")
    nowhere = run_agent(*name, environment=environment, folder=home)

    assert busy.returncode == nowhere.returncode == 1
    assert "Choose another --port" in busy.stderr
    assert "--host is an address of this machine" in nowhere.stderr


def test_workers_need_a_database_that_they_can_share(home: Path) -> None:
    arguments = ("serve", "--workers", "2", "--store", f"sqlite:///{home}/other.db")
    done = run_agent(*arguments, environment=environment_of(home), folder=home)

    assert done.returncode == 2
    assert "--workers needs --store postgresql://" in done.stderr


def test_without_any_model_it_says_how_to_get_one(home: Path) -> None:
    (home / "config" / "agent" / "config.toml").write_text("")
    hides = home / "hides"
    hides.mkdir()
    (hides / "sitecustomize.py").write_text("import sys\nsys.modules['local_llama_provider'] = None\n")
    environment = {**environment_of(home), "PYTHONPATH": str(hides)}
    command = [sys.executable, "-m", "agent_terminal_app", "serve", "--port", "0"]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    assert "the embedded model is not installed" in done.stderr
    assert "`agent setup` connects another model" in done.stderr


def test_a_replica_is_one_of_a_store(home: Path) -> None:
    arguments = ("serve", "--replica", "postgresql://somewhere/else")
    done = run_agent(*arguments, environment=environment_of(home), folder=home)

    assert done.returncode == 2
    assert "--replica needs --store" in done.stderr


def test_a_proxy_is_named_by_its_address(home: Path) -> None:
    done = run_agent("serve", "--trust-proxy", "my-proxy", environment=environment_of(home), folder=home)

    assert done.returncode == 2
    assert "--trust-proxy: 'my-proxy'" in done.stderr


def test_a_token_that_others_can_read_is_not_used(home: Path) -> None:
    file = home / "data" / "agent" / "server-token"
    file.parent.mkdir(parents=True)
    file.write_text("a-token-that-everybody-reads\n")
    file.chmod(0o644)
    environment = environment_of(home)
    del environment["AGENT_SERVER_TOKEN"]

    refused = run_agent("serve", "--port", "0", environment=environment, folder=home)

    assert refused.returncode == 3
    assert "can be read by others" in refused.stderr


def test_a_server_for_several_people(home: Path) -> None:
    with started(home, "--team", "--limit-runs", "3") as server:
        operator = {"authorization": f"Bearer {server.token}"}
        with httpx2.Client(base_url=server.url, headers=operator, timeout=60) as client:
            for name, tenant in (("ada", "red"), ("bob", "blue")):
                client.post("/v1/people", json={"id": name, "tenant": tenant, "role": "owner"})
            made = [
                client.post("/v1/people/api-keys", params={"person_id": name}, json={}).json()
                for name in ("ada", "bob")
            ]
        ada, bob = ({"authorization": f"Bearer {key['secret']}"} for key in made)
        session_id = httpx2.post(f"{server.url}/v1/sessions", headers=ada, json={}, timeout=60).json()["id"]
        path = f"{server.url}/v1/sessions/{session_id}"
        asked = httpx2.post(f"{path}/runs?wait=true", headers=ada, json={"text": "hi"}, timeout=60)
        me = httpx2.get(f"{server.url}/v1/me", headers=ada, timeout=60).json()

        assert asked.json()["text"] == "hello"
        assert httpx2.get(path, headers=bob, timeout=60).status_code == 404
        assert me["allowed"]["runs"] == 3
    secret = home / "data" / "agent" / "server-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert (home / "data" / "agent" / "app.db.people").stat().st_mode & 0o777 == 0o600


def test_several_people_cannot_share_one_memory(home: Path) -> None:
    pytest.importorskip("memory_feature")
    config = home / "config" / "agent" / "config.toml"
    config.write_text(f'more_plugins = ["memory"]\n{config.read_text()}')

    refused = run_agent("serve", "--team", "--port", "0", environment=environment_of(home), folder=home)

    assert refused.returncode == 3
    assert "all people would share one memory: assistant" in refused.stderr
    assert "take memory out of plugin_ids and more_plugins" in refused.stderr


def test_a_provider_needs_to_know_where_the_server_is(home: Path) -> None:
    done = run_agent(
        "serve",
        "--port",
        "0",
        "--oidc-issuer",
        "https://login.example",
        environment=environment_of(home),
        folder=home,
    )

    assert done.returncode == 2
    assert "--public-url" in done.stderr
