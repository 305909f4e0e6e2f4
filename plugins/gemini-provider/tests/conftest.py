"""What several test files share: a provider that talks to a scripted server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_provider_kit.testing import Talk
from agent_provider_kit.testing.fixtures import scripted_server
from gemini_provider import GeminiProvider

if TYPE_CHECKING:
    from agent_provider_kit.testing import ScriptedServer

__all__ = ["Talk", "scripted_server"]


@pytest.fixture
def talk(scripted_server: ScriptedServer) -> Talk:
    """A conversation that has not begun."""
    return Talk(scripted_server, GeminiProvider(), model="gemini-3-test", api_key="AIza-secret")
