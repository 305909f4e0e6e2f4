"""The plugin: which command runs at which event, and what becomes of its exit code.

| event         | when                                         | exit code 2                               |
|---------------|----------------------------------------------|-------------------------------------------|
| `before_tool` | before a call, also before it is approved    | the call does not run; the model reads why |
| `after_edit`  | after a call that changed files              | the model reads what was printed          |
| `on_stop`     | when the agent would end, or has been ended  | the agent continues, and reads the output |

Any other code than 0 and 2 is a warning, and the run goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from agent_core.steps import Emit, run_blocking
from agent_plugin_kit.sandbox import SANDBOX_SCHEMA, Sandbox, SandboxSettings
from agent_runtime import Block, Command, Phase
from hooks_feature.command import TIMEOUT, HookCommand, Outcome, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_core.steps import Flow
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView
    from agent_runtime.specs import AgentSpec

SECTION: Final = "hooks"
EVENTS: Final = {
    "before_tool": "Commands that run before a tool call; exit code 2 keeps the call from running.",
    "after_edit": "Commands that run after an edit of files; with exit code 2 the model reads the output.",
    "on_stop": "Commands that run when the agent stops; with exit code 2 it continues with what they print.",
}
EDITS: Final = ("write_file", "edit_file", "apply_patch", "delete_file", "move_file")
"""The tools that change files."""
_REMEMBERED: Final = 256
_LONGEST_COMMAND: Final = 60
_SHOWN, _SHOWN_LINES = 200, 3
_COMMAND: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["command"],
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "A line for sh; the event is on stdin."},
        "tools": {"type": "array", "items": {"type": "string"}, "description": "Patterns of tools."},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600, "default": TIMEOUT},
        "hosts": {"type": "array", "items": {"type": "string"}, "description": "Hosts that it may reach."},
    },
}
SCHEMA: Final[dict[str, Any]] = {
    event: {"type": "array", "items": _COMMAND, "default": [], "description": about}
    for event, about in EVENTS.items()
}


class HooksFeature:
    """Runs commands of your own on events of a run. It is on only where it is listed.

    Args:
        sandbox: What confines the commands; by default the sandbox of this machine.
    """

    name = SECTION
    version = "0.1.0"
    default_enabled = False

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox or Sandbox()
        self._lock = Lock()
        # A gate is asked again about a call that waited for a person; its command has run once.
        self._judged: OrderedDict[tuple[str, str], Block | None] = OrderedDict()

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the section that the plugin claims, with its schema."""
        return [(SECTION, {"type": "object", "additionalProperties": False, "properties": SCHEMA})]

    def register(self, registrar: PluginRegistrar) -> None:
        """Place a hook for each event that has commands."""
        given = registrar.spec.section(SECTION)
        hooks = {
            event: tuple(
                HookCommand.read(event, one, EDITS if event == "after_edit" else ("*",))
                for one in given.get(event) or ()
            )
            for event in EVENTS
        }
        if hooks["before_tool"]:
            registrar.tool_gate(partial(self._before_tool, hooks["before_tool"]))
        if hooks["after_edit"]:
            registrar.phase_hook(Phase.AFTER_TOOL_EXECUTE, partial(self._after_edit, hooks["after_edit"]))
        if hooks["on_stop"]:
            registrar.end_hook(partial(self._before_end, hooks["on_stop"]))
            registrar.phase_hook(Phase.RUN_END, partial(self._at_end, hooks["on_stop"]))

    # The events

    def _before_tool(self, hooks: tuple[HookCommand, ...], view: PhaseView) -> Flow[Block | None]:
        assert view.call is not None
        key = (view.session.session_id, view.call.id)
        with self._lock:
            if key in self._judged:
                return self._judged[key]
        verdict = None
        for hook in _for_tool(hooks, view.call.name):
            outcome = yield from self._run(hook, view)
            if outcome.objects:
                verdict = Block(f"the hook `{_short(hook.command)}` refused it: {outcome.text}".rstrip(": "))
                break
            if outcome.code != 0:
                yield Emit([{"type": "warning", "message": _problem(hook, outcome), "plugin": SECTION}])
        with self._lock:
            self._judged[key] = verdict
            while len(self._judged) > _REMEMBERED:
                self._judged.popitem(last=False)
        return verdict

    def _after_edit(self, hooks: tuple[HookCommand, ...], view: PhaseView) -> Flow[Command]:
        assert view.call is not None
        command = Command()
        for hook in _for_tool(hooks, view.call.name):
            outcome = yield from self._run(hook, view)
            if outcome.objects:
                said = f"After {view.call.name}, the hook `{hook.command}` said:\n{outcome.text}"
                command = command.schedule("add_message", {"role": "user", "content": said, "keep": True})
                command = command.schedule("warn", _objection(hook, outcome))
            else:
                command = _warned(command, hook, outcome)
        return command

    def _before_end(self, hooks: tuple[HookCommand, ...], view: PhaseView) -> Flow[Command]:
        command = Command()
        for hook in hooks:
            outcome = yield from self._run(hook, view)
            if outcome.objects:
                command = command.schedule("warn", _objection(hook, outcome))
                return command.go_on(f"Before you stop, the hook `{hook.command}` said:\n{outcome.text}")
            command = _warned(command, hook, outcome)
        return command

    def _at_end(self, hooks: tuple[HookCommand, ...], view: PhaseView) -> Flow[Command]:
        command = Command()
        if view.reason is None or view.reason.code in ("natural_end", "suspended"):
            return command  # the commands have run already, or the run is not over
        for hook in hooks:
            command = _warned(command, hook, (yield from self._run(hook, view)))
        return command

    def _run(self, hook: HookCommand, view: PhaseView) -> Flow[Outcome]:
        work = partial(
            run_command,
            hook,
            _event(hook, view),
            sandbox=self._sandbox,
            settings=SandboxSettings.read(_sandbox_section(view.spec)),
            roots=_roots(view),
            owner=view.session.session_id,
        )
        return run_blocking(work)


