from __future__ import annotations

from agent_testing.fixtures import scripted_server

__all__ = ["scripted_server"]
