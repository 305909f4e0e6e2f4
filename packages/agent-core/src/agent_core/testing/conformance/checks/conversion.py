"""Checks of the way from messages to native messages and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.errors import AgentError
from agent_core.frozen import freeze, thaw
from agent_core.interop import ToolInteropRegistry
from agent_core.interop.parts import read_part
from agent_core.testing.conformance.difference import difference
from agent_core.testing.conformance.report import Fault, Faults, NotApplicable
from agent_core.testing.conformance.samples import PARTS, conversation
from agent_core.testing.conformance.stage import staged

if TYPE_CHECKING:
    from agent_core.testing.conformance.case import Case
    from agent_core.testing.conformance.stage import Stage

Dicts = list[dict[str, Any]]


def a_round_trip_keeps_messages(case: Case) -> Faults:
    """To native and back, every role keeps its content, its tool calls and the call that it answers."""
    case.trust("init", "to_native_messages", "from_native_messages")
    with staged(case) as stage:
        messages = conversation()
        came_back = _round_trip(stage, messages)
        if len(came_back) != len(messages):
            problem = f"makes {len(came_back)} messages of {len(messages)} that went to native"
            yield Fault("from_native_messages", problem)
            return
        for sent, got in zip(messages, came_back, strict=True):
            told = difference(_essence(stage, sent), _essence(stage, got), sent["role"])
            if told is not None:
                yield Fault("from_native_messages", f"does not bring back what went to native: {told}")


def a_round_trip_keeps_parts(case: Case) -> Faults:
    """A message with an image keeps it, if the provider takes such messages at all."""
    case.trust("init", "to_native_messages", "from_native_messages")
    with staged(case) as stage:
        try:
            came_back = _round_trip(stage, [PARTS])
        except AgentError as error:
            raise NotApplicable(f"the plugin does not take messages of several parts: {error}") from error
    parts = [message["multipartContent"] for message in came_back if message.get("multipartContent")]
    if not parts:
        raise NotApplicable("the plugin does not bring back parts of messages")
    sent, got = ([read_part(part) for part in each] for each in (PARTS["multipartContent"], parts[0]))
    told = difference(sent, got, "multipartContent")  # by what they mean: each provider has a form of its own
    if told is not None:
        yield Fault("from_native_messages", f"does not bring back what went to native: {told}")


def one_message_converts_as_in_a_batch(case: Case) -> Faults:
    """Messages converted one by one come to the same as all at once: sessions grow one by one."""
    case.require("to_native_messages")
    case.trust("init", "to_native_messages")
    with staged(case) as stage:
        batch = _to_native(stage, conversation())
        alone = [item for message in conversation() for item in _to_native(stage, [message])]
    told = difference(batch, alone, "native_messages")
    if told is not None:
        yield Fault(
            "to_native_messages", f"converts messages one by one differently than all at once: {told}"
        )


def _round_trip(stage: Stage, messages: Dicts) -> Dicts:
    native = freeze(stage.native(messages))
    came_back: Dicts = thaw(stage.provider.from_native(native, stage.state(), stage.context()))
    return came_back


def _to_native(stage: Stage, messages: Dicts) -> Dicts:
    native = stage.native(messages)
    if stage.case.kind != "provider":
        arguments = (freeze(messages), freeze(native), stage.state(), stage.context())
        native = thaw(stage.wrapper.to_native(*arguments))
    return native


def _essence(stage: Stage, message: dict[str, Any]) -> dict[str, Any]:
    """Return what of a message must survive: calls are compared by what they mean."""
    metadata = message.get("metadata") or {}
    interop = stage.interop() if stage.case.kind == "provider" else ToolInteropRegistry.default()
    calls = [interop.inspect_call(call) for call in metadata.get("tool_calls") or ()]
    return {
        "role": message.get("role"),
        "content": message.get("content"),
        "tool_calls": [[call.call_id, call.tool_name, call.payload] for call in calls],
        "tool_call_id": metadata.get("tool_call_id"),
    }
