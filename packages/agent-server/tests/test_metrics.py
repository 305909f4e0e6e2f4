"""What the server counts, as Prometheus reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_server.testing import Serving

LINE = re.compile(r"# (HELP|TYPE) \w+ .+|[a-z_]+(\{([a-z]+=\"[^\"]*\",?)*\})? [0-9.+Inf]+")


def test_requests_streams_and_runs_are_counted(serve_it: Serving) -> None:
    served = serve_it(["hello"])
    session_id = served.new_session()
    served.client.get("/v1/sessions/unknown")
    with served.follow(session_id) as events:
        next(events)
        answer = served.client.get("/metrics")

    lines = answer.text.splitlines()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert all(LINE.fullmatch(line) for line in lines)
    assert 'keelwork_http_requests_total{method="POST",route="/v1/sessions",status="201"} 1' in lines
    assert (
        'keelwork_http_requests_total{method="GET",route="/v1/sessions/{session_id}",status="404"} 1' in lines
    )
    assert "keelwork_streams 1" in lines
    assert "keelwork_running 0" in lines
    assert session_id not in answer.text
    assert "keelwork_http_seconds_count" in answer.text


def test_an_answer_fits_a_schema(serve_it: Serving) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    served = serve_it(['{"n": 3}', '{"n": "three"}', "three"])
    session_id = served.new_session()
    path = f"/v1/sessions/{session_id}/runs?wait=true"
    asked = {"text": "how many?", "output_schema": schema}

    fits, wrong, no_json = (served.client.post(path, json=asked) for _ in range(3))
    refused = served.client.post(path, json={"text": "x", "output_schema": {"type": 5}})
    fetched = served.client.post(
        path, json={"text": "x", "output_schema": {"$ref": "http://127.0.0.1:9/schema.json"}}
    )

    assert fits.json()["output"] == {"n": 3}
    assert [answer.status_code for answer in (wrong, no_json, refused, fetched)] == [502, 502, 422, 422]
    assert wrong.json()["type"] == "urn:keelwork:output-misfit"
