from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from agent_server.testing import Served

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def served(shared: Served) -> Served:
    return shared


def add(served: Served, session_id: str, data: bytes, name: str, kind: str = "") -> dict[str, object]:
    headers = {"content-type": kind} if kind else {}
    answer = served.client.post(
        f"/v1/sessions/{session_id}/assets", params={"name": name}, content=data, headers=headers
    )
    assert answer.status_code == 201, answer.text
    found: dict[str, object] = answer.json()
    return found


def test_a_file_is_kept_listed_read_and_removed(served: Served) -> None:
    session_id = served.new_session()
    asset = add(served, session_id, PNG, "a.png")
    path = f"/v1/sessions/{session_id}/assets"

    assert (asset["media_type"], asset["size"], asset["name"]) == ("image/png", len(PNG), "a.png")
    assert served.client.get(path).json()["items"] == [asset]
    read = served.client.get(f"{path}/{asset['id']}")
    assert read.content == PNG
    assert read.headers["content-disposition"] == "inline; filename*=UTF-8''a.png"
    again = served.client.get(f"{path}/{asset['id']}", headers={"if-none-match": read.headers["etag"]})
    assert again.status_code == 304
    assert served.client.delete(f"{path}/{asset['id']}").status_code == 204
    assert served.client.get(f"{path}/{asset['id']}").status_code == 404


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-3", 206, slice(0, 4)),
        ("bytes=4-", 206, slice(4, None)),
        ("bytes=-4", 206, slice(-4, None)),
        ("bytes=260-9999", 206, slice(260, None)),
        ("bytes=9999-", 416, slice(0, 0)),
        ("bytes=5-2", 416, slice(0, 0)),
        ("bytes=0-1,3-4", 200, slice(None)),
        ("nonsense", 200, slice(None)),
    ],
)
def test_a_part_of_a_file_can_be_read(served: Served, asked: str, status: int, part: slice) -> None:
    session_id = served.new_session()
    asset = add(served, session_id, PNG, "a.png")

    answer = served.client.get(f"/v1/sessions/{session_id}/assets/{asset['id']}", headers={"range": asked})

    assert answer.status_code == status
    if status != 416:
        assert answer.content == PNG[part]
    if status == 206:
        start = range(len(PNG))[part].start
        assert answer.headers["content-range"] == f"bytes {start}-{start + len(PNG[part]) - 1}/{len(PNG)}"


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"<script>alert(1)</script>", "a.html", "text/html"),
        (b"<svg onload=alert(1)>", "a.svg", "image/svg+xml"),
        (b"<svg onload=alert(1)>", "a.png", "image/png"),
        (b"alert(1)", "a.js", "text/javascript"),
        (b"%PDF-1.4", "a.pdf", "application/pdf"),
        (b"\0\1\2", 'a"\r\nx: y.bin', "application/x-anything"),
    ],
)
def test_what_a_browser_could_run_is_only_downloaded(
    served: Served, data: bytes, name: str, kind: str
) -> None:
    session_id = served.new_session()
    asset = add(served, session_id, data, name, kind)

    answer = served.client.get(f"/v1/sessions/{session_id}/assets/{asset['id']}")

    shown = answer.headers["content-disposition"].startswith("inline")
    assert not shown or answer.headers["content-type"].startswith("text/plain")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "x" not in answer.headers


def test_a_file_of_another_session_is_not_found(served: Served) -> None:
    mine, other = served.new_session(), served.new_session()
    asset = add(served, mine, PNG, "a.png")

    assert served.client.get(f"/v1/sessions/{other}/assets/{asset['id']}").status_code == 404
    assert served.client.delete(f"/v1/sessions/{other}/assets/{asset['id']}").status_code == 404
    assert served.client.get(f"/v1/sessions/{mine}/assets/{asset['id']}").status_code == 200
