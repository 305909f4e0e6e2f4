"""Checks of tools."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.plugin.tool import RUN_HOOKS, ToolInvocation
from agent_core.testing.conformance.checks.requests import run_async
from agent_core.testing.conformance.difference import shown
from agent_core.testing.conformance.examine import json_problem
from agent_core.testing.conformance.report import Fault, Faults, NotApplicable
from agent_core.testing.conformance.stage import staged
from agent_core.testing.conformance.toolbox import (
    HOOKS,
    announced,
    call_of,
    json_call,
    schema_problem,
    takes_nothing,
    toolbox,
)

if TYPE_CHECKING:
    from agent_core.interop import InspectedSchema
    from agent_core.testing.conformance.case import Case
    from agent_core.testing.conformance.stage import Stage

_NEVER_FIT = ('{"half": ', "[]", '"text"')


def tool_schemas_are_valid(case: Case) -> Faults:
    """Every schema is JSON Schema of an object, under a name that every provider takes."""
    case.trust(*HOOKS)
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


def bad_arguments_are_told(case: Case) -> Faults:
    """Arguments that are no JSON, or do not fit, become a message for the model and run nothing.

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


def _message_faults(case: Case, tool: str, message: dict[str, Any]) -> Faults:
    # A tool may say that it failed; how a result is formatted is looked at by a check of its own.
    formats = case.wrapper.has("format_tool_result")
    allowed = (None, "tool_failed", "unreadable_result" if formats else "tool_failed")
    if _error_type(message) not in allowed:
        yield Fault(_run_hook(case), f"{tool!r} does not run: {message['content']}")
    metadata = {key: value for key, value in message["metadata"].items() if key != "display"}
    problem = json_problem({**message, "metadata": metadata})
    if problem is not None:
        yield Fault(_run_hook(case), f"the message of {tool!r} {problem}")


def _error_type(message: dict[str, Any]) -> str | None:
    error: dict[str, Any] = message["metadata"].get("error") or {}
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
    try:
        preview = stage.wrapper.hook("format_tool_call_preview")(*payload, prepared)
    except Exception as error:  # noqa: BLE001  # a stranger's hook may raise anything
        return f"raised {type(error).__name__}: {error}"
    if not isinstance(preview, str) or len(preview.splitlines()) != 1:
        return f"must return one line of text, returned {shown(preview)}"
    return None


def _shown_faults(stage: Stage, tool: str, result: dict[str, Any]) -> Faults:
    state, text = stage.state(), str(result.get("result"))
    try:
        text = stage.interop().inspect_result(stage.wrapper.format_tool_result(result, state)).text
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
