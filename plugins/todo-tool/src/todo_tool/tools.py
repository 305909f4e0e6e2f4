"""The two tools: one that writes the plan, one that reads it.

A tool cannot store anything in a session. `write_todos` checks the plan and answers; the hook of the feature
then asks the runtime to keep what was written, and both are stored in one go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_runtime.suspension import STATE as KEPT_STATE
from todo_tool.plan import LONGEST_TEXT, MOST_ITEMS, STATES, Plan, PlanError

WRITE: Final = "write_todos"
READ: Final = "read_todos"
KEY: Final = "todo_tool.items"
"""The state key under which a session keeps its plan."""

_SCHEMAS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": WRITE,
            "description": (
                "Write your whole plan: items that you leave out are removed. Use it for work of several "
                "steps. Set an item to in_progress before you begin with it, and to done as soon as it is "
                "done. The person sees the plan."
            ),
            "parameters": {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "maxItems": MOST_ITEMS,
                        "description": "The items in order; an empty list clears the plan.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "text": {
                                    "type": "string",
                                    "minLength": 1,
                                    "maxLength": LONGEST_TEXT,
                                    "description": "The task, in one line.",
                                },
                                "state": {
                                    "type": "string",
                                    "enum": list(STATES),
                                    "default": "pending",
                                    "description": "At most one item is in_progress.",
                                },
                            },
                            "required": ["text"],
                            "additionalProperties": False,
                        },
                    }
                },
                "required": ["items"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": READ,
            "description": "Read your plan as it was last written.",
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        },
    },
]


class PlanTools:
    """Writes and reads the plan of a session."""

    name = "todo_tool"
    version = "0.1.0"
    parallel = (READ,)
    stateless = True

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return both tools."""
        return _SCHEMAS

    def execute_tool(
        self, tool_name: str, arguments: Mapping[str, Any], context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Check a plan, or return the one that is kept; the model reads what is wrong with a plan."""
        if tool_name == READ:
            plan = kept_plan((context or {}).get("session_metadata"))
            return _answer(plan, plan.report())
        try:
            plan = Plan.read(arguments.get("items"))
        except PlanError as error:
            return {"success": False, "error": f"the plan was not changed: {error}"}
        return _answer(plan, f"The plan is kept. {plan.summary()}" if plan.items else "The plan is cleared.")

    def permission_subjects(self, tool_name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Say that it is about the plan, whatever stands in it; nothing outside of the session is touched."""
        return ["plan"]

    def format_tool_call_preview(self, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Return how the plan will look, in a line."""
        if tool_name == READ:
            return "read the plan"
        try:
            plan = Plan.read(arguments.get("items"))
        except PlanError as error:
            return f"write a plan that cannot be kept: {error}"
        return f"write the plan, {plan.summary()}" if plan.items else "clear the plan"

    def format_tool_call_display(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the plan that will be written."""
        if tool_name == READ:
            return None
        return {"type": "text", "title": "Plan", "content": Plan.stored(arguments.get("items")).checklist()}

    def format_tool_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the model reads, without what is there for people."""
        return {key: result[key] for key in ("success", "result", "error") if key in result}

    def to_display_format(self, text: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan as a checklist."""
        return {"type": "text", "title": "Plan", "content": result.get("checklist", text)}


def kept_plan(metadata: Any) -> Plan:
    """Return the plan that stands in a session's metadata."""
    state = metadata.get(KEPT_STATE) if isinstance(metadata, Mapping) else None
    return Plan.stored(state.get(KEY, ())) if isinstance(state, Mapping) else Plan()


def _answer(plan: Plan, text: str) -> dict[str, Any]:
    return {"success": True, "result": text, "checklist": plan.checklist()}
