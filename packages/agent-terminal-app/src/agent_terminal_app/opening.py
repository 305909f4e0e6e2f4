"""What most commands begin with: the person's places and settings, and the application."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import Settings, load_settings

if TYPE_CHECKING:
    from agent_app import AgentApplication


@dataclass(frozen=True, slots=True)
class Opened:
    """The places and settings of one command."""

    paths: Paths
    settings: Settings

    def application(self, *, ephemeral: bool = False) -> AgentApplication:
        """Return the application; what it needs is imported now."""
        from agent_terminal_app.wiring import open_application

        return open_application(self.settings, self.paths, ephemeral=ephemeral)


def open_settings(**flags: Any) -> Opened:
    """Return the settings that hold here; a flag that was given counts most."""
    paths = Paths.of_this_user()
    given = {name: value for name, value in flags.items() if value is not None}
    return Opened(paths, load_settings(paths, project=Path.cwd(), flags=given))
