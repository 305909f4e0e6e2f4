"""Registering plugins: as classes and as objects, all or nothing, one name each."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentTypeError,
    DuplicatePluginError,
    NoProviderError,
    PluginError,
    RegistrationError,
    tool,
)
from agent_core.testing import EchoProvider, ScriptedProvider

Attempt = Callable[[], None]


class Extension:
    name = "extra"
    version = "1"


class OtherExtension:
    name = "other_extra"
    version = "1"


class Feature:
    name = "feature"
    version = "1"


class Tools:
    name = "tools"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name: str, arguments: Any) -> Any:
        return arguments


class SecondProvider(EchoProvider):
    name = "second"


def registered(core: AgentCore) -> list[str]:
    """Return the names of everything that is registered, in order."""
    return [wrapper.name for wrapper in core._registry]


def full_core() -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, [Extension])
    core.register_feature(Feature)
    core.register_tool(Tools)
    return core


def test_classes_of_every_kind_can_be_registered() -> None:
    core = full_core()

    assert registered(core) == ["echo", "extra", "feature", "tools"]
    assert core.get_plugins_for_config({}) == {
        "providers": ["echo"],
        "extensions": ["extra"],
        "features": ["feature"],
        "tools": ["tools"],
    }


def test_objects_of_every_kind_can_be_registered_and_are_used_as_they_are() -> None:
    plugins = [EchoProvider(), Extension(), Feature(), Tools()]
    core = AgentCore()
    core.register_provider(plugins[0], [plugins[1]])
    core.register_feature(plugins[2])
    core.register_tool(plugins[3])

    assert [wrapper.plugin for wrapper in core._registry] == plugins


def test_a_class_is_instantiated_once_per_registration() -> None:
    made: list[object] = []

    class Counting(Feature):
        def __init__(self) -> None:
            made.append(self)

    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(Counting)
    core.send_request(core.create_session(), {})
    core.send_request(core.create_session(), {"other": True})

    assert len(made) == 1


def test_a_plain_function_can_be_registered_as_a_tool() -> None:
    def add(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

    @tool
    def subtract(first: int, second: int) -> int:
        """Subtract a number."""
        return first - second

    core = AgentCore()
    core.register_tool(add)
    core.register_tool(subtract)

    assert [descriptor.name for descriptor in core.get_available_tools({})] == ["add", "subtract"]


def test_attributes_that_the_constructor_sets_count_for_a_class_too() -> None:
    class Late:
        def __init__(self) -> None:
            self.name = "late"
            self.priority = 7
            self.default_enabled = False

    core = AgentCore()
    core.register_provider(ScriptedProvider)
    core.register_feature(Late)

    assert registered(core) == ["scripted", "late"]
    assert core.get_plugins_for_config({})["features"] == []
    assert core.resolve({"enabled_plugins": ["late"]}).features[0].priority == 7


def test_a_name_may_be_a_property() -> None:
    class Named:
        @property
        def name(self) -> str:
            return "computed"

    core = AgentCore()
    core.register_feature(Named)

    assert registered(core) == ["computed"]


def test_a_plugin_without_a_name_is_called_like_its_class() -> None:
    class Nameless:
        pass

    core = AgentCore()
    core.register_feature(Nameless)

    assert registered(core) == ["Nameless"]


@pytest.mark.parametrize("taken", ["echo", "extra", "feature", "tools"])
def test_a_name_is_taken_whatever_kind_has_it(taken: str) -> None:
    core = full_core()
    before = registered(core)
    extension = type("NewExtension", (), {"name": taken})
    attempts: list[Attempt] = [
        lambda: core.register_provider(type("NewProvider", (EchoProvider,), {"name": taken})),
        lambda: core.register_provider(SecondProvider, [extension]),
        lambda: core.register_feature(type("NewFeature", (), {"name": taken})),
        lambda: core.register_tool(type("NewTools", (Tools,), {"name": taken})),
    ]

    for attempt in attempts:
        with pytest.raises(DuplicatePluginError) as caught:
            attempt()
        assert caught.value.plugin == taken
    assert registered(core) == before


def test_the_error_about_a_duplicate_names_both_classes() -> None:
    core = full_core()

    with pytest.raises(DuplicatePluginError) as caught:
        core.register_tool(type("Rival", (Tools,), {"name": "feature"}))

    here, there = f"{__name__}.Rival", f"{__name__}.Feature"
    assert str(caught.value) == (
        f"Plugin 'feature' cannot be registered: {here} has the name of the feature {there}"
    )


def test_the_error_about_two_functions_with_one_name_has_their_modules() -> None:
    def add(first: int) -> int:
        return first

    core = AgentCore()
    core.register_tool(add)

    with pytest.raises(DuplicatePluginError) as caught:
        core.register_tool(tool(len, name="add"))
    assert caught.value.problem == f"builtins.len has the name of the tool {__name__}.{add.__qualname__}"


def test_one_extension_class_may_serve_several_providers() -> None:
    core = AgentCore()
    core.register_provider(EchoProvider, [Extension])
    core.register_provider(SecondProvider, [Extension, OtherExtension])

    assert registered(core) == ["echo", "extra", "second", "extra", "other_extra"]
    first, second = (core.resolve({"provider": name}).provider for name in ("echo", "second"))
    assert [e.name for e in first.extensions] == ["extra"]
    assert [e.name for e in second.extensions] == ["extra", "other_extra"]
    assert first.extensions[0].plugin is not second.extensions[0].plugin


@pytest.mark.parametrize(
    "family",
    [
        (EchoProvider, [Extension, Extension]),
        (EchoProvider, [Extension, type("Rival", (), {"name": "extra"})]),
        (EchoProvider, [type("Rival", (), {"name": "echo"})]),
    ],
)
def test_within_one_provider_every_name_stands_once(family: tuple[object, list[object]]) -> None:
    core = AgentCore()

    with pytest.raises(DuplicatePluginError):
        core.register_provider(*family)
    assert registered(core) == []


class Failing:
    name = "failing"

    def __init__(self) -> None:
        raise OSError("no licence")


class Demanding:
    name = "demanding"

    def __init__(self, needed: str) -> None:
        self.needed = needed


def test_a_class_that_cannot_be_instantiated_is_refused_with_its_name() -> None:
    core = full_core()
    before = registered(core)

    with pytest.raises(PluginError) as caught:
        core.register_feature(Failing)
    assert (caught.value.plugin, caught.value.hook) == ("failing", "__init__")
    assert str(caught.value) == "Plugin 'failing', hook '__init__': raised OSError: no licence"
    with pytest.raises(PluginError, match=r"'demanding'.*missing 1 required positional argument: 'needed'"):
        core.register_tool(Demanding)
    assert registered(core) == before


@pytest.mark.parametrize("broken", [Failing, type("Odd", (), {"name": "odd", "get_tags": 3})])
def test_a_provider_with_a_broken_extension_is_not_registered_either(broken: type) -> None:
    core = AgentCore()

    with pytest.raises((PluginError, RegistrationError), match=broken.name):  # type: ignore[attr-defined]
        core.register_provider(EchoProvider, [Extension, broken])
    assert registered(core) == []
    with pytest.raises(NoProviderError):
        core.send_request(core.create_session(), {})


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("name", 3, "its name must be a string, not int"),
        ("priority", "high", "its priority must be an integer, not 'high'"),
        ("priority", True, "its priority must be an integer, not True"),
        ("priority", None, "its priority must be an integer, not None"),
    ],
)
def test_an_attribute_of_the_wrong_type_is_refused(attribute: str, value: object, problem: str) -> None:
    plugin = type("Plugin", (), {attribute: value})

    with pytest.raises(RegistrationError) as caught:
        AgentCore().register_feature(plugin)
    assert (caught.value.plugin, caught.value.problem) == ("Plugin", problem)


@pytest.mark.parametrize("formats", ["openai", 3, [3]])
def test_a_provider_whose_tool_formats_are_no_list_of_names_is_refused(formats: object) -> None:
    provider = type("Provider", (EchoProvider,), {"tool_schema_formats": formats})

    with pytest.raises(RegistrationError, match=r"'echo'.*tool_schema_formats must be a list of strings"):
        AgentCore().register_provider(provider)


def test_a_provider_needs_a_way_to_ask_its_model() -> None:
    with pytest.raises(RegistrationError) as caught:
        AgentCore().register_provider(Feature)

    assert caught.value.plugin == "feature"
    assert caught.value.problem == (
        "a provider needs one of call_api, stream_api, call_api_async, stream_api_async"
    )


@pytest.mark.parametrize("hook", ["stream_api", "stream_api_async"])
def test_a_provider_that_streams_needs_to_read_its_chunks(hook: str) -> None:
    provider = type("Mute", (), {hook: lambda self, native_messages, state: iter(())})

    with pytest.raises(RegistrationError, match=r"'Mute'.*a provider that streams needs process_chunk"):
        AgentCore().register_provider(provider)


@pytest.mark.parametrize("hook", ["call_api", "call_api_async"])
def test_a_provider_that_answers_in_one_piece_needs_nothing_else(hook: str) -> None:
    core = AgentCore()
    core.register_provider(type("Brief", (), {hook: lambda self, native_messages, state: None}))

    assert registered(core) == ["Brief"]


@pytest.mark.parametrize(
    "missing", [("get_tool_schemas",), ("execute_tool",), ("get_tool_schemas", "execute_tool")]
)
def test_a_tool_plugin_needs_schemas_and_a_way_to_run(missing: tuple[str, ...]) -> None:
    plugin = type("Half", (Tools,), {"name": "half", **dict.fromkeys(missing)})

    with pytest.raises(RegistrationError, match=r"'half'.*needs get_tool_schemas and execute_tool"):
        AgentCore().register_tool(plugin)


@pytest.mark.parametrize("nonsense", [None, 3, "feature", ["feature"], {}, print, dict])
def test_what_is_no_plugin_at_all_is_refused(nonsense: object) -> None:
    core = AgentCore()

    for register in (core.register_provider, core.register_feature):
        with pytest.raises(RegistrationError, match="a plugin must be a class"):
            register(nonsense)
    assert registered(core) == []


@pytest.mark.parametrize("nonsense", [None, 3, "tool", dict, Feature(), Feature])
def test_what_is_no_tool_at_all_is_refused(nonsense: object) -> None:
    core = AgentCore()

    with pytest.raises(RegistrationError):
        core.register_tool(nonsense)
    assert registered(core) == []


def test_extensions_come_in_a_list() -> None:
    with pytest.raises(ArgumentTypeError, match="extensions must be a list, not type"):
        AgentCore().register_provider(EchoProvider, Extension)  # type: ignore[arg-type]


def test_a_plugin_that_is_registered_later_counts_from_then_on() -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    before = core.get_plugins_for_config({})

    core.register_feature(Feature)

    assert before["features"] == []
    assert core.get_plugins_for_config({})["features"] == ["feature"]


def test_a_request_under_way_keeps_the_plugins_with_which_it_began() -> None:
    seen: list[str] = []

    class Late:
        name = "late"

        def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
            seen.append("late")
            return final_messages, native_messages, state

    core = AgentCore()
    core.register_provider(EchoProvider)
    session = core.add_message(core.create_session(), "user", "two words")
    stream = core.send_request_stream(session, {})
    next(stream)
    core.register_feature(Late)
    list(stream)
    assert seen == []

    list(core.send_request_stream(session, {}))
    assert seen == ["late"]


def test_threads_that_register_at_the_same_time_lose_nothing() -> None:
    core, all_there = AgentCore(), threading.Barrier(2)

    class Slow:
        def __init__(self) -> None:
            all_there.wait(timeout=60)

    plugins = [type(f"Slow{number}", (Slow,), {}) for number in range(2)]
    threads = [threading.Thread(target=core.register_feature, args=(plugin,)) for plugin in plugins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(registered(core)) == ["Slow0", "Slow1"]
