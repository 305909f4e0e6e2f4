"""Sessions as users see them: found by what was typed, listed, read, imported, exported, opened."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app import SessionNotFound
from agent_app.agents import choose_agent
from agent_app.grants import project_of
from agent_app.notices import SESSION_OPEN, Notice, read_notices
from agent_app.services import AGENT
from agent_core import AgentError, Session
from agent_core.clean_text import reveal
from agent_core.frozen import thaw
from agent_plugin_kit.orphans import find_orphans
from agent_plugin_kit.sandbox import SandboxSettings, describe, find_way
from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit, is_limit
from agent_terminal_app.output import (
    is_terminal,
    moment,
    one_line,
    revealed,
    revealed_line,
    terminal_width,
)
from agent_terminal_app.rows import in_rows, prose_rows
from agent_terminal_app.settings.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_app import AgentApplication, SessionInfo
    from agent_app.transfer import ImportedSession, SystemMessagesRefused
    from agent_core import Message

SHORTEST_PREFIX = 4
"""How many characters of an id are enough to name it."""
_PAGE = 200
_LOOK_BACK = 500
_LAST_EVENTS = 50
"""Among how many events the end of the last run is: few are logged behind it."""
_LONGEST_BEGINNING = 60
_MOST = 10
_LONGEST = 40
_LONGEST_ADDED = 80
_LONGEST_COMMAND = 80


def find_session(application: AgentApplication, given: str) -> SessionInfo:
    """Return the session with this id, an id that begins like this, or this title.

    Raises:
        CommandError: If there is none, or more than one.
    """
    try:
        return application.session_info(given)
    except SessionNotFound:
        infos = application.find_sessions(given)
    begun = [info for info in infos if len(given) >= SHORTEST_PREFIX and info.id.startswith(given)]
    titled = [info for info in infos if info.title == given]
    found = begun or titled
    if not found:
        raise CommandError(f"there is no session {given!r}", hint="see `agent sessions list`")
    if len(found) > 1:
        ids = ", ".join(info.id for info in found[:5])
        raise CommandError(f"{given!r} may mean {len(found)} sessions: {ids}", hint="give more of the id")
    return found[0]


def last_session_here(application: AgentApplication) -> tuple[SessionInfo, str]:
    """Return the last session that works in this folder, and a line if a later one works elsewhere.

    Raises:
        CommandError: If there is none among the last few hundred.
    """
    folder = os.path.realpath(Path.cwd())
    elsewhere = ""
    for info in islice(all_sessions(application), _LOOK_BACK):
        with suppress(AgentError):  # a damaged session is not the one to continue
            project = project_of(application.load_session(info.id))
            if project == folder:
                return info, f"this is the last session of this folder; {elsewhere}" if elsewhere else ""
            elsewhere = elsewhere or (
                f"a later one is in {one_line(project or 'no folder')}: `agent chat --session {info.id}`"
            )
    if elsewhere:
        hint = elsewhere.replace("a later one", "the last one", 1)
        raise CommandError("there is no session of this folder to continue", hint=hint)
    raise CommandError("there is no session to continue", hint="`agent chat` begins one")


def all_sessions(application: AgentApplication, query: str | None = None) -> Iterator[SessionInfo]:
    cursor: str | None = None
    while True:
        page = application.list_sessions(query, cursor, _PAGE)
        yield from page.sessions
        if (cursor := page.cursor) is None:
            return


def some_sessions(application: AgentApplication, query: str | None, limit: int) -> list[SessionInfo]:
    return list(islice(all_sessions(application, query), limit))


def info_dict(info: SessionInfo) -> dict[str, Any]:
    """Return what a list knows of a session as plain data."""
    return {
        "id": info.id,
        "title": info.title,
        "agent": info.agent_id,
        "created": info.created,
        "updated": info.updated,
        "messages": info.messages,
        "parent": info.parent_id,
        **({} if info.match is None else {"match": info.match}),
        **({"extra": thaw(info.extra)} if info.extra else {}),
    }


def added_line(info: SessionInfo) -> str:
    """Return what plugins add to a session in a list, as one line; empty if that is nothing."""
    parts = ((plugin, _added(added)) for plugin, added in info.extra.items() if isinstance(added, Mapping))
    return "; ".join(f"{one_line(plugin)}: {text}" for plugin, text in parts if text)


def _added(added: Mapping[str, Any]) -> str:
    """Return the summary that a plugin gives, why it has none, or its plain values."""
    summary, error = added.get("summary"), added.get("error")
    if isinstance(summary, str) and summary.strip():
        return one_line(summary)[:_LONGEST_ADDED]
    if error:
        about = error.get("message") if isinstance(error, Mapping) else error
        return f"failed ({one_line(about)[:_LONGEST_ADDED]})"
    values = {key: value for key, value in added.items() if isinstance(value, str | int | float)}
    return one_line(", ".join(f"{key} {value}" for key, value in values.items()))[:_LONGEST_ADDED]


def labels(application: AgentApplication, infos: Sequence[SessionInfo]) -> list[str]:
    """Return the title of each session, or how it begins; also what was found, and what plugins add."""
    first = application.first_messages([info.id for info in infos if not info.title])
    return [_label(info, first.get(info.id)) for info in infos]


def _label(info: SessionInfo, first: Message | None) -> str:
    title = info.title
    if first is not None:
        title = f"({one_line(first.content)[:_LONGEST_BEGINNING]})"
    known, added = ": ".join(text for text in (title, info.match) if text), added_line(info)
    return f"{known} [{added}]" if added else known


def transcript(info: SessionInfo, messages: Any, *, raw: bool = False) -> Iterator[str]:
    """Yield the lines of a conversation for reading; *raw* ones, for a pipe, have what was said as it is."""
    width = terminal_width() if is_terminal(sys.stdout) else None
    yield from in_rows(one_line(info.title) or "(no title)", width)
    yield from in_rows(f"{info.id}, {info.agent_id or 'no agent'}, {moment(info.updated)}", width)
    for message in messages:
        yield ""
        yield f"{message.role}:{' (interrupted)' if 'interrupted' in message.metadata else ''}"
        # What a tool printed keeps its lines.
        yield from _message_lines(message, raw=raw, width=None if message.role == "tool" else width)


def _message_lines(message: Message, *, raw: bool, width: int | None) -> Iterator[str]:
    """Yield everything of a message that a provider may be sent, except the content of attachments."""
    text = message.content if isinstance(message.content, str) else one_line(message.content or "")
    if lines := revealed(text, raw=raw).splitlines():
        room = None if width is None else width - 2
        yield from (f"  {row}" for row in prose_rows("\n".join(lines), room))
    parts = message.multipart_content or ()
    texts = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    if "".join(texts) not in ("", text):  # it is these that are sent
        more = (line for part in texts for line in revealed(part, raw=raw).splitlines())
        yield from (f"  [text] {line}" for line in more)
    yield from (f"  [{_part_line(part)}]" for part in parts if part.get("type") != "text")
    for call in message.tool_calls:
        yield from in_rows(f"  → {_call_line(call)}", width)


def _part_line(part: Mapping[str, Any]) -> str:
    """Return what an attachment is called, its type, where it is, and its size."""
    named = [part.get(key) for key in ("type", "name", "mime_type", "url", "asset_id")]
    data = part.get("data")
    size = [f"{len(data) * 3 // 4} bytes"] if isinstance(data, str) else []
    return " ".join([*(revealed_line(one) for one in named if one), *size])


def _call_line(call: Mapping[str, Any]) -> str:
    inner = call.get("function") or call.get("custom") or {}
    return revealed_line(f"{inner.get('name', '')} {inner.get('arguments') or inner.get('input') or ''}")


# Imported sessions


def here() -> dict[str, Any]:
    """Return the metadata of a session that is begun, or comes, in this folder."""
    return {"workspace_roots": [str(Path.cwd())]}


def import_lines(info: ImportedSession) -> list[str]:
    """Return what the user should know about an import, a line each."""
    if not info.left_out:
        return []
    names = [one_line(name)[:_LONGEST] for name in info.left_out]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return [
        f"left out, since a file does not say what happens on this machine: {', '.join(names[:_MOST])}{more}",
        f"the session works in {one_line(Path.cwd())}",
    ]


def instruction_lines(refusal: SystemMessagesRefused) -> Iterator[str]:
    """Yield the system messages of a file, whole, with a mark for every invisible character."""
    yield "The file has instructions for the model, which it would follow like yours:"
    for place, text in refusal.messages:
        yield ""
        yield f"system, message {place} of the file:"
        yield from (f"  {line}" for line in reveal(text).splitlines() or [""])
    yield ""


# Notices


def opening_notices(application: AgentApplication, session_id: str | None) -> list[Notice]:
    """Return the notices of the plugins of a session's agent; slow if a plugin takes long to find out.

    Args:
        session_id: The session; None for one that is not made yet.
    """
    session = unsaid_session() if session_id is None else application.load_session(session_id)
    _, results = application.run_session_lifecycle(SESSION_OPEN, session)
    return [*_sandbox_notices(application, session), *_orphan_notices(), *read_notices(results)]


def unsaid_session() -> Session:
    """Return the session that the first message would be said in, for whoever looks before that."""
    return Session("", metadata={"workspace_roots": [str(Path.cwd())]})


def _orphan_notices() -> list[Notice]:
    """Name the commands that still run though the chat that started them was killed."""
    return [
        Notice(
            plugin="shell_tool",
            text=f"a command of a chat that has died still runs, process {one.pid}: "
            f"{one_line(one.command)[:_LONGEST_COMMAND]} (!kill -- -{one.group} ends it)",
        )
        for one in find_orphans()
    ]


def broken_off_calls(unfinished: Mapping[str, Any], preview: Callable[[str], str]) -> list[str]:
    """Return what the agent will read about calls that a crash has cut short, one line each.

    Args:
        unfinished: As of the state of a session.
        preview: Returns a line about a call by its id; empty if nobody knows one.
    """
    lines = []
    for call in unfinished["calls"]:
        about = one_line(preview(call["call_id"]) or f"{call['name']} {call['arguments']}")
        truth = "may have run, in part or completely" if call["begun"] else "did not run"
        lines.append(f"{about[:_LONGEST_COMMAND]}: {truth}")
    return lines


def limit_of(app: AgentApplication, session_id: str, last_event: int) -> Mapping[str, Any] | None:
    """Return the reason of the last run of a session, if a limit has stopped it; called in a thread.

    Args:
        last_event: The number of the last event of the session.
    """
    events = app.events(session_id, max(last_event - _LAST_EVENTS, 0), _LAST_EVENTS)
    for event in reversed(events):
        if event["type"] in ("final", "error", "run_start"):
            reason: Mapping[str, Any] = event.get("reason") or {}
            return reason if is_limit(str(reason.get("code"))) else None
    return None


def _sandbox_notices(application: AgentApplication, session: Session) -> list[Notice]:
    """Say plainly that commands run without a sandbox, if the agent can run any."""
    try:
        agent_id = choose_agent(application.config, session.metadata.get(AGENT))
        agent = None if agent_id is None else application.runtime.resolve(agent_id)
    except AgentError:  # whoever runs it learns why it cannot
        return []
    if agent is None or "shell" not in agent.tools:
        return []
    settings = SandboxSettings.read({**agent.spec.section("shell_tool"), **agent.spec.section("config")})
    if settings.mode != "off" and not isinstance(find_way(), str):
        return []
    return [Notice(plugin="shell_tool", text=describe(settings))]


_APPROVE_SERVER = ("mcp_tools", "approve")


def in_chat(notice: Notice) -> str:
    """Return the command of the chat that deals with a notice; empty if there is nothing to do."""
    if not notice.action_id:
        return ""
    if (notice.plugin, notice.action_id) == _APPROVE_SERVER:
        return "/mcp"
    given = [shlex.quote(f"{name}={_written(value)}") for name, value in notice.params.items()]
    return one_line(" ".join([f"/{notice.plugin}.{notice.action_id}", *given]))


def in_shell(notice: Notice) -> str:
    """Return what to run in a shell to deal with a notice; empty if there is nothing to do."""
    if (notice.plugin, notice.action_id) == _APPROVE_SERVER:
        return f"`agent mcp test {shlex.quote(one_line(_written(notice.params.get('server'))))}` approves it"
    todo = in_chat(notice)
    return f"in `agent chat`, {todo}" if todo else ""


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


FORMS: Mapping[str, str] = {".md": "md", ".html": "html", ".json": "json"}
"""How a session is written, by the end of the file's name."""


def write_transcript(app: AgentApplication, session_id: str, path: Path, *, redact: bool = True) -> None:
    """Write a stored session in the form that the end of the file's name stands for.

    Args:
        redact: Whether what looks like a secret is left out.

    Raises:
        CommandError: If it stands for none, or the file cannot be written.
        SessionNotFound: If there is no such session.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise CommandError(f"{path.name!r} ends in none of {', '.join(FORMS)}", code=Exit.USAGE)
    info, session = app.session_info(session_id), app.load_session(session_id)
    try:
        replace_file(path, lazy.readable(info, session, form, redact=redact), mode=0o600)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
