"""Which tools there are, which of them the model is shown, and in which format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import (
    AgentCore,
    PluginError,
    RegistrationError,
    Session,
    ToolDescriptor,
    ToolIdConflictError,
    ToolInteropRegistry,
)
from agent_core.frozen import freeze
from agent_core.interop import InspectedSchema, ToolCallFormat, ToolSchemaFormat
from agent_core.testing import EchoProvider, ScriptedProvider
from agent_core.values import ToolCall

Dicts = list[dict[str, Any]]
Prepare = Callable[[list[ToolDescriptor]], Any]


def function(name: str, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


class Toolbox:
    version = "1"

    def __init__(self, name: str, *schemas: Any, priority: int = 100) -> None:
        self.name = name
        self.priority = priority
        self.schemas = list(schemas)

    def get_tool_schemas(self) -> Dicts:
        return self.schemas

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return f"{self.name} ran {tool_name}"


class Preparing:
    version = "1"

    def __init__(self, prepare: Prepare, name: str = "preparing", priority: int = 100) -> None:
        self.name = name
        self.priority = priority
        self._prepare = prepare

    def prepare_tools(self, tools: list[ToolDescriptor]) -> Any:
        return self._prepare(tools)


def core_with(*tools: Any, features: Sequence[Any] = (), provider: Any = EchoProvider) -> AgentCore:
    core = AgentCore()
    if provider is not None:
        core.register_provider(provider)
    for plugin in tools:
        core.register_tool(plugin)
    for feature in features:
        core.register_feature(feature)
    return core


def available(core: AgentCore, config: dict[str, Any] | None = None) -> list[str]:
    return [tool.name for tool in core.get_available_tools(config or {})]


def shown(core: AgentCore, config: dict[str, Any] | None = None) -> list[str]:
    registry = ToolInteropRegistry.default()
    return [registry.inspect_schema(schema).name for schema in core.get_tool_schemas(config or {})]


def test_a_core_without_tools_has_none() -> None:
    assert core_with().get_available_tools({}) == []
    assert core_with().get_tool_schemas({}) == []


def test_tools_can_be_listed_before_there_is_a_provider() -> None:
    core = core_with(Toolbox("files", function("read")), provider=None)

    assert available(core) == shown(core) == ["read"]


def test_a_plugin_that_lists_tools_and_runs_none_is_refused() -> None:
    class Idle:
        name = "idle"
        version = "1"

        def get_tool_schemas(self) -> Dicts:
            return [function("read")]

    with pytest.raises(RegistrationError, match="needs get_tool_schemas and execute_tool") as caught:
        core_with(Idle)
    assert caught.value.plugin == "idle"


def test_a_descriptor_says_what_the_tool_is_and_who_runs_it() -> None:
    core = core_with(Toolbox("files", function("read", "Read a file.")))

    assert core.get_available_tools({}) == [
        ToolDescriptor(
            name="read",
            schema=freeze(function("read", "Read a file.")),
            plugin="files",
            description="Read a file.",
        )
    ]


def test_tools_stand_in_the_order_of_priority_then_registration_then_the_plugins_own() -> None:
    late = Toolbox("late", function("z"), function("a"), priority=200)
    core = core_with(late, Toolbox("one", function("m")), Toolbox("two", function("b")))

    assert available(core) == shown(core) == ["m", "b", "z", "a"]


def test_a_plugin_that_is_off_offers_nothing() -> None:
    core = core_with(Toolbox("files", function("read")), Toolbox("web", function("fetch")))

    assert available(core, {"disabled_plugins": ["web"]}) == ["read"]


def test_schemas_are_returned_as_data_that_the_caller_may_change() -> None:
    core = core_with(Toolbox("files", function("read", "Read.")))

    core.get_tool_schemas({})[0]["function"]["name"] = "changed"

    assert core.get_tool_schemas({}) == [function("read", "Read.")]


NAMES = ["read_file", "read_url", "write_file", "shell"]


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({}, NAMES),
        ({"allowed_tools": None, "excluded_tools": None}, NAMES),
        ({"allowed_tools": []}, []),
        ({"allowed_tools": ["shell"]}, ["shell"]),
        ({"allowed_tools": ["shell", "read_file"]}, ["read_file", "shell"]),
        ({"allowed_tools": ["read_*"]}, ["read_file", "read_url"]),
        ({"allowed_tools": ["*_file", "shell"]}, ["read_file", "write_file", "shell"]),
        ({"allowed_tools": ["READ_FILE", "read"]}, []),
        ({"excluded_tools": ["shell"]}, NAMES[:3]),
        ({"excluded_tools": ["*"]}, []),
        ({"excluded_tools": ["unheard_of"]}, NAMES),
        ({"allowed_tools": ["shell"], "excluded_tools": ["shell"]}, []),
        ({"allowed_tools": ["*"], "excluded_tools": ["*_url", "shel?"]}, ["read_file", "write_file"]),
    ],
)
def test_the_model_is_shown_what_is_allowed_and_not_excluded(config: dict[str, Any], left: list[str]) -> None:
    core = core_with(Toolbox("box", *map(function, NAMES)))

    assert shown(core, config) == left
    assert available(core, config) == NAMES


patterns = st.lists(st.sampled_from([*NAMES, "*", "read_*", "*_file", "[rw]*", "nothing"]), max_size=3)


@settings(max_examples=40)
@given(allowed=st.none() | patterns, excluded=patterns, more=patterns)
def test_lists_only_take_away_and_excluding_more_never_shows_more(
    allowed: list[str] | None, excluded: list[str], more: list[str]
) -> None:
    core = core_with(Toolbox("box", *map(function, NAMES)))

    some = shown(core, {"allowed_tools": allowed, "excluded_tools": excluded})
    fewer = shown(core, {"allowed_tools": allowed, "excluded_tools": excluded + more})

    assert some == [name for name in NAMES if name in some]
    assert fewer == [name for name in some if name in fewer]
    assert not set(more) & set(fewer)


def test_a_conflict_of_tool_names_names_both_plugins() -> None:
    core = core_with(Toolbox("files", function("read")), Toolbox("mail", function("read")))

    with pytest.raises(ToolIdConflictError) as caught:
        core.get_available_tools({})

    assert (caught.value.tool, caught.value.owners) == ("read", ("files", "mail"))
    assert "'read'" in str(caught.value)
    assert "'files'" in str(caught.value)
    assert "'mail'" in str(caught.value)


@pytest.mark.parametrize("ask", ["get_tool_schemas", "get_available_tools", "execute", "preview", "request"])
def test_a_conflict_is_an_error_wherever_tools_are_looked_at(ask: str) -> None:
    core = core_with(Toolbox("files", function("read")), Toolbox("mail", function("read")))
    call = {"id": "1", **function("read")}
    questions: dict[str, Callable[[], Any]] = {
        "get_tool_schemas": lambda: core.get_tool_schemas({"excluded_tools": ["read"]}),
        "get_available_tools": lambda: core.get_available_tools({}),
        "execute": lambda: core.execute_tool_calls([call], {}),
        "preview": lambda: core.format_tool_call_preview(call, {}),
        "request": lambda: core.send_request(Session("s"), {}),
    }

    with pytest.raises(ToolIdConflictError):
        questions[ask]()


def test_switching_one_owner_off_ends_a_conflict() -> None:
    core = core_with(Toolbox("files", function("read")), Toolbox("mail", function("read")))

    [tool] = core.get_available_tools({"disabled_plugins": ["files"]})

    assert tool.plugin == "mail"


@pytest.mark.parametrize(
    ("schemas", "problem"),
    [
        (None, "must return a list of dicts"),
        (["read"], "must return a list of dicts"),
        ([{}], "expected a tool schema in a known format"),
        ([{"type": "function", "function": {}}], "'name' must be the name of a tool"),
        (
            [{"type": "function", "function": {"name": "f", "parameters": [1]}}],
            "parameters must be an object",
        ),
    ],
)
def test_schemas_that_cannot_be_read_are_an_error_of_their_plugin(schemas: Any, problem: str) -> None:
    class Broken(Toolbox):
        def get_tool_schemas(self) -> Any:
            return schemas

    core = core_with(Broken("broken"))

    with pytest.raises(PluginError, match=problem) as caught:
        core.get_tool_schemas({})
    assert (caught.value.plugin, caught.value.hook) == ("broken", "get_tool_schemas")


@pytest.mark.parametrize("hook", ["init", "get_tool_schemas"])
def test_a_hook_that_raises_is_named(hook: str) -> None:
    def fail() -> Any:
        raise OSError("the disk is on fire")

    box = Toolbox("files", function("read"))
    setattr(box, hook, fail)

    with pytest.raises(PluginError, match="OSError: the disk is on fire") as caught:
        core_with(box).get_tool_schemas({})
    assert (caught.value.plugin, caught.value.hook) == ("files", hook)


def test_a_plugin_may_offer_tools_according_to_its_state() -> None:
    class ByLanguage(Toolbox):
        def init(self, config: Mapping[str, Any]) -> dict[str, Any]:
            return {"language": config.get("language", "en")}

        def get_tool_schemas(self, state: dict[str, Any]) -> Dicts:  # type: ignore[override]
            return [function(f"translate_to_{state['language']}")]

    core = core_with(ByLanguage("languages"))

    assert available(core, {"language": "de"}) == ["translate_to_de"]
    assert available(core, {}) == ["translate_to_en"]


def test_features_filter_and_reorder_what_the_model_is_shown() -> None:
    feature = Preparing(lambda tools: [tool for tool in reversed(tools) if tool.name != "shell"])
    core = core_with(Toolbox("box", *map(function, NAMES)), features=[feature])

    assert shown(core) == ["write_file", "read_url", "read_file"]
    assert available(core) == NAMES


def test_features_see_only_what_lists_and_earlier_features_left() -> None:
    seen: list[list[str]] = []

    def drop_first(tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        seen.append([tool.name for tool in tools])
        return tools[1:]

    features = [Preparing(drop_first, "second", 2), Preparing(drop_first, "first", 1)]
    core = core_with(Toolbox("box", *map(function, NAMES)), features=features)

    assert shown(core, {"excluded_tools": ["shell"]}) == ["write_file"]
    assert seen == [["read_file", "read_url", "write_file"], ["read_url", "write_file"]]


def test_features_pass_on_to_each_other_what_they_found_out() -> None:
    def mark(tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return [replace(tool, metadata={"dangerous": tool.name == "shell"}) for tool in tools]

    def harmless(tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        return [tool for tool in tools if not tool.metadata["dangerous"]]

    features = [Preparing(mark, "mark"), Preparing(harmless, "harmless")]
    core = core_with(Toolbox("box", *map(function, NAMES)), features=features)

    assert shown(core) == NAMES[:3]


def test_a_feature_may_give_a_tool_another_schema() -> None:
    new = {"name": "read", "description": "Read, slowly.", "input_schema": {"type": "object"}}
    feature = Preparing(lambda tools: [replace(tool, schema=freeze(new)) for tool in tools])
    core = core_with(Toolbox("files", function("read", "Read.")), features=[feature])

    assert core.get_tool_schemas({}) == [new]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (function("f", "old"), function("f", "new")),
        (
            {"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}},
            {"type": "custom", "custom": {"name": "f", "format": {"type": "text"}, "description": "new"}},
        ),
        ({"type": "function", "name": "f"}, {"type": "function", "name": "f", "description": "new"}),
        (
            {"type": "custom", "name": "f", "description": "old"},
            {"type": "custom", "name": "f", "description": "new"},
        ),
        (
            {"name": "f", "input_schema": {}, "cache_control": {"type": "ephemeral"}},
            {
                "name": "f",
                "input_schema": {},
                "cache_control": {"type": "ephemeral"},
                "description": "new",
            },
        ),
        ({"name": "f", "parameters": {"type": "OBJECT"}}, None),
    ],
    ids=["chat", "chat custom", "responses", "responses custom", "anthropic", "gemini"],
)
def test_the_model_reads_the_description_that_a_feature_changed(
    schema: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    feature = Preparing(lambda tools: [replace(tool, description="new") for tool in tools])
    core = core_with(Toolbox("box", schema), features=[feature])

    assert core.get_tool_schemas({}) == [expected or {**schema, "description": "new"}]


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda tools: [*tools, replace(tools[0], name="invented")], "offers 'invented'"),
        (lambda tools: [*tools, tools[0]], "offers 'read' more than once"),
        (lambda tools: [replace(tools[0], schema=function("other"))], "gave 'read' a schema of 'other'"),
        (lambda tools: [replace(tools[0], schema={"junk": 1})], "expected a tool schema"),
        (lambda tools: [tools[0].name], "must return a list of ToolDescriptor"),
        (lambda tools: None, "must return a list of ToolDescriptor"),
        (lambda tools: tools[99], "raised IndexError"),
    ],
    ids=["invented", "twice", "renamed", "unreadable", "names", "nothing", "raises"],
)
def test_a_feature_that_answers_nonsense_is_named(prepare: Prepare, problem: str) -> None:
    core = core_with(Toolbox("files", function("read")), features=[Preparing(prepare)])

    with pytest.raises(PluginError, match=problem) as caught:
        core.get_tool_schemas({})
    assert (caught.value.plugin, caught.value.hook) == ("preparing", "prepare_tools")


def test_a_feature_cannot_bring_back_what_the_configuration_excluded() -> None:
    kept: list[ToolDescriptor] = []

    def remember(tools: list[ToolDescriptor]) -> list[ToolDescriptor]:
        kept.extend(tools)
        return kept

    core = core_with(Toolbox("files", function("read")), features=[Preparing(remember)])
    core.get_tool_schemas({})

    with pytest.raises(PluginError, match="not among the tools that it was given"):
        core.get_tool_schemas({"excluded_tools": ["read"]})


def test_a_tool_that_the_model_is_not_shown_cannot_be_called() -> None:
    core = core_with(Toolbox("box", *map(function, NAMES)), features=[Preparing(lambda tools: tools[:2])])
    calls = [{"id": name, **function(name)} for name in NAMES]

    messages = core.execute_tool_calls(calls, {"excluded_tools": ["read_url"]})

    assert [m["metadata"].get("error") for m in messages] == [
        None,
        {"type": "unknown_tool"},
        None,
        {"type": "unknown_tool"},
    ]


class Choosy(ScriptedProvider):
    def __init__(self, *formats: str) -> None:
        super().__init__(["fine"])
        self.tool_schema_formats = formats


def sent_tools(core: AgentCore, provider: ScriptedProvider, config: dict[str, Any] | None = None) -> Any:
    core.send_request(Session("s"), config or {})
    return provider.requests[0].config["tools"]


LOOK_UP: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Look a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
}
PARAMETERS = LOOK_UP["function"]["parameters"]


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        ([], LOOK_UP),
        (["openai.chat.function"], LOOK_UP),
        (
            ["openai.responses.function"],
            {"type": "function", **LOOK_UP["function"], "strict": False},
        ),
        (
            ["anthropic.tool"],
            {"name": "look_up", "description": "Look a word up.", "input_schema": PARAMETERS},
        ),
        (
            ["gemini.function_declaration"],
            {"name": "look_up", "description": "Look a word up.", "parametersJsonSchema": PARAMETERS},
        ),
        (["openai.chat.custom", "openai.chat.function"], LOOK_UP),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_provider_gets_schemas_in_the_first_of_its_formats_that_fits(
    formats: list[str], expected: dict[str, Any]
) -> None:
    provider = Choosy(*formats)
    core = core_with(Toolbox("words", LOOK_UP), provider=provider)

    assert sent_tools(core, provider) == [expected]
    assert core.get_tool_schemas({}) == [LOOK_UP]


def test_a_text_tool_is_sent_as_text_where_the_provider_takes_it_and_wrapped_where_not() -> None:
    patch = {"type": "custom", "name": "patch", "description": "Apply a patch."}
    modern = Choosy("openai.responses.function", "openai.responses.custom")
    plain = Choosy("openai.chat.function")

    as_text = sent_tools(core_with(Toolbox("box", patch), provider=modern), modern)
    wrapped = sent_tools(core_with(Toolbox("box", patch), provider=plain), plain)

    assert as_text == [patch]
    assert wrapped[0]["function"]["parameters"]["required"] == ["input"]


def test_a_provider_is_sent_only_what_is_effective() -> None:
    provider = Choosy("anthropic.tool")
    core = core_with(
        Toolbox("box", *map(function, NAMES)),
        features=[Preparing(lambda tools: tools[:2])],
        provider=provider,
    )

    tools = sent_tools(core, provider, {"excluded_tools": ["read_url"]})

    assert [tool["name"] for tool in tools] == ["read_file", "write_file"]


def test_a_format_that_nobody_knows_is_an_error_of_the_provider() -> None:
    core = core_with(Toolbox("words", LOOK_UP), provider=Choosy("openai.chat.fucntion"))

    with pytest.raises(PluginError, match=r"Unknown tool schema format 'openai\.chat\.fucntion'") as caught:
        core.send_request(Session("s"), {})
    assert (caught.value.plugin, caught.value.hook) == ("scripted", "tool_schema_formats")


LISTED = ToolSchemaFormat(
    id="mcp.tool",
    matches=lambda tool: isinstance(tool, dict) and "inputSchema" in tool,
    inspect=lambda tool: InspectedSchema(name=tool["name"], parameters=tool["inputSchema"], raw=tool),
    build=lambda schema: {"name": schema.name, "inputSchema": schema.parameters},
)
SHOUTED = ToolCallFormat(
    id="shouted",
    matches=lambda call: isinstance(call, dict) and "SHOUT" in call,
    inspect=lambda call: ToolCall(
        call_id=call.get("ID"), tool_name=call["SHOUT"].lower(), payload={}, raw=call
    ),
)


class McpToolbox(Toolbox):
    def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
        registry.register_schema_format(LISTED)


def test_a_tool_plugin_may_describe_its_tools_in_a_format_of_its_own() -> None:
    provider = Choosy("anthropic.tool")
    listed = {"name": "remote", "inputSchema": {"type": "object", "required": ["x"]}}
    core = core_with(McpToolbox("mcp", listed), provider=provider)

    assert core.get_tool_schemas({}) == [listed]
    assert sent_tools(core, provider) == [
        {"name": "remote", "input_schema": {"type": "object", "required": ["x"]}}
    ]


def test_a_provider_may_bring_formats_for_schemas_and_calls() -> None:
    class Shouting(Choosy):
        def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
            registry.register_schema_format(LISTED)
            registry.register_call_format(SHOUTED)

    provider = Shouting("mcp.tool")
    core = core_with(Toolbox("files", function("read")), provider=provider)

    [message] = core.execute_tool_calls([{"SHOUT": "READ", "ID": "7"}], {})

    assert sent_tools(core, provider) == [
        {"name": "read", "inputSchema": {"type": "object", "properties": {}}}
    ]
    assert (message["content"], message["metadata"]["tool_call_id"]) == ("files ran read", "7")


def test_formats_leave_with_the_plugin_that_brought_them() -> None:
    class Caller(Toolbox):
        def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
            registry.register_call_format(SHOUTED)

    core = core_with(Toolbox("files", function("read")), Caller("caller"))

    [on] = core.execute_tool_calls([{"SHOUT": "READ"}], {})
    [off] = core.execute_tool_calls([{"SHOUT": "READ"}], {"disabled_plugins": ["caller"]})

    assert "error" not in on["metadata"]
    assert off["metadata"]["error"] == {"type": "unreadable_call"}


def test_a_format_id_that_is_taken_is_refused() -> None:
    core = core_with(McpToolbox("one"), McpToolbox("two"))

    with pytest.raises(RegistrationError, match="schema format of that id already"):
        core.get_tool_schemas({})


def test_a_plugin_that_fails_to_register_its_formats_is_named() -> None:
    class Broken(Toolbox):
        def register_tool_formats(self, registry: ToolInteropRegistry) -> None:
            raise LookupError("no format")

    with pytest.raises(PluginError, match="LookupError: no format") as caught:
        core_with(Broken("broken")).get_tool_schemas({})
    assert (caught.value.plugin, caught.value.hook) == ("broken", "register_tool_formats")
