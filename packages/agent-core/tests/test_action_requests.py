"""Actions that ask the model themselves: prepared like a request, or by way of the core."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_core import AgentCore, PluginError, PluginMutationError, ProviderError, Session
from agent_core.testing import EchoProvider, ScriptedProvider

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Outcome = tuple[Session, dict[str, Any]]
Run = Callable[..., Outcome]


class Preparing:
    """Notes in the history and in the state that it was there when a request was prepared."""

    version = "1"

    def __init__(self, name: str, priority: int = 100) -> None:
        self.name = name
        self.priority = priority

    def initialize_request(
        self, native_messages: Dicts, state: State, context: dict[str, Any]
    ) -> tuple[Dicts, State]:
        seen = state.get("seen", [])
        note = {"role": "system", "content": f"{self.name} after {len(seen)}, {context['provider']}"}
        return [*native_messages, note], {**state, "seen": [*seen, self.name]}


class PreparingProvider(EchoProvider):
    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        return [{"role": "system", "content": "echo first"}, *native_messages], {**state, "seen": ["echo"]}


class Asking:
    """Offers one action, which is a function of its native messages, context and state."""

    version = "1"

    def __init__(self, function: Callable[..., Any], name: str = "asking") -> None:
        self.name = name
        self._function = function

    def get_actions(self) -> Dicts:
        return [{"id": "ask", "trigger": ["session_create"]}]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any],
        state: State,
    ) -> Any:
        return self._function(session, native_messages, context, state)


def prepare(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
    """Prepare the action's native messages as a request's would be."""
    core: AgentCore = context["core"]
    prepared, changed = core.initialize_action_request(
        native, state, context["request_runtime"], context["request_context"]
    )
    return {"prepared": [item["content"] for item in prepared], "seen": changed["seen"]}


def core_with(provider: Any, *features: Any, extensions: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(provider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    return core


def _run(core: AgentCore, session: Session) -> Outcome:
    return core.execute_session_action(session, {}, "asking", "ask", {})


def _run_async(core: AgentCore, session: Session) -> Outcome:
    return asyncio.run(core.execute_session_action_async(session, {}, "asking", "ask", {}))


def _run_lifecycle(core: AgentCore, session: Session) -> Outcome:
    changed, [record] = core.execute_lifecycle_actions(session, {}, "session_create")
    return changed, record["result"]


@pytest.fixture(params=[_run, _run_async, _run_lifecycle], ids=["call", "async", "lifecycle"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run the action "ask" in each of the ways in which an action can run."""
    driver: Run = request.param
    return driver


def conversation(*contents: str) -> Session:
    session = Session("s")
    for content in contents:
        session = AgentCore().add_message(session, "user", content)
    return session


# initialize_action_request


def test_an_action_can_prepare_its_messages_as_a_request_would(run: Run) -> None:
    core = core_with(
        PreparingProvider,
        Preparing("late", priority=200),
        Asking(prepare),
        Preparing("early", priority=1),
        extensions=[Preparing("extra")],
    )

    _, result = run(core, conversation("hello"))

    assert result["seen"] == ["echo", "extra", "early", "late"]
    assert result["prepared"] == [
        "echo first",
        "hello",
        "extra after 1, echo",
        "early after 2, echo",
        "late after 3, echo",
    ]


def test_preparing_in_an_action_leaves_the_session_alone(run: Run) -> None:
    core = core_with(PreparingProvider, Asking(prepare), Preparing("adding"))
    session = conversation("hello")

    assert run(core, session)[0] is session


def test_an_action_sees_what_a_request_would_send() -> None:
    provider = ScriptedProvider(["fine"])
    core = core_with(provider, Preparing("adding"), Preparing("more"), Asking(prepare))
    session = conversation("hello")

    _, result = core.execute_session_action(session, {}, "asking", "ask", {})
    core.send_request(session, {})

    [sent] = provider.requests
    assert result["prepared"] == [item["content"] for item in sent.native_messages]


def test_features_may_be_left_out() -> None:
    core = core_with(PreparingProvider, Preparing("adding"))
    runtime = {"provider": core.resolve({}).provider}
    messages = [{"role": "user", "content": "hello"}]

    for given in (runtime, {**runtime, "features": None}, {**runtime, "features": []}):
        native, state = core.initialize_action_request(messages, {"mine": 1}, given, {})

        assert [item["content"] for item in native] == ["echo first", "hello"]
        assert state == {"mine": 1, "seen": ["echo"]}
    assert messages == [{"role": "user", "content": "hello"}]


