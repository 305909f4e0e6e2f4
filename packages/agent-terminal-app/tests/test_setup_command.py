"""`agent setup` as people and scripts call it: in a terminal, in plain lines, by flags, ended at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from shutil import which
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import pexpect
import pytest

from agent_terminal_app.cli import main
from agent_terminal_app.errors import Exit
from agent_testing import ScriptedServer, anthropic_models, chat_models, error_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]
KEY = "sk-very-secret-1"
REFUSAL = error_reply(401, "invalid x-api-key", code="authentication_error", wire="anthropic")
WITH_KEY = ("setup", "--provider", "anthropic", "--key-stdin", "--yes")
ESCAPE, INTERRUPT, END = "\x1b", "\x03", "\x04"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    about = {"HOME": str(tmp_path), "AGENT_KEYRING": "off", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    return {**kept, **places, **about}


class Done(NamedTuple):
    """What a command came to."""

    returncode: int
    stderr: str


@pytest.fixture
def agent(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Return the command in this process, which is quicker to start."""
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(environment["HOME"])

    def run(*arguments: str, typed: str = "") -> Done:
        with TemporaryFile("w+") as source:
            source.write(typed)
            source.seek(0)
            monkeypatch.setattr(sys, "stdin", source)
            with pytest.raises(SystemExit) as left:
                main(list(arguments))
        shown = capsys.readouterr()
        assert KEY not in shown.out + shown.err, "a key was shown"
        assert shown.out == "", "a dialogue has no result"
        return Done(int(left.value.code or 0), shown.err)

    return run


def anthropic_at(home: Path, server: ScriptedServer) -> None:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True)
    text = f'# mine\n[plugins.anthropic]\nbase_url = "{server.url}"\n'
    (folder / "config.toml").write_text(text, encoding="utf-8")


