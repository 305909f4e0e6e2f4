"""Dependencies, instructions, tools, tool sets, limits and guardrails of an `Agent`."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import threading
import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pytest

from agent_core import (
    AgentError,
    ArgumentError,
    ArgumentTypeError,
    ConfigError,
    FunctionTool,
    PluginError,
    ProviderError,
    ToolReturn,
)
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    Agent,
    AgentRuntimeBuilder,
    AgentSpec,
    BuildError,
    DelegateCycle,
    GuardrailTripped,
    LimitReached,
    ModelRetry,
    ModelSpec,
    RunContext,
    RunRequest,
    ToolSet,
    Usage,
    UsageLimits,
    dynamic,
)
from agent_testing import ScriptedServer, chat_reply


@dataclass
class Shop:
    orders: list[str]


def calling(*names: str, **arguments: Any) -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments) for name in names])


def tools_of(provider: ScriptedProvider, request: int = 0) -> list[str]:
    return [tool["function"]["name"] for tool in provider.requests[request].config.get("tools") or ()]


# Dependencies


def test_a_tool_gets_the_run_and_the_model_does_not_see_that() -> None:
    provider = ScriptedProvider([calling("orders", status="open"), "One."])
    agent = Agent(provider, deps_type=Shop, name="clerk")
    seen: list[RunContext[Shop]] = []

    @agent.tool
    def orders(ctx: RunContext[Shop], status: str) -> list[str]:
        """Return orders."""
        seen.append(ctx)
        return [f"{status} {order}" for order in ctx.deps.orders]

    shop = Shop(["tea"])
    result = agent.run("What is open?", deps=shop, run_id="r")

    schema = provider.requests[0].config["tools"][0]["function"]["parameters"]
    assert list(schema["properties"]) == ["status"]
    assert json.loads(result.messages[2]["content"]) == ["open tea"]
    [ctx] = seen
    assert ctx.deps is shop
    assert (ctx.run_id, ctx.agent, ctx.model, ctx.round, ctx.tool_call_id) == (
        "r",
        "clerk",
        "scripted",
        1,
        "call_1",
    )
    assert ctx.usage.requests == 1
    assert [message.role for message in ctx.session.messages] == ["user", "assistant"]


def test_the_run_reaches_instructions_hooks_and_transforms() -> None:
    seen: list[object] = []

    class Watches:
        name, version = "watches", "1"

        def register(self, registrar: Any) -> None:
            registrar.phase_hook("run_start", lambda view: seen.append(view.context.deps))
            registrar.request_transform(self.note)

        def note(self, prompt: Any, view: Any) -> Any:
            seen.append(view.context.deps)
            return prompt

    provider = ScriptedProvider(["Hi.", "Hi."])
    agent = Agent(
        provider,
        deps_type=str,
        instructions=["You are kind.", lambda ctx: f"You serve {ctx.deps}."],
        plugins={"watches": Watches()},
    )

    @agent.instructions
    async def more() -> str:
        return "Be brief."

    agent.run("Hello.", deps="Ada")
    asyncio.run(agent.run_async("Hello.", deps="Bo"))

    systems = [request.native_messages[0]["content"] for request in provider.requests]
    assert systems == [f"You are kind.\n\nYou serve {name}.\n\nBe brief." for name in ("Ada", "Bo")]
    assert seen == ["Ada", "Ada", "Bo", "Bo"]


def test_delegates_get_the_same_dependencies_and_limits() -> None:
    seen: list[object] = []
    helper = Agent(ScriptedProvider([calling("look"), "looked"]), name="helper", description="Looks.")

    @helper.tool
    def look(ctx: RunContext[Any]) -> str:
        seen.append((ctx.deps, ctx.parents))
        return "seen"

    boss = Agent(
        ScriptedProvider([calling("delegate_helper", prompt="Look."), "Done."]),
        name="boss",
        deps_type=str,
        delegates=[helper],
    )

    result = boss.run("Go.", deps="Ada", limits=UsageLimits(requests=4))

    assert seen == [("Ada", ("boss",))]
    assert (result.output, result.usage.requests) == ("Done.", 4)


def test_an_agent_as_a_tool_gives_its_output_as_json() -> None:
    @dataclass
    class Sum:
        total: int

    adder = Agent(ScriptedProvider([calling("final_result", total=3)]), name="adder", output_type=Sum)
    boss = Agent(
        ScriptedProvider([calling("add", prompt="1 and 2"), "It is 3."]),
        tools=[adder.as_tool("add", "Adds.")],
    )

    result = boss.run("Go.")

    assert json.loads(result.messages[2]["content"]) == {"total": 3}
    assert boss.runtime.resolve("agent").descriptors[0].description.endswith("Adds.")


def test_override_holds_in_its_block_only() -> None:
    agent = Agent(ScriptedProvider(["real"]), deps_type=str, instructions=lambda ctx: f"for {ctx.deps}")
    fake = ScriptedProvider([calling("stub"), "fake"])

    def stub() -> str:
        return "stubbed"

    with agent.override(model=fake, deps="test", tools=[stub]):
        result = agent.run("Hello.", deps="real")
    assert (result.output, fake.requests[0].native_messages[0]["content"]) == ("fake", "for test")
    assert agent.run("Hello.", deps="real").output == "real"


# Tools


def test_an_override_within_another_keeps_what_it_does_not_change() -> None:
    agent = Agent(ScriptedProvider([]), deps_type=str)

    @agent.instructions
    def who(ctx: RunContext[str]) -> str:
        return ctx.deps

    inner = ScriptedProvider(["Hi."])
    with agent.override(model=inner), agent.override(deps="Ada"):
        assert agent.run("Hello.", deps="Bob").output == "Hi."

    assert inner.requests[0].native_messages[0]["content"] == "Ada"


def test_a_tool_sends_the_model_back_and_counts() -> None:
    provider = ScriptedProvider([calling("pick"), calling("pick"), "Picked."])
    agent = Agent(provider)
    retries: list[int] = []

    @agent.tool(retries=1)
    def pick(ctx: RunContext) -> str:
        retries.append(ctx.retry)
        if not ctx.retry:
            raise ModelRetry("say which one")
        return "picked"

    result = agent.run("Go.")

    assert retries == [0, 1]
    assert result.messages[2]["content"] == "Error: say which one"


def test_a_tool_that_fails_too_often_ends_the_run() -> None:
    agent = Agent(ScriptedProvider([calling("pick")] * 5))

    @agent.tool(retries=1)
    def pick() -> str:
        raise ModelRetry("no")

    with pytest.raises(LimitReached, match=r"tool_retries.*'pick' failed 2 times in a row"):
        agent.run("Go.")


def test_a_result_may_leave_state_for_later_runs() -> None:
    agent = Agent(ScriptedProvider([calling("put", what="tea"), "ok", calling("show"), "ok"]))
    seen: list[object] = []

    @agent.tool
    def put(what: str) -> ToolReturn[str]:
        return ToolReturn(f"put {what}", state={"cart": [what]})

    @agent.tool
    def show(ctx: RunContext) -> str:
        seen.append(ctx.state["cart"])
        return "shown"

    first = agent.run("Put tea.")
    agent.run("Show.", session=first.session)

    assert seen == [["tea"]]


def test_tool_sets_are_prefixed_filtered_and_joined() -> None:
    def read() -> str:
        return "read"

    def delete() -> str:
        return "deleted"

    files = ToolSet.of(read, delete).prefixed("file_")
    safe = files.filtered(lambda ctx, tool: ctx.deps == "admin" or tool.name != "file_delete")
    provider = ScriptedProvider(["Hi.", "Hi.", calling("file_delete"), "ok"])
    agent = Agent(provider, deps_type=str, tools=[ToolSet.of(safe, delete)])

    agent.run("Hello.", deps="admin")
    agent.run("Hello.", deps="guest")
    result = agent.run("Delete it.", deps="guest")

    assert [tools_of(provider, number) for number in (0, 1)] == [
        ["file_read", "file_delete", "delete"],
        ["file_read", "delete"],
    ]
    assert "there is no such tool" in result.messages[2]["content"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_tools_may_be_decided_for_each_step(asynchronous: bool) -> None:
    def unlock() -> str:
        return "unlocked"

    async def secret() -> str:
        return "42"

    def offered(ctx: RunContext[Any]) -> list[Any]:
        return [unlock] if ctx.round < 2 else [secret]

    provider = ScriptedProvider([calling("unlock"), calling("secret"), "done"])
    agent = Agent(provider, tools=[dynamic(offered)])

    result = asyncio.run(agent.run_async("Go.")) if asynchronous else agent.run("Go.")

    assert [tools_of(provider, number) for number in range(3)] == [["unlock"], ["secret"], ["secret"]]
    assert [message["content"] for message in result.messages if message["role"] == "tool"] == [
        "unlocked",
        "42",
    ]


def test_tools_of_other_libraries_are_taken_as_they_are() -> None:
    """Stand-ins with what the tools of LangChain and of the OpenAI SDK have; both were tried as installed."""

    class LangChainTool:
        name, description = "search", "Searches."

        def __init__(self) -> None:
            self.args: dict[str, Any] = {}
            self.tool_call_schema = {"type": "object", "properties": {"query": {"type": "string"}}}

        def get_input_schema(self) -> None: ...

        async def ainvoke(self, arguments: dict[str, Any]) -> str:
            return f"found {arguments['query']}"

    agent = Agent(ScriptedProvider([calling("search", query="tea"), "ok"]), tools=[LangChainTool()])

    assert agent.run("Go.").messages[2]["content"] == "found tea"


# Limits


def look() -> str:
    return "seen"


@pytest.mark.parametrize(
    ("limits", "told", "asked"),
    [
        (UsageLimits(requests=1), "requests is at 1, of 1", 1),
        (UsageLimits(tool_calls=1), "1 ran and the model wants 1 more, of 1", 2),
        (UsageLimits(output_tokens=5), "output_tokens is at 5, of 5", 1),
        (UsageLimits(input_tokens=3), "the next request has an estimated", 0),
        (UsageLimits(cost=0.5), "cost is at 1, of 0.5", 1),
    ],
)
def test_a_run_stays_within_its_limits(limits: UsageLimits, told: str, asked: int) -> None:
    used = {"input_tokens": 1, "output_tokens": 5}
    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("look")], usage=used)] * 9, name="p")
    priced = ModelSpec("m", "p", output_price=200_000.0)
    agent = Agent(provider, tools=[look])
    agent.runtime.registries.models.replace("p", priced)

    with pytest.raises(LimitReached, match=r"usage_limit") as caught:
        agent.run("Go.", limits=limits)

    assert told in str(caught.value)
    assert len(provider.requests) == asked
    calls = [message for message in caught.value.result.session.messages if message.role == "tool"]
    assert len(calls) == asked  # each call has an answer


def test_a_limit_that_is_just_reached_is_not_broken() -> None:
    agent = Agent(ScriptedProvider(["Hi."]), limits=UsageLimits(requests=1, tool_calls=0))

    assert agent.run("Hello.").output == "Hi."


def test_another_model_may_answer_a_run() -> None:
    agent = Agent(ScriptedProvider(["one"], name="first"), instructions="You are kind.")
    other = ScriptedProvider(["two"], name="second")

    result = agent.run("Hello.", model=other)

    assert (result.output, agent.run("Hello.").output) == ("two", "one")
    assert other.requests[0].native_messages[0]["content"] == "You are kind."


def test_a_model_may_be_declared_with_its_price_and_asked_by_its_id() -> None:
    pytest.importorskip("local_llama_provider")
    models = [ModelSpec("small", "local_llama", output_price=3.0), ModelSpec("large", "local_llama")]

    agent = Agent("small", models=models)

    resolved = agent.runtime.resolve("agent")
    assert (resolved.model.id, resolved.model.output_price) == ("small", 3.0)
    assert set(resolved.models) == {"small", "large"}
    assert agent._assembly("large").model_id == "large"


def test_a_price_from_the_public_list_is_marked_as_an_estimate() -> None:
    pytest.importorskip("genai_prices")
    from agent_runtime.results import Usage

    counts = {"input_tokens": 1000, "output_tokens": 1000, "cached_input_tokens": 900}
    model = ModelSpec("m", "anthropic", "claude-sonnet-4-5")

    estimated = Usage.of_answer(counts, model)
    without_cache = Usage.of_answer({**counts, "cached_input_tokens": 0}, model)
    declared = Usage.of_answer(counts, ModelSpec("m", "anthropic", "claude-sonnet-4-5", output_price=1.0))

    assert 0 < estimated.cost < without_cache.cost
    assert estimated.cost_is_estimate and not declared.cost_is_estimate
    assert (Usage() + estimated).cost_is_estimate
    assert not Usage.of_answer(counts, ModelSpec("m", "p", "no-such-model")).cost_is_estimate


# Guardrails


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_guardrail_ends_a_run_before_the_model_is_asked(asynchronous: bool) -> None:
    provider = ScriptedProvider(["Hi."])
    agent = Agent(provider)

    @agent.input_guardrail
    def polite(ctx: RunContext, text: str) -> str | None:
        return "swearing" if "damn" in text else None

    with pytest.raises(GuardrailTripped, match="the guardrail 'polite' ended the run: swearing") as caught:
        asyncio.run(agent.run_async("damn")) if asynchronous else agent.run("damn")

    assert provider.requests == []
    assert (caught.value.guardrail, caught.value.why) == ("polite", "swearing")
    assert caught.value.result is not None
    assert caught.value.result.reason.code == "guardrail"
    assert agent.run("Hello.").output == "Hi."


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_guardrail_may_look_while_the_model_answers_and_cancels_it(asynchronous: bool) -> None:
    asked = threading.Event()

    def slow(messages: Any) -> Reply:
        asked.set()
        return Reply(chunks=["a", "b"], delay=float("inf"))

    agent = Agent(ScriptedProvider([slow]))

    @agent.input_guardrail(parallel=True)
    def later(ctx: RunContext, text: str) -> str | None:
        assert asked.wait(60)
        return "no"

    with pytest.raises(GuardrailTripped, match="'later' ended the run: no"):
        asyncio.run(agent.run_async("Hi.")) if asynchronous else agent.run("Hi.")


def test_no_tool_runs_before_a_parallel_guardrail_has_spoken() -> None:
    ran: list[int] = []
    agent = Agent(ScriptedProvider([calling("act"), "done"]))

    @agent.tool
    def act() -> str:
        ran.append(1)
        return "acted"

    @agent.input_guardrail(parallel=True)
    async def checks(ctx: RunContext, text: str) -> str | None:
        await asyncio.sleep(0)
        return "no"

    stream = agent.stream("Go.")
    events = list(stream)

    assert ran == []
    assert events[-1]["type"] == "run_end"
    assert events[-1]["reason"]["code"] == "guardrail"


@pytest.mark.parametrize("kind", [str, int])
def test_a_guardrail_looks_at_the_output(kind: Any) -> None:
    reply: Any = "secret" if kind is str else calling("final_result", response=7)
    agent = Agent(ScriptedProvider([reply]), output_type=kind)

    @agent.output_guardrail
    def leaks(ctx: RunContext, output: object) -> str | None:
        return "it leaks" if output in ("secret", 7) else None

    with pytest.raises(GuardrailTripped, match="it leaks"):
        agent.run("Tell me.")


def test_a_plugin_may_send_the_model_back_at_a_natural_end() -> None:
    from agent_runtime import Command

    class Twice:
        name, version = "twice", "1"

        def register(self, registrar: Any) -> None:
            registrar.end_hook(lambda view: Command().go_on("Say it again.") if view.run.round < 2 else None)

    provider = ScriptedProvider(["one", "two"])
    result = Agent(provider, plugins={"twice": Twice()}).run("Hello.")

    assert (result.output, result.rounds) == ("two", 2)
    assert provider.requests[1].native_messages[-1]["content"] == "Say it again."


# Everyday


def test_a_run_can_be_stepped_through() -> None:
    provider = ScriptedProvider([calling("look"), "done"])
    steps = Agent(provider, tools=[look]).iter("Go.")

    seen = [(step.round, step.calls, step.text, len(provider.requests)) for step in steps]

    assert seen == [(1, (("look", {}),), "", 1), (2, (), "done", 2)]
    assert steps.result is not None and steps.result.output == "done"

    async def collect() -> list[str]:
        agent = Agent(ScriptedProvider([calling("look"), "done"]), tools=[look])
        return [step.text async for step in agent.iter_async("Go.")]

    assert asyncio.run(collect()) == ["", "done"]


def test_a_blocking_run_works_inside_a_running_loop() -> None:
    async def fetch() -> str:
        await asyncio.sleep(0)
        return "fetched"

    async def cell() -> str:
        return Agent(ScriptedProvider([calling("fetch"), "done"]), tools=[fetch]).run("Go.").output

    assert asyncio.run(cell()) == "done"


def test_one_can_talk_with_an_agent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = ScriptedProvider([calling("look"), "Hi Ada.", "Ada."])
    lines = iter(["I am Ada.", "Who am I?", ""])
    monkeypatch.setattr("builtins.input", lambda _prompt: next(lines))

    Agent(provider, tools=[look]).repl()

    assert "[look()]" in capsys.readouterr().out
    assert len(provider.requests[2].native_messages) == 5


def test_agents_delegate_at_most_so_deep() -> None:
    agent = Agent(EchoProvider(), name="a1")
    for number in range(2, 9):
        agent = Agent(
            EchoProvider(),
            name=f"a{number}",
            delegates=[agent] if number % 2 else [],
            tools=([] if number % 2 else [agent.as_tool()]),
        )

    with pytest.raises(DelegateCycle, match=r"'top': its delegates go deeper than 8: top → a8 → .* → a1"):
        Agent(EchoProvider(), name="top", delegates=[agent])


def test_an_agent_that_answers_with_many_models_does_not_keep_them_all() -> None:
    agent = Agent(EchoProvider())
    first = EchoProvider()
    agent.run("Hello.", model=first)
    gone = weakref.ref(first)
    del first

    for _ in range(100):
        assert agent.run("Hello.", model=EchoProvider()).output == "Hello."

    gc.collect()
    assert gone() is None


# The first ten mistakes


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"system": "You add."}, ArgumentTypeError, "no option 'system': write instructions="),
        ({"api_key": "secret"}, ArgumentTypeError, """no option 'api_key': write config={"api_key": ...}"""),
        ({"max_round": 3}, ArgumentTypeError, "did you mean 'max_rounds'?"),
        ({"max_steps": 3}, ArgumentTypeError, "no option 'max_steps': write max_rounds=..."),
        ({"tools": ["files_tool"]}, ArgumentTypeError, r"or plugin_ids=\['files_tool'\] for an installed"),
        ({"plugins": ["files_tool"]}, ArgumentTypeError, r"""or plugin_ids=\["name"\] for installed ones"""),
        ({"plugin_ids": "files_tool"}, ArgumentTypeError, r"write plugin_ids=\['files_tool'\]"),
        ({"plugin_ids": ["file_tool"]}, BuildError, "did you mean 'files_tool'?"),
        ({"config": {"base_url": "htp://localhost:1/v1"}}, ConfigError, "write 'http://localhost:1/v1'"),
        ({"tools": look}, ArgumentTypeError, r"tools must be a list: write tools=\[look\]"),
        ({"config": {"base_url": "localhost:8080"}}, ConfigError, "write 'http://localhost:8080'"),
        ({"config": "key"}, ArgumentTypeError, "config must be a dict of settings, not str"),
        ({"handoffs": ["refunds"]}, ArgumentTypeError, "handoffs must be a list of agents, not of str"),
        ({"instructions": [5]}, ArgumentTypeError, "instructions are texts and functions, not int"),
        ({"instructions": 5}, ArgumentTypeError, "instructions are texts and functions, not int"),
        ({"delegates": 5}, ArgumentTypeError, "delegates must be a list of agents, not of int"),
        ({"output_mode": "json"}, ArgumentError, 'output_mode is "auto", "tool", "native" or "prompt", not'),
        ({"output_retries": -1}, ArgumentError, "output_retries is a number from 0 on, not -1"),
        ({"output_retries": "2"}, ArgumentError, "output_retries is a number from 0 on, not '2'"),
        ({"limits": {"requests": 3}}, ArgumentTypeError, "limits must be UsageLimits(..."),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(options: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=told.replace("(", r"\(").replace("{", r"\{").replace("?", r"\?")):
        Agent(EchoProvider, **options)


def test_a_missing_key_is_a_short_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic_provider")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    with pytest.raises(
        AgentError, match="needs an API key, and there is none; set ANTHROPIC_API_KEY"
    ) as caught:
        Agent("anthropic:claude-sonnet-5").run("Hello.")

    assert [entry.name for entry in caught.traceback][1:] == ["run", "settled", "raise_for_error"]


def test_an_installed_plugin_is_given_by_its_name() -> None:
    pytest.importorskip("files_tool")

    agent = Agent(EchoProvider, plugin_ids=["files_tool"])

    assert "read_file" in repr(agent)


def test_a_misspelt_setting_of_a_provider_is_noticed() -> None:
    pytest.importorskip("anthropic_provider")

    with pytest.raises(ConfigError, match="no setting 'temprature': did you mean 'temperature'"):
        Agent("anthropic:claude-sonnet-5", config={"api_key": "k", "temprature": 1})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"session": "abc"}, "session must be a Session, not str: give result.session"),
        ({"time_out": 3}, "did you mean 'timeout'"),
        ({"message_history": []}, "write session=result.session"),
        ({"max_turns": 3}, r"write limits=UsageLimits\(requests=...\) here, or max_rounds=... when you make"),
        ({"max_rounds": 3}, r"write limits=UsageLimits\(requests=...\) here"),
        ({"stream": True}, r"write agent.stream\(...\)"),
        ({"prompt": "Hello."}, r"no option 'prompt': give the text first: agent.run\("),
        ({"limits": 3}, r"limits must be UsageLimits\(...\), not int"),
    ],
)
def test_a_mistake_in_a_run_is_answered_with_what_to_write(options: Any, told: str) -> None:
    with pytest.raises(ArgumentTypeError, match=told):
        Agent(EchoProvider).run("Hello.", **options)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"needs_approval": True}, "a tool has no option 'needs_approval': write requires_approval=..."),
        ({"retry": 2}, "did you mean 'retries'"),
        ({"strict": True}, "known are name, description"),
    ],
)
def test_a_mistake_in_the_options_of_a_tool_is_answered_with_what_to_write(options: Any, hint: str) -> None:
    with pytest.raises(ArgumentTypeError, match=hint):
        Agent(EchoProvider).tool(**options)


def test_an_agent_among_the_tools_is_refused_with_what_to_write() -> None:
    with pytest.raises(ArgumentTypeError, match=r"'clerk'.*: write delegates=\[...\] for it"):
        Agent(EchoProvider, tools=[Agent(EchoProvider, name="clerk")])


@pytest.mark.parametrize("name", ["stream", "stream_async"])
def test_a_stream_names_what_others_call_its_methods(name: str) -> None:
    stream = getattr(Agent(EchoProvider), name)("Hello.")

    with pytest.raises(AttributeError, match=r"write stream.text\(\)"):
        stream.stream_text()


def test_a_message_that_is_none_is_refused() -> None:
    with pytest.raises(
        ArgumentTypeError, match="messages must be texts, files, messages or dicts of messages, not int"
    ):
        Agent(EchoProvider).run(5)


def test_an_unknown_way_to_end_at_a_limit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="on_limit"):
        Agent(EchoProvider).run("Hello.", on_limit="ignore")  # type: ignore[call-overload]


def test_a_decorated_tool_stays_a_function() -> None:
    agent = Agent(EchoProvider)

    @agent.tool
    def double(number: int) -> int:
        return 2 * number

    assert isinstance(double, FunctionTool)
    assert double(2) == 4
    assert "double" in repr(agent)


@pytest.mark.parametrize("on_a_loop", [False, True])
def test_context_variables_of_the_caller_reach_tools_that_run_at_once(on_a_loop: bool) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    both, seen = threading.Barrier(2), list[str]()

    def meet() -> str:
        both.wait(60)
        seen.append(tenant.get())
        return "met"

    twice = Reply(tool_calls=[ToolCall("meet", {}, "a"), ToolCall("meet", {}, "b")])
    agent = Agent(ScriptedProvider([twice, "Done."]), tools=[meet])

    token = tenant.set("acme")
    try:
        asyncio.run(agent.run_async("Go.")) if on_a_loop else agent.run("Go.")
    finally:
        tenant.reset(token)

    assert seen == ["acme", "acme"]


@pytest.mark.parametrize(("cost", "asked"), [(0.9, 0), (2000.0, 1)])
def test_a_request_that_would_cost_too_much_is_not_sent(cost: float, asked: int) -> None:
    provider = ScriptedProvider(["Hi."] * 3)
    model = ModelSpec("dear", "scripted", "m", input_price=1e6, output_price=1e6)
    runtime = (
        AgentRuntimeBuilder()
        .with_provider("scripted", provider)
        .with_model(model)
        .with_agent_spec(AgentSpec("a", "dear"))
        .build()
    )

    result = runtime.run_to_completion(RunRequest("a", "word " * 100, limits=UsageLimits(cost=cost)))

    assert len(provider.requests) == asked
    if not asked:
        assert "what the next request sends costs an estimated" in result.reason.detail


@pytest.mark.parametrize("name", ["run_sync", "run_stream", "tool_plain", "system_prompt", "ainvoke"])
def test_what_an_agent_is_called_by_in_other_libraries_is_said_in_ours(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^Agent has no attribute '{name}': write "):
        getattr(Agent(EchoProvider()), name)


@pytest.mark.parametrize("name", ["data", "final_output", "all_messages", "last_agent", "to_input_list"])
def test_what_a_result_has_in_other_libraries_is_said_in_ours(name: str) -> None:
    result = Agent(EchoProvider()).run("Hi.")

    with pytest.raises(AttributeError, match=rf"^RunResult has no attribute '{name}': write "):
        getattr(result, name)
    assert not hasattr(result, "anything_else")
    assert copy.deepcopy(result.usage) == result.usage


def test_a_name_in_the_place_of_a_model_is_told_apart() -> None:
    with pytest.raises(ArgumentError, match="the name of an agent is given as name='Assistant'"):
        Agent("Assistant")


def test_a_stream_shows_how_far_it_is() -> None:
    stream = Agent(EchoProvider()).stream("Hi.")
    steps = Agent(EchoProvider()).iter("Hi.")

    assert (repr(stream), repr(steps)) == ("<RunStream: not over yet>", "<RunSteps: not over yet>")
    list(stream)
    list(steps)
    assert repr(stream).startswith("<RunStream: RunResult(output='Hi.'")
    assert repr(steps).startswith("<RunSteps: RunResult(output='Hi.'")


def test_a_run_without_what_the_tools_were_promised_is_refused_at_once() -> None:
    provider = ScriptedProvider(["Hi."] * 3)
    agent = Agent(provider, deps_type=Shop)

    with pytest.raises(
        ArgumentError, match="the agent 'agent' works with deps of type Shop: run it with deps="
    ):
        agent.run("Hello.")  # type: ignore[call-arg]
    assert provider.requests == []
    with agent.override(deps=Shop([])):
        agent.run("Hello.")  # type: ignore[call-arg]
    agent.run("Hello.", deps=Shop([]))


def test_a_text_may_be_added_to_the_instructions() -> None:
    provider = ScriptedProvider(["Hi."])
    agent = Agent(provider, instructions="Be brief.")

    agent.instructions("Be kind.")
    agent.run("Hello.")

    assert provider.requests[0].native_messages[0]["content"] == "Be brief.\n\nBe kind."


# Functions of an agent that fail, or return what nobody can use


def _with(kind: str, function: Any) -> Agent[None, Any]:
    replies = repeat(calling("final_result", response=3))
    agent: Agent[None, Any] = Agent(ScriptedProvider(replies), output_type=int)
    getattr(agent, kind)(function)
    return agent


@pytest.mark.parametrize("kind", ["instructions", "input_guardrail", "output_validator", "output_guardrail"])
def test_a_function_that_fails_ends_the_run_and_is_named(kind: str) -> None:
    def careless(*_given: object) -> str:
        raise KeyError("boom")

    with pytest.raises(PluginError, match=rf"{kind} 'careless'.*KeyError: 'boom'") as caught:
        _with(kind, careless).run("Go.")

    assert isinstance(caught.value.__cause__, KeyError)


def test_an_output_function_that_fails_is_not_asked_again() -> None:
    asked = []

    def pay(amount: int) -> str:
        asked.append(amount)
        raise ConnectionError("the bank is closed")

    agent = Agent(ScriptedProvider(repeat(calling("final_result", amount=3))), output_type=pay)

    with pytest.raises(PluginError, match=r"output_type 'pay'.*the bank is closed"):
        agent.run("Go.")
    assert asked == [3]


@pytest.mark.parametrize("kind", ["input_guardrail", "output_guardrail"])
@pytest.mark.parametrize("verdict", [True, False, ["rude"]])
def test_a_guardrail_that_does_not_say_why_is_refused(kind: str, verdict: object) -> None:
    def check(ctx: RunContext, _looked_at: object) -> object:
        return verdict

    with pytest.raises(PluginError, match=r"'check'.*returns why the run must end, or None, not"):
        _with(kind, check).run("Go.")


def test_a_guardrail_may_do_without_the_context() -> None:
    agent = Agent(EchoProvider())

    @agent.input_guardrail
    def polite(text: str) -> str | None:
        return "rude" if "!" in text else None

    @agent.input_guardrail(parallel=True)
    async def short(text: str) -> str | None:
        return "long" if len(text) > 20 else None

    @agent.output_guardrail
    def calm(answer: str) -> str | None:
        return "loud" if answer.isupper() else None

    assert agent.run("Hello.").output == "Hello."
    for said, why in (("Hey!", "rude"), ("a" * 30, "long"), ("HELLO", "loud")):
        with pytest.raises(GuardrailTripped, match=why):
            agent.run(said)


def test_instructions_that_are_no_text_are_refused() -> None:
    def three() -> int:
        return 3

    with pytest.raises(PluginError, match=r"instructions 'three'.*must return a text, not int"):
        _with("instructions", three).run("Go.")


def test_a_parameter_with_a_default_is_not_taken_for_the_context() -> None:
    agent = Agent(EchoProvider())

    @agent.output_validator
    def shortened(answer: str, most: int = 3) -> str:
        return answer[:most]

    assert agent.run("Hello.").output == "Hel"


def test_a_validator_that_forgets_to_return_the_output_is_named() -> None:
    def forgets(number: int) -> None:
        assert number

    with pytest.raises(PluginError, match=r"output_validator 'forgets'.*it returned None: return the output"):
        _with("output_validator", forgets).run("Go.")


def test_a_validator_may_return_none_where_none_is_an_output() -> None:
    agent: Agent[None, Any] = Agent(
        ScriptedProvider([calling("final_result_int", response=3)]), output_type=int | None
    )
    agent.output_validator(lambda _number: None)

    assert agent.run("Go.").output is None


# Limits


def test_an_output_is_no_call_of_a_tool() -> None:
    provider = ScriptedProvider([calling("look"), calling("final_result", response=3)])
    agent = Agent(provider, output_type=int)

    @agent.tool
    def look() -> str:
        return "seen"

    result = agent.run("Go.", limits=UsageLimits(tool_calls=1))

    assert result.output == 3
    assert result.usage.tool_calls == 1


@pytest.mark.parametrize("own", [1, 5])
def test_a_delegate_stays_within_its_own_limits_and_those_of_the_run(own: int) -> None:
    child_model = ScriptedProvider(repeat(calling("look")))
    child = Agent(child_model, name="child", limits=UsageLimits(requests=own))

    @child.tool
    def look() -> str:
        return "seen"

    parent = Agent(ScriptedProvider([calling("delegate_child", prompt="Go."), "Done."]), delegates=[child])
    parent.run("Go.", limits=UsageLimits(requests=4), on_limit="return")

    assert len(child_model.requests) == min(own, 3)


@pytest.mark.parametrize(("price", "warned"), [(None, True), (1.0, False)])
def test_a_limit_of_cost_that_cannot_be_kept_is_said(price: float | None, warned: bool) -> None:
    model = ModelSpec("m", "echo", "nobody-has-heard-of-it", input_price=price)
    runtime = (
        AgentRuntimeBuilder()
        .with_provider("echo", EchoProvider)
        .with_model(model)
        .with_agent_spec(AgentSpec("a", "m"))
        .build()
    )

    events = list(runtime.run(RunRequest("a", "Hello.", limits=UsageLimits(cost=0.5))))

    said = [event["message"] for event in events if event["type"] == "warning"]
    expected = "the limit of cost cannot be kept: the price of the model 'm' is not known"
    assert [text.startswith(expected) for text in said] == [True] * warned


def test_a_small_amount_of_money_can_be_read() -> None:
    limits = UsageLimits(cost=0.000002)

    assert "0.0000015 was used" in str(limits.before_request(Usage(cost=0.0000015), 9, 0.000001))
    assert "of 0.000002 allowed" in str(limits.before_request(Usage(cost=0.0000015), 9, 0.000001))
    assert "cost is at 0.5, of 0.25 allowed" in str(UsageLimits(cost=0.25).reached(Usage(cost=0.5)))


def test_a_declared_model_of_the_same_provider_keeps_the_settings_of_the_provider() -> None:
    with ScriptedServer(chat_reply("Hi."), chat_reply("Hi."), chat_reply("Hi.")) as server:
        agent = Agent(
            "openai_compatible:large",
            config={"base_url": f"{server.url}/v1", "api_key": "a key of ours"},
            models=[ModelSpec("cheap", "openai_compatible", "small", input_price=1.0)],
        )
        assert agent.run("Hello.", model="cheap").usage.cost > 0
        assert agent.run("Hello.", model="openai_compatible:other").output == "Hi."

    assert [request.json["model"] for request in server.requests] == ["small", "other"]


# Steps


def test_a_run_that_is_left_between_two_steps_keeps_what_was_done() -> None:
    provider = ScriptedProvider([calling("look"), "Done."])
    agent = Agent(provider)

    @agent.tool
    def look() -> str:
        return "seen"

    with agent.iter("Go.") as steps:
        step = next(steps)

    assert [name for name, _ in step.calls] == ["look"]
    assert len(provider.requests) == 1
    assert steps.result is not None
    assert steps.result.reason.code == "cancelled"
    assert [message.role for message in steps.result.session.messages] == ["user", "assistant", "tool"]


def test_a_run_that_is_left_between_two_steps_on_a_loop_keeps_what_was_done() -> None:
    async def leave() -> Any:
        async with Agent(ScriptedProvider([calling("nothing"), "Done."])).iter_async("Go.") as steps:
            async for step in steps:
                assert step.round == 1
                break
        return steps.result

    result = asyncio.run(leave())

    assert result.reason.code == "cancelled"
    assert len(result.session.messages) == 3


def test_steps_end_with_what_the_run_raises() -> None:
    async def walk(agent: Agent[None, str]) -> list[object]:
        return [step async for step in agent.iter_async("Go.")]

    for read in (lambda agent: list(agent.iter("Go.")), lambda agent: asyncio.run(walk(agent))):
        with pytest.raises(ProviderError, match="no luck"):
            read(Agent(ScriptedProvider([ValueError("no luck")])))
        with pytest.raises(LimitReached):
            read(Agent(ScriptedProvider([]), limits=UsageLimits(requests=0)))


def test_a_step_prints_without_its_messages() -> None:
    [step] = Agent(ScriptedProvider(["Hi."])).iter("Go.")

    assert repr(step).startswith("RunStep(round=1, agent='agent', text='Hi.', calls=(), usage=Usage(")
