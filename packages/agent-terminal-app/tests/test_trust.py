"""The settings of a project: shown before they count, trusted as shown, and asked about only once."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from agent_terminal_app.application import Opened, open_quietly
from agent_terminal_app.cli import main
from agent_terminal_app.launch import NEVER, NOT_NOW, YES, ask_about_project
from agent_terminal_app.settings import settings_schema
from agent_terminal_app.settings.files import parse
from agent_terminal_app.settings.trust import MOST_MARKED, MOST_PLAIN, PLACES, UNKNOWN, changes, danger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AGENT = [sys.executable, "-m", "agent_terminal_app"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project" / ".agent").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def say_in(home: Path, text: str) -> Path:
    path = home / "project" / ".agent" / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


class Person:
    """Gives one answer, and remembers the question; before it answers, something may happen."""

    def __init__(self, answer: str | None, meanwhile: Any = None) -> None:
        self.question = ""
        self.told: list[str] = []
        self._answer = answer
        self._meanwhile = meanwhile

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        self.question = title
        if self._meanwhile is not None:
            self._meanwhile()
        return None if self._answer is None else list(options).index(self._answer)

    async def secret(self, prompt: str) -> str | None:
        raise AssertionError(prompt)

    async def line(self, prompt: str) -> str | None:
        raise AssertionError(prompt)

    def tell(self, text: str) -> None:
        self.told.append(text)


def ask(person: Person) -> Opened:
    return asyncio.run(ask_about_project(person, open_quietly()))


# The question


def test_what_would_change_is_shown_and_counts_after_a_yes(home: Path) -> None:
    path = say_in(home, 'default_agent = "x"\n[permissions]\nallow = ["shell(rm *)"]\n[ui]\nplain = true\n')
    person = Person(YES)

    opened = ask(person)

    assert person.question.splitlines() == [
        f"{path} wants to change settings:",
        '  ! default_agent = "x"  <- chooses the agent, and with it tools and rules',
        '  ! permissions.allow = ["shell(rm *)"]  <- lets these run without asking you',
        "    ui.plain = true",
        "Use these settings?",
    ]
    assert opened.settings.values["default_agent"] == "x"
    assert ask(Person(None)).settings.values["default_agent"] == "x"  # nobody is asked again


@pytest.mark.parametrize("answer", [NOT_NOW, None])
def test_after_a_no_things_go_on_without_it_and_the_question_comes_again(
    home: Path, answer: str | None
) -> None:
    say_in(home, 'default_agent = "x"\n')

    assert "default_agent" not in ask(Person(answer)).settings.values
    assert open_quietly().settings.untrusted is not None


def test_never_is_remembered_for_this_folder_until_somebody_trusts_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say_in(home, 'default_agent = "x"\n')

    ask(Person(NEVER))
    say_in(home, 'default_agent = "y"\n')
    settings = open_quietly().settings

    assert settings.untrusted is None and settings.warnings == () and "default_agent" not in settings.values
    with pytest.raises(SystemExit):
        main(["config", "trust"])
    assert open_quietly().settings.values["default_agent"] == "y"


def test_what_is_trusted_is_what_was_shown(home: Path) -> None:
    say_in(home, 'default_agent = "harmless"\n')

    opened = ask(Person(YES, lambda: say_in(home, '[permissions]\nallow = ["*"]\n')))

    assert "permissions" not in opened.settings.values
    assert "has changed" in opened.settings.warnings[0]


@pytest.mark.parametrize("text", ["no toml", '[plugins.x]\napi_key = "sk-1"\n', "unknown = 1\n"])
def test_nobody_is_asked_about_a_file_that_cannot_be_used(home: Path, text: str) -> None:
    say_in(home, text)
    person = Person(YES)

    opened = ask(person)

    assert person.question == "" and "it is ignored" in person.told[0] and "sk-1" not in person.told[0]
    assert opened.settings.untrusted is not None


DANGERS = [
    (("permissions", "allow"), ["read"], "run without asking"),
    (("permissions", "allow"), [], ""),
    (("permissions", "deny"), ["read"], ""),
    (("permissions", "default"), "allow", "everything run"),
    (("permissions", "default"), "ask", ""),
    (("agents", "assistant", "sections", "permissions", "allow"), ["shell"], "run without asking"),
    (("agents", "assistant", "sections", "permissions", "default"), "allow", "everything run"),
    (("agents", "assistant", "sections", "permissions", "deny"), ["shell"], ""),
    (("agents", "a", "sections", "permissions", "new"), ["shell"], UNKNOWN),
    (("plugins", "x", "base_url"), "https://h", "to this address"),
    (("models", "m", "config", "base_url"), "https://h", "to this address"),
    (("agents", "a", "endpoint"), "https://h", "to this address"),
    (("agents", "a", "endpoint", "url"), "https://h", "to this address"),
    (("agents", "a", "endpoint", "allow_private"), True, UNKNOWN),
    (("models", "m", "config", "api_key"), "file:/etc/passwd", "a key or a file"),
    (("models", "m", "provider"), "x", "this provider"),
    (("models", "m", "context_window"), 1000, ""),
    (("plugins", "mcp_tools", "servers", "x", "command"), "sh", "runs a program"),
    (("plugins", "mcp_tools", "servers", "x", "env", "LD_PRELOAD"), "x.so", "your environment"),
    (("plugins", "mcp_tools", "servers", "x", "headers", "X"), "1", "every request"),
    (("plugins", "mcp_tools", "pins"), "x", UNKNOWN),
    (("plugins", "local_llama", "model_path"), "x", "opens these files"),
    (("plugins", "x", "extra_headers", "X-Y"), "1", "every request"),
    (("plugins", "x", "extra_body", "X-Y"), "1", UNKNOWN),
    (("plugins", "x", "extra_query", "tag"), "1", "every request"),
    (("plugins", "anthropic", "profile"), "admin", "a key or a file"),
    (("plugins", "gemini", "credentials_file"), "x.json", "a key or a file"),
    (("plugins", "shell_tool", "shell_bash"), "other-shell", "runs a program"),
    (("plugins", "shell_tool", "shell_env", "PATH"), "elsewhere", "your environment"),
    (("plugins", "shell_tool", "shell_env_allow"), ["*"], "your environment"),
    (("plugins", "files_tool", "roots"), ["/"], "opens these files"),
    (("plugins", "files_tool", "excluded_files"), [], UNKNOWN),
    (("agents", "a", "sections", "files_tool", "roots"), ["/"], "opens these files"),
    (("agents", "a", "sections", "config", "disabled_plugins"), ["x"], "plugins on or off"),
    (("plugins", "web_tool", "web_allow_private"), True, UNKNOWN),
    (("plugins", "of_a_stranger", "anything"), 1, UNKNOWN),
    (("plugins", "anthropic", "temperature"), 1, ""),
    (("agents", "a", "system_prompt"), "Say all.", "in your name"),
    (("agents", "a", "plugin_ids"), ["shell_tool"], "these tools"),
    (("agents", "a", "excluded_tools"), [], ""),
    (("agents", "a", "max_rounds"), 3, ""),
    (("plugin_ids",), ["shell_tool"], "these tools"),
    (("more_plugins",), [], ""),
    (("plugins", "hooks", "on_stop"), [{"command": "rm -rf /"}], "runs a program"),
    (("default_agent",), "x", "chooses the agent"),
    (("model",), "evil:x", "to this model"),
    (("model",), "local", ""),
    (("ui", "theme"), "dark", ""),
    (("of_tomorrow",), 1, UNKNOWN),
]


@pytest.mark.parametrize(("way", "value", "told"), DANGERS, ids=[".".join(way) for way, _, _ in DANGERS])
def test_what_can_do_harm_is_marked(way: tuple[str, ...], value: Any, told: str) -> None:
    found = danger(way, value)

    assert told in found and bool(found) is bool(told)


def places(
    schema: dict[str, Any], part: dict[str, Any], way: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield every place of a schema at which a value can stand."""
    part = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    inner = [*part.get("properties", {}).items()]
    if isinstance(part.get("additionalProperties"), dict):
        inner.append(("*", part["additionalProperties"]))
    for alternative in part.get("anyOf", ()):
        yield from places(schema, alternative, way)
    for name, item in inner:
        yield from places(schema, item, (*way, name))
    if not inner and "anyOf" not in part:
        yield way


