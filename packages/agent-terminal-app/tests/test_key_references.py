"""Keys by reference: settings say where a key is, and the key gets where it is needed, and nowhere else."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.application import open_quietly
from agent_terminal_app.cli import main
from agent_terminal_app.errors import CommandError, Exit, SettingsError
from agent_terminal_app.keys import KeyLookup, KeyStore, with_keys
from agent_terminal_app.logs import hidden
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.rules import find_fault
from agent_terminal_app.settings.secrets import Reference, find_references, read_reference
from agent_testing import ScriptedServer, chat_models, chat_reply, error_reply

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-very-secret-1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_KEYRING", "off")
    monkeypatch.chdir(tmp_path)
    type_in(monkeypatch, "")
    return tmp_path


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a text on stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.fixture
def store(home: Path) -> KeyStore:
    return KeyStore(Paths.of_this_user())


def configure(home: Path, text: str) -> None:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def agent(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


# What settings may say


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("stored:groq", Reference("stored", "groq")),
        ("env:GROQ_API_KEY", Reference("env", "GROQ_API_KEY")),
        ("file:~/.keys/groq key", Reference("file", "~/.keys/groq key")),
        ("env:sk-1", None),
        ("stored:", None),
        ("keyring:x", None),
        ("file: x", None),
        ("env:A\nB", None),
        (KEY, None),
        (3, None),
    ],
)
def test_a_reference_is_not_taken_for_a_key(value: Any, meant: Reference | None) -> None:
    assert read_reference(value) == meant
    assert (find_fault({"plugins": {"x": {"api_key": value}}}) is None) is (meant is not None)


@given(st.sampled_from(["stored:a", "env:A", "file:/a"]), st.sampled_from(["api_key", "token", "X-Api-Key"]))
def test_references_are_found_where_secrets_would_be(value: str, name: str) -> None:
    values = {"plugins": {"x": {"deep": [{name: value}]}, "y": {"text": value}}}

    assert find_references(values) == [(("plugins", "x", "deep", 0, name), read_reference(value))]


def test_an_empty_key_says_that_none_is_sent() -> None:
    assert find_fault({"plugins": {"x": {"api_key": ""}}}) is None
    assert with_keys({"api_key": ""}, None) == {"api_key": ""}  # type: ignore[arg-type]  # nobody looks


# Where they lead


def test_each_form_leads_to_its_key_and_says_where_it_was(home: Path, store: KeyStore) -> None:
    store.set("groq", KEY)
    (home / "key.txt").write_text(f"{KEY}\n", encoding="utf-8")
    lookup = KeyLookup(store, {"A": f" {KEY}\n"})

    found = [
        lookup.find(Reference(*one)) for one in (("stored", "groq"), ("env", "A"), ("file", "~/key.txt"))
    ]

    assert [one.value for one in found] == [KEY] * 3
    assert [one.origin for one in found] == [
        f"{store.path}, stored as 'groq'",
        "environment A",
        f"file {home / 'key.txt'}",
    ]
    assert KEY in hidden() and KEY not in repr(found)


def test_a_key_that_is_not_to_be_had_is_explained(home: Path, store: KeyStore) -> None:
    (home / "empty").write_text(" \n", encoding="utf-8")
    os.mkfifo(home / "pipe")
    lookup = KeyLookup(store, {"EMPTY": " "})

    told = [
        lookup.find(Reference(form, name)).origin
        for form, name in [
            ("stored", "groq"),
            ("env", "EMPTY"),
            ("file", str(home / "empty")),
            ("file", str(home / "pipe")),
            ("file", str(home / "missing")),
        ]
    ]

    assert told == [
        "nowhere: no key is stored as 'groq', run `agent keys set groq`",
        "nowhere: the variable EMPTY is not set",
        f"nowhere: {home / 'empty'} is empty",
        f"nowhere: {home / 'pipe'} is not a file",
        f"nowhere: {home / 'missing'} is not a file",
    ]


def test_a_model_of_its_own_server_sends_the_key_that_its_settings_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with ScriptedServer(chat_reply("Hello.")) as server:
        declared = '[models.mine]\nprovider = "openai_compatible"\nmodel = "m"\n'
        config = f'[models.mine.config]\nbase_url = "{server.url}"\napi_key = "env:MINE"\n'
        configure(home, f'model = "mine"\n{declared}{config}')

        monkeypatch.setenv("MINE", KEY)
        assert agent("run", "hi", "--ephemeral") == 0
        assert server.request.headers["authorization"] == f"Bearer {KEY}"

        monkeypatch.delenv("MINE")
        assert agent("run", "hi", "--ephemeral") == Exit.NOT_CONFIGURED
        assert len(server.requests) == 1


def test_a_refusal_says_where_the_key_should_have_come_from(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(
        home,
        'model = "mine"\n[models.mine]\nprovider = "openai_compatible"\nmodel = "m"\n'
        '[models.mine.config]\nbase_url = "http://127.0.0.1:9"\napi_key = "stored:mine"\n',
    )

    assert agent("run", "hi", "--ephemeral") == Exit.NOT_CONFIGURED
    assert "no key is stored as 'mine', run `agent keys set mine`" in capsys.readouterr().err


def test_the_token_of_a_remote_agent_comes_from_the_store(home: Path, store: KeyStore) -> None:
    remote = '[agents.cook.endpoint]\nurl = "https://cook.example.com"\ntoken = "stored:cook"\n'
    configure(home, f'default_agent = "host"\n[agents.host]\nmodel = "local"\n[agents.cook]\n{remote}')

    with open_quietly().application(ephemeral=True) as without:
        assert "token" not in without.config["agents"]["cook"]["endpoint"]
    store.set("cook", KEY)
    with open_quietly().application(ephemeral=True) as application:
        assert application.config["agents"]["cook"]["endpoint"]["token"] == KEY


# The commands


def test_a_key_is_stored_under_any_name_that_settings_refer_to(
    home: Path, store: KeyStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, KEY)
    assert agent("keys", "set", "cook", "--stdin") == Exit.USAGE
    assert "--own" in capsys.readouterr().err and store.names() == []

    type_in(monkeypatch, KEY)
    assert agent("keys", "set", "cook", "--stdin", "--own") == 0

    configure(home, '[agents.pal.endpoint]\nurl = "https://pal.example.com"\ntoken = "stored:pal"\n')
    type_in(monkeypatch, KEY)
    assert agent("keys", "set", "pal", "--stdin") == 0  # nobody can be asked whether it works
    assert store.names() == ["cook", "pal"]


def test_a_key_that_a_model_refers_to_is_checked_with_its_server(
    home: Path, store: KeyStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(error_reply(401, "not this one"), chat_models("m")) as server:
        configure(
            home,
            f'[models.mine]\nprovider = "openai_compatible"\nmodel = "m"\n'
            f'[models.mine.config]\nbase_url = "{server.url}/v1"\napi_key = "stored:mine"\n',
        )
        codes = []
        for _ in range(2):
            type_in(monkeypatch, KEY)
            codes.append(agent("keys", "set", "mine", "--stdin"))

        assert codes == [Exit.NOT_CONFIGURED, 0]
        assert server.request.headers["authorization"] == f"Bearer {KEY}"
    told = capsys.readouterr().err
    assert "not this one" in told and KEY not in told
    assert store.get("mine") == KEY


def test_the_list_says_where_each_key_comes_from_and_shows_none(
    home: Path, store: KeyStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set("anthropic", KEY)
    monkeypatch.setenv("MINE", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    configure(
        home,
        '[plugins.x]\napi_key = "env:MINE"\n[agents.a]\nmodel = "local"\n'
        '[agents.b.endpoint]\nurl = "https://b.example.com"\ntoken = "file:/nowhere"\n',
    )

    assert agent("keys", "list") == 0

    told = capsys.readouterr().out
    assert told.splitlines() == [
        f"anthropic\t{store.path}",
        "gemini\tenvironment GEMINI_API_KEY",
        "plugins.x.api_key\tenvironment MINE",
        "agents.b.endpoint.token\tnowhere: /nowhere is not a file",
    ]
    assert KEY not in told


def test_keys_can_be_stored_while_the_settings_are_wrong(
    home: Path, store: KeyStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.set("anthropic", KEY)
    configure(home, "model = \n")

    assert agent("keys", "list") == 0

    captured = capsys.readouterr()
    assert captured.out == f"anthropic\t{store.path}\n" and "config.toml:1" in captured.err


def test_a_key_in_a_file_of_settings_is_refused_with_the_ways_to_keep_it(home: Path) -> None:
    configure(home, f'[plugins.x]\napi_key = "{KEY}"\n')

    with pytest.raises(SettingsError, match='"env:NAME"') as refused:
        open_quietly()

    assert KEY not in str(refused.value) and isinstance(refused.value, CommandError)


def test_settings_with_references_can_be_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, '[plugins.x]\napi_key = "env:MINE"\n')

    assert agent("config", "get", "--json") == 0

    assert json.loads(capsys.readouterr().out)["plugins"] == {"x": {"api_key": "env:MINE"}}


def test_a_server_is_given_the_reference_with_the_key(store: KeyStore) -> None:
    store.set("tickets", KEY)
    env = {
        "TICKETS_KEY": "stored:tickets",
        "API_TOKEN": "env:TOKEN",
        "MISSING": "stored:nobody",
        "DATABASE": "file:./dev.db",
        "PLAIN": "x",
    }
    config = {"plugins": {"mcp_tools": {"servers": {"tea": {"command": "tea", "env": env}}}}}

    given = with_keys(config, KeyLookup(store, {"TOKEN": "t"}))["plugins"]["mcp_tools"]["servers"]["tea"][
        "env"
    ]

    assert given == {
        **env,
        "TICKETS_KEY": {"reference": "stored:tickets", "value": KEY},
        "MISSING": {"reference": "stored:nobody", "value": None},
    }
