"""The site builds strictly: every page, no broken link, an API reference, and a list of pages for models."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
PUBLIC: dict[str, dict[str, list[str]]] = json.loads((ROOT / "tests" / "public_names.json").read_text())


@pytest.mark.slow
def test_the_site_builds_and_has_every_page() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "site.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        built = SITE / (place.parent if place.name == "index" else place) / "index.html"
        assert built.exists(), page
    api = SITE / "reference" / "api"
    assert "What a run came to." in (api / "agent_runtime" / "index.html").read_text(encoding="utf-8")
    for package, names in PUBLIC.items():
        anchors = re.findall(r'id="[\w.]*?(\w+)"', (api / package / "index.html").read_text(encoding="utf-8"))
        assert names.keys() - anchors == set(), package
    assert (SITE / "search.json").stat().st_size > 100_000

    listed = re.findall(r"\]\(([^)]+)\)", (SITE / "llms.txt").read_text(encoding="utf-8"))
    assert len(listed) > 80
    assert [link for link in listed if not (SITE / link / "index.html").exists()] == []
