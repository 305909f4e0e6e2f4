"""What no model reaches through `agent run`: denied calls, this program's own files, a stranger's folders."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.command import run_agent
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """
model = "scripted"
[models.scripted]
provider = "openai_compatible"
model = "scripted-model"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:SCRIPTED_KEY"
"""
SECRET = "sk-never-seen-by-a-model"


@dataclass(frozen=True)
class Person:
    """Somebody with a home, who works in a folder with a model that plays a script."""

    home: Path
    folder: Path
    server: ScriptedServer

    @property
    def config(self) -> Path:
        return self.home / ".config" / "agent" / "config.toml"

    @property
    def data(self) -> Path:
        return self.home / ".local" / "share" / "agent"

    def say(self, more: str) -> None:
        self.config.write_text(CONFIG.format(url=self.server.url) + more)

    def agent(self, *arguments: str) -> tuple[int, str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"HOME": str(self.home), "SCRIPTED_KEY": "k", "AGENT_KEYRING": "off"}
        done = run_agent(*arguments, environment={**kept, **own}, folder=self.folder)
        return done.returncode, done.stdout, done.stderr

    def have_called(self, *calls: tuple[str, dict[str, Any]], session: str | None = None) -> list[str]:
        """Have the model make calls in `agent run`, and return what it was answered."""
        made = [ToolCall(name, arguments, f"c{place}") for place, (name, arguments) in enumerate(calls)]
        self.server.play(chat_reply(tool_calls=made), chat_reply("done"))
        code, _, err = self.agent("run", "go", *(("--session", session) if session else ()))
        assert code == 0, err
        asked = self.server.requests[-1].json["messages"]
        return [str(message["content"]) for message in asked if message["role"] == "tool"][-len(made) :]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    home = tmp_path / "home"
    (home / ".config" / "agent").mkdir(parents=True)
    (home / "project").mkdir()
    with ScriptedServer() as server:
        someone = Person(home, home / "project", server)
        someone.say("")
        yield someone


# What a person denies holds for every agent


def test_an_agent_that_may_use_the_shell_does_not_run_what_its_person_denies(person: Person) -> None:
    (person.folder / "kept.txt").write_text("kept")
    rules = (
        '[permissions]\ndeny = ["shell(rm *)"]\n[agents.assistant.sections.permissions]\nallow = ["shell"]\n'
    )
    person.say(rules)

    denied, ran = person.have_called(
        ("shell", {"command": "rm kept.txt"}), ("shell", {"command": "echo it ran"})
    )

    assert "deny shell(rm *)" in denied and (person.folder / "kept.txt").exists()
    assert "it ran" in ran
    _, listed, _ = person.agent("permissions", "list", "--json")
    assert ("deny", "shell(rm *)", "everywhere") in [
        (row["effect"], row["pattern"], row["scope"]) for row in json.loads(listed)
    ]


def test_a_project_that_is_trusted_takes_no_deny_away(person: Person) -> None:
    (person.folder / "kept.txt").write_text("kept")
    person.say(
        '[permissions]\ndeny = ["shell(rm *)"]\n'
        '[agents.assistant]\n[agents.assistant.sections.permissions]\ndeny = ["shell(mv *)"]\n'
    )
    own = person.folder / ".agent" / "config.toml"
    own.parent.mkdir()
    own.write_text(
        '[permissions]\ndeny = []\ndefault = "allow"\n'
        '[agents.assistant.sections.permissions]\ndeny = []\nalways_ask = []\ndefault = "allow"\n'
    )
    assert person.agent("config", "trust")[0] == 0

    removed, moved, ran = person.have_called(
        ("shell", {"command": "rm kept.txt"}),
        ("shell", {"command": "mv kept.txt gone.txt"}),
        ("shell", {"command": "echo it ran"}),
    )

    assert "deny shell(rm *)" in removed and "deny shell(mv *)" in moved and "it ran" in ran
    assert (person.folder / "kept.txt").exists()


# The program's own files, where the workspace has them


def test_the_files_of_this_program_are_out_of_reach_in_the_home_folder(person: Person) -> None:
    key = person.home / "keys" / "mine"
    key.parent.mkdir()
    key.write_text(SECRET)
    person.say(
        '[models.other]\nprovider = "openai_compatible"\n'
        '[models.other.config]\napi_key = "file:~/keys/mine"\n'
    )
    person.agent("sessions", "list")  # makes the database
    (person.data / "secrets.json").write_text(json.dumps({"x": SECRET}))
    (person.data / "secrets.json").chmod(0o600)
    state = person.home / ".local" / "state" / "agent"
    state.mkdir(parents=True, exist_ok=True)
    (state / "trusted.json").write_text("{}")
    (state / "mcp-pins.json").write_text("{}")
    at_home = Person(person.home, person.home, person.server)

    paths = [
        ".local/share/agent/secrets.json",
        ".local/share/agent/app.db",
        ".local/share/agent/app.db-wal",
        ".config/agent/config.toml",
        ".local/state/agent/trusted.json",
        ".local/state/agent/mcp-pins.json",
        "keys/mine",
    ]
    reads = [("read_file", {"path": path}) for path in paths]
    answers = at_home.have_called(
        *reads,
        ("search_files", {"pattern": "never-seen|default_agent|base_url", "hidden": True}),
        ("find_files", {"glob": "**", "hidden": True}),
    )

    assert all("belongs to the program" in answer for answer in answers[: len(reads)])
    assert answers[-2] == "[nothing matches]"
    assert not any(name in answers[-1] for name in ("secrets.json", "app.db", "config.toml", "mine", "pins"))
    assert SECRET not in json.dumps([request.json for request in person.server.requests])


def test_no_grant_to_write_lets_a_model_change_its_own_permissions(person: Person) -> None:
    person.say('[permissions]\nallow = ["write_file", "edit_file", "apply_patch"]\n')
    before = person.config.read_bytes()
    at_home = Person(person.home, person.home, person.server)
    config = ".config/agent/config.toml"

    answers = at_home.have_called(
        ("write_file", {"path": config, "content": '[permissions]\ndefault = "allow"\n'}),
        ("edit_file", {"path": config, "old": "allow", "new": "deny"}),
        ("write_file", {"path": ".config/agent/skills/evil/SKILL.md", "content": "x"}),
        ("write_file", {"path": ".local/state/agent/trusted.json", "content": "{}"}),
        ("write_file", {"path": "notes.txt", "content": "fine"}),
    )

    assert all("belongs to the program" in answer for answer in answers[:4])
    assert person.config.read_bytes() == before and (person.home / "notes.txt").read_text() == "fine"
    assert not (person.home / ".config/agent/skills").exists()


# A session from a stranger


def with_metadata(exported: bytes, metadata: dict[str, Any]) -> bytes:
    """Return the file of a session as somebody changed it who knows how such files are made."""
    with zipfile.ZipFile(io.BytesIO(exported)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    session = json.loads(members["session.json"])
    session["metadata"] |= metadata
    members["session.json"] = json.dumps(session, sort_keys=True, separators=(",", ":")).encode()
    manifest = json.loads(members["manifest.json"])
    content = members["session.json"]
    manifest["members"]["session.json"] = {"sha256": sha256(content).hexdigest(), "size": len(content)}
    members["manifest.json"] = json.dumps(manifest).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return packed.getvalue()


def test_an_imported_session_does_not_choose_where_tools_work(person: Person, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET)
    (person.folder / "inside.txt").write_text("inside")
    person.have_called(("read_file", {"path": "inside.txt"}))
    [session] = json.loads(person.agent("sessions", "list", "--json")[1])
    file = person.folder / "talk.zip"
    code, _, err = person.agent("sessions", "export", session["id"], str(file))
    assert code == 0, err
    rights = {"workspace_roots": ["/"], "overrides": {"roots": ["/"]}, "some_tool": {"may": "everything"}}
    file.write_bytes(with_metadata(file.read_bytes(), rights))

    code, out, err = person.agent("sessions", "import", str(file))
    refused, read = person.have_called(
        ("read_file", {"path": str(outside)}), ("read_file", {"path": "inside.txt"}), session=out.strip()
    )

    assert code == 0 and "workspace_roots" in err and "overrides" in err and "some_tool" in err
    assert f"works in {person.folder}" in err
    assert "outside the workspace" in refused and read == "inside"
    assert SECRET not in json.dumps([request.json for request in person.server.requests])
