"""What can be done with sessions: made, read, forked, edited, switched, deleted. Each is a flow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

from agent_app import grants as permissions, journal, transfer
from agent_app.agents import build_agent_config, choose_agent
from agent_app.attachments import with_content
from agent_app.errors import (
    DecisionNotAccepted,
    RevisionConflict,
    SessionBusy,
    SessionHeld,
    SessionNotFound,
    SessionOutdated,
    StoreError,
)
from agent_app.events import read_cursor
from agent_app.labels import labelled, labels_of, names_in_use, read_labels
from agent_app.lifecycle import (
    SideUsage,
    application_context,
    execute,
    lifecycle,
    list_summary,
    mutate,
    somebody_acts,
)
from agent_app.mutations import Mutations, begins_with, public_result, remove_assets
from agent_app.run import save_prepared
from agent_app.services import AGENT, caller_context, core_of, effective_config, read_whole
from agent_app.session_writer import TITLE, TITLE_BY, SessionWriter, new_title, with_writer
from agent_app.store.base import Changes, InputMode, Page, Waiting
from agent_app.store.pages import is_long
from agent_core import (
    ActionInputError,
    ActionNotConfirmedError,
    AgentError,
    ArgumentError,
    ArgumentTypeError,
    File,
    Message,
    MessageIndexError,
    PluginError,
    Session,
    UnknownActionError,
)
from agent_core.actions import check_confirmed, is_confirmed
from agent_core.dict_form import replace
from agent_core.drivers import call
from agent_core.log import get_logger
from agent_core.steps import Flow, run_blocking
from agent_runtime.errors import DecisionError, describe
from agent_runtime.prompt import as_part
from agent_runtime.suspension import RUN, Decision, Suspension, match_decisions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from agent_app.attachments import Attachments
    from agent_app.services import ActiveRun, Services
    from agent_app.store.base import Approval, Lease, SessionInfo, Stored
    from agent_app.transfer import ImportedSession
    from agent_core import AgentCore
    from agent_core.events import ChangeEvent

INPUT_KEY = "input_key"
"""Where the metadata of a message has the key under which it was enqueued."""
_LOOKED_THROUGH = 2000
"""How many events of a log are looked through for such a key."""
_log = get_logger("app")


def create_ephemeral(
    services: Services, agent_id: str | None, session_id: str | None, metadata: Mapping[str, Any] | None
) -> Flow[Session]:
    """Make a session that is not stored yet; its plugins set it up."""
    chosen = choose_agent(services.config, agent_id)
    owned = {} if chosen is None else {AGENT: chosen}
    session = Session(session_id or str(uuid4()), (), {**(metadata or {}), **owned})
    outcome = yield from lifecycle(services, "session_create", session)
    return outcome.session


def create(
    services: Services, agent_id: str | None, session_id: str | None, metadata: Mapping[str, Any] | None
) -> Flow[Session]:
    """Make a session and store it."""
    session = yield from create_ephemeral(services, agent_id, session_id, metadata)
    outcome = yield from lifecycle(services, "session_save_prepare", session)
    return (yield from _store_new(services, outcome.session))


def _store_new(services: Services, session: Session) -> Flow[Session]:
    stored = yield from run_blocking(partial(journal.create, services, session), services.lane)
    services.recent.keep(stored)
    return stored.session


def load(services: Services, session_id: str) -> Flow[Session]:
    """Return a stored session."""
    stored = services.at_hand(session_id)
    if stored is None:
        stored = yield from run_blocking(partial(services.read, session_id), services.lane)
    return stored.session


def read_messages(services: Services, session_id: str, before: int | None, limit: int) -> Flow[list[Message]]:
    """Return some messages of a session without the rest."""
    read = partial(services.store.messages, session_id, before=before, limit=limit)
    return list((yield from run_blocking(read)))


def save(services: Services, session: Session, *, replace: bool) -> Flow[Session]:
    """Store what is new in a session, or all of one that was not stored so far.

    Raises:
        SessionOutdated: If messages that are stored would be lost, and *replace* does not want that.
    """
    if services.active.begin(session.session_id) is None:
        raise SessionBusy(session.session_id)
    try:
        outcome = yield from lifecycle(services, "session_save_prepare", session)
        # One transaction, which checks that nobody else is writing, so that no lease need be taken.
        return (yield from run_blocking(partial(_save, services, outcome.session, replace=replace)))
    finally:
        services.active.end(session.session_id)


def _save(services: Services, session: Session, *, replace: bool) -> Session:
    known = services.recent.get(session.session_id)
    try:
        if known is not None:  # the save itself notices if that is not what is stored any more
            return _save_over(services, known, session, replace=replace)
    except (RevisionConflict, SessionNotFound):
        services.recent.forget(session.session_id)
    try:
        return _save_over(services, services.read(session.session_id), session, replace=replace)
    except SessionNotFound:
        return services.recent.keep(journal.create(services, session)).session


def _save_over(services: Services, before: Stored, session: Session, *, replace: bool) -> Session:
    if not replace and not begins_with(session, before.session):
        raise SessionOutdated(session.session_id)
    title = new_title(before.session, session)
    changes = None if title is None else Changes(title=title)
    return services.recent.keep(journal.save(services, session, before, changes)).session


def delete(services: Services, session_id: str, reason: str) -> Flow[None]:
    """Delete a session with its assets, after its plugins had their last chance; a run of it is cancelled."""

    def work(writer: SessionWriter, _active: ActiveRun) -> Flow[None]:
        facts = {"delete_reason": reason}
        yield from lifecycle(services, "session_delete_prepare", writer.session, facts=facts)
        yield from run_blocking(partial(writer.delete, reason))

    yield from with_writer(services, session_id, work, take=True)
    yield from run_blocking(partial(remove_assets, services, [session_id]))


def fork(services: Services, session_id: str, upto_index: int, agent_id: str | None = None) -> Flow[Session]:
    """Make a session that begins like another; the other stays as it is."""
    source = yield from load(services, session_id)
    place = _place(source, upto_index, "upto_index")
    forked = yield from _forked(services, source, place)
    return (yield from _store_fork(services, source, forked, place + 1, agent_id))


def _forked(services: Services, source: Session, place: int) -> Flow[Session]:
    core, config = core_of(services, source)
    fork = partial(core.fork_session, source, config, upto_index=place, new_session_id=str(uuid4()))
    # Of a long session the core reads pages, or all if it must.
    return (yield from run_blocking(fork)) if is_long(source.messages) else fork()


def _place(session: Session, index: int, name: str) -> int:
    """Return the place that an index means; a negative one counts from the end."""
    if not isinstance(index, int) or isinstance(index, bool):
        raise ArgumentError(f"{name} must be the index of a message, not {index!r}")
    count = len(session.messages)
    if not -count <= index < count:
        raise MessageIndexError(name, index, count)
    return index % count


def _store_fork(
    services: Services, source: Session, forked: Session, upto: int, agent_id: str | None
) -> Flow[Session]:
    forked = _without_run(forked)
    if agent_id is not None:
        forked = forked.with_metadata({AGENT: choose_agent(services.config, agent_id)})
    facts = {}
    if somebody_acts(services, "session_fork"):
        yield from read_whole(source)
        facts = {"original_session": source.frozen_dict()}
    outcome = yield from lifecycle(services, "session_fork", forked, facts=facts)
    outcome = yield from lifecycle(services, "session_save_prepare", outcome.session)
    known = services.recent.get(source.session_id)
    base = known if known is not None and known.session is source else None
    stored = yield from run_blocking(
        partial(journal.fork, services, source.session_id, outcome.session, upto, base)
    )
    services.recent.keep(stored)
    yield from run_blocking(
        partial(permissions.inherit, services, source.session_id, stored.session.session_id)
    )
    if services.assets is not None:
        yield from run_blocking(partial(services.assets.share, source.session_id, stored.session.session_id))
    return stored.session


def _without_run(session: Session) -> Session:
    """Return a branch without the run that waits in its source: one decision must not run a call twice."""
    if RUN not in session.metadata:
        return session
    kept = {key: value for key, value in session.metadata.items() if key != RUN}
    return replace(session, metadata=kept).sealed(session.seal)


def edit_message(services: Services, session_id: str, index: int, content: str) -> Flow[Session]:
    """Make a branch that ends with another version of a message."""
    source = yield from load(services, session_id)
    place = _place(source, index, "index")
    branch = yield from _forked(services, source, place)
    core, config = core_of(services, source)
    edit = partial(core.modify_message, branch, place, content, config)
    edited = (yield from run_blocking(edit)) if is_long(branch.messages) else edit()
    return (yield from _store_fork(services, source, edited, place, None))


def regenerate(services: Services, session_id: str, index: int) -> Flow[Session]:
    """Make a branch that ends before an answer, so that the model can give another."""
    source = yield from load(services, session_id)
    first = _place(source, index, "index")
    if source.messages[first].role != "assistant":
        raise ArgumentError(f"message {index} of session {session_id!r} is not an answer of the model")
    while first > 0 and source.messages[first - 1].role in ("assistant", "tool"):
        first -= 1
    if first == 0:
        raise ArgumentError(f"nothing comes before message {index} of session {session_id!r}")
    return (yield from fork(services, session_id, first - 1))


def switch_agent(services: Services, session_id: str, agent_id: str) -> Flow[Session]:
    """Give a session to another agent."""
    chosen = choose_agent(services.config, agent_id)

    def work(writer: SessionWriter, _active: ActiveRun) -> Flow[Session]:
        before = services.agent_of(writer.session)
        facts = {"previous_agent_id": before, "next_agent_id": chosen}
        outcome = yield from lifecycle(services, "agent_switch_prepare", writer.session, facts=facts)
        switched = outcome.session.with_metadata({AGENT: chosen})
        outcome = yield from lifecycle(services, "agent_switch_complete", switched, facts=facts)
        writer.log([{"type": "agent_switched", "previous_agent_id": before, "agent_id": chosen}])
        yield from save_prepared(services, writer, outcome.session, agent_id=chosen)
        return writer.session

    return (yield from with_writer(services, session_id, work))


def update_agent(
    services: Services, agent_id: str, session: Session
) -> Flow[tuple[AgentCore, dict[str, Any], Session]]:
    """Return an agent's core and configuration, and the session as that agent's; nothing is stored."""
    chosen = choose_agent(services.config, agent_id)
    agent = yield from run_blocking(partial(services.resolve, session, chosen))
    own = {AGENT: agent.spec.id}
    return agent.core, build_agent_config(agent.config, agent.spec.id), session.with_metadata(own)


def list_sessions(
    services: Services,
    query: str | None,
    cursor: str | None,
    limit: int,
    has: Sequence[str] = (),
    lacks: Sequence[str] = (),
) -> Flow[Page]:
    """Return stored sessions by pages, the last changed first, with what plugins add to each."""
    listing = partial(services.store.list, query=query, cursor=cursor, limit=limit, has=has, lacks=lacks)
    page = yield from run_blocking(listing)
    if not services.plugins.triggered("session_list"):
        return page
    summaries = []
    for info in page.sessions:
        extra = yield from run_blocking(partial(list_summary, services, info))
        summaries.append(replace(info, extra=extra))
    return Page(tuple(summaries), page.cursor)


def label(
    services: Services,
    session_id: str,
    folder: str | None,
    tags: Sequence[str] | None,
    archived: bool | None,  # noqa: FBT001 - one of several that are passed on
    pinned: bool | None,  # noqa: FBT001
) -> Flow[dict[str, Any]]:
    """Put a session into a folder or the archive, pin it, give it tags; return what it has now."""
    session = yield from load(services, session_id)
    changed = labelled(session, folder=folder, tags=tags, archived=archived, pinned=pinned)
    if changed.metadata != session.metadata:
        changed = yield from save(services, changed, replace=False)
    return read_labels(changed)


def session_labels(services: Services, session_ids: Sequence[str]) -> Flow[dict[str, dict[str, Any]]]:
    """Return the labels of sessions, by id, all in one question."""
    flags = yield from run_blocking(partial(services.store.flags, session_ids))
    return {session_id: labels_of(flags.get(session_id, ())) for session_id in session_ids}


def labels_in_use(services: Services) -> Flow[dict[str, Any]]:
    """Return the folders and tags that there are."""
    return names_in_use((yield from run_blocking(services.store.flag_counts)))


def rename(services: Services, session_id: str, title: str) -> Flow[SessionInfo]:
    """Give a session another title, after its plugins had a last look at it.

    A session that is in use gets its title all the same; what uses it lets the plugins look when it saves.
    """
    if not isinstance(title, str):
        raise ArgumentError(f"title must be a string, not {type(title).__name__}")
    with suppress(SessionBusy, SessionHeld):
        yield from with_writer(services, session_id, partial(_look_at_renamed, services, title))
    return (yield from run_blocking(partial(_rename, services, session_id, title)))


def _rename(services: Services, session_id: str, title: str) -> SessionInfo:
    def change() -> tuple[str, SessionInfo]:
        before = services.store.info(session_id).title  # the save just now may have changed it
        return before, services.store.rename(session_id, title)

    def tell(changed: tuple[str, SessionInfo]) -> ChangeEvent | None:
        before, info = changed
        return {"type": "session_renamed", "title": info.title} if before != info.title else None

    return journal.record(services, session_id, change, tell)[1]


def _look_at_renamed(services: Services, title: str, writer: SessionWriter, _active: ActiveRun) -> Flow[None]:
    # Plugins that give titles look here, and leave alone what a person chose.
    renamed = writer.session.with_metadata({TITLE: title, TITLE_BY: "person" if title else None})
    outcome = yield from lifecycle(services, "session_save_prepare", renamed, facts={"title": title})
    writer.keep(outcome.session)
    yield from run_blocking(writer.commit)


def find_sessions(services: Services, given: str, limit: int) -> Flow[Sequence[SessionInfo]]:
    """Return the sessions whose id begins with a text, then those whose title it is."""
    return (yield from run_blocking(partial(services.store.find, given, limit=limit)))


def first_messages(services: Services, session_ids: Sequence[str]) -> Flow[dict[str, Message]]:
    """Return the first message of each session that has one, by id."""
    return (yield from run_blocking(partial(services.store.first_messages, session_ids)))


def session_info(services: Services, session_id: str) -> Flow[SessionInfo]:
    """Return what a list shows of one session."""
    return (yield from run_blocking(partial(services.store.info, session_id), services.lane))


def branches(services: Services, session_id: str) -> Flow[Sequence[SessionInfo]]:
    """Return a session with what it was forked from, and the forks of all of these."""
    return (yield from run_blocking(partial(services.store.family, session_id)))


def holder(services: Services, session_id: str) -> Flow[Lease | None]:
    """Return who may write a session now."""
    return (yield from run_blocking(partial(services.store.holder, session_id)))


def events(services: Services, session_id: str, after: int, limit: int) -> Flow[Sequence[dict[str, Any]]]:
    """Return logged events of a session behind a number."""
    return (
        yield from run_blocking(
            partial(services.store.events, session_id, after=after, limit=limit), services.lane
        )
    )


def feed(services: Services, after: str, limit: int) -> Flow[Sequence[dict[str, Any]]]:
    """Return logged events of all sessions behind a cursor."""
    position = read_cursor(after)
    return (yield from run_blocking(partial(services.store.feed, after=position, limit=limit), services.lane))


def feed_end(services: Services) -> Flow[str]:
    """Return the cursor of the last event of all sessions."""
    return str((yield from run_blocking(services.store.feed_end, services.lane)))


def last_event(services: Services, session_id: str) -> Flow[int]:
    """Return the number of a session's last event."""
    return (yield from run_blocking(partial(services.last_event, session_id), services.lane))


