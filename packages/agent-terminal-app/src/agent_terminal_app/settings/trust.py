"""Which projects may change settings.

A project comes from somebody else, and its settings can make tools run. So its file counts only after the
person said so, and only as long as it is the same file: the list keeps its hash.
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


def is_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the person trusted this very file."""
    return _trusted(paths).get(str(file.path.resolve())) == file.digest


def was_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the person trusted the file before, perhaps with another content."""
    return str(file.path.resolve()) in _trusted(paths)


def trust_project(paths: Paths, folder: Path) -> ConfigFile:
    """Let the settings of a project count, as they are now, and return them.

    Raises:
        CommandError: If the project has none.
        SettingsError: If they cannot be used.
    """
    from agent_terminal_app.settings.loading import checked

    path = paths.project_config(folder)
    if not is_there(path):
        raise CommandError(f"there is no {path} to trust", code=Exit.USAGE, hint="go to the project's folder")
    file = checked(parse(path, read_bytes(path)), find_fault)
    _write(paths, {**_trusted(paths), str(path.resolve()): file.digest})
    return file


def _list(paths: Paths) -> Path:
    return paths.state / "trusted.json"


def _trusted(paths: Paths) -> dict[str, str]:
    """Return the hashes of trusted files; a list that cannot be read trusts nobody."""
    import json

    try:
        found = json.loads(_list(paths).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(paths: Paths, trusted: dict[str, str]) -> None:
    import json

    path = _list(paths)
    try:
        replace_file(path, json.dumps(trusted, indent=2) + "\n", mode=0o600, folder_mode=0o700)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
