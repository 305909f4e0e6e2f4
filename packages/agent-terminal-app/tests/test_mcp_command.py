"""`agent mcp` and `agent plugins add`: real servers, a real terminal, and what an agent has afterwards."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.command import run_agent
from agent_terminal_app.testing.home import KITCHEN
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytest.importorskip("mcp_tools")
AGENT = [sys.executable, "-m", "agent_terminal_app"]


class Home:
    """A new user's home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        places = {
            f"XDG_{one}_HOME": str(folder / one.lower()) for one in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.environment = {**kept, **places, "HOME": str(folder), "AGENT_KEYRING": "off"}
        self.server = folder / "kitchen.py"
        self.server.write_text(KITCHEN)

    @property
    def settings(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "config" / "agent" / "config.toml").read_text())

    @property
    def servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = self.settings["plugins"]["mcp_tools"]["servers"]
        return servers

    def use(self, server: ScriptedServer) -> None:
        """Have a scripted server answer from now on."""
        file = self.folder / "config" / "agent" / "config.toml"
        model = f'provider = "openai_compatible"\nmodel = "m"\nconfig = {{ base_url = "{server.url}/v1" }}'
        file.write_text(f'model = "scripted"\n{file.read_text()}\n[models.scripted]\n{model}\n')

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_agent(*arguments, environment=self.environment, folder=self.folder)

    def terminal(self, *arguments: str, columns: int = 100) -> Terminal:
        command = [*AGENT, *arguments]
        return Terminal(command, environment=self.environment, folder=self.folder, columns=columns, rows=30)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_a_server_is_added_and_approved_in_a_terminal_and_the_assistant_has_its_tools(
    home: Home, columns: int
) -> None:
    add = ["mcp", "add", "kitchen", "--", sys.executable, str(home.server)]
    with home.terminal(*add, columns=columns) as terminal:
        terminal.expect("Approve the start of kitchen?")
        assert "```" not in terminal.text
        assert '"command"' in terminal.text
        terminal.type("y\r")
        terminal.expect("Approve what kitchen offers?")
        assert "Brew tea." in terminal.text
        terminal.type("approve\r")
        assert terminal.end() == 0

    assert home.servers["kitchen"]["command"] == sys.executable
    listed = json.loads(home.run("mcp", "list", "--json").stdout)
    assert [(one["server"], one["state"], one["tools"]) for one in listed] == [("kitchen", "ready", ["brew"])]
    call = ToolCall("kitchen__brew", {"leaves": "assam"})
    with ScriptedServer(chat_reply("", tool_calls=[call]), chat_reply("Tea is ready.")) as server:
        home.use(server)
        answered = home.run("run", "--allow", "kitchen__*", "Make tea.")
        last = server.request.json["messages"][-1]
    assert (answered.stdout, last["content"]) == ("Tea is ready.\n", "a cup of assam")


def test_without_a_terminal_nothing_is_started_and_the_next_step_is_said(home: Home) -> None:
    added = home.run("mcp", "add", "kitchen", "--", sys.executable, str(home.server))

    assert added.returncode == 0
    assert "run `agent mcp test kitchen` in a terminal" in added.stderr
    tried = home.run("mcp", "test", "kitchen")
    assert (tried.returncode, tried.stdout) == (5, "kitchen: not approved\n")
    assert "run `agent mcp test kitchen` in a terminal" in tried.stderr


def test_a_server_whose_command_names_a_file_here_runs_here(home: Home) -> None:
    project = home.folder / "project"
    project.mkdir()
    (project / "serve.py").write_text(home.server.read_text())
    add = [*AGENT, "mcp", "add", "kitchen", "--", sys.executable, "serve.py"]
    with Terminal(add, environment=home.environment, folder=project, columns=100, rows=30) as terminal:
        terminal.expect("Approve the start of kitchen?")
        assert f"kitchen runs in {project}, where serve.py is." in " ".join(terminal.text.split())
        terminal.type("y\r")
        terminal.expect("Brew tea.")
        terminal.expect_line("Number or name")
        terminal.type("n\r")
        assert terminal.end() == 0
        assert "Before kitchen is used, approve it" in terminal.text

    assert home.servers["kitchen"]["cwd"] == str(project)


