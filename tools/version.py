"""Show or change the version of all distributions: `make version`, `make version TO=0.2.0`.

The version is in the file `VERSION`. Metadata that a build computes would need that file, or code next to
it, in every source distribution; so each member's `pyproject.toml` repeats the version as plain text, for
itself and for the siblings that it asks for, and so does the source where a program shows it. This command
writes all of them, and `tests/test_distributions.py` fails where one differs.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from packaging.version import InvalidVersion, Version


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help="another workspace")
    parser.add_argument("new", nargs="?", type=valid, help="the new version, such as 0.2.0 or 1.0.0rc1")
    arguments = parser.parse_args()
    if arguments.new is not None:
        changed = change(arguments.root, arguments.new)
        print(f"{arguments.new} now stands in {changed} files; `make setup` installs the members with it")
    else:
        print(current(arguments.root))


def valid(text: str) -> str:
    """Return a version that is written as every tool writes it."""
    try:
        normal: str | None = str(Version(text))
    except InvalidVersion:
        normal = None
    if text != normal:
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as 0.2.0 or 1.0.0rc1")
    return text


def current(root: Path) -> str:
    """Return the version of the workspace."""
    return (root / "VERSION").read_text(encoding="utf-8").strip()


def change(root: Path, new: str) -> int:
    """Write the new version wherever the old one stands, and return the number of files."""
    old = re.escape(current(root))
    in_projects = [
        re.compile(rf'(?m)^(version = "){old}(")$'),
        re.compile(rf'("keelwork[a-z0-9-]*(?:\[[a-z0-9,]+\])?==){old}(")'),
    ]
    in_source = [re.compile(rf'(\b(?:version|VERSION|__version__) ?= ?"){old}(")')]
    changed = 0
    for member in [*root.glob("packages/*"), *root.glob("plugins/*")]:
        for file in member.glob("pyproject.toml"):
            changed += rewrite(file, in_projects, new)
        for file in member.glob("src/**/*.py"):
            changed += rewrite(file, in_source, new)
    (root / "VERSION").write_text(f"{new}\n", encoding="utf-8")
    return changed + 1


def rewrite(file: Path, patterns: list[re.Pattern[str]], new: str) -> bool:
    """Put the new version between what each pattern finds, and say whether that changed the file."""
    before = after = file.read_text(encoding="utf-8")
    for pattern in patterns:
        after = pattern.sub(rf"\g<1>{new}\g<2>", after)
    if after != before:
        file.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    main()
