"""`agent run`: ask an agent once, for scripts.

Only the answer is on stdout, or with `--json` only the events; whatever else there is to say goes to stderr.
Nothing here waits for a user: a question that only a user can answer ends the command with a code of its own.
A command that is stopped keeps in the session what was said so far.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from base64 import b64encode
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from agent_app.assets.asset import Sniffer, display_name, is_textual
from agent_app.context_windows import WindowCache, Windows
from agent_core.json_schema import compile_schema, first_misfit
from agent_runtime import SpecError
from agent_runtime.permissions import CallPattern
from agent_terminal_app.application import catalogue_of, open_settings
from agent_terminal_app.chat.attachments import model_name
from agent_terminal_app.chat.questions.edit_mode import EDITING
from agent_terminal_app.chat.questions.question import offered_patterns
from agent_terminal_app.commands.sessions import complete_session
from agent_terminal_app.errors import (
    CommandError,
    Exit,
    category_code,
    is_limit,
    key_command,
    limit_setting,
    reason_code,
)
from agent_terminal_app.first_run.welcome import ensure_model
from agent_terminal_app.logs import keep_off_the_screen
from agent_terminal_app.output import as_json, is_terminal, one_line, print_json, print_lines, revealed, say
from agent_terminal_app.paths import Paths
from agent_terminal_app.remote import open_remote
from agent_terminal_app.views.sessions import (
    find_session,
    here,
    in_shell,
    last_session_here,
    opening_notices,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agent_app import AgentApplication

LONGEST_INPUT = 8 << 20
"""How many bytes of a file or of stdin become a prompt."""

_NOT_CONFIGURED = ("ConfigError", "WeightsMissingError", "ModelNotFoundError", "ProviderNotFoundError")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a request came to.

    Attributes:
        code: The exit code that it means.
        text: The answer.
    """

    code: int
    text: str = ""


@click.command("run")
@click.argument("prompt", required=False)
@click.option("--file", "-f", "prompt_file", type=_FILE, help="Read the prompt from a file.")
@click.option("--json", "as_events", is_flag=True, help="Print events, one JSON object per line.")
@click.option("--output-schema", type=_FILE, help="A JSON Schema that the answer must fit.")
@click.option("--agent", help="Another agent of the configuration.")
@click.option("--model", help="Another model: local, or PROVIDER:MODEL.")
@click.option(
    "--session",
    shell_complete=complete_session,
    help="Continue a session: its id, the beginning of it, or its title.",
)
@click.option("--continue", "-c", "last", is_flag=True, help="Continue the last session of this folder.")
@click.option(
    "--allow",
    "allowed",
    metavar="PATTERN",
    multiple=True,
    help="Run calls like this without approval, this time: shell(make *); may be repeated.",
)
@click.option(
    "--yes-to", type=click.Choice(["edits"]), help="Run edits of files without approval, this time."
)
@click.option("--attach", "-a", "attached", type=_FILE, multiple=True, help="Attach a file; may be repeated.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Stop after this many seconds.")
@click.option("--ephemeral", is_flag=True, help="Keep nothing on disk.")
@click.option("--verbose", "-v", is_flag=True, help="Show progress on stderr.")
@click.option(
    "--server",
    envvar="AGENT_SERVER",
    metavar="URL",
    help="Ask an agent of this server, whose token is in AGENT_SERVER_TOKEN (or AGENT_SERVER).",
)
@click.option("--raw", is_flag=True, help="In a pipe, print control characters as they are.")
def command(
    prompt: str | None,
    prompt_file: Path | None,
    output_schema: Path | None,
    agent: str | None,
    model: str | None,
    session: str | None,
    allowed: tuple[str, ...],
    yes_to: str | None,
    attached: tuple[Path, ...],
    timeout: float | None,
    server: str | None,
    *,
    last: bool,
    as_events: bool,
    ephemeral: bool,
    verbose: bool,
    raw: bool,
) -> int:
    """Ask an agent once and print its answer.

    The prompt is the argument, the file, and standard input, in this order.
    """
    if session and last:
        raise click.UsageError("--session names a session, --continue takes the last one: leave one out.")
    if (session or last) and ephemeral:
        option = "--session" if session else "--continue"
        raise click.UsageError(
            f"{option} continues a stored session, --ephemeral stores nothing: leave one out."
        )
    patterns = [*read_patterns(allowed), *(EDITING if yes_to == "edits" else ())]
    if not verbose:
        keep_off_the_screen()
    text = _with_schema(read_prompt(prompt, prompt_file, attached), output_schema)
    schema = read_schema(output_schema)
    parts = [read_attachment(path) for path in attached]
    with ExitStack() as stack:
        application: Talks
        if server is not None:
            if ephemeral:
                raise click.UsageError("--server stores the session, --ephemeral nothing: leave one out.")
            if patterns or last:
                raise click.UsageError(
                    "--allow, --yes-to and --continue are for sessions of this computer, not for --server."
                )
            application = stack.enter_context(open_remote(server, Paths.of_this_user()))
            session_id = application.choose_session(session, agent, model)
        else:
            opened = open_settings(model=model).with_model(model).with_allowed(patterns)
            ensure_model(opened.settings, agent)
            own = stack.enter_context(opened.application(ephemeral=ephemeral))
            application = own
            session_id = choose_session(own, session, agent, last=last)
            check_readable(own, session_id, attached, parts)
            tell_notices(own, session_id)
        asking = Asking(
            application, session_id, as_events=as_events, progress=verbose or is_terminal(sys.stderr)
        )
        asking.raw, asking.server = raw, server
        if timeout is not None:
            asking.limits = {"timeout": None}  # ours counts, be it longer than what a run has by default
        with stopping(asking, timeout):
            outcome = asking.ask_until_it_fits(text, parts, schema)
        if not ephemeral and (verbose or outcome.code != Exit.OK):
            asking.tell_how_to_go_on(outcome)
        return asking.finish(outcome)