def enqueue(
    services: Services,
    session_id: str,
    text: str,
    mode: InputMode,
    attachments: Attachments,
    key: str | None = None,
) -> Flow[Waiting]:
    """Keep a message until it is delivered, and stop the run that it should interrupt."""
    if mode not in get_args(InputMode):
        raise ArgumentError(f"mode must be one of {', '.join(get_args(InputMode))}, not {mode!r}")
    messages = _something(text, attachments)
    kept: Waiting = yield from run_blocking(partial(_keep_input, services, session_id, messages, mode, key))
    if mode == "interrupt":
        services.app.interrupt(session_id)
    return kept


def _keep_input(
    services: Services, session_id: str, messages: list[Message], mode: InputMode, key: str | None
) -> Waiting:
    # What is attached is read now: whoever delivers the message may be another process, and much later.
    message = with_content(messages, services.assets, session_id)[0].to_dict()
    put = partial(services.store.put_input, session_id, message, mode)
    if key is None:
        return journal.record(services, session_id, put, journal.queued)
    message["metadata"] = {**message.get("metadata", {}), INPUT_KEY: key}
    with services.store.transaction(session_id):  # of two requests under one key, the second finds the first
        before = _input_under(services, session_id, key)
        if before is None:
            kept = journal.record(services, session_id, put, journal.queued)
        else:
            kept = Waiting(
                seq=before["input"],
                session_id=session_id,
                message=before["message"],
                mode=before["mode"],
                created=0.0,
            )
    services.hub.wake(session_id)
    return kept


