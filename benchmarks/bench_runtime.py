"""What the runtime adds to the core, beside the core driven by hand in the same run.

Only the ratios mean something: the machine may be shared and slow. Run with `make bench`.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from itertools import chain, cycle, repeat
from time import process_time
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore, Message, Session, tool
from agent_core.drivers import call
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_provider_kit.transport import HttpRequest, HttpResponse, transport_in_use
from agent_runtime import (
    Agent,
    AgentRuntimeBuilder,
    AgentSpec,
    ModelSpec,
    Phase,
    PluginRegistrar,
    RunRequest,
    StateKey,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from agent_core.steps import Flow
    from agent_runtime import AgentRuntime

STEPS = 20
RUNS = 1_000
Row = tuple[str, str, str]


@tool(blocking=False)  # the way to a thread and back would be measured otherwise
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script() -> list[Any]:
    """One run: a tool call in every step but the last."""
    reply = Reply(text="Let me see.", tool_calls=[ToolCall("add", {"a": 1, "b": 2})])
    return [*repeat(reply, STEPS - 1), "It is 3."]


class Library:
    """A plugin as plugins are: two hooks, a state key, and a tool that is a method."""

    def __init__(self, number: int) -> None:
        self.name = f"library_{number}"
        self._key: StateKey[int] = StateKey(self.name, 0)

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.state_key(self._key)
        registrar.phase_hook(Phase.RUN_START, self._look)
        registrar.phase_hook(Phase.AFTER_INFERENCE, self._look)
        registrar.tool(f"find_in_{self.name}", self.find)

    def find(self, title: str) -> str:
        """Find a book."""
        return title

    def _look(self, view: Any) -> None:
        return None


class Forgetful(ScriptedProvider):
    """A scripted provider that does not remember what it was asked."""

    def _next_reply(self, native_messages: Any, state: Any, request_id: Any) -> Any:
        reply = super()._next_reply(native_messages, state, request_id)
        self.requests.clear()
        self._tokens.clear()
        return reply


def builder(provider: Any, **fields: Any) -> AgentRuntimeBuilder:
    made = AgentRuntimeBuilder().with_model(ModelSpec("m", "p")).with_provider("p", provider)
    return made.with_agent_spec(AgentSpec("a", "m", max_rounds=STEPS + 1, **fields))


def best(work: Callable[[], Any], repeat: int = 9) -> float:
    """Return the CPU seconds of the quickest of several runs."""
    times = []
    for _ in range(repeat):
        gc.collect()
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def bench_resolve() -> list[Row]:
    libraries = [Library(number) for number in range(10)]
    made = builder(ScriptedProvider(), plugin_ids=tuple(library.name for library in libraries))
    for library in libraries:
        made.with_plugin(library.name, library)
    for number in range(20):
        made.with_tool(f"add_{number}", add.renamed(f"add_{number}"))
    runtime = made.build()
    assert len(runtime.resolve("a").tools) == 30

    def cold() -> None:
        runtime.registries.agents.replace("a", runtime.resolve("a").spec)
        runtime.resolve("a")

    warm = best(lambda: [runtime.resolve("a") for _ in range(200)]) / 200
    first = best(cold)
    name = "resolving again: 10 plugins, 30 tools"
    return [
        (name, f"{warm * 1e6:.0f} µs", "target: under 1000 µs"),
        (name, f"{warm / first:.3f}x", f"after a change of the registries ({first * 1e3:.1f} ms)"),
    ]


def by_hand(core: AgentCore, session: Session, config: dict[str, Any], *, stream: bool) -> Flow[Session]:
    """Do what the loop does at the least: ask, run the calls, add the answers, until there are no calls."""
    while True:
        turn = yield from core.request_flow(session, config, stream=stream)
        session = turn.session
        calls = core.extract_tool_calls_from_messages(turn.messages)
        if not calls:
            return session
        answers = yield from core.tool_calls_flow(calls, config)
        session = core.append_messages(session, [Message.from_dict(answer) for answer in answers])


def bench_loop() -> list[Row]:
    rows: list[Row] = []
    for stream in (False, True):
        alone, ours = _alone(stream=stream) / STEPS, _with_runtime(stream=stream) / STEPS
        name = f"a step with a tool call, {'streamed' if stream else 'at once'}"
        rows += [
            (name, f"{ours / alone:.2f}x", f"the core driven by hand ({alone * 1e6:.0f} µs)"),
            ("the loop's own cost", f"{(ours - alone) / alone:.2f}x", "the core; target: 0.5"),
        ]
    return rows


def _alone(*, stream: bool) -> float:
    core = AgentCore()
    core.register_provider(Forgetful(cycle(script())))
    core.register_tool(add)
    session = core.add_message(core.create_session(), "user", "How much is 1 and 2?")
    return best(lambda: [call(by_hand(core, session, {}, stream=stream)) for _ in range(20)]) / 20


def _with_runtime(*, stream: bool) -> float:
    runtime = builder(Forgetful(cycle(script()))).with_tool("add", add).build()
    request = RunRequest("a", "How much is 1 and 2?", stream=stream)
    result = runtime.run_to_completion(request)
    assert (result.rounds, result.text) == (STEPS, "It is 3.")
    return best(lambda: [runtime.run_to_completion(request) for _ in range(20)]) / 20


def bench_many_runs() -> list[Row]:
    provider = Forgetful(chain.from_iterable(repeat(["It is 3."])))
    runtime = builder(provider).with_tool("add", add).build()
    left, sizes = asyncio.run(_batches(runtime))
    grown = (sizes[2] - sizes[0]) / (2 * RUNS)
    return [
        (f"tasks left after {RUNS:,} runs at once", f"{left}", "target: 0"),
        ("memory after the third batch", f"{sizes[2] / sizes[0]:.2f}x", "after the first"),
        ("memory kept per run", f"{grown:.0f} B", f"of {2 * RUNS:,} runs since"),
    ]


async def _batches(runtime: AgentRuntime) -> tuple[int, list[int]]:
    """Run one batch to warm up and three more; return the tasks left, and the memory after each of these."""

    async def run() -> None:
        result = await runtime.run_to_completion_async(RunRequest("a", "How much is 1 and 2?"))
        assert result.text == "It is 3."

    sizes = []
    tracemalloc.start()
    for _ in range(4):
        await asyncio.gather(*(run() for _ in range(RUNS)))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return len(asyncio.all_tasks()) - 1, sizes[1:]


# A step of a long conversation: with a system prompt, tools, a context policy and integrity, through a real
# provider. Its transport answers at once and sends nothing, so what is measured is all that we do.

LENGTHS = (2, 2_000, 100_000)
_ANSWER = (
    b'{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"Hello."}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
)


class AtOnce:
    """A transport and its only reply."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"Content-Type": "application/json"}

    async def send(self, request: HttpRequest) -> HttpResponse:
        assert request.body is not None
        return self

    async def read(self, most: int | None = None) -> bytes:
        return _ANSWER

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield _ANSWER

    def moved_on(self) -> None: ...

    def close(self) -> None: ...


