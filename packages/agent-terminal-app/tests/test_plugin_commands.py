"""Index files, and what `agent plugins` refuses."""

from __future__ import annotations

import json
import sys
import threading
import tomllib
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_runtime.errors import PACKAGES
from agent_terminal_app import plugin_index
from agent_terminal_app.errors import CommandError
from agent_terminal_app.plugin_index import SHIPPED, fetch_wheel, find_listed, read_indexes, wheels_for
from agent_terminal_app.plugin_package import next_steps, write_package
from agent_terminal_app.program import run

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
ENTRY = {
    "name": "tea",
    "kind": "tool",
    "summary": "Brews\ttea\x1b[31m.",
    "distribution": "tea-tool",
    "version": "1.0",
    "author": "somebody",
}


def write_index(folder: Path, *entries: Any, **more: Any) -> str:
    path = folder / "index.json"
    path.write_text(json.dumps({"format": 1, "name": "Mine", "plugins": list(entries), **more}))
    return str(path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_the_shipped_index_lists_every_plugin_of_ours_and_nothing_else() -> None:
    declared = {
        (
            name,
            group.removeprefix("agent_platform.").removesuffix("s"),
            project["name"],
            project["description"],
        )
        for file in ROOT.glob("plugins/*/pyproject.toml")
        for project in [tomllib.loads(file.read_text(encoding="utf-8"))["project"]]
        for group, names in project["entry-points"].items()
        for name in names
    }

    listed = read_indexes([SHIPPED])

    assert {(one.name, one.kind, one.distribution, one.summary) for one in listed} == declared
    assert {one.name: one.distribution for one in listed} == PACKAGES
    assert {one.version for one in listed} == {(ROOT / "VERSION").read_text().strip()}


def test_an_index_is_read_from_an_address_and_its_texts_are_cleaned(tmp_path: Path, served: str) -> None:
    write_index(tmp_path, {**ENTRY, "wheel": "tea-1.0-py3-none-any.whl", "sha256": "0" * 64})

    [tea] = read_indexes([f"{served}/index.json"])

    assert "\x1b" not in tea.summary and tea.summary.startswith("Brews tea")
    assert tea.wheel == f"{served}/tea-1.0-py3-none-any.whl"
    assert tea.matches(["BREWS", "somebody"]) and not tea.matches(["coffee"])


def test_a_wheel_with_another_checksum_is_not_kept(tmp_path: Path, served: str) -> None:
    (tmp_path / "tea-1.0-py3-none-any.whl").write_bytes(b"not it")
    write_index(tmp_path, {**ENTRY, "wheel": "tea-1.0-py3-none-any.whl", "sha256": "0" * 64})
    kept = tmp_path / "kept"
    kept.mkdir()

    with pytest.raises(CommandError, match="is not the wheel that"):
        fetch_wheel(find_listed("tea", [f"{served}/index.json"]), kept)

    assert list(kept.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "it is not JSON"),
        ("[]", "it has no list of plugins"),
        ('{"plugins": []}', "its format is None"),
        ('{"format": 2, "plugins": []}', "its format is 2"),
        ('{"format": 1, "plugins": [3]}', "an entry must be a dict of texts"),
        (json.dumps({"format": 1, "plugins": [{**ENTRY, "author": ""}]}), "an entry has no author"),
        (json.dumps({"format": 1, "plugins": [{**ENTRY, "kind": "toy"}]}), "must be one of provider"),
        (json.dumps({"format": 1, "plugins": [{**ENTRY, "distribution": "-r x"}]}), "is not a distribution"),
        (json.dumps({"format": 1, "plugins": [{**ENTRY, "version": "1 --pre"}]}), "is not a distribution"),
        (json.dumps({"format": 1, "plugins": [{**ENTRY, "wheel": "x.whl"}]}), "has no sha256"),
    ],
)
def test_an_index_that_cannot_be_used_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "index.json"
    path.write_text(content)

    with pytest.raises(CommandError, match=problem):
        read_indexes([str(path)])


def test_an_index_must_come_over_a_line_that_nobody_can_change() -> None:
    for address in ("http://example.invalid/index.json", "ftp://example.invalid/x", "file:///etc/passwd"):
        with pytest.raises(CommandError, match="must begin with https"):
            read_indexes([address])


def test_an_index_that_does_not_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write_index(tmp_path, ENTRY)
    monkeypatch.setattr(plugin_index, "_LARGEST_INDEX", 10)

    with pytest.raises(CommandError, match="it has more than"):
        read_indexes([place])


def test_a_name_that_two_indexes_use_for_different_packages_is_not_guessed(tmp_path: Path) -> None:
    place = write_index(tmp_path, ENTRY, {**ENTRY, "distribution": "tea-of-another"})

    with pytest.raises(CommandError, match=r"'tea' may be tea-tool .* and tea-of-another"):
        find_listed("tea", [place])

    assert find_listed("tea-of-another", [place]).distribution == "tea-of-another"


