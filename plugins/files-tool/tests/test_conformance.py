"""Both plugins keep to the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_testing.conformance import FeatureConformance, ToolConformance
from files_tool import FilesTool, FilesUndo

if TYPE_CHECKING:
    from pathlib import Path


class TestTool(ToolConformance):
    plugin = FilesTool
    tool_calls: ClassVar[dict[str, Any]] = {
        "read_file": {"path": "a.txt"},
        "write_file": {"path": "b.txt", "content": "new\n"},
        "edit_file": {"path": "a.txt", "old": "tea", "new": "coffee", "all": True},
        "apply_patch": {"patch": "--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+new\n"},
        "list_files": {},
        "find_files": {"glob": "*.txt"},
        "search_files": {"pattern": "t.a"},
    }

    @pytest.fixture(autouse=True)
    def _workspace(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        root = tmp_path / "work"
        root.mkdir()
        (root / "a.txt").write_text("tea\n")
        monkeypatch.setattr(TestTool, "config", {"roots": [str(root)], "journal": str(tmp_path / "journal")})


class TestFeature(FeatureConformance):
    plugin = FilesUndo

    @pytest.fixture(autouse=True)
    def _journal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(TestFeature, "config", {"journal": str(tmp_path / "journal")})
