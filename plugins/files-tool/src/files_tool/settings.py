"""The settings of the tools."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.settings import read_settings, setting, settings_schema

if TYPE_CHECKING:
    from collections.abc import Mapping


def _journal_folder(path: str) -> str:
    if path:
        return os.path.realpath(Path(path).expanduser())
    # Where programs keep what outlives them: the XDG Base Directory Specification.
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return os.path.realpath(home / "files-tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration.

    Attributes:
        roots: The folders to work in where the session names none.
        journal: Where changes are recorded, an absolute path.
        excluded: What no tool touches.
        protected: Absolute paths that are part of no workspace; the journal is one.
    """

    roots: tuple[str, ...] = setting(
        (),
        "The folders of the workspace, for sessions that have no workspace_roots themselves.",
        shown_default=None,
    )
    journal: str = setting(
        "",
        "The folder that keeps what changes replace; by default files-tool in the user's state directory.",
        convert=_journal_folder,
        says="a folder's path",
        empty=True,
        shown_default=None,
    )
    excluded: tuple[str, ...] = setting(
        (),
        "Files and folders that no tool touches, written as in a .gitignore.",
        key="excluded_files",
        empty=True,
    )
    protected: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        settings = read_settings(cls, config)
        protected = read_settings(_ProgramSettings, config).protected_paths
        return replace(settings, protected=(*map(os.path.realpath, protected), settings.journal))


@dataclass(frozen=True, slots=True)
class _ProgramSettings:
    """What the program that runs the tools configures, and no person: it is not in the schema."""

    protected_paths: tuple[str, ...] = setting(
        (), "Files and folders that belong to the program.", empty=True
    )


SCHEMA = settings_schema(Settings)
