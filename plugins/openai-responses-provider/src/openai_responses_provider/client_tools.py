"""Tools that the API knows by type and that run on our side: shells, patches, a computer, MCP approvals.

The model calls them with items of their own types. Here each becomes a call of one of our tools, by the
tool interop: `shell_call` of the tool ``shell`` with the action as its arguments, and so on. Where there is
no such tool, whoever runs the calls says so by name, as for any other. What a tool answers becomes an output
of the type that its call wants, on the way out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_core.interop import ToolCall, ToolCallFormat
from agent_core.interop.wire import decode, has_type
from openai_responses_provider.items import (
    METADATA,
    TOOL_OUTPUTS,
    Item,
    Items,
    about,
    answered_id,
    call_id_of,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.interop import ToolInteropRegistry
    from agent_provider_kit import JsonObject

IS_ERROR = "is_error"
"""Where an output's `_metadata` says that the tool failed."""
_APPROVALS = frozenset({"true", "yes", "approve", "approved", "allow", "allowed", "ok"})


class ClientTool(NamedTuple):
    """A type of calls that run on our side.

    Attributes:
        tool: The name of the tool of ours that it reaches.
        arguments: Reads its arguments out of an item.
        offered_as: The types under which `builtin_tools` offers it.
    """

    tool: str
    arguments: Callable[[Mapping[str, Any]], JsonObject]
    offered_as: tuple[str, ...]


def _field(name: str, item: Mapping[str, Any]) -> JsonObject:
    found = item.get(name)
    return dict(found) if isinstance(found, dict) else {}


def _computer(item: Mapping[str, Any]) -> JsonObject:
    names = ("action", "actions", "pending_safety_checks")
    return {name: item[name] for name in names if item.get(name)}


def _approval(item: Mapping[str, Any]) -> JsonObject:
    arguments, problem = decode(item.get("arguments"))
    asked = {"server_label": item.get("server_label"), "name": item.get("name")}
    return {**asked, "arguments": item.get("arguments") if problem else arguments}


CLIENT_TOOLS: dict[str, ClientTool] = {
    "shell_call": ClientTool("shell", partial(_field, "action"), ("shell",)),
    "local_shell_call": ClientTool("local_shell", partial(_field, "action"), ("local_shell",)),
    "apply_patch_call": ClientTool("apply_patch", partial(_field, "operation"), ("apply_patch",)),
    "computer_call": ClientTool("computer", _computer, ("computer", "computer_use_preview")),
    "mcp_approval_request": ClientTool("mcp_approval", _approval, ("mcp",)),
}


def register(registry: ToolInteropRegistry) -> None:
    """Teach a registry to read these calls."""
    for kind, client_tool in CLIENT_TOOLS.items():
        registry.register_call_format(
            ToolCallFormat(
                id=f"openai.responses.{kind}",
                matches=partial(has_type, name=kind),
                inspect=partial(_inspect, f"openai.responses.{kind}", client_tool),
            )
        )


def _inspect(format_id: str, client_tool: ClientTool, item: Any) -> ToolCall:
    return ToolCall(
        call_id=call_id_of(item),
        tool_name=client_tool.tool,
        payload=client_tool.arguments(item),
        raw=item,
        format_id=format_id,
    )


def waiting_calls(items: Items) -> Items:
    """Return the calls of a turn that wait for our side; those of a hosted shell are answered in the turn."""
    answered = {answered_id(item) for item in items}
    return [
        item
        for item in items
        if kind_of(item) in TOOL_OUTPUTS
        or (kind_of(item) in CLIENT_TOOLS and call_id_of(item) and call_id_of(item) not in answered)
    ]


def without_doubles(tools: list[Any], builtin: list[Any]) -> list[Any]:
    """Return our tools without those that the API offers under a type of its own."""
    types = {tool.get("type") for tool in builtin if not _is_hosted(tool)}
    names = {each.tool for each in CLIENT_TOOLS.values() if not types.isdisjoint(each.offered_as)}
    return [tool for tool in tools if tool.get("name") not in names]


def _is_hosted(tool: Mapping[str, Any]) -> bool:
    environment = tool.get("environment")
    return isinstance(environment, dict) and environment.get("type") not in (None, "local")


def typed_output(call: Item, output: Item) -> Item:
    """Return what one of our tools answered, in the form that the call wants."""
    text, picture = _content(output.get("output"))
    failed = bool(about(output).get(IS_ERROR))
    own = {"call_id": output["call_id"], **({METADATA: output[METADATA]} if METADATA in output else {})}
    match kind_of(call):
        case "shell_call":
            limit = (call.get("action") or {}).get("max_output_length")
            kept = {"max_output_length": limit} if limit is not None else {}
            return {"type": "shell_call_output", **own, **kept, "output": _shell_output(text, failed=failed)}
        case "local_shell_call":
            return {"type": "local_shell_call_output", **own, "output": text}
        case "apply_patch_call":
            status = "failed" if failed else "completed"
            return {"type": "apply_patch_call_output", **own, "status": status, "output": text}
        case "computer_call" if picture is not None:
            shot = {"type": "computer_screenshot", "image_url": picture}
            # Whoever let the call run has seen the checks: they are among its arguments.
            checks = call.get("pending_safety_checks")
            acknowledged = {"acknowledged_safety_checks": checks} if checks else {}
            return {"type": "computer_call_output", **own, "output": shot, **acknowledged}
        case "computer_call":
            words = f"The computer did not do that, and there is no screenshot: {text}"
            return {"type": "message", "role": "developer", "content": words}
    return _approval_response(call, text, failed=failed)


def _approval_response(call: Item, text: str, *, failed: bool) -> Item:
    said = _object(text)
    approve = said.get("approve") is True or text.strip().strip(".!").lower() in _APPROVALS
    reason = said.get("reason") or ("" if approve else text)
    response = {"type": "mcp_approval_response", "approval_request_id": call_id_of(call)}
    return {**response, "approve": approve and not failed, **({"reason": reason} if reason else {})}


def _shell_output(text: str, *, failed: bool) -> list[JsonObject]:
    """Return what a shell said: a tool may give its streams and its exit code as JSON."""
    said = _object(text)
    if "stdout" not in said and "stderr" not in said:
        said = {"stderr": text, "exit_code": 1} if failed else {"stdout": text}
    outcome = said.get("outcome") or {"type": "exit", "exit_code": int(said.get("exit_code") or 0)}
    return [{"stdout": said.get("stdout") or "", "stderr": said.get("stderr") or "", "outcome": outcome}]


def _content(output: Any) -> tuple[str, str | None]:
    """Return the text of an output, and its first picture."""
    if not isinstance(output, list):
        return ("" if output is None else str(output)), None
    texts = [str(part.get("text") or "") for part in output]
    pictures = (part.get("image_url") for part in output if part.get("type") == "input_image")
    return "\n".join(filter(None, texts)), next(filter(None, pictures), None)


def _object(text: str) -> JsonObject:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
