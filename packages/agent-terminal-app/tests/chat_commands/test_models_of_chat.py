"""`/model`, `/agent`, `/tools`, `/plugins`, `/cost`, `/context`: who answers, with what, at which price."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider
from agent_terminal_app.commands.run import choose_session
from agent_terminal_app.keys import KeyStore
from agent_terminal_app.paths import Paths

if TYPE_CHECKING:
    from chat_commands.conftest import Desk


def speaking(name: str, **usage: int) -> ScriptedProvider:
    """Return a provider that says its name, and which model it was asked for."""
    told = usage or None
    return ScriptedProvider(itertools.repeat(Reply(text=f"I am {name}.", usage=told)), name=name)


class Listed(ScriptedProvider):
    """A provider that lists its models, and knows its key."""

    def __init__(self) -> None:
        super().__init__(itertools.repeat("I am listed."), name="listed")
        self.keys: list[Any] = []

    def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        self.keys.append(config.get("api_key"))
        return [{"id": "small"}, {"id": "big", "context_window": 200_000}]


@pytest.fixture
def several(desk: Desk) -> Desk:
    desk.plugins += [speaking("other", input_tokens=10, output_tokens=5), Listed()]
    desk.config["models"]["dear"] = {
        "provider": "other",
        "model": "x",
        "context_window": 1000,
        "input_price": 1_000_000.0,
        "output_price": 2_000_000.0,
    }
    desk.config["agents"]["second"] = {
        "model": "dear",
        "system_prompt": "Be brief.",
        "description": "Answers dearly.",
    }
    return desk


def test_models_are_listed_with_what_is_known_of_them(several: Desk) -> None:
    shown = several.chat("/model")

    assert shown[0].startswith("→  1  demo")
    assert shown[1].startswith("   2  dear") and "other x" in shown[1]
    assert shown[1].endswith("context 1,000 · 1e+06 in, 2e+06 out per million tokens")
    assert "demo answers. /model NUMBER or PROVIDER:MODEL takes another." in shown
    assert "/model PROVIDER lists what one offers: demo, other, listed" in shown


@pytest.mark.parametrize("name", ["dear", "other:anything"])
def test_another_model_answers_from_the_next_message_on(several: Desk, name: str) -> None:
    shown = several.chat("hello", f"/model {name}", "and now", "/model")

    assert f"{name} answers from your next message on." in shown
    assert "I am other." in shown
    assert f"{name} answers in place of demo. /model NUMBER or PROVIDER:MODEL takes another." in shown


def test_a_session_keeps_its_model_and_others_have_theirs(several: Desk) -> None:
    several.chat("/model other:anything", "hello")
    [session] = several.sessions()

    assert several.chat("again", session=session)[-1] == "I am other."
    assert several.chat("hi you")[-1] == "You said: hi you"


def test_default_goes_back_to_the_model_of_the_agent(several: Desk) -> None:
    shown = several.chat("/model 2", "hello", "/model", "/model 2", "/model default", "now")

    assert shown[-1] == "You said: now"
    with several.open() as app:
        assert app.load_session(several.sessions()[0]).metadata["overrides"] == {}


def test_a_provider_is_asked_what_it_offers(several: Desk) -> None:
    shown = several.chat("/model listed", "/model 2", "hello")

    assert shown[0] == "   1  listed:small"
    assert shown[1].startswith("   2  listed:big") and shown[1].endswith("context 200,000")
    assert shown[-1] == "I am listed."


def test_a_model_that_is_not_there_is_refused_and_nothing_changes(several: Desk) -> None:
    shown = several.chat("hello", "/model listed:huge", "/model nobody:x", "/model deer", "still")

    errors = [line for line in shown if line.startswith("Error: ")]
    assert "huge" in errors[0] and "small" in errors[0]
    assert errors[1].startswith("Error: 'nobody:x': there is no such provider: ")
    assert errors[2].startswith("Error: 'deer': there is no such model: did you mean 'dear'?")
    assert shown[-1] == "You said: still"


def test_a_provider_that_comes_into_use_gets_its_stored_key(several: Desk) -> None:
    KeyStore(Paths.of_this_user()).set("listed", "sk-stored")

    shown = several.chat("/model listed:small", "hello")

    listed = several.plugins[-1]
    assert listed.keys[-1] == "sk-stored"
    assert not any("sk-stored" in line for line in shown)


def test_a_session_that_is_resumed_has_the_key_of_its_model(several: Desk) -> None:
    KeyStore(Paths.of_this_user()).set("listed", "sk-stored")
    several.chat("/model listed:small", "hello")
    several.plugins[-1] = Listed()

    several.chat("/resume 1", "again")

    assert several.plugins[-1].keys[-1] == "sk-stored"


def test_a_chat_that_begins_with_a_session_has_the_key_of_its_model(several: Desk) -> None:
    KeyStore(Paths.of_this_user()).set("listed", "sk-stored")
    several.chat("/model listed:small", "hello")
    several.plugins[-1] = Listed()

    shown = several.chat("again", session=several.sessions()[0])

    assert several.plugins[-1].keys[-1] == "sk-stored"
    assert shown[-1] == "I am listed."


def test_a_request_of_a_script_in_a_session_has_the_key_of_its_model(several: Desk) -> None:
    KeyStore(Paths.of_this_user()).set("listed", "sk-stored")
    several.chat("/model listed:small", "hello")
    session = several.sessions()[0]
    several.plugins[-1] = Listed()

    with several.open() as app:
        list(app.chat(choose_session(app, session[:8], None), "again"))

    assert several.plugins[-1].keys[-1] == "sk-stored"


def test_agents_are_listed_and_switched(several: Desk) -> None:
    shown = several.chat("hello", "/agent", "/agent second", "and now", "/agent", "/agent third")

    assert shown[shown.index("/agent NAME switches to another one.") - 2].startswith("→ assistant")
    assert "second answers from now on." in shown
    assert "I am other." in shown
    assert any(line.startswith("→ second") and line.endswith("Answers dearly.") for line in shown)
    assert shown[-1].startswith("Error: agent 'third' is not declared")


def test_an_agent_with_another_model_than_its_own_says_so(several: Desk) -> None:
    shown = several.chat("/model listed:small", "/agent second", "/model default", "hello")

    assert "second answers from now on with listed:small; /model default takes its own model." in shown
    assert shown[-1] == "I am other."


def test_a_short_name_is_kept_by_the_whole_one(several: Desk) -> None:
    several.plugins.append(speaking("local_llama"))

    shown = several.chat("/model local", "hello")

    assert shown == ["local_llama answers from your next message on.", "I am local_llama."]
    with several.open() as app:
        assert app.load_session(several.sessions()[0]).metadata["overrides"] == {"model": "local_llama:"}
    assert several.chat("again", session=several.sessions()[0])[-1] == "I am local_llama."


def test_cost_tells_the_three_numbers_and_each_model(several: Desk) -> None:
    several.chat("/model dear", "hello", "again")
    [session] = several.sessions()

    shown = several.chat("/cost", "more", "/cost", session=session)

    first = shown.index("last request: 15 tokens")
    assert shown[first : first + 3] == [
        "last request: 15 tokens",
        "dear: 2 requests, 20 tokens in (0 cached), 10 out · 40.0000 spent",
        "this session: 30 tokens · 40.0000 spent",
    ]
    assert shown[-3] == "last request: 15 tokens"
    assert shown[-1] == "this session: 45 tokens · 60.0000 spent"


def test_cost_without_a_session_is_nothing(desk: Desk) -> None:
    assert desk.chat("/cost") == ["last request: 0 tokens", "this session: 0 tokens"]


def test_context_tells_what_is_sent_by_parts(several: Desk) -> None:
    several.config["default_agent"] = "second"

    shown = several.chat("hello " * 100, "/context")

    parts = {line[2:30].strip(): line[30:].strip() for line in shown[-6:-1]}
    assert list(parts) == ["system prompt", "1 tool", "1 message", "1 answer", "in all"]
    assert parts["1 message"].startswith("~154 tokens (")
    assert parts["in all"].endswith("% of 1,000")


def test_context_counts_what_a_policy_leaves_of_a_long_conversation(several: Desk) -> None:
    several.config["default_agent"] = "second"
    several.config["agents"]["second"]["context_policy"] = {"max_tokens": 600, "reserve_tokens": 100}

    shown = several.chat(*["tea " * 200] * 4, "/context")

    total = int(shown[-2].split("~")[1].split(" ")[0].replace(",", ""))
    assert total <= 600


def test_tools_say_which_rule_applies(desk: Desk) -> None:
    desk.config["permissions"] = {"ask": ["*"], "allow": ["clock(now)"]}

    shown = desk.chat("/tools")

    assert shown == ["  on  clock                  ask (rule *), 1 rule for some arguments Tell the time."]


def test_a_long_rule_stays_in_its_column(desk: Desk) -> None:
    desk.config["permissions"] = {"ask": ["*"], "allow": ["clock(now)"]}
    desk.width = 100

    assert desk.chat("/tools") == [
        "  on  clock                  ask (rule *), 1 rule for some  Tell the time.",
        "                             arguments",
    ]


def test_tools_that_are_off_say_why(desk: Desk) -> None:
    desk.config["agents"]["assistant"]["excluded_tools"] = ["clock"]
    assert "off clock" in desk.chat("/tools")[0]
    assert "the agent's lists of tools leave it out" in desk.chat("/tools")[0]

    desk.config["agents"]["assistant"] = {
        "model": "demo",
        "sections": {"config": {"disabled_plugins": ["clock"]}},
    }
    assert desk.chat("/tools") == [
        "  off clock                  the plugin: it is listed in disabled_plugins"
    ]


def test_a_grant_shows_as_one(desk: Desk) -> None:
    desk.config["permissions"] = {"ask": ["*"]}
    desk.chat("hello")
    [session] = desk.sessions()
    with desk.open() as app:
        app.grant("clock", scope="session", session_id=session)

    assert "allow (granted clock)" in "\n".join(desk.chat("/tools", session=session))


def test_permissions_are_listed_and_taken_back(desk: Desk) -> None:
    desk.config["permissions"] = {"deny": ["rm(*)"], "default": "ask"}
    desk.chat("hello")
    [session] = desk.sessions()
    with desk.open() as app:
        grant = app.grant("clock", scope="session", session_id=session)

    shown = desk.chat("/permissions", f"/permissions revoke {grant.id[:8]}", "/permissions", session=session)

    assert any(line.startswith("  deny       rm(*)") for line in shown)
    assert any(line.startswith("  allow      clock") and grant.id[:8] in line for line in shown)
    assert "Taken back: allow clock. It does not count for the next call." in shown
    assert not any("clock" in line for line in shown[-3:])


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        (
            "/permissions revoke zzz",
            "Error: there is no grant that begins with 'zzz': /permissions lists their ids",
        ),
        (
            "/permissions revoke",
            "Error: use /permissions, or /permissions revoke ID with the id of a grant",
        ),
        (
            "/permissions frobnicate",
            "Error: use /permissions, or /permissions revoke ID with the id of a grant",
        ),
    ],
)
def test_permissions_that_cannot_be_taken_back(desk: Desk, typed: str, problem: str) -> None:
    assert desk.chat(typed) == [problem]


def test_plugins_say_why_they_are_on_or_off(desk: Desk) -> None:
    desk.config["agents"]["assistant"]["sections"] = {"config": {"disabled_plugins": ["clock"]}}
    desk.config["plugins"] = {"demo_tolls": {}}

    shown = desk.chat("/plugins")

    assert "  on  demo                     provider   the configuration selects it" in shown
    assert "  off clock                    tool       it is listed in disabled_plugins" in shown
    assert any(line.startswith("  !   demo_tolls") for line in shown)


def test_a_plugin_is_explained(desk: Desk) -> None:
    shown = desk.chat("/plugins clock", "/plugins clocks")

    assert shown[0] == "clock (tool) is on: nothing rules it out"
    assert shown[1] == "  tool clock: Tell the time."
    assert shown[2] == "Error: there is no plugin 'clocks': did you mean 'clock'?"
