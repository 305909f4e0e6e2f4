"""The habits of a release: what is forgotten is named, and figures are drawn."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def test_what_is_missing_for_a_release_is_named() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "release.py", "--quick"],
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1), done.stderr
    assert len([line for line in lines if line.startswith(("ok ", "FAIL"))]) == 5
    assert ("can be released" in done.stdout) is (done.returncode == 0)
    if "FAIL  Every distribution says where its home is." in lines:
        assert "[project.urls] with Homepage, Documentation, Source, Changelog, Issues" in done.stdout
    if "FAIL  The shipped index of plugins says that they are published." in lines:
        pages = [ROOT / "README.md", *(ROOT / "docs" / "how-to").glob("*.md")]
        unpublished = re.compile(r"published yet|until it is published|not in a package registry yet")
        saying = [page for page in pages if unpublished.search(page.read_text(encoding="utf-8"))]
        assert saying
        assert [page for page in saying if page.relative_to(ROOT).as_posix() not in done.stdout] == []


def test_the_picture_of_the_figures_is_that_of_the_history() -> None:
    history = [json.loads(line) for line in (ROOT / "benchmarks" / "history.jsonl").read_text().splitlines()]
    picture = ET.parse(ROOT / "docs" / "screens" / "performance-history.svg").getroot()
    text = " ".join("".join(one.itertext()) for one in picture.iter() if one.tag.endswith("text"))

    assert all(line["figures"] for line in history)
    for name, figure in history[-1]["figures"].items():
        assert f"{name}: {figure} loops" in text


@pytest.mark.parametrize("file", [".github/workflows/test.yml", ".pre-commit-config.yaml"])
def test_files_for_others_are_yaml_and_call_what_there_is(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    targets = {
        line.partition(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ": " in line
    }

    assert yaml.safe_load(text)
    for line in text.splitlines():
        if "run: make " in line:
            assert line.split("make ")[1].split()[0] in targets
