"""Providers without a key, without an answer and with one: what `agent run` and `agent chat` say of them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.errors import Exit
from agent_terminal_app.testing.command import run_agent
from agent_testing import ScriptedServer, chat_models, chat_reply, error_reply

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

SERVER = """
model = "mine"
[models.mine]
provider = "openai_compatible"
model = "m"
config = {{ base_url = "{url}/v1", api_key = "{key}" }}
"""


@dataclass(frozen=True)
class Machine:
    """A person's machine without any key."""

    home: Path
    environment: dict[str, str]

    def agent(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_agent(*arguments, environment=self.environment, folder=self.home, stdin=stdin)

    def configure(self, text: str) -> None:
        folder = self.home / "config" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AGENT_") and not name.endswith("_API_KEY")
    }
    return Machine(tmp_path, {**kept, **places, "HOME": str(tmp_path), "AGENT_KEYRING": "off"})


@pytest.mark.parametrize(
    ("model", "provider"),
    [("anthropic:x", "anthropic"), ("openai:x", "openai_responses"), ("gemini:x", "gemini")],
)
def test_a_run_says_which_command_stores_the_key(machine: Machine, model: str, provider: str) -> None:
    done = machine.agent("run", "--model", model, "hi")

    assert (done.returncode, done.stdout) == (Exit.NOT_CONFIGURED, "")
    told = done.stderr.splitlines()
    assert "needs an API key, and there is none" in told[0] and "Plugin" not in told[0]
    assert told[1] == f"agent: run `agent keys set {provider}`"


def test_a_chat_begins_with_a_remark_and_goes_on(machine: Machine) -> None:
    done = machine.agent("chat", "--model", "anthropic:x", stdin="/help\n")

    assert done.returncode == 0
    assert "! api.anthropic.com needs an API key" in done.stdout
    assert "`agent keys set anthropic`, or /setup" in done.stdout
    assert "/quit" in done.stdout


def test_a_key_that_settings_refer_to_and_nobody_has_is_missed_before_anything_is_sent(
    machine: Machine,
) -> None:
    with ScriptedServer(otherwise=chat_reply("Never.")) as server:
        machine.configure(SERVER.format(url=server.url, key="stored:mine"))
        done = machine.agent("run", "hi")
        assert not server.requests

    assert done.returncode == Exit.NOT_CONFIGURED
    assert "no key is stored as 'mine', run `agent keys set mine`" in done.stderr
    assert "openai_compatible" not in done.stderr


def test_a_server_of_ones_own_needs_none(machine: Machine) -> None:
    with ScriptedServer(otherwise=chat_reply("Hello.")) as server:
        machine.configure(SERVER.format(url=server.url, key=""))
        done = machine.agent("run", "hi")

    assert (done.returncode, done.stdout) == (0, "Hello.\n")


def test_what_a_provider_says_is_shown_once_with_its_host(machine: Machine) -> None:
    with ScriptedServer(otherwise=error_reply(401, "No such key.")) as server:
        machine.configure(SERVER.format(url=server.url, key=""))
        done = machine.agent("run", "hi")
        host = server.url.removeprefix("http://")

    assert done.returncode == Exit.NOT_CONFIGURED
    [told, _how_to_go_on] = done.stderr.splitlines()
    assert told.startswith(f"agent: {host} answered 401: No such key [request ")
    assert told.endswith("no API key was sent: give one in the setting api_key")
    assert "config[" not in told


def questions(server: ScriptedServer) -> int:
    """Return how often a model was asked for words; a list of models is something else."""
    return sum(one.method == "POST" for one in server.requests)


def test_a_chat_asks_for_a_title_and_a_run_takes_the_first_words(machine: Machine) -> None:
    with ScriptedServer(otherwise=chat_reply("Whales are large")) as server:
        machine.configure(SERVER.format(url=server.url, key=""))
        assert machine.agent("run", "Tell me of whales").returncode == 0
        assert questions(server) == 1
        assert machine.agent("chat", "--plain", stdin="Tell me of whales\n").returncode == 0
        assert questions(server) == 3

    listed = json.loads(machine.agent("sessions", "list", "--json").stdout)
    assert [one["title"] for one in listed] == ["Whales are large", "Tell me of whales"]


def test_a_setting_keeps_a_chat_from_asking_for_titles(machine: Machine) -> None:
    with ScriptedServer(otherwise=chat_reply("Whales are large")) as server:
        more = "[plugins.session_title]\ntitle_model = false\n"
        machine.configure(SERVER.format(url=server.url, key="") + more)
        assert machine.agent("chat", "--plain", stdin="Tell me of whales\n").returncode == 0
        assert questions(server) == 1

    [session] = json.loads(machine.agent("sessions", "list", "--json").stdout)
    assert session["title"] == "Tell me of whales"


def test_a_chat_says_why_a_provider_does_not_tell_what_it_offers(machine: Machine) -> None:
    done = machine.agent("chat", stdin="/model anthropic\n")

    assert "api.anthropic.com needs an API key" in done.stdout
    assert "run `agent keys set anthropic`" in done.stdout
    assert "It says nothing" not in done.stdout


def test_a_chat_lists_all_that_a_server_offers(machine: Machine) -> None:
    with ScriptedServer(otherwise=chat_models("one", "two")) as server:
        machine.configure(f'[plugins.openai_compatible]\nbase_url = "{server.url}/v1"\n')
        done = machine.agent("chat", stdin="/model openai_compatible\n")

    assert "openai_compatible:one" in done.stdout and "openai_compatible:two" in done.stdout


def test_a_model_that_is_not_there_is_answered_with_each_name_once(machine: Machine) -> None:
    done = machine.agent("chat", "--demo", stdin="/model nope\n")

    assert done.stdout.count("'demo'") == 1


def test_a_chat_says_why_each_plugin_is_off(machine: Machine) -> None:
    done = machine.agent("chat", stdin="/plugins\n/plugins mcp_tools\n")

    assert "off shell_tool" in done.stdout
    assert "mcp_tools (feature) is off: it is off unless" in " ".join(done.stdout.split())


def test_a_piped_chat_that_fails_says_so_by_its_exit_code(machine: Machine) -> None:
    with ScriptedServer(error_reply(401, "wrong key"), otherwise=chat_reply("Hello.")) as server:
        machine.configure(SERVER.format(url=server.url, key=""))
        failed = machine.agent("chat", stdin="Hello?\n")
        answered = machine.agent("chat", stdin="Hello?\n")

    assert (failed.returncode, answered.returncode) == (Exit.NOT_CONFIGURED, Exit.OK)
    assert "Hello." in answered.stdout
