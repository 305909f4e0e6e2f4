"""A file as a stored session.

The file comes from a stranger, unless the caller says otherwise. It brings a conversation, not rights: it
gets new ids, its messages are rebuilt from what a person sees of them (`transcript`), and of the metadata
only the title is kept. Everything else could be sent to the model, or be read by a tool, a plugin or the
permission rules, and tell them what to do on this machine: native history, whose hashes anyone can compute,
history set aside for other providers, summaries and what they replace, the folders to work in, the agent,
overrides of the configuration, runs that wait for approval, the state of plugins, the event log. The result
lists what was dropped.

A system message is an instruction, and a stranger may not give any: such a file is refused until a person has
read the message and agreed to it.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_app.assets.asset import AssetRefused
from agent_app.errors import SessionExists, SessionNotFound
from agent_app.transfer.archive import open_parcel
from agent_app.transfer.format import (
    ASSET_ID,
    EVENTS,
    ImportedSession,
    ImportLimits,
    ImportRefused,
    SystemMessagesRefused,
)
from agent_app.transfer.transcript import visible_messages
from agent_core import ArgumentError, Session, SessionFormatError
from agent_core.clean_text import hides, one_line
from agent_core.frozen import EMPTY
from agent_core.native import (
    ARCHIVE,
    NATIVE_MESSAGES,
    OWNED_METADATA,
    REBUILT,
    new_native,
    read_native,
    write_native,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agent_app.assets import Asset, AssetStore
    from agent_app.store.base import SessionStore
    from agent_app.transfer.archive import Parcel, Source
    from agent_app.transfer.format import PackedAsset

AGENT = "agent_id"
_TITLES = ("title", "title_by")
"""Metadata about the conversation itself; any other is imported only from trusted files."""
_REPORTS = ("dropped_reasoning", "dropped_thinking", "refused_signatures")
"""What providers report about items that they did not send again; it belongs to native history."""

_LONGEST_TITLE = 200
_LONGEST_ID = 200
_BATCH = 500
_DEFAULT = ImportLimits()


def import_session(
    store: SessionStore,
    source: Source,
    *,
    assets: AssetStore | None = None,
    new_ids: bool = True,
    trusted: bool | None = None,
    agent_id: str | None = None,
    metadata: Mapping[str, Any] = EMPTY,
    allow_system: bool | Sequence[str] = False,
    prepare: Callable[[Session], Session] | None = None,
    limits: ImportLimits = _DEFAULT,
) -> ImportedSession:
    """Store a session from a file that `export_session` wrote, or from JSON of the core.

    Only what a person sees of it is imported; the next request rebuilds the native history.

    Args:
        source: The file's bytes, its `Path`, an opened file, or a string of JSON.
        assets: The store for its assets; needed if it has any.
        new_ids: False to keep the ids of the session and its assets, to restore a copy.
        trusted: True to believe the file because it is your own: its native history, system messages and
            event log, and what the session would do next: its agent, folders, overrides, waiting runs. By
            default only if the ids are kept as well.
        agent_id: The agent that it belongs to from now on.
        metadata: Metadata that the session gets here, whatever the file says, such as `workspace_roots`.
        allow_system: Whether system messages of an untrusted file are imported; or the texts of those that a
            person has read and agreed to, as in `SystemMessagesRefused.texts`.
        prepare: Called with the session before it is stored; what it returns is stored.
        limits: How large the file may be.

    Raises:
        ImportRefused: If it is not a session, is damaged, or is larger than allowed; nothing was kept.
        SystemMessagesRefused: If it has system messages that no one has agreed to; nothing was kept.
        SessionExists: If it should keep its id and that is taken.
        ArgumentError: If it has assets and no store for them was passed.
    """
    with open_parcel(source, limits) as parcel:
        if parcel.manifest.assets and assets is None:
            raise ArgumentError(f"the session has {len(parcel.manifest.assets)} assets: pass assets=")
        session = _read_session(parcel.session)
        events = [_read_event(event) for event in parcel.events]
        session = session.with_id(str(uuid4())) if new_ids else _with_free_id(session, store)
        believed = trusted if trusted is not None else not new_ids
        if not believed:
            _check_system(session, allowed=allow_system)
        with ExitStack() as undo:
            taken: Collection[str] = ()
            if assets is not None:
                session, taken = _take_assets(parcel, session, assets, undo, new_ids=new_ids)
            left_out: Sequence[str] = ()
            if not believed:
                session, left_out = _as_seen(session, taken)
                left_out = [*left_out, *(["events"] if events else [])]
                events = []
            session, agent_id = _owned(session, agent_id, parcel.manifest.agent_id if believed else None)
            session = session.with_metadata(metadata) if metadata else session
            session = session if prepare is None else prepare(session)
            store.create(session, agent_id=agent_id, title=_title(parcel.manifest.title))
            undo.callback(store.delete, session.session_id)
            for start in range(0, len(events), _BATCH):
                store.append_events(session.session_id, events[start : start + _BATCH], durability="turn")
            undo.pop_all()
    info = store.info(session.session_id)
    known = {one.name: getattr(info, one.name) for one in fields(info)}
    return ImportedSession(**known, left_out=tuple(left_out))


def _check_system(session: Session, *, allowed: bool | Sequence[str]) -> None:
    """Refuse a file with system messages, unless all of them are allowed, or exactly these."""
    places = [place for place, one in enumerate(session.messages, 1) if one.role == "system"]
    # With what nobody sees in them: whoever asks a person shows that by its numbers.
    made, _ = visible_messages((session.messages[place - 1] for place in places), (), unseen=True)
    found = [(place, str(one.content)) for place, one in zip(places, made, strict=True)]
    if allowed is True or not found:
        return
    if allowed is False or isinstance(allowed, str) or [text for _, text in found] != list(allowed):
        raise SystemMessagesRefused(found)


def _as_seen(session: Session, assets: Collection[str]) -> tuple[Session, list[str]]:
    """Return the session as a person sees it, without native history, and what was dropped."""
    messages, left_out = visible_messages(session.messages, assets)
    known = {key: session.metadata[key] for key in _TITLES if isinstance(session.metadata.get(key), str)}
    kept = {key: _title(value) for key, value in known.items()}
    others = (key for key in session.metadata if key not in {*kept, *OWNED_METADATA, *_REPORTS})
    report = {
        "operation": "import_session",
        "reason": "imported",
        "detail": "the file is not trusted, so its native history was not imported",
        "messages": len(messages),
    }
    had_native = NATIVE_MESSAGES in session.metadata or REBUILT in session.metadata
    made = Session(session.session_id, messages, {**kept, REBUILT: report} if had_native else kept)
    return made, [*sorted(others), *left_out]


def _read_session(data: Any) -> Session:
    try:
        session = Session.from_dict(data)
    except SessionFormatError as error:
        raise ImportRefused(f"it is not a session: {error}") from error
    native = (data.get("metadata") or {}).get(NATIVE_MESSAGES, [])
    if not isinstance(native, list) or not all(isinstance(item, dict) for item in native):
        raise ImportRefused(f"it is not a session: {NATIVE_MESSAGES} must be a list of dicts")
    read_native(session)  # checks its integrity once, and the session remembers the result
    return session


def _read_event(event: Any) -> dict[str, Any]:
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise ImportRefused(f"{EVENTS} has a line that is not an event")
    return {key: value for key, value in event.items() if key != "seq"}


def _with_free_id(session: Session, store: SessionStore) -> Session:
    name = _checked_id(session.session_id)
    with suppress(SessionNotFound):
        store.info(name)
        raise SessionExists(name)
    return session


def _checked_id(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_ID or not _is_plain(name):
        raise ImportRefused(
            "an id in it is empty, too long, or has control characters: import it with new ids"
        )
    return name


def _title(title: str) -> str:
    return one_line(title)[:_LONGEST_TITLE]


def _is_plain(text: str) -> bool:
    return not hides(text) and not {"\n", "\t"} & set(text)


def _owned(session: Session, agent_id: str | None, own: str | None) -> tuple[Session, str | None]:
    """Return the session with its agent: the caller's choice, or else its own."""
    if agent_id is not None:
        return session.with_metadata({AGENT: agent_id}), agent_id
    return session, None if own is None else _checked_id(own)


