"""The context of plugins: layers, owned keys, and callers who may only add."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, Session, build_context
from agent_core.context import LIFECYCLE_FACTS, RESERVED_KEYS
from agent_core.testing import EchoProvider

Outcome = tuple[Session, list[dict[str, Any]], list[dict[str, Any]]]
Drive = Callable[..., Outcome]
Dicts = list[dict[str, Any]]


class Listener:
    """Notes the context of each action."""

    name = "listener"
    version = "1"

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def get_actions(self) -> Dicts:
        return [{"id": "listen"}, {"id": "follow", "trigger": ["session_create", "response_finalize"]}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: Any, context: dict[str, Any]
    ) -> Any:
        self.heard.append(context)
        return {}


def core_with(*features: Any, extensions: Any = (), tools: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    for tool in tools:
        core.register_tool(tool)
    return core


def _action(core: AgentCore, session: Session, config: Any, context: Any) -> None:
    core.execute_session_action(session, config, "listener", "listen", {}, context)


def _action_async(core: AgentCore, session: Session, config: Any, context: Any) -> None:
    asyncio.run(core.execute_session_action_async(session, config, "listener", "listen", {}, context))


def _lifecycle(core: AgentCore, session: Session, config: Any, context: Any) -> None:
    core.execute_lifecycle_actions(session, config, "session_create", context=context)


def _lifecycle_async(core: AgentCore, session: Session, config: Any, context: Any) -> None:
    asyncio.run(core.execute_lifecycle_actions_async(session, config, "session_create", context=context))


def _response(core: AgentCore, session: Session, config: Any, context: Any) -> None:
    core.send_request(session, config, context=context)


WAYS = [_action, _action_async, _lifecycle, _lifecycle_async, _response]
Way = Callable[[AgentCore, Session, Any, Any], None]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__[1:])
def way(request: pytest.FixtureRequest) -> Way:
    """Run an action in each of the ways that there are."""
    found: Way = request.param
    return found


def hear(
    way: Way, context: Any = None, config: dict[str, Any] | None = None
) -> tuple[AgentCore, dict[str, Any]]:
    """Return the core and the context that an action was given."""
    listener = Listener()
    core = core_with(listener)
    way(core, core.add_message(Session("s"), "user", "hello"), config or {}, context)
    [heard] = listener.heard
    return core, heard


def reserved(caplog: pytest.LogCaptureFixture) -> list[list[str]]:
    """Return the keys of which each warning said that they are reserved."""
    fields = [record.__dict__.get("fields", {}) for record in caplog.records]
    return [line["keys"] for line in fields if "keys" in line]


# Layer 1


def test_the_cores_keys_are_always_there(way: Way) -> None:
    core, context = hear(way, config={"model": "echo"})

    assert context["core"] is core
    assert context["config"] == {"model": "echo"}
    assert context["trigger_source"] == "core"
    assert context["session"]["session_id"] == "s"
    assert context["session"]["messages"][0]["content"] == "hello"
    assert context["request_context"]["provider"] == "echo"
    assert context["request_runtime"]["provider"].name == "echo"
    assert [feature.name for feature in context["request_runtime"]["features"]] == ["listener"]


@pytest.mark.parametrize(
    ("way", "lifecycle"),
    [(_action, None), (_lifecycle, "session_create"), (_response, "response_finalize")],
    ids=["manual", "lifecycle", "response"],
)
def test_the_lifecycle_is_named_where_there_is_one(way: Way, lifecycle: str | None) -> None:
    _, context = hear(way)

    assert context.get("lifecycle") == lifecycle


def test_the_session_is_plain_data_whatever_it_has_been_through() -> None:
    class Other(EchoProvider):
        name = "other"

    listener = Listener()
    core = core_with(listener)
    core.register_provider(Other)
    session = core.add_message(Session("s"), "user", "hello")
    for provider in ("echo", "other"):
        session, _ = core.send_request(session, {"provider": provider})
    listener.heard.clear()

    _action(core, session, {"provider": "echo"}, None)

    [context] = listener.heard
    assert context["session"] == session.to_dict()
    assert json.loads(json.dumps(context["session"])) == session.to_dict()
    assert json.loads(json.dumps(context["request_context"]["session"])) == session.to_dict()


# What callers add


def test_a_callers_keys_are_added(way: Way) -> None:
    _, context = hear(way, {"user": "a", "nested": {"list": [1, {"b": 2}]}})

    assert context["user"] == "a"
    assert context["nested"] == {"list": [1, {"b": 2}]}
    assert context["request_context"]["nested"] == {"list": [1, {"b": 2}]}


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS - LIFECYCLE_FACTS))
def test_a_reserved_key_stays_the_cores_and_one_warning_says_so(
    way: Way, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, context = hear(way, {key: "mine", "own": 1})

    assert context.get(key) != "mine"
    assert context["request_context"].get(key) != "mine"
    assert context["own"] == 1
    assert reserved(caplog) == [[key]]


@pytest.mark.parametrize("way", [_action, _response], ids=["manual", "response"])
@pytest.mark.parametrize("key", sorted(LIFECYCLE_FACTS))
def test_only_who_runs_a_lifecycle_can_say_what_it_is_about(
    way: Way, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, context = hear(way, {key: "forged"})

    assert key not in context
    assert key not in context["request_context"]
    assert reserved(caplog) == [[key]]


def test_who_runs_a_lifecycle_says_what_it_is_about(caplog: pytest.LogCaptureFixture) -> None:
    _, context = hear(_lifecycle, {"previous_agent_id": "a", "lifecycle": "session_create"})

    assert context["previous_agent_id"] == "a"
    assert reserved(caplog) == []


def test_several_reserved_keys_are_named_in_one_warning(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    hear(way, {"core": 1, "own": 2, "tags": 3})

    assert reserved(caplog) == [["core", "tags"]]


def test_repeating_what_the_core_says_anyway_is_no_mistake(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    same = core_with().add_message(Session("s"), "user", "hello").to_dict()
    hear(way, {"trigger_source": "co" + "re".lower(), "config": {}, "session": same})

    assert reserved(caplog) == []


def test_a_callers_own_request_id_is_what_plugins_find(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks()
    core = core_with(hooks)
    session = core.add_message(Session("s"), "user", "hello")

    drive(core, session, {}, context={"request_id": "of the server"}, request_id="of the request")
    theirs = hooks.heard["finalize"]["request_id"]
    drive(core, session, {}, request_id="of the request")

    assert (theirs, hooks.heard["finalize"]["request_id"]) == ("of the server", "of the request")
    assert caplog.messages == []


@pytest.mark.parametrize("key", ["provider", "enabled_plugin_ids", "tags", "models", "tools", "stream"])
def test_the_keys_of_a_request_are_reserved_for_its_hooks(
    drive: Drive, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks()
    core = core_with(hooks)

    drive(core, core.add_message(Session("s"), "user", "hello"), {}, context={key: "mine"})

    assert hooks.heard["finalize"][key] != "mine"
    assert reserved(caplog) == [[key]]


# Layers above


def test_a_layer_above_owns_its_keys_and_says_who_set_things_going(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    application = object()
    above = build_context(
        {"trigger_source": "application", "app": application, "base_config": {"agents": {}}}, {"extra": 1}
    )

    core, context = hear(way, above)

    assert context["trigger_source"] == "application"
    assert context["app"] is application
    assert context["base_config"] == {"agents": {}}
    assert context["extra"] == 1
    assert context["core"] is core
    assert caplog.messages == []


def test_what_a_layer_above_says_of_the_cores_own_keys_gives_way_without_a_warning(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    above = build_context({"core": "an older core", "session": {}, "config": {"all": "agents"}})

    core, context = hear(way, above)

    assert context["core"] is core
    assert context["config"] == {}
    assert context["session"]["session_id"] == "s"
    assert caplog.messages == []


def test_a_caller_above_a_layer_can_only_add_as_well(caplog: pytest.LogCaptureFixture) -> None:
    server = build_context({"server": "http", "request_id": "r1"}, {"app": "forged", "user": "ada"})
    application = build_context({"app": "real", "trigger_source": "application"}, server)

    assert application == {
        "server": "http",
        "request_id": "r1",
        "user": "ada",
        "app": "real",
        "trigger_source": "application",
    }
    assert reserved(caplog) == [["app"]]


def test_who_began_is_remembered_through_the_layers_between() -> None:
    server = build_context({"trigger_source": "server"})
    application = build_context({"app": "real"}, server)

    assert build_context({"trigger_source": "core"}, application)["trigger_source"] == "server"


def test_a_caller_cannot_pass_for_a_layer(caplog: pytest.LogCaptureFixture) -> None:
    above = build_context({"app": "real"}, {"trigger_source": "application"})

    assert build_context({"trigger_source": "core"}, above)["trigger_source"] == "core"
    assert reserved(caplog) == [["trigger_source"]]


def test_an_action_may_hand_its_context_on(caplog: pytest.LogCaptureFixture) -> None:
    class HandingOn(Listener):
        name = "handing_on"

        def get_actions(self) -> Dicts:
            return [{"id": "hand_on"}]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, params: Any, context: dict[str, Any]
        ) -> Any:
            core: AgentCore = context["core"]
            core.execute_session_action(session, context["config"], "listener", "listen", {}, context)
            return {}

    listener = Listener()
    core = core_with(HandingOn(), listener)

    core.execute_session_action(Session("s"), {}, "handing_on", "hand_on", {}, {"mine": 1})

    assert listener.heard[0]["mine"] == 1
    assert caplog.messages == []


def test_what_a_lifecycle_is_about_stays_there_if_an_action_hands_its_context_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class HandingOn(Listener):
        name = "handing_on"

        def get_actions(self) -> Dicts:
            return [{"id": "hand_on", "trigger": ["session_fork", "response_finalize"]}]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, params: Any, context: dict[str, Any]
        ) -> Any:
            core: AgentCore = context["core"]
            core.execute_session_action(session, context["config"], "listener", "listen", {}, context)
            return {}

    class Other(Listener):
        def get_actions(self) -> Dicts:
            return [{"id": "listen"}]

    listener = Other()
    core = core_with(HandingOn(), listener)
    session = core.add_message(Session("s"), "user", "hello")
    above = build_context({"trigger_source": "application", "app": "the application"})

    core.execute_lifecycle_actions(session, {}, "session_fork", context={"original_session": {}, "mine": 1})
    core.send_request(session, {}, context=above)

    of_lifecycle, of_response = listener.heard
    foreign = {"lifecycle", "original_session", "final_messages", "turn_native_start_index"}
    assert not foreign & {*of_lifecycle, *of_lifecycle["request_context"]}
    assert not foreign & {*of_response, *of_response["request_context"]}
    assert (of_lifecycle["mine"], of_response["app"]) == (1, "the application")
    assert of_response["trigger_source"] == "application"
    assert reserved(caplog) == []


KEYS = st.sampled_from(["core", "config", "trigger_source", "app", "a", "b"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(KEYS, st.integers(0, 3), max_size=4), min_size=1, max_size=4))
def test_the_lowest_layer_that_owns_a_key_has_the_say_except_about_who_began(
    layers: list[dict[str, int]],
) -> None:
    caller, *owners = layers
    context: dict[str, Any] = caller
    for owned in owners:
        context = build_context(owned, context)

    expected = {key: value for owned in (caller, *owners) for key, value in owned.items()}
    first = next((owned["trigger_source"] for owned in owners if "trigger_source" in owned), None)
    assert context == {**expected, **({} if first is None else {"trigger_source": first})}


# Frozen


@pytest.mark.parametrize(
    "change",
    [
        lambda context: context.update(new=1),
        lambda context: context["base_config"]["agents"].clear(),
        lambda context: context["extra"]["list"].append(2),
    ],
    ids=["itself", "what a layer put in", "what a caller put in"],
)
def test_a_context_is_frozen_all_the_way_down(change: Callable[[Any], None]) -> None:
    base_config: dict[str, Any] = {"agents": {"a": {}}}
    extra = {"list": [1]}
    context = build_context({"base_config": base_config}, {"extra": extra})

    with pytest.raises(TypeError, match="frozen"):
        change(context)

    assert (base_config, extra) == ({"agents": {"a": {}}}, {"list": [1]})


def test_what_the_caller_changes_later_is_not_seen() -> None:
    extra: dict[str, Any] = {"mine": {"list": [1]}}
    context = build_context({"core": 1}, extra)

    extra["mine"]["list"].append(2)

    assert context["mine"] == {"list": [1]}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, dict], ids=["copy", "deepcopy", "dict"])
def test_a_copy_of_a_context_is_a_plain_dict(copied: Callable[[Any], Any]) -> None:
    made = copied(build_context({"a": 1}))

    made["b"] = 2

    assert made == {"a": 1, "b": 2}


def test_a_context_of_data_survives_pickling() -> None:
    context = build_context({"a": {"b": [1]}}, {"c": 2})

    assert pickle.loads(pickle.dumps(context)) == context


def test_a_context_within_a_context_is_still_one() -> None:
    inner = build_context({"trigger_source": "application"})
    outer = build_context({"request_context": inner})

    handed_on = build_context({"trigger_source": "core"}, outer["request_context"])

    assert handed_on["trigger_source"] == "application"


# What hooks of a request find in their context


class Hooks:
    """A feature that notes the context of each of its hooks."""

    name = "hooks"
    version = "1"

    def __init__(self) -> None:
        self.heard: dict[str, Any] = {}

    def init(self, config: Any, state: Any, context: Any) -> Any:
        self.heard["init"] = context
        return state

    def to_native_messages(self, messages: Any, native_messages: Any, context: Any) -> Any:
        self.heard["to_native_messages"] = context
        return native_messages

    def initialize_request(self, native_messages: Any, state: Any, context: Any) -> Any:
        self.heard["initialize_request"] = context
        return native_messages, state

    def finalize(self, final_messages: Any, native_messages: Any, state: Any, context: Any) -> Any:
        self.heard["finalize"] = context
        return final_messages, native_messages, state

    def from_native_messages(self, native_messages: Any, messages: Any, context: Any) -> Any:
        self.heard["from_native_messages"] = context
        return messages

    def get_actions(self, context: Any) -> Any:
        self.heard["get_actions"] = context
        return []


def weather(city: str) -> str:
    """Say what the weather is."""
    return f"fine in {city}"


def time_of_day(city: str) -> str:
    """Say what time it is."""
    return f"noon in {city}"


@pytest.mark.parametrize(
    "hook",
    ["init", "to_native_messages", "initialize_request", "finalize", "from_native_messages", "get_actions"],
)
def test_hooks_find_all_plugins_and_tools_in_their_context(drive: Drive, hook: str) -> None:
    hooks = Hooks()
    core = core_with(hooks, tools=[weather, time_of_day])
    session = core.add_message(Session("s"), "user", "hello")

    _, _, partials = drive(
        core, session, {"excluded_tools": ["weather"]}, request_id="r1", context={"user": "ada"}
    )

    context = hooks.heard[hook]
    assert context["core"] is core
    assert context["config"] == {"excluded_tools": ["weather"]}
    assert context["provider"] == "echo"
    assert context["tags"] == ["streaming"]
    assert context["models"] == [{"id": "echo", "name": "Echo"}]
    assert [tool.name for tool in context["available_tools"]] == ["weather", "time_of_day"]
    assert [tool.name for tool in context["tools"]] == ["time_of_day"]
    assert context["enabled_plugin_ids"] == {
        "providers": ["echo"],
        "extensions": [],
        "features": ["hooks"],
        "tools": ["weather", "time_of_day"],
    }
    assert context["session"] == session.to_dict()
    assert context["request_id"] == "r1"
    assert context["stream"] is bool(partials)
    assert context["user"] == "ada"


@pytest.mark.parametrize("context", ["ada", 5, ["a"], object()])
def test_a_context_is_a_dict(drive: Drive, context: Any) -> None:
    core = core_with()

    with pytest.raises(TypeError, match="context must be a dict"):
        drive(core, core.add_message(Session("s"), "user", "hello"), {}, context=context)
