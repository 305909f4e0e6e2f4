"""What keeping sessions costs: appending, opening, listing, searching, many at once.

Ratios are inside one run and mean something on any machine; milliseconds are those of this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import resource
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app import AgentApplication, open_store
from agent_core import AgentCore, Message, Session
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG, MANY, AT_ONCE, APPENDS, CHUNKS = 100_000, 10_000, 100, 600, 2_000
CORE = AgentCore()
CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}


def best(work: Callable[[], object], repeat: int = 7) -> float:
    """Return the shortest of several times, in milliseconds."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<44}{figure:>12}  {note}")


def application(folder: Path) -> AgentApplication:
    provider = ScriptedProvider(itertools.repeat("An answer of a few words."))
    return AgentApplication(CONFIG, store=f"sqlite:///{folder}/app.db", plugins=[provider], installed=False)


def append_and_open(app: AgentApplication) -> None:
    long = app.create_session(session_id="long")
    texts = [Message("user" if n % 2 == 0 else "assistant", f"message number {n}") for n in range(LONG)]
    app.save_session(Session("long", texts, long.metadata))
    app.create_session(session_id="short")
    spent = {"short": 0.0, "long": 0.0}
    for _ in range(100):
        for name in spent:
            with spending(spent, name):
                append(app, name)
    ratio = spent["long"] / spent["short"]
    line("appending to 100,000 messages, CPU", f"{ratio:.2f}x", "an empty session")
    with contextlib.closing(open_store(app.store.url)) as fresh:
        first = best(lambda: fresh.load("long").session.messages[0])
        last = best(lambda: fresh.load("long").session.messages[-50:])
        whole = best(fresh.load("long").session.history.read, 1)
    line("opening 100,000 messages, first page", f"{first:.1f} ms", "target: under 50 ms")
    line("opening 100,000 messages, last page", f"{last:.1f} ms", f"{last / whole:.4f}x reading the whole")
    with application(Path(app.store.url.removeprefix("sqlite:///")).parent) as other:
        branch = best(lambda: other.fork_session("long", upto_index=-1), 3)
    line("branching from the end of 100,000 messages", f"{branch:.1f} ms")


def append_beside_a_row(app: AgentApplication) -> None:
    """Compare an append with one row that is written by hand to the same disk, flushed as well."""
    folder = Path(app.store.url.removeprefix("sqlite:///")).parent
    session = app.create_session(session_id="a")
    texts = [Message("user" if n % 2 == 0 else "assistant", f"message number {n}") for n in range(2_000)]
    app.save_session(Session("a", texts, session.metadata))
    with contextlib.closing(open_rows(folder / "rows.db")) as rows:
        spent = dict.fromkeys(("row", "call", "row on the loop", "row in a thread", "call on the loop"), 0.0)
        for number in range(APPENDS):
            append_in_turn(app, rows, number, spent)
        asyncio.run(append_in_turn_async(app, rows, spent))
    call, on_the_loop = spent["call"] / spent["row"], spent["call on the loop"] / spent["row on the loop"]
    in_a_thread = spent["call on the loop"] / spent["row in a thread"]
    line("appending to 2,000 messages, CPU", f"{call:.1f}x", "one row by hand, flushed as well")
    line("the same on an event loop, CPU", f"{on_the_loop:.1f}x", "one row by hand, which holds the loop up")
    line("", f"{in_a_thread:.1f}x", "one row by hand in asyncio.to_thread")


def open_rows(path: Path) -> sqlite3.Connection:
    rows = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    rows.execute("PRAGMA journal_mode = WAL")
    rows.execute("PRAGMA synchronous = FULL")
    rows.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT, body TEXT)")
    return rows


def write_row(rows: sqlite3.Connection, text: str) -> None:
    rows.execute("INSERT INTO messages (session, body) VALUES ('a', ?)", [text])


@contextlib.contextmanager
def spending(spent: dict[str, float], what: str) -> Iterator[None]:
    began = time.process_time()
    yield
    spent[what] += time.process_time() - began


def append_in_turn(
    app: AgentApplication, rows: sqlite3.Connection, number: int, spent: dict[str, float]
) -> None:
    text = f"one more, number {number}"
    with spending(spent, "row"):
        write_row(rows, text)
    with spending(spent, "call"):
        app.save_session(CORE.append_messages(app.load_session("a"), [Message("user", text)]))


