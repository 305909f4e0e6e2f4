"""The plugin: it keeps the plan in the session, gives the agent its tools, and shows the plan to a person.

The plan is a state key of the session: it stands in the session's metadata, so it is stored and forked with
it, and it is there after a restart. An agent without this plugin leaves it alone.

A tool cannot store anything in a session. `write_todos` checks the plan and answers; the hook of the feature
then asks the runtime to keep what was written, and both are stored in one go.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_core.frozen import thaw
from agent_runtime import Block, Command, Phase, StateKey
from agent_runtime.suspension import STATE as KEPT_STATE
from todo_tool.plan import EMPTY, LONGEST_TEXT, MOST_ITEMS, STATES, Plan, PlanError

if TYPE_CHECKING:
    from agent_core import Session
    from agent_runtime.env import PluginRegistrar, Prompt
    from agent_runtime.phases import PhaseView

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
        """Return what is done with the plan; how it looks then is the first line of the result."""
        if tool_name == READ:
            return "Read the plan"
        try:
            plan = Plan.read(arguments.get("items"))
        except PlanError as error:
            return f"Write a plan that cannot be kept: {error}"
        return "Write the plan" if plan.items else "Clear the plan"

    def format_tool_call_display(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the plan that will be written."""
        if tool_name == READ:
            return None
        return {"type": "text", "title": "Plan", "content": Plan.stored(arguments.get("items")).checklist()}

    def format_tool_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the model reads, without what is there for people."""
        return {key: result[key] for key in ("success", "result", "error") if key in result}

    def to_display_format(self, text: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return how far the plan has come, and the plan as a checklist."""
        return {"type": "text", "title": "Plan", "content": result.get("checklist", text)}


def kept_plan(metadata: Any) -> Plan:
    """Return the plan that stands in a session's metadata."""
    state = metadata.get(KEPT_STATE) if isinstance(metadata, Mapping) else None
    return Plan.stored(state.get(KEY, ())) if isinstance(state, Mapping) else Plan()


def _answer(plan: Plan, text: str) -> dict[str, Any]:
    shown = f"{plan.summary()}\n{plan.checklist()}" if plan.items else plan.checklist()
    return {"success": True, "result": text, "checklist": shown}


Dicts = list[dict[str, Any]]

PLAN_MODE: Final = "plan_mode"
"""The mark in a session's metadata that its agent may only look and plan."""
PLAN_TOOLS: Final = "plan_mode_tools"
READING: Final = (
    "read_file", "list_files", "find_files", "search_files", "read_result", "read_todos", "write_todos",
    "load_skill", "read_skill_file", "recall", "shell_jobs", "shell_output", "fetch_url", "web_search",
)  # fmt: skip
"""The tools that run in plan mode: they change nothing."""
SCHEMA: Final[dict[str, Any]] = {
    PLAN_TOOLS: {
        "type": "array",
        "items": {"type": "string"},
        "default": list(READING),
        "description": "Patterns of the tools that run in plan mode, in which nothing is changed.",
    }
}
_IN_PLAN_MODE: Final = (
    "You are in plan mode. Look at what you need, and change nothing: only tools that read will run. Then "
    "write your plan with write_todos, as short steps that can be checked, explain it in a few sentences, "
    "and stop. The person decides whether it is carried out."
)
_REFUSAL: Final = (
    "this session is in plan mode, in which nothing is changed: write your plan with write_todos and stop, "
    "so that the person can approve it"
)
SHOW: Final = "show"
CLEAR: Final = "clear"
PLAN: StateKey[list[dict[str, str]]] = StateKey(KEY, [], scope="session")

_ACTIONS: Final[Dicts] = [
    {
        "id": SHOW,
        "label": "Show plan",
        "description": "Show what the agent has planned and how far it has come.",
        "inputs": {},
        "idempotent": True,
    },
    {
        "id": CLEAR,
        "label": "Clear plan",
        "description": "Forget the plan.",
        "inputs": {},
        "idempotent": True,
    },
]


class TodoTool:
    """Lets an agent keep a plan. It is on only where it is listed."""

    name = PlanTools.name
    version = PlanTools.version
    default_enabled = False

    def __init__(self) -> None:
        self._tools = PlanTools()

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the tools, the key, and the hook that keeps what was written."""
        registrar.state_key(PLAN)
        registrar.tool("plan", self._tools)
        registrar.phase_hook(Phase.AFTER_TOOL_EXECUTE, self._keep)
        allowed = tuple(registrar.spec.section(self.name).get(PLAN_TOOLS) or READING)
        registrar.tool_gate(partial(_only_looking, allowed))
        registrar.request_transform(_say_mode)

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [("todo_tool", {"type": "object", "additionalProperties": False, "properties": SCHEMA})]

    def get_ui_elements(self, config: dict[str, Any]) -> Dicts:
        """Return a button for each action."""
        return [
            {"ui_type": "session_action", "label": action["label"], "action_id": action["id"]}
            for action in _ACTIONS
        ]

    def get_actions(self) -> Dicts:
        """Offer to show the plan, and to clear it."""
        return _ACTIONS

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
    ) -> dict[str, Any]:
        """Show the plan of the session, or take it out of its metadata."""
        if action_id == SHOW:
            return _shown(kept_plan(session.metadata))
        if action_id == CLEAR:
            return _cleared(session)
        problem = f"there is no action {action_id!r}: there are {SHOW} and {CLEAR}"
        return {"status": "error", "error": {"type": "unknown_action", "message": problem}}

    def _keep(self, view: PhaseView) -> Command | None:
        """Keep the plan of a call that its own tool has found to be good."""
        call, result = view.call, view.result
        assert call is not None
        assert result is not None
        if call.name != WRITE or call.tool is not self._tools or "error" in result["metadata"]:
            return None
        try:
            plan = Plan.read(call.arguments["items"])
        except PlanError:  # somebody else answered in place of the tool
            return None
        return Command().update(PLAN, plan.to_list())


def _only_looking(allowed: tuple[str, ...], view: PhaseView) -> Block | None:
    """Keep calls that may change something from running while the session is in plan mode."""
    assert view.call is not None
    if view.session.metadata.get(PLAN_MODE) is not True:
        return None
    if any(fnmatchcase(view.call.name, pattern) for pattern in allowed):
        return None
    return Block(_REFUSAL)


def _say_mode(prompt: Prompt, view: PhaseView) -> Prompt:
    return prompt.with_system(_IN_PLAN_MODE) if view.session.metadata.get(PLAN_MODE) is True else prompt


def _shown(plan: Plan) -> dict[str, Any]:
    display: dict[str, Any] = {
        "format": "markdown",
        "title": "Plan",
        "body": f"{plan.markdown()}\n\n{plan.summary()}" if plan.items else EMPTY,
        "variant": "info",
        "presentation": "inline",
        "dismissible": True,
        "display_id": "todo-plan",
    }
    if plan.items:
        clear = {"plugin": TodoTool.name, "action_id": CLEAR, "label": "Clear plan"}
        display["actions"] = [{"kind": "run_action", "id": CLEAR, **clear}]
    return {"status": "ok", "items": plan.to_list(), "display": display}


def _cleared(session: Session) -> dict[str, Any]:
    state = session.metadata.get(KEPT_STATE)
    if not isinstance(state, dict) or KEY not in state:
        return {"status": "noop", "message": EMPTY}
    kept = {name: thaw(value) for name, value in state.items() if name != KEY}
    return {"session_metadata": {KEPT_STATE: kept}, "status": "ok", "message": "The plan is cleared."}
