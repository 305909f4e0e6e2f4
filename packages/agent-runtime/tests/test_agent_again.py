"""An agent that is made again: nothing is decided a second time, and nothing that changes is shared."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import tool
from agent_runtime import Agent, BuildError, ModelSpec
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def look_up(table: str, row: int = 0) -> str:
    """Look something up."""
    return f"{table} {row}"


@tool
def count(text: str) -> int:
    """Count letters."""
    return len(text)


def made(**changes: Any) -> Agent[None, str]:
    settings = {"config": {"base_url": "http://127.0.0.1:9/v1", "api_key": "k"}, "max_rounds": 7, **changes}
    return Agent("openai_compatible:small", tools=[look_up, count], system_prompt="Be brief.", **settings)


def calls_of(function: Callable[[], object]) -> int:
    """Count the functions that are called."""
    counted = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counted


def test_making_it_again_decides_nothing_again() -> None:
    made(name="decided")  # entry points and schemas of functions are read once a process

    first = calls_of(lambda: made(name="new"))
    again = calls_of(lambda: made(name="new"))

    assert again < first / 4


def test_runtimes_are_not_shared() -> None:
    one, other = made(), made()
    one.runtime.registries.models.add("large", ModelSpec("large", "openai_compatible", "large"))
    one.runtime.registries.tools.remove("count")

    assert "large" in one.runtime.resolve("agent").models
    for untouched in (other, made()):
        assert set(untouched.runtime.resolve("agent").models) == {"openai_compatible:small"}
        assert set(untouched.runtime.resolve("agent").tools) == {"look_up", "count"}


def test_a_tool_that_is_added_later_is_only_there() -> None:
    one, other = made(), made()

    @one.tool
    def clock() -> str:
        return "noon"

    assert "clock" in repr(one)
    assert "clock" not in repr(other)
    assert "clock" not in repr(made())


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"system_prompt": "Be long."},
        {"max_rounds": 8},
        {"allowed_tools": ["count"]},
        {"config": {"base_url": "http://127.0.0.1:9/v1", "api_key": "k", "temperature": 1}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_written_differently_is_another_agent(changes: dict[str, Any]) -> None:
    given = {"system_prompt": "Be brief.", "tools": [look_up, count], **changes}
    plain = Agent("openai_compatible:small", system_prompt="Be brief.", tools=[look_up, count])
    changed = Agent("openai_compatible:small", **given)

    agents = [agent.runtime.resolve(agent.name) for agent in (plain, changed)]
    assert agents[0].spec != agents[1].spec or agents[0].config != agents[1].config


def test_settings_that_were_changed_in_place_count() -> None:
    config: dict[str, object] = {"base_url": "http://127.0.0.1:9/v1"}
    agents = []
    for value in (True, 1, 1.0):  # equal for Python, and not for a provider
        config["temperature"] = value
        agents.append(Agent("openai_compatible:small", config=config))

    found = [agent.runtime.resolve("agent").config["temperature"] for agent in agents]
    assert [type(one) for one in found] == [bool, int, float]


def test_what_is_wrong_is_said_each_time() -> None:
    for _ in range(2):
        with pytest.raises(BuildError, match="is declared twice"):
            Agent("openai_compatible:small", tools=[look_up, look_up])


def test_keys_of_the_environment_are_read_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(chat_reply("Hi."), chat_reply("Hi.")) as server:
        config = {"base_url": server.url}
        for key in ("first", "second"):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            Agent("openai_compatible:small", config=config).run("Hello")

        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer first",
            "Bearer second",
        ]


def test_what_a_tool_holds_on_to_is_let_go_with_the_agent() -> None:
    class Connection:
        pass

    def agent_of(connection: Connection) -> Agent[None, str]:
        def query(text: str) -> str:
            """Ask the database."""
            return f"{connection} {text}"

        return Agent("openai_compatible:small", tools=[query])

    connection = Connection()
    gone = weakref.ref(connection)
    agent = agent_of(connection)
    del agent, connection
    gc.collect()

    assert gone() is None
