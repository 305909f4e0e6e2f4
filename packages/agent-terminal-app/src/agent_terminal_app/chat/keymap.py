"""Key bindings: what keys can do, which keys do it, and what `keys.toml` changes.

`ACTIONS` is the one table: the prompt binds its keys, `/help` and the documentation list them. `keys.toml`
has one line for each action that should have other keys: `transcript = "F5"`, a list of several, or an
empty list for none. It is read strictly: a misspelled action, a key that terminals do not send, and a key
for two actions are reported with their line, and the chat does not start before they are corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core.errors import nearest
from agent_terminal_app.errors import SettingsError
from agent_terminal_app.settings.files import is_there, parse, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_terminal_app.settings.files import ConfigFile


class KeyAction(NamedTuple):
    """Something that a key does.

    Attributes:
        name: What it is called in `keys.toml`.
        keys: Its usual keys.
        about: What it does, as people read it.
    """

    name: str
    keys: tuple[str, ...]
    about: str


ACTIONS = (
    KeyAction("send", ("Enter",), "sends; while the agent works, delivers it after the current step"),
    KeyAction(
        "complete",
        ("Tab",),
        "takes a completion; while the agent works, queues the message",
    ),
    KeyAction(
        "mode",
        ("Shift+Tab",),
        "next mode of this chat: edits without asking; then commands in the sandbox too; then asks",
    ),
    KeyAction("take_back", ("Alt+Up",), "moves the last queued message back to the input line"),
    KeyAction(
        "stop",
        ("Esc",),
        "closes the open view, or stops the work; pressed twice with nothing typed, goes back a message",
    ),
    KeyAction(
        "interrupt",
        ("Ctrl+C",),
        "stops the current work, or clears the input (Up brings it back); twice within two seconds, leaves",
    ),
    KeyAction("leave", ("Ctrl+D",), "leaves, if nothing is typed; everything is kept"),
    KeyAction("new_line", ("Alt+Enter", "Ctrl+J", "Shift+Enter"), "begins a new line"),
    KeyAction("search", ("Ctrl+R",), "searches the input history"),
    KeyAction("model", ("Alt+P",), "chooses the model; your text stays"),
    KeyAction("commands", ("Ctrl+P",), "chooses a command; your text stays"),
    KeyAction("open", ("Ctrl+O",), "opens the last tool call or thought; again, the one before"),
    KeyAction("scroll_up", ("PgUp",), "scrolls up in the open view"),
    KeyAction("scroll_down", ("PgDn",), "scrolls down in the open view"),
    KeyAction("transcript", ("Ctrl+T",), "shows the whole conversation in $PAGER"),
    KeyAction("edit", ("Ctrl+G",), "edits the input in $VISUAL or $EDITOR"),
    KeyAction("clear", ("Ctrl+L",), "clears the screen"),
    KeyAction("suspend", ("Ctrl+Z",), "suspends the chat"),
    KeyAction("help", ("F1", "?"), "shows the help; a plain character only while nothing is typed"),
)
"""Everything that a key can do, in the order in which it is listed."""

ALWAYS = {"stop": "Esc"}
"""Keys that an action keeps whatever else it gets: every question of the chat says that Esc leaves it."""

FIXED = (
    ("\\ Enter", "begins a new line in every terminal"),
    ("Up", "brings back earlier input"),
    ("@FILE", "sends a text file or a picture with the message"),
    ("!COMMAND", "runs a command in your shell; its output joins your next message"),
    ("/COMMAND", "runs a command of the chat"),
)
"""What can be typed besides the keys of the table."""


SHIFT_ENTER = "c-f15"
"""The name under which the prompt knows Shift+Enter, for which it has none; no terminal sends this one."""

_PLAIN = {
    "Enter": "enter",
    "Tab": "tab",
    "Esc": "escape",
    "Backspace": "backspace",
    "Space": " ",
    "Up": "up",
    "Down": "down",
    "Left": "left",
    "Right": "right",
    "Home": "home",
    "End": "end",
    "PgUp": "pageup",
    "PgDn": "pagedown",
    "Insert": "insert",
    "Delete": "delete",
}
_FUNCTION = {f"F{number}": f"f{number}" for number in range(1, 21)}
_MOVING = ("Up", "Down", "Left", "Right", "Home", "End", "PgUp", "PgDn", "Insert", "Delete")
_CONTROLLED = {**{letter: letter.lower() for letter in "ABCDEFGJKLNOPQRSTUVWXYZ"}, "Space": "@"} | {
    sign: sign for sign in "\\]^_"
}
_SAME = {"Ctrl+I": "Tab", "Ctrl+M": "Enter", "Ctrl+H": "Backspace", "Ctrl+[": "Esc", "Ctrl+@": "Ctrl+Space"}
_OTHER_NAMES = {
    "escape": "Esc",
    "return": "Enter",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "del": "Delete",
    "ins": "Insert",
    "control": "Ctrl",
    "option": "Alt",
    "meta": "Alt",
}
_NAMED = {**_PLAIN, **_FUNCTION}
_MODIFIERS = ("Ctrl", "Alt", "Shift")
_MOST_KEYS = 2


class NoKeyError(ValueError):
    """A text names no key that a terminal sends.

    Attributes:
        hint: What could be written instead; empty if nobody knows.
    """

    def __init__(self, problem: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Key:
    """A key, or two that are pressed one after the other.

    Attributes:
        name: As people write it.
        codes: As the prompt knows it.
    """

    name: str
    codes: tuple[str, ...]

    @property
    def is_typed(self) -> bool:
        """Whether it is a character, which people also type into texts."""
        return len(self.codes) == 1 and len(self.codes[0]) == 1


def read_key(text: str) -> Key:
    """Return the key that a text means, in whichever case it is written.

    Raises:
        NoKeyError: If there is none, or terminals do not tell it from another.
    """
    presses = [_press(word) for word in text.split()]
    if not presses or len(presses) > _MOST_KEYS:
        raise NoKeyError(f"{text!r} is not a key", "write one as Ctrl+T, or two as Ctrl+X Ctrl+E")
    if len(presses) > 1 and (presses[0].is_typed or presses[0].codes == ("escape",)):
        raise NoKeyError(
            f"{text!r} cannot be distinguished from typing", "use Ctrl or Alt with the first key"
        )
    name = " ".join(press.name for press in presses)
    return Key(name, tuple(code for press in presses for code in press.codes))


def _press(word: str) -> Key:
    """Return the key that a word without spaces means."""
    *written, last = _parts(word)
    given = [_known(modifier, _MODIFIERS) for modifier in written]
    if len(last) == 1 and not given:
        return Key(last, (last,))
    base = last.upper() if len(last) == 1 else _known(last, _NAMED)
    modifiers = [modifier for modifier in _MODIFIERS if modifier in given]
    name = "+".join([*modifiers, base])
    if name.replace("Alt+", "") in _SAME:
        same = _SAME[name.replace("Alt+", "")]
        raise NoKeyError(f"terminals send the same for {name} and {same}", f"write {same}")
    code = _code([modifier for modifier in modifiers if modifier != "Alt"], base)
    if code is None or (base == "Esc" and given):
        raise NoKeyError(f"terminals do not send {name}", "use Ctrl with a letter, Alt, or F1 to F20")
    return Key(name, ("escape", code) if "Alt" in modifiers else (code,))


def _parts(word: str) -> list[str]:
    """Return the modifiers and the key of a word; the key itself may be a plus."""
    if word.endswith("++"):
        return [*word[:-2].split("+"), "+"]
    return ["+"] if word == "+" else word.split("+")


def _known(part: str, names: Iterable[str]) -> str:
    """Return a name as it is written here, however it was written there."""
    by_lower = {name.lower(): name for name in names}
    found = by_lower.get(_OTHER_NAMES.get(part.lower(), part).lower())
    if found is None:
        raise NoKeyError(f"there is no key {part!r}", nearest(part, by_lower.values()))
    return found


def _code(modifiers: list[str], base: str) -> str | None:
    """Return what the prompt calls a key with Ctrl and Shift; None if there is none."""
    if modifiers == ["Shift"]:
        shifted = {"Tab": "s-tab", "Enter": SHIFT_ENTER}
        return shifted.get(base) or (f"s-{_PLAIN[base]}" if base in _MOVING else None)
    if modifiers == ["Ctrl", "Shift"]:
        return f"c-s-{_PLAIN[base]}" if base in _MOVING else None
    if modifiers == ["Ctrl"]:
        code = _CONTROLLED.get(base) or (_PLAIN[base] if base in _MOVING else None)
        return None if code is None else f"c-{code}"
    return _NAMED.get(base, base.lower())


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
    """Return the keys in force, after a look at the user's file, if there is one.

    Raises:
        SettingsError: If something is wrong with it; with the line.
    """
    if not is_there(path):
        return KeyMap.usual()
    file = parse(path, read_bytes(path))
    own = {name: _read(file, name, value) for name, value in file.values.items()}
    keymap = KeyMap({**KeyMap.usual().keys, **own})
    for problem in _conflicts(file, keymap):
        raise problem
    return keymap


def _read(file: ConfigFile, name: str, value: Any) -> tuple[Key, ...]:
    """Return the keys that a line of the file gives to an action."""
    known = [action.name for action in ACTIONS]
    if name not in known:
        raise _fault(file, name, f"there is no action {name!r}", nearest(name, known))
    written = [value] if isinstance(value, str) else value
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise _fault(file, name, f"{name} must be a key or a list of keys, not {value!r}")
    if name == _NEEDED and not written:
        raise _fault(file, name, f"{name} needs a key: without one, no message could be sent")
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
        if other != name and key.codes[0] != "escape":  # what follows at once tells Esc and Alt apart
            yield _conflict(file, f"{key.name}, of {name}, begins with the key of {other}", name, other)


def _conflict(file: ConfigFile, problem: str, name: str, other: str) -> SettingsError:
    """Return a conflict at the line that brought it about, with what would end it."""
    written, others = (name, other) if name in file.values else (other, name)
    return _fault(file, written, problem, f"give {others} another key, or none: {others} = []")


def _fault(file: ConfigFile, name: str, problem: str, hint: str = "") -> SettingsError:
    return SettingsError(str(file.path), file.line((name,)), problem, hint=hint)
