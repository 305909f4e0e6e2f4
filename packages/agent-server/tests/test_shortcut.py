"""Requests for runs, answered without FastAPI where they are as usual, and the same where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_server import shortcut

if TYPE_CHECKING:
    from agent_server.testing import Served, Serving

JSON = {"content-type": "application/json"}
SAID = b'{"text": "hi"}'


def ask(served: Served, session_id: str, how: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = served.client.post(f"/v1/sessions/{session_id}/runs", **how)
    body = answer.json()
    assert answer.headers["x-request-id"] == body.pop("request_id", answer.headers["x-request-id"])
    return answer.status_code, body


@pytest.mark.parametrize(
    "how",
    [
        {"content": SAID, "headers": JSON},
        {"content": SAID, "headers": {"content-type": "application/json; charset=utf-8"}},
        {"content": SAID, "headers": JSON | {"idempotency-key": "k" * 200}},
        {"content": SAID, "headers": JSON | {"idempotency-key": "k" * 201}},
        {"content": SAID, "headers": {"content-type": "text/plain"}},
        {"content": b'{"text": "hi", "extra": 1}', "headers": JSON},
        {"content": b'{"text": 1}', "headers": JSON},
        {"content": b'{"text": "hi", "limits": {"timeout": -1}}', "headers": JSON},
        {"content": b'{"text": "hi", "take_over": "yes"}', "headers": JSON},
        {"content": b'{"text": "\\ud800"}', "headers": JSON},
        {"content": b"{", "headers": JSON},
        {"content": b"\xff", "headers": JSON},
        {"content": b"", "headers": JSON},
        {"content": b"{}", "headers": JSON},
    ],
    ids=lambda how: f"{how['content'].decode('latin-1')[:30]} {list(how['headers'].values())}"[:60],
)
def test_the_shortcut_answers_as_the_route_does(
    serve_it: Serving, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    served = serve_it(["hello", "hello"])
    one, other = served.new_session(), served.new_session()

    status, body = ask(served, one, how)
    monkeypatch.setattr(shortcut, "_read", lambda *_: None)
    plain_status, plain = ask(served, other, how)

    assert status == plain_status
    assert str(body).replace(one, "") == str(plain).replace(other, "")


def test_the_shortcut_is_counted_as_the_route_and_knows_what_is_not_there(serve_it: Serving) -> None:
    served = serve_it(["hello"])
    session_id = served.new_session()

    assert ask(served, "nobody", {"json": {"text": "hi"}})[0] == 404
    assert served.ask(session_id, "hi")[-1].type == "final"

    route = "/v1/sessions/{session_id}/runs"
    counted = served.server.services.metrics.requests
    assert (counted["POST", route, 200], counted["POST", route, 404]) == (1, 1)


def test_a_run_does_not_pass_the_routes(serve_it: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve_it(["hello"])
    session_id = served.new_session()

    async def passed(*_: object) -> None:
        raise AssertionError("FastAPI was asked")

    monkeypatch.setattr(served.server.api, "router", passed)
    monkeypatch.setattr(served.server.api, "middleware_stack", passed)

    assert served.ask(session_id, "hi")[-1].type == "final"
