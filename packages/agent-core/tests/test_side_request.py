"""A question on the side, asked in a temporary session of the same core or of an agent of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore, Message, Session
from agent_core.side_request import TEMPORARY, NotAnswered, ask
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Iterator


def core_that_answers(*answers: Any) -> tuple[AgentCore, ScriptedProvider]:
    provider = ScriptedProvider(list(answers))
    core = AgentCore()
    core.register_provider(provider)
    return core, provider


class Application:
    """Stands in for an application: it has one agent, whose requests end with *event*."""

    def __init__(self, core: AgentCore, event: dict[str, Any]) -> None:
        self._core = core
        self._event = event
        self.asked: list[tuple[str, Session]] = []

    def update_agent(self, agent: str, session: Session) -> tuple[AgentCore, dict[str, Any], Session]:
        self.asked.append((agent, session))
        return self._core, {}, session

    def send_request(
        self, core: AgentCore, session: Session, config: dict[str, Any], *, stream: bool
    ) -> Iterator[dict[str, Any]]:
        yield {"type": "started"}
        yield self._event


def test_without_an_application_the_same_core_is_asked_without_tools() -> None:
    core, provider = core_that_answers("  a title \n")

    answer = ask({"core": core, "config": {"model": "m"}}, "writer", "Be brief.", "What is this about?")

    assert answer == "a title"
    [request] = provider.requests
    assert [item["content"] for item in request.native_messages] == ["Be brief.", "What is this about?"]


def test_what_an_answer_used_is_counted_by_whoever_runs_the_action() -> None:
    used = {"input_tokens": 5, "output_tokens": 2}
    core, _ = core_that_answers(Reply(text="yes", usage=used))
    app = Application(core, {"type": "usage", "model": "small", "usage": {"total_tokens": 9}})
    counted: list[tuple[Any, str | None]] = []
    context = {"core": core, "config": {}, "count_usage": lambda *given: counted.append(given)}

    ask(context, None, "Be brief.", "Is it?")
    with pytest.raises(NotAnswered):
        ask({**context, "app": app}, "judge", "Be brief.", "Is it?")

    assert counted == [(used, None), ({"total_tokens": 9}, "small")]


def test_an_agent_of_the_application_is_asked_in_a_session_that_says_it_is_temporary() -> None:
    core, _ = core_that_answers()
    app = Application(core, {"type": "final", "messages": [Message("assistant", "yes")]})

    answer = ask({"core": core, "config": {}, "app": app}, "judge", "Say yes or no.", "Is it?")

    assert answer == "yes"
    [(agent, session)] = app.asked
    assert agent == "judge"
    assert session.metadata[TEMPORARY] is True


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"type": "error", "error": {"message": "no key"}}, "agent 'judge' failed: no key"),
        ({"type": "error"}, "agent 'judge' failed: it ended without an answer"),
    ],
)
def test_a_run_that_fails_is_an_error_with_its_reason(event: dict[str, Any], reason: str) -> None:
    core, _ = core_that_answers()

    with pytest.raises(NotAnswered) as caught:
        ask({"core": core, "config": {}, "app": Application(core, event)}, "judge", "rules", "question")

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "hello"}],
        [{"role": "assistant", "content": "wait", "metadata": {"tool_calls": [{}]}}],
        [{"role": "assistant", "content": None}],
    ],
)
def test_what_is_not_an_answer_reads_as_nothing(messages: list[Any]) -> None:
    core, _ = core_that_answers()
    app = Application(core, {"type": "final", "messages": messages})

    assert ask({"core": core, "config": {}, "app": app}, "judge", "rules", "question") == ""