def input_under(services: Services, session_id: str, key: str) -> Flow[dict[str, Any] | None]:
    """Return the event of a message that was queued under a key; None if there is none."""
    return (yield from run_blocking(partial(_input_under, services, session_id, key)))


def _input_under(services: Services, session_id: str, key: str) -> dict[str, Any] | None:
    after = max(0, services.last_event(session_id) - _LOOKED_THROUGH)
    while events := services.store.events(session_id, after=after, limit=500):
        for event in events:
            if event["type"] == "input_queued" and event["message"].get("metadata", {}).get(INPUT_KEY) == key:
                return event
        after = events[-1]["seq"]
    return None


def _something(text: str, attachments: Attachments) -> list[Message]:
    messages = user_message(text, attachments)
    if not messages:
        raise ArgumentError("there is nothing to say: the text is empty")
    return messages


def queued(services: Services, session_id: str) -> Flow[Sequence[Waiting]]:
    """Return the messages that wait to be delivered."""
    return (yield from run_blocking(partial(services.store.inputs, session_id)))


def edit_queued(
    services: Services,
    session_id: str,
    seq: int,
    text: str,
    mode: InputMode | None,
    attachments: Attachments,
) -> Flow[Waiting | None]:
    """Change a queued message; None if it does not wait any more."""
    messages = _something(text, attachments)

    def edit() -> Waiting | None:
        known = [one for one in services.store.inputs(session_id) if one.seq == seq]
        if not known:
            return None
        message = with_content(messages, services.assets, session_id)[0].to_dict()
        return services.store.edit_input(session_id, seq, message, mode or known[0].mode)

    return (yield from run_blocking(partial(journal.record, services, session_id, edit, journal.edited)))


