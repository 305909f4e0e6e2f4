"""The five-line way in."""

from __future__ import annotations

import asyncio
from itertools import repeat
from typing import Any

import pytest

from agent_core import AgentError, ArgumentError, ArgumentTypeError, ProviderError, tool
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, Block, BuildError, Command, MaxRounds, SpecError


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


def adding() -> ScriptedProvider:
    return ScriptedProvider([Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "It is 3."])


def test_five_lines_are_enough() -> None:
    provider = adding()
    agent = Agent(provider, tools=[add], system_prompt="You add.")
    result = agent.run("How much is 1 and 2?")

    assert (result.text, result.rounds, result.reason.code) == ("It is 3.", 2, "natural_end")
    sent = [(item["role"], item["content"]) for item in provider.requests[1].native_messages]
    assert sent == [
        ("system", "You add."),
        ("user", "How much is 1 and 2?"),
        ("assistant", ""),
        ("tool", "3"),
    ]


def test_the_same_on_an_event_loop() -> None:
    result = asyncio.run(Agent(adding(), tools=[add]).run_async("How much is 1 and 2?"))

    assert (result.text, result.rounds) == ("It is 3.", 2)


def test_a_provider_class_does_as_well() -> None:
    assert Agent(EchoProvider).run("Hello there").text == "Hello there"


def test_a_session_goes_on_where_it_was() -> None:
    provider = ScriptedProvider(["Hi Ada.", "You are Ada."])
    agent = Agent(provider)

    first = agent.run("I am Ada.")
    second = agent.run("Who am I?", session=first.session)

    assert [item["content"] for item in provider.requests[1].native_messages] == [
        "I am Ada.",
        "Hi Ada.",
        "Who am I?",
    ]
    assert second.session.session_id == first.session.session_id
    assert [message["content"] for message in second.messages] == ["Who am I?", "You are Ada."]
    assert len(first.session.messages) == 2


def test_two_runs_of_one_agent_know_nothing_of_each_other() -> None:
    agent = Agent(ScriptedProvider(["One.", "Two."]))

    first, second = agent.run("Hello."), agent.run("Hello.")

    assert first.session.session_id != second.session.session_id
    assert len(second.session.messages) == 2


def test_a_run_that_fails_raises_what_it_failed_with() -> None:
    agent = Agent(ScriptedProvider([ValueError("no luck"), ValueError("no luck")]))

    with pytest.raises(ProviderError, match="no luck"):
        agent.run("Hello.")
    with pytest.raises(ProviderError, match="no luck"):
        asyncio.run(agent.run_async("Hello."))


def test_a_stream_tells_of_a_failure_and_does_not_raise() -> None:
    stream = Agent(ScriptedProvider([ValueError("no luck")])).stream("Hello.")

    assert [event["type"] for event in stream] == ["run_start", "step_start", "error", "run_end"]
    assert stream.result is not None
    assert "no luck" in str(stream.result.error)


def test_a_stream_shows_the_run_and_has_its_result() -> None:
    stream = Agent(ScriptedProvider([Reply(chunks=["Hel", "lo."])])).stream("Hi.", run_id="r")

    texts = [event["text"] for event in stream if event["type"] == "text"]

    assert texts == ["Hel", "lo."]
    assert stream.result is not None
    assert (stream.result.text, stream.result.run_id) == ("Hello.", "r")


def test_an_async_stream_does_the_same() -> None:
    async def main() -> tuple[list[Any], Any]:
        stream = Agent(ScriptedProvider([Reply(chunks=["Hel", "lo."])])).stream_async("Hi.")
        return [event["text"] async for event in stream if event["type"] == "text"], stream.result

    texts, result = asyncio.run(main())

    assert (texts, result.text) == (["Hel", "lo."], "Hello.")


def test_a_run_takes_every_option_of_a_request() -> None:
    provider = ScriptedProvider(["Hi."])
    kept: list[str] = []

    Agent(provider, config={"temperature": 0.1, "seed": 7}).run(
        "Hello.", config={"temperature": 0.5}, checkpoint=lambda checkpoint: kept.append(checkpoint.kind)
    )

    assert [provider.requests[0].config[key] for key in ("temperature", "seed")] == [0.5, 7]
    assert kept == ["input", "answer", "end"]


def test_an_agent_takes_plugins_and_every_field_of_a_spec() -> None:
    class Guard:
        name, version = "guard", "1"

        def register(self, registrar: Any) -> None:
            registrar.tool_gate(lambda _view: Block("closed"))

    calls = Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})])
    agent = Agent(
        ScriptedProvider([calls] * 5), tools=[add], plugins={"guard": Guard()}, stop_conditions=[MaxRounds(2)]
    )

    result = agent.run("Go.", on_limit="return")

    assert (result.reason.code, result.rounds) == ("max_rounds", 2)
    assert result.messages[2]["content"] == "Error: the call was not allowed: closed"
    assert agent.runtime.resolve("agent").spec.plugin_ids == ("guard",)


