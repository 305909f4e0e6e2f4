"""Sessions: made, listed, read, changed, branched, moved."""

from __future__ import annotations

import asyncio
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from agent_app.errors import SessionExists
from agent_app.labels import read_labels
from agent_app.services import OVERRIDES, own_overrides
from agent_app.transfer import SystemMessagesRefused
from agent_app.transfer.forms import readable
from agent_server.answers import check_match, info_answer, json_answer
from agent_server.idempotency import IdempotencyKey, named_id
from agent_server.principal import Principal
from agent_server.problem import Problem
from agent_server.schemas import (
    Edit,
    EditPlan,
    Fork,
    Labels,
    LabelsInUse,
    MessagePage,
    NewSession,
    NextRequest,
    SentRequest,
    SessionChange,
    SessionInfo,
    SessionPage,
    SessionState,
    Usage,
)
from agent_server.services import Served, Services, Who

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])
FREE_METADATA = frozenset({"title", "labels", "reference"})
"""What people may say of a session where there are several: not where it works, nor with which settings."""
IfMatch = Annotated[str | None, Header(description="The ETag of the session as you know it.")]
_FORMS = {"zip": "application/zip", "md": "text/markdown", "html": "text/html", "json": "application/json"}
_FOR_READING = ("html", "md")
_FILES: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in _FORMS.values()}, "description": "The file"}
}
Form = Annotated[
    Literal["zip", "md", "html", "json"],
    Query(description="With everything, or the conversation alone in a form for reading."),
]
Redact = Annotated[bool, Query(description="Take secrets out.")]
Limit = Annotated[int, Query(ge=1, le=500)]


