"""`agent sandbox`: what confines the programs that a model starts, and a way to try it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_app.defaults import sandbox_settings
from agent_plugin_kit.sandbox import NoSandbox, Sandbox, SandboxSettings, describe, explain
from agent_terminal_app.application import open_settings, own_files
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.output import print_lines, say
from agent_terminal_app.settings.rules import SANDBOXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_terminal_app.application import Opened


@click.group("sandbox")
def command() -> None:
    """Show and try what confines the programs that a model starts."""


@command.command("show")
def show_command() -> None:
    """Show the sandbox of programs in this folder."""
    settings = _settings(open_settings(), None, ())
    print_lines([describe(settings), *_lines(settings)])


@command.command("run", context_settings={"ignore_unknown_options": True})
@click.option("--mode", type=click.Choice(SANDBOXES), help="Another mode than that of the settings.")
@click.option("--host", "hosts", multiple=True, help="A host that it may reach; may be given several times.")
@click.argument("arguments", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(mode: str | None, hosts: Sequence[str], arguments: Sequence[str]) -> int:
    """Run COMMAND in the sandbox, with this folder as the workspace; write -- before it."""
    settings = _settings(open_settings(), mode, hosts)
    folder, box = Path.cwd(), Sandbox()
    try:
        if not box.confines(settings):
            say(f"agent: {describe(settings)}")
            return _run(arguments, dict(os.environ))
        confined = box.confine(arguments, settings, roots=[folder], folder=folder, env=os.environ)
        try:
            code = _run(confined.command, confined.env, confined.descriptors)
        finally:
            confined.started()
            confined.ended()
        if code:  # what it printed went straight to the terminal, so only hosts are known
            for line in explain(confined, ""):
                say(f"agent: {line}")
    except (NoSandbox, ValueError) as problem:
        raise CommandError(str(problem), code=Exit.USAGE) from problem
    finally:
        box.close()
    return code


def _run(arguments: Sequence[str], env: dict[str, str], descriptors: Sequence[int] = ()) -> int:
    try:
        with subprocess.Popen(arguments, env=env, pass_fds=descriptors) as process:  # noqa: S603 - it was typed
            code = process.wait()
    except OSError as error:
        raise CommandError(f"cannot run {arguments[0]}: {error.strerror}", code=Exit.USAGE) from error
    return 128 - code if code < 0 else code


def _settings(opened: Opened, mode: str | None, hosts: Sequence[str]) -> SandboxSettings:
    given = sandbox_settings(opened.settings.values.get("sandbox"))
    given |= {"sandbox": mode} if mode else {}
    given["sandbox_hosts"] = [*given.get("sandbox_hosts", ()), *hosts]
    own = [str(path) for path in own_files(opened.settings, opened.paths)]
    return SandboxSettings.read({**given, "protected_paths": own})


def _lines(settings: SandboxSettings) -> list[str]:
    if settings.mode == "off":
        return []
    listed = {
        "also written": [str(path) for path in settings.write],
        "shown after all": settings.show,
        "hosts": settings.hosts,
    }
    each = (
        f"{settings.memory_mb} MB of memory, {settings.open_files} open files, files of {settings.file_mb} MB"
    )
    return [
        *(f"  {name}: {', '.join(values) or 'none'}" for name, values in listed.items()),
        f"  for each process: {each}; {settings.processes} processes at once",
    ]
