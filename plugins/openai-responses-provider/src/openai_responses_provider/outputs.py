"""Outputs for calls that never got one: they tell the truth, in the form that each kind of call wants."""

from __future__ import annotations

from typing import Any

from openai_responses_provider.kinds import METADATA, TOOL_OUTPUTS, Item, kind_of

INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_MADE_UP: dict[str, dict[str, Any]] = {
    "local_shell_call": {"type": "local_shell_call_output", "output": INTERRUPTED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": INTERRUPTED},
    "tool_search_call": {"type": "tool_search_output", "execution": "client", "tools": []},
    **{call: {"type": output, "output": INTERRUPTED} for call, output in TOOL_OUTPUTS.items()},
}


def can_be_answered(call: Item) -> bool:
    """Whether an output can be made up for a call; nobody can make up a screenshot."""
    return kind_of(call) in _MADE_UP


def made_up_output(call: Item) -> Item:
    """Return an output which says that there is none."""
    told = {"synthesized": True, "interrupted": True}
    return {"call_id": call["call_id"], **_MADE_UP[kind_of(call)], METADATA: told}
