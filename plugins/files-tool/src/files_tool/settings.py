"""What the configuration says, read and checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOTS = "roots"
JOURNAL = "journal"
EXCLUDED = "excluded_files"
PROTECTED = "protected_paths"
"""Said by the program that runs the tools, and by no configuration that people write."""

_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA: dict[str, Any] = {
    ROOTS: {
        **_TEXTS,
        "description": "The folders of the workspace, for sessions that have no workspace_roots themselves.",
    },
    JOURNAL: {
        "type": "string",
        "description": "The folder that keeps what changes replace; by default files-tool in the user's "
        "state directory.",
    },
    EXCLUDED: {
        **_TEXTS,
        "default": [],
        "description": "Files and folders that no tool touches, written as in a .gitignore.",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration.

    Attributes:
        roots: The folders to work in where the session names none.
        journal: Where changes are recorded, an absolute path.
        excluded: What no tool touches.
        protected: Absolute paths that are part of no workspace; the journal is one.
    """

    roots: tuple[str, ...] = ()
    journal: str
    excluded: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one has the wrong type; `field` names it.
        """
        journal = config.get(JOURNAL)
        if journal is not None and not isinstance(journal, str):
            kind = type(journal).__name__
            raise ConfigError(f"config[{JOURNAL!r}] must be a folder's path, not {kind}", field=JOURNAL)
        folder = Path(journal).expanduser() if journal else _state_folder() / "files-tool"
        kept = os.path.realpath(folder)
        return cls(
            roots=_texts(config, ROOTS),
            journal=kept,
            excluded=_texts(config, EXCLUDED),
            protected=(*map(os.path.realpath, _texts(config, PROTECTED)), kept),
        )


def _texts(config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = config.get(key) or ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"config[{key!r}] must be a list of texts, not {value!r:.80}", field=key)
    return tuple(value)


def _state_folder() -> Path:
    """Return where programs keep what outlives them (the XDG Base Directory Specification)."""
    told = os.environ.get("XDG_STATE_HOME", "")
    return Path(told) if Path(told).is_absolute() else Path.home() / ".local" / "state"
