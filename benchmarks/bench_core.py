"""What the core itself costs, beside plain Python doing the same work in the same run.

Only the ratios mean something: the machine may be shared and slow. Run with `make bench`.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import tracemalloc
from collections import deque
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNKS = 20_000
Row = tuple[str, str, str]


class ChunkProvider:
    """Streams from memory, as cheaply as a provider can."""

    name = "chunks"
    version = "1"

    def init(self, config: dict[str, Any]) -> dict[str, Any]:
        return {"config": config, "text": []}

    def to_native_messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    def stream_api(self, native_messages: Any, state: Any) -> Iterator[str]:
        return iter(["word "] * CHUNKS)

    def process_chunk(self, chunk: str, native_messages: Any, state: Any) -> Any:
        state["text"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Any, state: Any) -> Any:
        answer = {"role": "assistant", "content": "".join(state["text"])}
        return [answer], [*native_messages, answer], state


class CountingExtension:
    """Looks at every chunk."""

    name = "counting"
    version = "1"

    def process_chunk(self, chunk: str, partials: Any, finals: Any, native_messages: Any, state: Any) -> Any:
        state["seen"] = state.get("seen", 0) + 1
        return partials, finals, native_messages, state


def feature(number: int) -> type:
    """A feature that takes part in every request without changing anything."""

    def finalize(self: Any, final_messages: Any, native_messages: Any, state: Any) -> Any:
        return final_messages, native_messages, state

    def is_enabled(self: Any, config: Any) -> None:
        type(self).asked += 1

    body = {"name": f"feature_{number}", "version": "1", "asked": 0}
    return type(f"Feature{number}", (), {**body, "finalize": finalize, "is_enabled": is_enabled})


def best(work: Callable[[], Any], repeat: int = 7) -> float:
    """Return the CPU seconds of the quickest of several runs."""
    times = []
    for _ in range(repeat):
        gc.collect()
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def bench_import() -> list[Row]:
    def cost(code: str) -> tuple[float, int]:
        count = f"{code}\nimport sys; print(len(sys.modules))"
        spent, modules = [], 0
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            out = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            modules = int(out.stdout)
        return min(spent), modules

    empty, known = cost("pass")
    asyncio_alone, _ = cost("import asyncio")
    rows: list[Row] = []
    for code in ("import agent_core", "from agent_core import AgentCore"):
        ours, modules = cost(code)
        beside = f"python -c pass; asyncio alone is {asyncio_alone / empty:.1f}x"
        rows.append((f"{code}: CPU of the process", f"{ours / empty:.1f}x", beside))
        rows.append((f"{code}: modules", f"+{modules - known}", f"{known} in python -c pass"))
    return rows


def bench_append() -> list[Row]:
    core = AgentCore()
    core.register_provider(EchoProvider)
    rows: list[Row] = []
    for native in (False, True):
        reference = 0.0
        for size in (10, 1_000, 100_000):
            session = core.create_session()
            for number in range(size if not native else min(size, 1)):
                session = core.add_message(session, "user", f"message {number}")
            if native:
                session, _ = core.send_request(session, {})
                for number in range(size):
                    session = core.add_message(session, "user", f"message {number}", config={})
            added = best(partial(_append, core, session, native=native)) / 200
            reference = reference or added
            what = "with native history and integrity" if native else "plain session"
            name = f"append to {size:,} messages, {what}"
            rows.append((name, f"{added / reference:.2f}x", "the same at 10"))
    return rows


def _append(core: AgentCore, session: Any, *, native: bool) -> None:
    config: dict[str, Any] | None = {} if native else None
    for number in range(200):
        session = core.add_message(session, "user", f"more {number}", config=config)


def bench_forks() -> list[Row]:
    core = AgentCore()
    core.register_provider(EchoProvider)
    session = core.add_message(core.create_session(), "user", "begin")
    session, _ = core.send_request(session, {})
    for number in range(10_000):
        session = core.add_message(session, "user", f"message {number} " + "x" * 200, config={})

    tracemalloc.start()
    copy = core.import_session(core.export_session(session))
    copied, _ = tracemalloc.get_traced_memory()
    before = copied
    forks = [core.fork_session(session, {}, upto_index=9_900, new_session_id=str(n)) for n in range(100)]
    forks = [core.add_message(fork, "user", "another way", config={}) for fork in forks]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(copy.messages) == len(session.messages)
    each = (after - before) / len(forks)
    return [("memory of a fork of 10,000 messages", f"{each / copied:.2%}", "a copy")]


def bare_loop() -> Iterator[dict[str, Any]]:
    """What the pipeline does for each chunk, written out by hand."""
    provider, extension = ChunkProvider(), CountingExtension()
    state: dict[str, Any] = {"text": []}
    native: list[Any] = []
    for chunk in provider.stream_api(native, state):
        partials, finals, native, state = provider.process_chunk(chunk, native, state)
        partials, finals, native, state = extension.process_chunk(chunk, partials, finals, native, state)
        for message in partials:
            yield {"type": "partial", "message": message}


def bench_chunks() -> list[Row]:
    core = AgentCore()
    core.register_provider(ChunkProvider, [CountingExtension])
    for number in range(3):
        core.register_feature(feature(number))
    session = core.add_message(core.create_session(), "user", "go")

    plain = best(lambda: deque(bare_loop(), maxlen=0)) / CHUNKS
    ours = best(lambda: deque(core.send_request_stream(session, {}), maxlen=0)) / CHUNKS
    return [
        ("streamed chunk: 1 extension, 3 features", f"{ours / plain:.2f}x", "a bare generator loop"),
        ("the pipeline's own cost per chunk", f"{(ours - plain) * 1e6:.2f} µs", "target: under 5 µs"),
    ]


def bench_enablement() -> list[Row]:
    def core_with(count: int) -> tuple[AgentCore, list[type]]:
        core = AgentCore()
        core.register_provider(EchoProvider)
        features = [feature(number) for number in range(count)]
        for one in features:
            core.register_feature(one)
        return core, features

    def resolving(core: AgentCore) -> float:
        core.get_plugins_for_config({"x": 1})
        return best(lambda: [core.get_plugins_for_config({"x": 1}) for _ in range(300)]) / 300

    few, _ = core_with(1)
    many, features = core_with(100)
    first = perf_counter()
    many.get_plugins_for_config({"x": 0})
    first = perf_counter() - first
    again = resolving(many)
    asked = sum(one.asked for one in features)  # type: ignore[attr-defined]
    return [
        ("deciding again with 100 plugins", f"{again / first:.3f}x", "deciding the first time"),
        ("deciding again with 100 plugins", f"{again / resolving(few):.1f}x", "with 1 plugin (lists names)"),
        ("is_enabled calls in 2,100 equal requests", f"{asked}", "200 = each of 2 configs once"),
    ]


def main() -> None:
    rows = [*bench_import(), *bench_append(), *bench_forks(), *bench_chunks(), *bench_enablement()]
    width = max(len(row[0]) for row in rows)
    for what, value, beside in rows:
        print(f"{what:<{width}}  {value:>9}  {beside}")


if __name__ == "__main__":
    main()
