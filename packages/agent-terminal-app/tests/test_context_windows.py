"""How much fits into a model: declared, listed, set, or told when its provider was connected."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.context_windows import WindowCache
from agent_core.testing import Reply, ScriptedProvider
from agent_terminal_app.application import windows_of
from agent_terminal_app.chat.conversation import Conversation
from agent_terminal_app.paths import Paths
from agent_terminal_app.testing.launcher import shared_launcher
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ServerReply, chat_reply, json_reply
from local_llama_provider import LocalLlamaProvider
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_testing import ReceivedRequest


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


def test_the_embedded_model_knows_its_own_window() -> None:
    with application(LocalLlamaProvider()) as app:
        assert windows_of(app).find("a", "m") == 8192
    with application(LocalLlamaProvider(), config={"context_size": 2048}) as app:
        assert windows_of(app).find("a", "m") == 2048


def test_what_a_server_said_once_is_kept_for_its_address(paths: Paths) -> None:
    cache = WindowCache(paths.windows)

    cache.keep("openai_compatible", "http://a/v1", [{"id": "x", "max_model_len": 7}, {"id": "y"}])
    cache.keep("openai_compatible", "http://b/v1", [{"id": "x", "context_length": 9}])
    cache.keep("openai_compatible", "http://a/v1", [{"id": "y"}])

    for address, window in (("http://a/v1/", 7), ("http://b/v1", 9), ("http://c/v1", None)):
        with application(OpenAICompatibleProvider(), model="x", config={"base_url": address}) as app:
            assert windows_of(app).find("a", "m") == window


async def _nothing(_event: Any) -> None:
    """Show nothing."""


async def _say(app: AgentApplication) -> str:
    """Return the meter after an answer."""
    conversation, learnt = Conversation(app), asyncio.Event()
    conversation.changed = learnt.set
    await conversation.say("hello?", _nothing)
    await asyncio.wait_for(learnt.wait(), 60)
    return conversation.meters.part("context")


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


def set_up(command: list[str], environment: dict[str, str], folder: Path) -> None:
    """Run the setup; it gives up on a server after some seconds, which may be few on a busy machine."""
    late = "did not answer within"
    for _ in range(20):
        done = shared_launcher().run(command[1:], environment=environment, folder=folder)
        if late not in done.stderr:
            assert done.returncode == 0, done.stderr
            return
    pytest.fail("the server never answered in time")


def test_a_chat_shows_the_window_that_the_setup_found_and_so_does_a_continued_one(
    server: ScriptedServer, tmp_path: Path
) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "AGENT_KEYRING": "off"}
    agent = [sys.executable, "-m", "agent_terminal_app"]
    setup = [*agent, "setup", "--url", f"{server.url}/v1", "--yes"]
    set_up(setup, environment, tmp_path)
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
