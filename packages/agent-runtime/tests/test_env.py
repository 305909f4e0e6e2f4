"""What a plugin may place into a run: it comes out as it went in, with the plugin's name on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Block,
    Command,
    EnvBuildError,
    ModelSpec,
    Phase,
    PluginRegistrar,
    Prompt,
    RunRequest,
    RunResult,
    StateKey,
    ToolIdConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_runtime import AgentRuntime, PhaseView

SPEC = AgentSpec("a", "m")
DRIVERS = ["run", "run_async", "run_to_completion", "run_to_completion_async"]


def registrar_of(plugin: str = "mine") -> PluginRegistrar:
    registrar = PluginRegistrar(SPEC)
    registrar.plugin = plugin
    return registrar


def hook(view: Any) -> None:
    return None


def search(query: str) -> str:
    """Search."""
    return f"found {query}"


# --- What is kept


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_hook_can_be_placed_at_every_phase_by_its_name_or_itself(phase: Phase, as_text: bool) -> None:
    registrar = registrar_of()

    registrar.phase_hook(phase.value if as_text else phase, hook)

    assert registrar.env(()).phase_hooks == {phase: (("mine", hook),)}


def test_nothing_placed_is_an_environment_with_nothing_in_it() -> None:
    env = registrar_of().env(())

    assert not env.phase_hooks and not env.tool_gates and not env.request_transforms and not env.tools
    assert not env.scheduled_action_handlers and not env.effect_handlers and not env.key_registrations


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), st.sampled_from(Phase))))
def test_hooks_keep_the_order_in_which_they_were_placed(placed: list[tuple[str, Phase]]) -> None:
    registrar = PluginRegistrar(SPEC)
    for plugin, phase in placed:
        registrar.plugin = plugin
        registrar.phase_hook(phase, hook)
        registrar.tool_gate(hook)
        registrar.request_transform(hook)

    env = registrar.env(())

    assert {phase: [one.plugin for one in hooks] for phase, hooks in env.phase_hooks.items()} == {
        phase: [plugin for plugin, where in placed if where is phase] for _, phase in placed
    }
    assert [gate.plugin for gate in env.tool_gates] == [plugin for plugin, _ in placed]
    assert [transform.plugin for transform in env.request_transforms] == [plugin for plugin, _ in placed]


def test_handlers_keys_and_tools_are_found_by_their_names() -> None:
    registrar, key = registrar_of(), StateKey("count", 0)
    registrar.action_handler("act", hook)
    registrar.effect_handler("act", hook)
    registrar.state_key(key)
    registrar.tool("search", search)

    env = registrar.env(("the plugin",))

    assert env.scheduled_action_handlers == env.effect_handlers == {"act": ("mine", hook)}
    assert env.key_registrations == (("mine", key),) and env.keys == {"count": key}
    assert env.tools == {"search": search} and registrar.tools == {"search": ("mine", search)}
    assert env.plugins == ("the plugin",)


# --- What is refused


WRONG: dict[str, tuple[Callable[[PluginRegistrar], None], str]] = {
    "phase": (
        lambda registrar: registrar.phase_hook("run_begin", hook),
        "there is no phase 'run_begin'; there are 'run_start', 'step_start', 'before_inference'",
    ),
    "hook": (
        lambda registrar: registrar.phase_hook(Phase.RUN_START, "hook"),  # type: ignore[arg-type] # on purpose
        "a phase hook must be callable, not str",
    ),
    "gate": (
        lambda registrar: registrar.tool_gate(None),  # type: ignore[arg-type] # on purpose
        "a tool gate must be callable, not NoneType",
    ),
    "action": (
        lambda registrar: registrar.action_handler("act", {}),  # type: ignore[arg-type] # on purpose
        "the handler of action 'act' must be callable, not dict",
    ),
    "effect": (
        lambda registrar: registrar.effect_handler("act", 5),  # type: ignore[arg-type] # on purpose
        "the handler of effect 'act' must be callable, not int",
    ),
    "transform": (
        lambda registrar: registrar.request_transform([]),  # type: ignore[arg-type] # on purpose
        "a request transform must be callable, not list",
    ),
    "key": (
        lambda registrar: registrar.state_key("count"),  # type: ignore[arg-type] # on purpose
        "a state key must be a StateKey, not str",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_placed_is_refused_with_the_plugins_name(what: str) -> None:
    place, problem = WRONG[what]

    with pytest.raises(EnvBuildError) as caught:
        place(registrar_of())

    assert (caught.value.agent_id, caught.value.plugin) == ("a", "mine")
    assert f"plugin 'mine' cannot be set up: {problem}" in str(caught.value)


TWICE: dict[str, Callable[[PluginRegistrar], None]] = {
    "action": lambda registrar: registrar.action_handler("x", hook),
    "effect": lambda registrar: registrar.effect_handler("x", hook),
    "state key": lambda registrar: registrar.state_key(StateKey("x", 0)),
}


@pytest.mark.parametrize("what", TWICE)
@pytest.mark.parametrize("second", ["two", "one"])
def test_a_name_can_be_placed_once_and_both_owners_are_named(what: str, second: str) -> None:
    registrar = registrar_of("one")
    TWICE[what](registrar)
    registrar.plugin = second

    with pytest.raises(
        EnvBuildError, match=f"plugin '{second}'.*{what} 'x' is placed by plugin 'one' already"
    ):
        TWICE[what](registrar)


def test_a_tool_can_be_placed_once_and_both_owners_are_named() -> None:
    registrar = registrar_of("one")
    registrar.tool("search", search)
    registrar.plugin = "two"

    with pytest.raises(ToolIdConflict) as caught:
        registrar.tool("search", search)

    assert caught.value.owners == ("plugin 'one'", "plugin 'two'")


def test_an_action_of_the_runtime_cannot_be_taken_over() -> None:
    class Stopping:
        name = "stopping"

        def register(self, registrar: PluginRegistrar) -> None:
            registrar.action_handler("stop", hook)

    with pytest.raises(EnvBuildError, match=r"action 'stop'.*plugin 'stopping'.*another name"):
        built({"stopping": Stopping}).resolve("a")


# --- What it does in a run


def built(plugins: dict[str, Any], script: Any = ("done",)) -> AgentRuntime:
    builder = (
        AgentRuntimeBuilder().with_model(ModelSpec("m", "p")).with_provider("p", ScriptedProvider(script))
    )
    for plugin_id, plugin in plugins.items():
        builder.with_plugin(plugin_id, plugin)
    return builder.with_agent_spec(AgentSpec("a", "m", plugin_ids=tuple(plugins))).build_unchecked()


def drive(runtime: AgentRuntime, driver: str) -> RunResult:
    """Run agent `a` in one of the four ways."""

    async def consume() -> RunResult:
        async with runtime.run_async(request) as stream:
            async for _ in stream:
                pass
        assert stream.result is not None
        return stream.result

    request = RunRequest("a", "Begin")
    if driver == "run_async":
        return asyncio.run(consume())
    if driver == "run_to_completion_async":
        return asyncio.run(runtime.run_to_completion_async(request))
    if driver == "run_to_completion":
        return runtime.run_to_completion(request)
    with runtime.run(request) as stream:
        for _ in stream:
            pass
    assert stream.result is not None
    return stream.result


class Everything:
    """Places one of everything, and notes what is called."""

    name = "everything"

    def __init__(self) -> None:
        self.noted: list[str] = []

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.state_key(StateKey("count", 0))
        for phase in Phase:
            registrar.phase_hook(phase, self._hook)
        registrar.tool_gate(self._gate)
        registrar.action_handler("act", self._act)
        registrar.effect_handler("shout", self._shout)
        registrar.request_transform(self._transform)
        registrar.tool("search", tool(search, parallel=False))

    def on_activate(self, view: PhaseView) -> None:
        self.noted.append("on")

    def on_deactivate(self, view: PhaseView) -> None:
        self.noted.append("off")

    def _hook(self, view: PhaseView) -> Command | None:
        self.noted.append(view.phase.value)
        return Command().schedule("act", "now") if view.phase is Phase.STEP_START else None

    def _gate(self, view: PhaseView) -> Block | None:
        assert view.call is not None
        self.noted.append(f"gate {view.call.name}")
        return Block("not this one") if view.call.arguments == {"query": "secrets"} else None

    def _act(self, payload: Any, view: PhaseView) -> Command:
        self.noted.append(f"act {payload}")
        return Command().effect("shout", payload)

    def _shout(self, payload: Any, view: PhaseView) -> None:
        self.noted.append(f"shout {payload}")

    def _transform(self, prompt: Prompt, view: PhaseView) -> Prompt:
        self.noted.append("transform")
        return prompt


@pytest.mark.parametrize("driver", DRIVERS)
def test_everything_that_is_placed_is_used_in_its_turn(driver: str) -> None:
    plugin = Everything()
    calls = [ToolCall("search", {"query": "it"}), ToolCall("search", {"query": "secrets"})]

    result = drive(built({"e": plugin}, [Reply(tool_calls=calls), "done"]), driver)

    answers = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert answers == ["found it", "Error: the call was not allowed: not this one"]
    asking = ["step_start", "act now", "shout now", "before_inference", "transform", "after_inference"]
    assert plugin.noted == [
        *("on", "run_start"),
        *asking,
        *("tool_gate", "gate search", "before_tool_execute", "after_tool_execute"),
        *("tool_gate", "gate search", "after_tool_execute"),
        "step_end",
        *(*asking, "step_end"),
        *("run_end", "off"),
    ]


def test_a_plugin_without_a_name_of_its_own_is_called_by_its_id() -> None:
    class Nameless:
        def register(self, registrar: PluginRegistrar) -> None:
            registrar.phase_hook(Phase.RUN_START, self.fail)

        def fail(self, view: PhaseView) -> None:
            raise ValueError("no name")

    result = drive(built({"shy": Nameless}), "run_to_completion")

    assert result.reason.code == "error"
    assert "'shy'" in result.reason.detail and "no name" in result.reason.detail


@pytest.mark.parametrize("name", ["on_activate", "on_deactivate"])
def test_a_plugin_without_a_name_of_its_own_may_fail_when_it_is_switched_on_or_off(name: str) -> None:
    class Nameless:
        def register(self, registrar: PluginRegistrar) -> None:
            pass

    def fail(self: Any, view: Any) -> None:
        raise ValueError("no power")

    setattr(Nameless, name, fail)

    result = drive(built({"shy": Nameless}), "run_to_completion")

    assert result.reason.code == "error"
    assert name in result.reason.detail and "no power" in result.reason.detail


def test_the_declaration_is_at_hand_while_a_plugin_places_things() -> None:
    seen: list[tuple[Any, str]] = []

    class Looking:
        def register(self, registrar: PluginRegistrar) -> None:
            seen.append((registrar.spec.id, registrar.plugin))

    built({"looking": Looking}).resolve("a")

    assert seen == [("a", "looking")]
