"""A configuration file: what it says, and in which line it says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.settings.ways import Way

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
        """What tells this content from any other."""
        import hashlib

        return hashlib.sha256(self.content).hexdigest()

    def line(self, way: Way) -> int | None:
        """Return the line of a value, or of the nearest thing around it."""
        from agent_runtime.files.problems import Wrong, line_of
        from agent_runtime.files.toml_text import parse_toml

        try:
            return line_of(self.text, parse_toml(self.text).locate(way))
        except Wrong as wrong:
            return line_of(self.text, wrong.at)

    def place(self, way: Way) -> str:
        """Return where a value stands, as file:line."""
        line = self.line(way)
        return str(self.path) if line is None else f"{self.path}:{line}"


def is_there(path: Path) -> bool:
    """Say whether there is a file, or something that keeps us from looking: reading it then tells what."""
    try:
        return path.exists()
    except OSError:
        return True


def read_bytes(path: Path) -> bytes:
    """Return the content of a file of settings.

    Raises:
        SettingsError: If it is no ordinary file, too large, or cannot be read.
    """
    try:
        if not path.is_file():  # reading a pipe may never come to an end
            raise SettingsError(str(path), None, "is no file", hint="write settings there, or name another")
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
        SettingsError: If it is no TOML.
    """
    import tomllib

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
    from agent_runtime.files.problems import Wrong, line_of
    from agent_runtime.files.toml_text import parse_toml

    try:
        parse_toml(text)
    except Wrong as wrong:
        return SettingsError(str(path), line_of(text, wrong.at), wrong.problem)
    return SettingsError(str(path), None, f"is not valid TOML: {error}")
