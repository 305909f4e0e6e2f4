"""The dialogue that connects a model, with real servers, and with people who leave at any step."""

from __future__ import annotations

import asyncio
import json
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.application import Opened, open_quietly
from agent_terminal_app.errors import CommandError
from agent_terminal_app.first_run import dialogue, models as checking
from agent_terminal_app.first_run.ask import listed, matching
from agent_terminal_app.first_run.connections import Connection, Found, own_server
from agent_terminal_app.first_run.dialogue import is_in_the_clear, read_address, set_up
from agent_terminal_app.first_run.draft import Draft
from agent_terminal_app.first_run.models import described
from agent_terminal_app.keys import KeyStore
from agent_testing import (
    ScriptedServer,
    ServerReply,
    anthropic_models,
    captive_portal,
    chat_models,
    error_reply,
    json_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent_terminal_app.first_run.draft import Outcome

KEY = "sk-very-secret-1"
REFUSAL = error_reply(401, "invalid x-api-key", code="authentication_error", wire="anthropic")

Answer = str | int | None | BaseException


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("config", "data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_KEYRING", "off")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def nobody_nearby(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens on this machine by chance is not part of these tests."""

    async def nobody() -> list[Any]:
        return []

    monkeypatch.setattr(dialogue, "servers_nearby", nobody)


class Person:
    """Gives the answers of a script, and remembers what was asked and told."""

    def __init__(self, *answers: Answer) -> None:
        self.asked: list[str] = []
        self.told: list[str] = []
        self.options: list[list[str]] = []
        self._answers = list(answers)

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        self.options.append(list(options))
        answer = self._next(title)
        if not isinstance(answer, str):
            return answer
        [number] = [place for place, option in enumerate(options) if answer in option]
        return number

    async def secret(self, prompt: str) -> str | None:
        return self._text(prompt)

    async def line(self, prompt: str) -> str | None:
        return self._text(prompt)

    def tell(self, text: str) -> None:
        self.told.append(text)

    @property
    def heard(self) -> str:
        return "\n".join([*self.told, *self.asked])

    def _text(self, prompt: str) -> str | None:
        answer = self._next(prompt)
        assert not isinstance(answer, int)
        return answer

    def _next(self, question: str) -> str | int | None:
        self.asked.append(question)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def configure(home: Path, text: str) -> None:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text, encoding="utf-8")


def settings(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config" / "agent" / "config.toml").read_text(encoding="utf-8"))


def secrets(home: Path) -> Any:
    return json.loads((home / "data" / "agent" / "secrets.json").read_text(encoding="utf-8"))


def state(home: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a folder with its mode and content."""
    return {
        str(path.relative_to(home)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def talk(person: Person, draft: Draft | None = None, opened: Opened | None = None) -> Outcome:
    return asyncio.run(set_up(person, opened or open_quietly(), draft))


def anthropic_at(home: Path, server: ScriptedServer) -> None:
    configure(home, f'# mine\n[plugins.anthropic]\nbase_url = "{server.url}"\n')


# What is written


def test_a_provider_with_a_key_that_is_typed(home: Path) -> None:
    with ScriptedServer(anthropic_models("claude-haiku-4", "claude-sonnet-5", "claude-opus-5")) as server:
        anthropic_at(home, server)
        person = Person("Anthropic", f' "{KEY}" \n', 0)

        outcome = talk(person)

        assert server.request.headers["x-api-key"] == KEY
    assert outcome.model == "anthropic:claude-sonnet-5"
    assert settings(home)["model"] == "anthropic:claude-sonnet-5"
    assert secrets(home) == {"anthropic": KEY}
    assert (home / "data" / "agent" / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert "# mine" in (home / "config" / "agent" / "config.toml").read_text(encoding="utf-8")
    assert KEY not in person.heard
    assert person.options[-1] == [
        "claude-sonnet-5  (recommended)",
        "claude-opus-5  (recommended)",
        "claude-haiku-4  (recommended)",
    ]


def test_a_key_in_the_environment_is_offered_first_and_never_copied(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ScriptedServer(anthropic_models("claude-a")) as server:
        anthropic_at(home, server)
        person = Person(0, 0)

        outcome = talk(person)

        assert server.request.headers["x-api-key"] == KEY
    assert person.options[0][0] == "Anthropic  (ANTHROPIC_API_KEY found in the environment, use it)"
    assert person.options[0][-1] == "stay with the embedded model"
    assert outcome.key_at == "" and not (home / "data").exists()
    assert KEY not in json.dumps(settings(home))


def test_a_service_gets_its_key_by_reference(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with ScriptedServer(chat_models("llama-9")) as server:
        groq = Connection(
            name="groq", label="Groq", provider="openai_compatible", base_url=f"{server.url}/v1"
        )

        talk(Person(0), Draft(connection=groq, reference="env:GROQ_API_KEY"))

        assert server.request.headers["authorization"] == f"Bearer {KEY}"
        assert server.request.path == "/v1/models"
        assert settings(home) == {
            "model": "groq",
            "models": {
                "groq": {
                    "provider": "openai_compatible",
                    "model": "llama-9",
                    "config": {"base_url": f"{server.url}/v1", "api_key": "env:GROQ_API_KEY"},
                }
            },
        }


def test_a_server_of_ones_own_is_asked_without_any_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer(chat_models("qwen:8b", "text-embed")) as server:
        person = Person("a server of your own", "not a place", server.url, 0)

        outcome = talk(person)

        assert "authorization" not in server.request.headers
        declared = settings(home)["models"][outcome.model]
        assert declared["config"] == {"base_url": f"{server.url}/v1", "api_key": ""}
        assert declared["model"] == "qwen:8b"
    assert "'not a place' is not the address of a server" in person.heard


def test_a_server_that_wants_a_key_is_asked_again_with_one(home: Path) -> None:
    with ScriptedServer(error_reply(401, "no key"), chat_models("m")) as server:
        person = Person("a server of your own", server.url, "Type a key", KEY, 0)

        outcome = talk(person)

        assert server.request.headers["authorization"] == f"Bearer {KEY}"
    assert secrets(home) == {outcome.model: KEY}
    assert settings(home)["models"][outcome.model]["config"]["api_key"] == f"stored:{outcome.model}"
    assert open_quietly().application().config["models"][outcome.model]["config"]["api_key"] == KEY


def test_what_was_found_nearby_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(chat_models("tiny")) as server:
        nearby = own_server(f"{server.url}/v1", "Ollama")

        async def found() -> list[Any]:
            return [Found(nearby, "", "Ollama answers on a port")]

        monkeypatch.setattr(dialogue, "servers_nearby", found)
        person = Person(0, 0)

        outcome = talk(person)

    assert person.options[0][0] == "Ollama  (Ollama answers on a port, use it)"
    assert settings(home)["models"][outcome.model]["model"] == "tiny"


def test_staying_with_the_embedded_model_is_a_choice_as_well(home: Path) -> None:
    outcome = talk(Person("stay with the embedded model"))

    assert settings(home) == {"model": "local"} and outcome.label == "The embedded model"


def test_choosing_again_changes_what_was_written_and_leaves_alone_what_people_wrote(home: Path) -> None:
    with ScriptedServer(otherwise=chat_models("a", "b")) as server:
        name = own_server(f"{server.url}/v1").name
        draft = Draft(connection=own_server(f"{server.url}/v1"), key="")

        assert talk(Person("a"), draft).model == name
        assert talk(Person("b"), draft).model == name
        assert settings(home)["models"][name]["model"] == "b"

        configure(home, f'[models.{name}]\nprovider = "demo"\ncontext_window = 9\n')
        assert talk(Person("a"), draft).model == f"{name}-2"
        assert settings(home)["models"][name] == {"provider": "demo", "context_window": 9}


def test_what_overrides_the_new_setting_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MODEL", "demo:x")

    outcome = talk(Person("stay with the embedded model"))

    assert outcome.remark == "Here demo:x still answers, because of environment AGENT_MODEL."


# What does not work


FAILURES = [
    (REFUSAL, "invalid x-api-key", "Type a key"),
    (captive_portal(), "sent a web page", "Try again"),
    (error_reply(503, "too busy"), "too busy", "Try again"),
    (json_reply({"data": []}), "offers no model", "Try again"),
    (json_reply([]), "not a JSON object", "Try again"),
    (error_reply(404, "no such page"), "no such page", "Type another address"),
]


@pytest.mark.parametrize(("reply", "reason", "first"), FAILURES, ids=[reason for _, reason, _ in FAILURES])
def test_the_exact_reason_is_shown_and_nothing_is_saved_unless_asked_for(
    home: Path, reply: ServerReply, reason: str, first: str
) -> None:
    with ScriptedServer(otherwise=reply) as server:
        before = state(home)
        connection = Connection(
            name="x", label="X", provider="openai_compatible", base_url=f"{server.url}/v1"
        )
        person = Person(None)

        assert not talk(person, Draft(connection=connection, key=KEY)).changed
        assert reason in person.asked[-1] and KEY not in person.heard
        assert person.options[-1][0] == first
        assert state(home) == before

        person = Person("Save it anyway, unchecked", " some-model ")
        assert talk(person, Draft(connection=connection, key=KEY)).changed
    assert settings(home)["models"]["x"]["model"] == "some-model" and secrets(home) == {"x": KEY}


def test_a_provider_that_is_slow_is_not_waited_for(home: Path) -> None:
    with ScriptedServer(otherwise=chat_models("m").never_begin()) as server:
        draft = Draft(connection=own_server(f"{server.url}/v1"), key="")

        with pytest.raises(checking.CheckFailedError, match=r"did not answer within 0\.05 seconds") as failed:
            asyncio.run(checking.offered_models(draft, open_quietly(), patience=0.05))

        assert failed.value.category == "transport"


def test_the_time_that_a_slow_machine_takes_to_load_a_plugin_is_not_the_providers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    load, within = checking._provider, checking._within

    def loading(name: str) -> Any:
        happened.append("loaded")
        return load(name)

    async def timed(seconds: float, work: Callable[[], Any]) -> Any:
        happened.append("the clock runs")
        return await within(60, work)

    monkeypatch.setattr(checking, "_provider", loading)
    monkeypatch.setattr(checking, "_within", timed)
    with ScriptedServer(otherwise=chat_models("m")) as server:
        draft = Draft(connection=own_server(f"{server.url}/v1"), key="")
        asyncio.run(checking.offered_models(draft, open_quietly()))

    assert happened == ["loaded", "the clock runs"]


def test_one_can_try_again_with_another_key_or_choose_something_else(home: Path) -> None:
    with ScriptedServer(REFUSAL, REFUSAL, anthropic_models("claude-a")) as server:
        anthropic_at(home, server)
        person = Person("Anthropic", "wrong-1", "Type a key", "two words", "wrong-2", "Choose something else")
        person._answers += ["Anthropic", KEY, 0]

        talk(person)

        assert [request.headers["x-api-key"] for request in server.requests] == ["wrong-1", "wrong-2", KEY]
    assert secrets(home) == {"anthropic": KEY}
    assert "the key holds spaces" in person.heard


def test_a_key_is_put_back_if_the_settings_cannot_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_quietly()
    KeyStore(opened.paths).set("anthropic", "the-old-one")
    (home / "a-file").write_text("", encoding="utf-8")
    monkeypatch.setenv("AGENT_CONFIG", str(home / "a-file" / "config.toml"))
    before = state(home)
    with ScriptedServer(otherwise=anthropic_models("claude-a")) as server:
        connection = Connection(name="anthropic", label="A", provider="anthropic", base_url=server.url)

        for name in ("anthropic", "new"):
            draft = Draft(connection=own_server(server.url) if name == "new" else connection, key=KEY)
            with pytest.raises(CommandError):
                talk(Person(0), draft, opened)

    assert state(home) == before


# Leaving


def leavings() -> list[tuple[int, Callable[[], Answer]]]:
    """Return each question of a whole dialogue, with each way of leaving there."""
    ways: list[Callable[[], Answer]] = [
        lambda: None,
        asyncio.CancelledError,
        KeyboardInterrupt,
    ]
    return [(step, way) for step in range(5) for way in ways]


@pytest.mark.parametrize(("step", "way"), leavings())
def test_whoever_leaves_at_any_question_leaves_everything_as_it_was(
    home: Path, step: int, way: Callable[[], Answer]
) -> None:
    with ScriptedServer(REFUSAL, anthropic_models("claude-a")) as server:
        anthropic_at(home, server)
        answers: list[Answer] = ["Anthropic", "wrong", "Type a key", KEY, 0]
        before = state(home)
        person = Person(*answers[:step], way())

        with suppress(asyncio.CancelledError, KeyboardInterrupt):
            assert not talk(person).changed

        assert len(person.asked) == step + 1
    assert state(home) == before
    assert not (home / "data").exists()


# Addresses, lists, models


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("localhost:8080", "http://localhost:8080/v1"),
        (" https://llm.example.com/ ", "https://llm.example.com/v1"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1"),
        ("http://h/api/v1/models/", "http://h/api/v1"),
        ("'http://[::1]:8000/v1'", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_read_as_it_was_meant(typed: str, meant: str) -> None:
    assert read_address(typed) == meant
    assert read_address(meant) == meant


@pytest.mark.parametrize(
    "typed", ["", "ftp://h", "http://", "http://u:p@h", "two words", "http://h:x", "h:0"]
)
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(CommandError, match="is not the address"):
        read_address(typed)


def test_a_key_that_could_be_read_on_the_way_is_warned_of() -> None:
    assert is_in_the_clear("http://llm.example.com/v1")
    assert not is_in_the_clear("https://llm.example.com/v1") and not is_in_the_clear("http://127.0.0.1:1/v1")


NAMES = st.lists(
    st.sampled_from(["alpha", "beta", "beta-2", "gamma one", "12", "a b c"]), unique=True, min_size=1
)


@given(NAMES, st.data())
def test_a_thing_of_a_list_is_meant_by_its_number_and_by_its_name(names: list[str], data: Any) -> None:
    place = data.draw(st.integers(0, len(names) - 1))
    options = [f"{name}  (about it)" for name in names]

    assert matching(options, str(place + 1)) == [place]
    if not names[place].isdigit():
        assert matching(options, f" {names[place].upper()} ") == [place]
    assert matching(options, "") == [0]
    assert all(0 <= found < len(options) for found in matching(options, data.draw(st.text(max_size=5))))


def test_of_a_long_list_the_beginning_is_shown() -> None:
    lines = listed([f"model-{n}" for n in range(100)])

    assert len(lines) == 21 and lines[-1] == "  and 80 more: type a part of the name"
    assert listed(["a", "b", "c"], [2]) == ["   3  c"]


def test_what_is_known_of_a_model_is_shown() -> None:
    assert (
        described({"id": "m", "context_window": 200_000}, recommended=True)
        == "m  (recommended, 200k context)"
    )
    assert described({"id": "m", "context_window": 1_048_576}, recommended=False) == "m  (1M context)"
    assert described({"id": "m"}, recommended=False) == "m"
