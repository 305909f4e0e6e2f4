"""Checks of tools: what a plugin announces, and what happens when it is called."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from agent_core.drivers import EventStream
from agent_core.errors import AgentError
from agent_core.frozen import thaw
from agent_core.pipeline.tools import stream_tool_items
from agent_core.plugin.tool import RUN_HOOKS, ToolInvocation
from agent_testing.conformance.case import Fault, Faults, NotApplicable
from agent_testing.conformance.hooks import json_problem, trust
from agent_testing.conformance.requests import run_async
from agent_testing.conformance.stage import shown, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.interop import InspectedSchema
    from agent_core.steps import Flow
    from agent_provider_kit import Dicts, JsonObject
    from agent_testing.conformance.case import Case
    from agent_testing.conformance.stage import Stage

HOOKS = ("init", "get_tool_schemas", "register_tool_formats")
_LONGEST_NAME = 64
_NEVER_FIT = ('{"half": ', "[]", '"text"')


@contextmanager
def toolbox(case: Case) -> Iterator[Toolbox]:
    """Read the tools that the plugin announces.

    Raises:
        NotApplicable: If they cannot be read; the check of schemas says why.
    """
    trust(case, *HOOKS)
    with staged(case) as stage:
        try:
            schemas = [stage.interop().inspect_schema(schema) for schema in announced(stage)]
            stage.core.get_tool_schemas(stage.request_config)
        except AgentError as error:
            raise NotApplicable(f"the tools must be fixed first: {error}") from error
        broken = next((schema.name for schema in schemas if schema_problem(schema)), None)
        if broken is not None:
            raise NotApplicable(f"the schema of {broken!r} must be fixed first")
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

    def run(self, call: JsonObject) -> JsonObject:
        """Run a call and return its message."""
        [message] = self.stage.core.execute_tool_calls([call], self.stage.request_config)
        return message

    async def run_async(self, call: JsonObject) -> JsonObject:
        """Do the same on an event loop."""
        [message] = await self.stage.core.execute_tool_calls_async([call], self.stage.request_config)
        return message

    def results(self, call: JsonObject) -> Dicts:
        """Run a call and return the tool's own results.

        Raises:
            NotApplicable: If it does not run; another check says why.
        """
        try:
            items = list(EventStream(self._items(call)))
        except AgentError as error:
            raise NotApplicable(f"the tools must be fixed first: {error}") from error
        return [item for item in items if "success" in item]

    def _items(self, call: JsonObject) -> Flow[None]:
        host = yield from self.stage.core.tool_host(self.stage.request_config)
        yield from stream_tool_items(host, call, only_streaming=False)


def announced(stage: Stage) -> Dicts:
    """Return the schemas as the plugin gives them."""
    schemas: Dicts = stage.wrapper.get_tool_schemas(stage.state(), stage.context())
    return schemas


def call_of(tool: InspectedSchema, arguments: Any) -> JsonObject:
    """Return a call as a model would send it."""
    if tool.payload_kind == "text":
        return {"id": "call_1", "type": "custom", "custom": {"name": tool.name, "input": arguments}}
    return json_call(tool, json.dumps(arguments))


def json_call(tool: InspectedSchema, arguments: str) -> JsonObject:
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
    if tool.parameters.get("type") != "object":
        return 'its parameters must be of type "object"'
    try:
        jsonschema_rs.meta.validate(thaw(tool.parameters))
    except ValueError as error:
        return f"its parameters are not JSON Schema: {str(error).splitlines()[0]}"
    return None


def takes_nothing(tool: InspectedSchema) -> bool:
    """Say whether a tool may be called without arguments."""
    if tool.payload_kind == "text":
        return False
    return bool(jsonschema_rs.validator_for(thaw(tool.parameters)).is_valid({}))


def tool_schemas_are_valid(case: Case) -> Faults:
    """Every schema is JSON Schema of an object, under a name that every provider takes."""
    trust(case, *HOOKS)
    names = []
    with staged(case) as stage:
        for schema in announced(stage):
            try:
                tool = stage.interop().inspect_schema(schema)
            except AgentError as error:
                yield Fault("get_tool_schemas", f"answers a schema that nobody can read: {error}")
                continue
            problem = schema_problem(tool)
            if problem is not None:
                yield Fault("get_tool_schemas", f"tool {tool.name!r}: {problem}")
            names.append(tool.name)
    for twice in sorted({name for name in names if names.count(name) > 1}):
        yield Fault("get_tool_schemas", f"announces the tool {twice!r} twice")


def tools_answer_to_their_names(case: Case) -> Faults:
    """Every tool runs under the name that it announces, and its message can be written as JSON."""
    with toolbox(case) as box:
        names = [tool.name for tool in box.schemas]
        for name in case.tool_calls:
            if name not in names:
                yield Fault("get_tool_schemas", f"does not announce {name!r}, for which there is a call")
        for tool, arguments in box.calls:
            call = call_of(tool, arguments)
            for message in (box.run(call), run_async(partial(box.run_async, call))):
                yield from _message_faults(case, tool.name, message)
    missing = [name for name in names if name not in case.tool_calls]
    if missing:
        raise NotApplicable(f"there are no arguments for {missing}: give them in tool_calls, or None")


def bad_arguments_are_reported(case: Case) -> Faults:
    """Arguments that are not JSON, or do not fit, become a message for the model and run nothing.

    A tool for which there is a call is also run without arguments, if its schema allows that.
    """
    with toolbox(case) as box:
        tools = [tool for tool in box.schemas if tool.payload_kind == "json"]
        if not tools:
            raise NotApplicable("the plugin's tools take text, which is never wrong")
        for tool in tools:
            for arguments in _bad_arguments(case, tool):
                message = box.run(json_call(tool, arguments))
                if _error_type(message) == "exception":
                    problem = f"raises on {arguments}, which its schema allows: {message['content']}"
                    yield Fault(_run_hook(case), f"{tool.name!r} {problem}")


def previews_are_one_line(case: Case) -> Faults:
    """A preview is one line of text."""
    case.require("format_tool_call_preview")
    with toolbox(case) as box:
        previewed = [*box.calls, *((tool, {}) for tool in box.schemas if takes_nothing(tool))]
        if not previewed:
            raise NotApplicable("there are no arguments to preview: give some in tool_calls")
        for tool, arguments in previewed:
            problem = _preview_problem(box.stage, tool, arguments)
            if problem is not None:
                with_what = f"for {tool.name!r} with {shown(arguments)}"
                yield Fault("format_tool_call_preview", f"{problem} {with_what}")


def results_can_be_shown(case: Case) -> Faults:
    """What a tool's result is turned into, for the model and for people, can be read and sent."""
    case.require("format_tool_result", "to_display_format")
    with toolbox(case) as box:
        if not box.calls:
            raise NotApplicable("there is no result to show: give arguments in tool_calls")
        for tool, arguments in box.calls:
            for result in box.results(call_of(tool, arguments))[-1:]:
                yield from _shown_faults(box.stage, tool.name, result)