def settings(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config" / "agent" / "config.toml").read_text(encoding="utf-8"))


def state(home: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file but the log with its mode and content."""
    return {
        str(path.relative_to(home)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(home.rglob("*"))
        if path.is_file() and "log" not in path.parts
    }


# By flags


def test_a_script_connects_a_provider_in_one_line(agent: Callable[..., Done], tmp_path: Path) -> None:
    with ScriptedServer(anthropic_models("claude-opus-5", "claude-sonnet-5")) as server:
        anthropic_at(tmp_path, server)

        done = agent(*WITH_KEY, typed=f"'{KEY}'\n")

        assert done.returncode == 0, done.stderr
    assert settings(tmp_path)["model"] == "anthropic:claude-sonnet-5"
    secrets = tmp_path / "data" / "agent" / "secrets.json"
    assert json.loads(secrets.read_text(encoding="utf-8")) == {"anthropic": KEY}


def test_a_script_connects_a_server_and_talks_to_it(agent: Callable[..., Done], tmp_path: Path) -> None:
    with ScriptedServer(chat_models("big", "small")) as server:
        arguments = ["setup", "--url", server.url, "--model", "small", "--yes"]

        assert agent(*arguments).returncode == 0

    found = settings(tmp_path)
    assert found["models"][found["model"]]["model"] == "small"
    assert found["models"][found["model"]]["config"]["api_key"] == ""


@pytest.mark.parametrize(
    ("arguments", "typed", "code", "told"),
    [
        ("--provider antropic --yes", "", Exit.USAGE, "did you mean 'anthropic'?"),
        ("--provider groq --yes", "", Exit.NOT_CONFIGURED, "set GROQ_API_KEY"),
        ("--yes", "", Exit.USAGE, "give --provider"),
        ("--model m", "", Exit.USAGE, "need --provider"),
        ("--provider groq --key-stdin", KEY, Exit.USAGE, "use --yes"),
        ("--provider groq --key-stdin --yes", " \n", Exit.USAGE, "the key is empty"),
        ("--provider groq --key-stdin --yes --no-check", KEY, Exit.USAGE, "give --model"),
        ("--url ftp://h --yes", "", Exit.FAILURE, "is not the address"),
    ],
)
def test_a_missing_flag_is_named_and_nothing_is_written(
    agent: Callable[..., Done], tmp_path: Path, arguments: str, typed: str, code: int, told: str
) -> None:
    done = agent("setup", *arguments.split(), typed=typed)

    assert done.returncode == code and told in done.stderr
    assert state(tmp_path) == {}


def test_a_key_that_is_refused_is_not_saved_by_a_script_either(
    agent: Callable[..., Done], tmp_path: Path
) -> None:
    with ScriptedServer(REFUSAL) as server:
        anthropic_at(tmp_path, server)
        before = state(tmp_path)

        done = agent(*WITH_KEY, typed=KEY)

        assert done.returncode == Exit.NOT_CONFIGURED and "invalid x-api-key" in done.stderr
        assert state(tmp_path) == before

        assert agent(*WITH_KEY, "--no-check", "--model", "m", typed=KEY).returncode == 0
    assert settings(tmp_path)["model"] == "anthropic:m"


# In plain lines


def test_the_dialogue_in_plain_lines(agent: Callable[..., Done], tmp_path: Path) -> None:
    with ScriptedServer(anthropic_models("claude-opus-5", "claude-sonnet-5")) as server:
        anthropic_at(tmp_path, server)

        done = agent("setup", typed=f"Anthropic\n{KEY}\nopus\n")

        assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr and "Which model should answer?" in done.stderr
    assert settings(tmp_path)["model"] == "anthropic:claude-opus-5"


def test_the_end_of_the_lines_is_leaving(agent: Callable[..., Done], tmp_path: Path) -> None:
    done = agent("setup", typed="Anthropic\n")

    assert done.returncode == Exit.INTERRUPTED and "Nothing was changed." in done.stderr
    assert state(tmp_path) == {}


# In a terminal


@contextmanager
def terminal(environment: dict[str, str], *arguments: str) -> Iterator[Any]:
    child = pexpect.spawn(
        AGENT[0],
        [*AGENT[1:], "setup", *arguments],
        env=environment,
        cwd=environment["HOME"],
        encoding="utf-8",
        dimensions=(40, 120),
        timeout=60,
        preexec_fn=heed_interrupts,
    )
    try:
        yield child
    finally:
        child.close(force=True)


def heed_interrupts() -> None:
    """As in a terminal, also where these tests are background work themselves."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def left(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.wait()
    return int(child.exitstatus if child.exitstatus is not None else -child.signalstatus)


STEPS = [
    ("Which model should answer.*leave\\):", "Anthropic\r"),
    ("not shown\\):", "wrong-key\r"),
    ("That did not work.*leave\\):", "1\r"),
    ("not shown\\):", f"{KEY}\r"),
    ("Which model of.*leave\\):", "\r"),
]
"""What is shown at each question of a whole dialogue, and what is typed then."""


def go_to(child: Any, step: int) -> None:
    for shown, typed in STEPS[:step]:
        child.expect(shown)
        child.send(typed)
    child.expect(STEPS[step][0])


def test_the_dialogue_in_a_terminal_shows_no_key(environment: dict[str, str], tmp_path: Path) -> None:
    with ScriptedServer(REFUSAL, anthropic_models("claude-a")) as server:
        anthropic_at(tmp_path, server)
        with terminal(environment) as child:
            child.logfile_read = shown = (tmp_path / "shown").open("w", encoding="utf-8")
            with shown:
                go_to(child, len(STEPS) - 1)
                child.send("\r")
                assert left(child) == 0
        assert server.request.headers["x-api-key"] == KEY
    text = (tmp_path / "shown").read_text(encoding="utf-8")
    assert "claude-a of Anthropic answers from now on" in text
    assert KEY not in text and "wrong-key" not in text
    assert settings(tmp_path)["model"] == "anthropic:claude-a"


WAYS: list[str | signal.Signals] = [ESCAPE, INTERRUPT, END, signal.SIGTERM, signal.SIGKILL]
EVERY = [(step, way) for step in range(len(STEPS)) for way in WAYS]
SOME = [(0, END), (1, ESCAPE), (1, signal.SIGTERM), (2, INTERRUPT), (3, signal.SIGKILL), (4, ESCAPE)]


@pytest.mark.parametrize(("step", "way"), EVERY if os.environ.get("FAULTS") else SOME, ids=str)
def test_leaving_at_any_question_leaves_everything_as_it_was(
    environment: dict[str, str], tmp_path: Path, step: int, way: str | signal.Signals
) -> None:
    with ScriptedServer(REFUSAL, anthropic_models("claude-a")) as server:
        anthropic_at(tmp_path, server)
        before = state(tmp_path)
        with terminal(environment) as child:
            go_to(child, step)
            if isinstance(way, str):
                child.send(way)
                code = int(Exit.INTERRUPTED)
            else:
                child.kill(way)
                code = {signal.SIGTERM: 143, signal.SIGKILL: -9}[way]
            assert left(child) == code
        assert state(tmp_path) == before


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_signal_ends_plain_lines_and_the_terminal_shows_again_what_is_typed(
    environment: dict[str, str], tmp_path: Path, way: signal.Signals
) -> None:
    with terminal(environment, "--plain", "--provider", "anthropic") as child:
        child.expect("not shown")
        child.waitnoecho()
        child.kill(way)

        assert left(child) == 128 + way
        assert child.getecho()
    assert state(tmp_path) == {}


# While it is written

CALLS = [(call, number) for call in ("rename", "fsync", "chmod") for number in (1, 2)]
"""What is done once for the key, and then once for the settings."""


@pytest.mark.skipif(not os.environ.get("FAULTS"), reason="is slow under strace; FAULTS=long does it")
@pytest.mark.skipif(which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("call", "number"), CALLS)
def test_killed_at_any_step_of_writing_it_leaves_no_model_without_its_key(
    environment: dict[str, str], tmp_path: Path, call: str, number: int
) -> None:
    config, secrets = (
        tmp_path / "config" / "agent" / "config.toml",
        tmp_path / "data" / "agent" / "secrets.json",
    )
    config.parent.mkdir(parents=True)
    config.write_text("# mine\n", encoding="utf-8")
    kill = f"inject={call}:signal=SIGKILL:when={number}"
    setup = [*AGENT, *WITH_KEY, "--no-check", "--model", "m"]

    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", kill, *setup],
        input=KEY.encode(),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == -signal.SIGKILL
    text = config.read_text(encoding="utf-8")
    assert text in ("# mine\n", '# mine\nmodel = "anthropic:m"\n')
    stored = json.loads(secrets.read_text(encoding="utf-8")) if secrets.exists() else {}
    assert stored in ({}, {"anthropic": KEY})
    assert stored or text == "# mine\n"
