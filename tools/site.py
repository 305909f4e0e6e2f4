"""Build the site: the pages of docs/, the pages of the root, an API reference from the docstrings, llms.txt.

    make docs            # into site/, strictly: a broken link ends it

The pages stay readable where they are, so links that leave docs/ are rewritten in a copy of it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".site"
SITE = ROOT / "site"
ROOT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "gallery": "Gallery",
    "reference": "Reference",
    "explanation": "Explanation",
    "project": "Project",
    "decisions": "Decisions",
}
# The README is the first page of the site, so the list of sections is a page of its own.
_MOVED = {"README.md": "index.md", "docs/index.md": "contents.md"}
PACKAGES = {
    "agent_runtime": "Agents and the loop that runs them",
    "agent_core": "Sessions, plugins, one request from start to end",
    "agent_app": "Stored sessions, approvals, events",
    "agent_server": "Sessions and agents over HTTP",
    "agent_client": "A client of the server",
    "agent_durable": "Runs that survive a crash, on one worker or many",
    "agent_plugin_kit": "What tools and features share",
    "agent_provider_kit": "What providers share",
    "agent_testing": "For tests of plugins",
    "agent_testing.conformance": "Checks of plugins against their contract",
    "agent_core.testing": "Providers that need no model",
    "agent_app.testing": "For tests of application plugins and stores",
}
_LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CONFIG = """\
[project]
site_name = "Keelwork"
site_description = "An open agent platform for Python"
docs_dir = "docs"
site_dir = "built"
nav = {nav}

[project.theme]
font = false  # nobody is asked for letters
features = ["navigation.indexes", "navigation.sections", "navigation.top", "search.highlight"]

[project.plugins.mkdocstrings.handlers.python]
paths = [{paths}]

[project.plugins.mkdocstrings.handlers.python.options]
docstring_style = "google"
heading_level = 2
merge_init_into_class = true
show_root_heading = true
show_root_full_path = false
show_source = false
show_signature_annotations = true
separate_signature = true
filters = ["!^_"]
"""


def main() -> int:
    """Prepare the pages, build the site and write llms.txt; return the exit code."""
    shutil.rmtree(WORK, ignore_errors=True)
    pages = copied_pages()
    write_api()
    sources = sorted({*ROOT.glob("packages/*/src"), *ROOT.glob("plugins/*/src")})
    paths = ", ".join(f'"{source}"' for source in sources)
    config = _CONFIG.format(paths=paths, nav=navigation(pages))
    (WORK / "zensical.toml").write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
    if done.returncode:
        print(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr), file=sys.stderr)
        return 1
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(WORK / "built", SITE)
    write_llms(pages)
    print(f"site: {len(list(SITE.rglob('*.html')))} pages; open site/index.html")
    return 0


def copied_pages() -> list[Path]:
    """Copy every page, with its links as they are on the site; return where the pages are, below docs."""
    pages = []
    for source in [*sorted((ROOT / "docs").rglob("*")), *(ROOT / name for name in ROOT_PAGES)]:
        if not source.is_file() or source.suffix == ".py":
            continue
        target = WORK / "docs" / site_path(source.relative_to(ROOT))
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(rewritten(source), encoding="utf-8")
            pages.append(target.relative_to(WORK / "docs"))
        else:
            shutil.copy(source, target)
    return pages


def site_path(path: Path) -> Path:
    """Return where a file of the tree is on the site."""
    if path.as_posix() in _MOVED:
        return Path(_MOVED[path.as_posix()])
    return path.relative_to("docs") if path.parts[0] == "docs" else Path("project") / path.name.lower()


def navigation(pages: list[Path]) -> str:
    """Return all sections with their pages, as TOML."""
    api = ", ".join(f'"reference/api/{name}.md"' for name in ("index", *PACKAGES))
    lines = ['"index.md"', '"contents.md"']
    for section, title in SECTIONS.items():
        listed = [f'"{page.as_posix()}"' for page in pages_of(section, pages)]
        listed += [f"{{ API = [{api}] }}"] if section == "reference" else []
        lines.append(f'{{ "{title}" = [{", ".join(listed)}] }}')
    return "[\n  " + ",\n  ".join(lines) + ",\n]"


def pages_of(section: str, pages: list[Path]) -> list[Path]:
    """Return the pages of a section in the order in which its index lists them."""
    index = WORK / "docs" / section / "index.md"
    text = index.read_text(encoding="utf-8") if index.exists() else ""
    order = ["index.md", *(found[2] for found in _LINK.finditer(text))]
    own = [page for page in pages if page.parts[0] == section]
    return sorted(own, key=lambda page: order.index(page.name) if page.name in order else len(order))


def rewritten(source: Path) -> str:
    """Return a page whose links lead to pages of the site."""
    text = source.read_text(encoding="utf-8")
    here = site_path(source.relative_to(ROOT)).parent

    def link(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = Path(os.path.normpath(source.parent / target)).relative_to(ROOT)
        if path.parts[0] != "docs" and path.as_posix() not in ROOT_PAGES:
            return found[0].partition("](")[0].removeprefix("[")  # not a page: its name is enough
        return f"{found[1]}{os.path.relpath(site_path(path), here)}{found[3]}"

    pieces, at = [], 0
    for block in _CODE.finditer(text):  # code is left as it is
        pieces += [_LINK.sub(link, text[at : block.start()]), block[0]]
        at = block.end()
    return "".join([*pieces, _LINK.sub(link, text[at:])])


def write_api() -> None:
    """Write a page for every public package, with all names that it lists."""
    folder = WORK / "docs" / "reference" / "api"
    folder.mkdir(parents=True)
    lines = ["# API\n", "Every public name, from its docstring.\n"]
    for package, about in PACKAGES.items():
        module = importlib.import_module(package)
        body = "\n\n".join(f"::: {home(package, name)}" for name in module.__all__)
        page = f"# {package}\n\n{about}.\n\n{body}\n"
        (folder / f"{package}.md").write_text(page, encoding="utf-8")
        lines.append(f"- [`{package}`]({package}.md): {about[0].lower()}{about[1:]}")
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def home(package: str, name: str) -> str:
    """Return where a public name is defined; a constant or an alias of types is found by its package."""
    value = getattr(importlib.import_module(package), name)
    if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("agent_"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{package}.{name}"


def write_llms(pages: list[Path]) -> None:
    """Write llms.txt, a list of pages for models that read the site, and all of them in one file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [about] = re.findall(r"^Keelwork builds agents.*?(?=\n\n)", readme, re.MULTILINE | re.DOTALL)
    lines = ["# Keelwork", "", f"> {' '.join(about.split())}", ""]
    whole = []
    for section, name in SECTIONS.items():
        lines += [f"## {name}", ""]
        for page in pages_of(section, pages):
            text = (WORK / "docs" / page).read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ")
            address = page.parent if page.name == "index.md" else page.with_suffix("")
            lines.append(f"- [{title}]({address.as_posix()}/)")
            whole.append(text)
        lines.append("")
    (SITE / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (SITE / "llms-full.txt").write_text("\n\n".join(whole), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
