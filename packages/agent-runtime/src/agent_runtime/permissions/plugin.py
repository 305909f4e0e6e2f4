"""The tool gate that asks the rules, and what it tells the model and the person who decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical
from agent_core.frozen import thaw
from agent_runtime.errors import InvalidPluginConfig, SpecError
from agent_runtime.gates import Block, Suspend
from agent_runtime.permissions.call_patterns import CallPattern
from agent_runtime.permissions.rules import EFFECTS, Permissions, Ruling
from agent_runtime.permissions.subjects import read_subjects

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_runtime.phases import CallView, PhaseView
    from agent_runtime.registrar import PluginRegistrar

SECTION = "permissions"
_PREVIEW = 300
_LONGEST_SUGGESTION = 1000

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
        "on_ask": {
            "enum": ["suspend", "deny"],
            "default": "suspend",
            "description": "What asking means: the run waits, or, where nobody watches, the call is refused.",
        },
    },
}


class PermissionsPlugin:
    """Lets a call run, wait or fail as the agent's `permissions` section says."""

    name = "permissions"
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
            permissions = Permissions.from_section(section)
        except SpecError as error:
            raise InvalidPluginConfig(registrar.spec.id, self.name, SECTION, str(error)) from error
        registrar.tool_gate(permission_gate(permissions, waits=section.get("on_ask", "suspend") == "suspend"))


def permission_gate(
    permissions: Permissions, *, waits: bool = True
) -> Callable[[PhaseView], Block | Suspend | None]:
    """Return a tool gate for these permissions; one that never *waits* refuses what it would ask."""

    def gate(view: PhaseView) -> Block | Suspend | None:
        return None if view.call is None else _judge(permissions, view.call, waits=waits)

    return gate


def _judge(permissions: Permissions, call: CallView, *, waits: bool) -> Block | Suspend | None:
    if not call.name:
        return Block("it names no tool, so no rule can be applied; name one of the tools that there are")
    ruling = permissions.decide(call)
    if ruling.effect == "allow":
        return None
    if ruling.effect == "deny":
        return _refusal(ruling.reason)
    if call.decision is not None:
        return None if call.decision.approved else _refusal(call.decision.reason or "it was refused")
    if not waits:
        return _refusal(f"{ruling.reason}, and nobody is there to be asked")
    return _question(permissions, call, ruling)


def _refusal(reason: str) -> Block:
    return Block(
        f"{reason}. Do not make this call again, in other words either; go on without it, "
        "or say what you need it for."
    )


def _question(permissions: Permissions, call: CallView, ruling: Ruling) -> Suspend:
    called = f"{_printable(call.name)} with {_preview(call.arguments)}"
    return Suspend(
        f"Run {called}? You are asked because {ruling.reason}.",
        action="approve",
        parameters={
            "tool": call.name,
            "arguments": thaw(call.arguments),
            "rule": None if ruling.rule is None else str(ruling.rule),
            "suggestions": _suggestions(permissions, call),
        },
        mode="replay",
    )


def _suggestions(permissions: Permissions, call: CallView) -> list[str]:
    """Return patterns that would each let this very call run, the narrowest first."""
    subjects = [text for text in read_subjects(call).each if 0 < len(text) <= _LONGEST_SUGGESTION]
    patterns = [CallPattern.exact(call.name, subject) for subject in dict.fromkeys(subjects)]
    patterns.append(CallPattern.exact(call.name))
    return [
        pattern.text
        for pattern in patterns
        if permissions.with_rule("allow", pattern).decide(call).effect == "allow"
    ]


def _preview(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else canonical(arguments).decode()
    shown = _printable(text[:_PREVIEW])
    return shown if len(text) <= _PREVIEW else f"{shown}… ({len(text) - _PREVIEW} characters more)"


def _printable(text: str) -> str:
    """Show what would move a cursor or turn a line around as the code that it is."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
