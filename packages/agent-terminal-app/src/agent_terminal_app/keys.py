"""Keys by name: stored apart from the configuration, readable by their owner alone.

The name is that of a provider, or any other that settings refer to as "stored:NAME".

A key goes into the keyring of the desktop if there is one that answers, and into a file of mode 0600 if not:
on servers keyrings are often locked, or wait for somebody to type a password that nobody will. The file also
lists which keys are in the keyring, because keyrings cannot list; so where no key was ever stored, nothing is
asked and nothing loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.logs import hide

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_terminal_app.paths import Paths

SERVICE = "agent"
"""Under which name keys are in the keyring."""
PATIENCE = 1.0
"""How many seconds the keyring has for an answer."""
KEYRING_VARIABLE = "AGENT_KEYRING"
"""Set to "off", it keeps keys out of the keyring."""

T = TypeVar("T")


class KeyStore:
    """The stored keys of one person."""

    def __init__(self, paths: Paths) -> None:
        self._file = paths.secrets

    @property
    def path(self) -> Path:
        """The file that holds the keys, or says that the keyring does."""
        return self._file

    def names(self) -> list[str]:
        """Return the names under which keys are stored."""
        return sorted(self._read())

    def get(self, name: str) -> str | None:
        """Return the key of this name, or None; from now on the log hides it.

        Raises:
            CommandError: If the file cannot be read, or others can read it too.
        """
        stored = self._read()
        if name not in stored:
            return None
        key = stored[name] or _keyring(lambda ring: ring.get_password(SERVICE, name))
        if key:
            hide(key)
        return key

    def origin(self, name: str) -> str | None:
        """Return where the key of this name is: "keyring" or the path of the file; None if there is none."""
        stored = self._read()
        if name not in stored:
            return None
        return str(self._file) if stored[name] else "keyring"

    def set(self, name: str, key: str) -> str:
        """Store a key and return where it is now.

        Raises:
            CommandError: If it cannot be stored; what was stored before is still there then.
        """
        hide(key)
        stored = self._read()
        kept = bool(_keyring(lambda ring: _keep(ring, name, key)))
        listed = {**stored, name: None if kept else key}
        try:
            if listed != stored:
                self._write(listed)
        except CommandError:
            if kept:  # a key that no list names would stay in the keyring for ever
                _keyring(lambda ring: _forget(ring, name))
            raise
        return "keyring" if kept else str(self._file)

    def remove(self, name: str) -> bool:
        """Forget a key; say whether there was one.

        Raises:
            CommandError: If the keyring keeps it.
        """
        stored = self._read()
        if name not in stored:
            return False
        if stored[name] is None and not _keyring(lambda ring: _forget(ring, name)):
            raise CommandError(
                f"the keyring did not remove the key of {name}", hint="unlock the keyring and try again"
            )
        self._write({other: key for other, key in stored.items() if other != name})
        return True

    def _read(self) -> dict[str, str | None]:
        """Return the keys in the file; None for one that is in the keyring."""
        import json

        try:
            mode = self._file.stat().st_mode
            if mode & 0o077:
                raise CommandError(
                    f"{self._file} can be read by others and is not used",
                    code=Exit.NOT_CONFIGURED,
                    hint=f"run: chmod 600 {self._file}",
                )
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable(str(error)) from error
        if not isinstance(found, dict) or not all(isinstance(key, str | None) for key in found.values()):
            raise self._unreadable("it is no table of keys")
        return found

    def _unreadable(self, problem: str) -> CommandError:
        return CommandError(
            f"{self._file} cannot be read: {problem}",
            code=Exit.NOT_CONFIGURED,
            hint="mend it, or remove it and store the keys again with `agent keys set NAME`",
        )

    def _write(self, keys: dict[str, str | None]) -> None:
        import json

        from agent_terminal_app.settings.replacing import replace_file

        try:
            replace_file(self._file, json.dumps(keys, indent=2) + "\n", mode=0o600, folder_mode=0o700)
        except OSError as error:
            raise CommandError(f"cannot write {self._file}: {error.strerror or error}") from error


def clean_key(typed: str) -> str:
    """Return a key as it was meant: without the spaces and quotes that come along when it is copied.

    Raises:
        CommandError: If nothing is left, or it holds what no key does.
    """
    key = typed.strip().strip("\"'`\u201c\u201d\u2018\u2019").strip()
    if not key:
        raise CommandError("the key is empty: nothing is stored", code=Exit.USAGE)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CommandError(
            "the key holds spaces or characters that no key has: nothing is stored",
            code=Exit.USAGE,
            hint="copy the key alone, in one line",
        )
    return key


def _keep(ring: Any, name: str, key: str) -> bool:
    ring.set_password(SERVICE, name, key)
    return bool(ring.get_password(SERVICE, name) == key)  # some backends take everything and keep nothing


def _forget(ring: Any, name: str) -> bool:
    ring.delete_password(SERVICE, name)
    return True


def _keyring(ask: Callable[[Any], T]) -> T | None:
    """Ask the keyring; None if there is none, it refuses, or it lets us wait."""
    from importlib.util import find_spec
    from threading import Thread

    if os.environ.get(KEYRING_VARIABLE) == "off" or find_spec("keyring") is None:
        return None
    answers: list[T] = []

    def work() -> None:
        from contextlib import suppress
        from importlib import import_module

        with suppress(Exception):  # backends raise whatever their desktop does
            answers.append(ask(import_module("keyring")))

    worker = Thread(target=work, name="keyring", daemon=True)
    worker.start()
    worker.join(PATIENCE)
    return answers[0] if answers else None
