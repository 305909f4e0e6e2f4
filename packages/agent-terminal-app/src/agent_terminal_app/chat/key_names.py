"""Keys as people write them, `Ctrl+T` or `Ctrl+X Ctrl+E`, and as the prompt knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        raise NoKeyError(f"{text!r} is no key", "write one as Ctrl+T, or two as Ctrl+X Ctrl+E")
    if len(presses) > 1 and (presses[0].is_typed or presses[0].codes == ("escape",)):
        raise NoKeyError(f"{text!r} cannot be told from typing", "let the first be one with Ctrl or Alt")
    name = " ".join(press.name for press in presses)
    return Key(name, tuple(code for press in presses for code in press.codes))


def _press(word: str) -> Key:
    """Return the key that a word without spaces means."""
    *written, last = _parts(word)
    held = [_known(modifier, _MODIFIERS) for modifier in written]
    if len(last) == 1 and not held:
        return Key(last, (last,))
    base = last.upper() if len(last) == 1 else _known(last, _NAMED)
    modifiers = [modifier for modifier in _MODIFIERS if modifier in held]
    name = "+".join([*modifiers, base])
    if name.replace("Alt+", "") in _SAME:
        same = _SAME[name.replace("Alt+", "")]
        raise NoKeyError(f"terminals send the same for {name} and {same}", f"write {same}")
    code = _code([modifier for modifier in modifiers if modifier != "Alt"], base)
    if code is None or (base == "Esc" and held):
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
        from agent_runtime.errors import nearest

        raise NoKeyError(f"there is no key {part!r}", nearest(part, by_lower.values()))
    return found


def _code(modifiers: list[str], base: str) -> str | None:
    """Return what the prompt calls a key with Ctrl and Shift; None if there is no such thing."""
    if modifiers == ["Shift"]:
        shifted = {"Tab": "s-tab", "Enter": SHIFT_ENTER}
        return shifted.get(base) or (f"s-{_PLAIN[base]}" if base in _MOVING else None)
    if modifiers == ["Ctrl", "Shift"]:
        return f"c-s-{_PLAIN[base]}" if base in _MOVING else None
    if modifiers == ["Ctrl"]:
        code = _CONTROLLED.get(base) or (_PLAIN[base] if base in _MOVING else None)
        return None if code is None else f"c-{code}"
    return _NAMED.get(base, base.lower())
