from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_server.routes import page

if TYPE_CHECKING:
    from pathlib import Path

    from agent_server.testing import Served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    built = tmp_path / "built_page"
    monkeypatch.setattr(page, "FOLDER", built)
    return built


def test_without_a_build_the_address_says_how_to_get_the_page(shared: Served, folder: Path) -> None:
    assert not folder.exists()

    answer = shared.client.get("/")

    assert answer.status_code == 200
    assert "make page" in answer.text
    assert shared.client.get("/v1/version").status_code == 200


def test_files_with_a_hash_may_be_kept_and_the_page_itself_not(shared: Served, folder: Path) -> None:
    folder.mkdir()
    (folder / "index.html").write_text("<p>the page</p>")
    (folder / "page-0123456789ab.js").write_text("1;")

    html, script = shared.client.get("/"), shared.client.get("/page/page-0123456789ab.js")

    assert html.text == "<p>the page</p>"
    assert html.headers["cache-control"] == "no-store"
    assert "script-src 'self'" in html.headers["content-security-policy"]
    assert "unsafe" not in html.headers["content-security-policy"]
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]


@pytest.mark.parametrize(
    "name", ["index.html", "gone-0123456789ab.js", "..%2fsecret.js", "%2e%2e/secret.js", "secret.py", ".js"]
)
def test_only_files_of_the_page_are_given_out(shared: Served, folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / "index.html").write_text("x")
    (folder / "secret.py").write_text("x")
    (folder.parent / "secret.js").write_text("x")

    assert shared.client.get(f"/page/{name}").status_code in (404, 422)
