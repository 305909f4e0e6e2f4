"""A file as a stored session.

Whoever wrote the file is a stranger, unless the caller says otherwise. It brings a conversation and not
rights: ids are made new, and of the metadata only what is known to tell of the conversation itself is taken.
Everything else may be read by a tool, a plugin or the rules, and tell them what to do on this machine: the
folders to work in, the agent, overrides of the configuration, runs that wait for a yes, the state of plugins.
What was left out is told. The native history comes with it as it is; the core looks at its integrity as it
does with any session, and makes anew what does not fit.
"""

from __future__ import annotations

import unicodedata
from contextlib import ExitStack, suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agent_app.assets.asset import AssetRefused
from agent_app.errors import SessionExists, SessionNotFound
from agent_app.transfer.form import ASSET_ID, EVENTS, ImportedSession, ImportLimits, ImportRefused
from agent_app.transfer.reading import open_parcel
from agent_core import ArgumentError, Session, SessionFormatError
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
    from collections.abc import Mapping

    from agent_app.assets import Asset, AssetStore
    from agent_app.store.base import SessionStore
    from agent_app.transfer.form import PackedAsset
    from agent_app.transfer.reading import Parcel, Source

AGENT = "agent_id"
_REPORTS = ("dropped_reasoning", "dropped_thinking", "refused_signatures")
"""What providers tell of items that they did not send again."""
TOLD = frozenset({*OWNED_METADATA, "title", "title_by", "compactions", *_REPORTS})
"""Metadata that tells of the conversation; all other is taken only from files that are trusted."""

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
    limits: ImportLimits = _DEFAULT,
) -> ImportedSession:
    """Store a session from a file that `export_session` wrote, or from JSON of the core.

    Args:
        source: The file's bytes, its `Path`, an opened file, or a string of JSON.
        assets: Where its assets go; needed if it has any.
        new_ids: False to give the session and its assets the ids that they had, to restore a copy.
        trusted: True to take over what the session would do next: its agent, its folders, overrides, waiting
            runs. By default only where the ids are kept as well.
        agent_id: The agent that it belongs to from now on.
        metadata: What the session has here, whatever the file says, such as `workspace_roots`.
        limits: How much the file may bring.

    Raises:
        ImportRefused: If it is no session, is damaged, or is larger than allowed; nothing was kept.
        SessionExists: If it shall keep its id and that is taken.
        ArgumentError: If it has assets and there is nowhere to put them.
    """
    with open_parcel(source, limits) as parcel:
        if parcel.manifest.assets and assets is None:
            raise ArgumentError(f"the session has {len(parcel.manifest.assets)} assets: pass assets=")
        session = _read_session(parcel.session)
        events = [_read_event(event) for event in parcel.events]
        session = session.with_id(str(uuid4())) if new_ids else _with_free_id(session, store)
        with ExitStack() as undo:
            if assets is not None:
                session = _take_assets(parcel, session, assets, undo, new_ids=new_ids)
            believed = trusted if trusted is not None else not new_ids
            left_out = () if believed else _powers(session)
            session, agent_id = _empowered(session, agent_id, parcel.manifest.agent_id, trusted=believed)
            session = session.with_metadata(metadata) if metadata else session
            store.create(session, agent_id=agent_id, title=_title(parcel.manifest.title))
            undo.callback(store.delete, session.session_id)
            for start in range(0, len(events), _BATCH):
                store.append_events(session.session_id, events[start : start + _BATCH], durability="turn")
            undo.pop_all()
    info = store.info(session.session_id)
    return ImportedSession(**{one.name: getattr(info, one.name) for one in fields(info)}, left_out=left_out)


def _powers(session: Session) -> tuple[str, ...]:
    """Return the metadata that may decide what happens next, by key."""
    return tuple(sorted(key for key in session.metadata if key not in TOLD))


def _read_session(data: Any) -> Session:
    try:
        session = Session.from_dict(data)
    except SessionFormatError as error:
        raise ImportRefused(f"it holds no session: {error}") from error
    native = (data.get("metadata") or {}).get(NATIVE_MESSAGES, [])
    if not isinstance(native, list) or not all(isinstance(item, dict) for item in native):
        raise ImportRefused(f"it holds no session: {NATIVE_MESSAGES} must be a list of dicts")
    read_native(session)  # if it is whole, that is known from here on
    return session


def _read_event(event: Any) -> dict[str, Any]:
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise ImportRefused(f"{EVENTS} has a line that is no event")
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
    visible = "".join(char if _is_plain(char) else " " for char in title)
    return " ".join(visible.split())[:_LONGEST_TITLE]


def _is_plain(text: str) -> bool:
    return not any(unicodedata.category(char).startswith("C") for char in text)


def _empowered(
    session: Session, agent_id: str | None, own: str | None, *, trusted: bool
) -> tuple[Session, str | None]:
    """Return the session with what it may decide itself, and the agent that it belongs to."""
    metadata = {key: item for key, item in session.metadata.items() if trusted or key in TOLD}
    if agent_id is not None:
        metadata[AGENT] = agent_id
    if metadata != session.metadata:
        session = Session(session.session_id, session.messages, metadata).sealed(session.seal)
    if agent_id is None and trusted and own is not None:
        agent_id = _checked_id(own)
    return session, agent_id


def _take_assets(
    parcel: Parcel, session: Session, assets: AssetStore, undo: ExitStack, *, new_ids: bool
) -> Session:
    """Put the assets of a file into their store, and return the session with the ids that they have there."""
    renamed: dict[str, str] = {}
    for packed in parcel.manifest.assets:
        asset = _take_asset(parcel, packed, session.session_id, assets, new_id=new_ids)
        undo.callback(assets.remove, session.session_id, asset.id)
        renamed[packed.id] = asset.id
    return _with_asset_ids(session, renamed) if new_ids and renamed else session


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
    """Return the session speaking of its assets by their new ids, and as whole as it was before."""
    before = session.to_dict()
    after = _replaced(before, renamed)
    if ARCHIVE in before["metadata"]:
        # What was set aside of other providers stays as it is: its hashes are of the old words.
        after["metadata"][ARCHIVE] = before["metadata"][ARCHIVE]
    made = Session.from_dict(after)
    native, _ = read_native(session)
    if made == session or native is None:
        return session if made == session else made
    items = made.metadata[NATIVE_MESSAGES]
    sealed = new_native(made.history.prefix(native.covered), items, native.provider, native.models)
    return write_native(made, made.messages, sealed, report=made.metadata.get(REBUILT))


def _replaced(value: Any, renamed: Mapping[str, str]) -> Any:
    """Return plain data with the ids of assets replaced, wherever they stand."""
    if isinstance(value, str):
        return ASSET_ID.sub(lambda found: renamed.get(found[0], found[0]), value)
    if isinstance(value, dict):
        return {key: _replaced(item, renamed) for key, item in value.items()}
    return [_replaced(item, renamed) for item in value] if isinstance(value, list) else value
