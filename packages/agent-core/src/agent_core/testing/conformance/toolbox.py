"""The tools that a plugin announces, ready to be called."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.frozen import thaw
from agent_core.testing.conformance.report import NotApplicable
from agent_core.testing.conformance.stage import staged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.interop import InspectedSchema
    from agent_core.testing.conformance.case import Case
    from agent_core.testing.conformance.stage import Stage

HOOKS = ("init", "get_tool_schemas", "register_tool_formats")
_LONGEST_NAME = 64


@contextmanager
def toolbox(case: Case) -> Iterator[Toolbox]:
    """Read the tools that the plugin announces.

    Raises:
        NotApplicable: If they cannot be read; the check of schemas tells why.
    """
    case.trust(*HOOKS)
    with staged(case) as stage:
        try:
            schemas = [stage.interop().inspect_schema(schema) for schema in announced(stage)]
            stage.core.get_tool_schemas(stage.request_config)
        except AgentError as error:
            raise NotApplicable(f"the tools have to be mended first: {error}") from error
        broken = next((schema.name for schema in schemas if schema_problem(schema)), None)
        if broken is not None:
            raise NotApplicable(f"the schema of {broken!r} has to be mended first")
        yield Toolbox(stage, schemas)


class Toolbox:
    """A plugin's tools, and the arguments that its author gave for some.

    Attributes:
        schemas: What is announced.
        calls: The tools that may be run, with the arguments to run them with.
    """

    def __init__(self, stage: Stage, schemas: list[InspectedSchema]) -> None:
        given = stage.case.tool_calls
        self.stage = stage
        self.schemas = schemas
        self.calls = [(tool, given[tool.name]) for tool in schemas if given.get(tool.name) is not None]

    def run(self, call: dict[str, Any]) -> dict[str, Any]:
        """Run a call and return its message."""
        [message] = self.stage.core.execute_tool_calls([call], self.stage.request_config)
        return message

    async def run_async(self, call: dict[str, Any]) -> dict[str, Any]:
        """Do the same on an event loop."""
        [message] = await self.stage.core.execute_tool_calls_async([call], self.stage.request_config)
        return message

    def results(self, call: dict[str, Any]) -> list[dict[str, Any]]:
        """Run a call and return the tool's own results.

        Raises:
            NotApplicable: If it does not run; another check tells why.
        """
        try:
            items = list(self.stage.core.stream_tool_call(call, self.stage.request_config))
        except AgentError as error:
            raise NotApplicable(f"the tools have to be mended first: {error}") from error
        return [item for item in items if "success" in item]


def announced(stage: Stage) -> list[dict[str, Any]]:
    """Return the schemas as the plugin gives them."""
    schemas: list[dict[str, Any]] = stage.wrapper.get_tool_schemas(stage.state(), stage.context())
    return schemas


def call_of(tool: InspectedSchema, arguments: Any) -> dict[str, Any]:
    """Return a call as a model would send it."""
    if tool.payload_kind == "text":
        return {"id": "call_1", "type": "custom", "custom": {"name": tool.name, "input": arguments}}
    return json_call(tool, json.dumps(arguments))


def json_call(tool: InspectedSchema, arguments: str) -> dict[str, Any]:
    """Return a call whose arguments are this text."""
    function = {"name": tool.name, "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


def schema_problem(tool: InspectedSchema) -> str | None:
    """Return what is wrong with a schema, or None."""
    name = tool.name.replace("_", "0").replace("-", "0")
    if not name.isascii() or not name.isalnum() or len(name) > _LONGEST_NAME:
        return "its name must have 1 to 64 letters a-z, digits, '_' or '-'"
    if tool.payload_kind == "text":
        return None
    import jsonschema_rs

    if tool.parameters.get("type") != "object":
        return 'its parameters must be of type "object"'
    try:
        jsonschema_rs.meta.validate(thaw(tool.parameters))
    except ValueError as error:
        return f"its parameters are not JSON Schema: {str(error).splitlines()[0]}"
    return None


def takes_nothing(tool: InspectedSchema) -> bool:
    """Say whether a tool may be called without arguments."""
    import jsonschema_rs

    if tool.payload_kind == "text":
        return False
    return bool(jsonschema_rs.validator_for(thaw(tool.parameters)).is_valid({}))