def test_messages_that_nobody_prepares_come_back_equal() -> None:
    core = core_with(EchoProvider, Asking(prepare))
    state: State = {}

    native, same = core.initialize_action_request(
        [{"a": 1}], state, {"provider": core.resolve({}).provider}, {}
    )

    assert native == [{"a": 1}]
    assert same is state


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"native_messages": ({"a": 1},)}, TypeError, "native_messages must be a list, not tuple"),
        ({"native_messages": None}, TypeError, "native_messages must be a list"),
        ({"state": []}, TypeError, "state must be a dict, not list"),
        ({"request_runtime": None}, TypeError, "request_runtime must be a dict"),
        ({"request_context": "context"}, TypeError, "request_context must be a dict"),
        ({"request_runtime": {}}, ValueError, "request_runtime must include the provider"),
        ({"request_runtime": {"provider": None, "features": []}}, ValueError, "must include the provider"),
    ],
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], error: type[Exception], message: str) -> None:
    core = core_with(EchoProvider)
    runtime = {"provider": core.resolve({}).provider, "features": []}
    right = {"native_messages": [], "state": {}, "request_runtime": runtime, "request_context": {}}

    with pytest.raises(error, match=message):
        core.initialize_action_request(**{**right, **wrong})


@pytest.mark.parametrize("features", [(), {}, "notes"])
def test_features_are_a_list(features: Any) -> None:
    core = core_with(EchoProvider)

    with pytest.raises(TypeError, match=r"request_runtime\['features'\] must be a list"):
        core.initialize_action_request(
            [], {}, {"provider": core.resolve({}).provider, "features": features}, {}
        )


def _change(self: Any, native_messages: Dicts, state: State) -> Any:
    native_messages[0]["content"] = "changed"
    return native_messages, state


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (_change, PluginMutationError),
        (lambda self, native_messages, state: None, PluginError),
        (lambda self, native_messages, state: (native_messages, None), PluginError),
    ],
    ids=["changes its input", "returns None", "returns no state"],
)
def test_a_plugin_that_prepares_badly_is_named(run: Run, hook: Any, error: type[Exception]) -> None:
    bad = type("Bad", (), {"name": "bad", "version": "1", "initialize_request": hook})
    core = core_with(EchoProvider, bad, Asking(prepare))

    with pytest.raises(error) as raised:
        run(core, conversation("hello"))

    assert isinstance(raised.value, PluginError)
    assert (raised.value.plugin, raised.value.hook) == ("bad", "initialize_request")


# Asking by way of the core


