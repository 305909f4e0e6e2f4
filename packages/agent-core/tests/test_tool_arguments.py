"""Arguments that do not fit are reported to the model, and never repaired and run."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Dicts = list[dict[str, Any]]


class Recorder:
    """A tool with a schema of the test's choice; `received` has the arguments of each run."""

    name = "recorder"
    version = "1"

    def __init__(self, parameters: Any = None) -> None:
        self.received: list[Any] = []
        self._parameters = parameters

    def get_tool_schemas(self) -> Dicts:
        described = (
            {"name": "f"} if self._parameters is None else {"name": "f", "parameters": self._parameters}
        )
        return [{"type": "function", "function": described}, {"type": "custom", "name": "text"}]

    def execute_tool(self, tool_name: str, arguments: Any) -> str:
        self.received.append(arguments)
        return "ran"


def call(arguments: Any, name: str = "f") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(plugin: Recorder, tool_call: dict[str, Any]) -> dict[str, Any]:
    core = AgentCore()
    core.register_tool(plugin)
    [message] = core.execute_tool_calls([tool_call], {})
    return message


def ran(parameters: Any, arguments: Any) -> bool:
    return "error" not in answer(Recorder(parameters), call(json.dumps(arguments)))["metadata"]


def problem(parameters: Any, arguments: Any) -> str:
    """Return what the model is complaint, after checking that nothing was run."""
    plugin = Recorder(parameters)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    message = answer(plugin, call(text))
    assert plugin.received == []
    assert message["metadata"]["error"] == {"type": "invalid_arguments"}
    return str(message["content"])


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_the_answer_to_arguments_that_do_not_fit_in_full() -> None:
    plugin = Recorder(object_of(limit={"type": "integer"}))

    message = answer(plugin, call('{"limit": "3"}'))

    text = 'Error: the call was not run, its arguments do not fit: limit: "3" is not of type "integer"'
    assert message == {
        "role": "tool",
        "content": text,
        "metadata": {
            "tool_call_id": "1",
            "tool_name": "f",
            "tool_plugin": "recorder",
            "tool_schema": plugin.get_tool_schemas()[0],
            "error": {"type": "invalid_arguments"},
        },
        "tool_result": {"type": "tool_result", "text": text, "is_error": True},
    }
    assert plugin.received == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"a": }', "not valid JSON: Expecting value: line 1 column 7"),
        ('{"a": 1', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("look up herons", "not valid JSON"),
        ("[1, 2]", "must be a JSON object, got a list"),
        ('"text"', "must be a JSON object, got text"),
        ("5", "must be a JSON object, got a number"),
        ("null", "must be a JSON object, got nothing"),
        ("true", "must be a JSON object, got a boolean"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested too deeply"),
        ('{"a":' * 100_000, ""),
    ],
)
def test_text_that_is_no_json_object_is_not_run(arguments: str, complaint: str) -> None:
    assert complaint in problem(None, arguments)


