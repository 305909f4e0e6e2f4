"""Chats of ten lines in programs of other frameworks, each run as it is with a scripted model.

Streamlit and Gradio are large, so they are not in the lock: `make test-wheels` brings them.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import agent_runtime
from agent_core.testing import Reply, ScriptedProvider
from agent_runtime import Agent

COMPONENTS = Path(__file__).parents[1] / "examples" / "components"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Let the examples, which ask for the embedded model, talk to a script."""
    script = ScriptedProvider([Reply(chunks=["Hello, ", "Ada."]), "You are Ada."])
    monkeypatch.setattr(agent_runtime, "Agent", lambda _model: Agent(script))
    return script


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"component_{name}", COMPONENTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def remembers(model: ScriptedProvider) -> bool:
    """Say whether the second question came with the first one and its answer."""
    [_, second] = [request.native_messages for request in model.requests]
    return [message["content"] for message in second] == ["I am Ada.", "Hello, Ada.", "Who am I?"]


@pytest.mark.parametrize("file", sorted(COMPONENTS.glob("*.py")), ids=lambda file: file.stem)
def test_a_component_has_ten_lines(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    code = [line for line in text.splitlines()[docstring.end_lineno :] if line.strip()]

    assert len(code) <= 10, "\n".join(code)
    assert ";" not in text


def test_a_component_for_textual(model: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    textual = pytest.importorskip("textual.app")
    monkeypatch.setattr(textual.App, "run", lambda _app: None)  # the test runs it, with keys of its own
    example = load("textual_chat")

    async def talk() -> str:
        app = example.Chat()
        async with app.run_test() as pilot:
            for text in ("I am Ada.", "Who am I?"):
                app.query_one("Input").value = text
                await pilot.press("enter")
                await app.workers.wait_for_complete()
            return str(app.query_one("TextArea").text)

    assert asyncio.run(talk()) == "\n> I am Ada.\nHello, Ada.\n> Who am I?\nYou are Ada."
    assert remembers(model)


def test_a_component_for_streamlit(model: ScriptedProvider) -> None:
    testing = pytest.importorskip("streamlit.testing.v1")
    app = testing.AppTest.from_file(str(COMPONENTS / "streamlit_chat.py"), default_timeout=60)

    app.run()
    for text in ("I am Ada.", "Who am I?"):
        app.chat_input[0].set_value(text).run()

    assert not app.exception
    shown = [(message.name, message.markdown[0].value) for message in app.chat_message]
    assert shown == [
        ("user", "I am Ada."),
        ("assistant", "Hello, Ada."),
        ("user", "Who am I?"),
        ("assistant", "You are Ada."),
    ]
    assert remembers(model)


def test_a_component_for_gradio(model: ScriptedProvider) -> None:
    client = pytest.importorskip("gradio_client")
    page = load("gradio_chat").page
    _, address, _ = page.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    try:
        visitor = client.Client(address, verbose=False)
        said = [visitor.predict(text, api_name="/answer") for text in ("I am Ada.", "Who am I?")]
    finally:
        page.close()

    assert said == ["Hello, Ada.", "You are Ada."]
    assert remembers(model)
