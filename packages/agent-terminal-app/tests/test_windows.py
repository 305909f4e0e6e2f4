"""How much fits into a model: declared, listed, set, or told when its provider was connected."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider
from agent_provider_kit.testing import ScriptedServer, ServerReply, chat_reply, json_reply
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.chat.windows import Windows
from agent_terminal_app.paths import Paths
from agent_terminal_app.testing.terminal import Terminal
from agent_terminal_app.told_windows import keep_windows, kept_window, told_window
from local_llama_provider import LocalLlamaProvider
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_provider_kit.testing import ReceivedRequest


class Listing(ScriptedProvider):
    """Tells its models."""

    def __init__(self, *models: dict[str, Any]) -> None:
        answer = Reply(text="Yes.", usage={"input_tokens": 300, "output_tokens": 20})
        super().__init__(itertools.repeat(answer), name="listing")
        self._listed = list(models)

    def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        return self._listed


@pytest.fixture(autouse=True)
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    return Paths.of_this_user()


def application(provider: Any, **model: Any) -> AgentApplication:
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": provider.name, **model}}}
    return AgentApplication(config, plugins=[provider], installed=False)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ({"context_window": 9}, 9),
        ({"context_length": 8, "id": "x"}, 8),
        ({"max_model_len": 7}, 7),
        ({"context_window": None, "context_length": 6}, 6),
        ({"context_window": 0}, None),
        ({"context_window": "many"}, None),
        ({}, None),
    ],
)
def test_servers_tell_it_by_several_names(model: dict[str, Any], window: int | None) -> None:
    assert told_window(model) == window


def test_what_is_declared_is_known_at_once() -> None:
    provider = Listing({"id": "small", "context_window": 5})
    with application(provider, model="small", context_window=1000) as app:
        assert Windows(app).known("m") == 1000
        assert Windows(app).find("a", "m") == 1000


def test_the_embedded_model_knows_its_own() -> None:
    with application(LocalLlamaProvider()) as app:
        assert Windows(app).find("a", "m") == 8192
    with application(LocalLlamaProvider(), config={"context_size": 2048}) as app:
        assert Windows(app).find("a", "m") == 2048


def test_of_several_models_the_one_that_answers_is_meant() -> None:
    provider = Listing({"id": "big", "context_window": 9}, {"id": "small", "context_window": 5}, {"id": "x"})
    with application(provider, model="small") as app:
        assert Windows(app).find("a", "m") == 5
    with application(provider, model="x") as app:
        assert Windows(app).find("a", "m") is None


def test_what_a_server_told_once_is_kept_for_its_address(paths: Paths) -> None:
    keep_windows(paths, "openai_compatible", "http://a/v1", [{"id": "x", "max_model_len": 7}, {"id": "y"}])
    keep_windows(paths, "openai_compatible", "http://b/v1", [{"id": "x", "context_length": 9}])
    keep_windows(paths, "openai_compatible", "http://a/v1", [{"id": "y"}])

    for address, window in (("http://a/v1/", 7), ("http://b/v1", 9), ("http://c/v1", None)):
        with application(OpenAICompatibleProvider(), model="x", config={"base_url": address}) as app:
            assert Windows(app).find("a", "m") == window


@pytest.mark.parametrize("content", ["", "[]", '{"p": 5}', '{"p": {"x": "many"}}', "\x00"])
def test_a_cache_that_makes_no_sense_is_done_without(paths: Paths, content: str) -> None:
    paths.windows.parent.mkdir(parents=True)
    paths.windows.write_text(content)

    assert kept_window(paths, "p", "", "x") is None
    keep_windows(paths, "p", "", [{"id": "x", "context_window": 7}])
    assert kept_window(paths, "p", "", "x") == 7


async def _nothing(_event: Any) -> None:
    """Show nothing."""


async def _say(app: AgentApplication) -> str:
    """Return the meter after an answer."""
    conversation, learnt = Conversation(app), asyncio.Event()
    conversation.changed = learnt.set
    await conversation.say("hello?", _nothing)
    await asyncio.wait_for(learnt.wait(), 20)
    return conversation.meters.parts()[0]


def test_the_meter_has_the_share() -> None:
    with application(Listing({"id": "small", "context_window": 3200}), model="small") as app:
        assert asyncio.run(_say(app)) == "context 320 (10%)"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    def answer(request: ReceivedRequest) -> ServerReply:
        if request.method == "GET":
            return json_reply({"data": [{"id": "llama", "max_model_len": 400}]})
        return chat_reply("I am the llama.")

    with ScriptedServer(otherwise=answer) as server:
        yield server


def test_a_chat_shows_what_the_setup_was_told_and_so_does_one_that_goes_on(
    server: ScriptedServer, tmp_path: Path
) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "AGENT_KEYRING": "off"}
    agent = [sys.executable, "-m", "agent_terminal_app"]
    setup = [*agent, "setup", "--url", f"{server.url}/v1", "--yes"]
    subprocess.run(setup, env=environment, cwd=tmp_path, check=True, capture_output=True)
    asked = len(server.requests)
    for options in ((), ("--continue",)):
        command = [*agent, "chat", *options]
        with Terminal(command, environment=environment, folder=tmp_path, columns=100) as terminal:
            terminal.expect_line("ready")
            if not options:
                terminal.type("who?\r")
                terminal.expect("I am the llama.")
            terminal.expect_line(r"ready · F1 help · context [1-9]\d* \(\d+%\) · session")
            terminal.type("\x04")
            assert terminal.end() == 0
    assert {request.method for request in server.requests[asked:]} == {"POST"}
