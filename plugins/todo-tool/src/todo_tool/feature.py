"""The plugin: it keeps the plan in the session, gives the agent its tools, and shows the plan to a person.

The plan is a state key of the session: it stands in the session's metadata, so it is stored and forked with
it, and it is there after a restart. An agent without this plugin leaves it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_core.frozen import thaw
from agent_runtime import Command, Phase, StateKey
from agent_runtime.suspension import STATE as KEPT_STATE
from todo_tool.plan import EMPTY, Plan, PlanError
from todo_tool.tools import KEY, WRITE, PlanTools, kept_plan

if TYPE_CHECKING:
    from agent_core import Session
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView

Dicts = list[dict[str, Any]]

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
