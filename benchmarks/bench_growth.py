"""How the cost of a request grows: with the conversation, with the tools, with the requests at once.

It writes docs/explanation/growth.svg. What is measured is the CPU time of one request through `Agent`, with a
system prompt, against a server in a process of its own that answers at once. The floor is the same request
written by hand with aiohttp and orjson. Other frameworks are measured where `make bench-peers` has installed
them; each driver runs in a process of its own, and leaves out what would take it too long.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from math import log10
from pathlib import Path
from typing import Any

SYSTEM, USER = "You are a helpful assistant.", "What did I ask first?"
AXES: dict[str, tuple[int, ...]] = {
    "messages": (2, 20, 200, 2_000, 20_000, 100_000),
    "tools": (1, 10, 50, 200),
    "at once": (1, 10, 100, 1_000),
}
TITLES = {
    "messages": "messages in the conversation",
    "tools": "tools of the agent",
    "at once": "requests at once",
}
DRIVERS = {
    "floor": ("by hand (aiohttp, orjson)", "#868e96"),
    "ours": ("ours, Agent", "#1971c2"),
    "openai_agents": ("openai-agents", "#e8590c"),
    "agno": ("agno", "#2f9e44"),
}
VENVS = Path(tempfile.gettempdir()) / "bench" / "venvs"
PICTURE = Path(__file__).parent.parent / "docs" / "explanation" / "growth.svg"
LONGEST, REPEAT = 3.0, 3
"""How many seconds of CPU a place may take, as the one before it lets expect; and how often it is tried."""
CLIENTS: list[Any] = []
SLOW = "slow"
"""A model that takes a moment to answer, so that requests at once really are."""
Ask = Callable[[str], Awaitable[Any]]
Costs = dict[str, dict[str, float]]


# The server


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    answer = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "mock",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    body = json.dumps(answer).encode()
    lines = ("HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", "", "")
    head = "\r\n".join(lines).encode()
    try:
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(request.partition(b"content-length:")[2].split(b"\r\n")[0])
            asked = await reader.readexactly(length)
            if f'"{SLOW}"'.encode() in asked[:500] + asked[-500:]:
                await asyncio.sleep(0.05)
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def be_server() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 16, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The drivers: each returns what asks the model once, for so many messages and tools


def said(count: int) -> list[dict[str, str]]:
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"message number {n} of this conversation"}
        for n in range(count)
    ]


def functions(count: int) -> list[Any]:
    def make(number: int) -> Any:
        def look_up(place: int, note: str = "") -> str:
            return f"{number} {place} {note}"

        look_up.__name__ = look_up.__qualname__ = f"look_up_{number}"
        look_up.__doc__ = f"Look up a place of table {number}."
        look_up.__annotations__ = {"place": int, "note": str, "return": str}
        return look_up

    return [make(number) for number in range(count)]


def floor(url: str, messages: int, tools: int) -> Ask:
    aiohttp, orjson = import_module("aiohttp"), import_module("orjson")
    history = [{"role": "system", "content": SYSTEM}, *said(messages)]
    schemas = [
        {
            "type": "function",
            "function": {
                "name": one.__name__,
                "description": one.__doc__,
                "parameters": {
                    "type": "object",
                    "properties": {"place": {"type": "integer"}, "note": {"type": "string"}},
                    "required": ["place"],
                },
            },
        }
        for one in functions(tools)
    ]

    async def ask(model: str) -> str:
        if not CLIENTS:
            CLIENTS.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        asked: dict[str, Any] = {"model": model, "messages": [*history, {"role": "user", "content": USER}]}
        if schemas:
            asked["tools"] = schemas
        async with CLIENTS[0].post(f"{url}/chat/completions", data=orjson.dumps(asked)) as response:
            answer: str = orjson.loads(await response.read())["choices"][0]["message"]["content"]
            return answer

    return ask


def ours(url: str, messages: int, tools: int) -> Ask:
    core_of, runtime = import_module("agent_core"), import_module("agent_runtime")
    config = {"base_url": url, "api_key": "k"}
    core = core_of.AgentCore()
    core.register_provider(import_module("openai_compatible_provider").OpenAICompatibleProvider)
    session = core.append_messages(
        core.create_session("s"), [core_of.Message(one["role"], one["content"]) for one in said(messages)]
    )
    if messages:  # as after many turns: the provider's own form of each message is known
        session = core.rebuild_native_history(
            session, {"provider": "openai_compatible", "model": "mock", **config}
        )
    agents: dict[str, Any] = {}

    async def ask(model: str) -> str:
        if model not in agents:
            agents[model] = runtime.Agent(
                f"openai_compatible:{model}", system_prompt=SYSTEM, tools=functions(tools), config=config
            )
        answer: str = (await agents[model].run_async(USER, session=session)).text
        return answer

    return ask


def openai_agents(url: str, messages: int, tools: int) -> Ask:
    agents, openai = import_module("agents"), import_module("openai")
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=url, api_key="k", timeout=600)
    known = [agents.function_tool(one) for one in functions(tools)]
    history, made = said(messages), dict[str, Any]()

    async def ask(model: str) -> Any:
        if model not in made:
            asked = agents.OpenAIChatCompletionsModel(model=model, openai_client=client)
            made[model] = agents.Agent(name="a", instructions=SYSTEM, model=asked, tools=known)
        result = await agents.Runner.run(made[model], [*history, {"role": "user", "content": USER}])
        return result.final_output

    return ask


def agno(url: str, messages: int, tools: int) -> Ask:
    agent, models, message = (
        import_module(name) for name in ("agno.agent", "agno.models.openai", "agno.models.message")
    )
    history, made = [message.Message(**one) for one in said(messages)], dict[str, Any]()

    async def ask(model: str) -> Any:
        if model not in made:
            asked = models.OpenAIChat(id=model, base_url=url, api_key="k", timeout=600)
            made[model] = agent.Agent(
                model=asked, instructions=SYSTEM, telemetry=False, tools=functions(tools) or None
            )
        return (await made[model].arun([*history, message.Message(role="user", content=USER)])).content

    return ask


MAKE: dict[str, Callable[[str, int, int], Ask]] = {
    "floor": floor,
    "ours": ours,
    "openai_agents": openai_agents,
    "agno": agno,
}


# Measuring


async def measure(driver: str, url: str, *, quick: bool) -> Costs:
    """Return the CPU seconds of a request, for each place of each line that the driver reaches."""
    costs: Costs = {}
    for axis, places in AXES.items():
        line = costs[axis] = {}
        for before, place in zip((None, *places), places[:-1] if quick else places, strict=False):
            if before is not None and expected(line[str(before)], axis, before, place) > LONGEST:
                break
            messages, tools = place if axis == "messages" else 2, place if axis == "tools" else 0
            ask = MAKE[driver](url, messages, tools)
            line[str(place)] = await one_cost(ask, place if axis == "at once" else 1)
    for client in CLIENTS:
        await client.close()
    return costs


def expected(spent: float, axis: str, before: int, place: int) -> float:
    """Return how many seconds a try will take at most, if a request costs *spent* at the place before."""
    return spent * place if axis == "at once" else spent * place / before


async def one_cost(ask: Ask, at_once: int) -> float:
    """Return the CPU seconds of one request: of several tries the cheapest, if they are short."""
    model = SLOW if at_once > 1 else "mock"
    assert "Hello" in str(await ask(model))  # the first one opens connections and remembers things
    best, began = float("inf"), time.perf_counter()
    for _ in range(REPEAT):
        gc.collect()
        start = time.process_time()
        await asyncio.gather(*(ask(model) for _ in range(at_once)))
        best = min(best, (time.process_time() - start) / at_once)
        if time.perf_counter() - began > LONGEST:
            break
    return best


def measured(driver: str, url: str, *, quick: bool) -> Costs | None:
    """Measure a driver in a process of its own; None if it is not installed."""
    own = driver in ("floor", "ours")
    python = sys.executable if own else str(VENVS / driver / "bin" / "python")
    if not Path(python).exists():
        return None
    command = [python, __file__, "--measure", driver, "--url", url, *(["--quick"] if quick else [])]
    print(f"measuring {DRIVERS[driver][0]} ...", file=sys.stderr, flush=True)
    environment = {**os.environ, "OPENAI_API_KEY": "k", "AGNO_TELEMETRY": "false", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)
    if done.returncode:
        print(f"{driver} could not be measured: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: Costs = json.loads(done.stdout.splitlines()[-1])
    return found


# The picture


WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 230, 62, 58, 40


def draw(found: dict[str, Costs]) -> str:
    """Return the picture: a field for each line of measurements, both scales logarithmic."""
    values = [cost for costs in found.values() for line in costs.values() for cost in line.values()]
    low, high = (int(log10(min(values)) // 1), int(-(-log10(max(values)) // 1)))
    width, height = LEFT + len(AXES) * (WIDTH + GAP), TOP + HEIGHT + 50
    font = 'font-family="sans-serif" font-size="12" fill="#343a40"'
    title = "CPU time of one request as things grow (both scales are logarithmic)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="18" font-size="14">{title}</text>',
    ]
    for number, driver in enumerate(found):
        name, colour = DRIVERS[driver]
        at = 10 + number * 190
        parts.append(f'<line x1="{at}" x2="{at + 22}" y1="35" y2="35" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{at + 28}" y="39">{name}</text>')
    for number, axis in enumerate(AXES):
        parts += field(axis, LEFT + number * (WIDTH + GAP), found, low, high)
    return "\n".join([*parts, "</svg>", ""])


def field(axis: str, left: int, found: dict[str, Costs], low: int, high: int) -> list[str]:
    places = AXES[axis]
    first, last = log10(places[0]), log10(places[-1])

    def x(place: int) -> float:
        return left + (log10(place) - first) / (last - first) * WIDTH

    def y(seconds: float) -> float:
        return TOP + HEIGHT - (log10(seconds) - low) / (high - low) * HEIGHT

    parts = [
        f'<text x="{left + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 38}" text-anchor="middle">{TITLES[axis]}</text>'
    ]
    for power in range(low, high + 1):
        height = y(10**power)
        parts.append(
            f'<line x1="{left}" x2="{left + WIDTH}" y1="{height:.1f}" y2="{height:.1f}" stroke="#dee2e6"/>'
        )
        if axis == "messages":
            parts.append(
                f'<text x="{left - 6}" y="{height + 4:.1f}" text-anchor="end">{duration(power)}</text>'
            )
    for place in places:
        parts.append(
            f'<text x="{x(place):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{short(place)}</text>'
        )
    for driver, costs in found.items():
        colour = DRIVERS[driver][1]
        points = [(x(int(place)), y(cost)) for place, cost in costs[axis].items()]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
    return parts


def short(place: int) -> str:
    return f"{place // 1000}k" if place >= 10_000 else f"{place:,}"


def duration(power: int) -> str:
    """Return a power of ten of a second as people write it."""
    if power >= 0:
        return f"{10**power} s"
    return f"{10 ** (power + 3)} ms" if power >= -3 else f"{10 ** (power + 6)} µs"


def show(found: dict[str, Costs]) -> None:
    for axis, places in AXES.items():
        print(f"CPU of a request, by {TITLES[axis]}".ljust(58) + "".join(f"{place:>10,}" for place in places))
        for driver, costs in found.items():
            line = (costs[axis].get(str(place)) for place in places)
            cells = ("-".rjust(10) if cost is None else f"{cost * 1e3:>7.2f} ms" for cost in line)
            print(f"  {DRIVERS[driver][0]:<56}" + "".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave the last place of each line out")
    parser.add_argument("--measure", choices=[*DRIVERS, "server"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure == "server":
        asyncio.run(be_server())
    elif arguments.measure:
        print(json.dumps(asyncio.run(measure(arguments.measure, arguments.url, quick=arguments.quick))))
    else:
        compare(quick=arguments.quick)


def compare(*, quick: bool) -> None:
    """Measure all drivers that are installed, one after the other, and draw what was found."""
    with subprocess.Popen(
        [sys.executable, __file__, "--measure", "server"], stdout=subprocess.PIPE
    ) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            costs = {driver: measured(driver, url, quick=quick) for driver in DRIVERS}
        finally:
            server.terminate()
    found = {driver: one for driver, one in costs.items() if one is not None}
    show(found)
    if not quick:
        PICTURE.write_text(draw(found), encoding="utf-8")
        print(f"{PICTURE.name} is drawn, without {[one for one in DRIVERS if one not in found]}")


if __name__ == "__main__":
    main()