def summarise(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
    """Replace the conversation by what the model makes of it."""
    core: AgentCore = context["core"]
    question = core.add_message(session, "user", "Summarise.", config=context["config"])
    _, finals = core.send_request(question, context["config"])
    return {"native_messages": [{"role": "system", "content": finals[-1]["content"]}], "status": "ok"}


def test_an_action_can_send_a_request_of_its_own(run: Run) -> None:
    provider = ScriptedProvider(["They said hello."])
    core = core_with(provider, Asking(summarise))

    session, result = run(core, conversation("hello", "hello?"))

    assert result == {"status": "ok"}
    assert [(m.role, m.content) for m in session.messages] == [("system", "They said hello.")]
    [sent] = provider.requests
    assert [item["content"] for item in sent.native_messages] == ["hello", "hello?", "Summarise."]


def test_an_action_can_read_a_stream_of_its_own(run: Run) -> None:
    def listen(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        core: AgentCore = context["core"]
        *partials, _final = core.send_request_stream(session, context["config"])
        return {"heard": [event["message"]["content"] for event in partials]}

    _, result = run(core_with(EchoProvider, Asking(listen)), conversation("one two"))

    assert result == {"heard": ["one ", "two"]}


def test_an_action_can_run_another_plugins_action() -> None:
    def delegate(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        core: AgentCore = context["core"]
        changed, reported = core.execute_session_action(session, context["config"], "other", "ask", {})
        return {"session_metadata": {"title": changed.metadata["title"]}, **reported}

    other = Asking(lambda *_: {"session_metadata": {"title": "t"}, "status": "done"}, "other")
    core = core_with(EchoProvider, Asking(delegate), other)

    session, _ = core.execute_session_action(conversation("x"), {}, "asking", "ask", {})

    assert session.metadata["title"] == "t"


def test_a_request_inside_an_action_has_a_state_of_its_own(run: Run) -> None:
    def ask(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        state["mark"] = "outer"
        core: AgentCore = context["core"]
        core.send_request(session, context["config"])
        return {"mark": state["mark"], "words": state["words"]}

    _, result = run(core_with(EchoProvider, Asking(ask)), conversation("one two"))

    assert result == {"mark": "outer", "words": []}


def test_a_request_that_fails_inside_an_action_keeps_its_own_error(run: Run) -> None:
    core = core_with(ScriptedProvider([ConnectionError("no network")]), Asking(summarise))

    with pytest.raises(ProviderError, match="no network") as raised:
        run(core, conversation("hello"))

    assert raised.value.plugin == "scripted"


def test_an_action_may_answer_with_an_error_when_its_request_fails(run: Run) -> None:
    def careful(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        try:
            return summarise(session, native, context, state)
        except ProviderError as error:
            return {"native_messages": native, "error": {"type": "provider", "message": str(error)}}

    core = core_with(ScriptedProvider([ConnectionError("no network")]), Asking(careful))
    session = conversation("hello")

    unchanged, result = run(core, session)

    assert unchanged is session
    assert result["error"]["type"] == "provider"


def test_an_action_at_the_end_of_a_turn_may_ask_the_model_again() -> None:
    class Reviewing(Asking):
        def get_actions(self) -> Dicts:
            return [{"id": "ask", "trigger": "response_finalize"}]

    def review(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        if context.get("reviewing"):
            return {}
        core: AgentCore = context["core"]
        _, finals = core.send_request(session, context["config"], context={"reviewing": True})
        return {"final_messages": finals}

    core = core_with(ScriptedProvider(["draft", "better"]), Reviewing(review))

    session, messages = core.send_request(conversation("write"), {})

    assert [message["content"] for message in messages] == ["better"]
    assert [message.content for message in session.messages] == ["write", "better"]


# The provider in request_runtime


class Shouting:
    """An extension that changes messages on both ways."""

    name = "shouting"

    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        return [{**item, "content": item["content"].upper()} for item in native_messages]

    def from_native_messages(self, native_messages: Dicts, messages: Dicts) -> Dicts:
        return [{**message, "content": f"{message['content']}!"} for message in messages]


def converse(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
    """Convert a question, ask the provider and read its answer, all by hand."""
    provider, about = context["request_runtime"]["provider"], context["request_context"]
    question = provider.to_native_messages([{"role": "user", "content": "and tea"}], state, context=about)
    native, state = provider.initialize_request([*native, *question], state, context=about)
    partials, finals, native, state = provider.call_api(native, state, request_id="7")
    more, native, state = provider.finalize(native, state, context=about)
    read = provider.from_native_messages([*finals, *more], state, context=about)
    return {"read": read, "native": [item["content"] for item in native], "partials": len(partials)}


FORMS: dict[str, dict[str, Any]] = {
    "stream_api": {"call_api": None, "call_api_async": None, "stream_api_async": None},
    "stream_api_async": {"call_api": None, "call_api_async": None, "stream_api": None},
    "call_api": {"stream_api": None, "stream_api_async": None, "call_api_async": None},
    "call_api_async": {"stream_api": None, "stream_api_async": None, "call_api": None},
}


@pytest.mark.parametrize("form", FORMS)
def test_an_action_can_convert_and_ask_with_any_provider(run: Run, form: str) -> None:
    class Whole(EchoProvider):
        def call_api(self, native_messages: Dicts, state: State) -> Any:
            reply = {"role": "assistant", "content": native_messages[-1]["content"]}
            return [], [reply], [*native_messages, reply], state

        async def call_api_async(self, native_messages: Dicts, state: State) -> Any:
            return Whole.call_api(self, native_messages, state)

    provider = type("Provider", (Whole,), {"name": "echo", **FORMS[form]})
    core = core_with(provider, Asking(converse), extensions=[Shouting])

    _, result = run(core, conversation("coffee"))

    assert [message["content"] for message in result["read"]] == ["AND TEA!"]
    assert result["native"] == ["COFFEE", "AND TEA", "AND TEA"]
    assert (result["partials"] > 0) is form.startswith("stream")


def test_a_provider_that_fails_an_action_is_named(run: Run) -> None:
    class Failing(EchoProvider):
        def stream_api(self, native_messages: Dicts, state: State) -> Any:
            raise OSError("no route")

        stream_api_async = None  # type: ignore[assignment]  # not offered

    core = core_with(Failing, Asking(converse))

    with pytest.raises(ProviderError, match="Plugin 'echo', hook 'stream_api': raised OSError: no route"):
        run(core, conversation("coffee"))


def test_an_action_can_stream_a_request_of_its_own(run: Run) -> None:
    def stream(session: Session, native: Dicts, context: dict[str, Any], state: State) -> dict[str, Any]:
        *partials, final = context["core"].stream_request(session, context["config"])
        return {"said": [event["message"]["content"] for event in partials], "end": final["type"]}

    _, result = run(core_with(EchoProvider, Asking(stream)), conversation("good morning"))

    assert result == {"said": ["good ", "morning"], "end": "final"}
