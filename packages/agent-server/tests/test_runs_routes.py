from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_server.testing import ASKS, Notes, Paced, text_of, until

if TYPE_CHECKING:
    from agent_server.testing import Serving


def asks_to_note(*texts: str) -> list[Any]:
    return [Reply(tool_calls=[ToolCall("note", {"text": text})]) for text in texts]


def test_a_run_can_be_waited_for(serve_it: Serving) -> None:
    served = serve_it(["hello"])
    session_id = served.new_session()

    answer = served.client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "hi"})

    assert answer.status_code == 200
    assert answer.json()["text"] == "hello"
    assert answer.json()["reason"]["code"] == "natural_end"
    assert [message["role"] for message in answer.json()["messages"]] == ["user", "assistant"]


def test_a_run_that_fails_says_so(serve_it: Serving) -> None:
    served = serve_it([RuntimeError("the model is on fire")])
    session_id = served.new_session()

    answer = served.client.post(f"/v1/sessions/{session_id}/runs?wait=true", json={"text": "hi"})

    assert answer.status_code == 502
    assert "on fire" in answer.json()["detail"]
    assert served.ask(served.new_session(), "hi")[-1].type == "error"


def test_a_run_goes_on_when_its_reader_leaves(serve_it: Serving) -> None:
    pace = Paced()
    served = serve_it(provider=ScriptedProvider([Reply(chunks=["a ", "b ", "c"], delay=1.0)], sleep=pace))
    session_id = served.new_session()
    with served.streaming("POST", f"/v1/sessions/{session_id}/runs", json={"text": "hi"}) as events:
        pace.release()
        while next(events).type != "text":
            pass
    pace.release(10)

    with served.follow(session_id) as events:
        seen = until(events, "final")

    assert text_of(seen) == "a b c"


def test_a_run_that_is_attached_ends_with_its_connection(serve_it: Serving) -> None:
    served = serve_it([Reply(chunks=["a ", "b"], delay=[0.0, math.inf])])
    session_id = served.new_session()
    asked = {"text": "hi", "attached": True}
    with served.streaming("POST", f"/v1/sessions/{session_id}/runs", json=asked) as events:
        while next(events).type != "text":
            pass

    with served.follow(session_id) as events:
        seen = until(events, "final")

    assert seen[-1].data["reason"]["code"] == "cancelled"


def test_a_run_is_cancelled_and_what_it_said_is_kept(serve_it: Serving) -> None:
    served = serve_it([Reply(chunks=["half ", "whole"], delay=[0.0, math.inf])])
    session_id = served.new_session()
    with served.streaming("POST", f"/v1/sessions/{session_id}/runs", json={"text": "hi"}) as events:
        while next(events).type != "text":
            pass

        assert served.client.post(f"/v1/sessions/{session_id}/cancel").json() == {"stopped": True}
        final = until(events, "final")[-1]

    assert final.data["reason"]["code"] == "cancelled"
    assert final.data["text"] == "half "
    path = f"/v1/sessions/{session_id}/state"
    while served.client.get(path).json()["running"] is not None:  # for the moment in which it is put away
        pass
    assert served.client.post(f"/v1/sessions/{session_id}/cancel").json() == {"stopped": False}


def test_a_session_runs_once_at_a_time(serve_it: Serving) -> None:
    served = serve_it([Reply(text="a", delay=math.inf)])
    session_id = served.new_session()
    path = f"/v1/sessions/{session_id}/runs"
    assert served.client.post(path, json={"text": "hi"}).status_code == 202

    second = served.client.post(path, json={"text": "hi again"})

    assert second.status_code == 409
    assert second.json()["type"] == "urn:keelwork:session-busy"
    assert served.client.get(f"/v1/sessions/{session_id}/state").json()["running"] == "here"
    served.client.post(f"/v1/sessions/{session_id}/cancel")


def test_a_run_without_anything_to_say_is_refused(serve_it: Serving) -> None:
    served = serve_it()

    answer = served.client.post(f"/v1/sessions/{served.new_session()}/runs", json={})

    assert answer.status_code == 422
    assert "nothing to say" in answer.json()["detail"]


