"""Where the core's own log lines go: wherever the application wants them."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest
import structlog

from agent_core import AgentCore, Session
from agent_core.log import get_logger
from agent_core.testing import EchoProvider

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


def test_without_any_configuration_nothing_is_printed() -> None:
    spoken = run(SPEAK)

    assert spoken.stdout == ""
    assert spoken.stderr == ""


def test_a_structlog_that_is_there_but_not_configured_is_left_alone() -> None:
    spoken = run(f"import structlog\n{SPEAK}")

    assert spoken.stdout == ""
    assert spoken.stderr == ""


def test_an_application_that_sets_up_logging_hears_warnings() -> None:
    spoken = run(f"import logging\nlogging.basicConfig(format='%(message)s')\n{SPEAK}")

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


# What the core itself writes, by the names and levels of the reference page


def noted(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    return [(one.name, one.levelname, one.__dict__["event"]) for one in caplog.records]


def a_request() -> tuple[AgentCore, Session]:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_tool(look)
    return core, core.add_message(core.create_session(), "user", "a secret word")


def look(place: str) -> str:
    """Look at a place."""
    if place == "cellar":
        raise OSError("dark")
    return f"{place} is empty"


def calls(*places: str) -> list[dict[str, Any]]:
    named = [{"name": "look", "arguments": f'{{"place": "{place}"}}'} for place in places]
    return [{"id": str(number), "function": function} for number, function in enumerate(named)]


def test_a_request_is_noted_from_its_plugins_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    core, session = a_request()

    with caplog.at_level("DEBUG", "agent_core"):
        core.send_request(session, {})

    assert noted(caplog) == [
        ("agent_core.core", "DEBUG", "plugins_resolved_for_config"),
        ("agent_core.core", "DEBUG", "sending request"),
        ("agent_core.chunk_processing", "DEBUG", "partial message received"),
        ("agent_core.chunk_processing", "DEBUG", "partial message received"),
        ("agent_core.chunk_processing", "DEBUG", "partial message received"),
        ("agent_core.core", "INFO", "send_request_complete"),
    ]
    first, question, *_, last = [record.__dict__["fields"] for record in caplog.records]
    assert first == {"provider": "echo", "extensions": [], "features": [], "tools": ["look"], "tags": ANY}
    assert "a secret word" in question["native_messages"]
    assert last == {"provider": "echo", "model": None, "messages": 1}


def test_a_stream_is_noted_from_its_plugins_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    core, session = a_request()

    with caplog.at_level("DEBUG", "agent_core"):
        list(core.send_request_stream(session, {}))

    names = [event for name, level, event in noted(caplog) if (name, level) == ("agent_core.core", "DEBUG")]
    assert names == [
        "plugins_resolved_for_config",
        "start streaming request",
        "streaming complete",
        "streaming request complete",
    ]


def test_what_was_said_is_in_no_line_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    core, session = a_request()

    with caplog.at_level("INFO", "agent_core"):
        core.send_request(session, {})
        list(core.send_request_stream(session, {}))

    assert [event for _, _, event in noted(caplog)] == ["send_request_complete"]
    assert "secret" not in caplog.text


def test_tool_calls_are_noted_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    core, _ = a_request()

    with caplog.at_level("DEBUG", "agent_core"):
        core.execute_tool_calls([*calls("attic", "cellar"), {"junk": 1}], {})

    assert noted(caplog) == [
        ("agent_core.core", "DEBUG", "execute_tool_calls_start"),
        ("agent_core.core", "DEBUG", "iter_tool_messages_start"),
        ("agent_core.tools", "ERROR", "iter_tool_messages_stream_error"),
        *[("agent_core.core", "DEBUG", "execute_tool_call_complete")] * 3,
    ]
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert fields[0] == fields[1] == {"count": 3}
    assert [(one["tool_name"], one["executed"]) for one in fields[3:]] == [
        ("look", True),
        ("look", True),
        ("None", False),
    ]


def test_an_extension_is_the_last_to_see_what_is_noted_of_a_chunk(caplog: pytest.LogCaptureFixture) -> None:
    class Shouting:
        name = "shouting"

        def process_chunk(self, chunk: Any, partials: Any, finals: Any, native: Any, state: Any) -> Any:
            return [{**one, "content": one["content"].upper()} for one in partials], finals, native, state

    core = AgentCore()
    core.register_provider(EchoProvider, [Shouting])
    session = core.add_message(core.create_session(), "user", "hello")

    with caplog.at_level("DEBUG", "agent_core.chunk_processing"):
        core.send_request(session, {})

    [record] = caplog.records
    assert record.__dict__["fields"]["partial"]["content"] == "HELLO"


def test_a_request_that_nobody_logs_does_not_load_logging() -> None:
    code = """
import sys
from agent_core import AgentCore
from agent_core.testing import EchoProvider
core = AgentCore()
core.register_provider(EchoProvider)
core.send_request(core.add_message(core.create_session(), "user", "x"), {})
assert "logging" not in sys.modules, "logging"
"""
    run(code)


@pytest.mark.parametrize("level", LEVELS)
def test_whether_a_line_would_be_read_is_known_before_it_is_made(
    level: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = get_logger("part")
    with caplog.at_level("WARNING", "agent_core.part"):
        assert log.is_enabled(level) is (level in ("warning", "error"))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    try:
        assert log.is_enabled(level) is (level != "debug")
        structlog.configure(wrapper_class=structlog.BoundLogger)  # it has levels, and does not say which
        assert log.is_enabled(level)
    finally:
        structlog.reset_defaults()


def test_threads_that_log_while_logging_is_imported_wait_for_it() -> None:
    """Another thread may be in the middle of the import: what is in `sys.modules` is half a module."""
    program = """
import sys, threading
sys.setswitchinterval(1e-6)
from agent_core.log import get_logger
assert "logging" not in sys.modules
log, failed, start = get_logger("core"), [], threading.Barrier(9)

def ask():
    start.wait()
    try:
        for _ in range(2000):
            log.is_enabled("info")
    except Exception as error:
        failed.append(repr(error))

def load():
    start.wait()
    import logging

threads = [threading.Thread(target=ask) for _ in range(8)] + [threading.Thread(target=load)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert ran.stdout == "[]\n"
