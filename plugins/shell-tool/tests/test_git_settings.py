"""Git runs what the settings of a repository name: no family of it is offered, only the very line.

Each repository here has a trap in one of its settings. The line is run once, to show that git does run it:
that is why a grant for every family that is ever offered must not allow the line.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from agent_runtime.permissions import CallPattern, Permissions
from agent_runtime.phases import CallView
from shell_tool import ShellTool
from shell_tool.syntax.line import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Shell

ATTRIBUTES = "*.txt filter=trap diff=trap\n"
UPLOAD = "sh ./trap;"


@dataclass(frozen=True)
class Trap:
    """A setting that names a program, and a line for which git runs it.

    Attributes:
        settings: The settings of the repository, as arguments of `git config`.
        files: What the repository has besides.
        before: Further lines that make it.
    """

    line: str
    settings: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()


TRAPS = {
    "the monitor of files": Trap("git status .", ("core.fsmonitor ./trap",)),
    "the monitor of files, added": Trap("git add a.txt", ("core.fsmonitor ./trap",)),
    "the monitor of files, listed": Trap("git ls-files -m", ("core.fsmonitor ./trap",)),
    "the monitor of files, described": Trap("git describe --always --dirty", ("core.fsmonitor ./trap",)),
    "an editor": Trap("git add -e", ("core.editor ./trap",)),
    "an editor of messages": Trap("git commit --allow-empty", ("core.editor ./trap",)),
    "a hook": Trap("git add a.txt", ("core.hooksPath ./hooks",), (("hooks/post-index-change", ""),)),
    "a hook of commits": Trap(
        "git commit --allow-empty -m x", ("core.hooksPath ./hooks",), (("hooks/pre-commit", ""),)
    ),
    "a program for differences": Trap("git diff", ("diff.external ./trap",)),
    "a text of differences": Trap(
        "git diff", ("diff.trap.textconv ./trap",), ((".gitattributes", ATTRIBUTES),)
    ),
    "a filter": Trap("git add .", ("filter.trap.clean ./trap",), ((".gitattributes", ATTRIBUTES),)),
    "a filter, for the state": Trap(
        "git status", ("filter.trap.clean ./trap",), ((".gitattributes", ATTRIBUTES),)
    ),
    "an alias": Trap("git x", ("alias.x !./trap",)),
    "a command for ssh": Trap("git ls-remote ssh://nowhere/x", ("core.sshCommand ./trap",)),
    "a helper of passwords": Trap(
        "git credential fill <<< url=https://nowhere/x", ("credential.helper !./trap",)
    ),
    "a program for signatures": Trap("git commit --allow-empty -S -m x", ("gpg.program ./trap",)),
    "settings from another file": Trap(
        "git status", ("include.path ../extra",), (("extra", "[core]\n\tfsmonitor = ./trap\n"),)
    ),
    "a remote": Trap("git ls-remote origin", ("remote.origin.url .", f"remote.origin.uploadpack {UPLOAD}")),
    "objects that are fetched later": Trap(
        "git cat-file -p :gone.txt",
        (
            *("core.repositoryFormatVersion 1", "extensions.partialClone origin", "remote.origin.url ."),
            *("remote.origin.promisor true", f"remote.origin.uploadpack {UPLOAD}"),
        ),
        before=("git update-index --add --cacheinfo 100644,$(printf %040d 7),gone.txt",),
    ),
    "a variable": Trap("GIT_EXTERNAL_DIFF=./trap git diff"),
    "a folder that only looks like a repository": Trap(
        "git -C looks status",
        files=(
            ("looks/HEAD", "ref: refs/heads/main\n"),
            (
                "looks/config",
                "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = ./trap\n",
            ),
        ),
        before=("mkdir -p looks/objects looks/refs",),
    ),
}


def set_up(shell: Shell, trap: Trap) -> Path:
    """Make the repository, with a file that was changed; return the file that the trap writes."""
    folder = shell.workspace
    sprung = folder / "sprung"
    commands = ["git init -q", "git config user.email a@b", "git config user.name a", "echo a > a.txt"]
    commands += ["git add a.txt", "git commit -qm a", "echo b > a.txt"]
    text = f'#!/bin/sh\ntouch "{sprung}"\nexit 1\n'
    for name, content in (("trap", text), *trap.files):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content or text)
        path.chmod(0o755)
    for setting in trap.settings:
        name, _, value = setting.partition(" ")
        commands.append(f"git config {name} '{value}'")
    for command in (*commands, *trap.before):
        subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
    sprung.unlink(missing_ok=True)
    return sprung


@pytest.fixture(autouse=True)
def without_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_no_family_lets_git_run_what_a_repository_names(shell: Shell, trap: Trap) -> None:
    sprung = set_up(shell, trap)
    call = CallView(id="", name="shell", arguments={"command": trap.line}, raw={}, tool=ShellTool())
    granted: dict[str, Any] = {
        "allow": [f"shell({family}{rest})" for family in FAMILIES for rest in ("", " *")]
    }

    assert Permissions.from_section(granted).decide(call).effect == "ask"
    offered = ShellTool().permission_suggestions("shell", {"command": trap.line})
    subjects = [CallPattern.about("shell", glob).subject for glob in offered]
    assert subjects and all(subject is not None and subject.is_literal for subject in subjects)
    shell(trap.line)
    assert sprung.exists()
