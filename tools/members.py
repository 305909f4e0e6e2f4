"""The members of this workspace: which ones a distribution needs, and how they are installed from the tree.

    pip install $(python tools/members.py keelwork-terminal)     # into an environment of your own
    .venv/bin/python tools/members.py --editable keelwork[mcp]   # what the Makefile does

pip looks for `keelwork-…` in its registry, and does not know the folders next to the one that it is given. So
it is given all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_NAME = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")


def members() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return the folder and the declaration of every member, by the name of its distribution."""
    files = sorted([*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")])
    read = [(file.parent, tomllib.loads(file.read_text(encoding="utf-8"))["project"]) for file in files]
    return {project["name"]: (folder, project) for folder, project in read}


def needed(wanted: list[str]) -> list[Path]:
    """Return the folders of distributions, each NAME or NAME[EXTRA,…], and of all members that these need.

    Raises:
        SystemExit: If there is no such distribution.
    """
    known, found = members(), dict[str, Path]()
    waiting, seen = list(wanted), set[str]()
    while waiting:
        text = waiting.pop()
        match = _NAME.match(text)
        assert match is not None, text
        name, extras = match[1], [one.strip() for one in (match[2] or "").split(",") if one.strip()]
        if name not in known:
            if text in wanted:
                raise SystemExit(f"there is no distribution {name!r} here: {', '.join(known)}")
            continue
        folder, project = known[name]
        found[name] = folder
        more = project.get("optional-dependencies", {})
        for one in [*project.get("dependencies", []), *(text for extra in extras for text in more[extra])]:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return sorted(found.values())


def install_editable(folders: list[Path]) -> None:
    """Install members so that an edit is seen at once; the build backend is here already.

    One process builds all, and one pip installs them: pip itself would start three processes for each.
    """
    import hatchling.build  # only the environment of the workspace has it

    with tempfile.TemporaryDirectory() as wheels:
        for folder in folders:
            os.chdir(folder)
            hatchling.build.build_editable(wheels)
        os.chdir(ROOT)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-compile", "--no-deps", "--no-index"]
        made = sorted(map(str, Path(wheels).iterdir()))
        subprocess.run([*pip, "--force-reinstall", *made], check=True)


def main() -> None:
    """Print the folders, or install them."""
    parser = argparse.ArgumentParser(description="Members of the workspace that distributions need.")
    parser.add_argument("names", nargs="*", metavar="NAME[EXTRA,…]", help="without a name: all")
    parser.add_argument("--editable", action="store_true", help="install them into this environment")
    asked = parser.parse_args()
    folders = needed(asked.names or list(members()))
    if asked.editable:
        install_editable(folders)
    else:
        print("\n".join(f"./{folder.relative_to(ROOT)}" for folder in folders))


if __name__ == "__main__":
    main()