def withdraw(services: Services, session_id: str, seq: int) -> Flow[bool]:
    """Take a queued message back."""

    def tell(dropped: bool) -> ChangeEvent | None:  # noqa: FBT001 - what the store answers
        return {"type": "input_withdrawn", "input": seq} if dropped else None

    drop = partial(services.store.drop_input, session_id, seq)
    return (yield from run_blocking(partial(journal.record, services, session_id, drop, tell)))


def approvals(services: Services, session_id: str | None, *, decided: bool) -> Flow[Sequence[Approval]]:
    """Return the decisions that runs wait for, and perhaps those that were made."""
    return (yield from run_blocking(partial(services.store.approvals, session_id, undecided=not decided)))


def decide(services: Services, approval_id: str, decision: Any, session_id: str | None) -> Flow[Approval]:
    """Keep a decision that fits what was asked, and what is granted with it for longer."""
    given = {"approved": decision} if isinstance(decision, bool) else decision
    if not isinstance(given, Mapping) or "target" in given:
        raise DecisionNotAccepted(
            "a decision is True, False, or a dict with approved, value, reason and grant"
        )
    return (yield from run_blocking(partial(_decide, services, approval_id, dict(given), session_id)))


def _decide(services: Services, approval_id: str, given: dict[str, Any], session_id: str | None) -> Approval:
    """Look at a decision before it is kept: one that does not fit could never be taken back."""
    asked = [one for one in services.store.approvals(session_id, undecided=True) if one.id == approval_id]
    if session_id is not None and not asked:
        raise DecisionNotAccepted(f"session {session_id!r} does not wait for approval {approval_id!r}")
    wanted = given.pop("grant", None)
    try:
        decision = Decision.from_dict({**given, "target": approval_id})
        match_decisions([Suspension(**one.suspension) for one in asked], [decision] if asked else [])
    except DecisionError as error:
        raise DecisionNotAccepted(str(error)) from error
    if not asked:  # the store says what is wrong
        return services.store.decide(approval_id, given)
    if wanted is None:
        return journal.decide(services, asked[0], given)
    grant = permissions.grant_with(services, asked[0], decision, wanted)
    approval = journal.decide(services, asked[0], given, grant)
    permissions.answer_waiting(services, grant)
    return approval


