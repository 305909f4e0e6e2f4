"""Every Python example in the documentation runs as printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent_testing.conformance import Exchange, check_plugin

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=str(p.relative_to(ROOT / "docs"))) for p in PAGES if python_blocks(p)]
)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other, later ones seeing what earlier ones defined."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}

    for block in python_blocks(page):
        exec(compile(block, str(page), "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize(
    ("page", "name", "kind"),
    [
        ("write-a-plugin", "Shout", "provider"),
        ("write-a-plugin", "Politeness", "feature"),
        ("test-your-plugin", "Politeness", "feature"),
    ],
)
def test_a_plugin_that_readers_copy_passes_the_kit(
    page: str, name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in python_blocks(ROOT / "docs" / "how-to" / f"{page}.md"):
        exec(compile(block, page, "exec", dont_inherit=True), namespace)

    report = check_plugin(namespace[name], kind, exchange=Exchange(config={"model": "loud"}))

    assert report.ok, str(report)