def test_a_run_that_is_asked_for_twice_under_one_key_happens_once(serve_it: Serving) -> None:
    served = serve_it(["only once"])
    session_id = served.new_session()
    headers = {"idempotency-key": "k1"}
    path = f"/v1/sessions/{session_id}/runs?wait=true"

    first = served.client.post(path, json={"text": "hi"}, headers=headers)
    again = served.client.post(path, json={"text": "hi"}, headers=headers)
    with served.streaming("POST", path, json={"text": "hi"}, headers=headers) as events:
        streamed = list(events)
    restarted = serve_it([])  # another process, whose model has nothing to say
    later = restarted.client.post(path, json={"text": "hi"}, headers=headers)

    assert first.json()["text"] == again.json()["text"] == later.json()["text"] == "only once"
    assert text_of(streamed) == "only once"
    assert served.client.get(f"/v1/sessions/{session_id}").json()["messages"] == 2


def test_what_is_said_during_a_run_is_listed_edited_withdrawn_and_delivered(serve_it: Serving) -> None:
    pace = Paced()
    script = [Reply(chunks=["a", "b"], delay=1.0), Reply(text="then", delay=1.0)]
    served = serve_it(provider=ScriptedProvider(script, sleep=pace))
    session_id = served.new_session()
    inputs = f"/v1/sessions/{session_id}/inputs"
    with served.streaming("POST", f"/v1/sessions/{session_id}/runs", json={"text": "hi"}) as events:
        pace.release()
        while next(events).type != "text":
            pass
        first = served.client.post(inputs, json={"text": "also this", "mode": "queue"}).json()
        second = served.client.post(inputs, json={"text": "never mind", "mode": "queue"}).json()
        listed = served.client.get(inputs).json()["items"]
        edited = served.client.put(f"{inputs}/{first['seq']}", json={"text": "rather that", "mode": "queue"})
        assert served.client.delete(f"{inputs}/{second['seq']}").status_code == 204
        pace.release(10)
        seen = until(events, "final")

    assert [one["message"]["content"] for one in listed] == ["also this", "never mind"]
    assert edited.json()["message"]["content"] == "rather that"
    assert seen[-1].data["text"] == "then"
    page = served.client.get(f"/v1/sessions/{session_id}/messages").json()
    assert [one["content"] for one in page["items"]] == ["hi", "ab", "rather that", "then"]
    assert served.client.delete(f"{inputs}/{first['seq']}").status_code == 404


def test_a_reader_hears_what_others_do_while_a_run_goes_on(serve_it: Serving) -> None:
    pace = Paced()
    served = serve_it(provider=ScriptedProvider([Reply(chunks=["a ", "b ", "c"], delay=1.0)], sleep=pace))
    session_id = served.new_session()
    with served.follow(session_id) as events:
        served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "hi"})
        pace.release()
        seen = until(events, "text")
        served.client.patch(f"/v1/sessions/{session_id}", json={"title": "New"})
        seen += until(events, "session_renamed")
        with served.follow(session_id, after=seen[-1].id) as others:
            pace.release(10)
            rest = until(others, "final")
        seen += until(events, "final")

    assert text_of(seen) == "a b c"
    assert text_of(rest) == "b c"
    assert seen[-1].id == rest[-1].id


def test_a_decision_lets_a_run_go_on(serve_it: Serving) -> None:
    notes = Notes()
    served = serve_it([*asks_to_note("milk"), "done"], plugins=[notes], config=ASKS)
    session_id = served.new_session()
    asked = served.ask(session_id, "note milk")
    [approval] = served.client.get("/v1/approvals", params={"session_id": session_id}).json()["items"]

    assert asked[-1].data["reason"]["code"] == "suspended"
    assert asked[-1].data["approvals"] == [approval["id"]]
    assert notes.written == []
    with served.follow(session_id, after=asked[-1].id) as events:
        decided = served.client.post(f"/v1/approvals/{approval['id']}", json={"approved": True})
        final = until(events, "final")[-1]
    assert decided.json()["decision"] == {"approved": True}
    assert notes.written == ["milk"]
    assert final.data["text"] == "done"
    twice = served.client.post(f"/v1/approvals/{approval['id']}", json={"approved": True})
    assert twice.status_code == 409
    assert twice.json()["type"] == "urn:keelwork:decision-not-accepted"


