from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from anthropic_provider.messages import to_block, to_item

PIXEL = "R0lGODlhAQABAAAAADs="
GIF = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": PIXEL}}


def test_the_parts_of_a_message_become_blocks() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "data": PIXEL, "mime_type": "image/gif"},
    ]

    item = to_item({"role": "user", "content": "What is this?", "multipartContent": parts})

    assert item == {"role": "user", "content": [parts[0], GIF]}


@pytest.mark.parametrize(
    "image",
    [
        {"type": "image", "data": PIXEL, "mime_type": "image/gif"},
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PIXEL}"}},
        {"type": "input_image", "image_url": f"data:image/gif;base64,{PIXEL}"},
        {"inlineData": {"mimeType": "image/gif", "data": PIXEL}},
        {"type": "file", "mime_type": "image/gif", "data": PIXEL, "name": "pixel.gif"},
    ],
)
def test_an_image_in_any_dialect_is_sent_as_one(image: dict[str, Any]) -> None:
    assert to_block(image) == GIF


def test_an_image_may_have_an_address_and_may_lack_its_type() -> None:
    url = {"type": "image", "url": "https://pixel.example/p.png"}

    assert to_block(url) == {"type": "image", "source": {"type": "url", "url": url["url"]}}
    assert to_block({"type": "image", "data": PIXEL})["source"]["media_type"] == "image/png"


def test_files_become_documents() -> None:
    pdf = {"type": "file", "data": "JVBERi0=", "mime_type": "application/pdf", "name": "a.pdf"}
    note = {"type": "file", "data": b64encode(b"Tea.").decode(), "mime_type": "text/markdown", "name": "n.md"}
    far = {"type": "file", "url": "https://paper.example/p.pdf", "name": "p.pdf"}
    chat = {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
    }

    base64 = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    document = {"type": "document", "source": base64, "title": "a.pdf"}
    assert to_block(pdf) == to_block(chat) == document
    assert to_block(note)["source"] == {"type": "text", "media_type": "text/plain", "data": "Tea."}
    assert to_block(far)["source"] == {"type": "url", "url": "https://paper.example/p.pdf"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "data": "UEsDBA==", "mime_type": "application/zip", "name": "a.zip"},
        {"type": "file", "data": "//8=", "mime_type": "text/plain", "name": "latin.txt"},
        {"type": "file", "name": "nowhere"},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"executableCode": {"code": "1"}},
        {"type": "image", "nothing": True},
    ],
)
def test_what_the_api_cannot_read_becomes_a_note(part: dict[str, Any]) -> None:
    block = to_block(part)

    assert block["type"] == "text" and "left out" in block["text"]


def test_text_in_any_dialect_is_sent_as_text() -> None:
    tea = {"type": "text", "text": "tea"}

    assert to_block({"type": "input_text", "text": "tea"}) == to_block({"text": "tea"}) == tea


def test_an_empty_file_is_said_to_be_empty() -> None:
    assert to_block({"type": "file", "data": "", "mime_type": "text/plain", "name": "a.txt"}) == {
        "type": "text",
        "text": "[a.txt is empty]",
    }


@pytest.mark.parametrize(
    "own",
    [
        {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}, "odd": 1},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "citations": {"enabled": True}},
        {"type": "image", "source": {"type": "file", "file_id": "file_2"}},
        {"type": "search_result", "source": "https://tea.example", "title": "Tea", "content": []},
        {"type": "container_upload", "file_id": "file_3"},
        {"type": "hologram", "depth": 3},
    ],
)
def test_parts_in_the_apis_own_form_pass_unchanged(own: dict[str, Any]) -> None:
    assert to_block(own) is own


def test_a_parts_own_cache_mark_is_kept() -> None:
    mark = {"type": "ephemeral"}
    part = {"type": "image", "data": PIXEL, "mime_type": "image/gif", "cache_control": mark}

    assert to_block(part) == {**GIF, "cache_control": mark}
