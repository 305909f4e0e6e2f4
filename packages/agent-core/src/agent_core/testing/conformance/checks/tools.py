"""Checks of tools."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.frozen import thaw
from agent_core.plugin.tool import RUN_HOOKS, ToolInvocation
from agent_core.testing.conformance.checks.requests import run_async
from agent_core.testing.conformance.examine import json_problem
from agent_core.testing.conformance.report import Fault, Faults, NotApplicable
from agent_core.testing.conformance.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.interop import InspectedSchema
    from agent_core.testing.conformance.case import Case

_LONGEST_NAME = 64


def tool_schemas_are_valid(case: Case) -> Faults:
    """Every schema is JSON Schema of an object, under a name that every provider takes."""
    case.trust("init", "get_tool_schemas", "register_tool_formats")
    stage, names = Stage(case), []
    for schema in stage.wrapper.get_tool_schemas(stage.state(), stage.context()):
        try:
            inspected = stage.interop().inspect_schema(schema)
        except AgentError as error:
            yield Fault("get_tool_schemas", f"answers a schema that nobody can read: {error}")
            continue
        problem = _schema_problem(inspected)
        if problem is not None:
            yield Fault("get_tool_schemas", f"tool {inspected.name!r}: {problem}")
        names.append(inspected.name)
    for twice in sorted({name for name in names if names.count(name) > 1}):
        yield Fault("get_tool_schemas", f"announces the tool {twice!r} twice")


def tools_answer_to_their_names(case: Case) -> Faults:
    """Every tool runs under the name that it announces, and its message can be written as JSON."""
    announced = {schema.name: schema for schema in _schemas(case)}
    for name in case.tool_calls:
        if name not in announced:
            yield Fault("get_tool_schemas", f"does not announce {name!r}, for which there is a call")
    core, config = case.core(), case.request_config()
    for schema, arguments in _callable(case):
        call = _call(schema, arguments)
        messages = core.execute_tool_calls([call], config)
        messages += run_async(partial(core.execute_tool_calls_async, [call], config))
        for message in messages:
            yield from _message_faults(case, schema.name, message)
    missing = [name for name in announced if name not in case.tool_calls]
    if missing:
        raise NotApplicable(f"there are no arguments for {missing}: give them in tool_calls, or None")


def bad_arguments_are_told(case: Case) -> Faults:
    """Arguments that are no JSON, or do not fit, become a message for the model and run nothing.

    A tool for which there is a call is also run without arguments, if its schema allows that.
    """
    schemas = [schema for schema in _schemas(case) if schema.payload_kind == "json"]
    if not schemas:
        raise NotApplicable("the plugin's tools take text, which is never wrong")
    core, config = case.core(), case.request_config()
    for schema in schemas:
        for arguments in _bad_arguments(case, schema):
            function = {"name": schema.name, "arguments": arguments}
            call = {"id": "call_1", "type": "function", "function": function}
            [message] = core.execute_tool_calls([call], config)
            if (message["metadata"].get("error") or {}).get("type") == "exception":
                problem = f"raises on {arguments}, which its schema allows: {message['content']}"
                yield Fault(_run_hook(case), f"{schema.name!r} {problem}")


def previews_are_one_line(case: Case) -> Faults:
    """A preview is one line of text."""
    case.require("format_tool_call_preview")
    previewed = [*_callable(case), *((s, {}) for s in _schemas(case) if _accepts(s, {}))]
    if not previewed:
        raise NotApplicable("there are no arguments to preview: give some in tool_calls")
    stage = Stage(case)
    for schema, arguments in previewed:
        problem = _preview_problem(stage, schema, arguments)
        if problem is not None:
            yield Fault("format_tool_call_preview", f"{problem} for {schema.name!r} with {arguments!r:.80}")


def results_can_be_shown(case: Case) -> Faults:
    """What a tool's result is turned into, for the model and for people, can be read and sent."""
    case.require("format_tool_result", "to_display_format")
    core, config, stage = case.core(), case.request_config(), Stage(case)
    calls = list(_callable(case))
    if not calls:
        raise NotApplicable("there is no result to show: give arguments in tool_calls")
    for schema, arguments in calls:
        try:
            items = list(core.stream_tool_call(_call(schema, arguments), config))
        except AgentError as error:
            raise NotApplicable(f"the tools have to be mended first: {error}") from error
        for result in [item for item in items if "success" in item][-1:]:
            yield from _shown_faults(stage, schema.name, result)


