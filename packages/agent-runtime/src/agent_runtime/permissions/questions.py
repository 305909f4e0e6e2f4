"""What a person is asked about a call, and which call an open question is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core import AgentError, Session
from agent_core.encoding import canonical
from agent_core.frozen import freeze, thaw
from agent_runtime.gates import Suspend
from agent_runtime.permissions.suggestions import suggestions, together
from agent_runtime.phases import CallView
from agent_runtime.suspension import read_saved_run

if TYPE_CHECKING:
    from agent_runtime.permissions.rules import Permissions, Ruling
    from agent_runtime.suspension import SavedRun, Suspension

OWNER = "permissions"
"""Who asks: the id of the plugin, as it stands in a suspension."""

_PREVIEW = 300


class AskedCall(NamedTuple):
    """The call that a question is about.

    Attributes:
        agent_id: The agent that made it; a delegate's own calls are the delegate's.
        tool: The tool.
        arguments: Its arguments.
        suggestions: What was offered to be granted.
    """

    agent_id: str
    tool: str
    arguments: Any
    suggestions: tuple[str, ...]

    def view(self, tool: Any = None) -> CallView:
        """Return the call as rules look at it, with the tool plugin if there is one."""
        return CallView(id="", name=self.tool, arguments=freeze(self.arguments), raw={}, tool=tool)


def ask_about(permissions: Permissions, call: CallView, ruling: Ruling) -> Suspend:
    """Return the question whether a call may run, with everything that a front end needs to ask it."""
    called = f"{_printable(call.name)} with {_preview(call.arguments)}"
    return Suspend(
        f"Run {called}? You are asked because {ruling.reason}.",
        action="approve",
        parameters={
            "tool": call.name,
            "arguments": thaw(call.arguments),
            "rule": None if ruling.rule is None else str(ruling.rule),
            "reason": ruling.reason,
            "suggestions": suggestions(permissions, call),
            "together": together(permissions, call),
        },
        mode="replay",
    )


def asked_call(session: Session, suspension_id: str) -> AskedCall | None:
    """Return the call that the permission gate asks about by a question that waits in a session.

    None if nothing of that id waits, or somebody else asks it: a tool, or another plugin's gate.
    """
    run = read_saved_run(session)
    found = _find(run, suspension_id)
    while run is not None and found is not None and found.owner != OWNER:
        run, target = _below(found)
        found = _find(run, target)
    return None if run is None or found is None else _read(run.agent_id, found)


def _find(run: SavedRun | None, suspension_id: object) -> Suspension | None:
    waiting = () if run is None else run.waiting
    return next((one for one in waiting if one.id == suspension_id), None)


def _below(suspension: Suspension) -> tuple[SavedRun | None, object]:
    """Return the run of a delegate that waits, and what it waits for."""
    data = suspension.data.get("session")
    if not isinstance(data, Mapping):
        return None, None
    try:
        session = Session.from_dict(thaw(freeze(data)))
    except (AgentError, KeyError, TypeError, ValueError):
        return None, None
    return read_saved_run(session), suspension.data.get("target")


def _read(agent_id: str, suspension: Suspension) -> AskedCall | None:
    asked = suspension.parameters
    # A tool that is called like the plugin can ask about itself at most.
    if asked.get("tool") != suspension.tool or "arguments" not in asked:
        return None
    return AskedCall(agent_id, suspension.tool, asked["arguments"], tuple(asked.get("suggestions", ())))


def _preview(arguments: Any) -> str:
    text = arguments if isinstance(arguments, str) else canonical(arguments).decode()
    shown = _printable(text[:_PREVIEW])
    return shown if len(text) <= _PREVIEW else f"{shown}… ({len(text) - _PREVIEW} characters more)"


def _printable(text: str) -> str:
    """Show what would move a cursor or turn a line around as the code that it is."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
