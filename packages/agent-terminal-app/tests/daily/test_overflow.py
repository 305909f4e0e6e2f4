"""A session never sticks: whatever is too long is summarised or shortened, and the next message works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_testing import ServerReply, chat_reply, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_terminal_app.testing.home import Home
    from agent_testing import ReceivedRequest, ScriptedServer

SUMMARY = "The person asked about tea, several times."


def small_model(most: int) -> Callable[[ReceivedRequest], ServerReply]:
    """Return a server's model that takes so many characters, as a request is refused by real servers."""

    def reply(request: ReceivedRequest) -> ServerReply:
        messages = request.json["messages"]
        length = sum(len(str(message.get("content") or "")) for message in messages)
        if length > most:
            message = f"This model's maximum context length is {most} tokens. Please reduce the length."
            error = {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}
            return json_reply({"error": error}, status=400)
        last = str(messages[-1].get("content"))
        return chat_reply(
            SUMMARY if "<conversation>" in last else f"Answer to: {last[:20].strip()}", usage=None
        )

    return reply


@pytest.fixture
def model(server: ScriptedServer) -> ScriptedServer:
    server.play(*[small_model(12_000)] * 60)
    return server


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_a_conversation_that_the_server_refuses_is_summarised_and_goes_on(
    home: Home, model: ScriptedServer, columns: int
) -> None:
    with home.chat(columns=columns) as chat:
        for number in range(6):
            chat.paste(f"Question {number} " + "about green tea " * 150)
            chat.type("\r")
            chat.expect(f"Answer to: Question {number}")
            chat.expect_line("ready")
        chat.expect("sent as a summary")
        assert "Error" not in chat.text
    asked = [request.json["messages"] for request in model.requests]
    assert any(SUMMARY in str(messages[1]["content"]) for messages in asked)


def test_one_message_that_is_too_long_is_sent_in_part_and_the_next_one_works(
    home: Home, model: ScriptedServer
) -> None:
    with home.chat() as chat:
        chat.paste("FIRST " + "leaf " * 20_000 + "LAST")
        chat.type("\r")
        chat.expect("its middle is left out")
        chat.expect_line("ready")
        assert chat.text.index("its middle is left out") < chat.text.index("Answer to: FIRST")
        assert chat.text.count("its middle is left out") == 1
        chat.type("And now?\r")
        chat.expect("Answer to: And now?")
        assert "Error" not in chat.text


def test_what_cannot_be_shortened_is_refused_with_what_to_do_and_the_next_message_works(
    home: Home, server: ScriptedServer
) -> None:
    models = [small_model(100)]

    def model(request: ReceivedRequest) -> ServerReply:
        return models[-1](request)

    server.play(chat_reply("Green."), *[model] * 60)

    with home.chat() as chat:
        chat.type("Which tea?\r")
        chat.expect("Green.")
        chat.expect_line("ready")
        chat.type("How long?\r")
        chat.expect("Error: ")
        chat.expect_line("ready")
        shown = " ".join(chat.text.split())
        models.append(small_model(12_000))
        chat.type("And now?\r")
        chat.expect("Answer to: And now?")

    assert "Please reduce the length; shorten or compact the conversation, or take a model" in shown
    assert shown.count("so less of it is sent") == 1
    assert shown.count("could not be summarised") <= 1


def test_a_window_that_is_known_is_kept_without_asking_the_server(home: Home, server: ScriptedServer) -> None:
    home.set('[models."openai_compatible:scripted-model"]\nprovider = "openai_compatible"\n')
    home.set('model = "scripted-model"\ncontext_window = 6000\n')
    server.play(*[small_model(1_000_000)] * 60)

    with home.chat() as chat:
        for number in range(9):
            chat.paste(f"Question {number} " + "about green tea " * 120)
            chat.type("\r")
            chat.expect(f"Answer to: Question {number}")
            chat.expect_line("ready")
        chat.expect("sent as a summary")
