"""Agents that work together: what a worker that is killed had begun, another one finishes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Site


def messages_of(site: Site, session_id: str) -> list[dict[str, Any]]:
    return [message.to_dict() for message in site.app.load_session(session_id).messages]


def calls_of(messages: list[dict[str, Any]]) -> list[str]:
    made = [call for message in messages for call in message["metadata"].get("tool_calls", ())]
    return [call["function"]["name"] for call in made]


@pytest.mark.slow
def test_an_agent_that_took_over_goes_on_when_its_worker_is_killed(site: Site) -> None:
    first = site.worker(TOOL_SECONDS="0.3")
    session_id = site.app.create_session("desk").session_id
    _session, run_id = site.say("Count to 4", session_id)
    site.wait(lambda: len(site.effects()) >= 2)
    first.kill()

    site.worker(TOOL_SECONDS="0.05")
    assert site.wait_over(run_id) == ["done"]

    messages = messages_of(site, session_id)
    assert calls_of(messages) == ["transfer_to_refunds", "note", "pay", "note", "pay"]
    assert len([line for line in site.effects() if line.startswith("pay")]) <= 2
    assert messages[-1]["role"] == "assistant"
    handed = [event for event in site.app.events(session_id) if event["type"] == "handoff"]
    assert [(event["from_agent"], event["to_agent"]) for event in handed] == [("desk", "refunds")]
    assert site.app.load_session(session_id).metadata.get("agent_run") is None


def test_a_worker_that_dies_at_the_handoff_leaves_the_conversation_with_the_right_agent(site: Site) -> None:
    (site.folder / "die_at").write_text("refunds")
    first = site.worker()
    session_id = site.app.create_session("desk").session_id
    _session, run_id = site.say("Count to 2", session_id)
    first.wait()

    site.worker()
    assert site.wait_over(run_id) == ["done"]

    messages = messages_of(site, session_id)
    assert calls_of(messages) == ["transfer_to_refunds", "note", "pay"]
    assert messages[-1]["content"] == "note 0 | pay 1"


def test_a_graph_of_agents_in_plain_python_is_finished_by_another_worker(site: Site) -> None:
    (site.folder / "die_at").write_text("about more milk")
    first = site.worker()
    session_id = site.app.create_session("author").session_id
    _session, run_id = site.say("Write a book.", session_id)
    first.wait()  # it has killed itself in the middle of the graph
    begun = site.effects()
    assert "write about more milk" in begun

    site.worker()
    assert site.wait_over(run_id) == ["done"]

    messages = messages_of(site, session_id)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert json.loads(messages[-1]["content"]) == ["about more tea", "about more milk", "about more bread"]
    assert sorted(site.effects()[len(begun) :]) == sorted(
        f"write about {draft}{title}" for draft in ("", "more ") for title in ("tea", "milk", "bread")
    )
