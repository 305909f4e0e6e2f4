"""The files of this program: no tool of a model touches them, wherever it works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent_terminal_app.settings.loading import user_file
from agent_terminal_app.settings.secrets import find_references
from agent_terminal_app.settings.trust import trust_list

if TYPE_CHECKING:
    from agent_terminal_app.paths import Paths
    from agent_terminal_app.settings import Settings


def own_files(settings: Settings, paths: Paths) -> list[Path]:
    """Return folders with all that is in them, and files: settings, sessions, keys, logs, what is trusted.

    The most precious are named by themselves as well, so that they are known under any other name, too.
    """
    folders = [paths.config, paths.data, paths.state, paths.cache]
    files = [user_file(paths), paths.config_file, paths.database, paths.secrets, trust_list(paths)]
    return [*folders, *files, *_key_files(settings)]


def _key_files(settings: Settings) -> list[Path]:
    """Return the files in which the settings say that keys are."""
    found = find_references(settings.values)
    return [Path(reference.name) for _, reference in found if reference.form == "file"]
