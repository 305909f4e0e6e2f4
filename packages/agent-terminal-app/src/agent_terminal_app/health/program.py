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
    if size.columns < _NARROW:
        yield Finding("", "WARN", f"it is {size.columns} columns wide", "make it wider, tables will be cut")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Finding("", "WARN", f"it is set to {encoding}", "set LANG to a UTF-8 locale, such as C.UTF-8")
