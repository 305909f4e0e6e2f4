"""What several test files share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_provider_kit import ApiKey, Exchange
from agent_testing.fixtures import plain_environment, scripted_server

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["plain_environment", "scripted_server"]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """An event loop that is closed in order after the test."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def exchange() -> Exchange:
    """A conversation with a provider, for errors to speak of."""
    return Exchange("acme", "stream_api", "https://api.acme.test/v1", ApiKey("sk-very-secret", "a drawer"))
