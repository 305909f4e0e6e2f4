"""What is found beside the embedded model: keys by their variables, servers by how they answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.first_run.connections import (
    KNOWN,
    SERVERS,
    find_connection,
    installed_connections,
    keys_in_environment,
    keys_in_store,
    own_server,
    servers_nearby,
)
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.paths import Paths
from agent_testing import ScriptedServer, ServerReply, captive_portal, chat_models, error_reply

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_found_by_their_variables() -> None:
    environment = {"GOOGLE_API_KEY": "k", "GROQ_API_KEY": "k", "OPENAI_API_KEY": "  ", "OTHER_API_KEY": "k"}

    found = keys_in_environment(environment)

    assert [(one.connection.name, one.key) for one in found] == [
        ("gemini", "env:GOOGLE_API_KEY"),
        ("groq", "env:GROQ_API_KEY"),
    ]


def test_keys_that_are_stored_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEYRING", "off")
    store = KeyStore(Paths(config=tmp_path, data=tmp_path, state=tmp_path, cache=tmp_path))
    store.set("groq", "some-key")
    store.set("mine", "some-key")

    assert [one.key for one in keys_in_store(store)] == ["stored:groq"]


def test_every_connection_has_a_name_of_its_own_and_its_plugin_is_installed() -> None:
    names = [one.name for one in KNOWN]

    assert len(set(names)) == len(names)
    assert {one.name for one in (*installed_connections(), *SERVERS)} >= set(names)
    assert find_connection("openai") is find_connection("openai_responses") is not None
    assert find_connection("nobody") is None


ANSWERS = [
    (chat_models("m"), True),
    (error_reply(401, "a key, please"), True),
    (captive_portal(), False),
    (error_reply(404, "a server of something else"), False),
    (chat_models("m").never_begin(), False),
    (ServerReply.refuse(chat_models("m")), False),
]


@pytest.mark.parametrize(("reply", "there"), ANSWERS)
def test_a_server_is_known_by_how_it_answers(reply: ServerReply, there: bool) -> None:
    with ScriptedServer(otherwise=reply) as server:
        patience = 60.0 if there else 0.2

        found = asyncio.run(servers_nearby([own_server(f"{server.url}/v1")], patience))

        assert bool(found) is there
        assert server.connections == 1
        server.wait_until_closed()
    if there:
        assert server.request.path == "/v1/models" and "authorization" not in server.request.headers


def test_servers_are_asked_at_the_same_time_and_listed_in_order() -> None:
    held = [ScriptedServer(otherwise=chat_models("m").never_begin()) for _ in range(3)]
    with held[0], held[1], held[2]:

        async def ask_and_release() -> list[str]:
            servers = [own_server(f"{one.url}/v1") for one in held]
            looking = asyncio.ensure_future(servers_nearby(servers, 20.0))
            for one in reversed(held):  # nobody would come this far if they were asked one by one
                await asyncio.to_thread(one.wait_until_stalled)
                one.release()
            return [found.connection.base_url for found in await looking]

        assert asyncio.run(ask_and_release()) == [f"{one.url}/v1" for one in held]
        for one in held:
            one.wait_until_closed()


def test_nobody_elsewhere_is_asked() -> None:
    assert asyncio.run(servers_nearby([own_server("http://192.0.2.1:11434/v1")], 60.0)) == []


def test_a_port_that_is_closed_and_one_that_talks_nonsense_are_no_servers() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        nearby = [own_server(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")]

        def talk_nonsense() -> None:
            connection, _address = listening.accept()
            with connection:
                connection.sendall(b"SSH-2.0-x\r\n\r\n")
                connection.recv(4096)

        talking = threading.Thread(target=talk_nonsense)
        talking.start()
        assert asyncio.run(servers_nearby(nearby, 5.0)) == []
        talking.join()
    assert asyncio.run(servers_nearby(nearby, 5.0)) == []