def test_servers_are_listed_where_there_is_no_embedded_model(home: Home) -> None:
    home.environment["AGENT_LOAD_PLUGINS"] = "mcp_tools,openai_compatible"
    home.run("mcp", "add", "kitchen", "--", sys.executable, str(home.server))

    listed = home.run("mcp", "list", "--json")

    assert (listed.returncode, listed.stderr) == (0, "")
    assert [one["server"] for one in json.loads(listed.stdout)] == ["kitchen"]


def test_without_the_plugin_the_package_to_install_is_named(home: Home) -> None:
    home.environment["AGENT_LOAD_PLUGINS"] = "openai_compatible"

    for command in (["list"], ["add", "kitchen", "--", "kitchen"]):
        done = home.run("mcp", *command)
        assert done.returncode == 3
        assert "pip install keelwork-mcp-tools" in done.stderr
        assert "validation_failed" not in done.stderr


def test_a_secret_is_stored_apart_and_removed_with_its_server(home: Home) -> None:
    secret = "s3cr3t-of-the-kitchen"
    home.run("mcp", "add", "kitchen", "-e", f"TEA_TOKEN={secret}", "-e", "LEVEL=debug", "--", "serve", "-x")

    assert home.servers["kitchen"] == {
        "command": "serve",
        "args": ["-x"],
        "env": {"TEA_TOKEN": "stored:mcp-kitchen-TEA_TOKEN", "LEVEL": "debug"},
    }
    assert "mcp-kitchen-TEA_TOKEN" in home.run("keys", "list").stdout
    again = home.run("mcp", "add", "kitchen", "--", "other")
    assert (again.returncode, "use --replace" in again.stderr) == (2, True)
    assert home.run("mcp", "remove", "kitchen").returncode == 0
    assert home.settings == {}
    assert "kitchen" not in home.run("keys", "list").stdout
    assert home.run("mcp", "remove", "kitchen").returncode == 2


def test_servers_of_three_programs_are_imported_once_and_nothing_is_started(home: Home) -> None:
    mark = home.folder / "started"
    files = {
        ".claude.json": {"mcpServers": {"one": {"command": "touch", "args": [str(mark)]}}},
        ".config/Code/User/mcp.json": {
            "servers": {"two": {"type": "http", "url": "https://two.example/mcp"}}
        },
        ".cursor/mcp.json": {
            "mcpServers": {
                "three": {"command": "touch", "args": [str(mark)], "env": {"API_KEY": "sk-abcdefgh12345678"}},
                "old": {"type": "sse", "url": "https://old.example"},
            }
        },
    }
    for name, content in files.items():
        path = home.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))

    refused = home.run("mcp", "import")
    assert refused.returncode == 5 and not (home.folder / "config").exists()
    assert "name the servers that you want, or say --yes for all" in refused.stderr
    done = home.run("mcp", "import", "--yes")

    assert done.returncode == 0 and "! old of " in done.stderr
    assert list(home.servers) == ["one", "two", "three"]
    assert home.servers["three"]["env"] == {"API_KEY": "stored:mcp-three-API_KEY"}
    assert "sk-abc" not in done.stdout + done.stderr
    assert "There is nothing new to import." in home.run("mcp", "import", "--yes").stderr
    assert "Before one, two and three are used, approve them: run `agent mcp test`" in done.stderr
    assert not mark.exists()


def test_a_server_that_is_named_is_imported_without_a_question(home: Home) -> None:
    servers = {"tea": {"command": "brew-tea"}, "coffee": {"command": "brew-coffee"}}
    (home.folder / ".claude.json").write_text(json.dumps({"mcpServers": servers}))

    done = home.run("mcp", "import", "tea")

    assert done.returncode == 0
    assert list(home.servers) == ["tea"]
    misspelt = home.run("mcp", "import", "cofee")
    assert misspelt.returncode == 2 and "did you mean 'coffee'" in misspelt.stderr
    nowhere = home.run("mcp", "import", "--from", "cursr")
    assert nowhere.returncode == 2 and "programs are claude, vscode, cursor" in nowhere.stderr


