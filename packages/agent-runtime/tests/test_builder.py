"""Building a runtime: nothing raises until the end, and then everything that is wrong is reported at once."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import PluginError, RegistrationError
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    Agent,
    AgentNotFound,
    AgentRuntime,
    AgentRuntimeBuilder,
    AgentSpec,
    BuildError,
    DuplicateId,
    HealthRegistry,
    ModelNotFound,
    ModelSpec,
    PluginNotFound,
    PluginRegistrar,
    RemoteAgentError,
    RemoteEndpoint,
    ResolveError,
    RunRequest,
    SpecError,
    SpecFileError,
)
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MODEL = ModelSpec("m", "p")
SPEC = AgentSpec("a", "m")


def search(query: str) -> str:
    """Search."""
    return f"found {query}"


class Quiet:
    """A plugin that does nothing."""

    name = "quiet"

    def register(self, registrar: PluginRegistrar) -> None:
        pass


class Failing:
    """A class that cannot be instantiated."""

    name = "failing"

    def __init__(self) -> None:
        raise OSError("no disk")

    def register(self, registrar: PluginRegistrar) -> None:
        pass


class Loud:
    """An extension that makes everything loud."""

    name = "loud"
    version = "1"

    def process_chunk(self, chunk: Any, partials: Any, finals: Any, native: Any, state: Any) -> Any:
        state["text"] = [text.upper() for text in state["text"]]
        return partials, finals, native, state


def working(script: Any = ()) -> AgentRuntimeBuilder:
    provider = ScriptedProvider(script)
    return AgentRuntimeBuilder().with_model(MODEL).with_provider("p", provider).with_agent_spec(SPEC)


def problems(builder: AgentRuntimeBuilder) -> list[tuple[str, str, type[Exception]]]:
    with pytest.raises(BuildError) as caught:
        builder.build()
    return [(problem.kind, problem.id, type(problem.error)) for problem in caught.value.errors]


# --- What works


def test_everything_can_be_chained_and_run() -> None:
    runtime = (
        AgentRuntimeBuilder()
        .with_agent_spec(AgentSpec("a", "m", plugin_ids=("quiet",)))
        .with_agent_specs([AgentSpec("b", "m"), AgentSpec("c", "m")])
        .with_tool("search", search)
        .with_model(MODEL)
        .with_provider("p", EchoProvider)
        .with_plugin("quiet", Quiet)
        .with_clock(ManualClock())
        .with_health(HealthRegistry())
        .build()
    )

    assert isinstance(runtime, AgentRuntime)
    assert runtime.problems == ()
    assert runtime.registries.agents.ids() == ["a", "b", "c"]
    assert runtime.run_to_completion(RunRequest("a", "Hello you")).text == "Hello you"


def test_agents_and_models_may_be_written_as_dicts() -> None:
    builder = AgentRuntimeBuilder().with_provider("p", EchoProvider)
    builder.with_model({"id": "m", "provider": "p"}).with_agent_spec({"id": "a", "model": "m"})

    runtime = builder.build()

    assert runtime.registries.agents.get("a") == SPEC and runtime.registries.models.get("m") == MODEL


def test_nothing_at_all_is_a_runtime_without_agents() -> None:
    assert AgentRuntimeBuilder().build().registries.agents.ids() == []


def test_agents_that_live_elsewhere_are_not_resolved() -> None:
    remote = AgentSpec("far", endpoint=RemoteEndpoint("https://example.com"))

    runtime = working().with_agent_spec(remote).build()

    assert runtime.registries.agents.ids() == ["a", "far"]


@pytest.mark.parametrize("as_class", [True, False])
def test_one_provider_may_be_registered_under_two_ids_each_with_its_own_settings(as_class: bool) -> None:
    seen: list[tuple[str, Any]] = []

    class Noting(EchoProvider):
        name = "noting"

        def init(self, config: dict[str, Any]) -> dict[str, Any]:
            seen.append((config["provider"], config["api_key"]))
            return super().init(config)

    provider: Any = Noting if as_class else Noting()
    builder = AgentRuntimeBuilder()
    for name in ("work", "home"):
        builder.with_provider(name, provider, config={"api_key": f"key of {name}"})
        builder.with_model(ModelSpec(f"{name}-model", name)).with_agent_spec(AgentSpec(name, f"{name}-model"))
    runtime = builder.build()

    for name in ("home", "work"):
        runtime.run_to_completion(RunRequest(name, "Hello"))

    assert seen == [("home", "key of home"), ("work", "key of work")]


def test_settings_of_a_provider_cannot_be_changed_from_outside_afterwards() -> None:
    config = {"api_key": "right"}
    runtime = AgentRuntimeBuilder().with_provider("p", EchoProvider, config=config).build()

    config["api_key"] = "wrong"

    entry = runtime.registries.providers.get("p")
    assert entry is not None and entry.config == {"api_key": "right"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("way", ["extensions", "with_plugin"])
def test_an_extension_works_with_its_provider_or_by_its_id(way: str, stream: bool) -> None:
    builder = AgentRuntimeBuilder().with_model(MODEL)
    if way == "extensions":
        builder.with_provider("p", ScriptedProvider(["hello"]), extensions=[Loud]).with_agent_spec(SPEC)
    else:
        builder.with_provider("p", ScriptedProvider(["hello"])).with_plugin("loud", Loud)
        builder.with_agent_spec(AgentSpec("a", "m", plugin_ids=("loud",)))

    events = list(builder.build().run(RunRequest("a", "Say hello", stream=stream)))

    assert events[-1]["text"] == ("HELLO" if stream else "hello")  # what is not streamed has no chunks


def test_a_plugin_extension_is_only_there_for_agents_that_name_it() -> None:
    builder = working(["hello"]).with_plugin("loud", Loud)

    assert builder.build().run_to_completion(RunRequest("a", "Say hello")).text == "hello"


def test_a_tool_of_the_registry_can_be_called_by_every_agent() -> None:
    script = [Reply(tool_calls=[ToolCall("find", {"query": "it"})]), "done"]
    runtime = working(script * 2).with_agent_spec(AgentSpec("b", "m")).with_tool("find", search).build()

    for agent_id in ("a", "b"):
        messages = runtime.run_to_completion(RunRequest(agent_id, "Find it")).messages
        assert [message["content"] for message in messages if message["role"] == "tool"] == ["found it"]


# --- What is wrong


NONSENSE: Any = 5
WRONG: dict[str, tuple[Callable[[AgentRuntimeBuilder], object], tuple[str, str, type[Exception]]]] = {
    "agent twice": (lambda b: b.with_agent_spec(SPEC), ("duplicate_id", "a", DuplicateId)),
    "agents twice": (lambda b: b.with_agent_specs([SPEC]), ("duplicate_id", "a", DuplicateId)),
    "model twice": (lambda b: b.with_model(MODEL), ("duplicate_id", "m", DuplicateId)),
    "provider twice": (lambda b: b.with_provider("p", EchoProvider), ("duplicate_id", "p", DuplicateId)),
    "provider and plugin": (lambda b: b.with_plugin("p", Quiet), ("duplicate_id", "p", DuplicateId)),
    "provider and tool": (lambda b: b.with_tool("p", search), ("duplicate_id", "p", DuplicateId)),
    "agent without a model": (
        lambda b: b.with_agent_spec({"id": "x_a_w_a_m21"}),
        ("invalid_spec", "x_a_w_a_m21", SpecError),
    ),
    "agent that is none": (lambda b: b.with_agent_spec(NONSENSE), ("invalid_spec", "?", SpecError)),
    "model without a provider": (
        lambda b: b.with_model({"id": "x_m_w_a_p24"}),
        ("invalid_spec", "x_m_w_a_p24", SpecError),
    ),
    "settings that are none": (
        lambda b: b.with_provider("x_s_t_a_n22", EchoProvider, config=NONSENSE),
        ("invalid_spec", "x_s_t_a_n22", Exception),
    ),
    "extensions that are none": (
        lambda b: b.with_provider("x_e_t_a_n24", EchoProvider, extensions=NONSENSE),
        ("invalid_plugin", "x_e_t_a_n24", RegistrationError),
    ),
    "extension that is none": (
        lambda b: b.with_provider("x_e_t_i_n22", EchoProvider, extensions=[5]),
        ("invalid_plugin", "x_e_t_i_n22", RegistrationError),
    ),
    "provider that is none": (
        lambda b: b.with_provider("x_p_t_i_n21", 5),
        ("invalid_plugin", "x_p_t_i_n21", RegistrationError),
    ),
    "plugin that is none": (
        lambda b: b.with_plugin("x_p_t_i_n19", 5),
        ("invalid_plugin", "x_p_t_i_n19", RegistrationError),
    ),
    "plugin that is a provider": (
        lambda b: b.with_plugin("x_p_t_i_a_p25", EchoProvider),
        ("invalid_plugin", "x_p_t_i_a_p25", RegistrationError),
    ),
    "plugin that cannot be made": (
        lambda b: b.with_plugin("x_p_t_c_b_m26", Failing),
        ("invalid_plugin", "x_p_t_c_b_m26", PluginError),
    ),
    "tool that is none": (
        lambda b: b.with_tool("x_t_t_i_n17", 5),
        ("invalid_plugin", "x_t_t_i_n17", RegistrationError),
    ),
    "tool with a bad name": (
        lambda b: b.with_tool("x y", search),
        ("invalid_plugin", "x y", RegistrationError),
    ),
    "provider without an id": (lambda b: b.with_provider("", EchoProvider), ("invalid_spec", "", SpecError)),
    "plugin without an id": (lambda b: b.with_plugin("  ", Quiet), ("invalid_spec", "  ", SpecError)),
    "tool without an id": (lambda b: b.with_tool("", search), ("invalid_spec", "", SpecError)),
    "file that is not there": (
        lambda b: b.with_spec_file("/nowhere/agents.toml"),
        ("invalid_spec", "/nowhere/agents.toml", SpecFileError),
    ),
    "source twice": (
        lambda b: b.with_remote_agents("s", "https://s.example").with_remote_agents("s", "https://t.example"),
        ("duplicate_id", "s", DuplicateId),
    ),
    "agent without its model": (
        lambda b: b.with_agent_spec(AgentSpec("x_a_w_i_m23", "none")),
        ("validation_failed", "x_a_w_i_m23", ModelNotFound),
    ),
    "agent without its plugin": (
        lambda b: b.with_agent_spec(AgentSpec("x_a_w_i_p24", "m", plugin_ids=("none",))),
        ("validation_failed", "x_a_w_i_p24", PluginNotFound),
    ),
    "agent without its delegate": (
        lambda b: b.with_agent_spec(AgentSpec("x_a_w_i_d26", "m", delegates=("none",))),
        ("validation_failed", "x_a_w_i_d26", AgentNotFound),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_reported_with_its_kind_its_id_and_its_error(name: str) -> None:
    make, (kind, problem_id, error) = WRONG[name]
    builder = working()
    make(builder)

    with pytest.raises(BuildError) as caught:
        builder.build()

    (problem,) = caught.value.errors
    assert (problem.kind, problem.id) == (kind, problem_id)
    assert isinstance(problem.error, error)
    assert str(problem.error) in str(caught.value)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(WRONG)), unique=True, min_size=1))
def test_all_mistakes_are_reported_in_their_order_and_those_of_the_dry_run_last(names: list[str]) -> None:
    builder = working()
    for name in names:
        WRONG[name][0](builder)
    expected = [WRONG[name][1][:2] for name in names]

    with pytest.raises(BuildError) as caught:
        builder.build()

    told = [(problem.kind, problem.id) for problem in caught.value.errors]
    assert told == sorted(expected, key=lambda one: one[0] == "validation_failed")
    assert str(caught.value).count("\n  - ") == len(names)


def test_several_mistakes_make_one_message() -> None:
    builder = working().with_model(MODEL).with_agent_spec({"id": "b"}).with_tool("x", 5)
    builder.with_agent_spec(AgentSpec("c", "mm")).with_agent_spec(AgentSpec("d", "m", plugin_ids=("quiet",)))

    assert problems(builder) == [
        ("duplicate_id", "m", DuplicateId),
        ("invalid_spec", "b", SpecError),
        ("invalid_plugin", "x", RegistrationError),
        ("validation_failed", "c", ModelNotFound),
        ("validation_failed", "d", PluginNotFound),
    ]
    with pytest.raises(
        BuildError, match="The runtime cannot be built, 5 problems:\n  - duplicate_id: model 'm'"
    ):
        builder.build()


def test_two_things_of_different_kinds_with_one_id_are_told_apart_in_the_message() -> None:
    with pytest.raises(BuildError, match="provider and plugin 'p' is declared twice"):
        working().with_plugin("p", Quiet).build()
    with pytest.raises(BuildError, match="tool 'find' is declared twice"):
        working().with_tool("find", search).with_tool("find", search).build()


def test_what_was_declared_first_stays() -> None:
    builder = working().with_agent_spec(AgentSpec("a", "m", system_prompt="second"))

    with pytest.raises(BuildError):
        builder.build()

    assert builder._registries.agents.get("a") == SPEC


# --- Without checks


def test_unchecked_skips_the_dry_run_and_nothing_else() -> None:
    builder = working().with_agent_spec(AgentSpec("later", "not yet there"))

    runtime = builder.build_unchecked()

    with pytest.raises(ModelNotFound):
        runtime.resolve("later")
    runtime.registries.models.add("not yet there", ModelSpec("not yet there", "p"))
    assert runtime.resolve("later").model.provider == "p"
    with pytest.raises(BuildError, match="1 problem"):
        builder.with_model(MODEL).build_unchecked()


def test_an_agent_added_to_a_running_runtime_can_be_run() -> None:
    runtime = working(["Hello"]).build()

    runtime.registries.agents.add("new", AgentSpec("new", "m"))

    assert runtime.run_to_completion(RunRequest("new", "Hi")).text == "Hello"


# --- Files


def test_a_file_declares_agents_and_models(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[agents.a]\nmodel = "m"\nsystem_prompt = "Be kind."\n\n[models.m]\nprovider = "p"\n')

    runtime = AgentRuntimeBuilder().with_provider("p", EchoProvider).with_spec_file(file).build()

    assert runtime.resolve("a").spec.system_prompt == "Be kind."


def test_a_folder_of_files_is_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('[agents.a]\nmodel = "m"\n')
    (tmp_path / "two.json").write_text('{"models": {"m": {"provider": "p"}}}')

    runtime = AgentRuntimeBuilder().with_provider("p", EchoProvider).with_spec_file(str(tmp_path)).build()

    assert runtime.resolve("a").model == MODEL


def test_a_mistake_in_a_file_has_its_line_and_keeps_company_with_other_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[agents.a]\nmodel = "m"\nmax_round = 3\n')

    with pytest.raises(BuildError) as caught:
        AgentRuntimeBuilder().with_spec_file(file).with_tool("x", 5).build()

    first, second = caught.value.errors
    assert (first.kind, first.id, second.kind) == ("invalid_spec", str(file), "invalid_plugin")
    assert isinstance(first.error, SpecFileError) and first.error.line == 3
    assert f"{file}:3: " in str(caught.value) and "did you mean 'max_rounds'" in str(caught.value)


def test_a_file_that_declares_what_is_declared_already_is_a_duplicate(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text('[agents.a]\nmodel = "m"\n\n[models.m]\nprovider = "p"\n')

    assert problems(working().with_spec_file(file)) == [
        ("duplicate_id", "a", DuplicateId),
        ("duplicate_id", "m", DuplicateId),
    ]


# --- Remote agents


class Card(BaseHTTPRequestHandler):
    """Hands out an agent card, and nothing else."""

    def do_GET(self) -> None:
        interface = {
            "url": f"http://{self.headers['host']}/rpc",
            "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0",
        }
        card = {
            "name": "Cook",
            "description": "Cooks what you like.",
            "version": "1",
            "skills": [],
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "supportedInterfaces": [interface],
        }
        body = json.dumps(card).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def card_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Card) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


NOBODY = "http://127.0.0.1:1"


def discovering(builder: AgentRuntimeBuilder, style: str) -> AgentRuntime:
    if style == "async":
        return asyncio.run(builder.build_and_discover_async())
    return builder.build_and_discover()


@pytest.mark.parametrize("style", ["sync", "async"])
def test_discovered_agents_can_be_delegates(style: str) -> None:
    boss = AgentSpec("boss", "m", delegates=("cook",))
    with card_server() as url:
        builder = working().with_agent_spec(boss).with_remote_agents("cook", url, allow_private=True)
        runtime = discovering(builder, style)

    agent = runtime.resolve("boss")
    assert runtime.problems == ()
    assert "Cooks what you like." in agent.descriptors[0].schema["function"]["description"]


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_source_that_cannot_be_reached_is_reported_and_the_rest_works(style: str) -> None:
    with card_server() as url:
        builder = working(["Hello"]).with_remote_agents("nobody", NOBODY, allow_private=True)
        runtime = discovering(builder.with_remote_agents("cook", url, allow_private=True), style)

    (problem,) = runtime.problems
    assert (problem.kind, problem.id) == ("discovery_failed", "nobody")
    assert isinstance(problem.error, RemoteAgentError) and NOBODY in str(problem)
    assert "cook" in runtime.registries.agents
    assert runtime.run_to_completion(RunRequest("a", "Hi")).text == "Hello"


def test_an_agent_that_needs_an_unreachable_one_is_reported_and_the_rest_works() -> None:
    builder = working(["Hello"]).with_remote_agents("nobody", NOBODY, allow_private=True)

    runtime = builder.with_agent_spec(AgentSpec("boss", "m", delegates=("nobody",))).build_and_discover()

    assert [(one.kind, one.id) for one in runtime.problems] == [
        ("discovery_failed", "nobody"),
        ("validation_failed", "boss"),
    ]
    assert runtime.run_to_completion(RunRequest("a", "Hi")).text == "Hello"
    with pytest.raises(AgentNotFound):
        runtime.resolve("boss")


def test_what_else_is_wrong_still_prevents_building_and_unreachable_sources_are_reported_too() -> None:
    builder = working().with_remote_agents("nobody", NOBODY, allow_private=True)

    with pytest.raises(BuildError) as caught:
        builder.with_agent_spec(AgentSpec("boss", "none")).build_and_discover()

    assert [(one.kind, one.id) for one in caught.value.errors] == [
        ("validation_failed", "boss"),
        ("discovery_failed", "nobody"),
    ]


def test_a_private_address_must_be_allowed() -> None:
    with card_server() as url:
        runtime = AgentRuntimeBuilder().with_remote_agents("cook", url).build_and_discover()

    assert [problem.kind for problem in runtime.problems] == ["discovery_failed"]
    assert "cook" not in runtime.registries.agents


def test_a_discovered_agent_does_not_take_the_place_of_a_declared_one() -> None:
    with card_server() as url:
        runtime = working().with_remote_agents("a", url, allow_private=True).build_and_discover()

    assert runtime.registries.agents.get("a") == SPEC
    assert [problem.id for problem in runtime.problems] == ["a"]


def test_building_without_discovering_asks_nobody() -> None:
    runtime = working().with_remote_agents("nobody", NOBODY, allow_private=True).build()

    assert runtime.problems == () and "nobody" not in runtime.registries.agents


# --- The thin layer on top


def test_an_agent_is_a_builder_with_one_agent() -> None:
    agent = Agent(ScriptedProvider(["Hello"]), tools=[search], plugins={"quiet": Quiet}, max_rounds=2)

    resolved = agent.runtime.resolve("agent")

    assert resolved.spec.max_rounds == 2 and resolved.spec.plugin_ids == ("quiet",)
    assert resolved.tools.keys() == {"search"}
    assert agent.run("Hi").text == "Hello"


def test_an_agent_reports_all_its_mistakes_at_once() -> None:
    with pytest.raises(BuildError) as caught:
        Agent(ScriptedProvider(), tools=[search, search, 5], plugins={"bad": 5})

    assert [problem.kind for problem in caught.value.errors] == [
        "invalid_plugin",
        "duplicate_id",
        "invalid_plugin",
        "validation_failed",
    ]
    assert all(
        isinstance(one.error, (RegistrationError, DuplicateId, ResolveError)) for one in caught.value.errors
    )


def test_a_plugin_may_be_registered_as_what_it_is_not_known_by() -> None:
    class Chunky:
        def process_chunk(self, *pieces: str) -> str:
            return "".join(pieces)

    class Saying(Chunky):
        kind = "feature"

    for plugin, kind in ((Chunky, "feature"), (Saying, None)):
        builder = AgentRuntimeBuilder().with_plugin("p", plugin, kind=kind)

        entry = builder.build_unchecked().registries.plugins.get("p")
        assert entry is not None and entry.wrapper.kind == "feature"


@pytest.mark.parametrize(("kind", "says"), [("provider", "with_provider"), ("application", "an application")])
def test_a_plugin_of_another_place_is_sent_there(kind: str, says: str) -> None:
    plugin = type("Plugin", (), {"kind": kind})

    with pytest.raises(BuildError, match=f"kind '{kind}': register it with {says}"):
        AgentRuntimeBuilder().with_plugin("p", plugin).build_unchecked()


class Counting:
    """A plugin of any kind that keeps something in itself."""

    name = "counting"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name: str, arguments: Any) -> int:
        self.seen.append(tool_name)
        return len(self.seen)


class CountingFeature:
    def __init__(self) -> None:
        self.seen: list[str] = []


def test_two_runtimes_of_one_builder_share_nothing_that_changes() -> None:
    builder = (
        AgentRuntimeBuilder()
        .with_provider("p", EchoProvider, config={"depth": 1})
        .with_model(ModelSpec("m", "p"))
        .with_plugin("feature", CountingFeature)
        .with_tool("counting", Counting)
        .with_agent_spec(AgentSpec("a", "m", plugin_ids=("feature",)))
    )
    first, second = builder.build(), builder.build()
    third = builder.build_unchecked()

    first.registries.agents.add("b", AgentSpec("b", "m"))
    builder.with_agent_spec(AgentSpec("c", "m"))

    assert [list(one.registries.agents) for one in (first, second, third)] == [["a", "b"], ["a"], ["a"]]
    for registry, name in (("plugins", "feature"), ("tools", "counting"), ("providers", "p")):
        entries = [getattr(one.registries, registry).get(name) for one in (first, second, third)]
        assert len({id(entry.wrapper) for entry in entries}) == 3, registry
        assert len({id(entry.wrapper.plugin) for entry in entries}) == 3, registry
    assert second.registries.providers.get("p").config == {"depth": 1}  # type: ignore[union-attr]  # it is there
    assert second.resolve("a").core is not first.resolve("a").core


def test_an_object_that_was_registered_is_the_same_in_all_runtimes_and_its_class_is_made_once() -> None:
    made: list[int] = []

    class Made(CountingFeature):
        def __init__(self) -> None:
            super().__init__()
            made.append(1)

    own = CountingFeature()
    builder = AgentRuntimeBuilder().with_plugin("own", own).with_plugin("made", Made)

    runtimes = [builder.build_unchecked() for _ in range(2)]

    assert all(one.registries.plugins.get("own").plugin is own for one in runtimes)  # type: ignore[union-attr]  # there
    assert len(made) == 2
