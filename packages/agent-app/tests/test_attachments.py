"""What is attached to a message: within limits, and assets as their content."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionAssetStore
from agent_app.assets import AssetNotFound, AssetRefused
from agent_core import ArgumentError, File
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
PICTURE = b"\x89PNG\r\n\x1a\n" + b"picture" * 10


@pytest.fixture
def assets(tmp_path: Path) -> SessionAssetStore:
    return SessionAssetStore(tmp_path / "assets", max_bytes=1000, allowed_types=["image/*", "text/plain"])


@pytest.fixture
def app(assets: SessionAssetStore) -> Iterator[AgentApplication]:
    provider = ScriptedProvider(["I see."] * 9)
    application = AgentApplication(CONFIG, assets=assets, plugins=[provider], installed=False)
    yield application
    application.close()


def said(app: AgentApplication, *attachments: Any) -> Any:
    session_id = app.create_session(session_id="s").session_id
    list(app.chat(session_id, "Look", attachments=attachments))
    return app.load_session(session_id).messages[0].multipart_content


def test_an_asset_of_the_session_is_sent_as_its_content(
    app: AgentApplication, assets: SessionAssetStore
) -> None:
    picture = assets.put("s", PICTURE, name="p.png")
    note = assets.put("s", b"plain words", name="n.txt")

    parts = said(app, {"type": "asset", "asset_id": picture.id}, {"type": "asset", "asset_id": note.id})

    data = [b64encode(content).decode() for content in (PICTURE, b"plain words")]
    assert parts == [
        {"type": "text", "text": "Look"},
        {"type": "image", "mime_type": "image/png", "data": data[0], "name": "p.png"},
        {"type": "file", "mime_type": "text/plain", "data": data[1], "name": "n.txt"},
    ]


def test_a_file_is_attached_as_what_it_is(app: AgentApplication) -> None:
    parts = said(app, File(PICTURE, "image/png", "p.png"), File(b"plain words", "text/plain", "n.txt"))

    assert parts[1:] == [
        {"type": "image", "mime_type": "image/png", "data": b64encode(PICTURE).decode(), "name": "p.png"},
        {"type": "text", "text": "File n.txt:\n\nplain words"},
    ]


@pytest.mark.parametrize("asset_id", ["asset_unknown", None, 7])
def test_an_asset_that_the_session_does_not_have_is_refused(
    app: AgentApplication, assets: SessionAssetStore, asset_id: Any
) -> None:
    with pytest.raises(AssetNotFound):
        said(app, {"type": "asset", "asset_id": asset_id})
    others = assets.put("other", PICTURE, name="p.png")

    with pytest.raises(AssetNotFound):
        list(app.chat("s", "Look", attachments=[{"type": "asset", "asset_id": others.id}]))

    assert not app.load_session("s").messages


def test_a_message_that_waits_has_the_content_of_its_assets(
    app: AgentApplication, assets: SessionAssetStore
) -> None:
    session_id = app.create_session(session_id="s").session_id
    picture = assets.put(session_id, PICTURE, name="p.png")
    named = [{"type": "asset", "asset_id": picture.id}]
    content = {
        "type": "image",
        "mime_type": "image/png",
        "data": b64encode(PICTURE).decode(),
        "name": "p.png",
    }

    waiting = app.enqueue(session_id, "Look", "queue", attachments=named)
    edited = app.edit_queued(session_id, waiting.seq, "Look again", attachments=named)
    with pytest.raises(AssetNotFound):
        app.enqueue(session_id, "Look", attachments=[{"type": "asset", "asset_id": "asset_unknown"}])
    with pytest.raises(AssetRefused):
        app.enqueue(session_id, "Look", attachments=[{"type": "image", "data": LARGE}])
    list(app.chat(session_id))

    assert waiting.message["multipartContent"] == [{"type": "text", "text": "Look"}, content]
    assert edited is not None
    assert edited.message["multipartContent"][1] == content
    (said, _answer) = app.load_session(session_id).messages
    assert said.multipart_content == [{"type": "text", "text": "Look again"}, content]


@pytest.mark.parametrize(
    "part", [{}, {"x": 1}, {"type": None}, {"type": "text"}, {"type": "text", "text": 5}]
)
def test_what_no_provider_would_take_as_a_part_is_refused(
    app: AgentApplication, part: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError, match="each a dict with a `type`"):
        said(app, part)

    with pytest.raises(ArgumentError):
        app.enqueue("s", "Look", attachments=[part])
    assert not app.load_session("s").messages


LARGE = b64encode(b"x" * 1200).decode()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "mime_type": "image/png", "data": LARGE},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{LARGE}"}},
        {"type": "file", "file": {"filename": "f", "file_data": f"data:text/plain;base64,{LARGE}"}},
        {"type": "file", "mime_type": "text/html", "data": "eA=="},
        {"type": "image_url", "image_url": {"url": "data:text/html;base64,eA=="}},
    ],
    ids=["image", "image url", "file", "kind", "kind in url"],
)
def test_what_is_too_large_or_of_another_kind_is_refused_and_nothing_is_kept(
    app: AgentApplication, part: dict[str, Any]
) -> None:
    with pytest.raises(AssetRefused):
        said(app, part)

    assert not app.load_session("s").messages


def test_a_part_within_the_limits_stays_as_it_is(app: AgentApplication) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.org/p.png"}}

    assert said(app, part)[1] == part
