"""The tool gate that applies the rules, what a person is asked, and what could be granted.

A question offers patterns that, once granted, let the call run without being asked again. The exact thing and
the whole tool are always worth offering. What lies between them (every `git status`, everything in a folder)
only the tool can cut well: a beginning of a text that looks harmless may not be. So a tool plugin may have a
method `permission_suggestions(tool_name, arguments)`, which returns globs for what its `permission_subjects`
returns. A plugin with `permission_takes_roots = True` gets the folders of the session as `roots` in both. One
with `permission_whole = True` says that its calls differ only in words that do not come again, such as a task
for another agent: who wants to be asked no more means the whole tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core import AgentError, Session
from agent_core.clean_text import hides
from agent_core.encoding import canonical
from agent_core.frozen import freeze, thaw
from agent_core.log import get_logger
from agent_core.steps import run_blocking
from agent_runtime.env import TaggedGate
from agent_runtime.errors import InvalidPluginConfig, SpecError
from agent_runtime.handoffs import HandoffTool
from agent_runtime.permissions.patterns import CallPattern
from agent_runtime.permissions.rules import (
    EFFECTS,
    FLOOR,
    Permissions,
    Rule,
    read_subjects,
    roots_for,
    roots_of,
)
from agent_runtime.phases import CallView
from agent_runtime.suspension import read_saved_run
from agent_runtime.verdicts import Block, Suspend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_core.steps import Flow
    from agent_runtime.env import ExecutionEnv, PluginRegistrar
    from agent_runtime.permissions.rules import Ruling, Subject
    from agent_runtime.phases import PhaseView
    from agent_runtime.specs import AgentSpec
    from agent_runtime.suspension import SavedRun, Suspension


SECTION = "permissions"
OWNER = "permissions"
"""Who asks: the id of the plugin, as it stands in a suspension."""

_PATTERNS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "default": {
            "enum": list(EFFECTS),
            "default": "ask",
            "description": "What happens to a call that no rule covers.",
        },
        "allow": {**_PATTERNS, "description": "Calls that run."},
        "ask": {**_PATTERNS, "description": "Calls that wait for somebody's decision."},
        "deny": {**_PATTERNS, "description": "Calls that never run, whatever else is said about them."},
        FLOOR: {**_PATTERNS, "description": "Calls that wait each time, whatever allows them."},
        "on_ask": {
            "enum": ["suspend", "deny"],
            "default": "suspend",
            "description": "What to do when a call needs approval: wait, or refuse it if nobody watches.",
        },
    },
}

_WRITE_OUT = (
    "If you mean something that the rule does not forbid, make a call in which every word is written out; "
    "else continue without it."
)
_PREVIEW = 300
_LONGEST = 1000
_MOST = 20
_log = get_logger("permissions")

Answer = Block | Suspend | None


class PermissionsPlugin:
    """Lets a call run, wait or fail as the agent's `permissions` section says."""

    name = OWNER
    version = "1"

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Claim the section `permissions`."""
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

    What `RunRequest.granted` returns is called again for every call, and adds to the permissions.
    """

    def gate(view: PhaseView) -> Answer | Flow[Answer]:
        if view.call is None:
            return None
        contained, roots = is_contained(view.call, view.spec), roots_of(view.session)
        call = replace(view.call, contained=contained, roots=roots)
        if view.run.granted is None:
            return _judge(permissions, call, waits=waits)
        return with_granted(view.run.granted, view.session, call)

    def with_granted(
        granted: Callable[[Session], Sequence[Rule]], session: Session, call: CallView
    ) -> Flow[Answer]:
        rules = yield from run_blocking(partial(granted, session))
        return _judge(permissions.with_granted(rules), call, waits=waits)

    return gate


def approval_gates(env: ExecutionEnv) -> Sequence[TaggedGate]:
    """Return the gates before a tool that requires approval; where no rules are declared, one asks for it."""
    if any(isinstance(plugin, PermissionsPlugin) for plugin in env.plugins):
        return env.tool_gates
    return (*env.tool_gates, TaggedGate(OWNER, permission_gate(Permissions(default="allow"))))


def is_contained(call: CallView, spec: AgentSpec) -> bool:
    """Say whether the tool keeps a call inside a sandbox, under the settings of an agent; if unsure, no."""
    contained = getattr(call.tool, "permission_contained", None)
    if not callable(contained):
        return False
    try:
        return contained(call.name, thaw(call.arguments), thaw(spec.sections)) is True
    except Exception as error:  # a plugin's code
        _log.warning("containment_unknown", tool=call.name, error=repr(error))
        return False


def _judge(permissions: Permissions, call: CallView, *, waits: bool) -> Answer:
    if not call.name:
        return Block("it names no tool, so no rule can be applied; name one of the tools that there are")
    ruling = permissions.decide(call)
    # Handing over does nothing by itself: the calls of the agent that takes over are judged on their own.
    # Nor does an output, unless a function makes it.
    without_effect = isinstance(call.tool, HandoffTool) or (call.gives_output and call.tool.without_effect)
    if ruling.effect == "allow" or (ruling.effect == "ask" and ruling.rule is None and without_effect):
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
        f"{reason}. Do not make this call again, in other words either; continue without it, "
        "or say what you need it for."
    )


class AskedCall(NamedTuple):
    """The call that a question is about.

    Attributes:
        agent_id: The agent that made it; a delegate's own calls are the delegate's.
        tool: The tool.
        arguments: Its arguments.
        suggestions: What was offered to be granted.
        roots: The folders that the session works in.
    """

    agent_id: str
    tool: str
    arguments: Any
    suggestions: tuple[str, ...]
    roots: tuple[str, ...] = ()

    def view(self, tool: object = None) -> CallView:
        """Return the call as rules look at it, with the tool plugin if there is one."""
        return CallView(
            id="", name=self.tool, arguments=freeze(self.arguments), raw={}, tool=tool, roots=self.roots
        )


