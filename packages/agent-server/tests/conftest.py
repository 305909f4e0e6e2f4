"""A server on a real socket for each test that wants one, and a browser for those of the page."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_server.testing import Serving
from agent_server.testing.page import browser, open_page

__all__ = ["browser", "open_page", "serve_it", "shared"]
sys.path.insert(0, str(Path(__file__).parent))  # what several test modules share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_server.testing import Served


@pytest.fixture
def serve_it(tmp_path: Path) -> Iterator[Serving]:
    """Serve an application whose model plays a script."""
    serving = Serving(tmp_path)
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for all tests of a module that leave it as it is."""
    serving = Serving(tmp_path_factory.mktemp("shared"))
    yield serving(itertools.repeat("hello"))
    serving.close()
