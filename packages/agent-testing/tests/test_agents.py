"""Tests of agents: models without a server, recordings, the guard, simulated users."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jsonschema_rs
import pytest

from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_provider_kit.transport import HttpRequest, real_transport
from agent_runtime import Agent, RunContext
from agent_testing import (
    FunctionModel,
    ModelRequest,
    ScriptedServer,
    TestModel,
    chat_reply,
    converse,
    example,
    json_reply,
)
from agent_testing.traffic import Recorder
from agent_testing.users import GOODBYE

if TYPE_CHECKING:
    from pathlib import Path

    from agent_testing import ServerReply

pytest_plugins = ["pytester"]


@dataclass
class Order:
    name: str
    size: Literal["small", "large"]
    count: Annotated[int, {"minimum": 2}]


def test_a_test_model_calls_every_tool_and_gives_a_fitting_output() -> None:
    agent = Agent("local", output_type=Order)
    called: list[Any] = []

    @agent.tool
    def book(ctx: RunContext, order: Order, days: list[int] | None = None) -> str:
        called.append(order)
        return "booked"

    @agent.tool
    def cancel(number: int) -> str:
        called.append(number)
        return "cancelled"

    with agent.override(model=TestModel()):
        result = agent.run("Go.")

    assert len(called) == 2
    assert Order("a", "small", 2) in called and 1 in called
    assert result.output == Order("a", "small", 2)


def test_a_test_model_calls_the_tools_of_an_agent_that_takes_over() -> None:
    called = []
    refunds = Agent(TestModel(), name="refunds")

    @refunds.tool
    def pay() -> str:
        called.append("pay")
        return "paid"

    desk = Agent(TestModel(tools=["transfer_to_refunds"]), handoffs=[refunds])

    assert desk.run("Go.").agent == "refunds"
    assert called == ["pay"]


@pytest.mark.parametrize("mode", ["tool", "native", "prompt"])
def test_a_test_model_gives_an_output_in_every_way(mode: Any) -> None:
    agent = Agent(TestModel(), output_type=Order, output_mode=mode, instructions="Be brief.")

    assert agent.run("Go.").output == Order("a", "small", 2)


def test_a_test_model_talks_where_text_is_wanted() -> None:
    assert Agent(TestModel(text="fine")).run("Go.").output == "fine"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3},
        {"type": "integer", "exclusiveMinimum": 3},
        {"type": "number", "maximum": -1},
        {"type": "integer", "multipleOf": 5, "minimum": 7},
        {"type": "string", "minLength": 4},
        {"type": "string", "pattern": "^[A-Z]"},
        {"type": "string", "format": "date"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "required": ["x"], "properties": {"x": {}}}}},
        {"enum": ["b"]},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "minimum": 0.1, "maximum": 0.5},
        {"type": "integer", "minimum": 2, "exclusiveMaximum": 4, "multipleOf": 3},
        {"type": "number", "exclusiveMinimum": 5, "multipleOf": 2.5},
        {"type": "integer", "maximum": 0},
        {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 2, "uniqueItems": True},
        {"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    ],
)
def test_examples_fit_their_schema(schema: dict[str, Any]) -> None:
    assert jsonschema_rs.validator_for(schema).is_valid(example(schema))


def test_a_function_may_be_a_model() -> None:
    def answer(request: ModelRequest) -> Reply | str:
        if request.results:
            return f"It is {request.results[0]['content']}."
        return Reply(tool_calls=[ToolCall(next(iter(request.tools)), {"number": 2})])

    @tool
    def double(number: int) -> int:
        return number * 2

    model = FunctionModel(answer)

    assert Agent(model, tools=[double]).run("Two?").output == "It is 4."
    assert len(model.requests) == 2


def test_a_user_that_is_played_talks_until_it_says_goodbye() -> None:
    @tool
    def look() -> str:
        return "seen"

    agent = Agent(
        ScriptedProvider(["Hello, who?", Reply(tool_calls=[ToolCall("look")]), "Done, Ada."]), tools=[look]
    )
    user = Agent(ScriptedProvider(["I want tea.", "Ada.", f"Thanks. {GOODBYE}"]))

    conversation = converse(agent, user)

    assert conversation.turns == [("I want tea.", "Hello, who?"), ("Ada.", "Done, Ada.")]
    assert (conversation.last, conversation.called("look")) == ("Done, Ada.", 1)
    assert "user: Ada." in str(conversation)


def test_a_user_may_be_lines_or_a_function() -> None:
    assert len(converse(Agent(TestModel()), ["one", "two"]).turns) == 2
    assert len(converse(Agent(TestModel()), lambda answer: None if answer else "Hi.").turns) == 1
    assert len(converse(Agent(TestModel()), lambda _answer: "again", turns=3).turns) == 3


def test_a_user_reads_an_output_that_is_no_text() -> None:
    heard: list[str] = []

    def user(answer: str) -> str | None:
        heard.append(answer)
        return "Go." if len(heard) == 1 else None

    talk = converse(Agent(TestModel(), output_type=Order), user)

    assert heard == ["", '{"count":2,"name":"a","size":"small"}']
    assert talk.last == heard[-1]


ASKING = """
    from agent_runtime import Agent

    def test_it(agent_recording):
        agent = Agent(
            "openai_compatible:m",
            config={"base_url": "%s/v1", "api_key": "a-very-secret-key"},
            sections={"retry": {"max_retries": 0}},
        )
        assert agent.run("What is the answer?").output == "It is 42."
        assert agent.run("And my key?").output == "It is 43."