def ask_about(permissions: Permissions, call: CallView, ruling: Ruling) -> Suspend:
    """Return the question whether a call may run, with everything that a front end needs to ask it."""
    called = f"{_printable(call.name)} with {_preview(call.arguments)}"
    return Suspend(
        f"Run {called}? Reason for the question: {ruling.reason}.",
        action="approve",
        parameters={
            "tool": call.name,
            "arguments": thaw(call.arguments),
            "rule": None if ruling.rule is None else str(ruling.rule),
            "reason": ruling.reason,
            "suggestions": suggestions(permissions, call),
            "together": together(permissions, call),
            **({"whole": True} if getattr(call.tool, "permission_whole", False) is True else {}),
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
        run = _below(run, found)
        found = _find(run, suspension_id)
    asked = None if run is None or found is None else _read(run.agent_id, found)
    return None if asked is None else asked._replace(roots=roots_of(session))


def _find(run: SavedRun | None, suspension_id: object) -> Suspension | None:
    waiting = () if run is None else run.waiting
    return next((one for one in waiting if one.id == suspension_id), None)


def _below(run: SavedRun, suspension: Suspension) -> SavedRun | None:
    """Return the run of a delegate that waits; its questions have the same ids."""
    first = _find(run, suspension.question) or suspension
    data = first.data.get("session")
    if not isinstance(data, Mapping):
        return None
    try:
        return read_saved_run(Session.from_dict(thaw(freeze(data))))
    except (AgentError, KeyError, TypeError, ValueError):
        return None


def _read(agent_id: str, suspension: Suspension) -> AskedCall | None:
    asked = suspension.parameters
    # A tool that is called like the plugin can ask about itself at most.
    if asked.get("tool") != suspension.tool or "arguments" not in asked:
        return None
    return AskedCall(agent_id, suspension.tool, asked["arguments"], tuple(asked.get("suggestions", ())))


def _preview(arguments: object) -> str:
    text = arguments if isinstance(arguments, str) else canonical(arguments).decode()
    shown = _printable(text[:_PREVIEW])
    return shown if len(text) <= _PREVIEW else f"{shown}… ({len(text) - _PREVIEW} characters more)"


def _printable(text: str) -> str:
    """Show what would move a cursor or turn a line around as the code that it is."""
    return "".join(one if one.isprintable() and not hides(one) else f"\\u{ord(one):04x}" for one in text)


def suggestions(permissions: Permissions, call: CallView) -> list[str]:
    """Return patterns that, granted, would each let this very call run: the narrowest first."""
    return [pattern.text for pattern in _narrowest_first(call) if _would_run(permissions, call, [pattern])]


def together(permissions: Permissions, call: CallView) -> list[str]:
    """Return patterns that would let a call about several things run once all of them are granted.

    Each is the family of one thing, if the tool knows any, or that very thing. Empty if one is enough.
    """
    patterns = _narrowest_first(call)
    chosen: dict[str, CallPattern] = {}
    for subject in read_subjects(call).each:
        best = _best_for(subject, patterns)
        if best is None:
            return []
        chosen[best.text] = best
    for pattern in list(chosen.values()):  # some of it may be allowed already
        others = [one for one in chosen.values() if one is not pattern]
        if _would_run(permissions, call, others):
            del chosen[pattern.text]
    enough = _would_run(permissions, call, list(chosen.values()))
    return list(chosen) if enough and len(chosen) > 1 else []


def _would_run(permissions: Permissions, call: CallView, granted: Sequence[CallPattern]) -> bool:
    rules = [Rule("allow", pattern) for pattern in granted]
    return permissions.with_granted(rules).decide(call).effect == "allow"


def _best_for(subject: Subject, patterns: Sequence[CallPattern]) -> CallPattern | None:
    fitting = [one for one in patterns if one.subject is not None and subject.surely(one.subject)]
    families = [one for one in fitting if one.subject is not None and not one.subject.is_literal]
    return next(iter([*families, *fitting]), None)


def _narrowest_first(call: CallView) -> list[CallPattern]:
    patterns = {pattern.text: pattern for pattern in _patterns(call)}
    return sorted(patterns.values(), key=lambda pattern: pattern.specificity, reverse=True)


def _patterns(call: CallView) -> Iterator[CallPattern]:
    for subject in read_subjects(call).each[:_MOST]:
        if 0 < len(subject.text) <= _LONGEST:
            yield CallPattern.exact(call.name, subject.text)
    for glob in _suggested_globs(call)[:_MOST]:
        try:
            pattern = CallPattern.about(call.name, glob)
        except SpecError as error:
            _log.warning("suggestion_ignored", tool=call.name, error=str(error))
            continue
        if pattern.subject is not None and pattern.subject.literal_length:  # else it is the whole tool
            yield pattern
    yield CallPattern.exact(call.name)


def _suggested_globs(call: CallView) -> list[str]:
    """Return the globs that the tool has for the call; none if it has no such method, or that fails."""
    suggest = getattr(call.tool, "permission_suggestions", None)
    if not callable(suggest):
        return []
    try:
        globs = suggest(call.name, thaw(call.arguments), **roots_for(call))
    except Exception as error:  # a plugin's code
        _log.warning("suggestions_failed", tool=call.name, error=repr(error))
        return []
    if not isinstance(globs, (list, tuple)):
        _log.warning("suggestions_failed", tool=call.name, error=f"a {type(globs).__name__}, not a list")
        return []
    return [glob for glob in globs if isinstance(glob, str) and 0 < len(glob) <= _LONGEST]
