"""Servers that behave badly: each costs its own tools, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_tools.transports import Diary, stdio_transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import World

NAMES = ("talk", "twice", "huge", "huge_unmarked", "deep", "hostile_number", "never", "exit")


def test_one_that_ends_at_once_is_reported_and_the_others_work(world: World) -> None:
    world.rough("bad", "exits")
    world.rough("missing")
    world.servers["missing"]["command"] = "/no/such/program"
    world.rough("good")
    world.approve()

    assert world.offered() == [f"good__{name}" for name in sorted(NAMES)]
    assert world.call("good__talk") == {"success": True, "result": "talked"}
    assert world.status("bad")["problem"] == "it ended with exit code 4"
    assert world.status("bad")["notes"] == ["stderr: cannot find the database"]
    assert "/no/such/program" in world.status("missing")["problem"]
    assert "cannot find the database" in world.act("status")["display"]["body"]


def test_one_that_never_answers_is_given_up(world: World) -> None:
    world.rough("bad", "silent", start_timeout=0.5)
    world.approve()

    assert world.offered() == []
    assert world.status("bad")["problem"] == "it did not get ready within 0.5 seconds"


def test_pipes_that_a_grandchild_still_holds_are_closed(world: World, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pid}; exec cat > /dev/null"

    async def come_and_go() -> None:
        launch = {"command": "sh", "args": ["-c", script], "cwd": None}
        async with stdio_transport(launch, dict(os.environ), Diary(), lambda _reason: None):
            await asyncio.to_thread(world.until, lambda: pid.exists() and pid.read_text().endswith("\n"))

    def pipes() -> int:
        return sum("pipe:" in str(one.resolve()) for one in Path("/proc/self/fd").iterdir())

    before = pipes()
    try:
        asyncio.run(come_and_go())
        assert pipes() == before
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_trying_ends_some_day_and_begins_anew_when_asked(world: World) -> None:
    world.rough("bad", "exits")
    world.approve()

    world.until(lambda: world.status("bad")["state"] == "failed")

    assert world.act("reconnect", server="bad")["status"] == "error"
    world.until(lambda: world.status("bad")["state"] == "failed")


def test_one_that_chatters_works_all_the_same(world: World) -> None:
    world.rough("bad", "chatty")
    world.approve()

    assert world.call("bad__talk")["result"] == "talked"
    [note] = world.status("bad")["notes"]
    assert "lines on stdout were not messages" in note


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("huge", "it sent a message of 50000082 bytes, more than 8388608: ask for less at a time"),
        ("deep", "its answer is nested more than 200 levels deep"),
        ("huge_unmarked", "was lost during the call: it sent a message of 50000045 bytes"),
        ("hostile_number", "the server's answer cannot be read"),
        ("never", "there was no answer within 2 seconds; it may have run in part"),
        ("exit", "was lost during the call: it ended with exit code 7; it may have run in part"),
    ],
)
def test_an_answer_that_is_none_is_told(world: World, tool: str, problem: str) -> None:
    world.rough("bad", timeout=2 if tool == "never" else 60)
    world.approve()

    result = world.call(f"bad__{tool}")

    assert result["success"] is False
    assert problem in result["error"]
    world.until(lambda: world.status("bad")["state"] == "ready")
    assert world.call("bad__talk")["result"] == "talked"


def test_the_first_of_two_answers_counts(world: World) -> None:
    world.rough("bad")
    world.approve()

    assert [world.call("bad__twice")["result"] for _ in range(3)] == ["first"] * 3


def test_calls_run_side_by_side_and_all_are_told_when_it_ends(world: World) -> None:
    world.rough("bad", parallel=True)
    world.approve()
    box = world.plugin.toolbox(world.settings)
    assert box.parallel == {f"bad__{name}" for name in NAMES}
    results: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: results.append(world.call("bad__never"))) for _ in range(4)]
    for thread in threads:
        thread.start()

    assert world.call("bad__talk")["result"] == "talked"
    world.call("bad__exit")
    for thread in threads:
        thread.join(60)

    assert len(results) == 4
    assert all(not result["success"] for result in results)


def test_one_that_says_that_it_has_changed_is_looked_at_again(world: World) -> None:
    world.rough("bad", "changes")
    world.approve()
    assert "bad__exit" in world.offered()

    assert world.call("bad__talk")["result"] == "changed"

    world.until(lambda: world.status("bad")["waiting"] == ["exit"])
    assert "bad__exit" not in world.offered()
    assert "bad__talk" in world.offered()


def test_one_of_the_newer_protocol_is_looked_at_again_as_well(world: World) -> None:
    script = Path(__file__).parent / "servers" / "changing.py"
    world.servers["tea"] = {"command": sys.executable, "args": [str(script)], "cwd": str(world.folder)}
    world.approve()
    assert world.offered() == ["tea__grow"]

    assert world.call("tea__grow")["success"] is True

    world.until(lambda: world.status("tea")["waiting"] == ["grown"])
    assert world.offered() == ["tea__grow"]


@pytest.mark.parametrize("listed", ["not a list", {"a": 1}, None])
def test_one_whose_list_is_nonsense_has_no_tools(world: World, listed: Any) -> None:
    world.rough("bad", json.dumps({"tools": listed}))
    world.approve()

    assert world.offered() == []
    assert world.status("bad")["problem"] != ""


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"name": 5, "inputSchema": {"type": "object"}}, "entry 2"),
        ({"name": "a"}, "a"),
        ({"name": "a", "inputSchema": []}, "a"),
        ({"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "perhaps"}}, "a"),
        (None, "entry 2"),
        ("a", "entry 2"),
    ],
    ids=["name", "no schema", "schema", "annotation", "null", "text"],
)
def test_an_entry_that_breaks_the_protocol_costs_itself_alone(world: World, entry: Any, name: str) -> None:
    good = [{"name": one, "inputSchema": {"type": "object"}} for one in ("talk", "twice")]
    world.rough("bad", json.dumps({"tools": [good[0], entry, good[1]]}))
    world.approve()

    assert world.offered() == ["bad__talk", "bad__twice"]
    assert world.call("bad__talk")["success"] is True
    [dropped] = world.status("bad")["dropped"].items()
    assert dropped[0] == name
    assert dropped[1].startswith("it breaks the protocol: ")


def test_a_hostile_schema_costs_its_tool_alone(world: World) -> None:
    remote = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/s.json"}}}
    tools = [
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "remote", "inputSchema": remote},
        {"name": "text", "inputSchema": {"type": "object", "properties": {"x": {"type": "teapot"}}}},
    ]
    world.rough("bad", json.dumps({"tools": tools}))
    world.approve()

    assert world.offered() == ["bad__good"]
    assert set(world.status("bad")["dropped"]) == {"remote", "text"}
    assert "nothing elsewhere is fetched" in world.act("status")["display"]["body"]


def test_closing_ends_the_process_and_answers_what_comes_late(
    world: World, gone: Callable[[int], None]
) -> None:
    world.rough("bad")
    world.approve()
    box = world.plugin.toolbox(world.settings)
    [pid] = [pid for pid in _children() if "rough.py" in _line(pid)]

    world.plugin.close()

    gone(pid)
    assert list(box.stream_tool("bad__talk", {})) == [{"success": False, "error": "the agent is closing"}]
    assert world.offered() == []


def _children() -> list[int]:
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def _line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
