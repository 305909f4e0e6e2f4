"""What the tests share: a workspace with the tool in it, and the journal beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Session
from files_tool import FilesTool, FilesUndo

if TYPE_CHECKING:
    from pathlib import Path

MakeFiles = Callable[..., "Files"]


class Files:
    """A session that works in a folder."""

    def __init__(self, root: Path, journal: Path, session_id: str = "session", **settings: Any) -> None:
        self.root = root
        self.journal = journal
        self.session_id = session_id
        self.tool = FilesTool()
        self.config = {"roots": [str(root)], "journal": str(journal), **settings}
        self.state = self.tool.init(self.config)

    @property
    def context(self) -> dict[str, Any]:
        return {"session_id": self.session_id}

    def run(self, tool_name: str, **arguments: Any) -> dict[str, Any]:
        return self.tool.execute_tool(tool_name, arguments, self.state, context=self.context)

    def ok(self, tool_name: str, **arguments: Any) -> Any:
        result = self.run(tool_name, **arguments)
        assert result["success"], result
        return result["result"]

    def refused(self, tool_name: str, **arguments: Any) -> str:
        result = self.run(tool_name, **arguments)
        assert not result["success"], result
        assert result.keys() == {"success", "error"}
        return str(result["error"])

    def display(self, tool_name: str, **arguments: Any) -> Any:
        return self.tool.format_tool_call_display(tool_name, arguments, self.state, context=self.context)

    def act(self, action_id: str, **params: Any) -> dict[str, Any]:
        session = Session(self.session_id)
        return FilesUndo().execute_action(action_id, session, [], params, {"config": self.config})

    def put(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def text(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def tree(self) -> dict[str, bytes]:
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file() and not path.is_symlink())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def make_files(tmp_path: Path) -> MakeFiles:
    """Make sessions; unless told otherwise, all work in one folder with one journal."""

    def make(
        session_id: str = "session", *, root: Path | None = None, journal: Path | None = None, **settings: Any
    ) -> Files:
        root = root or tmp_path / "work"
        root.mkdir(exist_ok=True)
        return Files(root, journal or tmp_path / "journal", session_id, **settings)

    return make


@pytest.fixture
def files(make_files: MakeFiles) -> Files:
    """A session in an empty workspace."""
    return make_files()