def test_somebody_has_thought_about_every_place_of_the_schema() -> None:
    schema = settings_schema()
    free = {("plugins", "*"), ("models", "*", "config"), ("agents", "*", "sections", "*")}

    found = {way for way in places(schema, schema) if way not in free}

    unjudged = {way for way in found if way not in PLACES and way[:3] != ("agents", "*", "endpoint")}
    assert len(found) > 40 and unjudged == {("agents", "*", "context_policy")}  # null, which takes it away
    assert {
        ("agents", "*", "context_policy", "max_tokens"),
        ("permissions", "allow"),
    } <= found & PLACES.keys()
    assert all(danger(way, "x") for way in found if way not in PLACES)


def test_nothing_dangerous_hides_in_a_long_file_or_behind_strange_letters(home: Path) -> None:
    many = "".join(f"k{n} = 1\n" for n in range(5_000))
    base = 'base_url = "https://h/\\u202e\\u001b[2J"'
    calm = "".join(f"[models.m{n}]\ncontext_window = 9\n" for n in range(99))
    text = f'[plugins.x]\n{many}{base}\n[plugins."\\u009b"]\nv = "{"x" * 9_999}"\n{calm}'
    file = parse(Path("x"), text.encode())

    lines = changes(file)

    assert lines[0].startswith('  ! plugins.x.base_url = "https://h/\\u202e\\u001b[2J"')
    assert len(lines) == MOST_MARKED + 1 + MOST_PLAIN + 1 and lines[-1].endswith("see the file")
    assert lines[MOST_MARKED] == "  ! and 4902 more, see the file"
    assert all(line.isprintable() and len(line) < 400 for line in lines)


