"""The plugin: four tools, and what a person is shown before one of them runs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.sandbox import NoSandbox, Sandbox, SandboxSettings, is_on_everywhere
from shell_tool import reports
from shell_tool.arguments import (
    JOBS,
    OUTPUT,
    SHELL,
    STOP,
    OutputArguments,
    ShellArguments,
    asked_hosts,
    job_id,
    tool_schemas,
)
from shell_tool.environment import Refused, command_environment, working_folder, workspace_roots
from shell_tool.jobs import Job, Jobs
from shell_tool.output import Decoder, Whole
from shell_tool.processes import Launch
from shell_tool.settings import SCHEMA, Settings
from shell_tool.syntax import quote, read_line, suggest

if TYPE_CHECKING:
    from pathlib import Path

OUTSIDE, NETWORK = "outside the sandbox: ", "network "
"""How what a call asks for begins, as rules spell it."""
State = dict[str, Any]
Context = Mapping[str, Any] | None
Items = Iterator[dict[str, Any]]


class ShellTool:
    """Runs commands in bash, at once or in the background."""

    name = "shell_tool"
    version = "0.1.0"
    default_enabled = False
    parallel = frozenset((JOBS, OUTPUT))

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = Sandbox() if sandbox is None else sandbox
        self._jobs = Jobs()
        weakref.finalize(self, self._jobs.close)

    def close(self) -> None:
        """End all commands that run; done by itself when the plugin goes, or the process exits."""
        self._jobs.close()
        self._sandbox.close()

    def get_config_schema(self) -> dict[str, Any]:
        """Return the settings."""
        return SCHEMA

    def init(self, config: Mapping[str, Any]) -> State:
        """Read the settings."""
        return {"settings": Settings.read(config)}

    def get_tool_schemas(self, state: State) -> list[dict[str, Any]]:
        """Return the four tools."""
        settings: Settings = state["settings"]
        confined = settings.sandbox.mode != "off" and not isinstance(self._sandbox.way, str)
        return tool_schemas(settings, confined=confined)

    def stream_tool(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        state: State,
        *,
        cancellation: Any = None,
        context: Context = None,
    ) -> Items:
        """Run a tool; output comes as it is written, the result last."""
        tools = {SHELL: self._shell, JOBS: self._list, OUTPUT: self._output, STOP: self._stop}
        try:
            if tool_name not in tools:
                raise Refused(f"there is no tool {tool_name!r} here: take one of {', '.join(tools)}")  # noqa: TRY301
            yield from tools[tool_name](arguments, state["settings"], context, cancellation)
        except Refused as refusal:
            yield {"success": False, "error": str(refusal)}

    def format_tool_call_preview(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Return one line about a call."""
        if tool_name != SHELL:
            return " ".join([tool_name, *(f"{key}={value}" for key, value in arguments.items())])
        start = "Start in the background: " if arguments.get("background") else "$ "
        if arguments.get("outside_sandbox") is True:
            start = f"outside the sandbox: {start}"
        return f"{start}{reports.brief(str(arguments.get('command', '')))}"

    def format_tool_call_display(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        state: State,
        *,
        context: Context = None,
    ) -> dict[str, Any] | None:
        """Return the command to the letter, and all of it; of a call that would be refused, why."""
        if tool_name != SHELL:
            return None
        shown = {"type": "code", "language": "sh", "content": str(arguments.get("command", ""))}
        settings: Settings = state["settings"]
        try:
            asked = ShellArguments.read(arguments, settings)
            working_folder(asked.cwd, workspace_roots(context, settings.roots))
        except Refused as refused:
            return {**shown, "refused": str(refused)}
        return shown

    def format_tool_result(self, result: dict[str, Any]) -> str:
        """Return the words for the model; the rest of a result is for programs."""
        return str(result.get("result", result.get("error")))

    def to_display_format(self, text: str, result: dict[str, Any]) -> dict[str, Any]:
        """Return what a person sees of a result; `asset_id` names the whole output where this is a part."""
        about = ("exit_code", "seconds", "output_bytes", "kept_bytes", "asset_id", "asset_problem", "id")
        return {"type": "text", "content": text, **{key: result[key] for key in about if key in result}}

    def permission_subjects(self, tool_name: str, arguments: dict[str, Any]) -> list[str | dict[str, Any]]:
        """Return everything that must be allowed for a call: each command of a line, each file it writes.

        A call that names a folder is about `cd` to it as well: what `make` does depends on where it does it.
        """
        if tool_name == SHELL:
            folder = arguments.get("cwd")
            moves = [] if folder in (None, "", ".") else [f"cd {quote(str(folder))}"]
            line = read_line(str(arguments["command"]))
            asked = [_told(line.name(one), one.surely) for one in line.subjects]
            return [*_exceptions(arguments), *moves, *asked]
        return [str(arguments["id"])] if tool_name in (OUTPUT, STOP) else []

    def permission_watched(self, tool_name: str, arguments: dict[str, Any]) -> list[str | dict[str, Any]]:
        """Return what else rules that ask or deny are compared with."""
        if tool_name != SHELL:
            return []
        watched = read_line(str(arguments["command"])).watched
        return [_told(one.shown, one.possibly) for one in watched]

    def permission_contained(
        self, tool_name: str, arguments: dict[str, Any], sections: Mapping[str, Any]
    ) -> bool:
        """Say whether a call has no effect beyond the sandbox, whatever the command is."""
        if tool_name != SHELL:
            return tool_name in (JOBS, OUTPUT, STOP)
        return not _exceptions(arguments) and is_on_everywhere(sections) and self._sandbox.is_complete

    def permission_suggestions(self, tool_name: str, arguments: dict[str, Any]) -> list[str]:
        """Return patterns to offer to a person who allows a call for longer than once."""
        return suggest(str(arguments["command"])) if tool_name == SHELL else []

    def _shell(self, arguments: Any, settings: Settings, context: Context, cancellation: Any) -> Items:
        asked = ShellArguments.read(arguments, settings)
        roots = workspace_roots(context, settings.roots)
        session_id = _session(context)
        launch = Launch(
            command=asked.command,
            bash=settings.bash,
            folder=working_folder(asked.cwd, roots),
            env=command_environment(os.environ, settings),
            timeout=asked.timeout,
            grace=settings.grace,
        )
        if not asked.outside_sandbox:
            launch = self._confined(launch, asked, settings.sandbox, roots, session_id)
        whole = Whole(context, session_id, settings.output_bytes)
        job = self._jobs.start(launch, session_id, settings, whole, background=asked.background)
        if asked.background:
            yield reports.started(job)
        else:
            yield from self._followed(job, settings, cancellation)

    def _confined(
        self,
        launch: Launch,
        asked: ShellArguments,
        settings: SandboxSettings,
        roots: tuple[Path, ...],
        session_id: str,
    ) -> Launch:
        """Put a command into the sandbox, if there is one.

        Raises:
            Refused: If it must be in one and cannot be.
        """
        try:
            if not self._sandbox.confines(settings):
                return launch
            confined = self._sandbox.confine(
                launch.arguments,
                settings,
                roots=roots,
                folder=launch.folder,
                env=launch.env,
                owner=session_id,
                hosts=asked.hosts,
            )
        except (NoSandbox, ValueError) as problem:
            raise Refused(str(problem)) from problem
        return replace(launch, confined=confined)

    def _followed(self, job: Job, settings: Settings, cancellation: Any) -> Items:
        """Show the output of a command, and at its end what became of it."""
        decoder = Decoder()
        with _stopped_by(cancellation, job):
            for piece in job.running.follow(settings.stream_bytes):
                yield from _parts(decoder.text(piece))
        yield from _parts(decoder.text(b"", last=True))
        result = reports.outcome(job, settings)
        if "id" not in result:
            self._jobs.forget(job)
        yield result

    def _list(self, _arguments: Any, _settings: Settings, context: Context, _cancellation: Any) -> Items:
        yield reports.listed(self._jobs.of(_session(context)))

    def _output(self, arguments: Any, settings: Settings, context: Context, cancellation: Any) -> Items:
        asked = OutputArguments.read(arguments)
        job = self._jobs.get(asked.id, _session(context))
        with _calling(cancellation, job.running.wake):
            job.running.wait_beyond(asked.offset, asked.wait, lambda: _is_cancelled(cancellation))
        yield reports.part(job, asked.offset, settings)

    def _stop(self, arguments: Any, settings: Settings, context: Context, _cancellation: Any) -> Items:
        job = self._jobs.get(job_id(arguments), _session(context))
        job.running.stop()
        job.running.wait()
        yield reports.stopped(job, settings)


