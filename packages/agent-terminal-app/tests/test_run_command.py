"""`agent run` as scripts use it: real processes, with a provider that is installed for them alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import pytest

from agent_runtime.results import LIMITS
from agent_terminal_app.commands.run import misfit, progress_line, read_answer, read_attachment
from agent_terminal_app.errors import Exit, is_limit
from agent_terminal_app.testing.command import run_agent

if TYPE_CHECKING:
    from pathlib import Path

PROVIDER = """
import itertools, math
from agent_core import ProviderError
from agent_core.testing import Reply, ScriptedProvider, ToolCall


class Failure(ProviderError):
    def __init__(self, category):
        self.category = category
        super().__init__("tester", "stream_api", f"it failed: {category}")


def answer(messages):
    last = messages[-1]
    said = str(last["content"])
    if any(item["content"] == "circles" for item in messages):
        return Reply(tool_calls=[ToolCall("write_file", {"path": "notes.txt"})])
    if last["role"] == "tool":
        return f"The tool said: {said}"
    if said.startswith("fail "):
        return Failure(said.removeprefix("fail "))
    if said.startswith("long"):
        return Reply(text="Once upon a", extra={"finish_reason": "length"})
    if said.startswith("slow"):
        return Reply(chunks=["The first half", ", the second"], delay=[0, math.inf])
    if said.startswith("tool"):
        return Reply(tool_calls=[ToolCall("write_file", {"path": "notes.txt"})])
    if said.startswith("json"):
        return said.split("\\n")[0].removeprefix("json ")
    if said.startswith("That does not fit"):
        return '{"n": 2}' if any("learns" in str(item["content"]) for item in messages) else "no"
    if said == "parts":
        return repr(last.get("parts"))
    if said == "count":
        return str(len(messages))
    return f"You said: {said}"


class Tester(ScriptedProvider):
    def __init__(self):
        super().__init__(itertools.repeat(answer), name="tester")


class Files:
    name = "files"
    version = "1"

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
        return [{"type": "function", "function": {"name": "write_file", "description": "Write.",
                                                  "parameters": parameters}}]

    def execute_tool(self, tool_name, arguments):
        return {"success": True, "result": "written"}
"""
CONFIG = """
model = "test"
[models.test]
provider = "tester"
model = "one"
[permissions]
allow = ["write_file"]
"""


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Shell:
    """A person's machine: a home, settings, and a provider that answers by a rule."""

    home: Path
    environment: dict[str, str]

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "agent_terminal_app", *arguments]
        # As in a terminal, also where these tests are background work themselves.
        options.setdefault("preexec_fn", heed_interrupts)
        return subprocess.Popen(command, cwd=self.home, env=self.environment, **{**pipes, **options})

    def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        done = run_agent(*arguments, environment=self.environment, folder=self.home, stdin=stdin)
        return done.returncode, done.stdout, done.stderr

    def run_apart(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        """Do the same in a process of its own, as scripts do."""
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=120)
        return process.returncode, out.decode(), err.decode()

    def messages(self) -> list[tuple[str, str]]:
        """Return who said what in the only session there is."""
        code, out, err = self.run("sessions", "list", "--json")
        assert code == 0, err
        [session] = json.loads(out)
        code, out, err = self.run("sessions", "show", session["id"], "--json")
        assert code == 0, err
        return [(message["role"], message["content"]) for message in json.loads(out)["messages"]]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    about = site / "tester-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "tester_provider.py").write_text(PROVIDER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tester\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[agent_platform.providers]\ntester = tester_provider:Tester\n"
        "[agent_platform.tools]\nfiles = tester_provider:Files\n"
    )
    home = tmp_path / "home"
    config = home / "config" / "agent"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(CONFIG)
    folders = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "data", "state", "cache")}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    loaded = {"AGENT_LOAD_PLUGINS": "tester,files", "PYTHONPATH": str(site), "PYTHONUTF8": "1"}
    return Shell(home, {**kept, **folders, **loaded, "HOME": str(home)})


def with_settings(shell: Shell, more: str) -> None:
    (shell.home / "config" / "agent" / "config.toml").write_text(CONFIG + more)