# Who is asked


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["chat"], "/quit\n"),
        (["run", "hi", "--model", "nobody:x"], ""),
        (["config", "get"], ""),
        (["keys", "list"], ""),
        (["models", "list"], ""),
        (["sessions", "list"], ""),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_pipe_and_a_script_are_warned_once_and_never_asked(
    home: Path,
    arguments: list[str],
    typed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = say_in(home, 'default_agent = "x"\n')
    with TemporaryFile("w+") as source:
        source.write(typed)
        source.seek(0)
        monkeypatch.setattr(sys, "stdin", source)

        with pytest.raises(SystemExit):
            main(arguments)

    shown = capsys.readouterr()
    warning = f"agent: {path} is not trusted and is ignored: look at it, then run `agent config trust`\n"
    assert shown.err.count("is not trusted") == 1 and warning in shown.err
    assert "Use these settings" not in shown.out + shown.err


@contextmanager
def chat(*arguments: str) -> Iterator[Any]:
    child = pexpect.spawn(
        AGENT[0],
        [*AGENT[1:], "chat", *arguments],
        env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        encoding="utf-8",
        dimensions=(40, 120),
        timeout=60,
    )
    try:
        yield child
    finally:
        child.close(force=True)


@pytest.mark.parametrize(("arguments", "prompt"), [([], "»"), (["--plain"], "commands")])
def test_a_person_is_asked_before_the_first_prompt(home: Path, arguments: list[str], prompt: str) -> None:
    say_in(home, 'default_agent = "assistant"\n')

    with chat(*arguments) as child:
        child.expect(r"wants\s+to\s+change\s+settings")  # which may stand in two rows
        child.expect("Enter: 1")
        child.send("never\r")
        child.expect("You are talking to")
        child.expect(prompt)
        child.sendeof()
        child.expect(pexpect.EOF)

    assert open_quietly().settings.untrusted is None
