"""Where the core's own log lines go: wherever the application wants them."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = ["debug", "info", "warning", "error"]


@pytest.fixture
def written() -> Iterator[list[dict[str, Any]]]:
    """Configure structlog as an application would, and keep what is written."""
    lines: list[dict[str, Any]] = []

    def keep(_logger: Any, level: str, event: Any) -> Any:
        lines.append({"level": level, **event})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    yield lines
    structlog.reset_defaults()


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)


SPEAK = """
from agent_core.log import get_logger
log = get_logger("part")
log.debug("quiet", number=1)
log.info("ordinary", number=2)
log.warning("tolerated", number=3)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_configured_structlog_gets_events_with_fields(level: str, written: list[dict[str, Any]]) -> None:
    getattr(get_logger("part"), level)("turn_finished", tokens=3, names=["a"])

    assert written == [{"level": level, "event": "turn_finished", "tokens": 3, "names": ["a"]}]


def test_a_logger_made_before_the_configuration_follows_it() -> None:
    log = get_logger("early")
    lines: list[Any] = []

    def keep(_logger: Any, _level: str, event: Any) -> Any:
        lines.append(event["event"])
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    log.info("now")
    structlog.reset_defaults()

    assert lines == ["now"]


@pytest.mark.parametrize("level", LEVELS)
def test_otherwise_the_standard_library_gets_them(level: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not structlog.is_configured()

    with caplog.at_level(logging.DEBUG, logger="agent_core"):
        getattr(get_logger("part"), level)("turn_finished", tokens=3, name="x y")

    [record] = caplog.records
    assert record.name == "agent_core.part"
    assert record.levelname == level.upper()
    assert record.getMessage() == "turn_finished tokens=3 name='x y'"


def test_all_parts_are_below_one_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL, logger="agent_core"):
        get_logger("part").error("unheard")

    assert caplog.records == []


def test_without_any_configuration_only_warnings_are_heard() -> None:
    spoken = run(SPEAK)

    assert spoken.stdout == ""
    assert spoken.stderr == "tolerated number=3\n"


def test_a_structlog_that_is_there_but_not_configured_is_left_alone() -> None:
    spoken = run(f"import structlog\n{SPEAK}")

    assert spoken.stdout == ""
    assert spoken.stderr == "tolerated number=3\n"


def test_structlog_is_never_imported_for_its_own_sake() -> None:
    spoken = run(f"{SPEAK}\nimport sys\nprint('structlog' in sys.modules)")

    assert spoken.stdout == "False\n"


def test_an_ordinary_request_is_silent() -> None:
    code = """
from agent_core import AgentCore
from agent_core.testing import EchoProvider
core = AgentCore()
core.register_provider(EchoProvider)
session = core.add_message(core.create_session(), "user", "hello")
core.send_request(session, {})
"""

    spoken = run(code)

    assert spoken.stdout == spoken.stderr == ""


def test_lines_below_the_level_are_not_put_together(caplog: pytest.LogCaptureFixture) -> None:
    class Costly:
        def __repr__(self) -> str:
            raise AssertionError("nobody reads this line")

    with caplog.at_level(logging.INFO, logger="agent_core"):
        get_logger("part").debug("quiet", value=Costly())

    assert caplog.records == []
