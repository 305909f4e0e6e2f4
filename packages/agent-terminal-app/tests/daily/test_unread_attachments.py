"""A picture for a model that reads only text is refused before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.context_windows import WindowCache, Windows, is_text_only
from agent_testing import ServerReply, chat_reply, json_reply
from local_llama_provider import LocalLlamaProvider

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.testing.home import Home
    from agent_testing import ReceivedRequest, ScriptedServer

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
ROUTED = {"id": "scripted-model", "architecture": {"input_modalities": ["text"]}}


def answer(request: ReceivedRequest) -> ServerReply:
    if request.path.endswith("/models"):
        return json_reply({"data": [ROUTED, {"id": "seeing", "capabilities": {"vision": True}}]})
    return chat_reply("I see.")


def test_a_model_that_its_server_lists_as_text_only_gets_no_picture(
    home: Home, server: ScriptedServer
) -> None:
    server.play(*[answer] * 20)
    (home.project / "tea.png").write_bytes(PNG)

    with home.chat(columns=200) as chat:
        chat.type("/model\r")
        chat.expect("openai_compatible:seeing")
        chat.type("\x1b")
        chat.expect_line("ready")
        chat.type("@tea.png What is this?\r")
        chat.expect("tea.png is a picture, and openai_compatible:scripted-model reads only text")
        chat.expect_line("» @tea.png What is this?")
    done = home.run("run", "--attach", "tea.png", "What is this?")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tea.png was not sent: openai_compatible:scripted-model reads only text" in done.stderr
    assert not [one for one in server.requests if one.path.endswith("/completions")]

    seen = home.run("run", "--model", "openai_compatible:seeing", "--attach", "tea.png", "What is this?")
    assert seen.stdout == "I see.\n"


def test_a_setting_says_what_a_model_reads(home: Home, server: ScriptedServer) -> None:
    home.settings.write_text(
        home.settings.read_text().replace("api_key", 'capabilities = ["tools"]\napi_key')
    )
    (home.project / "tea.png").write_bytes(PNG)

    done = home.run("run", "--attach", "tea.png", "What is this?")

    assert "reads only text; attach a text file, or choose another model with --model" in done.stderr
    assert server.requests == []


def test_the_embedded_model_reads_only_text(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "agents": {"a": {"model": "m"}, "b": {"model": "own"}},
        "models": {
            "m": {"provider": "local_llama"},
            "own": {"provider": "local_llama", "config": {"model_path": "/tea.gguf"}},
        },
    }
    with AgentApplication(config, plugins=[LocalLlamaProvider()], installed=False) as app:
        windows = Windows(app, WindowCache(tmp_path / "windows.json"))
        assert windows.reads_only_text("a", "m") and windows.reads_only_text("b", "own")
        assert windows.text_only_model(app.create_session("b").session_id) == "own"


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"id": "x"}, None),
        ({"id": "x", "tags": ["tools"]}, True),
        ({"id": "x", "tags": ["tools", "vision"]}, False),
        ({"id": "x", "tags": ["files"]}, False),
        ({"id": "x", "capabilities": {"vision": False}}, True),
        ({"id": "x", "capabilities": ["completion"]}, None),
        ({"id": "x", "architecture": {"input_modalities": ["text", "image"]}}, False),
    ],
)
def test_what_descriptions_of_models_say(described: dict[str, Any], expected: bool | None) -> None:
    assert is_text_only(described) is expected
