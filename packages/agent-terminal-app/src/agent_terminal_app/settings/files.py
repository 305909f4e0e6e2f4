"""A configuration file: what it says, on which line it says so, and how it is replaced.

A file is replaced whole or not at all: a reader sees the old content or the new, never half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.safe_files import make_private_folder
from agent_terminal_app import lazy
from agent_terminal_app.errors import SettingsError

if TYPE_CHECKING:
    from agent_terminal_app.settings.keypaths import Way

MAX_BYTES = 1_000_000
"""How large a configuration file may be."""
MAX_DEPTH = 100
"""How deep its values may be nested."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file of settings, read once: what is checked is what is used.

    Attributes:
        path: Where it is.
        content: Its bytes.
        text: The same as text.
        values: What it says.
    """

    path: Path
    content: bytes = field(repr=False)
    text: str = field(repr=False)
    values: dict[str, Any]

    @property
    def digest(self) -> str:
        """The hash that the list of trusted files keeps."""
        return hashlib.sha256(self.content).hexdigest()

    def line(self, way: Way) -> int | None:
        """Return the line of a value, or of the nearest thing around it."""
        return find_line(self.text, way)

    def place(self, way: Way) -> str:
        """Return where a value stands, as file:line."""
        line = self.line(way)
        return str(self.path) if line is None else f"{self.path}:{line}"


def is_there(path: Path) -> bool:
    """Say whether there is a file, or may be one: if looking is refused, reading it reports why."""
    try:
        return path.exists()
    except OSError:
        return True


def read_bytes(path: Path) -> bytes:
    """Return the content of a file of settings.

    Raises:
        SettingsError: If it is not a regular file, is too large, or cannot be read.
    """
    try:
        if not path.is_file():  # reading a pipe may never end
            raise SettingsError(
                str(path), None, "is not a file", hint="write settings there, or name another"
            )
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(str(path), None, f"cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_BYTES:
        raise SettingsError(str(path), None, f"is larger than {MAX_BYTES:,} bytes")
    return content


def parse(path: Path, content: bytes) -> ConfigFile:
    """Return what a file says; nothing of it is checked yet.

    Raises:
        SettingsError: If it is not TOML.
    """
    try:
        text = content.decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(str(path), line, "is not UTF-8", hint="save it in that encoding") from error
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_toml(path, text, error) from error
    if _is_too_deep(values):
        raise SettingsError(str(path), None, f"is nested deeper than {MAX_DEPTH} levels")
    return ConfigFile(path, content, text, values)


def _is_too_deep(values: dict[str, Any]) -> bool:
    level: list[Any] = [values]
    for _ in range(MAX_DEPTH):
        tables = [one.values() if isinstance(one, dict) else one for one in level]
        level = [inner for table in tables for inner in table if isinstance(inner, (dict, list))]
    return bool(level)


def _not_toml(path: Path, text: str, error: Exception) -> SettingsError:
    found = find_syntax_error(text)
    if found is not None:
        line, problem = found
        return SettingsError(str(path), line, problem)
    return SettingsError(str(path), None, f"is not valid TOML: {error}")


def find_line(text: str, way: Way) -> int | None:
    """Return the line of a value in a TOML text, or of the nearest thing around it."""
    try:
        return lazy.line_of(text, lazy.parse_toml(text).locate(way))
    except lazy.Wrong as wrong:
        return lazy.line_of(text, wrong.at)


def find_syntax_error(text: str) -> tuple[int | None, str] | None:
    """Return the line and the problem of a text that is not TOML; None if nothing is found."""
    try:
        lazy.parse_toml(text)
    except lazy.Wrong as wrong:
        return lazy.line_of(text, wrong.at), wrong.problem
    return None


def replace_file(path: Path, content: str, *, mode: int, folder_mode: int = 0o755) -> None:
    """Put *content* in the place of a file, making its folder if there is none.

    A link stays a link: the file that it leads to is replaced.

    Raises:
        OSError: If that cannot be done; the old content is still there then.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        make_private_folder(target.parent)
        target.parent.chmod(folder_mode)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