def test_a_refusal_reaches_the_model_and_nothing_is_done(serve_it: Serving) -> None:
    notes = Notes()
    provider = ScriptedProvider([*asks_to_note("milk"), "I see"])
    served = serve_it(provider=provider, plugins=[notes], config=ASKS)
    session_id = served.new_session()
    asked = served.ask(session_id, "note milk")

    with served.follow(session_id, after=asked[-1].id) as events:
        served.client.post(
            f"/v1/approvals/{asked[-1].data['approvals'][0]}",
            json={"approved": False, "reason": "we have enough milk"},
        )
        until(events, "final")

    assert notes.written == []
    assert "enough milk" in str(provider.requests[-1].native_messages)


def test_a_grant_with_a_decision_counts_for_later_calls_until_it_is_revoked(serve_it: Serving) -> None:
    notes = Notes()
    script = [*asks_to_note("one"), "ok", *asks_to_note("two"), "ok", *asks_to_note("three")]
    served = serve_it(script, plugins=[notes], config=ASKS)
    session_id = served.new_session()
    asked = served.ask(session_id, "first")
    with served.follow(session_id, after=asked[-1].id) as events:
        served.client.post(
            f"/v1/approvals/{asked[-1].data['approvals'][0]}",
            json={"approved": True, "grant": {"scope": "session", "pattern": "note"}},
        )
        until(events, "final")

    assert served.ask(session_id, "second")[-1].data["reason"]["code"] == "natural_end"
    [grant] = served.client.get("/v1/grants", params={"session_id": session_id}).json()["items"]
    assert served.client.delete(f"/v1/grants/{grant['id']}").status_code == 204
    assert served.ask(session_id, "third")[-1].data["reason"]["code"] == "suspended"
    assert notes.written == ["one", "two"]


def test_a_server_that_stops_lets_runs_finish_and_sends_readers_away(serve_it: Serving) -> None:
    pace = Paced()
    served = serve_it(provider=ScriptedProvider([Reply(chunks=["a ", "b"], delay=1.0)], sleep=pace))
    session_id = served.new_session()
    seen: list[Any] = []
    reading = threading.Event()

    def read() -> None:
        with served.follow(session_id) as events:
            for event in events:
                seen.append(event)
                if event.type == "text":
                    reading.set()

    reader = threading.Thread(target=read)
    reader.start()
    served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "hi"})
    pace.release()
    assert reading.wait(60)

    stopping = threading.Thread(target=served.stop)
    stopping.start()
    pace.release(10)
    stopping.join(60)
    reader.join(60)

    assert not stopping.is_alive()
    assert [event.type for event in seen[-2:]] == ["final", "reconnect"]
    assert text_of(seen) == "a b"


def test_all_sessions_are_followed_by_one_reader(serve_it: Serving) -> None:
    served = serve_it(["one", "two"])
    before = served.new_session()
    with served.streaming("GET", "/v1/events") as events:
        session_id = served.new_session()
        served.ask(session_id, "hi")
        seen = until(events, "final")
        served.ask(before, "hi")
        seen += until(events, "final")
        served.client.delete(f"/v1/sessions/{session_id}")
        seen += until(events, "session_deleted")

    assert seen[0].type == "session_created"
    assert {event.data["session_id"] for event in seen} == {before, session_id}
    first = next(place for place, event in enumerate(seen) if event.type == "final")
    with served.streaming("GET", f"/v1/events?after={seen[first].id}") as events:
        again = until(events, "session_deleted")
    assert [event.id for event in again] == [event.id for event in seen[first + 1 :]]


def test_whoever_has_seen_the_end_of_a_run_can_begin_the_next(serve_it: Serving) -> None:
    served = serve_it([f"answer {number}" for number in range(60)])
    session_id = served.new_session()

    answers = [served.ask(session_id, "next")[-1].data["text"] for _ in range(60)]

    assert answers == [f"answer {number}" for number in range(60)]


def test_a_project_that_cannot_be_a_folder_is_refused(serve_it: Serving) -> None:
    served = serve_it()
    given = {"pattern": "shell", "scope": "project", "project": "a\0b"}

    assert served.client.get("/v1/grants", params={"project": "a\0b"}).status_code == 422
    assert served.client.post("/v1/grants", json=given).status_code == 422
