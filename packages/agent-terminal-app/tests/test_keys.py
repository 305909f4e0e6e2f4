"""Keys: where they are kept, who may read them, and that no command shows one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.keys import KeyStore, clean_key
from agent_terminal_app.paths import Paths
from agent_terminal_app.testing.command import run_agent
from agent_testing import ScriptedServer, anthropic_models, error_reply

AGENT = [sys.executable, "-m", "agent_terminal_app"]
KEY = "sk-very-secret-1"
_RING = """
import json, os, pathlib
_file = pathlib.Path(os.environ["RING"])
def _all():
    return json.loads(_file.read_text()) if _file.exists() else {}
def get_password(service, name):
    return _all().get(f"{service}/{name}")
def set_password(service, name, key):
    _file.write_text(json.dumps({**_all(), f"{service}/{name}": key}))
def delete_password(service, name):
    _file.write_text(json.dumps({k: v for k, v in _all().items() if k != f"{service}/{name}"}))
"""
_LOCKED = (
    "def get_password(*_): raise RuntimeError('locked')\nset_password = delete_password = get_password\n"
)
_SILENT = "import threading\ndef get_password(*_): threading.Event().wait()\nset_password = get_password\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(
        config=tmp_path / "config" / "agent",
        data=tmp_path / "data" / "agent",
        state=tmp_path / "state" / "agent",
        cache=tmp_path / "cache" / "agent",
    )


@pytest.fixture
def store(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> KeyStore:
    monkeypatch.setenv("AGENT_KEYRING", "off")
    return KeyStore(paths)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, **places, "HOME": str(tmp_path), "AGENT_KEYRING": "off"}


def agent(environment: dict[str, str], *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    if "PYTHONPATH" in environment:  # another keyring, which this process has not
        done = subprocess.run(
            [*AGENT, *arguments],
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=environment["HOME"],
        )
    else:
        done = run_agent(*arguments, environment=environment, folder=Path(environment["HOME"]), stdin=typed)
    assert KEY not in done.stdout + done.stderr, "a key was shown"
    return done


def heed_interrupts() -> None:
    """As in a terminal, also where these tests are background work themselves."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def asked_for_a_key(environment: dict[str, str]) -> Any:
    """Return a terminal in which the command waits for a key."""
    child = pexpect.spawn(
        AGENT[0],
        [*AGENT[1:], "keys", "set", "anthropic", "--no-check"],
        env={**environment, "TERM": "xterm"},
        cwd=environment["HOME"],
        encoding="utf-8",
        timeout=60,
        preexec_fn=heed_interrupts,
    )
    child.expect("not shown")
    child.waitnoecho()
    return child


def with_ring(environment: dict[str, str], tmp_path: Path, ring: str) -> dict[str, str]:
    """Put a keyring of our own where Python looks first."""
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "keyring.py").write_text(ring, encoding="utf-8")
    places = {"PYTHONPATH": str(tmp_path / "ring"), "RING": str(tmp_path / "ring.json")}
    return {**environment, **places, "AGENT_KEYRING": ""}


# The store


def test_a_key_is_kept_until_it_is_removed(store: KeyStore, paths: Paths) -> None:
    assert store.get("anthropic") is None and store.names() == []
    assert not paths.data.exists()

    assert store.set("anthropic", KEY) == str(paths.secrets)
    store.set("gemini", "other")
    store.set("gemini", "newer")

    assert store.names() == ["anthropic", "gemini"]
    assert (store.get("anthropic"), store.get("gemini")) == (KEY, "newer")
    assert store.origin("anthropic") == str(paths.secrets)
    assert store.remove("anthropic") and not store.remove("anthropic")
    assert store.get("anthropic") is None and store.origin("anthropic") is None


