"""Agents that are made, changed and removed over HTTP: the user's file, its rules, and what runs then."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from agent_server import LocalAccess, background, create_server
from agent_terminal_app.application import open_quietly
from agent_terminal_app.errors import CommandError
from agent_terminal_app.host import UserHost, masked, unmasked
from agent_terminal_app.settings.trust import trust_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL = """
model = "m"  # a remark that stays
[models.m]
provider = "openai_compatible"
model = "m-1"
config = { base_url = "http://127.0.0.1:9/v1" }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("data", "config", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_KEYRING", "off")
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path).parent.mkdir(parents=True)
    file_of(tmp_path).write_text(MODEL)
    return tmp_path


def file_of(home: Path) -> Path:
    return home / "config" / "agent" / "config.toml"


def agents_in(home: Path) -> Any:
    return tomllib.loads(file_of(home).read_text()).get("agents")


@pytest.fixture
def client(home: Path) -> Iterator[httpx2.Client]:
    opened = open_quietly()
    with opened.application(ephemeral=True) as app:
        server = create_server(app, LocalAccess("a-token-of-tests"), host=UserHost(opened.paths))
        headers = {"authorization": "Bearer a-token-of-tests"}
        with background(server) as url, httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            yield client


def declare(client: httpx2.Client, agent_id: str, **declared: Any) -> Any:
    answer = client.put(f"/v1/agents/{agent_id}", json={"declared": declared})
    assert answer.is_success, answer.text
    return answer.json()


def names(client: httpx2.Client) -> list[str]:
    return [one["id"] for one in client.get("/v1/agents").json()["items"]]


def test_an_agent_is_made_beside_the_assistant_and_can_be_used_at_once(
    client: httpx2.Client, home: Path
) -> None:
    answer = declare(client, "reviewer", description="Looks at changes.", max_rounds=5)

    assert answer == {"id": "reviewer", "before": None, "origin": str(file_of(home)), "applies": "now"}
    assert names(client) == ["assistant", "reviewer"]
    assert agents_in(home) == {
        "assistant": {},
        "reviewer": {"description": "Looks at changes.", "max_rounds": 5},
    }
    assert "# a remark that stays" in file_of(home).read_text()
    assert client.post("/v1/sessions", json={"agent_id": "reviewer"}).is_success
    default = [one["id"] for one in client.get("/v1/agents").json()["items"] if one["default"]]
    assert default == ["assistant"]


def test_every_field_says_where_it_stands_and_a_change_can_be_undone(
    client: httpx2.Client, home: Path
) -> None:
    declare(client, "reviewer", description="Looks.")

    found = client.get("/v1/agents/reviewer").json()
    changed = declare(client, "reviewer", description="Looks twice.", delegates=["assistant"])

    assert found["declared"] == found["own"] == {"description": "Looks."}
    line = file_of(home).read_text().split("\n").index('description = "Looks twice."') + 1
    assert client.get("/v1/agents/reviewer").json()["origins"]["description"] == f"{file_of(home)}:{line}"
    assert changed["before"] == {"description": "Looks."}
    declare(client, "reviewer", **changed["before"])
    assert agents_in(home)["reviewer"] == {"description": "Looks."}


@pytest.mark.parametrize(
    ("declared", "field", "words"),
    [
        ({"max_rounds": 0}, "agents.bad.max_rounds", "1"),
        ({"max_round": 3}, "agents.bad.max_round", "max_rounds"),
        ({"sections": {"files_tool": {"rots": []}}}, "agents.bad.sections.files_tool.rots", "roots"),
        ({"delegates": ["nobody"]}, None, "nobody"),
        ({"plugin_ids": ["no_such_plugin"]}, None, "no_such_plugin"),
    ],
)
def test_what_could_not_run_is_refused_with_its_field_and_nothing_is_saved(
    client: httpx2.Client, home: Path, declared: dict[str, Any], field: str | None, words: str
) -> None:
    answer = client.put("/v1/agents/bad", json={"declared": declared})

    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert field is None or answer.json()["errors"][0]["field"] == field
    assert file_of(home).read_text() == MODEL
    assert names(client) == ["assistant"]


def test_an_agent_is_removed_unless_another_one_needs_it(client: httpx2.Client, home: Path) -> None:
    declare(client, "reader", description="Reads.")
    declare(client, "writer", delegates=["reader"])

    needed = client.delete("/v1/agents/reader")
    declare(client, "writer")
    removed = client.delete("/v1/agents/reader")

    assert needed.status_code == 422
    assert "reader" in needed.json()["detail"]
    assert removed.json()["before"] == {"description": "Reads."}
    assert names(client) == ["assistant", "writer"]
    assert "reader" not in agents_in(home)
    assert client.get("/v1/agents/reader").status_code == 404


def test_what_a_project_says_counts_and_is_not_changed_in_vain(home: Path) -> None:
    project = home / ".agent" / "config.toml"
    project.parent.mkdir()
    project.write_text('[agents.helper]\ndescription = "Of the project."\n')
    trust_project(open_quietly().paths, home)
    host = UserHost(open_quietly().paths)

    [helper] = host.agents()

    assert helper["own"] is None
    assert helper["origins"] == {"description": f"{project}:2"}
    with pytest.raises(Exception, match=r"config\.toml:2 sets agents\.helper\.description, and counts"):
        host.draft_agent("helper", {"description": "Of mine."})


def test_what_may_be_a_secret_is_hidden_and_comes_back_as_it_was(client: httpx2.Client, home: Path) -> None:
    declare(client, "reviewer", sections={"config": {"api_key": "env:SOME_KEY", "seed": 1}})

    found = client.get("/v1/agents/reviewer").json()["own"]
    declare(client, "reviewer", **found, description="Looks.")

    assert found["sections"]["config"] == {"api_key": "(hidden)", "seed": 1}
    assert agents_in(home)["reviewer"]["sections"]["config"] == {"api_key": "env:SOME_KEY", "seed": 1}


def test_what_is_hidden_in_a_list_comes_back_as_it_was() -> None:
    known = {"servers": [{"name": "one", "token": "env:ONE"}, {"name": "two", "token": "env:TWO"}]}
    sent = masked(known)

    assert sent["servers"][0] == {"name": "one", "token": "(hidden)"}
    assert unmasked(sent, known) == known
    assert unmasked({"servers": sent["servers"][1:]}, known) == {"servers": known["servers"][1:]}
    with pytest.raises(CommandError, match="cannot be copied"):
        unmasked({"servers": [{"name": "evil", "token": "(hidden)"}]}, known)


def test_the_schema_names_what_there_is_to_choose_from(client: httpx2.Client) -> None:
    fields = client.get("/v1/settings/schema/agent").json()["properties"]

    assert "m" in fields["model"]["examples"]
    assert "files_tool" in fields["plugin_ids"]["examples"]
    assert fields["delegates"]["examples"] == ["assistant"]
    assert "read_file" in fields["allowed_tools"]["examples"]
    assert fields["max_rounds"]["minimum"] == 1
