"""What the files tool costs: searching beside ripgrep itself, and one call with all its records.

Ratios are inside one run and mean something on any machine; milliseconds are those of this one. The time in
which the disk confirms a write belongs to the disk, so it is measured apart.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from files_tool import FilesTool

if TYPE_CHECKING:
    from collections.abc import Callable

FILES, ROUNDS, CALLS = 20_000, 9, 300
PER_FOLDER = 20


class Waiting:
    """How long the disk was waited for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._fsync = os.fsync

    def __call__(self, fd: int) -> None:
        began = time.perf_counter()
        self._fsync(fd)
        self.seconds += time.perf_counter() - began


class Session:
    """A session that works in a folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.tool = FilesTool()
        self.state = self.tool.init({"roots": [str(self.root)], "journal": str(folder / "journal")})

    def run(self, tool_name: str, **arguments: Any) -> Any:
        result = self.tool.execute_tool(tool_name, arguments, self.state, context={"session_id": "bench"})
        assert result["success"], result
        return result["result"]


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<44}{figure:>12}  {note}")


def grow(root: Path) -> None:
    """Write twenty thousand files of about two kilobytes; one in five hundred has the word."""
    chance = random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    for number in range(FILES):
        folder = root / f"package{number // (PER_FOLDER * 25)}" / f"module{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        lines = [" ".join(chance.choices(words, k=7)) for _ in range(40)]
        (folder / f"file{number}.py").write_text("\n".join(lines + ["needle"] * (number % 500 == 0)))
    (root / ".gitignore").write_text("*.pyc\nbuild/\nnode_modules/\n")


def in_turns(*works: Callable[[], object]) -> list[float]:
    """Return the best time of each, in milliseconds."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for which, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[which] = min(best[which], (time.perf_counter() - began) * 1000)
    return best


def search(folder: Path) -> None:
    session = Session(folder)
    grow(session.root)
    rg = shutil.which("rg")

    def ours() -> str:
        answer: str = session.run("search_files", pattern="needle")
        assert answer.count(": needle") == FILES // 500
        return answer

    def alone() -> str:
        with patch.dict(os.environ, PATH=""):  # where ripgrep is not found
            return ours()

    if rg is None:
        [without] = in_turns(alone)
        line("searching 20,000 files, without ripgrep", f"{without:.0f} ms", "install ripgrep to compare")
        return
    command = [rg, "--no-config", "--line-number", "needle", "."]
    theirs = partial(subprocess.run, command, cwd=session.root, capture_output=True, check=True)
    with_it, without, itself = in_turns(ours, alone, theirs)
    line(
        "searching 20,000 files, with ripgrep", f"{with_it / itself:.2f}x", "ripgrep itself; target: under 2x"
    )
    line(
        "searching 20,000 files, without ripgrep",
        f"{without / itself:.2f}x",
        f"ripgrep itself ({itself:.0f} ms)",
    )
    assert ours() == alone()


def measure(what: str, waiting: Waiting, work: Callable[[int], object], target: str) -> None:
    """Print the shortest time of a call without the time for which it waited for the disk."""
    best, waited = float("inf"), []
    for number in range(CALLS):
        waiting.seconds = 0.0
        began = time.perf_counter()
        work(number)
        best = min(best, time.perf_counter() - began - waiting.seconds)
        waited.append(waiting.seconds)
    note = f"{target}; and {sorted(waited)[CALLS // 2] * 1000:.2f} ms of waiting for the disk"
    line(what, f"{best * 1000:.2f} ms", note)


def single_calls(folder: Path) -> None:
    session = Session(folder)
    text = "".join(f"line {number}\n" for number in range(100))
    (session.root / "edited.py").write_text(text + "count = 0\n")
    (session.root / "read.py").write_text(text)
    waiting = Waiting()
    with patch.object(os, "fsync", waiting):
        measure("reading a small file", waiting, lambda _: session.run("read_file", path="read.py"), "")
        measure(
            "editing a small file, journal included",
            waiting,
            lambda number: session.run(
                "edit_file", path="edited.py", old=f"count = {number}\n", new=f"count = {number + 1}\n"
            ),
            "target: under 1 ms",
        )
        measure(
            "writing a small file, journal included",
            waiting,
            lambda number: session.run("write_file", path="written.py", content=f"{text}{number}\n"),
            "target: under 1 ms",
        )


def memory_folder() -> str | None:
    """Return a folder in memory, where moving a file waits for no disk either; None if there is none."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        search(Path(folder))
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        single_calls(Path(folder))


if __name__ == "__main__":
    main()
