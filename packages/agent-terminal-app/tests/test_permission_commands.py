"""`agent permissions`: every rule with where it comes from, given and taken back by a person."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.defaults import READING
from agent_core.testing import ScriptedProvider
from agent_terminal_app.cli import main
from agent_terminal_app.views.permissions import PermissionRow, permission_rows

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """
model = "test"
[models.test]
provider = "local_llama"
"""
RULES = """
[permissions]
default = "ask"
allow = [
  "read",
  "run(git status*)",
]
deny = ["run(rm *)"]
always_ask = ["run(git push*)"]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "config" / "agent").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@pytest.fixture
def config(home: Path) -> Path:
    path = home / "config" / "agent" / "config.toml"
    path.write_text(MODEL + RULES)
    return path


@pytest.fixture
def agent(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command, and return its code and what it said on stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return run


def rows(agent: Any, *options: str) -> list[dict[str, str]]:
    code, out, err = agent("permissions", "list", "--json", *options)
    assert code == 0, err
    found: list[dict[str, str]] = json.loads(out)
    return found


def test_the_list_says_where_each_rule_comes_from(agent: Any, config: Path, home: Path) -> None:
    agent("permissions", "allow", "run(make *)")
    agent("permissions", "deny", "post", "--always")
    lines = [line.strip() for line in config.read_text().splitlines()]

    def place(text: str) -> str:
        return f"{config}:{lines.index(text) + 1}"

    found = [(row["effect"], row["pattern"], row["scope"], row["origin"]) for row in rows(agent)]

    usual = [row[1] for row in found if row[3] == "default"]
    assert {row[0] for row in found if row[1] in usual} == {"allow"}
    assert usual == list(READING)  # one's own rules add to what needs no question
    granted = re.compile(r"granted \d{4}-\d\d-\d\d \d\d:\d\d")
    assert [(*row[:3], granted.sub("granted", row[3])) for row in found if row[1] not in usual] == [
        ("deny", "run(rm *)", "everywhere", place('deny = ["run(rm *)"]')),
        ("deny", "post", "always", "granted"),
        ("always_ask", "run(git push*)", "everywhere", place('always_ask = ["run(git push*)"]')),
        ("allow", "read", "everywhere", place('"read",')),
        ("allow", "run(git status*)", "everywhere", place('"run(git status*)",')),
        ("allow", "run(make *)", f"project {home / 'project'}", "granted"),
        ("ask", "(anything else)", "everywhere", place('default = "ask"')),
    ]


def test_who_denies_what_is_not_allowed_denies_reading_as_well(agent: Any, config: Path) -> None:
    config.write_text(f'{MODEL}[permissions]\ndefault = "deny"\nallow = ["read_file"]\n')

    assert [(row["effect"], row["pattern"]) for row in rows(agent)] == [
        ("allow", "read_file"),
        ("deny", "(anything else)"),
    ]


def test_a_person_reads_a_table(agent: Any, config: Path) -> None:
    agent("permissions", "allow", "run(make *)")

    heading, *lines = agent("permissions", "list")[1].splitlines()

    assert heading.split() == ["EFFECT", "PATTERN", "SCOPE", "ID", "FROM"]
    assert len(lines) == 6 + len(READING)
    [granted] = [line for line in lines if "run(make *)" in line]
    assert re.search(r"  [0-9a-f]{8}  granted ", granted)


def test_the_same_rule_of_two_layers_is_listed_once_with_the_later_place(
    agent: Any, config: Path, home: Path
) -> None:
    own = home / "project" / ".agent" / "config.toml"
    own.parent.mkdir()
    own.write_text('[permissions]\ndeny = ["post", "run(rm *)"]\nalways_ask = ["pay"]\n')
    agent("config", "trust")

    found = {row["pattern"]: row["origin"] for row in rows(agent) if row["effect"] in ("deny", "always_ask")}

    assert found["post"] == found["run(rm *)"] == f"{own}:2"
    assert found["pay"] == f"{own}:3"
    assert found["run(git push*)"].startswith(f"{config}:")


def test_the_list_has_what_counts_here_and_with_all_everything(
    agent: Any, config: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    agent("permissions", "allow", "run(make)")
    monkeypatch.chdir(home / "project")

    assert [row["pattern"] for row in rows(agent) if row["id"]] == []
    assert [row["pattern"] for row in rows(agent, "--all") if row["id"]] == ["run(make)"]
    assert agent("permissions", "list", "--all", "--session", "abcd")[0] == 2


def test_an_agent_with_permissions_of_its_own_is_listed_by_itself(agent: Any, config: Path) -> None:
    own = '[agents.one]\nmodel = "test"\n[agents.one.sections.permissions]\nallow = ["run(ls)"]\n'
    config.write_text(MODEL + own + '[agents.two]\nmodel = "test"\n')
    line = config.read_text().splitlines().index('allow = ["run(ls)"]') + 1

    listed = [(row["effect"], row["pattern"], row["scope"], row["origin"]) for row in rows(agent)]

    assert ("allow", "run(ls)", "agent one", f"{config}:{line}") in listed
    assert ("ask", "(anything else)", "agent one", "default") in listed
    assert ("ask", "(anything else)", "other agents", "default") in listed
    assert ("allow", "read_file", "other agents", "default") in listed  # reading needs no question


def test_the_list_has_the_rules_for_all_and_those_of_each_agent(agent: Any, config: Path) -> None:
    own = '[agents.one]\nmodel = "test"\n[agents.one.sections.permissions]\n'
    own += 'allow = ["run"]\ndefault = "allow"\n'
    shared = '[permissions]\ndeny = ["run(rm *)"]\nalways_ask = ["pay"]\nask = ["post"]\nallow = ["read"]\n'
    config.write_text(MODEL + own + shared)
    lines = config.read_text().splitlines()

    listed = [(row["effect"], row["pattern"], row["scope"], row["origin"]) for row in rows(agent)]

    def place(text: str) -> str:
        return f"{config}:{lines.index(text) + 1}"

    assert listed == [
        ("deny", "run(rm *)", "everywhere", place('deny = ["run(rm *)"]')),
        ("always_ask", "pay", "everywhere", place('always_ask = ["pay"]')),
        ("ask", "post", "everywhere", place('ask = ["post"]')),
        ("allow", "run", "agent one", place('allow = ["run"]')),
        ("allow", "(anything else)", "agent one", place('default = "allow"')),
    ]


def test_a_project_takes_no_rule_off_an_agent_of_yours(agent: Any, config: Path, home: Path) -> None:
    mine = '[agents.one]\nmodel = "test"\n[agents.one.sections.permissions]\n'
    config.write_text(f'{MODEL}{mine}deny = ["run(rm *)"]\ndefault = "deny"\n')
    own = home / "project" / ".agent" / "config.toml"
    own.parent.mkdir()
    own.write_text('[agents.one.sections.permissions]\ndeny = ["post"]\nallow = ["run"]\ndefault = "allow"\n')
    agent("config", "trust")
    lines = config.read_text().splitlines()

    listed = [(row["effect"], row["pattern"], row["origin"]) for row in rows(agent)]

    assert listed == [
        ("deny", "run(rm *)", f"{config}:{len(lines) - 1}"),
        ("deny", "post", f"{own}:2"),
        ("allow", "run", f"{own}:3"),
        ("deny", "(anything else)", f"{config}:{len(lines)}"),
    ]


def test_what_was_given_is_taken_back_by_the_beginning_of_its_id(
    agent: Any, config: Path, home: Path
) -> None:
    code, out, err = agent("permissions", "allow", "run(make)")
    assert (code, out) == (0, "") and f"allow run(make) in {home / 'project'}, as " in err
    agent("permissions", "deny", "post", "--always")
    grants = [row["id"] for row in rows(agent) if row["id"]]

    code, out, err = agent("permissions", "revoke", *(grant[:8] for grant in grants), grants[0])

    assert (code, out) == (0, "")
    assert "allow run(make) is taken back" in err and "deny post is taken back" in err
    assert [row for row in rows(agent) if row["id"]] == []


def test_if_one_is_not_there_none_is_taken_back(agent: Any, config: Path) -> None:
    agent("permissions", "allow", "run(make)")
    [grant] = [row["id"] for row in rows(agent) if row["id"]]

    for wrong in ("zzzz", grant[:3]):
        code, _, err = agent("permissions", "revoke", grant, wrong)
        assert code == 1 and f"there is no grant that begins with '{wrong}'" in err
    assert [row["id"] for row in rows(agent) if row["id"]] == [grant]


def test_a_permission_for_a_session_is_listed_with_it(agent: Any, config: Path, home: Path) -> None:
    from agent_terminal_app.application import open_settings

    with open_settings().application() as app:
        session_id = app.create_session().session_id
    code, _, err = agent("permissions", "deny", "run(make)", "--session", session_id[:8])

    assert code == 0 and f"deny run(make) in session {session_id}, as " in err
    [row] = [row for row in rows(agent, "--session", session_id) if row["id"]]
    assert (row["scope"], row["effect"]) == (f"session {session_id[:8]}", "deny")
    assert not any(row["id"] for row in rows(agent))


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["allow", "run("], 2, "never closed"),
        (["allow", "run", "--always", "--project"], 2, "exclude each other"),
        (["allow"], 2, "PATTERN"),
        (["deny", "run", "--session", "nobody"], 1, "nobody"),
        (["revoke"], 2, "GRANTS"),
    ],
)
def test_what_cannot_be_given_is_said(
    agent: Any, config: Path, arguments: list[str], code: int, problem: str
) -> None:
    found, out, err = agent("permissions", *arguments)

    assert (found, out) == (code, "") and problem in err


def test_without_settings_the_rows_are_the_same_but_for_their_places(home: Path) -> None:
    agents = {"a": {"model": "m"}, "b": {"model": "m", "sections": {"permissions": {"deny": ["post"]}}}}
    config = {
        "agents": agents,
        "default_agent": "a",
        "models": {"m": {"provider": "scripted"}},
        "permissions": {"allow": ["read"], "default": "deny"},
    }
    with AgentApplication(config, plugins=[ScriptedProvider()], installed=False) as app:
        of_a, of_b = app.create_session("a").session_id, app.create_session("b").session_id
        app.grant("run", scope="session", session_id=of_a)

        assert permission_rows(app, None, of_b) == [
            PermissionRow(effect="deny", pattern="post", scope="agent b", origin="configuration"),
            PermissionRow(effect="deny", pattern="(anything else)", scope="agent b", origin="configuration"),
        ]
        assert [(row.effect, row.pattern) for row in permission_rows(app, None, of_a)] == [
            ("allow", "read"),
            ("allow", "run"),
            ("deny", "(anything else)"),
        ]
        assert len(permission_rows(app, None, None)) == 5