def test_only_the_answer_is_on_stdout(shell: Shell) -> None:
    assert shell.run_apart("run", "hello") == (0, "You said: hello\n", "")


def with_server(shell: Shell, *lines: str) -> None:
    """Declare an MCP server that nobody has approved."""
    shell.environment["AGENT_LOAD_PLUGINS"] += ",mcp_tools"
    agent = ["[agents.helper]", 'plugin_ids = ["mcp_tools"]']
    with_settings(shell, "\n".join([*agent, "[plugins.mcp_tools.servers.tea]", *lines, ""]))


def test_servers_that_wait_for_approval_are_named_on_stderr(shell: Shell) -> None:
    mark = shell.home / "started"
    with_server(shell, 'command = "touch"', f'args = ["{mark}"]')

    code, out, err = shell.run("run", "hello")

    assert (code, out) == (0, "You said: hello\n")
    assert err == (
        "agent: MCP server tea is not approved yet, so its tools are missing: "
        "`agent mcp test tea` approves it\n"
    )
    assert not mark.exists()


def test_in_a_chat_the_command_of_the_notice_shows_what_would_run(shell: Shell) -> None:
    with_server(shell, 'command = "false"', 'env = {LD_PRELOAD = "/lib/none.so"}')

    code, out, _ = shell.run("chat", "--plain", stdin=b"/mcp\n/1\n/1\n/quit\n")

    assert code == 0
    assert "tools are missing: /mcp\n" in out
    places = [out.find(text) for text in ("not approved yet", "/lib/none.so", "exit code 1")]
    assert -1 not in places
    assert places == sorted(places)


def test_a_prompt_is_put_together_from_argument_file_and_stdin(shell: Shell) -> None:
    file = shell.home / "question.txt"
    file.write_text("from a file\n")
    code, out, _ = shell.run("run", "an argument", "--file", str(file), stdin=b"and a pipe\n")
    assert (code, out) == (0, "You said: an argument\n\nfrom a file\n\nand a pipe\n")


def test_a_dash_is_no_prompt_but_stands_for_stdin(shell: Shell) -> None:
    assert shell.run("run", "-", stdin="Grüße\n".encode())[:2] == (0, "You said: Grüße\n")


@pytest.mark.parametrize(
    ("settings", "problem", "setting"),
    [
        (
            "[agents.assistant]\nmax_rounds = 2\n",
            "the model was asked 2 times, as often as max_rounds allows",
            "`agent config set agents.assistant.max_rounds NUMBER` changes the limit",
        ),
        (
            "",
            "the model called 'write_file' 5 times with the same arguments",
            "repeated_calls in the setting agents.assistant.stop_conditions changes the limit",
        ),
    ],
)
def test_a_limit_has_a_code_of_its_own_and_its_setting_is_named(
    shell: Shell, settings: str, problem: str, setting: str
) -> None:
    (shell.home / "config" / "agent" / "config.toml").write_text(
        'plugin_ids = ["files"]\n' + CONFIG + settings
    )

    code, _, err = shell.run("run", "circles")

    assert code == Exit.LIMIT
    assert [f"agent: stopped by a limit: {problem}", f"agent: {setting}"] == err.splitlines()[:2]


def test_an_answer_that_was_cut_off_is_printed_with_the_code_of_a_limit(shell: Shell) -> None:
    code, out, err = shell.run("run", "long")

    assert (code, out) == (Exit.LIMIT, "Once upon a\n")
    assert "stopped by a limit: the answer reached the model's output limit" in err
    assert "max_tokens in the settings of the model" in err


def test_events_say_that_an_answer_was_cut_off(shell: Shell) -> None:
    code, out, _ = shell.run("run", "long", "--json")

    final = json.loads(out.splitlines()[-1])
    assert (code, final["type"], final["reason"]["code"]) == (Exit.LIMIT, "final", "length")