def bench_long_step() -> list[Row]:
    """Compare a step of long conversations with one of a short conversation, measured in turn."""
    numbered = [add.renamed(f"add_{number}") for number in range(10)]
    agent = Agent(
        "openai_compatible:m",
        system_prompt="You are a helpful assistant.",
        tools=numbered,
        context_policy={"max_tokens": 10_000_000},
        config={"api_key": "none", "base_url": "http://127.0.0.1:9"},
    )

    async def measure() -> dict[int, float]:
        sessions, spent = {}, {length: list[float]() for length in LENGTHS}
        for length in LENGTHS:
            said = [Message("user" if n % 2 == 0 else "assistant", f"message {n}") for n in range(length)]
            sessions[length] = (await agent.run_async("Hi", session=Session("s", said))).session
        for _ in range(15):
            gc.collect()
            for length, session in sessions.items():
                start = process_time()
                await agent.run_async("Hi", session=session)
                spent[length].append(process_time() - start)
        return {length: min(times) for length, times in spent.items()}

    with transport_in_use(AtOnce()):
        found = asyncio.run(measure())
    short = found[LENGTHS[0]]
    notes = ("of 2; target: 1.2", "of 2: comparing and copying what is sent")
    return [
        (f"a step at {length:,} messages", f"{found[length] / short:.2f}x", note)
        for length, note in zip(LENGTHS[1:], notes, strict=True)
    ]


def main() -> None:
    rows = [*bench_resolve(), *bench_loop(), *bench_long_step(), *bench_many_runs()]
    width = max(len(row[0]) for row in rows)
    for what, value, beside in rows:
        print(f"{what:<{width}}  {value:>9}  {beside}")


if __name__ == "__main__":
    main()