"""


def test_traffic_is_recorded_once_without_secrets_and_replayed(pytester: pytest.Pytester) -> None:
    pytest.importorskip("openai_compatible_provider")
    with ScriptedServer() as server:
        server.play(chat_reply("It is 42."), chat_reply("It is 43."))
        pytester.makepyfile(test_agent=ASKING % server.url)
        nothing_yet = pytester.runpytest_subprocess("-p", "no:cacheprovider")
        nothing_yet.stdout.fnmatch_lines(["*is not there*run pytest --agent-record*"])
        assert not server.requests

        recorded = pytester.runpytest_subprocess("--agent-record", "-p", "no:cacheprovider")
        assert recorded.ret == 0, recorded.stdout.str()
        assert len(server.requests) == 2

        replayed = pytester.runpytest_subprocess("-p", "no:cacheprovider")
        assert replayed.ret == 0, replayed.stdout.str()
        assert len(server.requests) == 2
    [file] = pytester.path.glob("recordings/test_agent/*.json")
    text = file.read_text(encoding="utf-8")
    assert "What is the answer?" in text
    assert "a-very-secret-key" not in text
    assert len(json.loads(text)["interactions"]) == 2


def test_every_test_has_a_recording_of_its_own(pytester: pytest.Pytester) -> None:
    pytest.importorskip("openai_compatible_provider")
    with ScriptedServer(otherwise=lambda _request: chat_reply("Hi.")) as server:
        pytester.makepyfile(
            test_agent="""
            import pytest
            from agent_runtime import Agent

            def ask(text):
                config = {"base_url": "ADDRESS/v1", "api_key": "k"}
                assert Agent("openai_compatible:m", config=config).run(text).output == "Hi."

            def test_it(agent_recording):
                ask("one")

            class TestClass:
                def test_it(self, agent_recording):
                    ask("two")

            @pytest.mark.parametrize("text", ["a/b", "a b", "ä", "x" * 300], ids=lambda text: text)
            def test_each(agent_recording, text):
                ask(text)
            """.replace("ADDRESS", server.url)
        )
        recorded = pytester.runpytest_inprocess("--agent-record", "-p", "no:cacheprovider")
        assert recorded.ret == 0, recorded.stdout.str()
    replayed = pytester.runpytest_inprocess("-p", "no:cacheprovider")

    assert replayed.ret == 0, replayed.stdout.str()
    files = sorted(file.name for file in pytester.path.glob("recordings/test_agent/*.json"))
    assert len(files) == 6
    assert {"test_it.json", "TestClass.test_it.json"} <= set(files)


def _recorded(*traffic: tuple[HttpRequest, ServerReply]) -> str:
    """Return the text of a recording of some requests and what a server answered."""

    async def send(server: ScriptedServer, recorder: Recorder) -> None:
        for request, _ in traffic:
            asked = request._replace(url=server.url + request.url)
            await (await recorder.send(asked)).read()

    with ScriptedServer(*(reply for _, reply in traffic)) as server:
        recorder = Recorder(real_transport())
        asyncio.run(send(server, recorder))
    return json.dumps(recorder.recording())


def test_a_recording_has_nothing_that_looks_like_a_key() -> None:
    github, aws = "ghp_" + "a1B2" * 9, "AKIA" + "ABCDEFGH12345678"
    asked = {"text": f"my token is {github}", "refresh_token": "r-123456", "apiKey": "k-123456"}
    request = HttpRequest("POST", "/v1?access_token=url-123456", {}, json.dumps(asked).encode())

    text = _recorded((request, json_reply({"said": f"yours is {aws}"})))

    for secret in (github, aws, "r-123456", "k-123456", "url-123456"):
        assert secret not in text


def test_a_key_that_one_server_gives_for_another_is_not_in_the_recording() -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    login = HttpRequest("POST", "/token", form, b"grant_type=x&client_secret=our-secret-1&user=ada")
    question = HttpRequest("POST", "/ask", {"Authorization": "Bearer given-token-1"}, b"{}")

    text = _recorded((login, json_reply({"access_token": "given-token-1"})), (question, json_reply({"a": 1})))

    assert "given-token-1" not in text
    assert "our-secret-1" not in text
    assert "user=ada" in text


def test_a_test_that_would_reach_a_real_model_fails_even_if_it_hides_the_error(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    pytest.importorskip("openai_compatible_provider")
    pytester.makepyfile(
        """
        import contextlib
        from agent_runtime import Agent

        def test_it():
            config = {"base_url": "https://api.example.invalid", "api_key": "k"}
            agent = Agent("openai_compatible:m", config=config)
            with contextlib.suppress(Exception):
                agent.run("Hello.")
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*would have asked a real model at api.example.invalid*"])