ASKING = CONFIG.replace('allow = ["write_file"]', "") + 'deny = ["write_file(secret*)"]\n'


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], Exit.APPROVAL),
        (["--allow", "read_file"], Exit.APPROVAL),
        (["--allow", "write_file(*.txt)"], Exit.OK),
        (["--yes-to", "edits"], Exit.OK),
        (["--allow", "write_file("], Exit.USAGE),
    ],
)
def test_calls_can_be_allowed_for_one_command(shell: Shell, options: list[str], code: int) -> None:
    (shell.home / "config" / "agent" / "config.toml").write_text('plugin_ids = ["files"]\n' + ASKING)

    assert shell.run("run", "tool", *options)[0] == code
    if code == Exit.OK:  # nothing of it is kept
        assert shell.run("run", "tool", "--continue")[0] == Exit.APPROVAL


def test_continue_takes_the_last_session_of_this_folder_and_names_a_later_one(shell: Shell) -> None:
    other = shell.home / "other"
    other.mkdir()
    there = Shell(other, shell.environment)

    code, _, err = shell.run("run", "count", "--continue")
    assert (code, err) == (1, "agent: there is no session to continue; `agent chat` begins one\n")

    assert shell.run("run", "count")[1] == "2\n"
    assert shell.run("run", "count", "--continue") == (0, "4\n", "")
    code, out, err = there.run("run", "count", "--continue")
    assert (code, out) == (1, "")
    assert "there is no session of this folder to continue; the last one is in " in err
    assert str(shell.home) in err and "agent chat --session " in err

    assert there.run("run", "count")[1] == "2\n"
    code, out, err = shell.run("run", "count", "-c")
    assert (code, out) == (0, "6\n")
    assert f"this is the last session of this folder; a later one is in {other}: " in err


@pytest.mark.parametrize("more", [["--session", "abcd"], ["--ephemeral"]])
def test_what_contradicts_continue_is_wrong_usage(shell: Shell, more: list[str]) -> None:
    assert shell.run("run", "hello", "--continue", *more)[0] == Exit.USAGE


def test_a_chat_can_begin_with_a_prompt(shell: Shell) -> None:
    code, out, _ = shell.run("chat", "--plain", "hello", stdin=b"again\n")

    assert code == 0
    assert out.index("You said: hello") < out.index("You said: again")


def test_every_limit_of_the_runtime_has_the_code_of_a_limit() -> None:
    assert {reason for reason in LIMITS if not is_limit(reason)} == set()


def test_nothing_to_ask_is_wrong_usage(shell: Shell) -> None:
    code, out, err = shell.run("run", stdin=b"  \n")
    assert (code, out) == (2, "")
    assert "nothing to ask" in err and "--file" in err


@pytest.mark.parametrize(
    ("stdin", "told"),
    [(b"\xff\xfe\x00binary", "--attach"), (b"x" * (9 << 20), "longer than 8 MB")],
    ids=["binary", "huge"],
)
def test_input_that_is_no_prompt_is_refused_before_anything_is_kept(
    shell: Shell, stdin: bytes, told: str
) -> None:
    code, out, err = shell.run("run", "sum it up", stdin=stdin)
    assert (code, out) == (2, "") and told in err
    assert not (shell.home / "data" / "agent" / "app.db").exists()


def test_a_long_text_passes_whole(shell: Shell) -> None:
    text = "word " * 200_000
    code, out, _ = shell.run("run", stdin=text.encode())
    assert code == 0 and out.strip() == f"You said: {text}".strip()


def test_events_are_one_json_object_per_line_without_sessions(shell: Shell) -> None:
    code, out, _ = shell.run("run", "--json", "tool please")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    assert code == 0 and kinds[0] == "run_start" and kinds[-1] == "final"
    assert "tool_call_result" in kinds
    assert events[-1]["text"] == "The tool said: written"
    assert not any("session" in event for event in events)


def test_progress_is_on_stderr_when_asked_for(shell: Shell) -> None:
    code, out, err = shell.run("run", "--verbose", "tool please")
    assert (code, out) == (0, "The tool said: written\n")
    assert "→" in err and "✓ write_file" in err and "--session" in err