# The prompt


def read_prompt(prompt: str | None, prompt_file: Path | None, attached: Sequence[Path] = ()) -> str:
    """Return what is asked: the argument, the file, and stdin if something is piped in.

    Raises:
        click.UsageError: If that is nothing at all.
    """
    pieces = [] if prompt in (None, "-") else [str(prompt)]
    if prompt_file is not None:
        with prompt_file.open("rb") as source:
            pieces.append(_read_text(source, str(prompt_file)))
    if sys.stdin is not None and not sys.stdin.isatty():
        pieces.append(_read_text(sys.stdin.buffer, "stdin"))
    text = "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip())
    if not text and not attached:
        raise click.UsageError("There is nothing to ask: give a prompt, use --file, or pipe a text in.")
    return text


def _read_text(source: Any, name: str) -> str:
    data = source.read(LONGEST_INPUT + 1)
    if len(data) > LONGEST_INPUT:
        raise click.UsageError(f"{name} is longer than {LONGEST_INPUT >> 20} MB: send less of it.")
    try:
        return str(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} is not text in UTF-8: attach it with --attach.") from None


def read_attachment(path: Path) -> dict[str, Any]:
    """Return a file as a part of a message: text as text, the rest as data with its type."""
    data = path.read_bytes()
    if len(data) > LONGEST_INPUT:
        raise click.UsageError(f"{path} is larger than {LONGEST_INPUT >> 20} MB: attach a smaller file.")
    sniffer = Sniffer()
    sniffer.feed(data)
    kind, name = sniffer.media_type(_claimed_type(path)), display_name(path.name)
    if is_textual(kind):
        return {"type": "text", "text": f"File {name}:\n\n{data.decode()}"}
    encoded = b64encode(data).decode()
    form = "image" if kind.startswith("image/") else "file"
    return {"type": form, "mime_type": kind, "data": encoded, "name": name}


