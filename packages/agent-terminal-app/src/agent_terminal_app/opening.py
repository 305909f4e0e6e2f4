"""What most commands begin with: the person's places and settings, and the application."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import SettingsError
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import Settings, load_settings
from agent_terminal_app.variables import COMPLETING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app import AgentApplication

_TOLD = "agent_terminal_app.told"


@dataclass(frozen=True, slots=True)
class Opened:
    """The places and settings of one command.

    Attributes:
        flags: What was said on the command line, which counts more than any file.
    """

    paths: Paths
    settings: Settings
    flags: Mapping[str, Any] = field(default_factory=dict)

    def application(
        self, *, ephemeral: bool = False, database: str | None = None, titles: bool = False
    ) -> AgentApplication:
        """Return the application; what it needs is imported now."""
        from agent_terminal_app.wiring import open_application

        return open_application(
            self.settings, self.paths, ephemeral=ephemeral, database=database, titles=titles
        )

    def sessions(self) -> AgentApplication:
        """Return an application for what was said before: no agent is looked at, and none can run."""
        from agent_terminal_app.wiring import open_sessions

        return open_sessions(self.settings, self.paths)

    def again(self) -> Opened:
        """Return the same with the settings as they are by now."""
        return replace(self, settings=load_settings(self.paths, project=Path.cwd(), flags=self.flags))


def open_settings(**flags: Any) -> Opened:
    """Return the settings that hold here, and tell what the person should know of them on stderr.

    A flag that was given counts most.
    """
    opened = open_quietly(**flags)
    tell_warnings(opened.settings)
    return opened


def open_readable() -> Opened:
    """Return the settings that hold here, or none if a file cannot be read, which is told on stderr.

    For what needs no settings: where sessions and keys are kept, no setting says.
    """
    try:
        return open_settings()
    except SettingsError as error:
        if COMPLETING not in os.environ:
            from agent_terminal_app.tables import say

            say(f"agent: {error}; going on without settings")
        return Opened(Paths.of_this_user(), Settings())


def open_quietly(**flags: Any) -> Opened:
    """Return the settings that hold here; what is to say about them is left to the caller."""
    paths = Paths.of_this_user()
    given = {name: value for name, value in flags.items() if value is not None}
    return Opened(paths, load_settings(paths, project=Path.cwd(), flags=given), given)


def tell_warnings(settings: Settings) -> None:
    """Tell on stderr what a person should know of the settings, each thing once in a command."""
    if not settings.warnings or COMPLETING in os.environ:
        return
    import click

    from agent_terminal_app.tables import say

    context = click.get_current_context(silent=True)
    told = set() if context is None else context.meta.setdefault(_TOLD, set())
    for warning in settings.warnings:
        if warning not in told:
            told.add(warning)
            say(f"agent: {warning}")
