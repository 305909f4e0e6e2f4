"""For tests to import: ``from agent_provider_kit.testing.fixtures import scripted_server``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_provider_kit.testing.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    """A server with an empty script; add to it with `play`."""
    with ScriptedServer() as server:
        yield server
