"""The description of the API: what is committed is what is served, and the server keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from agent_server.application import describe_api
from agent_server.testing import TOKEN

if TYPE_CHECKING:
    from agent_server.testing import Served

FILE = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"
UPDATE = "write it with: .venv/bin/python -m agent_server.openapi docs/reference/openapi.json"


def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def test_the_committed_description_is_that_of_the_server(shared: Served) -> None:
    served = shared.client.get("/openapi.json").json()

    assert served == described(), UPDATE
    assert served == describe_api().openapi()
    assert served["openapi"].startswith("3.1")


def test_every_operation_has_a_name_a_summary_and_its_problems() -> None:
    names = []
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            names.append(operation["operationId"])
            assert operation["summary"], (method, path)
            if path.startswith("/v1/"):
                problem = operation["responses"]["4XX"]["content"]
                assert list(problem) == ["application/problem+json"], (method, path)

    assert len(names) == len(set(names))


# Events come without an end, and a test would wait for them.
STREAMS = ("follow_session", "follow_all")
schema = schemathesis.openapi.from_dict(described()).exclude(operation_id=list(STREAMS))


@pytest.fixture
def address(shared: Served) -> str:
    return shared.url


CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
FEW = settings(
    max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
OWN = {"authorization": f"Bearer {TOKEN}"}


@schema.parametrize()
@FEW
def test_whatever_is_sent_the_server_keeps_to_its_description(case: Any, address: str) -> None:
    case.call_and_validate(base_url=address, headers=OWN, timeout=60, checks=CHECKS)


@schema.include(path_regex="session_id").parametrize()
@FEW
def test_it_does_so_too_for_a_session_that_exists(case: Any, shared: Served) -> None:
    session_id = shared.new_session()
    shared.ask(session_id, "hi")
    case.path_parameters["session_id"] = session_id

    case.call_and_validate(base_url=shared.url, headers=OWN, timeout=60, checks=CHECKS)


@pytest.mark.slow
def test_it_does_so_too_when_requests_use_what_others_have_made(address: str) -> None:
    """The links between operations are found by the names of what they return and take."""

    class Requests(schema.as_state_machine()):  # type: ignore[misc]  # a class that is made from the description
        def get_call_kwargs(self, _case: Any) -> dict[str, Any]:
            return {"base_url": address, "headers": OWN, "timeout": 60}

        def validate_response(self, response: Any, case: Any, **_more: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    Requests.run(settings=settings(FEW, max_examples=15, stateful_step_count=12))