@contextmanager
def _stopped_by(cancellation: Any, job: Job) -> Iterator[None]:
    """End a command if the caller loses interest, by cancelling or by leaving."""
    with _calling(cancellation, job.running.stop):
        try:
            yield
        finally:
            if job.running.end is None:
                job.running.stop()
                job.running.wait()


@contextmanager
def _calling(cancellation: Any, callback: Callable[[], None]) -> Iterator[None]:
    """Have a function called when a call is cancelled."""
    if cancellation is None:
        yield
        return
    key = cancellation.add_callback(callback)
    try:
        yield
    finally:
        cancellation.remove_callback(key)


def _is_cancelled(cancellation: Any) -> bool:
    return cancellation is not None and cancellation.cancelled


def _parts(text: str) -> Items:
    if text:
        yield {"part": {"type": "output", "text": text}}


def _exceptions(arguments: Mapping[str, Any]) -> list[str | dict[str, Any]]:
    """Return what a call asks for beyond the sandbox; no general permission covers it."""
    asked = [NETWORK + host for host in asked_hosts(arguments)]
    if arguments.get("outside_sandbox"):
        asked.append(OUTSIDE + str(arguments["command"]))
    return [{"text": text, "spelled": NETWORK if text.startswith(NETWORK) else OUTSIDE} for text in asked]


def _told(text: str, may_be: tuple[str, ...]) -> str | dict[str, Any]:
    return {"text": text, "may_be": list(may_be)} if may_be else text


def _session(context: Context) -> str:
    session_id = (context or {}).get("session_id")
    return session_id if isinstance(session_id, str) else ""
