"""Models without a server: one that is a function, and one that tries everything an agent offers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema_rs import validator_for

from agent_core.encoding import canonical, parse
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_core.testing.scripted import Spoken, read_line

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model was asked.

    Attributes:
        messages: The conversation, as ``{"role", "content"}`` items with their tool calls.
        tools: The tools on offer: name and JSON Schema of the arguments.
        config: The settings of the request.
    """

    messages: Sequence[JsonObject]
    tools: Mapping[str, JsonObject]
    config: Mapping[str, Any]

    @property
    def results(self) -> list[JsonObject]:
        """The results of tools since the user spoke last."""
        found: list[JsonObject] = []
        for message in reversed(self.messages):
            if message["role"] == "user":
                break
            if message["role"] == "tool":
                found.insert(0, message)
        return found

    @property
    def called(self) -> set[str]:
        """The names of the tools that were called since the user spoke last."""
        said = [number for number, message in enumerate(self.messages) if message["role"] == "user"]
        since = self.messages[said[-1] :] if said else self.messages
        return {call["function"]["name"] for message in since for call in message.get("tool_calls") or ()}

    @property
    def output_schema(self) -> JsonObject | None:
        """The schema that an answer in words should fit, from the settings or from the instructions."""
        if (schema := self.config.get("output_schema")) is not None:
            return dict(schema)
        for message in self.messages:
            _, found, after = str(message["content"]).partition(_SCHEMA_FOLLOWS)
            if message["role"] == "system" and found:
                return dict(parse(after.partition("\n")[0].encode()))
        return None


_SCHEMA_FOLLOWS = "It must fit this JSON Schema:\n"  # so an `Agent` tells it to models without another way


class FunctionModel(ScriptedProvider):
    """A model that is a function: it gets a `ModelRequest` and returns a `Reply`, a text or an exception."""

    __test__ = False

    def __init__(self, function: Callable[[ModelRequest], Spoken], *, name: str = "function_model") -> None:
        super().__init__(name=name)
        self._function = function

    def _next_reply(self, native_messages: Any, state: Any, request_id: str | None) -> Reply:
        # The script of the base class is empty: what it notes of a request is all that is used of it.
        with self._lock:
            self._note(native_messages, state, request_id)
        config = state["config"]
        tools = dict(_schema(tool) for tool in config.get("tools") or ())
        request = ModelRequest(list(native_messages), tools, config)
        return read_line(self._function(request), native_messages)


class TestModel(FunctionModel):
    """A model that calls every tool once, with arguments that fit its schema, and then gives an output.

    It finds tools whose schema promises what their function does not take.

    Args:
        text: What it says in the end, if the agent wants text.
        tools: Only these tools; by default all but handoffs and outputs.
        arguments: The arguments for some tools, by name, in place of made ones.
    """

    __test__ = False

    def __init__(
        self,
        *,
        text: str = "done",
        tools: Sequence[str] | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        name: str = "test_model",
    ) -> None:
        super().__init__(self._answer, name=name)
        self._text = text
        self._tools = tools
        self._arguments = arguments or {}

    def _answer(self, request: ModelRequest) -> Reply:
        outputs = [name for name in request.tools if name.startswith("final_result")]
        wanted = self._tools
        calls = [
            name
            for name in request.tools
            if (name in wanted if wanted is not None else _is_plain(name)) and name not in outputs
        ]
        if due := [name for name in calls if name not in request.called]:
            return Reply(tool_calls=[self._call(name, request.tools[name]) for name in due])
        if outputs:
            return Reply(tool_calls=[self._call(outputs[0], request.tools[outputs[0]])])
        schema = request.output_schema
        return Reply(text=self._text if schema is None else canonical(example(schema)).decode())

    def _call(self, name: str, schema: JsonObject) -> ToolCall:
        given = self._arguments.get(name)
        return ToolCall(name, example(schema) if given is None else dict(given))


def _is_plain(name: str) -> bool:
    return not name.startswith(("transfer_to_", "final_result"))


def _schema(tool: JsonObject) -> tuple[str, JsonObject]:
    inner = tool.get("function", tool)
    return str(inner["name"]), inner.get("parameters") or {"type": "object"}


# Values that fit a schema.

_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "1.5",
    "path": "file.txt",
    "email": "ada@example.org",
    "uri": "https://example.org",
}


def example(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits a JSON Schema, as plain as possible.

    A `pattern` is tried with a few texts; where none fits, give the arguments yourself.
    """
    return _value(schema, schema)


def _value(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(_resolved(str(schema["$ref"]), root), root)
    for fixed in ("const", "default"):
        if fixed in schema:
            return schema[fixed]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            options = [one for one in schema[choice] if one.get("type") != "null"] or schema[choice]
            return _value(options[0], root)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    made = _MAKERS.get(str(kind))
    return "a" if made is None else made(schema, root)


def _resolved(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found  # type: ignore[no-any-return]  # a schema of somebody else's


def _object(schema: Mapping[str, Any], root: Mapping[str, Any]) -> JsonObject:
    properties = schema.get("properties") or {}
    made = {name: _value(properties.get(name, {}), root) for name in schema.get("required") or ()}
    others = schema.get("additionalProperties")
    for number in range(len(made), int(schema.get("minProperties", 0))):
        made[f"key_{number}"] = _value(others if isinstance(others, Mapping) else {}, root)
    return made


def _array(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    first = [_value(one, root) for one in schema.get("prefixItems") or ()]
    items = schema.get("items")
    more = max(0, int(schema.get("minItems", 0)) - len(first))
    rest = [_value(items if isinstance(items, Mapping) else {}, root) for _ in range(more)]
    if schema.get("uniqueItems") and isinstance(items, Mapping):
        rest = [_varied(value, number, items) for number, value in enumerate(rest)]
    return first + rest


def _varied(value: Any, number: int, schema: Mapping[str, Any]) -> Any:
    """Return another value of the same kind for each number."""
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    if isinstance(value, bool):
        return bool(number)
    if isinstance(value, (int, float)):
        return value + number * schema.get("multipleOf", 1)
    return value + "a" * number if isinstance(value, str) else value


def _text(schema: Mapping[str, Any], _root: Mapping[str, Any]) -> str:
    least = max(1, int(schema.get("minLength", 1)))
    tried = [_FORMATS.get(str(schema.get("format")), ""), "a" * least, "A" * least, "1" * least, "A1", "a-1"]
    pattern = schema.get("pattern")
    fitting = (one for one in tried if one and (pattern is None or re.search(pattern, one)))
    return next(fitting, "a" * least)


def _number(schema: Mapping[str, Any], _root: Mapping[str, Any]) -> float:
    fits = validator_for(dict(schema)).is_valid
    return next(filter(fits, _numbers(schema)), 1)


def _numbers(schema: Mapping[str, Any]) -> Iterator[float]:
    """Yield numbers that a schema may mean: plain ones first, then those at its borders."""
    step = schema.get("multipleOf", 1)
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    yield from (1, 0, step)
    for border in (least, most):
        if border is not None:
            above = -(-border // step) * step
            yield from (border, above, above + step, above - step)
    if least is not None and most is not None:
        yield (least + most) / 2


def _integer(schema: Mapping[str, Any], root: Mapping[str, Any]) -> int:
    return int(_number(schema, root))


_MAKERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Any]] = {
    "object": _object,
    "array": _array,
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": lambda _schema, _root: False,
    "null": lambda _schema, _root: None,
}