def check_readable(
    application: AgentApplication, session_id: str, paths: Sequence[Path], parts: Sequence[Mapping[str, Any]]
) -> None:
    """Check that the model that answers can read what is attached, as far as that is known.

    Raises:
        CommandError: If it cannot.
    """
    others = [path for path, part in zip(paths, parts, strict=True) if part["type"] != "text"]
    if not others:
        return
    windows = Windows(application, WindowCache(Paths.of_this_user().windows))
    if model := windows.text_only_model(session_id):
        raise CommandError(
            f"{others[0]} was not sent: {model_name(model)} reads only text",
            code=Exit.USAGE,
            hint="attach a text file, or choose another model with --model",
        )


def _claimed_type(path: Path) -> str | None:
    return guess_type(path.name)[0]


def read_patterns(allowed: Sequence[str]) -> list[str]:
    """Return the patterns of calls that need no approval.

    Raises:
        click.UsageError: If one of them is not a pattern.
    """
    for pattern in allowed:
        try:
            CallPattern.parse(pattern, where="--allow")
        except SpecError as error:
            raise click.UsageError(str(error)) from error
    return list(allowed)


# What the answer must be


def read_schema(path: Path | None) -> Any:
    """Return the schema in a file, or None without a file.

    Raises:
        CommandError: If it is not a JSON Schema.
    """
    if path is None:
        return None
    try:
        schema = json.loads(path.read_bytes())
        compile_schema(schema, fetches=True)
    except ValueError as error:
        hint = "see https://json-schema.org for how to write one"
        problem = one_line(error).split(" Failed validating")[0]
        raise CommandError(f"{path} is not a JSON Schema: {problem}", code=Exit.USAGE, hint=hint) from error
    return schema


def _with_schema(text: str, path: Path | None) -> str:
    if path is None:
        return text
    rule = "Answer with JSON alone, without any other text. It must fit this JSON Schema:"
    return f"{text}\n\n{rule}\n{path.read_text(encoding='utf-8', errors='replace').strip()}"


def misfit(text: str, schema: Any) -> str | None:
    """Say why an answer does not fit a schema; None if it does."""
    try:
        value = read_answer(text)
    except ValueError as error:
        return f"it is not JSON ({error})"
    problem = first_misfit(schema, value, fetches=True)
    if problem is None:
        return None
    place = "/".join(str(step) for step in problem.instance_path)
    return f"at {place}: {problem.message}" if place else str(problem.message)


def read_answer(text: str) -> Any:
    """Return the JSON that an answer is, also if it stands in a fence of Markdown.

    Raises:
        ValueError: If it is none.
    """
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare.removesuffix("```").partition("\n")[2]
    return json.loads(bare)


# The session


def choose_session(
    application: AgentApplication, session: str | None, agent: str | None, *, last: bool = False
) -> str:
    """Return the id of the session to use: a new one or a stored one, with the agent asked for.

    Args:
        last: Continue the last session of this folder.

    Raises:
        CommandError: If there is no such agent, or no such session.
    """
    if agent is not None and agent not in application.config["agents"]:
        hint = "see `agent agents list`"
        raise CommandError(f"there is no agent {agent!r}", code=Exit.NOT_CONFIGURED, hint=hint)
    if session is None and not last:
        return application.create_session(agent, metadata=here()).session_id
    found, line = (find_session(application, session), "") if session else last_session_here(application)
    if line:
        say(f"agent: {line}")
    if agent is not None and found.agent_id != agent:
        application.switch_agent(found.id, agent)
    catalogue_of(application).lend_key_of_session(found.id)
    return found.id


def tell_notices(application: AgentApplication, session_id: str) -> None:
    """Show the notices of plugins, with the command that deals with each."""
    for notice in opening_notices(application, session_id):
        todo = in_shell(notice)
        say(f"agent: {one_line(notice.text)}{f': {todo}' if todo else ''}")


# The request


