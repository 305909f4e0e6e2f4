"""MCP servers in the settings of other programs, read as ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.mcp_servers import PROGRAMS, FoundServer, known_files, read_servers
from agent_core import AgentError

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, content: Any, **environment: str) -> dict[str, FoundServer]:
    file = folder / "given.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    project = folder / "project"
    found = read_servers(file, home=folder, project=project, environment=environment)
    return {one.name: one for one in found}


def test_commands_and_addresses_are_taken_over_and_variables_stay_references(tmp_path: Path) -> None:
    given = {
        "mcpServers": {
            "notes": {
                "command": "npx",
                "args": ["-y", "notes", "${workspaceFolder}/docs", "${MODE:-fast}"],
                "env": {"NOTES_KEY": "${NOTES_KEY}", "LEVEL": "debug", "WHERE": "${env:AREA}-1"},
            },
            "web": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"X-Key": "${env:WEB_KEY}"}},
            "off": {"command": "true", "disabled": True},
        }
    }

    found = read(tmp_path, given, HOST="mcp.example", AREA="eu")

    assert found["notes"].declared == {
        "command": "npx",
        "args": ["-y", "notes", f"{tmp_path}/project/docs", "fast"],
        "env": {"NOTES_KEY": "env:NOTES_KEY", "LEVEL": "debug", "WHERE": "eu-1"},
    }
    assert found["web"].declared == {"url": "https://mcp.example/mcp", "headers": {"X-Key": "env:WEB_KEY"}}
    assert found["off"].declared == {"command": "true", "enabled": False}


def test_an_editors_file_may_have_comments_and_inputs_that_a_person_types(tmp_path: Path) -> None:
    text = """{
      // "servers": {"commented": {"command": "no"}},
      "inputs": [{"id": "key", "type": "promptString"}],
      "servers": {
        "my server!": {"type": "stdio", "command": "serve", "env": {"API_KEY": "${input:key}", "U": "a//b"},},
      },
    }"""

    [found] = read(tmp_path, text).values()

    assert (found.name, found.asked_for) == ("my_server", ("API_KEY",))
    assert found.declared == {"command": "serve", "env": {"U": "a//b"}}


def test_servers_of_a_project_count_only_in_that_project(tmp_path: Path) -> None:
    own = {str(tmp_path / "project"): {"mcpServers": {"here": {"command": "a"}}}}
    given = {"projects": {**own, "/elsewhere": {"mcpServers": {"there": {"command": "b"}}}}}

    assert list(read(tmp_path, given)) == ["here"]


def test_a_command_that_names_something_of_the_project_runs_in_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "tools").mkdir(parents=True)
    (project / "serve.py").touch()
    own = {
        "script": {"command": "python", "args": ["-u", "serve.py"]},
        "folder": {"command": "npx", "args": ["-y", "files", "."]},
        "program": {"command": "./tools"},
        "there": {"command": "python", "args": ["serve.py"], "cwd": "/elsewhere"},
        "other": {"command": "tools", "args": ["--file", "/serve.py"]},
    }

    found = read(tmp_path, {"mcpServers": own})

    folders = {name: one.declared.get("cwd") for name, one in found.items()}
    here = str(project)
    assert folders == {"script": here, "folder": here, "program": here, "there": "/elsewhere", "other": None}


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"type": "sse", "url": "https://old.example"}, "it speaks HTTP+SSE"),
        ({"type": "stdio"}, "a server of the type 'stdio' is not known"),
        ({}, "it has neither a command nor a URL"),
        ("npx", "its declaration is not a table"),
        ({"command": "${MISSING}/bin"}, "it needs the variable MISSING, which is not set"),
        (
            {"command": "npx", "args": ["--key", "${input:token}"]},
            "its command or address asks for 'token'; add it with `agent mcp add one`",
        ),
    ],
)
def test_what_cannot_be_declared_here_is_named(tmp_path: Path, declared: Any, problem: str) -> None:
    [found] = read(tmp_path, {"mcpServers": {"one": declared}}).values()

    assert found.problem.startswith(problem)


def test_a_file_that_is_no_json_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"given\.json is not JSON"):
        read(tmp_path, "{")


def test_every_program_has_files_of_the_user_and_of_the_project(tmp_path: Path) -> None:
    for program in PROGRAMS:
        files = known_files(program, tmp_path / "home", tmp_path / "project")
        assert files[0].is_relative_to(tmp_path / "home") and files[-1].is_relative_to(tmp_path / "project")
