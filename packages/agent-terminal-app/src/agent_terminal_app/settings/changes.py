"""Values of the user's file changed; comments, order and everything else stay as they were.

The new text is read back before it is written: it must say what the old one said with these changes, and
it must pass the same checks as any file.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit, SettingsError
from agent_terminal_app.settings.files import ConfigFile, is_there, parse, read_bytes, replace_file
from agent_terminal_app.settings.keypaths import read_way, spell, value_at
from agent_terminal_app.settings.layers import user_file
from agent_terminal_app.settings.rules import Fault, find_fault, find_gap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from agent_terminal_app.paths import Paths

Keys = tuple[str, ...]


def set_value(paths: Paths, key: str, value: Any, *, environment: Mapping[str, str] | None = None) -> Path:
    """Write one setting into the user's file, and return its path.

    Raises:
        CommandError: If there is no such setting, or it cannot have this value.
        SettingsError: If the file cannot be used as it is.
    """
    return Change.of(paths, {key: value}, environment=environment).save()


@dataclass(frozen=True, slots=True)
class Change:
    """Checked settings, ready to be written: all of them or none.

    Attributes:
        path: The user's file.
    """

    _new: ConfigFile

    @property
    def file(self) -> ConfigFile:
        """The file as it is going to be."""
        return self._new

    @property
    def path(self) -> Path:
        """The file that is changed."""
        return self._new.path

    @property
    def values(self) -> Mapping[str, Any]:
        """What the file says then."""
        return self._new.values

    @classmethod
    def of(
        cls, paths: Paths, values: Mapping[str, Any], *, environment: Mapping[str, str] | None = None
    ) -> Change:
        """Return the change that gives each dotted key its value; nothing is written yet.

        Raises:
            CommandError: If there is no such setting, or it cannot have this value.
            SettingsError: If the file cannot be used as it is.
        """
        old = new = _current(user_file(paths, environment))
        ways = [read_way(key) for key in values]
        for way, value in zip(ways, values.values(), strict=True):
            changes = [partial(_put, way=way, value=value, inline=inline) for inline in (False, True)]
            new = _changed(new, way, changes)
        fault = _fault(new.values)
        if fault is not None:
            raise _refusal(old, fault, ways)
        return cls(new)

    @classmethod
    def without(cls, paths: Paths, key: str, *, environment: Mapping[str, str] | None = None) -> Change:
        """Return the change that takes out one setting, or a whole table; nothing is written yet.

        Raises:
            CommandError: If the file does not say it, or something else needs it.
            SettingsError: If the file cannot be used as it is.
        """
        way = read_way(key)
        old = _current(user_file(paths, environment))
        try:
            value_at(old.values, way)
        except LookupError:
            raise CommandError(
                f"{old.path} does not set {key}", code=Exit.USAGE, hint="see `agent config get --origin`"
            ) from None
        new = _changed(old, way, [partial(_drop, way=way)])
        fault = _fault(new.values)
        if fault is not None and _fault(old.values) is None:  # a file that is wrong may be fixed step by step
            raise CommandError(f"{key} is needed: {fault.problem}", code=Exit.USAGE)
        return cls(new)

    def save(self) -> Path:
        """Write the file and return where it is.

        Raises:
            CommandError: If it cannot be written; it is unchanged then.
        """
        return _save(self._new)


def unset_value(paths: Paths, key: str, *, environment: Mapping[str, str] | None = None) -> Path:
    """Take one setting, or a whole table, out of the user's file, and return its path.

    Raises:
        CommandError: If the file does not say it, or something else needs it.
        SettingsError: If the file cannot be used as it is.
    """
    return Change.without(paths, key, environment=environment).save()


def _current(path: Path) -> ConfigFile:
    return parse(path, read_bytes(path)) if is_there(path) else ConfigFile(path, b"", "", {})


def _fault(values: Mapping[str, Any]) -> Fault | None:
    return find_fault(values) or find_gap(values)


def _refusal(old: ConfigFile, new: Fault, ways: Sequence[Keys]) -> CommandError:
    """Return why a change is refused: the file was wrong before, or the change makes it so."""
    before = _fault(old.values)
    if before is None or any(new.way[: len(way)] == way for way in ways):
        return CommandError(new.problem, code=Exit.USAGE, hint=new.hint, field=spell(new.way))
    return SettingsError(str(old.path), old.line(before.way), before.problem, hint=before.hint)


def _changed(old: ConfigFile, way: Keys, changes: Sequence[Callable[[Any], None]]) -> ConfigFile:
    """Return the file after the first of some equal changes that its text can take."""
    wanted = deepcopy(old.values)
    changes[0](wanted)
    for change in changes:
        new = _attempt(old, change)
        if new is not None and new.values == wanted:
            return new
    raise CommandError(f"{spell(way)} cannot be changed here", hint=f"edit {old.path} by hand")


def _attempt(old: ConfigFile, change: Callable[[Any], None]) -> ConfigFile | None:
    try:
        document = lazy.tomlkit.parse(old.text)
        change(document)
        return parse(old.path, lazy.tomlkit.dumps(document).encode())
    except (lazy.TOMLKitError, TypeError, ValueError, SettingsError):
        return None


def _put(table: Any, way: Keys, value: Any, *, inline: bool) -> None:
    """Set a value; tables that it needs are made in one piece, since parts of tomlkit's tables are copies."""
    for place, step in enumerate(way):
        if not isinstance(table, MutableMapping):
            inner = spell(way[:place])
            raise CommandError(f"{inner} is not a table, so there is no {spell(way)}", code=Exit.USAGE)
        if step not in table or place == len(way) - 1:
            made = _nested(way[place + 1 :], value)
            table[step] = _inline(made) if inline and isinstance(made, dict) else made
            return
        table = table[step]


def _nested(way: Keys, value: Any) -> Any:
    for step in reversed(way):
        value = {step: value}
    return value


def _inline(made: dict[str, Any]) -> Any:
    """Return a table in one line: among dotted keys there can be no other."""
    table = lazy.tomlkit.inline_table()
    table.update(made)
    return table


def _drop(table: Any, way: Keys) -> None:
    """Remove a value, and the tables around it that it leaves empty."""
    step, *rest = way
    if rest:
        _drop(table[step], tuple(rest))
    if not rest or not table[step]:
        del table[step]


def _save(new: ConfigFile) -> Path:
    mode = new.path.stat().st_mode & 0o777 if new.path.exists() else 0o644
    try:
        replace_file(new.path, new.text, mode=mode)
    except OSError as error:
        raise CommandError(f"cannot write {new.path}: {error.strerror or error}") from error
    return new.path
