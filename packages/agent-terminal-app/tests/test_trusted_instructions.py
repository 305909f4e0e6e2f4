"""What a project says reaches the model only if the person trusts the project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.application import _with_trust, application_config, open_quietly
from agent_terminal_app.cli import main
from agent_terminal_app.launch import ALWAYS, NEVER, NOT_NOW, ask_about_instructions
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.trust import trusted_folders, undecided_instructions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "AGENTS.md").write_text("Obey.")
    (folder / "src" / ".agent" / "skills" / "dance").mkdir(parents=True)
    (folder / ".agent" / "memory").mkdir(parents=True)
    (folder / ".agent" / "memory" / "likes-tea.md").write_text("Likes tea.")
    monkeypatch.chdir(folder / "src")
    return folder


def test_what_a_project_says_is_listed_with_its_size_until_somebody_decides(project: Path) -> None:
    paths = Paths.of_this_user()

    assert undecided_instructions(paths, project / "src") == [
        f"{project}/AGENTS.md (5 bytes)",
        f"{project}/src/.agent/skills (1 skill: dance)",
        f"{project}/.agent/memory (1 memory: likes-tea)",
    ]
    assert trusted_folders(paths) == []
    with pytest.raises(SystemExit):
        main(["config", "trust"])
    assert trusted_folders(paths) == [str(project)]
    assert undecided_instructions(paths, project / "src") == []


@pytest.mark.parametrize(
    ("answer", "trusted", "asked_again"),
    [(ALWAYS, True, False), (NOT_NOW, False, True), (NEVER, False, False)],
)
def test_the_person_is_asked_once(project: Path, answer: str, trusted: bool, asked_again: bool) -> None:
    class Person:
        async def choose(self, title: str, options: list[str]) -> int:
            assert "AGENTS.md (5 bytes)" in title
            return options.index(answer)

    opened = open_quietly()
    ask: Any = Person()
    asyncio.run(ask_about_instructions(ask, opened, undecided_instructions(opened.paths, project)))

    assert (trusted_folders(opened.paths) == [str(project)]) is trusted
    assert bool(undecided_instructions(opened.paths, project)) is asked_again


def test_names_that_a_project_chose_cannot_add_lines_or_hide(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Paths.of_this_user()
    (project / ".agent" / "memory" / "a\nDo you trust this?\x1b]0;title\x07\u202e.md").write_text("x")
    (project / "src" / ".agent" / "skills" / "b\n\x1b[2Jc").mkdir()
    (project / ".agent" / "commands").mkdir()
    (project / ".agent" / "commands" / "d\n\x9be.md").write_text("x")

    lines = undecided_instructions(paths, project / "src")
    with pytest.raises(SystemExit):
        main(["config", "trust"])
    printed = capsys.readouterr().err.splitlines()

    assert lines[1:] == [
        f"{project}/.agent/commands (commands: d e)",
        f"{project}/src/.agent/skills (2 skills: b [2Jc, dance)",
        f"{project}/.agent/memory (2 memories: a Do you trust this?]0;title, likes-tea)",
    ]
    assert printed == [f"  {line} may reach the model" for line in lines]


@pytest.mark.parametrize("mark", [".git", ".hg", ".jj"])
def test_a_project_is_trusted_from_its_top_whatever_keeps_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    top = tmp_path / "other"
    (top / mark).mkdir(parents=True)
    (top / "src").mkdir()
    (top / "AGENTS.md").write_text("Obey.")
    monkeypatch.chdir(top / "src")

    assert undecided_instructions(Paths.of_this_user(), top / "src") == [f"{top}/AGENTS.md (5 bytes)"]
    with pytest.raises(SystemExit):
        main(["config", "trust"])

    assert trusted_folders(Paths.of_this_user()) == [str(top)]


def test_a_project_that_says_nothing_yet_can_be_trusted_with_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "new")

    with pytest.raises(SystemExit) as ended:
        main(["config", "trust"])

    assert ended.value.code in (None, 0)
    assert trusted_folders(Paths.of_this_user()) == [str(tmp_path / "new")]


def test_every_agent_learns_which_projects_are_trusted() -> None:
    opened = open_quietly()

    config = _with_trust(application_config(opened.settings), opened.paths, None)
    [agent] = config["agents"].values()

    assert agent["sections"]["config"]["trusted_folders"] == []
