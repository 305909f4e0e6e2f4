"""Skills: found in folders, listed in the prompt, loaded when the model asks, confined to their folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core import Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import AgentRuntime, AgentRuntimeBuilder, AgentSpec, RunRequest
from skills_feature import SkillError, SkillsFeature, find_skills, read_skill
from skills_feature.catalogue import Place
from skills_feature.skill import SkillFileError, list_files, read_file

HEAD = "---\nname: {name}\ndescription: {about}\n---\n"


def write_skill(folder: Path, name: str, about: str = "Brews tea.", body: str = "Boil water.") -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(HEAD.format(name=name, about=about) + body)
    return place


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No skills of whoever runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def run(root: Path, *calls: ToolCall, **section: Any) -> tuple[Any, ScriptedProvider]:
    """Let a model make calls in a session of a project."""
    provider = ScriptedProvider([*(Reply(tool_calls=[call]) for call in calls), "Done."])
    return built(provider, **section).run_to_completion(request(root)), provider


def request(root: Path) -> RunRequest:
    return RunRequest("a", "Hi.", Session("s", metadata={"workspace_roots": [str(root)]}))


def built(provider: ScriptedProvider, **section: Any) -> AgentRuntime:
    spec = AgentSpec(
        "a", "m", system_prompt="Be brief.", plugin_ids=("skills",), sections={"skills": section}
    )
    builder = AgentRuntimeBuilder().with_provider("scripted", provider).with_plugin("skills", SkillsFeature)
    return builder.with_model({"id": "m", "provider": "scripted"}).with_agent_spec(spec).build()


def answers(result: Any) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def tools_of(provider: ScriptedProvider) -> list[str]:
    return [tool["function"]["name"] for tool in provider.requests[0].config["tools"]]


def test_the_prompt_lists_the_skills_and_not_what_they_say(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea", "Brews tea.", "Boil water first.")

    _result, provider = run(tmp_path)

    system = provider.requests[0].native_messages[0]["content"]
    assert system.startswith("Be brief.\n\n")
    assert "- tea: Brews tea." in system
    assert "Boil" not in system
    assert tools_of(provider) == ["load_skill", "read_skill_file"]


def test_without_skills_nothing_is_said_and_nothing_offered(tmp_path: Path) -> None:
    _result, provider = run(tmp_path)

    assert provider.requests[0].native_messages[0]["content"] == "Be brief."
    assert not provider.requests[0].config.get("tools")


def test_a_skill_is_loaded_with_the_list_of_its_files(tmp_path: Path) -> None:
    place = write_skill(tmp_path / ".agent" / "skills", "tea", body="Boil water first.")
    (place / "scripts").mkdir()
    (place / "scripts" / "brew.sh").write_text("echo tea")
    (place / ".hidden").write_text("x")

    result, _provider = run(
        tmp_path,
        ToolCall("load_skill", {"name": "tea"}),
        ToolCall("read_skill_file", {"name": "tea", "path": "scripts/brew.sh"}),
    )

    loaded, script = answers(result)
    assert "Boil water first." in loaded
    assert loaded.endswith("- scripts/brew.sh")
    assert script == "echo tea"


def test_a_skill_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")

    result, _provider = run(tmp_path, ToolCall("load_skill", {"name": "coffee"}))

    assert "no skill 'coffee'; there are: tea" in answers(result)[0]


def test_a_skill_of_the_project_counts_before_one_of_the_person(tmp_path: Path) -> None:
    write_skill(tmp_path / "config" / "agent" / "skills", "tea", "The person's.")
    write_skill(tmp_path / "config" / "agent" / "skills", "cake", "The person's.")
    write_skill(tmp_path / "project" / ".agents" / "skills", "tea", "The project's.")

    _result, provider = run(tmp_path / "project")
    _result, without = run(tmp_path / "project", project=False)

    system = provider.requests[0].native_messages[0]["content"]
    assert "- cake: The person's.\n- tea: The project's." in system
    assert "- tea: The person's." in without.requests[0].native_messages[0]["content"]


def test_other_folders_can_be_named(tmp_path: Path) -> None:
    write_skill(tmp_path / "shared", "tea")

    _result, provider = run(tmp_path, folders=[str(tmp_path / "shared")])

    assert "- tea:" in provider.requests[0].native_messages[0]["content"]


def test_a_skill_that_was_just_changed_is_read_anew(tmp_path: Path) -> None:
    place = write_skill(tmp_path, "tea", "Old words.")
    assert find_skills([tmp_path]).skills["tea"].description == "Old words."

    (place / "SKILL.md").write_text(HEAD.format(name="tea", about="New words, and more of them."))

    assert find_skills([tmp_path]).skills["tea"].description == "New words, and more of them."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Boil water.", "must begin with a head"),
        ("---\nname: tea\n", "must begin with a head"),
        ("---\n- a\n---\n", "must have fields"),
        ("---\nname: tea\n---\n", "needs a text under 'description'"),
        ("---\nname: 3\ndescription: x\n---\n", "the skill '3' is in a folder 'tea'"),
        ("---\nname:\ndescription: x\n---\n", "needs a text under 'name'"),
        ("---\nname: tea\ndescription: [x]\n---\n", "under 'description' in its head, not a list"),
        ("---\nname: tea\ndescription: x\nlicense: {a: b}\n---\n", "'license' in its head, not a mapping"),
        ("---\nname: tea\ndescription: x\nallowed-tools: [{a: b}]\n---\n", "a text or a list of texts"),
        ("---\nname: tea\ndescription: x\nmetadata: x\n---\n", "'metadata' in its head, not a text"),
        ("---\nname: Tea\ndescription: x\n---\n", "not a name for a skill"),
        ("---\nname: cake\ndescription: x\n---\n", "give both the same name"),
        (f"---\nname: tea\ndescription: {'x' * 1025}\n---\n", "more than 1024 characters"),
        ("---\nname: [\n---\n", "cannot be read: line 3, expected the node content, but found"),
        (
            "---\nname: !!python/object/apply:os.system ['true']\n---\n",
            "under 'name' in its head, not a list",
        ),
        ("---\na: &a [*a]\nname: tea\ndescription: x\n---\n", "has an anchor (&) or alias (*)"),
        ("---\nname: &n tea\ndescription: x\n---\n", "has an anchor (&) or alias (*)"),
        ("---\nname: tea\ndescription: *n\n---\n", "has an anchor (&) or alias (*)"),
        ("---\nname: tea\ndescription: x\na: [[[[[[[[b]]]]]]]]\n---\n", "nested more than 8 deep"),
        pytest.param("---\na: " + "[" * 9000 + "\n---\n", "nested more than 8 deep", id="very deep"),
        pytest.param(
            f"---\nname: tea\ndescription: x\na: {'x' * 16_000}\n---\n",
            "16000 are the most",
            id="very long",
        ),
    ],
)
def test_what_is_no_skill_is_left_out_and_says_why(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "SKILL.md").write_text(text)

    found = find_skills([tmp_path])

    assert [why in problem for problem in found.problems] == [True]
    assert found.skills == {}


def bomb(levels: int) -> str:
    """A head of few lines that has 9 to the power of *levels* parts."""
    nested = (f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels))
    lines = ["a0: &a0 x", *nested]
    return "\n".join(
        ["---", "name: tea", "description: x", *lines, f"compatibility: *a{levels - 1}", "---\n"]
    )


def test_a_head_that_grows_when_it_is_read_costs_its_skill_alone(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")
    (tmp_path / ".agent" / "skills" / "tea" / "SKILL.md").write_text(bomb(30))
    write_skill(tmp_path / ".agent" / "skills", "cake", "Bakes.")

    _result, provider = run(tmp_path)

    system = provider.requests[0].native_messages[0]["content"]
    assert "- cake: Bakes." in system and "tea" not in system


def test_the_person_is_told_of_what_is_left_out(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")
    (tmp_path / ".agent" / "skills" / "tea" / "SKILL.md").write_text(bomb(3))

    events = list(built(ScriptedProvider(["Done."])).run(request(tmp_path)))

    [warning] = [event for event in events if isinstance(event, dict) and event["type"] == "warning"]
    file = tmp_path / ".agent" / "skills" / "tea" / "SKILL.md"
    assert warning["plugin"] == "skills"
    assert warning["message"].startswith(f"a skill is left out: {file} has an anchor (&) or alias (*)")


@pytest.mark.parametrize("value", ["1.10", "2026-99-99", "9" * 5000, "0x1F", "no", "1:30", "~"], ids=range(7))
def test_what_looks_like_a_number_or_a_date_stays_a_text(tmp_path: Path, value: str) -> None:
    place = tmp_path / "tea"
    place.mkdir()
    (place / "SKILL.md").write_text(
        f"---\nname: tea\ndescription: x\nmetadata: {{a: {value}, b: [c]}}\n---\n"
    )

    assert read_skill(place).metadata == {"a": value}


LINKS = [
    (".agent/skills/tea", "{out}/tea"),
    (".agent/skills/tea", "../../../out/tea"),
    (".agent/skills", "{out}"),
    (".agent", "../dot"),
]


@pytest.mark.parametrize(("link", "target"), LINKS)
def test_a_project_cannot_bring_a_skill_from_elsewhere(tmp_path: Path, link: str, target: str) -> None:
    root, out = tmp_path / "project", tmp_path / "out"
    write_skill(out, "tea", body="canary")
    write_skill(tmp_path / "dot" / "skills", "tea", body="canary")
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(target.format(out=out))

    found = find_skills([Place(root / ".agent" / "skills", root)])

    assert found.skills == {}
    assert [f"leads out of the project {root}" in problem for problem in found.problems] == [True]
    assert list_files(root / ".agent" / "skills" / "tea", "", root) == []


@pytest.mark.parametrize(
    ("link", "target"), [(".claude/skills", "../shared"), (".claude/skills/tea", "{in}/tea")]
)
def test_a_link_inside_of_the_project_counts(tmp_path: Path, link: str, target: str) -> None:
    place = write_skill(tmp_path / "shared", "tea")
    (place / "more").mkdir()
    (place / "more" / "note.md").write_text("Use a lid.")
    (tmp_path / link).parent.mkdir(parents=True)
    (tmp_path / link).symlink_to(target.format(**{"in": tmp_path / "shared"}))

    result, _provider = run(
        tmp_path,
        ToolCall("load_skill", {"name": "tea"}),
        ToolCall("read_skill_file", {"name": "tea", "path": "more/note.md"}),
    )

    assert answers(result)[0].endswith("- more/note.md")
    assert answers(result)[1] == "Use a lid."


def test_a_persons_own_skills_may_be_links(tmp_path: Path) -> None:
    write_skill(tmp_path / "elsewhere", "tea")
    own = tmp_path / "config" / "agent" / "skills"
    own.mkdir(parents=True)
    (own / "tea").symlink_to(tmp_path / "elsewhere" / "tea")

    result, _provider = run(tmp_path / "nothing", ToolCall("load_skill", {"name": "tea"}))

    assert "Boil water." in answers(result)[0]


def test_the_head_says_more(tmp_path: Path) -> None:
    place = tmp_path / "tea"
    place.mkdir()
    (place / "SKILL.md").write_text(
        "---\nname: tea\ndescription: >\n  Brews\n  tea.\nlicense: MIT\ncompatibility: a kettle\n"
        "allowed-tools: Read Bash(kettle:*)\nmetadata:\n  version: 1.0\n---\nBoil.\n"
    )

    skill = read_skill(place)

    assert (skill.description, skill.license, skill.compatibility) == ("Brews tea.", "MIT", "a kettle")
    assert (skill.tools, skill.metadata) == (("Read", "Bash(kettle:*)"), {"version": "1.0"})


HOSTILE = [
    "../secret",
    "a/../../secret",
    "/etc/passwd",
    "link",
    "folder/secret",
    "fifo",
    "folder",
    "",
    ".",
    "..",
    "a\0b",
    "..\\secret",
    "SKILL.md/x",
    "missing",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_outside_of_the_skill_is_read(tmp_path: Path, name: str) -> None:
    place = write_skill(tmp_path, "tea")
    (tmp_path / "secret").write_text("secret")
    (place / "link").symlink_to(tmp_path / "secret")
    (place / "folder").symlink_to(tmp_path)
    os.mkfifo(place / "fifo")

    with pytest.raises(SkillFileError):
        read_file(place, name, limit=1000)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 30)

    with pytest.raises(SkillFileError, match="too large"):
        read_file(tmp_path, "huge", limit=1000)


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    place = write_skill(tmp_path / ".agent" / "skills", "tea")
    (place / "picture").write_bytes(b"\x89PNG\0")

    result, _provider = run(tmp_path, ToolCall("read_skill_file", {"name": "tea", "path": "picture"}))

    assert answers(result)[0].startswith("picture is not text: 5 bytes")


def test_a_rule_can_be_about_a_skill(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("load_skill", {"name": "tea"})]), "Done."])
    rules = {"allow": ["*"], "deny": ["load_skill(tea)"]}
    spec = AgentSpec("a", "m", plugin_ids=("skills",), sections={"permissions": rules})
    builder = AgentRuntimeBuilder().with_provider("scripted", provider).with_plugin("skills", SkillsFeature)
    builder.with_model({"id": "m", "provider": "scripted"}).with_agent_spec(spec)
    session = Session("s", metadata={"workspace_roots": [str(tmp_path)]})

    result = builder.build().run_to_completion(RunRequest("a", "Hi.", session))

    assert "not allowed" in answers(result)[0]


@given(st.text(max_size=300))
def test_whatever_stands_in_a_file_a_skill_is_read_or_refused(text: str) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        place = Path(folder) / "tea"
        place.mkdir()
        (place / "SKILL.md").write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(SkillError, SkillFileError):  # and nothing else
            assert read_skill(place).name == "tea"


def test_the_skills_of_a_project_that_is_not_trusted_are_left_out(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")
    for trusted, is_there in (([], False), ([str(tmp_path)], True)):
        provider = ScriptedProvider(["Done."])
        sections: dict[str, Any] = {"skills": {}, "config": {"trusted_folders": trusted}}
        spec = AgentSpec("a", "m", plugin_ids=("skills",), sections=sections)
        builder = AgentRuntimeBuilder().with_provider("scripted", provider)
        builder = builder.with_plugin("skills", SkillsFeature).with_model({"id": "m", "provider": "scripted"})

        events = list(builder.with_agent_spec(spec).build().run(request(tmp_path)))

        warned = [one["message"] for one in events if isinstance(one, dict) and one["type"] == "warning"]
        assert ("tea" in str(provider.requests[0].native_messages)) is is_there
        assert any("the project is not trusted" in one for one in warned) is not is_there


def act(root: Path, action: str, **params: Any) -> Any:
    """Run an action for a session of a project."""
    resolved = built(ScriptedProvider([])).resolve("a")
    session = Session("s", metadata={"workspace_roots": [str(root)]})
    return resolved.core.execute_session_action(session, dict(resolved.config), "skills", action, params)[1]


def test_people_see_all_skills_with_their_origin_and_why_others_are_left_out(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / ".agent" / "skills", "tea")
    write_skill(tmp_path / ".agent" / "skills", "broken", about="")

    tea, broken = act(tmp_path, "list_skills")["items"]

    about = {"id": "tea", "title": "tea", "text": "Brews tea.", "origin": str(folder), "enabled": True}
    assert tea == about
    assert "needs a text under 'description'" in broken["problem"]
    assert broken["actions"] == []


def test_a_skill_that_is_switched_off_is_not_offered_to_the_model_until_that_is_undone(
    tmp_path: Path,
) -> None:
    write_skill(tmp_path / ".agent" / "skills", "tea")
    write_skill(tmp_path / ".agent" / "skills", "coffee", about="Brews coffee.")

    [undo] = act(tmp_path, "switch_skill", item_id="tea", enabled=False)["display"]["actions"]
    _, provider = run(tmp_path)

    sent = str(provider.requests[0])
    assert "Brews coffee." in sent
    assert "Brews tea." not in sent
    assert [item["enabled"] for item in act(tmp_path, "list_skills")["items"]] == [True, False]
    act(tmp_path, undo["action_id"], **undo["params"])
    assert "Brews tea." in str(run(tmp_path)[1].requests[0])


def test_a_skill_that_is_not_there_cannot_be_switched(tmp_path: Path) -> None:
    answer = act(tmp_path, "switch_skill", item_id="tea", enabled=False)

    assert answer["error"]["message"] == "there is no skill 'tea'"
