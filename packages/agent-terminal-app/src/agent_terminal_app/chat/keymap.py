"""The keys in force: the usual ones, with what a person's `keys.toml` changes.

The file has one line for each action that shall have other keys: `transcript = "F5"`, or a list of several,
or an empty one for none. It is read strictly: a misspelled action, a key that terminals do not send, and a
key for two things are told with their line, and the chat does not begin before they are set right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_terminal_app.chat.key_actions import ACTIONS, ALWAYS, FIXED
from agent_terminal_app.chat.key_names import Key, NoKeyError, read_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from agent_terminal_app.errors import SettingsError
    from agent_terminal_app.settings.sources import ConfigFile

_NEEDED = "send"


@dataclass(frozen=True, slots=True)
class KeyMap:
    """Which keys do what.

    Attributes:
        keys: The keys of each action, by its name.
    """

    keys: Mapping[str, tuple[Key, ...]]

    @classmethod
    def usual(cls) -> KeyMap:
        """Return the keys that hold where nobody has written others."""
        return cls({action.name: tuple(map(read_key, action.keys)) for action in ACTIONS})

    def first(self, action: str) -> str:
        """Return the key to name where there is room for one; empty if the action has none."""
        return next((key.name for key in self.keys[action]), "")

    def shown(self, action: str) -> str:
        """Return all keys of an action as people read them."""
        return ", ".join(key.name for key in self.keys[action])

    def freed(self, action: str) -> list[Key]:
        """Return the usual keys of an action that do nothing any more, for it or for another."""
        taken = {key.codes for keys in self.keys.values() for key in keys}
        usual = next(one.keys for one in ACTIONS if one.name == action)
        return [key for key in map(read_key, usual) if key.codes not in taken]

    def changes(self) -> list[str]:
        """Return the names of the actions whose keys are not the usual ones."""
        usual = KeyMap.usual().keys
        return [name for name, keys in self.keys.items() if keys != usual[name]]

    def rows(self) -> list[tuple[str, str]]:
        """Return everything that can be pressed or typed, each with what it does."""
        bound = [(self.shown(one.name), one.about) for one in ACTIONS if self.keys[one.name]]
        return [*bound, *FIXED]


def load_keys(path: Path) -> KeyMap:
    """Return the keys in force, after a look at the person's file, if there is one.

    Raises:
        SettingsError: If something is wrong with it; with the line.
    """
    from agent_terminal_app.settings.sources import is_there

    if not is_there(path):
        return KeyMap.usual()
    from agent_terminal_app.settings.sources import parse, read_bytes

    file = parse(path, read_bytes(path))
    own = {name: _read(file, name, value) for name, value in file.values.items()}
    keymap = KeyMap({**KeyMap.usual().keys, **own})
    for problem in _conflicts(file, keymap):
        raise problem
    return keymap


def _read(file: ConfigFile, name: str, value: Any) -> tuple[Key, ...]:
    """Return the keys that a line of the file gives to an action."""
    from agent_runtime.errors import nearest

    known = [action.name for action in ACTIONS]
    if name not in known:
        raise _fault(file, name, f"there is no action {name!r}", nearest(name, known))
    written = [value] if isinstance(value, str) else value
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise _fault(file, name, f"{name} must be a key or a list of keys, not {value!r}")
    if name == _NEEDED and not written:
        raise _fault(file, name, f"{name} needs a key: nothing could be said without one")
    try:
        keys = [read_key(text) for text in [*written, *([ALWAYS[name]] if name in ALWAYS else [])]]
    except NoKeyError as error:
        raise _fault(file, name, f"{name}: {error}", error.hint) from error
    return tuple(dict.fromkeys(keys))


def _conflicts(file: ConfigFile, keymap: KeyMap) -> Iterator[SettingsError]:
    """Yield what is wrong with keys that mean two things, or begin with one that means something else."""
    owners: dict[tuple[str, ...], str] = {}
    bound = [(name, key) for name, keys in keymap.keys.items() for key in keys]
    for name, key in bound:
        other = owners.setdefault(key.codes, name)
        if other != name:
            yield _conflict(file, f"{key.name} is the key of both {other} and {name}", name, other)
    for name, key in bound:
        other = owners.get(key.codes[:1], name)
        if other != name and key.codes[0] != "escape":  # Esc is told from Alt by what follows at once
            yield _conflict(file, f"{key.name}, of {name}, begins with the key of {other}", name, other)


def _conflict(file: ConfigFile, problem: str, name: str, other: str) -> SettingsError:
    """Return a conflict at the line that brought it about, with what would end it."""
    written, others = (name, other) if name in file.values else (other, name)
    return _fault(file, written, problem, f"give {others} another key, or none: {others} = []")


def _fault(file: ConfigFile, name: str, problem: str, hint: str = "") -> SettingsError:
    from agent_terminal_app.errors import SettingsError

    return SettingsError(str(file.path), file.line((name,)), problem, hint=hint)
