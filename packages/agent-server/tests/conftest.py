"""A server on a real socket for each test that wants one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_server.testing import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def serve_it(tmp_path: Path) -> Iterator[Serving]:
    """Serve an application whose model plays a script."""
    serving = Serving(tmp_path)
    yield serving
    serving.close()