@router.post("", status_code=201, response_model=SessionInfo)
async def create_session(
    services: Served,
    who: Who,
    new: Annotated[NewSession | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Make a session."""
    wanted = new or NewSession()
    if services.team is not None:
        services.team.check_request(who, wanted.metadata, FREE_METADATA)
    session_id = named_id("session", who.id, idempotency_key)

    async def create() -> Response:
        try:
            return await _create(services, wanted, session_id)
        except SessionExists as error:  # by the same key, before the server was started again
            return info_answer(await services.app.session_info_async(error.session_id), 201)

    body = wanted.model_dump(mode="json")
    return await services.repeats.once(who.id, "create_session", idempotency_key, body, create)


async def _create(services: Services, new: NewSession, session_id: str | None) -> Response:
    app, metadata = services.app, {**services.host.new_session(), **new.metadata}
    if new.model:
        metadata[OVERRIDES] = {"model": await _declared(services, new.model)}
    session = await app.create_session_async(new.agent_id, session_id=session_id, metadata=metadata)
    if new.title:
        await app.rename_session_async(session.session_id, new.title)
    return info_answer(await app.session_info_async(session.session_id), 201)


async def _declared(services: Services, model: str) -> str:
    """Return the id of a model, which can be used from now on."""
    spec = await asyncio.to_thread(services.catalogue.declare, model)
    return spec.id


@router.get("", response_model=SessionPage)
async def list_sessions(
    services: Served,
    query: Annotated[str | None, Query(max_length=1000, description="Words of its title or text.")] = None,
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Limit = 50,
    folder: Annotated[str | None, Query(max_length=200, description="Only those in a folder.")] = None,
    tag: Annotated[str | None, Query(max_length=200, description="Only those with a tag.")] = None,
    archived: Annotated[bool, Query(description="Those in the archive, and no others.")] = False,  # noqa: FBT002
    pinned: Annotated[
        bool | None, Query(description="Only those that are pinned, or only the others.")
    ] = None,
) -> Response:
    """List sessions, the last changed first; those in the archive only if they are asked for."""
    page = await services.app.list_sessions_async(
        query, cursor, limit, folder=folder, tag=tag, archived=archived, pinned=pinned
    )
    labels = await services.app.session_labels_async([info.id for info in page.sessions])
    items = [{**info.to_dict(), "labels": labels[info.id]} for info in page.sessions]
    return json_answer({"items": items, "next_cursor": page.cursor})


@router.get("/labels", response_model=LabelsInUse)
async def list_labels(services: Served) -> Response:
    """List the folders and tags that sessions have."""
    return json_answer(await services.app.labels_in_use_async())


@router.get(
    "/export",
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The file"}},
)
async def export_sessions(
    services: Served,
    ids: Annotated[list[str], Query(alias="id", min_length=1, max_length=100)],
    redact: Redact = True,  # noqa: FBT002
    form: Form = "zip",
) -> Response:
    """Return several sessions in one archive, a file for each."""

    async def write(folder: Path) -> Path:
        files = [await _write(services, one, folder, form, redact=redact) for one in dict.fromkeys(ids)]
        return await asyncio.to_thread(_pack, files, folder / "sessions.zip")

    return await _file(write, "sessions.zip", _FORMS["zip"])


def _pack(files: Sequence[Path], target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    return target


@router.get("/{session_id}", response_model=SessionInfo)
async def read_session(services: Served, session_id: str) -> Response:
    """Return what is known of a session; its messages have a route of their own."""
    return info_answer(await services.app.session_info_async(session_id))


@router.get("/{session_id}/state", response_model=SessionState)
async def read_state(services: Served, session_id: str) -> Response:
    """Return whether a session runs, what waits there, what a crash cut short, and where its events are."""
    state = await services.app.session_state_async(session_id)
    if state["unfinished"] is not None and await services.runs.will_go_on(session_id):
        state["unfinished"] = None
    return json_answer(state)


@router.patch("/{session_id}", response_model=SessionInfo)
async def change_session(
    services: Served, session_id: str, change: SessionChange, if_match: IfMatch = None
) -> Response:
    """Give a session another title, agent, model, folder or tags, pin it, or put it into the archive."""
    await services.runs.until_free(session_id)
    async with services.changing(session_id):
        check_match(await services.app.session_info_async(session_id), if_match)
        await _change(services, session_id, change)
    return info_answer(await services.app.session_info_async(session_id))


async def _change(services: Services, session_id: str, change: SessionChange) -> None:
    app = services.app
    if change.agent_id is not None:
        await app.switch_agent_async(session_id, change.agent_id)
    if change.model is not None:
        session = await app.load_session_async(session_id)
        own: dict[str, Any] = {key: value for key, value in own_overrides(session).items() if key != "model"}
        if change.model:
            own["model"] = await _declared(services, change.model)
        await app.save_session_async(session.with_metadata({OVERRIDES: own}))
    if (change.folder, change.tags, change.archived, change.pinned) != (None, None, None, None):
        await app.label_session_async(
            session_id,
            folder=change.folder,
            tags=change.tags,
            archived=change.archived,
            pinned=change.pinned,
        )
    if change.title is not None:
        await app.rename_session_async(session_id, change.title)


@router.get("/{session_id}/labels", response_model=Labels)
async def read_session_labels(services: Served, session_id: str) -> Response:
    """Return the folder and the tags of a session, whether it is pinned, and whether it is archived."""
    return json_answer(read_labels(await services.app.load_session_async(session_id)))


@router.delete("/{session_id}", status_code=204)
async def delete_session(services: Served, who: Who, session_id: str, if_match: IfMatch = None) -> Response:
    """Delete a session with its files; a run of it is cancelled. A guest of another tenant may not."""
    if services.is_guest(who):
        raise Problem(403, "not-allowed", "You are a guest in this session: its own people may delete it")
    async with services.changing(session_id):
        check_match(await services.app.session_info_async(session_id), if_match)
        await services.runs.clear(session_id)
        await services.app.delete_session_async(session_id)
    return Response(status_code=204)


@router.get("/{session_id}/messages", response_model=MessagePage)
async def read_messages(
    services: Served,
    session_id: str,
    before: Annotated[int | None, Query(ge=0, description="Only messages before this index.")] = None,
    limit: Limit = 50,
) -> Response:
    """Return the last messages of a session, or those before an index."""
    info = await services.app.session_info_async(session_id)
    end = info.messages if before is None else min(before, info.messages)
    found = await services.app.read_messages_async(session_id, before=end, limit=limit)
    first = end - len(found)
    items = [{"index": index, **message.to_dict()} for index, message in enumerate(found, first)]
    return json_answer({"items": items, "before": first or None})


@router.post("/{session_id}/fork", status_code=201, response_model=SessionInfo)
async def fork_session(services: Served, who: Who, session_id: str, fork: Fork) -> Response:
    """Make a branch that ends with a message."""
    app = services.app
    branch = await app.fork_session_async(session_id, upto_index=fork.upto_index, agent_id=fork.agent_id)
    return await _branch_answer(services, who, session_id, branch.session_id)


@router.post("/{session_id}/messages/{index}/edit", status_code=201, response_model=SessionInfo)
async def edit_message(services: Served, who: Who, session_id: str, index: int, edit: Edit) -> Response:
    """Make a branch that ends with another version of a message; a run without a text answers it."""
    branch = await services.app.edit_message_async(session_id, index, edit.content)
    return await _branch_answer(services, who, session_id, branch.session_id)


@router.post("/{session_id}/messages/{index}/regenerate", status_code=201, response_model=SessionInfo)
async def regenerate(services: Served, who: Who, session_id: str, index: int) -> Response:
    """Make a branch that ends before an answer; a run without a text asks the model again."""
    branch = await services.app.regenerate_async(session_id, index)
    return await _branch_answer(services, who, session_id, branch.session_id)


async def _branch_answer(services: Services, who: Principal, session_id: str, branch_id: str) -> Response:
    """Return a new branch; a guest who made it may use it as the session that it comes from."""
    if services.team is not None and services.is_guest(who):
        accounts = services.team.accounts
        await asyncio.to_thread(accounts.invite_to_branch, who.email, session_id, branch_id)
    return info_answer(await services.app.session_info_async(branch_id), 201)


@router.get("/{session_id}/branches", response_model=SessionPage)
async def list_branches(services: Served, who: Who, session_id: str) -> Response:
    """List the session that this one was forked from, the first of all, and all their forks; oldest first.

    Whoever has a link or an invitation sees those of them that are shared as well.
    """
    found = await services.app.branches_async(session_id)
    shared = await services.shared_with(who)
    items = [info.to_dict() for info in found if shared is None or info.id in shared]
    return json_answer({"items": items, "next_cursor": None})


@router.get("/{session_id}/usage", response_model=Usage)
async def read_usage(services: Served, session_id: str) -> Response:
    """Return what models used in a session, and what that cost as far as prices are known."""
    return json_answer(await services.app.session_usage_async(session_id))


@router.get("/{session_id}/next-request", response_model=NextRequest)
async def read_next_request(services: Served, session_id: str) -> Response:
    """Return what the next request would send: messages and tools as plugins leave them, with tokens."""
    return json_answer(await services.app.next_request_async(session_id))


@router.get("/{session_id}/messages/{index}/request", response_model=SentRequest)
async def read_sent_request(services: Served, session_id: str, index: int) -> Response:
    """Return what was sent for an answer: rebuilt from what is stored, secrets left out."""
    return json_answer(await services.app.sent_request_async(session_id, index))


@router.get("/{session_id}/messages/{index}/edit-plan", response_model=EditPlan)
async def read_edit_plan(services: Served, session_id: str, index: int) -> Response:
    """Return what a branch would keep that begins with another version of a message."""
    return json_answer(await services.app.edit_plan_async(session_id, index))


@router.get("/{session_id}/export", response_class=FileResponse, responses=_FILES)
async def export_session(
    services: Served,
    who: Who,
    session_id: str,
    redact: Redact = True,  # noqa: FBT002
    events: Annotated[bool, Query(description="With the log of events.")] = False,  # noqa: FBT002
    form: Form = "zip",
) -> Response:
    """Return a session with its files, to keep or to import elsewhere; or its conversation, to read.

    Whoever has a link gets the conversation to read: the other forms have settings and folders as well.
    """
    if who.session is not None and form not in _FOR_READING:
        raise Problem(
            403, "not-allowed", "The link is for what was said", f"Ask for it with form={_FOR_READING[0]}."
        )

    async def write(folder: Path) -> Path:
        return await _write(services, session_id, folder, form, redact=redact, events=events)

    return await _file(write, f"session-{session_id[:8]}.{form}", _FORMS[form])


async def _write(
    services: Services, session_id: str, folder: Path, form: str, *, redact: bool, events: bool = False
) -> Path:
    """Write a session into a folder, and return the file."""
    path = folder / f"session-{sha256(session_id.encode()).hexdigest()[:8]}.{form}"
    info = await services.app.session_info_async(session_id)
    if form == "zip":
        await services.app.export_session_async(session_id, path, redact=redact, events=events)
    else:
        session = await services.app.load_session_async(session_id)
        text = await asyncio.to_thread(readable, info, session, form, redact=redact)
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
    return path


async def _file(write: Callable[[Path], Awaitable[Path]], name: str, kind: str) -> Response:
    """Return a file that is written into a folder of its own, which is gone once it is sent."""
    folder = tempfile.TemporaryDirectory()
    try:
        path = await write(Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        media_type=kind,
        filename=name,
        headers={
            "cache-control": "no-store",
            "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
        },
        background=BackgroundTask(folder.cleanup),
    )


@router.post("/import", status_code=201, response_model=SessionInfo)
async def import_session(
    request: Request,
    services: Served,
    agent_id: Annotated[str | None, Query()] = None,
    allow_system: Annotated[bool, Query(description="Take system messages over.")] = False,  # noqa: FBT002
) -> Response:
    """Store the visible conversation of an exported file, which is the body of the request.

    A file with system messages is refused with all of them, until somebody who has read them allows them.
    """
    try:
        imported = await services.app.import_session_async(
            await request.body(), agent_id=agent_id, allow_system=allow_system
        )
    except SystemMessagesRefused as refused:
        raise Problem(
            422,
            "system-messages",
            "The file has instructions for the model",
            "Read them, then import it with allow_system=true.",
            errors=[{"field": f"message {place}", "message": text} for place, text in refused.messages],
        ) from refused
    return info_answer(await services.app.session_info_async(imported.id), 201)