@pytest.mark.parametrize("arguments", ["", "  ", None, "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    plugin = Recorder()

    answer(plugin, call(arguments))

    assert plugin.received == [{}]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_json_object_arrives_as_it_was_written(arguments: dict[str, Any]) -> None:
    plugin = Recorder()

    answer(plugin, call(json.dumps(arguments)))

    assert plugin.received == [arguments]


@settings(max_examples=30)
@given(st.text() | json_values.map(json.dumps) | st.text(alphabet='{}[]":,1a '))
def test_whatever_a_model_writes_the_tool_runs_only_on_an_object(text: str) -> None:
    plugin = Recorder()
    try:
        is_object = isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        is_object = not text.strip()

    message = answer(plugin, call(text))

    assert len(plugin.received) == ("error" not in message["metadata"])
    assert is_object or plugin.received == []


def test_several_problems_are_reported_at_once_each_with_its_place() -> None:
    guest = {**object_of(name={"type": "string"}), "required": ["name"]}
    schema = {
        **object_of(day={"type": "string"}, guests={"type": "array", "items": guest}),
        "required": ["day", "meal"],
        "additionalProperties": False,
    }

    complaint = problem(schema, {"day": 1, "guests": [{"name": "Ada"}, {"name": 2}, {}], "wine": "red"})

    for part in (
        'day: 1 is not of type "string"',
        'guests[1].name: 2 is not of type "string"',
        'guests[2]: "name" is a required property',
        'arguments: "meal" is a required property',
        "'wine' was unexpected",
    ):
        assert part in complaint


def test_of_very_many_problems_some_are_reported() -> None:
    complaint = problem({"additionalProperties": {"type": "string"}}, {f"key{n}": n for n in range(500)})

    assert complaint.count("is not of type") == 5


def test_a_long_value_is_not_sent_back_to_the_model_whole() -> None:
    complaint = problem(object_of(a={"type": "integer"}), {"a": "x" * 100_000})

    assert 'a: "xxx' in complaint
    assert len(complaint) < 1_000


@pytest.mark.parametrize(
    ("schema", "arguments", "fits"),
    [
        ({"type": "integer"}, 3, True),
        ({"type": "integer"}, "3", False),
        ({"type": "integer"}, True, False),
        ({"type": "integer"}, 3.5, False),
        ({"type": "boolean"}, "true", False),
        ({"type": "array"}, "[]", False),
        ({"type": ["string", "null"]}, None, True),
        ({"enum": ["lunch", "dinner"]}, "Lunch", False),
        ({"type": "integer", "maximum": 5}, 10**30, False),
        ({"type": "string", "pattern": "^[a-z]+$"}, "heron", True),
        ({"type": "string", "pattern": "^[a-z]+$"}, "Heron", False),
        ({"$ref": "#/$defs/word"}, "heron", True),
        ({"$ref": "#/$defs/word"}, 5, False),
    ],
)
def test_a_value_fits_or_the_call_is_not_run(schema: dict[str, Any], arguments: Any, fits: bool) -> None:
    parameters = {**object_of(value=schema), "$defs": {"word": {"type": "string"}}}

    assert ran(parameters, {"value": arguments}) is fits


def test_half_a_surrogate_pair_is_as_good_as_other_text_and_breaks_no_message() -> None:
    plugin = Recorder(object_of(a={"type": "string"}))

    answer(plugin, call('{"a": "\\ud800"}'))

    assert plugin.received == [{"a": "\ud800"}]
    assert "they cannot be checked" in problem(object_of(a={"type": "integer"}), '{"a": "\\ud800"}')


@pytest.mark.parametrize("argument", [object(), {1, 2}, {5: "key"}], ids=["object", "set", "key"])
def test_arguments_that_are_objects_of_this_program_never_raise(argument: Any) -> None:
    plugin = Recorder(object_of(a={"type": "integer"}))

    message = answer(plugin, {"type": "tool_use", "id": "1", "name": "f", "input": {"a": argument}})

    assert message["metadata"]["error"] == {"type": "invalid_arguments"}
    assert plugin.received == []


def test_a_json_tool_takes_no_freeform_text() -> None:
    plugin = Recorder()

    message = answer(plugin, {"id": "1", "type": "custom", "custom": {"name": "f", "input": "{}"}})

    assert "the tool takes a JSON object, not plain text" in message["content"]
    assert message["metadata"]["error"] == {"type": "invalid_arguments"}
    assert plugin.received == []


@pytest.mark.parametrize("arguments", ['{"text": "x"}', '{"input": 5}', '{"input": "x", "more": 1}', "{}"])
def test_a_text_tool_takes_nothing_but_text(arguments: str) -> None:
    plugin = Recorder()

    message = answer(plugin, call(arguments, "text"))

    assert 'the tool takes plain text, as text or as {"input": "…"}' in message["content"]
    assert plugin.received == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": 5},
        {"properties": {"a": {"pattern": "("}}},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://schemas.example/own"},
        {"minimum": "three"},
    ],
)
def test_a_broken_schema_is_reported_and_nothing_is_run(schema: dict[str, Any]) -> None:
    plugin = Recorder(schema)

    message = answer(plugin, call("{}"))

    assert message["metadata"]["error"] == {"type": "invalid_schema"}
    assert "the call was not run, the tool's own schema is not valid: " in message["content"]
    assert plugin.received == []


