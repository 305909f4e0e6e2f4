"""What importing the core costs, and what it must not do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import agent_core

UNWANTED = [
    "asyncio",
    "pydantic",
    "aiohttp",
    "httpx",
    "structlog",
    "jsonschema_rs",
    "logging",
    "socket",
    "ssl",
]

WATCH = """
import sys
events = []
sys.addaudithook(lambda event, _arguments: events.append(event))
"""
REPORT = """
import json
print(json.dumps({"modules": sorted(sys.modules), "events": sorted(set(events))}))
"""


def run(code: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", WATCH + code + REPORT], check=True, capture_output=True, text=True
    )
    report: dict[str, list[str]] = json.loads(done.stdout)
    return report


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    everything = ", ".join(agent_core.__all__)
    return run(f"import agent_core\nfrom agent_core import {everything}\nagent_core.AgentCore()\n")


def test_importing_every_public_name_loads_nothing_heavy(imported: dict[str, list[str]]) -> None:
    assert "agent_core.core" in imported["modules"]
    assert set(UNWANTED) & set(imported["modules"]) == set()


def test_importing_starts_no_thread_and_no_process_and_opens_no_socket(
    imported: dict[str, list[str]],
) -> None:
    forbidden = ("socket.", "_thread.start", "subprocess.", "os.fork", "os.posix_spawn", "urllib.")

    assert [event for event in imported["events"] if event.startswith(forbidden)] == []


def test_a_request_to_a_blocking_provider_loads_no_event_loop() -> None:
    report = run(
        """
from agent_core import AgentCore
from agent_core.testing import EchoProvider
core = AgentCore()
core.register_provider(EchoProvider)
session = core.add_message(core.create_session(), "user", "hello")
core.send_request(session, {})
list(core.send_request_stream(session, {}))
"""
    )

    assert set(UNWANTED) & set(report["modules"]) == set()
    assert "_thread.start_new_thread" not in report["events"]