def _for_tool(hooks: tuple[HookCommand, ...], tool: str) -> Iterator[HookCommand]:
    return (one for one in hooks if any(fnmatchcase(tool, pattern) for pattern in one.tools))


def _warned(command: Command, hook: HookCommand, outcome: Outcome) -> Command:
    return command if outcome.code == 0 else command.schedule("warn", _problem(hook, outcome))


def _problem(hook: HookCommand, outcome: Outcome) -> str:
    """Return what a person reads of a command that failed."""
    how = outcome.text if outcome.code is None else f"exit code {outcome.code}.{_last_lines(outcome.text)}"
    return f"hook {hook.event}, `{_short(hook.command)}`: {how}"


def _objection(hook: HookCommand, outcome: Outcome) -> str:
    """Return what a person reads of a command whose output the model reads."""
    said = _last_lines(outcome.text) or " nothing"
    effect = "the agent continues, and reads" if hook.event == "on_stop" else "the agent reads"
    return f"hook {hook.event}, `{_short(hook.command)}`: {effect}:{said}"


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _LONGEST_COMMAND else f"{line[: _LONGEST_COMMAND - 1]}…"


def _last_lines(text: str) -> str:
    """Return the end of what a command printed: a person sees why, and not a page of it."""
    lines = text.splitlines()
    shown = lines[-_SHOWN_LINES:]
    if len(lines) > len(shown):
        shown = ["…", *shown]
    shown = [line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…" for line in shown]
    return "\n  ".join(["", *shown]) if len(shown) > 1 else "".join(f" {line}" for line in shown)


def _event(hook: HookCommand, view: PhaseView) -> dict[str, Any]:
    """Return what a command reads on its standard input."""
    about: dict[str, Any] = {
        "event": hook.event,
        "session_id": view.session.session_id,
        "agent": view.run.agent_id,
        "folder": str(_roots(view)[0]),
        "round": view.run.round,
    }
    if view.call is not None:
        about |= {"tool": view.call.name, "arguments": view.call.arguments}
    if view.result is not None:
        about["result"] = view.result.get("content")
    if hook.event == "on_stop":
        about["reason"] = "natural_end" if view.reason is None else view.reason.code
        said = [one.content for one in view.session.messages if one.role == "assistant" and one.content]
        about["answer"] = said[-1] if said else ""
    return about


def _roots(view: PhaseView) -> tuple[Path, ...]:
    given = view.session.metadata.get("workspace_roots")
    roots = (
        [Path(one) for one in given if isinstance(one, str) and one]
        if isinstance(given, (list, tuple))
        else []
    )
    return tuple(roots) or (Path.cwd(),)


def _sandbox_section(spec: AgentSpec) -> Mapping[str, Any]:
    """Return what an agent says about the sandbox, as a request has it."""
    names = (*(name for name in spec.sections if name != "config"), "config")
    pairs = ((key, value) for name in names for key, value in spec.section(name).items())
    return {key: value for key, value in pairs if key in SANDBOX_SCHEMA}