def test_memories_that_are_left_out_are_mentioned_in_one_line(shell: Shell) -> None:
    pytest.importorskip("memory_feature")
    shell.environment["AGENT_LOAD_PLUGINS"] += ",memory"
    with_settings(shell, '[agents.helper]\nplugin_ids = ["memory"]\n')
    own = shell.home / "data" / "agent" / "memory"
    own.mkdir(parents=True, mode=0o700)
    for name in ("empty", "nothing"):
        (own / f"{name}.md").touch()

    code, out, err = shell.run("run", "hello")
    with_all = shell.run("run", "--verbose", "hello")[2]

    why = "is left out: it has no text: write at least a few words"
    assert (code, out) == (0, "You said: hello\n")
    assert err == f"agent: warning: {own}/empty.md {why} (and 1 more: --verbose)\n"
    assert f"! {own}/nothing.md {why}" in with_all


def test_people_at_a_terminal_see_what_goes_on_without_asking_for_it(shell: Shell) -> None:
    ours, theirs = os.openpty()
    process = shell.start("run", "tool please", stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"The tool said: written\n")
    assert "✓ write_file" in os.read(ours, 4096).decode()
    os.close(ours)


def test_an_answer_names_controls_on_a_terminal_and_has_none_in_a_pipe_unless_it_is_raw(shell: Shell) -> None:
    ours, theirs = os.openpty()
    process = shell.start("run", "clear\x1b[2J", stdout=theirs)
    os.close(theirs)
    process.communicate(timeout=60)
    assert os.read(ours, 4096) == b"You said: clear<U+001B>[2J\r\n"
    os.close(ours)
    assert shell.run("run", "clear\x1b[2J")[1] == "You said: clear\n"
    assert shell.run("run", "--raw", "clear\x1b[2J")[1] == "You said: clear\x1b[2J\n"


def test_a_session_goes_on_by_its_id_and_by_the_beginning_of_it(shell: Shell) -> None:
    _, out, _ = shell.run("run", "--json", "hello")
    session = json.loads(out.splitlines()[0])["session_id"]
    assert shell.run("run", "--session", session, "count")[:2] == (0, "4\n")
    assert shell.run("run", "--session", session[:8], "count")[:2] == (0, "6\n")


def test_a_session_that_is_not_there_is_an_error_and_not_a_new_session(shell: Shell) -> None:
    code, out, err = shell.run("run", "--session", "nowhere", "hello")
    assert (code, out) == (1, "") and "nowhere" in err and "agent sessions list" in err


def test_an_ephemeral_run_keeps_nothing(shell: Shell) -> None:
    assert shell.run("run", "--ephemeral", "hello")[:2] == (0, "You said: hello\n")
    assert not (shell.home / "data" / "agent" / "app.db").exists()
    assert shell.run("run", "--ephemeral", "--session", "x", "hello")[0] == 2


def test_another_agent_and_another_model_are_used(shell: Shell) -> None:
    with_settings(shell, '[agents.first]\nmodel = "test"\n[agents.second]\nmodel = "test"\n')
    code, out, _ = shell.run("run", "--json", "--agent", "second", "--model", "tester:two", "hello")
    start = json.loads(out.splitlines()[0])
    assert (code, start["agent_id"]) == (0, "second")
    assert "two" in start["model"]


def test_an_agent_that_is_not_declared_is_named(shell: Shell) -> None:
    code, out, err = shell.run("run", "--agent", "nobody", "hello")
    assert (code, out) == (3, "") and "'nobody'" in err


@pytest.mark.parametrize(
    ("category", "code"),
    [("auth", 3), ("transport", 4), ("rejected", 4), ("limit", 6), ("window", 6), ("other", 1)],
)
def test_each_kind_of_failure_has_its_exit_code(shell: Shell, category: str, code: int) -> None:
    with_settings(shell, '[agents.one]\nmodel = "test"\nsections = { retry = { max_retries = 0 } }\n')
    found, out, err = shell.run("run", f"fail {category}")
    first, second = err.splitlines()
    assert (found, out) == (code, "")
    assert first == f"agent: Plugin 'tester', hook 'stream_api': it failed: {category}"
    assert second.startswith("agent: continue with: agent run --session ")