class Talks(Protocol):
    """Where a session is: an application here, or that of a server."""

    def chat(
        self,
        session_id: str,
        text: str = "",
        *,
        attachments: Sequence[Mapping[str, Any]] = (),
        limits: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Iterable[Mapping[str, Any]]]:
        """Say something, and give the events."""

    def cancel(self, session_id: str) -> bool:
        """Stop the run."""


class Asking:
    """One request, and what is shown of it."""

    def __init__(self, application: Talks, session_id: str, *, as_events: bool, progress: bool) -> None:
        self._application = application
        self._session_id = session_id
        self._as_events = as_events
        self._progress = progress
        self._is_json = False
        self._warnings: list[str] = []
        self.limits: Mapping[str, Any] = {}
        self.raw = False
        self.server: str | None = None
        self.stopped: Exit | None = None

    def ask_until_it_fits(self, text: str, parts: Sequence[Mapping[str, Any]], schema: Any) -> Outcome:
        """Ask, and once more if the answer does not fit the schema."""
        outcome = self._ask(text, parts)
        if schema is None or outcome.code != Exit.OK:
            return outcome
        self._is_json = True
        problem = misfit(outcome.text, schema)
        if problem is None:
            return outcome
        say(f"agent: the answer does not fit the schema, {problem}; asking once more")
        outcome = self._ask(f"That does not fit the schema: {problem}. Answer with the corrected JSON alone.")
        if outcome.code == Exit.OK and (problem := misfit(outcome.text, schema)) is not None:
            say(f"agent: the answer does not fit the schema, {problem}")
            return Outcome(code=Exit.FAILURE)
        return outcome

    def stop(self, code: Exit) -> None:
        """Stop the request; it ends with a code, and what it produced is kept."""
        self.stopped = self.stopped or code
        self._application.cancel(self._session_id)

    def finish(self, outcome: Outcome) -> int:
        """Print the answer, if there is one, and return the exit code; of warnings, one line on stderr."""
        if self._warnings and outcome.code == Exit.OK:  # else there is an error to read
            more = f" (and {len(self._warnings) - 1} more: --verbose)" if len(self._warnings) > 1 else ""
            say(f"agent: warning: {one_line(self._warnings[0])}{more}")
        if outcome.text and outcome.code in (Exit.OK, Exit.LIMIT) and not self._as_events:
            print_lines([self._answer(outcome.text)])
        return int(outcome.code)

    def tell_how_to_go_on(self, outcome: Outcome) -> None:
        """Say which command continues the session; a decision needs the chat."""
        there = "" if self.server is None else f"--server {self.server} "
        if outcome.code == Exit.APPROVAL and there:
            say(f"agent: decide about it there: {self.server}/v1/approvals?session_id={self._session_id}")
        elif outcome.code == Exit.APPROVAL:
            say(f"agent: decide about it with: agent chat --session {self._session_id}")
        else:
            say(f'agent: continue with: agent run {there}--session {self._session_id} "continue"')

    def _answer(self, text: str) -> str:
        if not self._is_json:
            return revealed(text, raw=self.raw)
        return revealed(as_json(read_answer(text)), raw=self.raw)

    def _ask(self, text: str, parts: Sequence[Mapping[str, Any]] = ()) -> Outcome:
        outcome = Outcome(code=Exit.FAILURE)
        waiting: list[Any] = []
        agent_id = ""
        with self._application.chat(self._session_id, text, attachments=parts, limits=self.limits) as events:
            for event in events:
                self._tell(event)
                if self.stopped is not None:  # it may have come before there was a request to stop
                    self._application.cancel(self._session_id)
                if event["type"] == "run_start":
                    agent_id = event["agent_id"]
                elif event["type"] == "suspended":
                    waiting = list(event["suspensions"])
                elif event["type"] in ("final", "error"):
                    outcome = _outcome_of(event, agent_id)
        if self.stopped is not None:
            return self._was_stopped(outcome)
        if outcome.code == Exit.APPROVAL:
            _tell_what_is_asked(waiting)
        return outcome

    def _was_stopped(self, outcome: Outcome) -> Outcome:
        say("agent: timed out" if self.stopped == Exit.TIMEOUT else "agent: stopped")
        return replace(outcome, code=self.stopped or outcome.code)

    def _tell(self, event: Mapping[str, Any]) -> None:
        """Show an event: all of it to programs, progress to users."""
        if self._as_events:
            print_json({key: value for key, value in event.items() if key != "session"}, indent=None)
        if self._progress:
            if line := progress_line(event):
                say(line)
        elif event["type"] == "warning" and not self._as_events:
            self._warnings.append(event["message"])


