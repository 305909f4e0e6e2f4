"""Reading a plugin's definition field by field; a wrong one is the plugin's error, with its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.actions.values import type_name
from agent_core.errors import PluginError
from agent_core.frozen import FrozenDict, freeze


class Reader:
    """Reads one dict of a plugin; None counts as absent.

    Args:
        where: What the dict describes, for messages: ``action 'compact'``.

    Raises:
        PluginError: From every method, if the field is not what it is read as.
    """

    def __init__(self, plugin: str, where: str, given: object) -> None:
        self.plugin = plugin
        self.where = where
        if not isinstance(given, Mapping):
            raise self.error(f"expected object, got {type_name(given)}")
        self.given = given

    def error(self, problem: str, key: str | None = None) -> PluginError:
        """Return the error that says what is wrong, and in which field."""
        place = self.where if key is None else f"{self.where}, field {key!r}"
        return PluginError(self.plugin, "get_actions", f"{place}: {problem}")

    def value(self, key: str) -> Any:
        """Return the field as it is."""
        return self.given.get(key)

    def text(self, key: str) -> str:
        """Return a string, empty if absent."""
        value = "" if self.value(key) is None else self.value(key)
        if not isinstance(value, str):
            raise self.error(f"expected string, got {type_name(value)}", key)
        return value

    def name(self, key: str) -> str:
        """Return a string that has to be there."""
        if not (name := self.text(key)):
            raise self.error("required, but missing or empty", key)
        return name

    def names(self, key: str) -> tuple[str, ...]:
        """Return one name, or several, as a tuple."""
        value = self.value(key)
        names = (value,) if isinstance(value, str) else self.items(key)
        for name in names:
            if not isinstance(name, str) or not name:
                raise self.error(f"expected a name or a list of names, got {value!r:.80}", key)
        return names

    def flag(self, key: str) -> bool:
        """Return a boolean, False if absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"expected boolean, got {type_name(value)}", key)
        return bool(value)

    def items(self, key: str) -> tuple[Any, ...]:
        """Return an array as a tuple, empty if absent."""
        value = () if self.value(key) is None else self.value(key)
        if not isinstance(value, list | tuple):
            raise self.error(f"expected array, got {type_name(value)}", key)
        return tuple(value)

    def rest(self, *known: str) -> FrozenDict:
        """Return every field that is not *known*."""
        return FrozenDict({key: freeze(value) for key, value in self.given.items() if key not in known})
