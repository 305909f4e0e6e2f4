"""Routes of FastAPI that return results and events: the same JSON with and without a declared type."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NotRequired, get_args, get_origin, get_type_hints

import msgspec
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel
from typing_extensions import TypedDict

from agent_core import Session
from agent_core.events import Event, RunEvent
from agent_core.frozen import FrozenDict
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, RunResult, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adder(**more: Any) -> Agent[Any, Any]:
    model = ScriptedProvider([Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "It is 3."])
    return Agent(model, tools=[add], **more)


def failed_run() -> RunResult:
    stream = Agent(ScriptedProvider([])).stream("Go.")
    assert list(stream)[-1]["type"] == "run_end"
    assert stream.result is not None and stream.result.error is not None
    return stream.result


class ModelFruit(BaseModel):
    name: str
    seeds: int


@dataclass
class DataclassFruit:
    name: str
    seeds: int


class DictFruit(TypedDict):
    name: str
    seeds: int


class StructFruit(msgspec.Struct):
    name: str
    seeds: int


RESULTS: dict[str, RunResult] = {
    "text": adder().run("How much is 1 and 2?"),
    "waits": adder(sections={"permissions": {"default": "allow", "ask": ["add"]}}).run("Go."),
    "failed": failed_run(),
    **{
        kind.__name__: Agent(
            ScriptedProvider([Reply(tool_calls=[ToolCall("final_result", {"name": "fig", "seeds": 1500})])]),
            output_type=kind,
        ).run("Which?")
        for kind in (ModelFruit, DataclassFruit, DictFruit, StructFruit)
    },
}


def example(hint: Any) -> Any:
    """Return a value of a type that stands in the declaration of an event."""
    inside = get_args(hint)
    if get_origin(hint) is Literal:
        return inside[0]
    if get_origin(hint) is NotRequired or isinstance(hint, UnionType):
        return example(inside[0])
    if get_origin(hint) is list:
        return [example(inside[0])]
    if get_origin(hint) is dict:
        return FrozenDict({"key": "text"})
    values = {str: "text", int: 2, float: 0.5, bool: True, Session: RESULTS["text"].session}
    return FrozenDict({"deep": [{"one": None}]}) if hint is Any else values[hint]


def event_of(kind: Any) -> dict[str, Any]:
    return {name: example(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


KINDS: dict[str, Any] = {event_of(kind)["type"]: kind for kind in get_args(Event)}
EVENTS = {name: event_of(kind) for name, kind in KINDS.items()}

app = FastAPI()


@app.get("/result/{name}")
def result(name: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - what this is about
    return RESULTS[name]


@app.get("/declared/{name}")
def declared(name: str) -> RunResult:
    return RESULTS[name]


@app.get("/typed")
def typed() -> RunResult[DataclassFruit]:
    return RESULTS["DataclassFruit"]


@app.get("/nested")
async def nested():  # type: ignore[no-untyped-def] # noqa: ANN201 - what this is about
    return {"results": [RESULTS["text"]], "session": RESULTS["text"].session}


@app.get("/event/{name}")
def event(name: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - what this is about
    return EVENTS[name]


@app.get("/any-event/{name}")
def any_event(name: str) -> Event:
    return EVENTS[name]  # type: ignore[return-value] # made of the declarations


@app.get("/run")
def run():  # type: ignore[no-untyped-def] # noqa: ANN201 - what this is about
    return list(adder().stream("How much is 1 and 2?", run_id="run"))


@app.get("/declared-run")
def declared_run() -> list[RunEvent]:
    return list(adder().stream("How much is 1 and 2?", run_id="run"))


@app.get("/sent", response_class=EventSourceResponse)
def sent():  # type: ignore[no-untyped-def] # noqa: ANN201 - what this is about
    yield from adder().stream("How much is 1 and 2?")


for _name, _kind in KINDS.items():
    app.get(f"/typed-event/{_name}", response_model=_kind)(lambda _name=_name: EVENTS[_name])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


def text_from(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read(), "utf-8")


def read(url: str) -> Any:
    return json.loads(text_from(url))


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_result_is_its_dict_form_with_and_without_a_declared_type(url: str, name: str) -> None:
    expected = RESULTS[name].to_dict()

    assert read(f"{url}/result/{name}") == expected
    assert read(f"{url}/declared/{name}") == expected


@pytest.mark.parametrize("name", ["ModelFruit", "DataclassFruit", "DictFruit", "StructFruit"])
def test_an_output_of_every_kind_is_in_it(url: str, name: str) -> None:
    assert read(f"{url}/result/{name}")["output"] == {"name": "fig", "seeds": 1500}


def test_a_result_whose_output_is_declared_is_the_same(url: str) -> None:
    assert read(f"{url}/typed") == RESULTS["DataclassFruit"].to_dict()


def test_what_came_over_the_wire_is_read_back(url: str) -> None:
    body = read(f"{url}/result/text")

    assert (body["output"], body["reason"]["code"], body["usage"]["tool_calls"]) == (
        "It is 3.",
        "natural_end",
        1,
    )
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert Session.from_dict(body["session"]) == RESULTS["text"].session


def test_results_and_sessions_may_be_part_of_an_answer(url: str) -> None:
    whole = RESULTS["text"]

    assert read(f"{url}/nested") == {"results": [whole.to_dict()], "session": whole.session.to_dict()}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_an_event_is_the_same_json_with_and_without_a_declared_type(url: str, name: str) -> None:
    expected = json.loads(to_json(EVENTS[name]))

    assert expected.keys() == EVENTS[name].keys()
    assert read(f"{url}/event/{name}") == expected
    assert read(f"{url}/any-event/{name}") == expected
    assert read(f"{url}/typed-event/{name}") == expected


@pytest.mark.parametrize("path", ["run", "declared-run"])
def test_the_events_of_a_run_lose_nothing(url: str, path: str) -> None:
    received = read(f"{url}/{path}")

    made = list(adder().stream("How much is 1 and 2?", run_id="run"))
    assert [(one["type"], one.keys()) for one in received] == [(one["type"], one.keys()) for one in made]
    assert Session.from_dict(received[-1]["session"]).messages[-1].content == "It is 3."


def test_a_route_sends_events_as_they_happen(url: str) -> None:
    lines = text_from(f"{url}/sent").splitlines()

    sent = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert (sent[0]["type"], sent[-1]["type"]) == ("run_start", "run_end")
    assert Session.from_dict(sent[-1]["session"]).messages[-1].content == "It is 3."


def test_the_description_of_the_api_has_the_fields_of_the_events(url: str) -> None:
    schema = read(f"{url}/openapi.json")

    assert schema["paths"]["/declared/{name}"]["get"]["responses"]["200"]
    assert schema["components"]["schemas"]["RunEnd"]["required"] == [
        "type",
        "run_id",
        "agent_id",
        "reason",
        "text",
        "rounds",
        "usage",
        "session",
        "messages",
    ]