def test_an_approval_that_is_needed_ends_the_run_and_says_what_is_asked(shell: Shell) -> None:
    with_settings(shell, 'ask = ["write_file(*)"]\n')
    code, out, err = shell.run("run", "tool please")
    assert (code, out) == (5, "")
    assert "a decision is needed" in err and 'write_file {"path":"notes.txt"}' in err
    assert "repeat the command with --allow 'write_file(notes.txt)'" in err
    assert "agent chat --session" in err


def test_an_answer_that_fits_the_schema_is_printed_as_json(shell: Shell) -> None:
    schema = shell.home / "schema.json"
    schema.write_text('{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}')
    assert shell.run("run", "--output-schema", str(schema), 'json {"n":  1}')[:2] == (0, '{"n": 1}\n')


def test_an_answer_that_does_not_fit_is_asked_for_once_more(shell: Shell) -> None:
    schema = shell.home / "schema.json"
    schema.write_text('{"type": "object", "required": ["n"]}')
    code, out, err = shell.run("run", "--output-schema", str(schema), 'json {"learns": true}')
    assert (code, out) == (0, '{"n": 2}\n') and "asking once more" in err
    code, out, err = shell.run("run", "--output-schema", str(schema), "json nothing")
    assert (code, out) == (1, "") and "it is not JSON" in err


def test_a_schema_that_is_none_is_wrong_usage(shell: Shell) -> None:
    schema = shell.home / "schema.json"
    schema.write_text('{"type": "nonsense"}')
    code, _, err = shell.run("run", "--output-schema", str(schema), "hello")
    assert code == 2 and "not a JSON Schema" in err


def test_attachments_reach_the_model_as_parts(shell: Shell) -> None:
    (shell.home / "dot.gif").write_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")
    (shell.home / "notes.md").write_text("# Notes")
    code, out, _ = shell.run("run", "parts", "-a", "dot.gif", "-a", "notes.md")
    assert code == 0
    assert "'mime_type': 'image/gif'" in out and "File notes.md:\\n\\n# Notes" in out


def test_a_run_that_takes_too_long_is_stopped_and_can_go_on_later(shell: Shell) -> None:
    code, out, err = shell.run("run", "--timeout", "0.5", "slow please")
    assert (code, out) == (124, "") and "timed out" in err and "agent run --session" in err
    assert shell.messages()[0] == ("user", "slow please")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_run_and_its_half_answer_is_kept(shell: Shell, number: int, code: int) -> None:
    process = shell.start("run", "--json", "slow please")
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "text":
            break
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"agent run --session" in err and b"Traceback" not in err
    assert shell.messages() == [("user", "slow please"), ("assistant", "The first half")]