def _schemas(case: Case) -> list[InspectedSchema]:
    """Return the tools that the plugin announces.

    Raises:
        NotApplicable: If they cannot be read; the check of schemas tells why.
    """
    case.trust("init", "get_tool_schemas", "register_tool_formats")
    stage = Stage(case)
    interop = stage.interop()
    try:
        offered = stage.wrapper.get_tool_schemas(stage.state(), stage.context())
        schemas = [interop.inspect_schema(schema) for schema in offered]
        case.core().get_tool_schemas(case.request_config())
    except AgentError as error:
        raise NotApplicable(f"the tools have to be mended first: {error}") from error
    broken = next((schema for schema in schemas if _schema_problem(schema)), None)
    if broken is not None:
        raise NotApplicable(f"the schema of {broken.name!r} has to be mended first")
    return schemas


def _callable(case: Case) -> Iterator[tuple[InspectedSchema, Any]]:
    for schema in _schemas(case):
        if case.tool_calls.get(schema.name) is not None:
            yield schema, case.tool_calls[schema.name]


def _call(schema: InspectedSchema, arguments: Any) -> dict[str, Any]:
    if schema.payload_kind == "text":
        return {"id": "call_1", "type": "custom", "custom": {"name": schema.name, "input": arguments}}
    function = {"name": schema.name, "arguments": json.dumps(arguments)}
    return {"id": "call_1", "type": "function", "function": function}


def _schema_problem(schema: InspectedSchema) -> str | None:
    name = schema.name.replace("_", "0").replace("-", "0")
    if not name.isascii() or not name.isalnum() or len(name) > _LONGEST_NAME:
        return "its name must have 1 to 64 letters a-z, digits, '_' or '-'"
    if schema.payload_kind == "text":
        return None
    import jsonschema_rs

    if schema.parameters.get("type") != "object":
        return 'its parameters must be of type "object"'
    try:
        jsonschema_rs.meta.validate(thaw(schema.parameters))
    except ValueError as error:
        return f"its parameters are not JSON Schema: {str(error).splitlines()[0]}"
    return None


def _accepts(schema: InspectedSchema, arguments: Any) -> bool:
    import jsonschema_rs

    if schema.payload_kind == "text":
        return False
    return bool(jsonschema_rs.validator_for(thaw(schema.parameters)).is_valid(arguments))


def _bad_arguments(case: Case, schema: InspectedSchema) -> list[str]:
    bad = ['{"half": ', "[]", '"text"']
    runs = case.tool_calls.get(schema.name) is not None
    return [*bad, "{}"] if runs or not _accepts(schema, {}) else bad


def _message_faults(case: Case, tool: str, message: dict[str, Any]) -> Faults:
    # A tool may say that it failed; how a result is formatted is looked at by a check of its own.
    allowed = (
        ("tool_failed", "unreadable_result") if case.wrapper.has("format_tool_result") else ("tool_failed",)
    )
    error = message["metadata"].get("error")
    if error is not None and error.get("type") not in allowed:
        yield Fault(_run_hook(case), f"{tool!r} does not run: {message['content']}")
    # What is shown to people is looked at by a check of its own.
    metadata = {key: value for key, value in message["metadata"].items() if key != "display"}
    problem = json_problem({**message, "metadata": metadata})
    if problem is not None:
        yield Fault(_run_hook(case), f"the message of {tool!r} {problem}")


def _preview_problem(stage: Stage, schema: InspectedSchema, arguments: Any) -> str | None:
    call = ToolInvocation(
        tool_name=schema.name,
        payload=arguments,
        state=stage.state(),
        payload_kind=schema.payload_kind,
        tool_call=_call(schema, arguments),
    )
    *payload, _cancellation, _context, prepared = call.arguments()
    try:
        preview = stage.wrapper.hook("format_tool_call_preview")(*payload, prepared)
    except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
        return f"raised {type(error).__name__}: {error}"
    if not isinstance(preview, str) or len(preview.splitlines()) != 1:
        return f"must return one line of text, returned {preview!r:.80}"
    return None


def _shown_faults(stage: Stage, tool: str, result: dict[str, Any]) -> Faults:
    state, text = stage.state(), str(result.get("result"))
    try:
        formatted = stage.wrapper.format_tool_result(result, state)
        text = stage.interop().inspect_result(formatted).text
    except AgentError as error:
        yield Fault(
            "format_tool_result", f"makes nothing of the result of {tool!r} that can be read: {error}"
        )
    if not stage.wrapper.has("to_display_format"):
        return
    try:
        display = stage.wrapper.hook("to_display_format")(text, result, state)
    except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
        yield Fault("to_display_format", f"raised {type(error).__name__} on the result of {tool!r}: {error}")
        return
    problem = json_problem(display) if isinstance(display, dict) else "is no dict"
    if problem is not None:
        yield Fault("to_display_format", f"what it returns for {tool!r} {problem}")


def _run_hook(case: Case) -> str:
    return next(hook for hook in RUN_HOOKS if case.wrapper.has(hook))
