"""Fixtures for tests of providers over HTTP; a ``conftest.py`` imports those that it wants.

::

    from agent_testing.fixtures import plain_environment, scripted_server, talk_fixture

    talk = talk_fixture(MyProvider, model="my-model", api_key="a secret key")
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_testing.server import ScriptedServer
from agent_testing.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    """A server with an empty script; add to it with `play`."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the API keys and proxies of whoever runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


def talk_fixture(provider: Callable[[], Any], *, path: str = "", **config: Any) -> Any:
    """Return a fixture: a conversation of *provider* with the scripted server that has not begun.

    Args:
        provider: Makes the provider.
        path: What follows the server's address in the provider's `base_url`.
        config: Settings of the requests.
    """

    @pytest.fixture
    def talk(scripted_server: ScriptedServer) -> Talk:
        return Talk(scripted_server, provider(), path=path, **config)

    return talk