def test_only_their_owner_can_read_keys(store: KeyStore, paths: Paths) -> None:
    store.set("anthropic", KEY)

    assert paths.secrets.stat().st_mode & 0o777 == 0o600
    assert paths.data.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in paths.data.iterdir()] == ["secrets.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_can_reach_is_not_used(store: KeyStore, paths: Paths, mode: int) -> None:
    store.set("anthropic", KEY)
    paths.secrets.chmod(mode)

    for ask in (store.names, lambda: store.get("anthropic"), lambda: store.set("gemini", "x")):
        with pytest.raises(CommandError, match=f"chmod 600 {paths.secrets}") as refused:
            ask()
        assert refused.value.code == Exit.NOT_CONFIGURED


@pytest.mark.parametrize("damage", ["", "[", "[1]", '{"anthropic": 3}', "\x00"])
def test_a_damaged_file_is_reported_and_not_overwritten(store: KeyStore, paths: Paths, damage: str) -> None:
    store.set("anthropic", KEY)
    paths.secrets.write_text(damage, encoding="utf-8")

    with pytest.raises(CommandError, match="cannot be read"):
        store.set("gemini", "x")

    assert paths.secrets.read_text(encoding="utf-8") == damage


@pytest.mark.parametrize(
    "typed", [KEY, f"  {KEY}\n", f'"{KEY}"', f" '{KEY}' \r\n", f"\u201c{KEY}\u201d", f"`{KEY}`"]
)
def test_what_comes_along_with_a_copied_key_is_taken_off(typed: str) -> None:
    assert clean_key(typed) == KEY


@pytest.mark.parametrize("typed", ["", " \n", '""', "two words", "a\nb", "sch\u00f6n", "a\x1b[0m"])
def test_what_can_be_no_key_is_refused(typed: str) -> None:
    with pytest.raises(CommandError) as refused:
        clean_key(typed)

    assert refused.value.code == Exit.USAGE


# The commands


def test_a_key_is_stored_listed_and_removed(environment: dict[str, str], tmp_path: Path) -> None:
    secrets = tmp_path / "data" / "agent" / "secrets.json"

    stored = agent(environment, "keys", "set", "openai", "--stdin", "--no-check", typed=f' "{KEY}"\n')
    assert (stored.returncode, stored.stdout) == (0, "")
    assert json.loads(secrets.read_text(encoding="utf-8")) == {"openai_responses": KEY}

    listed = agent({**environment, "GOOGLE_API_KEY": KEY}, "keys", "list")
    assert listed.stdout.splitlines() == [
        f"openai_responses\t{secrets}",
        "gemini\tenvironment GOOGLE_API_KEY",
    ]

    assert agent(environment, "keys", "remove", "openai").returncode == 0
    assert agent(environment, "keys", "list").stdout == ""
    assert agent(environment, "keys", "remove", "openai").returncode == Exit.USAGE
    assert agent(environment, "keys", "path").stdout == f"{secrets}\n"


def test_a_key_is_checked_with_the_provider_before_it_is_stored(
    environment: dict[str, str], tmp_path: Path
) -> None:
    refusal = error_reply(401, "invalid x-api-key", code="authentication_error", wire="anthropic")
    with ScriptedServer(refusal, anthropic_models("claude-a")) as server:
        assert agent(environment, "config", "set", "plugins.anthropic.base_url", server.url).returncode == 0

        refused = agent(environment, "keys", "set", "anthropic", "--stdin", typed=KEY)
        assert refused.returncode == Exit.NOT_CONFIGURED
        assert "invalid x-api-key" in refused.stderr and "--no-check" in refused.stderr
        assert not (tmp_path / "data").exists()

        assert agent(environment, "keys", "set", "anthropic", "--stdin", typed=KEY).returncode == 0
        assert server.request.headers["x-api-key"] == KEY
    assert KEY in (tmp_path / "data" / "agent" / "secrets.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["antropic", "--stdin"], "did you mean 'anthropic'?"),
        (["local", "--stdin"], "local_llama needs no key"),
        (["anthropic"], "--stdin"),
        (["anthropic", "--stdin", "--no-check"], "the key is empty"),
    ],
)
def test_a_key_that_cannot_be_stored_is_reported(
    environment: dict[str, str], tmp_path: Path, arguments: list[str], told: str
) -> None:
    done = agent(environment, "keys", "set", *arguments)

    assert done.returncode == Exit.USAGE
    assert told in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_key_that_is_typed_is_not_shown(environment: dict[str, str], tmp_path: Path) -> None:
    child = asked_for_a_key(environment)
    child.sendline(KEY)
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0
    assert "is stored in" in child.before and KEY not in child.before
    assert KEY in (tmp_path / "data" / "agent" / "secrets.json").read_text(encoding="utf-8")


def test_leaving_the_question_stores_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    child = asked_for_a_key(environment)
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == Exit.INTERRUPTED
    assert not (tmp_path / "data").exists()


# The keyring


def test_a_keyring_that_works_holds_the_key(environment: dict[str, str], tmp_path: Path) -> None:
    with_keyring = with_ring(environment, tmp_path, _RING)

    stored = agent(with_keyring, "keys", "set", "anthropic", "--stdin", "--no-check", typed=KEY)

    assert stored.returncode == 0 and "the keyring" in stored.stderr
    secrets = tmp_path / "data" / "agent" / "secrets.json"
    assert json.loads(secrets.read_text(encoding="utf-8")) == {"anthropic": None}
    assert json.loads((tmp_path / "ring.json").read_text(encoding="utf-8")) == {"agent/anthropic": KEY}
    assert agent(with_keyring, "keys", "list").stdout == "anthropic\tkeyring\n"
    assert agent(with_keyring, "keys", "remove", "anthropic").returncode == 0
    assert json.loads((tmp_path / "ring.json").read_text(encoding="utf-8")) == {}


@pytest.mark.parametrize("ring", [_LOCKED, _SILENT], ids=["locked", "silent"])
def test_a_keyring_that_does_not_answer_is_gone_around(
    environment: dict[str, str], tmp_path: Path, ring: str
) -> None:
    without = with_ring(environment, tmp_path, ring)

    assert agent(without, "keys", "set", "anthropic", "--stdin", "--no-check", typed=KEY).returncode == 0

    secrets = tmp_path / "data" / "agent" / "secrets.json"
    assert json.loads(secrets.read_text(encoding="utf-8")) == {"anthropic": KEY}
    assert agent(without, "keys", "list").stdout == f"anthropic\t{secrets}\n"