def _take_assets(
    parcel: Parcel, session: Session, assets: AssetStore, undo: ExitStack, *, new_ids: bool
) -> tuple[Session, Collection[str]]:
    """Put the assets of a file into their store; return the session with their ids there, and these ids."""
    renamed: dict[str, str] = {}
    for packed in parcel.manifest.assets:
        asset = _take_asset(parcel, packed, session.session_id, assets, new_id=new_ids)
        undo.callback(assets.remove, session.session_id, asset.id)
        renamed[packed.id] = asset.id
    session = _with_asset_ids(session, renamed) if new_ids and renamed else session
    return session, renamed.values()


def _take_asset(
    parcel: Parcel, packed: PackedAsset, session_id: str, assets: AssetStore, *, new_id: bool
) -> Asset:
    with parcel.open_asset(packed.member) as content:
        try:
            return assets.put(
                session_id,
                content,
                name=packed.name,
                media_type=packed.media_type,
                asset_id=None if new_id else packed.id,
            )
        except AssetRefused as error:
            raise ImportRefused(str(error)) from error


def _with_asset_ids(session: Session, renamed: Mapping[str, str]) -> Session:
    """Return the session with the new ids of its assets, and with its native history still intact."""
    before = session.to_dict()
    after = _replaced(before, renamed)
    if ARCHIVE in before["metadata"]:
        # History set aside for other providers stays unchanged: its hashes cover the old ids.
        after["metadata"][ARCHIVE] = before["metadata"][ARCHIVE]
    made = Session.from_dict(after)
    native, _ = read_native(session)
    if made == session or native is None:
        return session if made == session else made
    items = made.metadata[NATIVE_MESSAGES]
    sealed = new_native(made.history.prefix(native.covered), items, native.provider, native.models)
    return write_native(made, made.messages, sealed, report=made.metadata.get(REBUILT))


def _replaced(value: Any, renamed: Mapping[str, str]) -> Any:
    """Return JSON values with the ids of assets replaced, wherever they are."""
    if isinstance(value, str):
        return ASSET_ID.sub(lambda found: renamed.get(found[0], found[0]), value)
    if isinstance(value, dict):
        return {key: _replaced(item, renamed) for key, item in value.items()}
    return [_replaced(item, renamed) for item in value] if isinstance(value, list) else value
