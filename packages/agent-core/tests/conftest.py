"""What several test files share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from agent_core import AgentCore, Session

Outcome = tuple[Session, list[dict[str, Any]], list[dict[str, Any]]]
Drive = Callable[..., Outcome]


def _call(core: AgentCore, session: Session, config: dict[str, Any], **options: Any) -> Outcome:
    new, messages = core.send_request(session, config, **options)
    return new, messages, []


def _stream(core: AgentCore, session: Session, config: dict[str, Any], **options: Any) -> Outcome:
    *partials, final = core.send_request_stream(session, config, **options)
    return final["session"], final["messages"], partials


def _call_async(core: AgentCore, session: Session, config: dict[str, Any], **options: Any) -> Outcome:
    new, messages = asyncio.run(core.send_request_async(session, config, **options))
    return new, messages, []


def _stream_async(core: AgentCore, session: Session, config: dict[str, Any], **options: Any) -> Outcome:
    async def collect() -> list[dict[str, Any]]:
        return [event async for event in core.send_request_stream_async(session, config, **options)]

    *partials, final = asyncio.run(collect())
    return final["session"], final["messages"], partials


@pytest.fixture(params=[_call, _stream, _call_async, _stream_async], ids=lambda driver: driver.__name__[1:])
def drive(request: pytest.FixtureRequest) -> Drive:
    """Send a request through each of the four drivers in turn.

    ``drive(core, session, config, **options)`` returns the new session, the final messages, and the
    partial events (none from the two drivers that do not stream).
    """
    driver: Drive = request.param
    return driver


@contextmanager
def _case(*values: object) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"The case: {', '.join(map(repr, values))}")
        raise


@pytest.fixture
def case() -> Callable[..., AbstractContextManager[None]]:
    """Name the row of a table that fails: ``with case(kind, hook):`` in the loop over the rows."""
    return _case