def actions(services: Services, session_id: str | None) -> Flow[list[dict[str, Any]]]:
    """Return what can be done: the actions of application plugins and, for a session, of its agent's."""
    offered = [action.to_dict() for _, action in services.plugins.actions()]
    if session_id is None:
        return offered
    session = yield from load(services, session_id)
    core, config = core_of(services, session)
    return [*offered, *core.get_session_actions(config)]


def session_action(
    services: Services,
    session_id: str,
    plugin: str,
    action_id: str,
    params: Mapping[str, Any],
    context: Mapping[str, Any] | None,
    *,
    confirmed: bool,
) -> Flow[tuple[Session, dict[str, Any]]]:
    """Run an action of the session's agent, and store what it changes; `cancel` stops it."""
    own = caller_context(services, context)

    def work(writer: SessionWriter, active: ActiveRun) -> Flow[tuple[Session, dict[str, Any]]]:
        agent = services.resolve(writer.session)
        yield from read_whole(writer.session)
        used = SideUsage(agent)
        facts = application_context(services, own, agent, **used.facts)
        config = effective_config(agent, writer.session, {})
        try:
            session, result = yield from agent.core.session_action_flow(
                writer.session,
                config,
                plugin,
                action_id,
                dict(params),
                facts,
                confirmed=confirmed,
                cancellation=active.cancellation,
            )
        except AgentError as error:
            if _was_run(error):
                writer.log([*used.events, journal.executed(plugin, action_id, describe(error))])
                yield from run_blocking(partial(_told, writer.commit))
            raise
        writer.log([*used.events, journal.executed(plugin, action_id, result.get("error"))])
        yield from save_prepared(services, writer, session)
        return writer.session, result

    return (yield from with_writer(services, session_id, work))