def test_a_broken_schema_leaves_the_plugins_other_tools_working() -> None:
    plugin = Recorder({"type": "nonsense"})
    core = AgentCore()
    core.register_tool(plugin)

    broken, fine = core.execute_tool_calls([call("{}"), call('{"input": "x"}', "text")], {})

    assert broken["metadata"]["error"] == {"type": "invalid_schema"}
    assert fine["content"] == "ran"


class _Noting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]  # set by the fixture
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"type": "object"}')

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Serve a schema that fits everything; `asked` has what was fetched."""
    with HTTPServer(("127.0.0.1", 0), _Noting) as serving:
        serving.asked = []  # type: ignore[attr-defined]  # read by the test
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_schema_elsewhere_on_the_network_is_not_fetched(server: HTTPServer, keyword: str) -> None:
    address = f"http://127.0.0.1:{server.server_port}/schema.json"
    plugin = Recorder({"properties": {"a": {keyword: address}}})

    message = answer(plugin, call('{"a": {}}'))

    assert server.asked == []  # type: ignore[attr-defined]  # see the fixture
    assert message["metadata"]["error"] == {"type": "invalid_schema"}


@pytest.mark.parametrize("based", [False, True])
def test_a_schema_in_a_file_is_not_read(tmp_path: Path, based: bool) -> None:
    (tmp_path / "secret.json").write_text('{"type": "object"}')
    base = {"$id": tmp_path.as_uri() + "/"} if based else {}
    address = "secret.json" if based else (tmp_path / "secret.json").as_uri()

    message = answer(Recorder({**base, "properties": {"a": {"$ref": address}}}), call('{"a": {}}'))

    assert message["metadata"]["error"] == {"type": "invalid_schema"}
    assert "secret.json" in message["content"]


def test_a_schema_may_name_its_parts_by_address_without_fetching() -> None:
    schema = {
        "$id": "https://schemas.example/tool",
        "$defs": {"word": {"$id": "word", "type": "string"}},
        "properties": {"a": {"$ref": "https://schemas.example/word"}},
    }

    assert ran(schema, {"a": "heron"})
    assert not ran(schema, {"a": 5})


def test_a_recursive_schema_checks_every_level() -> None:
    tree = {**object_of(child={"$ref": "#"}, name={"type": "string"}), "required": ["name"]}

    assert ran(tree, {"name": "a", "child": {"name": "b", "child": {"name": "c"}}})
    assert "child.child.name: 5" in problem(tree, {"name": "a", "child": {"name": "b", "child": {"name": 5}}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$dynamicAnchor": "x", "anyOf": [{"$dynamicRef": "#x"}]},
    ],
)
def test_a_schema_that_only_refers_to_itself_comes_to_an_end(schema: dict[str, Any]) -> None:
    assert ran(schema, {"a": 1})


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


def test_a_schema_nested_deeper_than_can_be_checked_is_refused() -> None:
    message = answer(Recorder(nested(300)), call("{}"))

    assert message["metadata"]["error"] == {"type": "invalid_schema"}


def test_a_schema_of_endless_depth_is_an_error_of_its_plugin() -> None:
    schema = nested(100_000)
    core = AgentCore()
    core.register_tool(Recorder(schema))

    with pytest.raises(PluginError, match="a schema is nested too deeply") as caught:
        core.get_tool_schemas({})
    assert (caught.value.plugin, caught.value.hook) == ("recorder", "get_tool_schemas")
    while schema:  # freed level by level, since Python would do it in one deep call
        schema = schema.pop("not")


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "(a*)*b", "^(?=(a+)+$)a", r"^(a+)+\1$", r"^(a|aa)+$(?<!a)"]
)
def test_a_pattern_made_to_never_end_ends(pattern: str) -> None:
    complaint = problem(object_of(a={"type": "string", "pattern": pattern}), {"a": "a" * 200 + "!"})

    assert "does not match" in complaint or "Max limit for backtracking" in complaint


def test_a_schema_of_a_megabyte_works() -> None:
    fields = {f"field{n}": {"type": "string", "description": "x" * 80} for n in range(8_000)}
    schema = object_of(**fields)

    assert len(json.dumps(schema)) > 1_000_000
    assert ran(schema, {"field7": "text"})
    assert "field7: 7 is not of type" in problem(schema, {"field7": 7})
