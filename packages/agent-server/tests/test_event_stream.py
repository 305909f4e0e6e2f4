from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing import Reply, ScriptedProvider
from agent_server.testing import Paced, text_of

if TYPE_CHECKING:
    from agent_server.testing import Event, Serving

WORDS = ["one ", "two ", "three ", "four ", "five"]


def paced(*replies: list[str]) -> tuple[Paced, ScriptedProvider]:
    pace = Paced()
    script = [Reply(chunks=pieces, delay=1.0) for pieces in replies]
    return pace, ScriptedProvider(script, sleep=pace)


def test_a_run_is_streamed_and_ends_with_its_final_event(serve_it: Serving) -> None:
    served = serve_it([Reply(chunks=WORDS)])

    events = served.ask(served.new_session(), "count")

    assert [event.type for event in events] == [
        "run_start", "step_start", *["text"] * 5, "usage", "step_end", "final",
    ]  # fmt: skip
    assert text_of(events) == "one two three four five"
    assert events[-1].data["text"] == "one two three four five"


def test_a_reader_that_loses_its_connection_at_any_event_gets_the_rest_once(
    serve_it: Serving,
) -> None:
    pace, provider = paced(WORDS)
    served = serve_it(provider=provider)
    session_id = served.new_session()
    pace.release(100)
    whole = served.ask(session_id, "count")

    for place, event in enumerate(whole):
        with served.follow(session_id, after=event.id) as events:
            rest = [next(events) for _ in _joined(whole[place + 1 :])]

        assert text_of([*whole[: place + 1], *rest]) == "one two three four five"
        assert rest == [] or rest[-1].type == "final"


def _joined(events: list[Event]) -> list[str]:
    """Return the types of events as the log has them: pieces that follow each other are one."""
    types: list[str] = []
    for event in events:
        if not (types and types[-1] == event.type == "text"):
            types.append(event.type)
    return types


def test_readers_that_come_and_go_during_a_run_see_everything_once(serve_it: Serving) -> None:
    pace, provider = paced(WORDS)
    served = serve_it(provider=provider)
    session_id = served.new_session()
    assert served.client.post(f"/v1/sessions/{session_id}/runs", json={"text": "count"}).status_code == 202
    seen: list[Event] = []

    for _word in WORDS:  # a new connection for each piece, with what was seen before
        with served.follow(session_id, after=seen[-1].id if seen else "0") as events:
            pace.release()
            while True:
                seen.append(next(events))
                if seen[-1].type == "text":
                    break
    pace.release(100)
    with served.follow(session_id, after=seen[-1].id) as events:
        while seen[-1].type != "final":
            seen.append(next(events))

    assert text_of(seen) == "one two three four five"
    assert _joined(seen) == [
        "session_created",
        "run_start",
        "step_start",
        "text",
        "usage",
        "step_end",
        "final",
    ]
