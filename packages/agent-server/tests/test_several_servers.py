"""Two servers on one PostgreSQL: either can stream what the other one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_app.testing.postgres import create_database, shared_server
from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import Paced, text_of, until

if TYPE_CHECKING:
    from agent_server.testing import Serving

WORDS = ["one ", "two ", "three ", "four ", "five"]


@pytest.fixture
def store() -> str:
    return create_database(shared_server())


def test_a_run_of_one_server_is_streamed_and_resumed_by_the_other(serve_it: Serving, store: str) -> None:
    pace = Paced()
    first = serve_it(provider=ScriptedProvider([Reply(chunks=WORDS, delay=1.0)], sleep=pace), store=store)
    second = serve_it(store=store)
    session_id = first.new_session()
    with (
        first.follow(session_id) as here,
        second.follow(session_id) as there,
    ):
        assert second.client.get(f"/v1/sessions/{session_id}").status_code == 200
        first.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count"})
        pace.release(2)
        begun = until(here, "text")
        busy = second.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "me too"})
        with second.follow(session_id, after=begun[-1].id) as moved:  # a reader changes servers in mid-answer
            pace.release(100)
            rest = until(moved, "final")
        whole = until(there, "final")

    assert busy.status_code == 409
    assert busy.json()["type"] == "urn:keelwork:session-held"
    assert text_of(whole) == "one two three four five"
    assert text_of([*begun, *rest]) == "one two three four five"
    assert [event.data["seq"] for event in whole] == list(range(1, len(whole) + 1))


def test_all_servers_hear_of_all_sessions(serve_it: Serving, store: str) -> None:
    first, second = serve_it(["hi"], store=store), serve_it(store=store)

    with second.streaming("GET", "/v1/events") as events:
        session_id = first.new_session()
        first.ask(session_id, "hello")
        seen = until(events, "final")

    assert {event.data["session_id"] for event in seen} == {session_id}
    assert seen[0].type == "session_created"