def _bad_arguments(case: Case, tool: InspectedSchema) -> list[str]:
    may_run = case.tool_calls.get(tool.name) is not None
    return [*_NEVER_FIT, "{}"] if may_run or not takes_nothing(tool) else [*_NEVER_FIT]


def _message_faults(case: Case, tool: str, message: JsonObject) -> Faults:
    # A tool may say that it failed; how a result is formatted is looked at by a check of its own.
    formats = case.wrapper.has("format_tool_result")
    allowed = (None, "tool_failed", "unreadable_result" if formats else "tool_failed")
    if _error_type(message) not in allowed:
        yield Fault(_run_hook(case), f"{tool!r} does not run: {message['content']}")
    metadata = {key: value for key, value in message["metadata"].items() if key != "display"}
    problem = json_problem({**message, "metadata": metadata})
    if problem is not None:
        yield Fault(_run_hook(case), f"the message of {tool!r} {problem}")


def _error_type(message: JsonObject) -> str | None:
    error: JsonObject = message["metadata"].get("error") or {}
    return error.get("type")


def _preview_problem(stage: Stage, tool: InspectedSchema, arguments: Any) -> str | None:
    call = ToolInvocation(
        tool_name=tool.name,
        payload=arguments,
        state=stage.state(),
        payload_kind=tool.payload_kind,
        tool_call=call_of(tool, arguments),
    )
    *payload, _cancellation, _context, prepared = call.arguments()
    preview, error = tried = stage.case.try_hook("format_tool_call_preview", *payload, prepared)
    if error is not None:
        return str(tried)
    if not isinstance(preview, str) or len(preview.splitlines()) != 1:
        return f"must return one line of text, returned {shown(preview)}"
    return None


def _shown_faults(stage: Stage, tool: str, result: JsonObject) -> Faults:
    state, text = stage.state(), str(result.get("result"))
    try:
        formatted = stage.wrapper.format_tool_result(result, state)
        text = stage.interop().inspect_result(formatted).text
    except AgentError as error:
        yield Fault(
            "format_tool_result", f"makes nothing of the result of {tool!r} that can be read: {error}"
        )
    else:
        problem = json_problem(formatted)
        if problem is not None:
            yield Fault("format_tool_result", f"what it returns for {tool!r} {problem}")
    if not stage.wrapper.has("to_display_format"):
        return
    display, raised = tried = stage.case.try_hook("to_display_format", text, result, state)
    if raised is not None:
        yield Fault("to_display_format", f"is given the result of {tool!r} and {tried}")
        return
    problem = json_problem(display) if isinstance(display, dict) else "is not a dict"
    if problem is not None:
        yield Fault("to_display_format", f"what it returns for {tool!r} {problem}")


def _run_hook(case: Case) -> str:
    return next(hook for hook in RUN_HOOKS if case.wrapper.has(hook))
