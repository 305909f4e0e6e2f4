"""A new plugin package: code, tests, conformance checks, CI and documentation that are green at once."""

from __future__ import annotations

import json
import keyword
import re
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agent_core.plugin.discovery import ENTRY_POINT_GROUPS
from agent_terminal_app import __version__
from agent_terminal_app.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST = 40
_FILES = {
    "pyproject.toml": "common/pyproject.toml",
    "README.md": "common/README.md",
    ".gitignore": "common/gitignore",
    ".github/workflows/test.yml": "common/workflow.yml",
    "docs/index.md": "@KIND@/docs.md",
    "src/@PACKAGE@/__init__.py": "common/init.py",
    "src/@PACKAGE@/plugin.py": "@KIND@/plugin.py",
    "tests/test_plugin.py": "@KIND@/test_plugin.py",
    "tests/test_conformance.py": "@KIND@/test_conformance.py",
}
_SUMMARIES = {
    "provider": "Reaches the models of a server with an API of its own.",
    "extension": "Counts the answers of a session.",
    "feature": "Adds a closing line to every answer.",
    "tool": "Counts the words of a text.",
    "application": "Finds and deletes sessions without messages.",
}
_TESTING = "keelwork-testing"
_NEEDS = {
    "provider": ("keelwork-core", "keelwork-provider-kit"),
    "application": ("keelwork-app", "keelwork-core"),
}


def write_package(kind: str, name: str, parent: Path) -> list[Path]:
    """Write a package of that name below a folder, and return its files.

    Raises:
        CommandError: If the name cannot be used, or something of that name is there already.
    """
    _check_name(name)
    folder = parent / name
    if folder.exists():
        raise CommandError(f"{folder} is there already", hint="choose another name, or another --folder")
    words = _words(kind, name)
    written = []
    for target, source in _FILES.items():
        path = folder / _filled(target, words)
        path.parent.mkdir(parents=True, exist_ok=True)
        template = files("agent_terminal_app") / "plugin_templates" / f"{_filled(source, words)}.txt"
        path.write_text(_filled(template.read_text(encoding="utf-8"), words), encoding="utf-8")
        written.append(path)
    typed = folder / "src" / words["PACKAGE"] / "py.typed"
    typed.touch()
    return [*written, typed]


def next_steps(folder: Path) -> list[str]:
    """Return the lines that install a new package with its tests, and run these, to be pasted one by one.

    No registry has our packages yet. Where this program was installed from a clone, pip is given the folder
    of the one that tests need and that users' installations leave out.
    """
    python = Path(sys.executable)
    found = shutil.which("pip")
    here = found is not None and Path(found).parent == python.parent
    prefix = "" if here else f"{shlex.quote(str(python))} -m "
    testing = "" if _is_installed(_TESTING) else _folder_in_clone("agent-testing")
    steps = [
        f"cd {shlex.quote(str(folder))}",
        f"{prefix}pip install -e '.[test]' {testing}".rstrip(),
        f"{prefix}pytest",
    ]
    if not testing and not _is_installed(_TESTING):
        steps[1] += f"   # and {_TESTING}: the folder packages/agent-testing of a clone"
    return steps


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _folder_in_clone(name: str) -> str:
    """Return a folder next to the one that the core was installed from, quoted; empty if there is none."""
    try:
        origin = json.loads(distribution("keelwork-core").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(origin.get("url", "")))
    folder = Path(unquote(url.path)).parent / name
    return shlex.quote(str(folder)) if url.scheme == "file" and folder.is_dir() else ""


def _check_name(name: str) -> None:
    hint = "use small letters, digits and single dashes, for example word-count"
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise CommandError(f"{name!r:.80} cannot be the name of a package", code=Exit.USAGE, hint=hint)
    module = name.replace("-", "_")
    if module in sys.stdlib_module_names or keyword.iskeyword(module):
        raise CommandError(f"{name!r} is a name of Python's own", code=Exit.USAGE, hint="choose another one")
    if module.startswith(("keelwork", "agent_")):
        raise CommandError(f"{name!r} looks like a package of Keelwork itself", code=Exit.USAGE, hint=hint)


def _words(kind: str, name: str) -> Mapping[str, str]:
    """Return what stands for each placeholder of the templates."""
    package = name.replace("-", "_")
    needs = _NEEDS.get(kind, ("keelwork-core",))
    return {
        "NAME": name,
        "PACKAGE": package,
        "PLUGIN": package,
        "CLASS": "".join(part.capitalize() for part in package.split("_")),
        "VARIABLE": package.upper(),
        "KIND": kind,
        "GROUP": ENTRY_POINT_GROUPS[f"{kind}s"],
        "SUMMARY": _SUMMARIES[kind],
        "DEPENDENCIES": ", ".join(f'"{one}{_compatible()}"' for one in needs),
        "TEST_DEPENDENCIES": f'"{_TESTING}{_compatible()}", "pytest>=8"',
    }


def _compatible() -> str:
    """Return the versions that a plugin made now works with: up to the next one that may break it."""
    major, minor, *_ = __version__.split(".")
    return f">={major}.{minor},<{major}.{int(minor) + 1}" if major == "0" else f">={major},<{int(major) + 1}"


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda found: words[found[1]], text)
