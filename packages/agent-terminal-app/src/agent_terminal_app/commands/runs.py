"""`agent runs`: send work to workers, and see what becomes of it."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from agent_core import AgentError
from agent_terminal_app import lazy
from agent_terminal_app.commands.run import choose_session
from agent_terminal_app.commands.workers import database_option, shared_database
from agent_terminal_app.errors import CommandError, Exit, reason_code
from agent_terminal_app.output import one_line, print_json, print_lines, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_app.store.base import Approval
    from agent_durable import DurableRuns, JobInfo
    from agent_terminal_app.commands.workers import Shared

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_COLUMNS = ("RUN", "IS", "AGE", "TRIES", "STEPS", "LAST", "WORKER", "SESSION")
_LOOK_SECONDS = 0.3


@click.group("runs")
def command() -> None:
    """Send work to workers, and see what becomes of it."""


@command.command("send")
@click.argument("text")
@database_option
@click.option("--session", help="The id of a session to continue; by default a new one.")
@click.option("--agent", help="Another agent than the default one, for a new session.")
@click.option(
    "--model", help="Another model for agents that name none; the same that the workers were given."
)
@click.option("--tenant", default="", help="Whose run it is, for limits.")
@click.option(
    "--priority", default=0, type=click.IntRange(min=0), help="The smaller, the sooner; 0 before all others."
)
@click.option("--wait", is_flag=True, help="Wait for the answer and print it.")
def send_command(
    text: str,
    database: str,
    session: str | None,
    agent: str | None,
    model: str | None,
    tenant: str,
    priority: int,
    *,
    wait: bool,
) -> int:
    """Say TEXT in a session and let a worker answer; print the id of the run.

    Tools of a new session work in the folder from which it is sent: every worker must find it there.
    """
    with shared_database(database, model=model) as shared:
        session_id = choose_session(shared.app, session, agent)
        after = shared.app.last_event(session_id)
        try:
            run_id = shared.runs.say(session_id, text, tenant=tenant, priority=priority)
        except lazy.QueueFull:
            if session is None:  # it is empty, and nobody knows its id
                shared.app.delete_session(session_id)
            raise
        if not wait:
            print_lines([run_id])
            _tell_obstacle(_found(shared.runs, run_id))
            return Exit.OK
        say(f"{run_id} in session {session_id}")
        return _follow(shared, session_id, after, run_id)


def _follow(shared: Shared, session_id: str, after: int, run_id: str) -> int:
    """Show what happens in a session from now on, whichever worker does it, until the run is over."""
    events: queue.Queue[dict[str, Any]] = queue.Queue()
    stream = shared.app.subscribe(session_id, after)  # it ends with the application
    threading.Thread(target=_pass_on, args=(stream, events), daemon=True).start()
    shown_obstacle = ""
    while True:
        try:
            _show(events.get(timeout=_LOOK_SECONDS))
        except queue.Empty:  # its end is looked at, and not guessed from events: those may be another run's
            run = _found(shared.runs, run_id)
            if run.is_over:
                _tell_questions(shared, run)
                return _answer(run)
            if run.obstacle not in ("", shown_obstacle):  # a user who waits should know what for
                shown_obstacle = run.obstacle
                _tell_obstacle(run)


def _pass_on(stream: Iterable[dict[str, Any]], events: queue.Queue[dict[str, Any]]) -> None:
    with suppress(AgentError):  # the store was closed: nobody follows any more
        for event in stream:
            events.put(event)


def _show(event: dict[str, Any]) -> None:
    if event["type"] == "tool_call_start":
        say(f"→ {one_line(event['preview'])}")


def _answer(run: JobInfo) -> int:
    if run.status == "failed":
        raise CommandError(run.text, hint=f"see `agent runs show {run.job.run_id}`")
    if run.text:
        print_lines([shown(run.text)])
    return Exit.INTERRUPTED if run.status == "cancelled" else reason_code(run.code)


def _tell_obstacle(run: JobInfo) -> None:
    """Show why no worker can begin a run, and what can be done about it."""
    if run.obstacle:
        run_id = run.job.run_id
        say(
            f"{run_id} waits: {run.obstacle}; start a worker with its sender's configuration and plugins, "
            f"or `agent runs cancel {run_id}` and `agent runs retry {run_id}` for workers that are there"
        )


def _tell_questions(shared: Shared, run: JobInfo) -> None:
    """Show what a run waits for, and how it is answered."""
    for asked in _questions(shared, run):
        say(f"{asked.id} asks: {shown(asked.suspension['message'])}")
    if run.status == "suspended":
        run_id = run.job.run_id
        say(f"`agent runs approve {run_id}` lets it do that, `agent runs deny {run_id}` continues without")


def _questions(shared: Shared, run: JobInfo) -> Sequence[Approval]:
    return shared.app.approvals(run.job.session_id) if run.status == "suspended" else ()


@command.command("list")
@database_option
@click.option(
    "--status",
    type=click.Choice(["waiting", "running", "suspended", "done", "failed", "cancelled"]),
    help="Only runs in this state.",
)
@click.option("--limit", default=50, show_default=True, help="How many at most.")
@_json
def list_command(database: str, status: Any, limit: int, *, as_json: bool) -> None:
    """List runs, the latest first, and how long the queue is."""
    with shared_database(database) as shared:
        runs = shared.runs.jobs(status=status, limit=limit)
        waiting = shared.runs.queue()
    if as_json:
        print_json(runs)
        return
    now = time.time()
    print_table(_COLUMNS, [_row(one, now) for one in runs])
    for obstacle, count in Counter(one.obstacle for one in runs if one.obstacle).items():
        say(f"{count} of these cannot begin: {obstacle}")
    say(f"{waiting.waiting} waiting, the oldest for {waiting.oldest:.0f} s")


def _row(run: JobInfo, now: float) -> tuple[object, ...]:
    end = run.updated if run.is_over else now
    age = f"{end - run.created:.0f} s"
    job = run.job
    tries = f"{run.attempts}, {run.losses} lost" if run.losses else run.attempts
    worker = "nobody can" if run.obstacle else run.worker
    return job.run_id, run.status, age, tries, run.steps, run.last, worker, job.session_id


@command.command("show")
@click.argument("run_id")
@database_option
@_json
def show_command(run_id: str, database: str, *, as_json: bool) -> None:
    """Show one run, step by step."""
    with shared_database(database) as shared:
        run = _found(shared.runs, run_id)
        steps = shared.runs.steps(run_id)
        if as_json:
            print_json({"run": run, "steps": steps, "questions": _questions(shared, run)})
            return
        print_table(_COLUMNS, [_row(run, time.time())])
        for number, step in enumerate(steps):
            print_lines([f"  {number:>3}  {one_line(', '.join(step.units) or step.code)}"])
        if run.text:
            print_lines([shown(run.text)])
        _tell_obstacle(run)
        _tell_questions(shared, run)


@command.command("approve")
@click.argument("run_id")
@database_option
@click.option("--question", help="Only this one of the questions that it waits for.")
def approve_command(run_id: str, database: str, question: str | None) -> None:
    """Approve the question of a run; print the id of the run that continues."""
    _decide(run_id, database, question, {"approved": True})


@command.command("deny")
@click.argument("run_id")
@database_option
@click.option("--question", help="Only this one of the questions that it waits for.")
@click.option("--reason", default="", help="Why, for the model to read.")
def deny_command(run_id: str, database: str, question: str | None, reason: str) -> None:
    """Refuse the question of a run; print the id of the run that continues without."""
    _decide(run_id, database, question, {"approved": False, "reason": reason})


def _decide(run_id: str, database: str, question: str | None, decision: dict[str, Any]) -> None:
    with shared_database(database) as shared:
        asked = [one.id for one in _questions(shared, _found(shared.runs, run_id))]
        wanted = asked if question is None else [one for one in asked if one == question]
        if not wanted:
            what = f"run {run_id} does not ask {question}" if question else f"run {run_id} asks nothing"
            raise CommandError(what, hint=f"see `agent runs show {run_id}`")
        for one in wanted[:-1]:
            shared.app.decide(one, decision)
        print_lines([shared.runs.decide(wanted[-1], decision)])


@command.command("cancel")
@click.argument("run_id")
@database_option
def cancel_command(run_id: str, database: str) -> None:
    """Stop a run, wherever it is; its results so far are kept."""
    with shared_database(database) as shared:
        run = _found(shared.runs, run_id)
        if not shared.runs.cancel(run_id):
            is_so = "waits for a decision" if run.status == "suspended" else "is over already"
            hint = "deny" if run.status == "suspended" else "show"
            raise CommandError(f"run {run_id} {is_so}", hint=f"see `agent runs {hint} {run_id}`")
    say(f"{run_id} is cancelled")


@command.command("retry")
@click.argument("run_id")
@database_option
def retry_command(run_id: str, database: str) -> None:
    """Try a run that failed or was cancelled once more; print the id of the new one."""
    with shared_database(database) as shared:
        run = _found(shared.runs, run_id)
        if not run.is_over:
            raise CommandError(f"run {run_id} is {run.status}", hint="wait for it, or cancel it first")
        again = shared.runs.retry(run)
        print_lines([again])
        _tell_obstacle(_found(shared.runs, again))


def _found(runs: DurableRuns, run_id: str) -> JobInfo:
    found = runs.job(run_id)
    if found is None:
        raise CommandError(f"there is no run {run_id}", code=Exit.USAGE, hint="`agent runs list` lists them")
    return found
