"""Any sequence of changes, undoing, redoing, and other programs at work, held against a model."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent_core import Session
from files_tool import FilesTool, FilesUndo

PATHS = st.sampled_from(["a.txt", "b.txt", "d/c.txt", "d/e/f.txt"])
LINES = st.lists(st.sampled_from(["one", "two", "three", "two"]), min_size=1, max_size=4)
CONTENTS = LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
Change = dict[str, tuple[str | None, str | None]]


def patch_of(path: str, before: str | None, after: str | None) -> str:
    """Return the patch that replaces everything in a file."""
    old, new = (before or "").splitlines(), (after or "").splitlines()
    return "\n".join(
        [
            f"--- {'/dev/null' if before is None else f'a/{path}'}",
            f"+++ {'/dev/null' if after is None else f'b/{path}'}",
            f"@@ -{min(1, len(old))},{len(old)} +{min(1, len(new))},{len(new)} @@",
            *(f"-{line}" for line in old),
            *(["\\ No newline at end of file"] if before and not before.endswith("\n") else []),
            *(f"+{line}" for line in new),
            "",
        ]
    )


class Machine(RuleBasedStateMachine):
    """The tool on a real folder, and what should come of it."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.root = self.folder / "work"
        self.root.mkdir()
        self.config = {"roots": [str(self.root)], "journal": str(self.folder / "journal")}
        self.tool = FilesTool()
        self.state = self.tool.init(self.config)
        self.files: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.done: list[Change] = []
        self.undone: list[Change] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def run(self, tool: str, **arguments: Any) -> bool:
        result = self.tool.execute_tool(tool, arguments, self.state, context={"session_id": "s"})
        assert isinstance(result["success"], bool)
        return bool(result["success"])

    def is_known(self, path: str) -> bool:
        return path not in self.files or self.known.get(path, self.files[path]) == self.files[path]

    def changed(self, change: Change) -> None:
        self.done.append(change)
        self.undone.clear()
        for path, (_, after) in change.items():
            self.put(path, after)
            if after is not None:
                self.known[path] = after

    def put(self, path: str, content: str | None) -> None:
        if content is None:
            self.files.pop(path, None)
        else:
            self.files[path] = content

    @rule(path=PATHS)
    def read(self, path: str) -> None:
        assert self.run("read_file", path=path) == (path in self.files)
        if path in self.files:
            self.known[path] = self.files[path]

    @rule(path=PATHS, content=CONTENTS)
    def write(self, path: str, content: str) -> None:
        before = self.files.get(path)
        succeeds = before == content or self.is_known(path)
        assert self.run("write_file", path=path, content=content) == succeeds
        if succeeds and before != content:
            self.changed({path: (before, content)})

    @rule(path=PATHS, old=st.sampled_from(["one", "two", "three\n"]), new=st.sampled_from(["1", "2\n", ""]),
          everywhere=st.booleans())  # fmt: skip
    def edit(self, path: str, old: str, new: str, everywhere: bool) -> None:
        before = self.files.get(path)
        count = 0 if before is None else before.count(old)
        succeeds = (count == 1 or (count > 1 and everywhere)) and self.is_known(path)
        assert self.run("edit_file", path=path, old=old, new=new, all=everywhere) == succeeds
        if succeeds:
            assert before is not None
            self.changed({path: (before, before.replace(old, new))})

    @rule(wanted=st.dictionaries(PATHS, st.one_of(st.none(), CONTENTS), min_size=1))
    def patch(self, wanted: dict[str, str | None]) -> None:
        change = {
            path: (self.files.get(path), after)
            for path, after in wanted.items()
            if self.files.get(path) != after and self.files.get(path) != ""
        }
        if not change:
            return
        text = "".join(patch_of(path, before, after) for path, (before, after) in change.items())
        succeeds = all(self.is_known(path) for path in change)
        assert self.run("apply_patch", patch=text) == succeeds
        if succeeds:
            self.changed(change)

    @rule(path=PATHS, content=st.one_of(st.none(), CONTENTS))
    def somebody_else_writes(self, path: str, content: str | None) -> None:
        target = self.root / path
        if content is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        self.put(path, content)

    @rule(count=st.integers(1, 3), confirm=st.booleans())
    def undo(self, count: int, confirm: bool) -> None:
        self.reverse("undo", self.done, self.undone, count, confirm=confirm)

    @rule(count=st.integers(1, 3), confirm=st.booleans())
    def redo(self, count: int, confirm: bool) -> None:
        self.reverse("redo", self.undone, self.done, count, confirm=confirm)

    def reverse(
        self, action: str, source: list[Change], target: list[Change], count: int, *, confirm: bool
    ) -> None:
        answer = FilesUndo().execute_action(
            action, Session("s"), [], {"count": count, "confirm": confirm}, {"config": self.config}
        )
        files, moved = dict(self.files), []
        for change in reversed(source[-count:]):
            if any(files.get(path) != after for path, (_, after) in change.items()):
                assert answer["status"] == "error"
                return
            moved.append({path: (after, before) for path, (before, after) in change.items()})
            for path, (before, _) in change.items():
                files.pop(path, None)
                files |= {} if before is None else {path: before}
        expected = "noop" if not source else "ok" if confirm else "plan"
        assert answer["status"] == expected
        if expected == "ok":
            del source[-count:]
            target += moved
            self.files = files

    @rule()
    def restart(self) -> None:
        self.tool = FilesTool()
        self.state = self.tool.init(self.config)

    @invariant()
    def files_are_as_in_the_model(self) -> None:
        if not hasattr(self, "files"):
            return
        found = {
            path.relative_to(self.root).as_posix(): path.read_text()
            for path in self.root.rglob("*")
            if path.is_file()
        }
        assert found == self.files


Machine.TestCase.settings = settings(
    max_examples=int(os.environ.get("FILES_EXAMPLES", "40")), stateful_step_count=25
)
TestMachine = Machine.TestCase
