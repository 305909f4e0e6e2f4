"""Say whether a release can be made: `make release-check`.

It looks at everything that a person forgets, and changes nothing. What it needs for the wheels and the site
takes some minutes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
_URLS = ("Homepage", "Documentation", "Source", "Changelog", "Issues")


def main() -> int:
    """Make every check and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the wheels and the site")
    asked = parser.parse_args()
    checks: list[Callable[[], Iterator[str]]] = [tree, tag, changelog, addresses, index]
    checks += [] if asked.quick else [site, wheels]
    failed = 0
    for check in checks:
        problems = list(check())
        failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '}  {check.__doc__}")
        for problem in problems:
            print(f"        {problem}")
    if not failed:
        print(f"\n{VERSION} can be released: tag it, `make wheels`, upload, push the tag.")
    return 1 if failed else 0


def tree() -> Iterator[str]:
    """Nothing is uncommitted."""
    if said := git("status", "--porcelain"):
        yield f"{len(said.splitlines())} files differ from the last commit"


def tag() -> Iterator[str]:
    """The version has no tag yet."""
    if git("tag", "--list", f"v{VERSION}"):
        yield f"v{VERSION} is there already: run `make version TO=…`"


def changelog() -> Iterator[str]:
    """The change log has the version, and no fragment is left."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)$", text, re.MULTILINE):
        yield f"CHANGELOG.md has no `## {VERSION} (YYYY-MM-DD)`: run towncrier build --version {VERSION}"
    left = [file.name for file in (ROOT / "changelog.d").glob("*.md") if file.name != "README.md"]
    if left:
        yield f"{len(left)} fragments are left in changelog.d: run towncrier build"


def addresses() -> Iterator[str]:
    """Every distribution says where its home is."""
    files = [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    missing = [project["name"] for project in projects if not set(_URLS) <= project.get("urls", {}).keys()]
    if missing:
        yield f"{len(missing)} of {len(projects)} pyproject.toml lack addresses, {min(missing)} for example."
        yield f"Write a table [project.urls] with {', '.join(_URLS)} into each,"
        yield "once the code has a public place of its own (docs/decisions/0008-distribution-names.md)."


def index() -> Iterator[str]:
    """The shipped index of plugins says that they are published."""
    text = (ROOT / "packages/agent-terminal-app/src/agent_terminal_app/plugin_index.json").read_text()
    if '"registry": false' in text:
        yield 'plugin_index.json has "registry": false, so `agent plugins add` asks for a folder of wheels.'
        yield "Write true once the names keelwork… on the registry are ours, and take out of README.md,"
        yield "docs/how-to/first-run.md and docs/how-to/share-plugins.md that nothing is published."


def site() -> Iterator[str]:
    """The site builds."""
    yield from run(sys.executable, "tools/site.py")


def wheels() -> Iterator[str]:
    """The wheels install and work, with every Python that is here."""
    yield from run(sys.executable, "tools/wheels.py")


def git(*words: str) -> str:
    command = [shutil.which("git") or "git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def run(*command: str) -> Iterator[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        yield (done.stdout + done.stderr).strip()[-500:]


if __name__ == "__main__":
    sys.exit(main())
