"""What many and long sessions cost: the first turn, branches, an export, the look for an id, memory.

Each part runs in a process of its own, since memory is of a process at its highest. CPU time says more than
the time that passes where other work runs on the machine; both are shown.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app import AgentApplication
from agent_core import Message, Session
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG, MANY, AT_ONCE, TURNS, WARM_UP = 100_000, 50_000, 500, 3_000, 1_000
CONFIG = {
    "agents": {"a": {"model": "m", "system_prompt": "You are helpful."}},
    "models": {"m": {"provider": "scripted"}},
}


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<62}{figure:>12}  {note}", flush=True)


def application(folder: Path, name: str, tell: Callable[[], object] = lambda: None) -> AgentApplication:
    def answer(_messages: object) -> str:
        tell()
        return "An answer of a few words."

    provider = ScriptedProvider(itertools.repeat(answer), record=False)
    return AgentApplication(
        CONFIG, store=f"sqlite:///{folder}/{name}.db", plugins=[provider], installed=False
    )


def peak() -> float:
    """Return the memory of this process at its highest, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def timed(what: str, note: str = "") -> Iterator[None]:
    began, spent = time.perf_counter(), time.process_time()
    yield
    cpu, wall = time.process_time() - spent, time.perf_counter() - began
    line(what, f"{cpu * 1000:,.1f} ms", f"of CPU; {wall * 1000:,.1f} ms passed; {note}".rstrip("; "))


# One session of 100,000 messages


def make_long(folder: Path) -> None:
    with application(folder, "long") as app:
        session = app.create_session(session_id="long")
        said = [
            Message(("user", "assistant")[n % 2], f"message number {n} of a long talk") for n in range(LONG)
        ]
        app.save_session(Session("long", said, session.metadata))


def first_turn(folder: Path) -> None:
    """Talk for the first time in a session that no provider has seen: all is converted, and stored."""
    asked: list[float] = []
    with application(folder, "long", lambda: asked.append(time.process_time())) as app:
        began = time.process_time()
        with timed("first turn without a native form", "target: 2 s"):
            for event in app.chat("long", "Hello"):
                if event["type"] == "status":
                    line(
                        "  until progress is shown",
                        f"{(time.process_time() - began) * 1000:.1f} ms",
                        "of CPU",
                    )
        line("  until the model is asked", f"{(asked[0] - began) * 1000:,.0f} ms", "of CPU")
        line("  memory of the process at its highest", f"{peak():.0f} MB", "target: 200 MB")


def next_turn(folder: Path) -> None:
    what = "first turn in a new process, opening the store included"
    with timed(what, "target: 500 ms"), application(folder, "long") as app:
        for _event in app.chat("long", "Hello"):
            pass
    line("  memory of the process at its highest", f"{peak():.0f} MB")


def branches(folder: Path) -> None:
    with application(folder, "long") as app:
        for what, index in (("the end", -1), ("the middle", LONG // 2), ("the middle, again", LONG // 2 + 2)):
            with timed(f"branching from {what}", "target: 20 ms"):
                app.fork_session("long", upto_index=index)
        with timed("editing a message in the middle"):
            app.edit_message("long", LONG // 2, "Said otherwise.")


def export(folder: Path) -> None:
    with application(folder, "long") as app, timed("exporting it, without secrets", "target: 5 s"):
        app.export_session("long", folder / "long.zip")
    line("  memory of the process at its highest", f"{peak():.0f} MB")


# Many sessions


def prefixes(folder: Path) -> None:
    with application(folder, "many") as app:
        with app.store.writing():
            for number in range(MANY):
                session = Session(f"{('abc', 'xyz')[number % 2]}{number:06}", [Message("user", "Hello")])
                app.store.create(session, title=f"Talk {number % 50}")
        for what, given in (("half of them have", "abc"), ("one has", "abc000002"), ("none has", "qrs")):
            with timed(f"looking in {MANY:,} sessions for a beginning that {what}", "target: 300 ms"):
                app.find_sessions(given)


def at_once(folder: Path) -> None:
    async def talk(app: AgentApplication) -> None:
        session = await app.create_session_async()
        for _ in range(5):
            async for _event in app.chat_async(session.session_id, "Hello " * 50):
                pass

    async def talk_all(app: AgentApplication) -> None:
        await asyncio.gather(*(talk(app) for _ in range(AT_ONCE)))

    with application(folder, "at-once") as app:
        asyncio.run(talk_all(app))
    line(f"{AT_ONCE} sessions at once, 5 turns each: memory", f"{peak():.0f} MB", "target: under 400 MB")


def growth(folder: Path) -> None:
    """Count what is left in memory: the values, since the allocator does not give all memory back."""

    async def talk(app: AgentApplication) -> list[int]:
        counted, session = [], await app.create_session_async()
        for turn in range(WARM_UP + TURNS + 1):
            if turn % 10 == 0:
                session = await app.create_session_async()
            async for _event in app.chat_async(session.session_id, f"Hello {turn}"):
                pass
            if turn in (WARM_UP, WARM_UP + TURNS):
                gc.collect()
                counted.append(sys.getallocatedblocks())
        return counted

    with application(folder, "growth") as app:
        before, after = asyncio.run(talk(app))
    line(
        f"values in memory after {TURNS:,} more turns",
        f"{after / before:.3f}x",
        "those after the first 1,000",
    )


PARTS = {
    part.__name__: part
    for part in (make_long, first_turn, next_turn, branches, export, prefixes, at_once, growth)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=PARTS, help="one part alone, in this process")
    parser.add_argument("folder", nargs="?", type=Path, help="where its sessions are")
    arguments = parser.parse_args()
    if arguments.part and arguments.folder:
        PARTS[arguments.part](arguments.folder)
        return
    folder = tempfile.mkdtemp()
    try:
        for part in PARTS:
            subprocess.run([sys.executable, __file__, part, folder], check=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
