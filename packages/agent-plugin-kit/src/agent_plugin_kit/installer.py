"""Whatever installs packages into the environment of this program: pip, or uv where there is no pip.

Environments that uv makes have no pip, and a system's Python may have neither. `fetch` works in all of
them, since it needs only some pip for a moment; changing the environment itself needs one of the two.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NEITHER = (
    "this environment has no pip, and uv is not on the PATH: install one of them, for example with "
    "`python -m ensurepip`"
)


class InstallError(AgentError):
    """Packages could not be installed, fetched or removed; the installer's own message was printed before."""


@dataclass(frozen=True, slots=True)
class Installer:
    """A program that installs packages.

    Attributes:
        name: pip or uv.
        command: The words before `install` and `uninstall`.
        options: The words behind them that choose this environment.
    """

    name: str
    command: tuple[str, ...]
    options: tuple[str, ...] = ()

    def install(self, *arguments: str) -> None:
        """Install packages.

        Raises:
            InstallError: If that fails.
        """
        self._run("install", *self.options, *arguments)

    def uninstall(self, *distributions: str) -> None:
        """Remove packages, without asking.

        Raises:
            InstallError: If that fails.
        """
        yes = ("--yes",) if self.name == "pip" else ()
        self._run("uninstall", *self.options, *yes, *distributions)

    def _run(self, *words: str) -> None:
        command = [*self.command, *words]
        done = subprocess.run(command, check=False)  # noqa: S603 - a list of words, no shell
        if done.returncode:
            what = words[-1]
            raise InstallError(f"{self.name} could not {words[0]} {what}; its own message is above")


def find_installer() -> Installer:
    """Return what changes this environment.

    Raises:
        InstallError: If there is neither pip nor uv.
    """
    if find_spec("pip") is not None:
        return Installer("pip", (sys.executable, "-P", "-m", "pip"))  # -P: no pip of the current folder
    uv = shutil.which("uv")
    if uv is None:
        raise InstallError(_NEITHER)
    return Installer("uv", (uv, "pip"), ("--python", sys.executable))


@contextmanager
def fetch(requirement: str) -> Iterator[Path]:
    """Fetch a package without its dependencies, and lend the folder in which its modules are.

    Raises:
        InstallError: If it cannot be fetched.
    """
    with TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        with _any_installer(Path(folder) / "pip") as installer:
            installer.install("--no-deps", "--target", str(unpacked), requirement)
        yield unpacked


@contextmanager
def _any_installer(folder: Path) -> Iterator[Installer]:
    """Return this environment's installer, or a pip in an environment of its own where there is none."""
    try:
        found = find_installer()
    except InstallError:
        made: Sequence[str] = [sys.executable, "-P", "-m", "venv", str(folder)]
        if subprocess.run(made, check=False, capture_output=True).returncode:  # noqa: S603 - our own words
            raise
        found = Installer("pip", (str(folder / "bin" / "python"), "-m", "pip"))
    yield found