def test_what_is_not_published_is_not_looked_for_in_a_registry(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_terminal_app.commands.plugins.installed_plugins", list)

    assert run(["plugins", "add", "mcp_tools", "--yes"]) == 1
    assert "keelwork-mcp-tools is not in a package registry yet" in capsys.readouterr().err


# From a folder of wheels.


def write_wheel(folder: Path, name: str, *needs: str, tags: str = "py3-none-any") -> Path:
    """Write a wheel that has nothing but its metadata."""
    file = folder / f"{name.replace('-', '_')}-1.0-{tags}.whl"
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", "Provides-Extra: hot"]
    with zipfile.ZipFile(file, "w") as archive:
        text = "\n".join([*lines, *(f"Requires-Dist: {one}" for one in needs), ""])
        archive.writestr(f"{name.replace('-', '_')}-1.0.dist-info/METADATA", text)
    return file


def test_a_plugin_comes_with_those_wheels_of_a_folder_that_are_not_installed(tmp_path: Path) -> None:
    tool = write_wheel(
        tmp_path,
        "tea-tool",
        "keelwork-tea[hot]==1.0",
        "keelwork-core>=0.1",
        "aiohttp",
        "nothing; extra == 'hot'",
    )
    tea = write_wheel(tmp_path, "keelwork-tea", "keelwork-kettle==1.0; extra == 'hot'", "tea-leaves")
    kettle = write_wheel(tmp_path, "keelwork-kettle", "keelwork-tea==1.0")
    write_wheel(tmp_path, "keelwork-core")  # it is installed
    write_wheel(tmp_path, "tea-leaves", tags="cp311-cp311-any_linux")  # which one fits, the installer knows
    write_wheel(tmp_path, "cold-tea")
    plugin = find_listed("tea", [write_index(tmp_path, ENTRY, registry=False)])

    assert wheels_for(plugin, tmp_path) == [tool, tea, kettle]


def test_a_package_of_keelwork_that_is_not_in_the_folder_is_looked_for_nowhere_else(tmp_path: Path) -> None:
    plugin = find_listed("tea", [write_index(tmp_path, ENTRY)])

    with pytest.raises(CommandError, match=r"has no wheel of tea-tool==1.0"):
        wheels_for(plugin, tmp_path)
    write_wheel(tmp_path, "tea-tool", "keelwork-tea==1.0")
    with pytest.raises(CommandError, match=r"has no wheel of keelwork-tea==1.0"):
        wheels_for(plugin, tmp_path)


def test_words_that_no_plugin_has_are_no_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "search", "no-such-tea"]) == 0

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no index has a plugin with all these words" in printed.err


def test_a_plugin_that_others_need_is_not_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "remove", "todo_tool", "--uninstall"]) == 1
    assert "keelwork-todo-tool is needed by keelwork" in capsys.readouterr().err
    assert run(["plugins", "remove", "no_such_plugin", "--uninstall"]) == 3
    assert "no plugin 'no_such_plugin' is installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["Tea", "tea tool", "../tea", "json", "class", "keelwork-tea", "agent-core", "t" * 41]
)
def test_a_name_that_no_package_should_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        write_package("tool", name, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()

    with pytest.raises(CommandError, match="is there already"):
        write_package("tool", "tea", tmp_path)

    assert list((tmp_path / "tea").iterdir()) == []


def test_nobody_is_asked_where_nobody_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)

    assert run(["plugins", "add", "tea", "--index", write_index(tmp_path, ENTRY)]) == 5


def installed_from(clone: Path, site: Path, *names: str) -> None:
    """Lay out what an installer leaves of packages that it has installed from the folders of a clone."""
    for name in names:
        folder = clone / "packages" / name.replace("keelwork", "agent")
        folder.mkdir(parents=True)
        left = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
        left.mkdir(parents=True)
        (left / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        (left / "direct_url.json").write_text(json.dumps({"url": folder.as_uri(), "dir_info": {}}))


def test_the_next_steps_after_a_new_package_name_the_folder_that_no_registry_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, site = tmp_path / "my clone", tmp_path / "site"
    installed_from(clone, site, "keelwork-core")
    (clone / "packages" / "agent-testing").mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))

    enter, install, test = next_steps(Path("word-count"))

    assert (enter, test) == ("cd word-count", "pytest")
    assert install == f"pip install -e '.[test]' '{clone}/packages/agent-testing'"
    installed_from(clone / "other", site, "keelwork-testing")
    assert next_steps(Path("word-count"))[1] == "pip install -e '.[test]'"


def test_the_next_steps_use_the_python_of_this_program_if_the_shell_finds_another_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path))

    _, install, test = next_steps(Path("word-count"))

    assert install.startswith(f"{sys.executable} -m pip install -e '.[test]'   # and keelwork-testing")
    assert test == f"{sys.executable} -m pytest"
