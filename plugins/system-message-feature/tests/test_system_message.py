"""What the model is told beside the agent's own prompt: a text, and the project's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core import Session
from agent_core.testing import ScriptedProvider
from agent_runtime import AgentRuntimeBuilder, AgentSpec, BuildError, RunRequest
from system_message_feature import SystemMessageFeature
from system_message_feature.instructions import find_instructions


def asked(roots: Any = (), prompt: str = "", **section: Any) -> list[Any]:
    """Ask once and return the messages that the provider was sent."""
    provider = ScriptedProvider(["Hello."])
    spec = AgentSpec(
        "a", "m", system_prompt=prompt, plugin_ids=("system_message",), sections={"system_message": section}
    )
    builder = (
        AgentRuntimeBuilder()
        .with_provider("scripted", provider)
        .with_plugin("system_message", SystemMessageFeature)
    )
    builder.with_model({"id": "m", "provider": "scripted"}).with_agent_spec(spec)
    session = Session("s", metadata={"workspace_roots": roots})
    result = builder.build().run_to_completion(RunRequest("a", "Hi.", session))
    assert [message.role for message in result.session.messages] == ["user", "assistant"]  # nothing is stored
    return [(message["role"], message["content"]) for message in provider.requests[0].native_messages]


def project(folder: Path, **files: str) -> Path:
    """Make a repository with instruction files at these places."""
    (folder / ".git").mkdir()
    for place, text in files.items():
        where = folder / place.replace("__", "/") if place != "top" else folder
        where.mkdir(parents=True, exist_ok=True)
        (where / "AGENTS.md").write_text(text)
    return folder


def test_a_text_stands_behind_the_agents_own_prompt() -> None:
    assert asked(prompt="Be brief.", text="Speak of tea.") == [
        ("system", "Be brief.\n\nSpeak of tea."),
        ("user", "Hi."),
    ]


def test_an_agent_without_a_prompt_gets_one() -> None:
    assert asked(text="Speak of tea.")[0] == ("system", "Speak of tea.")


def test_with_nothing_to_say_nothing_changes(tmp_path: Path) -> None:
    assert asked([str(tmp_path)]) == [("user", "Hi.")]


def test_the_nearest_file_comes_first_and_the_walk_ends_at_the_repository(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Of somebody else.")
    (tmp_path / "repository").mkdir()
    root = project(tmp_path / "repository", top="Use tabs.", src__deep="Use spaces.")

    [(_role, text), _user] = asked([str(root / "src" / "deep")])

    assert text.index("Use spaces.") < text.index("Use tabs.")
    assert "somebody else" not in text


def test_a_folder_outside_of_any_repository_speaks_for_itself_alone(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "AGENTS.md").write_text("Outer.")
    (inner / "AGENTS.md").write_text("Inner.")

    [(_role, text), _user] = asked([str(inner)])

    assert "Inner." in text
    assert "Outer." not in text


def test_two_roots_of_one_project_say_everything_once(tmp_path: Path) -> None:
    root = project(tmp_path, top="Use tabs.", a="Of a.", b="Of b.")

    found = find_instructions([str(root / "a"), str(root / "b")], ["AGENTS.md"], 1000)

    assert [one.text for one in found] == ["Of a.", "Use tabs.", "Of b."]


def test_other_names_and_none(tmp_path: Path) -> None:
    project(tmp_path, top="Use tabs.")
    (tmp_path / "CLAUDE.md").write_text("Use spaces.")

    assert "Use spaces." in asked([str(tmp_path)], files=["CLAUDE.md"])[0][1]
    assert asked([str(tmp_path)], files=[]) == [("user", "Hi.")]


def test_a_file_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    project(tmp_path, top="x" * 50)

    [(_role, text), _user] = asked([str(tmp_path)], file_bytes=10)

    assert text.endswith(f":\n{'x' * 10}\n[the file goes on]")


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    (tmp_path / "CLAUDE.md").mkdir()
    (tmp_path / "OTHER.md").symlink_to("/dev/zero")

    assert find_instructions([str(tmp_path)], ["AGENTS.md", "CLAUDE.md", "OTHER.md"], 100) == ()


@pytest.mark.parametrize("roots", [None, "text", [None, 3], ["\0"], [""], {"a": 1}])
def test_roots_that_are_none_do_no_harm(roots: Any) -> None:
    assert asked(roots, files=["a file that is nowhere"]) == [("user", "Hi.")]


@pytest.mark.parametrize("section", [{"files": ["../AGENTS.md"]}, {"texts": "x"}, {"file_bytes": 0}])
def test_settings_that_make_no_sense_are_refused(section: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="system_message"):
        asked(**section)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_whatever_stands_in_a_file_is_text_of_bounded_size(data: bytes, most: int) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        (Path(folder) / "AGENTS.md").write_bytes(data)
        found = find_instructions([folder], ["AGENTS.md"], most)

    for one in found:
        assert one.text.encode()
        assert len(one.text.encode()) <= most
        assert one.cut == (len(data) > most)
