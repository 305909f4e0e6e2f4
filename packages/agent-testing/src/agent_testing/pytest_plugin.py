"""The pytest plugin: recordings of real models, and a guard against asking one by accident.

It is loaded by itself where `agent_testing` is installed. A test never reaches a model server on another
machine: use a `TestModel`, a recording, or mark the test with ``@pytest.mark.agent_live``. ``pytest
--agent-record`` asks the real models once for every test that has the fixture `agent_recording`, and
writes what they answered to ``recordings/<file>/<test>.json`` next to the test.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from agent_provider_kit.transport import real_transport, transport_in_use
from agent_testing.traffic import Guard, Recorder, Replayer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_LONGEST_NAME = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("agents")
    group.addoption(
        "--agent-record",
        action="store_true",
        help="ask real models in tests with the fixture agent_recording, and record what they answer",
    )
    group.addoption(
        "--agent-live", action="store_true", help="let every test reach real models, whatever that costs"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "agent_live: may reach real models")


@pytest.fixture(autouse=True)
def _agent_guard(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that would have reached a real model, also if the code under test hides the error."""
    if request.config.getoption("--agent-live") or request.node.get_closest_marker("agent_live") is not None:
        yield
        return
    guard = Guard()
    with transport_in_use(guard):
        yield
    if guard.refused:
        pytest.fail(str(guard.refused[0]), pytrace=False)


def _recording_name(test: str) -> str:
    """Return the name of the recording of a test: that of the test, with its class and parameters."""
    _, _, name = test.partition("::")
    plain = re.sub(r"[\[\]]+|::", lambda found: "." if found[0] == "::" else "_", name)
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain)[:_LONGEST_NAME]
    return safe if safe == plain else f"{safe}-{sha256(name.encode()).hexdigest()[:8]}"


@pytest.fixture
def agent_recording(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Replay the recorded answers of real models in this test; ``--agent-record`` records them."""
    file = (
        request.path.parent
        / "recordings"
        / request.path.stem
        / f"{_recording_name(request.node.nodeid)}.json"
    )
    if not request.config.getoption("--agent-record"):
        with transport_in_use(Replayer(file)):
            yield file
        return
    recorder = Recorder(real_transport())
    with transport_in_use(recorder):
        yield file
    recorder.save(file)
