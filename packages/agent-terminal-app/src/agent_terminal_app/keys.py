"""Keys: stored by name apart from the configuration, and found by what settings refer to.

The name is that of a provider, or any other that settings refer to as "stored:NAME". "env:NAME" and
"file:PATH" lead to keys that are kept elsewhere.

A key goes into the desktop's keyring if one answers, and otherwise into a file of mode 0600: on servers
keyrings are often locked, or wait for somebody to type a password. The file also lists which keys are in
the keyring, because keyrings cannot list; so where no key was ever stored, nothing is asked and nothing
loaded.

A missing key stops no command: most never need it. A request that is sent without it is refused by the
provider, whose error says where the key should have come from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from agent_plugin_kit.secrets import begins_like_key, is_secret_field
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.logs import hide
from agent_terminal_app.settings.files import replace_file
from agent_terminal_app.settings.secrets import Reference, is_secret_name, read_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_terminal_app.paths import Paths

SERVICE = "agent"
"""Under which name keys are in the keyring."""
PATIENCE = 1.0
"""How many seconds the keyring has for an answer."""
KEYRING_VARIABLE = "AGENT_KEYRING"
"""Set to "off", it keeps keys out of the keyring."""

T = TypeVar("T")


class KeyStore:
    """The stored keys of one user."""

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
            raise self._unreadable("it is not a table of keys")
        return found

    def _unreadable(self, problem: str) -> CommandError:
        return CommandError(
            f"{self._file} cannot be read: {problem}",
            code=Exit.NOT_CONFIGURED,
            hint="fix it, or remove it and store the keys again with `agent keys set NAME`",
        )

    def _write(self, keys: dict[str, str | None]) -> None:
        try:
            replace_file(self._file, json.dumps(keys, indent=2) + "\n", mode=0o600, folder_mode=0o700)
        except OSError as error:
            raise CommandError(f"cannot write {self._file}: {error.strerror or error}") from error


def clean_key(typed: str) -> str:
    """Return a key without the spaces and quotes that come along when it is copied.

    Raises:
        CommandError: If nothing is left, or it has characters that no key has.
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
    """Ask the keyring; None if there is none, it refuses, or it does not answer in time."""
    if os.environ.get(KEYRING_VARIABLE) == "off" or find_spec("keyring") is None:
        return None
    answers: list[T] = []

    def work() -> None:
        with suppress(Exception):  # backends raise whatever their desktop does
            answers.append(ask(import_module("keyring")))

    worker = Thread(target=work, name="keyring", daemon=True)
    worker.start()
    worker.join(PATIENCE)
    return answers[0] if answers else None


LONGEST_KEY = 10_000
"""How many bytes a file with a key may have."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """What a reference leads to.

    Attributes:
        value: The key; empty if there is none.
        origin: Where it came from, or why there is none, in words.
    """

    value: str = field(repr=False)
    origin: str

    @property
    def is_there(self) -> bool:
        """Whether there is a key."""
        return bool(self.value)


class KeyLookup:
    """Finds the keys that settings refer to."""

    def __init__(self, store: KeyStore, environment: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._environment = os.environ if environment is None else environment

    def find(self, reference: Reference) -> FoundKey:
        """Return the key behind a reference, or why there is none; from now on the log hides it."""
        ways = {"stored": self._stored, "env": self._variable, "file": self._file}
        found = ways[reference.form](reference.name)
        if found.is_there:
            hide(found.value)
        return found

    def _stored(self, name: str) -> FoundKey:
        try:
            key = self._store.get(name)
        except CommandError as error:
            return FoundKey("", str(error))
        if key is None:
            return FoundKey("", f"nowhere: no key is stored as {name!r}, run `agent keys set {name}`")
        return FoundKey(key, f"{self._store.origin(name)}, stored as {name!r}")

    def _variable(self, name: str) -> FoundKey:
        key = self._environment.get(name, "").strip()
        return FoundKey(key, f"environment {name}" if key else f"nowhere: the variable {name} is not set")

    def _file(self, name: str) -> FoundKey:
        path = Path(name).expanduser()
        try:
            if not path.is_file():  # reading a pipe may never come to an end
                return FoundKey("", f"nowhere: {path} is not a file")
            with path.open("rb") as file:
                key = file.read(LONGEST_KEY).decode("utf-8", "replace").strip()
        except OSError as error:
            return FoundKey("", f"nowhere: {path} cannot be read: {error.strerror or error}")
        return FoundKey(key, f"file {path}" if key else f"nowhere: {path} is empty")


def with_keys(values: Any, lookup: KeyLookup, way: tuple[str, ...] = ()) -> Any:
    """Return settings with keys in place of references; a key that cannot be found is left out.

    With an `api_key` goes `api_key_origin`, which says where it came from: providers name it in their
    errors. Where there is none it is empty, so that a provider does not take another one from the
    environment.

    Args:
        way: Where the settings stand, from the top.
    """
    if isinstance(values, list):
        return [with_keys(item, lookup) for item in values]
    if not isinstance(values, Mapping):
        return values
    if _is_for_a_server(way):
        return {name: _looked_up(name, value, lookup) for name, value in values.items()}
    made: dict[str, Any] = {}
    for name, value in values.items():
        reference = read_reference(value) if is_secret_name(name) else None
        if reference is None:
            made[name] = with_keys(value, lookup, (*way, name))
            continue
        found = lookup.find(reference)
        if name == "api_key":
            made |= {"api_key": found.value, "api_key_origin": found.origin}
        elif found.is_there:
            made[name] = found.value
    return made


def _is_for_a_server(way: tuple[str, ...]) -> bool:
    """Say whether a table is what a plugin gives a server: its variables, or its headers."""
    match way:
        case (*_, "servers", _, "env" | "headers"):
            return True
    return False


def _looked_up(name: str, value: Any, lookup: KeyLookup) -> Any:
    """Return a value for a server: its plugin has the reference approved, so it gets that with the key.

    Variables it looks up itself, when the server starts. Where no key is expected, `file:` begins an address.
    """
    reference = read_reference(value)
    if reference is None or reference.form == "env":
        return value
    if reference.form == "file" and not is_secret_name(name):
        return value
    return {"reference": str(reference), "value": lookup.find(reference).value or None}


# MCP servers, whose environment or headers may hold secrets


def store_secrets(
    store: KeyStore, name: str, declared: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Store the secrets of an MCP server, and return its declaration without them, and where each is now."""
    values_key = mcp_values(declared)
    values, secrets = dict(declared.get(values_key, {})), {}
    for variable, value in values.items():
        if _is_secret(variable, value):
            key = mcp_key_name(name, variable)
            secrets[variable] = store.set(key, _clean(value))
            values[variable] = f"stored:{key}"
    return {**declared, values_key: values} if values else dict(declared), secrets


def _clean(value: str) -> str:
    """Return a secret as it is stored; that of a header may have a word before it, as in `Bearer …`."""
    return value if " " in value.strip() else clean_key(value)


def mcp_values(declared: Mapping[str, Any]) -> str:
    """Return the setting of an MCP server in which its secrets are: its headers, or its environment."""
    return "headers" if "url" in declared else "env"


def _is_secret(name: str, value: str) -> bool:
    if read_reference(value) is not None or not value:
        return False
    return is_secret_name(name) or is_secret_field(name) or begins_like_key(value)


def mcp_key_name(server: str, variable: str) -> str:
    """Return the name under which a secret of an MCP server is stored."""
    return f"mcp-{server}-{variable}"[:64]
