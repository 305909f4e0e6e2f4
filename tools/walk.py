"""Follow one message through the platform, and count what it touches: `make walk`.

A stored session on SQLite, a provider that says three words, and the second message of a conversation (the
first one warms everything up). It prints the way of the message (functions and modules of ours that were
entered, transactions, statements, hand-overs between threads, how often the agent was resolved) and the shape
of the source. `--list` prints every function in the order in which it was first entered.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import io
import re
import sqlite3
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(__file__).parent.parent
CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}, "default_agent": "a"}
_GENERATORS = 0x20 | 0x80 | 0x200  # plain ones, coroutines, async ones
_BLANK = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
)
_NOUNS = frozenset(
    {"binding", "encoding", "rendering", "setting", "spelling", "string", "testing", "warning"}
)
"""Names that end as a gerund does and are what a user calls the thing."""


class Walk:
    """Counts what is entered while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.entered: Counter[tuple[str, str]] = Counter()
        self.statements: list[str] = []
        self._threads: list[int] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not self.on:
            return
        code = frame.f_code
        file = code.co_filename
        if "/src/" not in file or "site-packages" in file:
            return
        if frame.f_lasti > 4 and code.co_flags & _GENERATORS:  # noqa: PLR2004 - it goes on, and was entered before
            return
        self.entered[file.split("/src/")[-1], code.co_qualname] += 1
        here = threading.get_ident()
        if self._threads[-1:] != [here]:
            self._threads.append(here)

    @property
    def hand_overs(self) -> int:
        """How often the work went from one thread to another."""
        return max(0, len(self._threads) - 1)

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        """Connect to a database whose statements are noted."""
        connection: sqlite3.Connection = _connect(*arguments, **options)
        connection.set_trace_callback(lambda sql: self.statements.append(sql) if self.on else None)
        return connection


_connect = sqlite3.connect


async def follow_a_message() -> Walk:
    """Say hello twice, and return what the second one touched."""
    walk = Walk()
    sqlite3.connect = walk.connect  # type: ignore[assignment]
    threading.setprofile(walk)
    provider = ScriptedProvider([Reply(text="a short answer", chunks=["a ", "short ", "answer"])] * 2)
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/sessions.db"
        with AgentApplication(CONFIG, store=store, plugins=[provider], installed=False) as app:
            session_id = app.create_session().session_id
            for last in (False, True):
                sys.setprofile(walk)
                walk.on = last
                async for _ in app.chat_async(session_id, "hello"):
                    pass
                walk.on = False
                sys.setprofile(None)
    return walk


def shape(root: Path) -> dict[str, float]:
    """Return figures of the source: modules, and what there is of some things per 1,000 lines of code."""
    files = [*root.glob("packages/*/src/**/*.py"), *root.glob("plugins/*/src/**/*.py")]
    counts: Counter[str] = Counter()
    for file in files:
        text = file.read_text(encoding="utf-8")
        counts["lines"] += _code_lines(text)
        counts["noqa"] += text.count("# noqa")
        counts["gerunds"] += is_gerund(file.stem)
        tree = ast.parse(text)
        counts["Any"] += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
        counts["local imports"] += sum(map(_local_imports, ast.walk(tree)))
    thousands = counts["lines"] / 1000
    return {
        "source modules": len(files),
        "modules named by a gerund": counts["gerunds"],
        "imports inside functions": counts["local imports"],
        "`Any` per 1,000 code lines": round(counts["Any"] / thousands, 1),
        "`noqa` per 1,000 code lines": round(counts["noqa"] / thousands, 1),
    }


def is_gerund(name: str) -> bool:
    """Say whether a module is called after a doing and not after a thing."""
    return any(re.fullmatch(r"[a-z]{3,}ing", word) and word not in _NOUNS for word in name.split("_"))


def _local_imports(node: ast.AST) -> int:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    return sum(isinstance(one, ast.Import | ast.ImportFrom) for one in ast.walk(node))


def _code_lines(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = (range(token.start[0], token.end[0] + 1) for token in tokens if token.type not in _BLANK)
    return len({line for some in lines for line in some})


def main() -> None:
    """Read the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print every function that was entered")
    arguments = parser.parse_args()
    walk = asyncio.run(follow_a_message())
    if arguments.list:
        for file, name in walk.entered:
            print(f"{file}:{name}")
    kinds = Counter(sql.split(None, 1)[0].upper() for sql in walk.statements)
    figures = {
        "functions entered": len(walk.entered),
        "modules entered": len({file for file, _ in walk.entered}),
        "SQL transactions": kinds["BEGIN"],
        "SQL statements": len(walk.statements),
        "hand-overs between threads": walk.hand_overs,
        "times the agent is resolved": walk.entered["agent_runtime/runtime.py", "AgentRuntime.resolve"],
        **shape(ROOT),
    }
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}}  {value:>8,}")


if __name__ == "__main__":
    main()
