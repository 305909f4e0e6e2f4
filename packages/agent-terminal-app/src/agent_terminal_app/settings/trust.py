"""Which projects may change settings.

A project comes from somebody else, and its settings can make tools run. So its file counts only after the
person said so, and only as long as it is the same file: the list keeps its hash. A person who does not want
to be asked about a folder says that once, and its file is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.settings.faults import find_fault
from agent_terminal_app.settings.replacing import replace_file
from agent_terminal_app.settings.sources import ConfigFile, is_there, parse, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.paths import Paths

_NEVER = "never"  # in place of a hash


def is_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the person trusted this very file."""
    return _noted(paths, file.path) == file.digest


def was_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the person trusted the file before, perhaps with another content."""
    return _noted(paths, file.path) not in (None, _NEVER)


def is_left_alone(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the person wants to hear nothing of the file."""
    return _noted(paths, file.path) == _NEVER


def read_project(paths: Paths, folder: Path) -> ConfigFile:
    """Return the settings of a project, trusted or not, if they could be used.

    Raises:
        CommandError: If the project has none.
        SettingsError: If they cannot be used.
    """
    from agent_terminal_app.settings.loading import checked

    path = paths.project_config(folder)
    if not is_there(path):
        raise CommandError(f"there is no {path} to trust", code=Exit.USAGE, hint="go to the project's folder")
    return checked(parse(path, read_bytes(path)), find_fault)


def trust_project(paths: Paths, folder: Path) -> ConfigFile:
    """Let the settings of a project count, as they are now, and return them.

    Raises:
        CommandError: If the project has none.
        SettingsError: If they cannot be used.
    """
    file = read_project(paths, folder)
    trust_file(paths, file)
    return file


def trust_file(paths: Paths, file: ConfigFile) -> None:
    """Let a file count with the content that was read, whatever stands there by now.

    Raises:
        CommandError: If that cannot be noted.
    """
    _note(paths, file.path, file.digest)


def leave_alone(paths: Paths, file: ConfigFile) -> None:
    """Never let a file count, and never ask about it, until somebody trusts it.

    Raises:
        CommandError: If that cannot be noted.
    """
    _note(paths, file.path, _NEVER)


def trust_list(paths: Paths) -> Path:
    """Return the file that has what the person said of projects."""
    return paths.state / "trusted.json"


def _noted(paths: Paths, file: Path) -> str | None:
    return _notes(paths).get(str(file.resolve()))


def _notes(paths: Paths) -> dict[str, str]:
    """Return what is noted of files; a list that cannot be read trusts nobody."""
    import json

    try:
        found = json.loads(trust_list(paths).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _note(paths: Paths, file: Path, word: str) -> None:
    import json

    path = trust_list(paths)
    noted = {**_notes(paths), str(file.resolve()): word}
    try:
        replace_file(path, json.dumps(noted, indent=2) + "\n", mode=0o600, folder_mode=0o700)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
