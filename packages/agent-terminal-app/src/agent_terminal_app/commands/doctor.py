"""`agent doctor`: look for what is wrong, and say what to do about it.

It looks and changes nothing. Each check answers for itself: one that fails, or does not come back in time,
is a line in the report and holds up no other. A line never has a key in it.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from agent_terminal_app.errors import Exit, SettingsError
from agent_terminal_app.opening import Opened, open_settings
from agent_terminal_app.paths import Paths
from agent_terminal_app.tables import is_terminal, one_line, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

PATIENCE = 10.0
"""How many seconds a check may take."""

CONFIGURATION = "configuration"
LITTLE_SPACE = 100 << 20
TOO_LITTLE_SPACE = 10 << 20

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


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool) -> int:
    """Look for what is wrong, and say what to do about it; nothing is changed."""
    findings = [finding for name, check in checks() for finding in bounded(name, check)]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_lines(line for finding in findings for line in report_lines(finding))
    return Exit.FAILURE if any(finding.status == "FAIL" for finding in findings) else Exit.OK


def report_lines(finding: Finding) -> Iterator[str]:
    """Yield a finding as people read it, with the remedy on a line of its own."""
    yield f"{finding.status:<4}  {finding.check}: {one_line(finding.detail)}"
    if finding.remedy:
        yield f"      {one_line(finding.remedy)}"


def bounded(name: str, check: Callable[[], Iterable[Finding]], patience: float = PATIENCE) -> list[Finding]:
    """Return what a check finds; that it failed, or did not come back in time, is a finding as well."""
    found: list[Finding] = []

    def look() -> None:
        try:
            found.extend(check())
        except SettingsError as error:
            found.append(_unreadable(name, error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the report has it
            problem = f"{type(error).__name__}: {error}"
            found.append(Finding(name, "FAIL", problem, "set right what the message names, then look again"))

    worker = threading.Thread(target=look, daemon=True)
    worker.start()
    worker.join(patience)
    if worker.is_alive():
        late = f"no answer within {patience:g} seconds"
        return [Finding(name, "FAIL", late, "a disk or server may hang: try again, then look at it")]
    return [replace(finding, check=finding.check or name) for finding in found]


def _unreadable(name: str, error: SettingsError) -> Finding:
    """Return what settings mean that cannot be read: a failure once, and that the rest could not be seen."""
    if name == CONFIGURATION:
        return Finding(name, "FAIL", str(error), error.hint or f"correct {error.path}")
    return Finding(name, "WARN", "not looked at", "first correct the configuration")


def checks() -> list[tuple[str, Callable[[], Iterable[Finding]]]]:
    """Return all checks in the order of the report."""
    paths = Paths.of_this_user()
    return [
        ("versions", check_versions),
        (CONFIGURATION, check_configuration),
        ("agents", check_agents),
        ("keys", check_keys),
        ("plugins", check_plugins),
        ("sessions", partial(check_store, paths.database)),
        ("embedded model", check_weights),
        ("terminal", check_terminal),
        ("disk space", partial(check_space, paths.data)),
    ]


def check_versions() -> Iterator[Finding]:
    """Say which versions there are."""
    import platform

    from agent_terminal_app import __version__

    yield Finding("", "OK", f"agent {__version__}, Python {platform.python_version()}, {platform.platform()}")


def check_configuration() -> Iterator[Finding]:
    """See whether the settings can be read."""
    opened = open_settings()
    file = opened.paths.config_file
    yield Finding("", "OK", f"{file} is read" if file.is_file() else f"there is no {file}: defaults hold")
    for warning in opened.settings.warnings:
        yield Finding("", "WARN", warning, f"see {file}")


def check_agents() -> Iterator[Finding]:
    """See whether every agent can run."""
    from agent_terminal_app.commands.agents import find_problems

    problems = find_problems(open_settings())
    for problem in problems:
        yield Finding("", "FAIL", problem, "change the configuration (`agent config path` says where it is)")
    if not problems:
        yield Finding("", "OK", "all can run")


def check_keys() -> Iterator[Finding]:
    """See whether providers in use have a key: a stored one, or one in the environment or the settings."""
    from agent_core.plugin.discovery import find_installed
    from agent_terminal_app.wiring import application_config

    opened = open_settings()
    config = application_config(opened.settings)
    needed = {
        one.name: getattr(one.plugin, "key_variables", ()) for one in find_installed(kinds=["providers"])
    }
    in_use = sorted({str(model["provider"]) for model in config["models"].values()})
    for provider in in_use:
        if needed.get(provider):
            yield _key_finding(opened, provider, needed[provider], config["plugins"].get(provider, {}))
    if not any(needed.get(provider) for provider in in_use):
        yield Finding("", "OK", "no model in use needs one")


def _key_finding(
    opened: Opened, provider: str, variables: tuple[str, ...], settings: Mapping[str, Any]
) -> Finding:
    from agent_terminal_app.keys import KeyStore

    if settings.get("api_key"):
        return Finding("", "OK", f"{provider}: in the settings")
    if KeyStore(opened.paths).get(provider) is not None:
        return Finding("", "OK", f"{provider}: stored")
    if found := next((name for name in variables if os.environ.get(name, "").strip()), None):
        return Finding("", "OK", f"{provider}: in the environment, {found}")
    if settings.get("base_url"):
        return Finding("", "OK", f"{provider}: none, which a server of your own may allow")
    remedy = f"run `agent keys set {provider}`, or set {variables[0]}"
    return Finding("", "FAIL", f"{provider} is in use and has no key", remedy)


def check_plugins() -> Iterator[Finding]:
    """See whether every installed plugin can be loaded."""
    from agent_terminal_app.commands.plugins import installed_plugins

    plugins = installed_plugins()
    for one in plugins:
        if one["problem"]:
            remedy = f"update or remove it: pip install -U {one['distribution']}"
            yield Finding("", "WARN", f"{one['name']} cannot be loaded: {one['problem']}", remedy)
    if not any(one["problem"] for one in plugins):
        yield Finding("", "OK", f"{len(plugins)} can be loaded")


def check_store(database: Path) -> Iterator[Finding]:
    """See whether the sessions are whole; a database that is not there yet is not made."""
    if not database.exists():
        yield Finding("", "OK", f"none yet; they will be in {database}")
        return
    if not os.access(database, os.R_OK | os.W_OK):
        yield Finding("", "FAIL", f"{database} cannot be read and written", f"run `chmod u+rw {database}`")
        return
    from agent_app import StoreError, open_store

    remedy = f"copy {database} before anything else, then restore it from a backup"
    try:
        store = open_store(f"sqlite:///{database}")
    except StoreError as error:
        yield Finding("", "FAIL", str(error), remedy)
        return
    try:
        report = store.check()
    finally:
        store.close()
    yield from (Finding("", "FAIL", problem, remedy) for problem in report.problems)
    if not report.problems:
        yield Finding("", "OK", f"{database} is whole")


def check_weights() -> Iterator[Finding]:
    """See whether the embedded model has its weights."""
    from agent_core import ConfigError
    from local_llama_provider.weights import find_weights

    settings = open_settings().settings.values.get("plugins", {}).get("local_llama", {})
    try:
        yield Finding("", "OK", str(find_weights(settings)))
    except ConfigError as error:
        yield Finding("", "WARN", str(error), "run `agent models pull`, or use another model")


def check_terminal() -> Iterator[Finding]:
    """Say what the terminal can do, as far as that changes what is shown."""
    import shutil

    if not is_terminal(sys.stdout):
        yield Finding("", "OK", "stdout is no terminal: no colours, nothing that moves")
        return
    size = shutil.get_terminal_size()
    kind = os.environ.get("TERM", "")
    colours = "no colours, by NO_COLOR" if os.environ.get("NO_COLOR") else "colours"
    yield Finding("", "OK", f"{kind or 'of no name'}, {size.columns}x{size.lines}, {colours}")
    if kind in ("", "dumb"):
        yield Finding("", "WARN", "it cannot move its cursor", "use `agent chat --plain`")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("", "WARN", f"it is set to {encoding}", "set LANG to a UTF-8 locale, such as C.UTF-8")


def check_space(folder: Path) -> Iterator[Finding]:
    """See whether there is room for sessions."""
    import shutil

    place = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(place).free
    remedy = f"make room on the disk of {place}"
    told = f"{free >> 20} MB free for {folder}"
    if not os.access(place, os.W_OK):
        yield Finding(
            "", "FAIL", f"{place} cannot be written", "change its permissions, or set XDG_DATA_HOME"
        )
    elif free < TOO_LITTLE_SPACE:
        yield Finding("", "FAIL", told, remedy)
    elif free < LITTLE_SPACE:
        yield Finding("", "WARN", told, remedy)
    else:
        yield Finding("", "OK", told)