def test_a_signal_that_is_ignored_for_background_work_stays_ignored(shell: Shell) -> None:
    process = shell.start(
        "run",
        "--json",
        "slow please",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "text":
            break
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_reader_that_leaves_ends_the_run_quietly(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = shell.start("run", "--json", "slow please", stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err == b""


def test_a_pipeline_with_head_gets_what_it_wants(shell: Shell) -> None:
    command = f'{sys.executable} -m agent_terminal_app run --json "tool please" | head -n 1'
    done = subprocess.run(
        command,
        shell=True,
        check=True,
        capture_output=True,
        cwd=shell.home,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
    )
    assert json.loads(done.stdout)["type"] == "run_start" and done.stderr == b""


@pytest.mark.parametrize(
    ("closed", "code", "out"),
    [("<&-", 0, b"You said: hello\n"), ("2>&-", 0, b"You said: hello\n"), (">&-", 1, b"")],
)
def test_closed_streams_are_no_crash(shell: Shell, closed: str, code: int, out: bytes) -> None:
    done = subprocess.run(
        f"{sys.executable} -m agent_terminal_app run hello {closed}",
        shell=True,
        check=False,
        capture_output=True,
        cwd=shell.home,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (code, out) and b"Traceback" not in done.stderr


def test_an_answer_is_read_with_and_without_a_fence() -> None:
    assert read_answer('{"n": 1}') == read_answer('```json\n{"n": 1}\n```') == {"n": 1}
    assert misfit('{"n": "x"}', {"properties": {"n": {"type": "integer"}}}) == (
        'at n: "x" is not of type "integer"'
    )


def test_a_file_of_any_kind_becomes_a_part(tmp_path: Path) -> None:
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(b"%PDF-1.7 \x00\xff")
    assert read_attachment(paper)["type"] == "file"
    assert read_attachment(paper)["mime_type"] == "application/pdf"
    large = tmp_path / "large.bin"
    large.write_bytes(b"\0" * ((8 << 20) + 1))
    with pytest.raises(click.UsageError, match="larger than 8 MB"):
        read_attachment(large)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"type": "tool_call_start", "name": "shell", "preview": "ls\x1b[2J"}, "→ ls[2J"),
        ({"type": "tool_call_result", "name": "shell", "is_error": True, "seconds": 1.25}, "✗ shell 1.2 s"),
        ({"type": "retry", "message": "busy", "seconds": 2}, "… busy: again in 2 s"),
        ({"type": "fallback", "model": "b", "instead_of": "a", "message": "gone"}, "… b in place of a: gone"),
        ({"type": "handoff", "from_agent": "desk", "to_agent": "refunds"}, "→ refunds takes over from desk"),
        ({"type": "warning", "message": "odd", "plugin": None}, "! odd"),
        ({"type": "lifecycle_error", "plugin": "title", "error": "no"}, "! title: no"),
        ({"type": "status", "text": "loading"}, "… loading"),
        ({"type": "text", "text": "hello"}, None),
    ],
)
def test_progress_has_one_safe_line_for_what_people_want_to_know(
    event: dict[str, Any], line: str | None
) -> None:
    assert progress_line(event) == line


def test_the_exit_codes_are_those_that_scripts_know() -> None:
    assert {code.name: code.value for code in Exit} == {
        "OK": 0,
        "FAILURE": 1,
        "USAGE": 2,
        "NOT_CONFIGURED": 3,
        "PROVIDER": 4,
        "APPROVAL": 5,
        "LIMIT": 6,
        "TIMEOUT": 124,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }


def test_a_trace_is_drawn_from_the_stored_events(shell: Shell) -> None:
    assert shell.run("run", "tool please")[0] == 0
    _, out, _ = shell.run("sessions", "list", "--json")
    [session] = json.loads(out)

    code, drawn, err = shell.run("trace", session["id"])

    assert code == 0, err
    assert "run of assistant" in drawn and "natural_end" in drawn
    assert [line for line in drawn.splitlines() if "tool write_file" in line and "▇" in line]
    assert drawn.count("model test") == 2
    assert drawn.count(", first token after ") == 1  # this model sends calls of tools in one piece
    code, out, _ = shell.run("trace", session["id"], "--json")
    parts = json.loads(out)[0]["parts"]
    assert all(part["end"] >= part["begin"] for part in parts)
    [streamed] = [part for part in parts if part["first"] is not None]
    assert (streamed["kind"], streamed["name"]) == ("model", "test")
    assert streamed["begin"] <= streamed["first"] <= streamed["end"]
    assert shell.run("trace", "nothing-like-it")[0] == 1


def test_a_trace_shows_retries_and_why_a_run_failed(shell: Shell) -> None:
    retry = "{ max_retries = 1, base_delay = 0.01 }"
    with_settings(shell, f'[agents.one]\nmodel = "test"\nsections = {{ retry = {retry} }}\n')
    assert shell.run("run", "fail transport")[0] == 4
    _, out, _ = shell.run("sessions", "list", "--json")
    [session] = json.loads(out)

    drawn = shell.run("trace", session["id"])[1]

    [run, *parts] = drawn.splitlines()[1:]
    assert run.startswith("run of one") and "it failed: transport" in run
    assert any("retry" in part for part in parts)
    assert "not ended" not in drawn
    [traced] = json.loads(shell.run("trace", session["id"], "--json")[1])
    assert all(part["end"] is not None for part in traced["parts"])
    assert traced["parts"][0]["end"] >= max(part["end"] for part in traced["parts"])
