"""The tool gate that asks the rules, and what it tells the model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw
from agent_core.steps import run_blocking
from agent_runtime.errors import InvalidPluginConfig, SpecError
from agent_runtime.gates import Block, Suspend
from agent_runtime.permissions.questions import OWNER, ask_about
from agent_runtime.permissions.rules import EFFECTS, FLOOR, Permissions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_core import Session
    from agent_core.steps import Flow
    from agent_runtime.permissions.rules import Rule
    from agent_runtime.phases import CallView, PhaseView
    from agent_runtime.registrar import PluginRegistrar
    from agent_runtime.specs import AgentSpec

SECTION = "permissions"

_PATTERNS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "default": {
            "enum": list(EFFECTS),
            "default": "ask",
            "description": "What becomes of a call that no rule is about.",
        },
        "allow": {**_PATTERNS, "description": "Calls that run."},
        "ask": {**_PATTERNS, "description": "Calls that wait for somebody's decision."},
        "deny": {**_PATTERNS, "description": "Calls that never run, whatever else is said about them."},
        FLOOR: {**_PATTERNS, "description": "Calls that wait each time, whatever allows them."},
        "on_ask": {
            "enum": ["suspend", "deny"],
            "default": "suspend",
            "description": "What asking means: the run waits, or, where nobody watches, the call is refused.",
        },
    },
}

_WRITE_OUT = (
    "If you mean something that the rule does not forbid, make a call in which every word is written out; "
    "else go on without it."
)

Answer = Block | Suspend | None


class PermissionsPlugin:
    """Lets a call run, wait or fail as the agent's `permissions` section says."""

    name = OWNER
    version = "1"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, thaw(_SCHEMA))]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place the gate; called once per resolve.

        Raises:
            InvalidPluginConfig: If a pattern cannot be read.
        """
        section = registrar.spec.section(SECTION)
        try:
            permissions = permissions_of(registrar.spec)
        except SpecError as error:
            raise InvalidPluginConfig(registrar.spec.id, self.name, SECTION, str(error)) from error
        registrar.tool_gate(permission_gate(permissions, waits=section.get("on_ask", "suspend") == "suspend"))


def permissions_of(spec: AgentSpec) -> Permissions:
    """Return what an agent's declaration permits.

    Raises:
        SpecError: If a pattern cannot be read.
    """
    return Permissions.from_section(spec.section(SECTION))


def permission_gate(
    permissions: Permissions, *, waits: bool = True
) -> Callable[[PhaseView], Answer | Flow[Answer]]:
    """Return a tool gate for these permissions; one that never *waits* refuses what it would ask.

    What `RunRequest.granted` returns is asked for anew at every call, and counts beside the permissions.
    """

    def gate(view: PhaseView) -> Answer | Flow[Answer]:
        if view.call is None:
            return None
        if view.run.granted is None:
            return _judge(permissions, view.call, waits=waits)
        return with_granted(view.run.granted, view.session, view.call)

    def with_granted(
        granted: Callable[[Session], Sequence[Rule]], session: Session, call: CallView
    ) -> Flow[Answer]:
        rules = yield from run_blocking(partial(granted, session))
        return _judge(permissions.with_granted(rules), call, waits=waits)

    return gate


def _judge(permissions: Permissions, call: CallView, *, waits: bool) -> Answer:
    if not call.name:
        return Block("it names no tool, so no rule can be applied; name one of the tools that there are")
    ruling = permissions.decide(call)
    if ruling.effect == "allow":
        return None
    if ruling.effect == "deny":
        return _refusal(ruling.reason) if ruling.certain else Block(f"{ruling.reason}. {_WRITE_OUT}")
    if call.decision is not None:
        return None if call.decision.approved else _refusal(call.decision.reason or "it was refused")
    if not waits:
        return _refusal(f"{ruling.reason}, and nobody is there to be asked")
    return ask_about(permissions, call, ruling)


def _refusal(reason: str) -> Block:
    return Block(
        f"{reason}. Do not make this call again, in other words either; go on without it, "
        "or say what you need it for."
    )
