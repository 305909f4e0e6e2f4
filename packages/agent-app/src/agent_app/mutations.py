"""What an application action wants done to sessions: read, checked, and done as a whole or not at all.

Nothing is written before everything is known to be possible: the result is read, ids that are taken and
sessions that changed since the action saw them are refused, those to be deleted are held, and the lifecycles
of the direct calls have run. Then one transaction of the store has all of it. Attachments of what is gone are
removed behind it, as `delete_session` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import agent_core
from agent_app import journal
from agent_app.agents import choose_agent
from agent_app.errors import (
    RevisionConflict,
    SessionBusy,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    SessionOutdated,
)
from agent_app.services import AGENT, is_older
from agent_app.session_writer import new_title, with_writers
from agent_app.store.base import Changes
from agent_app.store.sql import check_name
from agent_core import ArgumentError, PluginError, Session, SessionFormatError
from agent_core.display import validate_effects
from agent_core.log import get_logger
from agent_core.native import INTEGRITY, OWNED_METADATA
from agent_core.steps import Flow, run_blocking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app.app_plugins import ApplicationPlugins
    from agent_app.services import Readings, Services
    from agent_app.session_writer import SessionWriter
    from agent_app.store.base import Stored

Lifecycle = Callable[[str, Session, Mapping[str, Any]], Flow[Session]]
"""Runs the lifecycle of that name on a session, with some facts for plugins, and returns the session."""

DELETE_REASON = "plugin_action"
_log = get_logger("app")
_KEYS = ("created", "updated", "deleted")
_STALE = "load it in the action that changes it, and run the action again; nothing was changed"


@dataclass(frozen=True, slots=True)
class Mutations:
    """Sessions to store anew, sessions to change, and ids of sessions to delete."""

    created: tuple[Session, ...] = ()
    updated: tuple[Session, ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def read(cls, plugin: str, result: Mapping[str, Any]) -> Mutations:
        """Return the mutations of an action's result.

        Raises:
            PluginError: If they are not what they should be; none of them is carried out then.
        """
        given = result.get("mutations") or {}
        if not isinstance(given, Mapping) or not set(given) <= set(_KEYS):
            raise _wrong(plugin, f"mutations must be a dict with {', '.join(_KEYS)}")
        deleted = given.get("deleted") or ()
        if not isinstance(deleted, (list, tuple)) or not all(isinstance(one, str) for one in deleted):
            raise _wrong(plugin, "mutations.deleted must be a list of session ids")
        read = cls(
            _sessions(plugin, "created", given.get("created")),
            _sessions(plugin, "updated", given.get("updated")),
            tuple(deleted),
        )
        named = Counter(session_id for ids in read.ids().values() for session_id in ids)
        for session_id, times in named.most_common(1):
            if times > 1:
                raise _wrong(plugin, f"mutations name session {session_id!r} more than once")
        return read

    def __bool__(self) -> bool:
        return bool(self.created or self.updated or self.deleted)

    def of(self, session: Session) -> Session:
        """Return the session as these mutations leave it, if they change it."""
        changed = [one for one in self.updated if one.session_id == session.session_id]
        return changed[-1] if changed else session

    def ids(self) -> dict[str, list[str]]:
        """Return which sessions were made, changed and deleted, for front ends."""
        return {
            "created": [one.session_id for one in self.created],
            "updated": [one.session_id for one in self.updated],
            "deleted": list(self.deleted),
        }


def begins_with(session: Session, before: Session) -> bool:
    """Say whether a session has all messages of another, in their places; what both share is not read."""
    mine, theirs = session.history, before.history
    same = theirs.shared_length(mine)
    return len(mine) >= len(theirs) and all(
        mine[place] == theirs[place] for place in range(same, len(theirs))
    )


def own_part(plugin: str, mutations: Mutations, session: Session, readings: Readings) -> Mutations:
    """Return what an action of a lifecycle wants done to other sessions than the lifecycle's own.

    Raises:
        PluginError: If it would create or delete its own, which the operation under way has in hand.
        SessionOutdated: If its own lacks messages that are about to be stored: it was made of an older one.
    """
    own = session.session_id
    for key, ids in (("create", mutations.ids()["created"]), ("delete", mutations.deleted)):
        if own in ids:
            raise PluginError(
                plugin, "execute_action", f"a lifecycle cannot {key} the session that it is about"
            )
    changed = mutations.of(session)
    lost = len(changed.history) < len(session.history)
    if lost or is_older(changed, session) or (own in readings and not begins_with(changed, session)):
        raise SessionOutdated(own, "change context['session'], which is about to be stored")
    return replace(mutations, updated=tuple(one for one in mutations.updated if one.session_id != own))


def carry_out(
    services: Services, mutations: Mutations, readings: Readings, lifecycle: Lifecycle
) -> Flow[None]:
    """Do everything that an action asked for, or nothing.

    Args:
        readings: The revisions of sessions that the action has seen.

    Raises:
        RevisionConflict, SessionOutdated: If a session changed since the action saw it.
        SessionExists: If the id of a session that is to be created is taken.
        SessionNotFound: If a session that is to be changed or deleted is not there.
        SessionBusy, SessionHeld: If a session is in use, here or in another process.
        ArgumentError: If an id cannot be one, or a session would change its agent.
    """
    if not mutations:
        return
    changing = mutations.ids()["created"] + mutations.ids()["updated"]
    begun: list[str] = []
    try:
        for session_id in changing:
            if services.active.begin(session_id) is None:
                raise SessionBusy(session_id)
            begun.append(session_id)
        bases = yield from run_blocking(partial(_check, services, mutations, readings))
        work = partial(_carry_out, services, mutations, bases, lifecycle)
        yield from with_writers(services, mutations.deleted, work) if mutations.deleted else work(())
    finally:
        for session_id in begun:
            services.active.end(session_id)


def remove_assets(services: Services, session_ids: Sequence[str]) -> None:
    """Remove the attachments of sessions that are gone."""
    if services.assets is None:
        return
    if sum(services.assets.delete_session(one) for one in session_ids):
        services.assets.collect()


def _check(services: Services, mutations: Mutations, readings: Readings) -> list[Stored]:
    """Refuse what cannot be done before anything is; return the stored sessions that are to be changed."""
    for session in mutations.created:
        with suppress(SessionNotFound):
            services.store.info(session.session_id)
            raise SessionExists(session.session_id)
        choose_agent(services.config, session.metadata.get(AGENT))
        check_name("session id", session.session_id)
    for session_id in (*mutations.ids()["updated"], *mutations.deleted):
        holder = services.store.holder(session_id)
        if holder is not None and holder.owner != services.owner:
            raise SessionHeld(session_id, holder)
    bases = []
    for one in mutations.updated:
        stored = services.read(one.session_id)
        if one.metadata.get(AGENT) not in (None, stored.session.metadata.get(AGENT)):
            raise ArgumentError(
                f"mutations cannot give session {one.session_id!r} to another agent: call switch_agent()"
            )
        origin = services.recent.origin(one)
        bases.append(_base(stored, one, readings.get(one.session_id, {}), origin))
    return bases


def _base(stored: Stored, session: Session, seen: Mapping[int, Session], origin: int | None) -> Stored:
    """Return what a session is saved over, if it was made from that.

    A session whose origin is known must come from what is stored now, and may be changed in any way. A dict
    tells its origin only by the integrity of its native history. Otherwise an action that has loaded the
    session once may change anything, and one that has not, or has seen it at several revisions, may only add
    messages: nobody can tell what it was made from. In the second case its metadata tells if it was made
    from an older one.
    """
    if origin is not None:
        if origin != stored.revision:
            raise RevisionConflict(session.session_id, origin, stored.revision)
        return stored
    if 0 < _covered(session) < _covered(stored.session):
        raise SessionOutdated(session.session_id, _STALE)
    older = {revision: one for revision, one in seen.items() if revision != stored.revision}
    undone = any(_undoes(session, one, stored.session) for one in older.values())
    if seen and (stored.revision not in seen or undone):
        raise RevisionConflict(session.session_id, max(older), stored.revision)
    if (older or not seen) and not begins_with(session, stored.session):
        raise SessionOutdated(session.session_id, _STALE)
    return stored


def _covered(session: Session) -> int:
    """Return how many messages the integrity of native history is about; 0 without one."""
    integrity = session.metadata.get(INTEGRITY)
    count = integrity.get("messages") if isinstance(integrity, Mapping) else None
    return count if isinstance(count, int) else 0


def _undoes(session: Session, old: Session, stored: Session) -> bool:
    """Say whether a session has something in its metadata as it was, and not as it is stored now."""
    was, now, wanted = old.metadata, stored.metadata, session.metadata
    keys = (was.keys() | now.keys()) - OWNED_METADATA
    return any(was.get(key) != now.get(key) and wanted.get(key) == was.get(key) for key in keys)


def _carry_out(
    services: Services,
    mutations: Mutations,
    bases: Sequence[Stored],
    lifecycle: Lifecycle,
    writers: Sequence[SessionWriter],
) -> Flow[None]:
    """Let plugins look at each session as in the direct call, then write all of them at once."""
    created: list[Session] = []
    for session in mutations.created:
        chosen = choose_agent(services.config, session.metadata.get(AGENT))
        owned = session if chosen is None else session.with_metadata({AGENT: chosen})
        made = yield from lifecycle("session_create", owned, {})
        created.append((yield from lifecycle("session_save_prepare", made, {})))
    updated: list[Session] = []
    for session in mutations.updated:
        looked_at = yield from lifecycle("session_save_prepare", session, {})
        updated.append(looked_at)
    for writer in writers:
        yield from lifecycle("session_delete_prepare", writer.session, {"delete_reason": DELETE_REASON})
    yield from run_blocking(partial(_write, services, created, updated, bases, writers))


def _write(
    services: Services,
    created: Sequence[Session],
    updated: Sequence[Session],
    bases: Sequence[Stored],
    writers: Sequence[SessionWriter],
) -> None:
    store = services.store
    with store.writing():
        stored = [journal.create(services, one) for one in created]
        for session, base in zip(updated, bases, strict=True):
            title = new_title(base.session, session)
            changes = None if title is None else Changes(title=title)
            stored.append(journal.save(services, session, base, changes))
        for writer in writers:
            store.delete(writer.session.session_id, lease=writer.lease, reason=DELETE_REASON)
    for one in stored:
        services.recent.keep(one)
        services.hub.wake(one.session.session_id)  # now that it can be read
    for writer in writers:
        services.forget(writer.session.session_id)
    remove_assets(services, [writer.session.session_id for writer in writers])


def public_result(plugins: ApplicationPlugins, plugin: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what front ends see of a result: mutations as ids, `display` and `ui_effects` checked."""
    public = {
        key: value for key, value in result.items() if key not in ("mutations", "display", "ui_effects")
    }
    if result.get("mutations"):
        public["mutations"] = Mutations.read(plugin, result).ids()
    if "display" in result and (display := _display(plugins, plugin, result["display"])) is not None:
        public["display"] = display
    if "ui_effects" in result and (effects := _effects(plugin, result["ui_effects"])):
        public["ui_effects"] = effects
    return public


def _display(plugins: ApplicationPlugins, plugin: str, given: Any) -> dict[str, Any] | None:
    report = agent_core.validate_display(given, runnable=plugins.is_runnable)
    for warning in report.warnings:
        _log.warning("display_changed", plugin=plugin, what=warning)
    return report.display


def _effects(plugin: str, given: Any) -> list[dict[str, Any]]:
    report = validate_effects(given)
    for warning in report.warnings:
        _log.warning("ui_effects_changed", plugin=plugin, what=warning)
    return report.effects


def _sessions(plugin: str, key: str, given: Any) -> tuple[Session, ...]:
    if given is not None and not isinstance(given, (list, tuple)):
        raise _wrong(plugin, f"mutations.{key} must be a list of sessions")
    return tuple(_session(plugin, key, one) for one in given or ())


def _session(plugin: str, key: str, given: Any) -> Session:
    if isinstance(given, Session):
        return given
    try:
        return Session.from_dict(given)
    except SessionFormatError as error:
        raise _wrong(plugin, f"mutations.{key}: {error}") from error


def _wrong(plugin: str, problem: str) -> PluginError:
    return PluginError(plugin, "execute_action", problem)