async def append_in_turn_async(
    app: AgentApplication, rows: sqlite3.Connection, spent: dict[str, float]
) -> None:
    for number in range(APPENDS):
        text = f"one more on the loop, number {number}"
        with spending(spent, "row on the loop"):
            write_row(rows, text)
        with spending(spent, "row in a thread"):
            await asyncio.to_thread(write_row, rows, text)
        with spending(spent, "call on the loop"):
            session = await app.load_session_async("a")
            await app.save_session_async(CORE.append_messages(session, [Message("user", text)]))


def append(app: AgentApplication, session_id: str) -> None:
    session = app.load_session(session_id)
    app.save_session(
        Session(session_id, session.history.append(Message("user", "one more")), session.metadata)
    )


def list_and_search(app: AgentApplication) -> None:
    for number in range(MANY):
        message = Message("user", f"a question about topic {number % 997} and animal {number % 89}")
        app.store.create(Session(f"session-{number}", [message]), title=f"Talk {number}")
    line(
        "listing 10,000 sessions, first page",
        f"{best(app.list_sessions):.1f} ms",
        "target: under 100 ms",
    )
    rare, common = best(lambda: app.list_sessions("topic 996")), best(lambda: app.list_sessions("question"))
    line("searching 10,000 sessions, rare words", f"{rare:.1f} ms", "target: under 100 ms")
    line("searching 10,000 sessions, a common word", f"{common:.1f} ms", "target: under 100 ms")


def search_many(app: AgentApplication) -> None:
    with app.store.writing():
        for number in range(MANY):
            said = [Message("user", f"a question {number} about topic {n}") for n in range(LONG // MANY)]
            app.store.create(Session(f"session-{number}", said), title=f"Talk {number}")
    both = best(lambda: app.list_sessions("question")), best(lambda: app.list_sessions("question about"))
    line("searching 100,000 messages, a word all have", f"{both[0]:.1f} ms", "target: under 100 ms")
    line("searching 100,000 messages, two such words", f"{both[1]:.1f} ms")


async def many_at_once(app: AgentApplication) -> None:
    sessions = [await app.create_session_async() for _ in range(AT_ONCE)]

    async def talk(session: Session) -> None:
        for _ in range(5):
            async for _event in app.chat_async(session.session_id, "Hello"):
                pass

    began = time.perf_counter()
    await asyncio.gather(*(talk(session) for session in sessions))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line(
        "100 sessions at once, 5 turns each",
        f"{seconds / (5 * AT_ONCE) * 1000:.1f} ms",
        "a turn, everything flushed",
    )
    line("memory of the process at its highest", f"{peak:.0f} MB", "target: under 300 MB")


def app_stream(app: AgentApplication) -> None:
    """Stream an answer of many chunks through the application, and through the core alone, in turn."""
    core = AgentCore()
    core.register_provider(ScriptedProvider(itertools.repeat(Reply(chunks=["word "] * CHUNKS))))
    asked = core.add_message(core.create_session(), "user", "Hello")
    spent = {"application": 0.0, "core": 0.0}

    async def stream() -> None:
        session = await app.create_session_async()
        for timed in (False, *[True] * 5):
            before = dict(spent)
            with spending(spent, "application"):
                async for _event in app.chat_async(session.session_id, "Hello"):
                    pass
            with spending(spent, "core"):
                async for _event in core.send_request_stream_async(asked, {"provider": "scripted"}):
                    pass
            if not timed:
                spent.update(before)

    asyncio.run(stream())
    chunk, alone = (spent[name] / (5 * CHUNKS) * 1e6 for name in ("application", "core"))
    note = f"target: under 15 µs; the core alone {alone:.1f} µs"
    line("app_stream: a chunk of 2,000, CPU", f"{chunk:.1f} µs", note)


def stream_application(folder: Path) -> AgentApplication:
    provider = ScriptedProvider(itertools.repeat(Reply(chunks=["word "] * CHUNKS)))
    return AgentApplication(CONFIG, store=f"sqlite:///{folder}/app.db", plugins=[provider], installed=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, stream_application(Path(folder)) as app:
        app_stream(app)
    for part in (many, append_beside_a_row, append_and_open, list_and_search, search_many):
        with tempfile.TemporaryDirectory() as folder, application(Path(folder)) as app:
            part(app)


def many(app: AgentApplication) -> None:
    asyncio.run(many_at_once(app))


if __name__ == "__main__":
    main()