def application_action(
    services: Services,
    plugin: str,
    action_id: str,
    params: Mapping[str, Any],
    context: Mapping[str, Any] | None,
    *,
    confirmed: bool,
) -> Flow[dict[str, Any]]:
    """Run an action of an application plugin, and carry out what it asks for: all of it or nothing."""
    member, action, values = services.plugins.find(plugin, action_id, params)
    own = caller_context(services, context)
    check_confirmed(action, confirmed=is_confirmed(confirmed, own))
    facts = application_context(services, own)
    tell = partial(_tell_of_action, services, values.get("session_id"))
    try:
        with services.actions.running(plugin, action_id) as cancellation:
            result, readings = yield from execute(services, member, action, values, facts, cancellation)
        mutations = Mutations.read(plugin, result)
        yield from mutate(services, mutations, readings, {(plugin, action_id)})
    except AgentError as error:
        event = journal.executed(plugin, action_id, describe(error))
        yield from run_blocking(partial(_told, partial(tell, event)))
        raise
    yield from run_blocking(partial(tell, journal.executed(plugin, action_id, result.get("error"))))
    return public_result(services.plugins, plugin, result)


def _was_run(error: AgentError) -> bool:
    """Say whether an action failed at its work; otherwise it was refused, and there is nothing to tell."""
    if isinstance(error, (UnknownActionError, ActionInputError, ActionNotConfirmedError, ArgumentTypeError)):
        return False
    return not (isinstance(error, PluginError) and error.hook == "get_actions")


