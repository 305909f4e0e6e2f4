"""What is said to an agent: texts, pictures and files in one message, and messages that are made already."""

from pathlib import Path
from typing import Any

import pytest

from agent_core import ArgumentTypeError, File, Message
from agent_core.testing import EchoProvider
from agent_runtime import Agent

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = {"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgo=", "name": "cat.png"}


def said(prompt: object) -> list[Message]:
    """Return what the model was asked, as the session has it."""
    return [one for one in Agent(EchoProvider).run(prompt).session.messages if one.role == "user"]


def parts(message: Message) -> list[dict[str, Any]]:
    return [dict(part) for part in message.multipart_content or ()]


def test_a_text_and_a_picture_are_one_message() -> None:
    [message] = said(["What is this?", File(PNG, "image/png", "cat.png")])

    assert message.content == "What is this?"
    assert parts(message) == [{"type": "text", "text": "What is this?"}, PICTURE]


def test_a_picture_alone_is_a_message() -> None:
    [message] = said(File(PNG, "image/png", "cat.png"))

    assert parts(message) == [PICTURE]


def test_a_text_file_is_read_and_another_file_is_sent(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("Buy tea.")

    [message] = said(["Look.", File.from_path(notes), File(b"\xff\x00", "application/zip", "all.zip")])

    assert parts(message)[1:] == [
        {"type": "text", "text": "File notes.md:\n\nBuy tea."},
        {"type": "file", "mime_type": "application/zip", "data": "/wA=", "name": "all.zip"},
    ]


@pytest.mark.parametrize(("mime_type", "kind"), [("audio/wav", "audio"), ("video/mp4", "video")])
def test_sounds_and_videos_are_parts_of_their_kind(mime_type: str, kind: str) -> None:
    [message] = said(["Listen.", File(b"RIFF", mime_type)])

    assert parts(message)[1]["type"] == kind


def test_a_pdf_is_a_file_even_if_all_of_it_is_ascii() -> None:
    [message] = said(File(b"%PDF-1.7", "application/pdf", "bill.pdf"))

    assert parts(message)[0]["type"] == "file"


def test_parts_may_be_given_as_dicts_of_any_library() -> None:
    address = {"type": "image_url", "image_url": {"url": "https://pictures.example/cat.png"}}

    [message] = said(["What is this?", address])

    assert parts(message) == [{"type": "text", "text": "What is this?"}, address]


@pytest.mark.parametrize("name", ["multipartContent", "multipart_content"])
def test_the_parts_of_a_message_are_not_lost(name: str) -> None:
    [message] = said({"role": "user", "content": "What is this?", name: [PICTURE]})

    assert parts(message) == [PICTURE]


def test_parts_as_the_content_of_a_message_reach_every_model() -> None:
    content = [{"type": "text", "text": "What is this?"}, PICTURE]

    [message] = said({"role": "user", "content": content})

    assert (message.content, parts(message)) == ("What is this?", content)


def test_texts_alone_are_a_message_each() -> None:
    assert [one.content for one in said(["Hello.", "Is anybody there?"])] == ["Hello.", "Is anybody there?"]


def test_a_message_between_texts_keeps_its_place() -> None:
    shown = Message("user", "Behind it.")

    messages = said(["Before it.", shown, "A cat:", File(PNG, "image/png", "cat.png")])

    assert [one.content for one in messages] == ["Before it.", "Behind it.", "A cat:"]
    assert [len(parts(one)) for one in messages] == [0, 0, 2]


def test_bytes_are_refused_with_what_to_write() -> None:
    with pytest.raises(ArgumentTypeError, match=r"not bytes: give a picture or a file as File\(data"):
        said(PNG)
