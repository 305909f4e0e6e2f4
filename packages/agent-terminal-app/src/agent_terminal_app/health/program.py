"""The program itself: versions, plugins, the embedded model, and the terminal that it talks to."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from agent_terminal_app.health.finding import Finding
from agent_terminal_app.opening import open_quietly
from agent_terminal_app.tables import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NARROW = 60


def check_versions() -> Iterator[Finding]:
    """Say which versions there are."""
    import platform

    from agent_terminal_app import __version__

    yield Finding("", "OK", f"agent {__version__}, Python {platform.python_version()}, {platform.platform()}")


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


def check_weights() -> Iterator[Finding]:
    """See whether the embedded model has its weights."""
    from agent_core import ConfigError
    from local_llama_provider.weights import find_weights

    settings = open_quietly().settings.values.get("plugins", {}).get("local_llama", {})
    try:
        yield Finding("", "OK", str(find_weights(settings)))
    except ConfigError as error:
        yield Finding("", "WARN", str(error), "run `agent models pull`, or use another model")


def check_keyboard(path: Path) -> Iterator[Finding]:
    """See whether the keys of the chat can be read, and say which are in force."""
    from agent_terminal_app.chat.keymap import load_keys
    from agent_terminal_app.errors import SettingsError

    try:
        keymap = load_keys(path)
    except SettingsError as error:
        problem = str(error).removesuffix(f"; {error.hint}")
        yield Finding("", "FAIL", problem, error.hint or f"correct {path}, or remove it")
        return
    told = f"{path} changes {', '.join(keymap.changes()) or 'nothing'}" if path.exists() else f"no {path}"
    yield Finding("", "OK", f"{told}; {'; '.join(f'{name} {keymap.shown(name)}' for name in keymap.keys)}")


def check_terminal(*, of_chat: bool = False, color: bool = True) -> Iterator[Finding]:
    """Say what the terminal can do, as far as that changes what is shown.

    Args:
        of_chat: Whether a chat goes on in it, which has what is printed shown above its prompt.
        color: Whether that chat shows colours.
    """
    import shutil

    stdout = sys.__stdout__ if of_chat else sys.stdout
    if stdout is None or not is_terminal(stdout):
        yield Finding("", "OK", "stdout is no terminal: no colours, nothing that moves")
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
        yield Finding("", "WARN", f"it is {size.columns} columns wide", "make it wider, tables will be cut")
    encoding = (stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("", "WARN", f"it is set to {encoding}", "set LANG to a UTF-8 locale, such as C.UTF-8")
