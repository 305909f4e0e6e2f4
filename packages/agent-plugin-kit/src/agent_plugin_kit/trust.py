"""Which projects may speak to the model: their instructions, skills and memories are the work of others.

A front end that knows which folders a person trusts says so in the setting `trusted_folders` of each agent's
`config`. Where it is missing, nobody keeps such a list, and every folder counts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TRUSTED_FOLDERS: Final = "trusted_folders"
TOP_MARKS: Final = (".git", ".hg", ".jj")
"""What the top of a repository has in it."""
_MOST_FOLDERS = 64
NOT_TRUSTED: Final = "the project is not trusted; `agent config trust` lets it count"


def trusted_folders(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the folders that a person trusts; None if nobody says."""
    given = config.get(TRUSTED_FOLDERS)
    return None if given is None else tuple(os.path.realpath(str(folder)) for folder in given)


def project_top(folder: Path) -> Path:
    """Return the top of the repository that a folder is in, or the folder itself if it is in none."""
    above = [folder, *folder.parents][:_MOST_FOLDERS]
    return next((one for one in above if any((one / mark).exists() for mark in TOP_MARKS)), folder)


def is_trusted(folder: str | Path, trusted: Sequence[str] | None) -> bool:
    """Say whether a folder is one of those that are trusted, or inside one."""
    if trusted is None:
        return True
    real = os.path.realpath(folder)
    return any(real == one or real.startswith(f"{one.rstrip('/')}/") for one in trusted)
