"""The log: JSON lines that only their owner reads, without secrets, bounded, and never on the screen."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_app.redaction import Redactor
from agent_terminal_app import logs
from agent_terminal_app.cli import main
from agent_terminal_app.commands import doctor
from agent_terminal_app.errors import Exit
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.logs import LONGEST_LINE, LONGEST_TEXT, LogFiles, as_line
from agent_terminal_app.paths import Paths
from agent_testing import ScriptedServer, ServerReply, error_reply

KEY = "canary-9f2c41d8e7"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_KEYRING", "off")
    monkeypatch.delenv("AGENT_LOG_LEVEL", raising=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "agent" / "log"


def agent(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*")) for line in file.read_bytes().splitlines()]


def record(message: str = "something", **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("a.b", logging.WARNING, "", 0, message, (), None)
    made.__dict__["fields"] = fields
    return made


# Lines


def test_a_line_says_when_who_how_bad_and_what(folder: Path) -> None:
    logs.start_log(lambda: folder)
    try:
        assert not folder.exists()  # nothing is made before there is something to write
        logging.getLogger("agent_core.context").warning("text %s", "with a part")
        logs.note("event", number=3, path=folder)
    finally:
        logs.stop_log()

    first, second = lines(folder)
    assert (first["level"], first["logger"], first["event"]) == (
        "warning",
        "agent_core.context",
        "text with a part",
    )
    assert (second["event"], second["number"], second["path"]) == ("event", 3, str(folder))
    assert first["pid"] == os.getpid() and first["time"].endswith("+00:00")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


def test_fields_of_the_core_stay_fields(folder: Path) -> None:
    from agent_core.log import get_logger

    logs.start_log(lambda: folder)
    try:
        get_logger("app").warning("plugin_failed", plugin="x", level="not this one")
    finally:
        logs.stop_log()

    [line] = lines(folder)
    assert (line["event"], line["plugin"], line["level"]) == ("plugin_failed", "x", "warning")


def test_after_the_log_everything_is_as_it_was(folder: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), warnings.showwarning)

    logs.start_log(lambda: folder, "debug")
    logs.start_log(lambda: folder, "error")
    logs.stop_log()
    logs.stop_log()

    assert (root.level, list(root.handlers), warnings.showwarning) == before
    assert not logs.is_logging()


def test_less_is_logged_if_less_is_wanted(folder: Path) -> None:
    for level in ("debug", "warning", "off"):
        logs.start_log(lambda: folder, level)
        logs.note(f"at {level}", level="info")
        logs.stop_log()

    assert [line["event"] for line in lines(folder)] == ["at debug"]


def test_a_log_that_cannot_be_written_costs_nothing(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "a-file").write_text("", encoding="utf-8")
    logs.start_log(lambda: home / "a-file" / "log")
    try:
        logs.note("event")
    finally:
        logs.stop_log()

    assert capfd.readouterr() == ("", "")


def test_a_link_in_the_place_of_the_file_is_not_followed(home: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    (home / "other").write_text("theirs", encoding="utf-8")
    (folder / "agent-000001.jsonl").symlink_to(home / "other")

    logs.start_log(lambda: folder)
    logs.note("event")
    logs.stop_log()

    assert (home / "other").read_text(encoding="utf-8") == "theirs"


# Secrets


def planted() -> list[dict[str, Any]]:
    """Return fields that hold a secret, each in a way of its own."""
    return [
        {"text": f"a {KEY} b"},
        {"deep": [{"list": [KEY]}, (KEY,)]},
        {KEY: "as a name"},
        {"error": RuntimeError(f"refused {KEY}")},
        {"url": f"https://h/?key={KEY}"},
        {"bytes": KEY.encode()},
        {"json": json.dumps({"k": KEY})},
        {"path": Path("/") / KEY},
    ]


@pytest.mark.parametrize("fields", planted(), ids=[next(iter(one)) for one in planted()])
def test_a_known_value_is_taken_out_wherever_it_stands(fields: dict[str, Any]) -> None:
    line = as_line(record(f"message with {KEY}", **fields), Redactor([KEY]))

    assert KEY.encode() not in line
    assert json.loads(line)["event"] == "message with [redacted]"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-len(KEY) - 2, 2))
def test_cutting_a_text_leaves_no_part_of_a_secret(offset: int) -> None:
    text = "x" * (LONGEST_TEXT + offset) + KEY + "y" * 100

    line = as_line(record(text=text), Redactor([KEY])).decode()

    assert not any(KEY[:length] + "…" in line for length in range(6, len(KEY) + 1))
    assert KEY not in line


@given(st.recursive(st.text(max_size=50) | st.none() | st.floats(), st.lists, max_leaves=20), st.text())
def test_every_line_is_one_json_object_whatever_is_logged(value: Any, message: str) -> None:
    line = as_line(record(message, value=value), Redactor([KEY]))

    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line)["level"] == "warning"


def test_a_line_has_a_longest_length() -> None:
    line = as_line(record("much", texts=["x" * LONGEST_TEXT] * 100), Redactor())

    assert len(line) < LONGEST_LINE and json.loads(line)["too_long"] > LONGEST_LINE


def test_what_the_key_store_gave_and_what_the_environment_has_is_never_logged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "from-the-environment-1")
    store = KeyStore(Paths.of_this_user())
    store.set("x", KEY)
    logs._hidden.clear()
    logs.start_log(lambda: folder)
    try:
        logs.note("before")
        assert store.get("x") == KEY
        logs.note("after", text=f"{KEY} and from-the-environment-1 and sk-abcdefghij0123456789klmnop")
    finally:
        logs.stop_log()

    assert lines(folder)[1]["text"] == "[redacted] and [redacted] and [redacted]"


# Files


def test_a_full_file_is_followed_by_the_next_and_the_newest_are_kept(folder: Path) -> None:
    files = LogFiles(folder, largest=100, kept=3)
    for number in range(25):
        files.write(b"%030d\n" % number)
    files.close()

    kept = sorted(folder.iterdir())
    assert [file.name for file in kept] == ["agent-000007.jsonl", "agent-000008.jsonl", "agent-000009.jsonl"]
    assert [int(line) for file in kept for line in file.read_text().split()] == list(range(18, 25))
    assert all(file.stat().st_size <= 100 for file in kept)


def test_the_next_command_goes_on_in_the_newest_file(folder: Path) -> None:
    for text in (b"one\n", b"two\n"):
        files = LogFiles(folder, largest=100)
        files.write(text)
        files.close()

    assert [file.read_bytes() for file in folder.iterdir()] == [b"one\ntwo\n"]


def test_a_file_that_was_removed_is_made_again_and_one_that_others_could_read_is_closed_to_them(
    folder: Path,
) -> None:
    files = LogFiles(folder)
    files.write(b"one\n")
    for file in folder.iterdir():
        file.unlink()
    files.write(b"two\n")
    files.close()
    [file] = folder.iterdir()
    file.chmod(0o644)
    files.write(b"three\n")
    files.close()

    assert file.read_bytes() == b"two\nthree\n" and file.stat().st_mode & 0o777 == 0o600


def test_lines_of_several_processes_do_not_mix(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from agent_terminal_app.logs import LogFiles\n"
        "files = LogFiles(Path(sys.argv[1]), largest=20_000, kept=100)\n"
        "for n in range(300): files.write((sys.argv[2] * 50 + f'{n}\\n').encode())\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(folder), name]) for name in "abc"]
    assert [one.wait(60) for one in running] == [0, 0, 0]

    written = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    assert sorted(written) == sorted(name * 50 + str(n) for name in "abc" for n in range(300))


# Commands


def test_the_request_id_that_a_person_sees_is_in_the_log(
    home: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    with ScriptedServer(otherwise=error_reply(401, f"the key {KEY} is wrong")) as server:
        (home / "config" / "agent").mkdir(parents=True)
        (home / "config" / "agent" / "config.toml").write_text(
            f'model = "mine"\n[models.mine]\nprovider = "openai_compatible"\nmodel = "m"\n'
            f'[models.mine.config]\nbase_url = "{server.url}"\napi_key = "env:MINE"\n',
            encoding="utf-8",
        )
        assert agent("run", "hello") == Exit.NOT_CONFIGURED

    shown = capsys.readouterr().err
    assert "req_scripted" in shown and KEY not in shown
    [failed] = [line for line in lines(folder) if line["event"] == "request_failed"]
    assert failed["request_id"] == "req_scripted" and failed["category"] == "auth"
    assert all(KEY.encode() not in file.read_bytes() for file in folder.iterdir())


def test_a_fault_of_the_program_is_a_sentence_on_the_screen_and_a_traceback_in_the_log(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.hide(KEY)

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError(f"nobody expected {KEY}")

    monkeypatch.setattr(doctor, "look_at_all", broken)

    assert agent("doctor") == Exit.FAILURE

    shown = capsys.readouterr()
    assert shown.out == "" and KEY not in shown.err and str(folder) in shown.err
    assert "ZeroDivisionError: nobody expected [redacted]" in shown.err and "Traceback" not in shown.err
    [line] = lines(folder)
    assert "in broken" in line["traceback"] and KEY not in json.dumps(line)


@pytest.mark.parametrize(
    ("arguments", "variable", "logged"),
    [([], None, False), (["--log-level", "debug"], None, True), ([], "debug", True), ([], "off", False)],
)
def test_how_much_is_logged_is_said_by_flag_or_variable(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    variable: str | None,
    logged: bool,
) -> None:
    if variable:
        monkeypatch.setenv("AGENT_LOG_LEVEL", variable)

    assert agent(*arguments, "doctor") == 0  # the event loop of a check says something at this level

    assert folder.exists() is logged
    assert capsys.readouterr().err == ""


def test_a_level_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOG_LEVEL", "loud")

    assert agent("doctor") == Exit.USAGE
    assert "loud" in capsys.readouterr().err


def test_warnings_of_python_and_of_libraries_stay_off_the_screen(home: Path, folder: Path) -> None:
    program = (
        "import logging, warnings\n"
        "from agent_terminal_app import cli\n"
        "from agent_terminal_app.commands import doctor\n"
        "def speak(*_):\n"
        "    warnings.warn('an old way', UserWarning); logging.getLogger('lib').warning('from a library')\n"
        "    return []\n"
        "doctor.look_at_all = speak\n"
        "cli.main(['doctor'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=home
    )

    assert (done.stdout, done.stderr) == ("", "")
    assert [line["logger"] for line in lines(folder)] == ["py.warnings", "lib"]


CANARIES = {
    place: f"canary-{number}-5d1f7c09ab" for number, place in enumerate(["stored", "env", "file", "other"])
}
EVERYTHING = """
model = "a"
[models.a]
provider = "openai_compatible"
model = "m"
[models.a.config]
base_url = "{url}"
api_key = "stored:a"
[models.b]
provider = "openai_compatible"
model = "m"
[models.b.config]
base_url = "{url}"
api_key = "env:UNUSUAL_NAME"
[models.c]
provider = "openai_compatible"
model = "m"
[models.c.config]
base_url = "{url}"
api_key = "file:{file}"
[models.c.config.extra_headers]
Authorization = "env:UNUSUAL_NAME"
"""


def echoing(request: Any) -> ServerReply:
    """Refuse, and say in every way which key it was."""
    key = request.headers.get("authorization", "")
    return error_reply(400, f"{key} {json.dumps(key)} {key.encode()!r}").in_pieces(7)


def test_no_secret_is_in_any_log_or_message_whatever_is_done(
    home: Path, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNUSUAL_NAME", CANARIES["env"])
    monkeypatch.setenv("GROQ_API_KEY", CANARIES["other"])
    monkeypatch.setenv("AGENT_LOG_LEVEL", "debug")
    (home / "key").write_text(CANARIES["file"], encoding="utf-8")
    KeyStore(Paths.of_this_user()).set("a", CANARIES["stored"])
    (home / "config" / "agent").mkdir(parents=True)
    with ScriptedServer(otherwise=echoing) as server:
        text = EVERYTHING.format(url=server.url, file=home / "key")
        (home / "config" / "agent" / "config.toml").write_text(text, encoding="utf-8")
        for arguments in [
            *(["run", "hello", "--model", name, "--verbose"] for name in "abc"),
            ["keys", "list"],
            ["config", "get", "--json"],
            ["models", "list", "--offered"],
            ["agents", "check"],
            ["doctor", "--json"],
            *(
                ["setup", "--provider", "groq", "--url", server.url, "--yes", *more]
                for more in ([], ["--model", "m"])
            ),
        ]:
            agent(*arguments)

        sent = " ".join(request.headers.get("authorization", "") for request in server.requests)
        assert all(CANARIES[place] in sent for place in ("stored", "env", "other"))
    shown = capfd.readouterr()
    written = b"".join(file.read_bytes() for file in folder.iterdir()).decode()
    assert written.count("request_failed") == 3 and written.count("check_failed") == 2
    for canary in CANARIES.values():
        assert canary not in shown.out + shown.err + written