def test_requests_are_repeated_unless_the_agent_says_otherwise() -> None:
    class Busy(AgentError):
        category = "overloaded"
        retryable = True

    script: list[Any] = [Busy("busy"), "Hi."]
    patient = Agent(ScriptedProvider(list(script)), sections={"retry": {"base_delay": 0.0}})
    hasty = Agent(ScriptedProvider(list(script)), sections={"retry": {"max_retries": 0, "stream_retries": 0}})

    assert patient.run("Hello.").text == "Hi."
    with pytest.raises(Busy):
        hasty.run("Hello.")
    assert type(Agent(ScriptedProvider([])).runtime.resolve("agent").provider).__name__ == "RetryingExecutor"


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("antropic:claude", "no installed plugin provides the model 'antropic:claude': did you mean"),
        ("nobody-knows-this", 'write "provider:model", for example'),
        ("", "no installed plugin provides the model ''"),
    ],
)
def test_a_model_that_nobody_provides_is_named_with_the_nearest_one(model: str, told: str) -> None:
    with pytest.raises(ArgumentError, match="no installed plugin") as caught:
        Agent(model)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("openai/gpt-4o", "openai:gpt-4o"),
        ("claude-sonnet-5", "anthropic:claude-sonnet-5"),
    ],
)
def test_a_model_without_its_provider_is_answered_with_what_to_write(model: str, written: str) -> None:
    with pytest.raises(ArgumentError, match=f"write '{written}' in place of '{model}'"):
        Agent(model)


@pytest.mark.parametrize("model", [5, None, object(), [EchoProvider]])
def test_a_model_that_is_none_is_refused(model: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="model must be a name or a provider, not"):
        Agent(model)


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises((SpecError, TypeError), match="max_round"):
        Agent(EchoProvider, max_round=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="time_out"):
        Agent(EchoProvider).run("Hello.", time_out=3)  # type: ignore[call-overload]


def test_everything_wrong_with_the_tools_is_reported() -> None:
    with pytest.raises(BuildError, match="tool 'add' is declared twice"):
        Agent(EchoProvider, tools=[add, tool(add)])


def test_a_request_with_nothing_to_ask_raises() -> None:
    with pytest.raises(ArgumentError, match="there is nothing to ask"):
        Agent(EchoProvider).run([])


def test_a_hook_may_stop_a_run_and_nothing_is_raised() -> None:
    class Stopper:
        name, version = "stopper", "1"

        def register(self, registrar: Any) -> None:
            registrar.phase_hook("after_inference", lambda _view: Command().stop("enough"))

    result = Agent(ScriptedProvider(["Hi."]), plugins={"stopper": Stopper()}).run("Hello.")

    assert (result.reason.code, result.text) == ("enough", "Hi.")


def test_an_agent_whose_model_fails_does_not_put_another_one_out_of_service() -> None:
    provider = ScriptedProvider(repeat(ConnectionError("down")), name="one")
    down = Agent(provider, sections={"retry": {"max_retries": 0}})
    for _ in range(10):
        with pytest.raises(Exception, match=r"down|left alone"):
            down.run("hello")

    assert Agent(ScriptedProvider(["fine"], name="two")).run("hello").text == "fine"
    assert Agent(ScriptedProvider(["fine"], name="one")).run("hello").text == "fine"


def test_a_session_that_goes_on_with_another_provider_does_not_bring_foreign_native_history() -> None:
    first = Agent(ScriptedProvider(["one"], name="first")).run("hello")
    second = ScriptedProvider(["two"], name="second")

    result = Agent(second).run("and now?", session=first.session)

    assert result.session.metadata["native_provenance"]["provider"] == "second"
    sent = [message["content"] for message in second.requests[0].native_messages]
    assert sent == ["hello", "one", "and now?"]


def test_a_model_is_found_by_its_name_among_the_installed_providers() -> None:
    pytest.importorskip("local_llama_provider")

    agent = Agent("local")  # nothing is loaded before the first question

    assert agent.runtime.resolve("agent").model.provider == "local_llama"


def test_an_answer_that_was_cut_off_is_returned_and_says_so() -> None:
    half = Reply(text="Half of", extra={"finish_reason": "length"})
    result = Agent(ScriptedProvider([half])).run("Tell me.")

    assert (result.output, result.reason.code) == ("Half of", "length")


@pytest.mark.parametrize(
    ("model", "package"),
    [("local", "keelwork-local-llama-provider"), ("openai:gpt-5", "keelwork-openai-responses-provider")],
)
def test_a_provider_of_ours_that_is_not_installed_is_named_by_its_package(
    model: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "")

    with pytest.raises(ArgumentError, match=rf"install it with `pip install {package}`"):
        Agent(model).run("Hello")
