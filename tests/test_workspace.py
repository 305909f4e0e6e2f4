"""The workspace keeps its promises: the lock, the members, the pages, the examples."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
MEMBERS = sorted([*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")])
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/README.md")])

each_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.parent.name)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def locked_entries() -> list[str]:
    """Give each requirement of the lock with its hashes on one line."""
    lines = LOCK.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def locked_versions() -> dict[str, str]:
    pins = (entry.split(" ")[0].split("==") for entry in locked_entries())
    return {canonicalize_name(name): version for name, version in pins}


def requirements_of(project: dict[str, Any]) -> list[Requirement]:
    extras = project.get("optional-dependencies", {}).values()
    texts = [*project.get("dependencies", []), *(text for extra in extras for text in extra)]
    return [Requirement(text) for text in texts]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_every_locked_package_has_one_version_and_hashes() -> None:
    entries = locked_entries()

    assert len(entries) > 10
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==[\w.!+]+ ", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_the_lock_names_no_address_and_no_path() -> None:
    for trace in ("://", "file:", "--index", "--extra-index", "--find-links", "--trusted-host", "-e ", " @ "):
        assert trace not in LOCK


def test_the_build_backend_is_locked() -> None:
    assert {"hatchling", "editables"} <= locked_versions().keys()


def test_the_lock_holds_what_the_dev_group_asks_for() -> None:
    locked = locked_versions()

    for text in read_toml(ROOT / "pyproject.toml")["dependency-groups"]["dev"]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{text} is not in the lock: run `make lock`"
        assert requirement.specifier.contains(locked[name]), text


@each_member
def test_the_lock_holds_what_a_member_asks_for(member: Path) -> None:
    locked = locked_versions()
    names = {read_toml(path)["project"]["name"] for path in MEMBERS}

    for requirement in requirements_of(read_toml(member)["project"]):
        name = canonicalize_name(requirement.name)
        fits = name in locked and requirement.specifier.contains(locked[name])
        assert fits or name in names, f"{requirement} is not in the lock: run `make lock`"


def test_uv_lock_is_not_tracked() -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    listing = subprocess.run(
        [git, "ls-files", "--", "uv.lock", "**/uv.lock"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("not a git clone")

    assert listing.stdout == ""


def test_there_is_a_member() -> None:
    assert ROOT / "packages/agent-core/pyproject.toml" in MEMBERS


@each_member
def test_a_member_starts_at_the_oldest_python_we_support(member: Path) -> None:
    supported = SpecifierSet(read_toml(member)["project"]["requires-python"])

    assert supported.contains("3.11")
    assert supported.contains("3.13")
    assert not supported.contains("3.10")


@each_member
def test_a_member_has_the_license_of_the_workspace(member: Path) -> None:
    assert read_toml(member)["project"]["license"] == "Apache-2.0"


@each_member
def test_a_member_ships_its_types_and_is_built_by_the_locked_backend(member: Path) -> None:
    build = read_toml(member)["build-system"]

    assert build["build-backend"] == "hatchling.build"
    typed = list(member.parent.glob("src/*/py.typed"))
    assert typed or not (member.parent / "src").exists()


def test_the_license_is_the_whole_text() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text


@each_page
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))

    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference", "explanation", "decisions"])
def test_every_page_is_listed_in_its_index(folder: str) -> None:
    index = ROOT / "docs" / folder / "index.md"

    listed = set(re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8")))
    assert {page.name for page in index.parent.glob("*.md")} - {"index.md"} <= listed


def test_change_notes_can_be_put_together() -> None:
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "0.0.0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert draft.returncode == 0, draft.stderr
    assert "## 0.0.0" in draft.stdout


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=str(number))
        for number, block in enumerate(python_blocks(ROOT / "README.md"), 1)
    ],
)
def test_an_example_in_the_readme_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    exec(compile(block, "README.md", "exec"), {"__name__": "example"})


def test_every_test_that_the_page_about_security_names_is_there() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/-]*test_\w+\.py)`", page))

    missing = [one for one in named if not _found(one)]

    assert len(named) > 15
    assert missing == []


def _found(name: str) -> bool:
    places = ("{}", "packages/{}", "plugins/{}", "packages/*/tests/{}", "plugins/*/tests/{}")
    return any(any(ROOT.glob(place.format(name))) for place in places)


CHAT_LOCK = (ROOT / "requirements-chat.lock").read_text(encoding="utf-8")


def test_the_lock_of_a_chat_is_a_part_of_the_whole_lock() -> None:
    whole, part = (text.replace("\\\n", " ").splitlines() for text in (LOCK, CHAT_LOCK))
    entries = [" ".join(line.split()) for line in part if line.strip() and not line.lstrip().startswith("#")]

    assert 30 < len(entries) < len(locked_entries()) / 2
    assert set(entries) <= {" ".join(line.split()) for line in whole}
    assert not {"pytest", "mypy", "ruff", "playwright"} & {entry.partition("==")[0] for entry in entries}


@pytest.mark.parametrize("name", ["keelwork[mcp,server]", "keelwork-terminal", "keelwork-core"])
def test_a_distribution_is_installed_with_all_members_that_it_needs(name: str) -> None:
    tool = [sys.executable, str(ROOT / "tools" / "members.py"), name]
    printed = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.split()
    named = {read_toml(ROOT / folder / "pyproject.toml")["project"]["name"] for folder in printed}

    needed = {
        requirement.name
        for folder in printed
        for requirement in map(
            Requirement, read_toml(ROOT / folder / "pyproject.toml")["project"]["dependencies"]
        )
        if requirement.name.startswith("keelwork")
    }
    assert needed <= named and name.partition("[")[0] in named
    assert ("keelwork-mcp-tools" in named) == ("mcp" in name)


def test_everything_that_a_chat_needs_is_in_its_lock() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "members.py"), "keelwork[mcp,server]"]
    printed = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.split()
    locked = {canonicalize_name(line.partition("==")[0]) for line in CHAT_LOCK.splitlines() if "==" in line}
    for folder in printed:
        for text in read_toml(ROOT / folder / "pyproject.toml")["project"]["dependencies"]:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            assert name.startswith("keelwork") or name in locked, f"{text} of {folder}: run `make lock`"


def pattern_texts(source: Path) -> list[str]:
    """Give the strings of a module, with 0 for what an f-string fills in."""

    def text(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(value)):
                return value
            case ast.Constant(value=bytes(data)):
                return data.decode("latin-1")
            case ast.JoinedStr(values=values):
                return "".join(map(text, values))
        return "0"

    tree = ast.parse(source.read_text(encoding="utf-8"))
    return [text(node) for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]


def test_no_expression_repeats_a_group_possessively() -> None:
    """Python before 3.11.5, which Debian 12 has, then loses its place in the text (gh-106052)."""
    possessive = re.compile(r"(?<![\\(])\)\s*(?:[*+?]|\{[0-9,]*\})\+|\(\?>")
    sources = [*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]

    found = [
        (source.relative_to(ROOT).as_posix(), text)
        for source in sources
        for text in pattern_texts(source)
        if possessive.search(text)
    ]

    assert len(sources) > 100
    assert found == []
