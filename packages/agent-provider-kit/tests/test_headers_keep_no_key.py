"""A server that sends the key back, in whatever header, does not get it into logs, events and exports."""

from __future__ import annotations

from agent_provider_kit.failures import Exchange, KeyRefused
from agent_provider_kit.keys import ApiKey


def test_the_id_of_a_request_has_no_key_in_it() -> None:
    key = "my-own-key-without-a-known-shape-4711"
    exchange = Exchange("p", "call_api", "https://p.example", ApiKey(key, "test"))

    failure = KeyRefused(exchange, "refused", status=401, request_id=f"req-{key}-{'x' * 10_000}")

    assert key not in str(failure)
    assert key not in str(failure.request_id)
    assert len(str(failure.request_id)) <= 200