def test_an_import_with_yes_asks_nothing_in_a_terminal_either(home: Home) -> None:
    (home.folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"one": {"command": sys.executable, "args": [str(home.server)]}}})
    )

    with home.terminal("mcp", "import", "--yes") as terminal:
        assert terminal.end() == 0
        assert "run `agent mcp test one` in a terminal" in " ".join(terminal.text.split())


def test_no_servers_are_no_table(home: Home) -> None:
    listed = home.run("mcp", "list")

    assert (listed.returncode, listed.stdout) == (0, "")
    assert "`agent mcp add NAME -- COMMAND` adds one" in listed.stderr
    assert json.loads(home.run("mcp", "list", "--json").stdout) == []


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_an_import_in_a_terminal_asks_before_it_writes(home: Home, columns: int) -> None:
    (home.folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"one": {"command": sys.executable, "args": [str(home.server)]}}})
    )
    with home.terminal("mcp", "import", "--from", "claude", columns=columns) as terminal:
        terminal.expect_line(r"Add these to your settings\? Nothing is( started before you approve it\.)?$")
        terminal.type("leave\r")
        assert terminal.end() == 130
    assert not (home.folder / "config").exists()

    with home.terminal("mcp", "import", columns=columns) as terminal:
        terminal.expect("Add these to your settings?")
        terminal.type("y\r")
        terminal.expect("Approve the start of one?")
        terminal.type("y\r")
        terminal.expect("Approve what one offers?")
        terminal.type("y\r")
        assert terminal.end() == 0
    with home.terminal("mcp", "test", columns=columns) as terminal:
        assert terminal.end() == 0
        assert terminal.lines == ["one: ready, 1 tool", "  brew"]


def test_a_plugin_is_added_besides_the_usual_ones_and_taken_away(home: Home) -> None:
    assert home.run("plugins", "add", "files_tool").returncode == 0
    assert home.settings == {"more_plugins": ["files_tool"]}
    decisions = json.loads(home.run("plugins", "explain", "--json").stdout)["decisions"]
    assert {one["plugin"]: one["enabled"] for one in decisions}["files_tool"]

    unknown = home.run("plugins", "add", "files_tol")
    assert unknown.returncode == 2 and "did you mean 'files_tool'" in unknown.stderr
    assert home.run("plugins", "remove", "files_tool").returncode == 0
    assert home.settings == {}


def test_a_package_is_installed_only_after_a_yes(home: Home) -> None:
    with home.terminal("plugins", "add", "./no-such-folder") as terminal:
        terminal.expect("Install it?")
        assert "pip install ./no-such-folder" in terminal.text
        terminal.type("\r")
        assert terminal.end() == 130
    failed = home.run("plugins", "add", "--yes", "./no-such-folder")
    assert failed.returncode == 1 and "pip could not install" in failed.stderr


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("tools = []", "there is no setting 'tools'; it is called plugin_ids"),
        (
            "plugins = ['files_tool']",
            "plugins must be a table, not a list; names of plugins belong to plugin_ids",
        ),
        (
            "mcpServers = {}",
            "MCP servers are in plugins.mcp_tools.servers; `agent mcp add` writes them there",
        ),
        ("allowed_tools = []", "it is a field of an agent: agents.assistant.allowed_tools"),
        ("agents.assistant.tools = []", "plugins belong to plugin_ids, and names of tools to allowed_tools"),
        ("agents.assistant.max_steps = 3", "no field 'max_steps': it is called max_rounds"),
        ("model = 'opena:x'", "there is no provider 'opena', which the model 'opena:x' names"),
        ("model = 'nope'", "there is no model 'nope'"),
    ],
)
def test_a_name_of_another_place_is_refused_with_the_right_one(home: Home, written: str, told: str) -> None:
    file = home.folder / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f"{written}\n")

    refused = home.run("run", "Hello.")

    assert refused.returncode == 3
    assert told in refused.stderr
    assert "?;" not in refused.stderr