def _outcome_of(event: Mapping[str, Any], agent_id: str) -> Outcome:
    """Return what the last event means, and say what went wrong."""
    if event["type"] == "error":
        error = event["error"]
        say(f"agent: {error['message']}")
        for step in (error.get("next_step"), key_command(error)):
            if step and step not in error["message"]:
                say(f"agent: {step}")
        if error["type"] in _NOT_CONFIGURED:
            return Outcome(code=Exit.NOT_CONFIGURED)
        return Outcome(code=category_code(error.get("category")))
    reason = event["reason"]
    code = reason_code(reason["code"])
    if is_limit(reason["code"]):
        say(f"agent: stopped by a limit: {reason.get('detail') or reason['code']}")
        if setting := limit_setting(agent_id, reason["code"]):
            say(f"agent: {setting}")
    return Outcome(code=code, text=event["text"] or "")


def _tell_what_is_asked(suspensions: Sequence[Mapping[str, Any]]) -> None:
    for one in suspensions:
        arguments = one["call"].get("function", {}).get("arguments") or as_json(one["call"])
        asked = one.get("parameters") or {}
        about = one_line(asked.get("preview") or one["tool"]) if "suggestions" in asked else one["message"]
        say(f"agent: a decision is needed: {about}")
        say(f"  {one['tool']} {one_line(arguments)}")
        if patterns := offered_patterns(asked):
            allowed = " ".join(f"--allow {shlex.quote(one_line(pattern))}" for pattern in patterns)
            say(f"agent: to run such calls without approval, repeat the command with {allowed}")


def progress_line(event: Mapping[str, Any]) -> str | None:
    """Return the progress line of an event; None if it has none."""
    match event["type"]:
        case "tool_call_start":
            line = f"→ {event.get('preview') or event['name']}"
        case "tool_call_result":
            line = f"{'✗' if event['is_error'] else '✓'} {event['name']} {event['seconds']:.1f} s"
        case "retry":
            line = f"… {event['message']}: again in {event['seconds']:.0f} s"
        case "fallback":
            line = f"… {event['model']} in place of {event['instead_of']}: {event['message']}"
        case "handoff":
            line = f"→ {event['to_agent']} takes over from {event['from_agent']}"
        case "warning":
            line = f"! {event['message']}"
        case "lifecycle_error":
            line = f"! {event['plugin']}: {event['error']}"
        case "status":
            line = f"… {event['text']}"
        case _:
            return None
    return one_line(line)


# Being stopped


@contextmanager
def stopping(asking: Asking, timeout: float | None) -> Iterator[None]:
    """Let signals and the clock stop a request while the block lasts.

    The request is cancelled from another thread: a handler runs in the middle of anything, and whatever lock
    that has would never be released. A second signal is not caught.
    """
    codes = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}
    handlers = {number: signal.getsignal(number) for number in codes}
    # What whoever started us wants ignored, as shells do for what runs in the background, stays so.
    before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}

    def caught(number: int, _frame: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        code = codes[signal.Signals(number)]
        threading.Thread(target=asking.stop, args=(code,), daemon=True).start()

    timer = threading.Timer(timeout or 0, asking.stop, args=(Exit.TIMEOUT,))
    timer.daemon = True
    for number in before:
        signal.signal(number, caught)
    if timeout is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