def _told(tell: Callable[[], object]) -> None:
    """Log that an action failed; if that cannot be stored, the action's own error is still the one raised."""
    try:
        tell()
    except StoreError as error:
        _log.warning("action_failure_not_stored", error=str(error))


def _tell_of_action(services: Services, session_id: Any, event: ChangeEvent) -> None:
    """Log an action with the session that it names; one that names none, or a deleted one, for all."""
    try:
        if isinstance(session_id, str):
            journal.record(services, session_id, lambda: None, lambda _nothing: event)
            return
    except SessionNotFound:
        pass
    journal.record_for_all(services, [event])


def _is_part(given: Any) -> bool:
    """Say whether something has what each content part has: with less, a provider refuses the session."""
    if not isinstance(given, Mapping) or not isinstance(given.get("type"), str):
        return False
    return given["type"] != "text" or isinstance(given.get("text"), str)


def user_message(text: str, attachments: Any) -> list[Message]:
    """Return what a person says as a message, with what is attached as parts of it."""
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a string, not {type(text).__name__}")
    given = () if isinstance(attachments, (str, bytes, Mapping, File)) else attachments
    if given is not attachments or not all(isinstance(part, File) or _is_part(part) for part in given):
        raise ArgumentError(
            "attachments must be a list of `File` or content parts, each a dict with a `type`; "
            "a part of the type 'text' has a string as `text`"
        )
    if not given:
        return [Message("user", text)] if text else []
    said = [{"type": "text", "text": text}] if text else []
    parts = [as_part(part) if isinstance(part, File) else dict(part) for part in given]
    return [Message("user", text, multipart_content=[*said, *parts])]


def export(
    services: Services, session_id: str, path: str | PathLike[str], *, redact: bool, events: bool
) -> Flow[None]:
    """Write a session with its attachments to a file."""
    work = partial(transfer.export_session_file, assets=services.assets, redact=redact, events=events)
    yield from run_blocking(partial(work, services.store, session_id, path))


def _prepared(services: Services, session: Session) -> Flow[Session]:
    """Run what a session goes through before it is stored for the first time."""
    outcome = yield from lifecycle(services, "session_create", session)
    outcome = yield from lifecycle(services, "session_save_prepare", outcome.session)
    return outcome.session


def import_file(
    services: Services,
    source: PathLike[str] | bytes | str,
    agent_id: str | None,
    metadata: Mapping[str, Any],
    allow_system: bool | Sequence[str],  # noqa: FBT001 - passed on
) -> Flow[ImportedSession]:
    """Store a session from a file, under ids of its own, after its plugins have set it up like a new one."""
    chosen = choose_agent(services.config, agent_id)
    work = partial(transfer.import_session, services.store, source, assets=services.assets, agent_id=chosen)

    def prepare(session: Session) -> Session:
        return call(_prepared(services, session))

    made: ImportedSession = yield from run_blocking(
        partial(work, metadata=metadata, allow_system=allow_system, prepare=prepare)
    )
    event: ChangeEvent = {"type": "session_created", "agent_id": made.agent_id, "imported": True}
    tell = partial(journal.record, services, made.id, lambda: None, lambda _nothing: event)
    yield from run_blocking(tell)
    return made
