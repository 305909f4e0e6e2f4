"""What the kit offers is listed, and is there."""

from __future__ import annotations

import agent_plugin_kit


def test_every_public_name_is_there_and_sorted() -> None:
    assert sorted(agent_plugin_kit.__all__) == agent_plugin_kit.__all__
    assert all(getattr(agent_plugin_kit, name) is not None for name in agent_plugin_kit.__all__)
