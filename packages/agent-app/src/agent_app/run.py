"""One request from start to end, as people see it: prepared, run, kept, completed.

`chat` is the whole of it: the session is loaded and leased, what a crash left open is answered, what was
decided and what waits is taken along, and everything that the run brings is stored before it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app.agents import KEYS, resolve_request_config
from agent_app.attachments import with_content
from agent_app.errors import SessionNotFound, StoreError
from agent_app.grants import granted_rules
from agent_app.lifecycle import (
    SideUsage,
    application_context,
    end_lifecycle,
    run_lifecycle,
    somebody_acts,
)
from agent_app.outbox import Outbox
from agent_app.services import AGENT, OVERRIDES, effective_config, own_settings, read_for_request, read_whole
from agent_app.session_writer import with_writer
from agent_core import AgentError, ArgumentError, Cancellation, Message
from agent_core.errors import nearest
from agent_core.frozen import EMPTY
from agent_core.log import get_logger
from agent_core.steps import Emit, Flow, run_blocking, with_events
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.errors import describe
from agent_runtime.loop import run_agent, run_request
from agent_runtime.recovery import call_ids, recover
from agent_runtime.results import Reason, Usage
from agent_runtime.runs import RunRequest
from agent_runtime.suspension import read_saved_run, unanswered, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agent_app.services import ActiveRun, Services
    from agent_app.session_writer import SessionWriter
    from agent_app.store.base import Approval
    from agent_core import Session
    from agent_core.events import Event, FinalEvent, TurnEnd
    from agent_runtime import Checkpoint, ResolvedAgent, RunResult

MOST_TURNS = 100
"""How often a request continues by itself with messages that came while it ran."""

LIMITS = ("timeout", "token_budget", "cost_budget")
_ENDS = ("final", "error")
_log = get_logger("app")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one request should do.

    Attributes:
        messages: What the user says.
        overrides: Settings for this request.
        stream: Whether the answer is wanted piece by piece.
        context: What plugins and tools receive in addition to the platform's own context.
        take_over: Whether the session is taken from another process that has it.
        run_id: What the request's runs are called, so that another process can continue them: it asks
            again under the same id, and without messages, since those of the first time are stored.
        kept: Called with each checkpoint of the runs once it is stored. An event `kept` follows, which is
            not logged: whoever does not ask for the next one stops the run there.
        limits: What a run may take: `timeout`, `token_budget` and `cost_budget`, as of `RunRequest`.
    """

    messages: Sequence[Message] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True
    context: Mapping[str, Any] | None = None
    take_over: bool = False
    run_id: str | None = None
    kept: Callable[[Checkpoint], object] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.limits:
            if name not in LIMITS:
                raise ArgumentError(f"there is no limit {name!r}: {nearest(name, LIMITS)}")


def chat(services: Services, session_id: str, request: Request) -> Flow[Session]:
    """Say something in a stored session and run its agent until it waits for somebody.

    Messages that came in while it ran (`enqueue`) are answered as well, before the last event.

    Raises:
        SessionBusy: If this process uses the session already.
        SessionHeld: If another one does.
        ArgumentError: If there is nothing to say, nothing decided and nothing waiting.
    """

    def work(writer: SessionWriter, active: ActiveRun) -> Flow[Session]:
        active.is_run = True
        return (yield from _Chat(services, writer, active, request).run())

    return (yield from with_writer(services, session_id, work, take_over=request.take_over))


def send(
    services: Services, session: Session, base_config: Mapping[str, Any], request: Request
) -> Flow[Session]:
    """Run an agent on a session that the caller keeps; nothing is stored, and no other session is touched.

    The last event is `final` with the session and its new messages, or `error`.
    """
    agent: ResolvedAgent | None = None
    try:
        yield from read_whole(session)
        agent = services.resolve(session, base_config.get("agent_id"))
        request = replace(request, overrides={**_changed(agent, base_config), **request.overrides})
        session, problems = yield from _dispatch(services, "request_prepare", session, agent, request)
        yield Emit(problems)
        asked = replace(_run_asked(services, agent, session, request), ask_anyway=True)
        run = run_request(agent, asked, SYSTEM_CLOCK)
        result = yield from with_events(run, _without_ends)
        session, error = result.session, result.error
        if error is None:
            about = {"reason": result.reason._asdict()}
            session, problems = yield from _dispatch(
                services, end_lifecycle(result.reason), session, agent, request, about
            )
            yield Emit([*problems, _ended(session, [result])])
            return session
    except Exception as problem:  # whatever it is, plugins and the caller hear of it
        error = problem
    about = {"error": describe(error)}
    _log.info("request_failed", session=session.session_id, **about["error"])
    session, problems = yield from _dispatch(services, "request_error", session, agent, request, about)
    yield Emit([*problems, {"type": "error", **about}])
    return session


def _without_ends(events: list[Any]) -> list[Any]:
    """Leave out how a run ended: the request says that itself."""
    return [event for event in events if event["type"] not in ("run_end", "error")]


def _changed(agent: ResolvedAgent, base_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the caller has changed since `update_agent`."""
    known, not_settings = agent.config, (AGENT, *KEYS)
    return {
        key: value
        for key, value in base_config.items()
        if key not in not_settings and known.get(key) != value
    }


class _Chat:
    """One request in a stored session: turn after turn, until there is nothing left to answer."""

    def __init__(
        self, services: Services, writer: SessionWriter, active: ActiveRun, request: Request
    ) -> None:
        self._services = services
        self._writer = writer
        self._active = active
        self._request = request
        self._outbox = Outbox(writer, request.kept)

    def run(self) -> Flow[Session]:
        """Run it such that its last event is `final` or `error`, whatever happens once it has begun."""
        try:
            yield from self._talk()
        except Exception as problem:
            if not self._outbox.last or self._outbox.last in _ENDS:  # nothing was shown yet, or the end was
                raise
            about = describe(problem)
            _log.warning("request_failed", session=self._writer.session.session_id, **about)
            yield from self._outbox.fail({"type": "error", "error": about})
        return self._writer.session

    def _talk(self) -> Flow[None]:
        writer, request = self._writer, self._request
        said, decided = (yield from self._said()), writer.decided()
        if said and (decided or _broke_off(writer.session, request)):
            # Calls are answered before the message gets into the session: until then it is safe in the queue.
            yield from run_blocking(partial(writer.queue, said))
        begun = bool(said or decided) or (yield from _has_begun(self._services, writer.session, request))
        messages = list(said)
        if writer.has_inputs:
            messages += yield from run_blocking(partial(writer.first_turn, begun=begun))
        if not (messages or decided) and _is_done(writer.session, request):
            yield from self._outbox.end(_already_ended(writer.session), begun=None)
            return
        _check_something_to_do(writer.session, messages, decided, request)
        results: list[RunResult] = []
        for turn in range(MOST_TURNS):
            result = yield from self._turn(messages, decided)
            if result is None:
                return
            results.append(result)
            goes_on = self._must_go_on(result) if turn + 1 < MOST_TURNS else None
            end = _ended(writer.session, results)
            try:
                more = yield from self._outbox.end(end, begun=goes_on)
            except StoreError as error:
                yield from self._fail(error)
                return
            if more is None:
                return
            writer.log([_turn_ended(writer.session, result)])
            messages, decided = more, []

    def _said(self) -> Flow[Sequence[Message]]:
        """Return what the request says, with the content of what is attached."""
        said = self._request.messages
        if not any(message.multipart_content is not None for message in said):
            return said
        session_id = self._writer.session.session_id
        return (yield from run_blocking(partial(with_content, said, self._services.assets, session_id)))

    def _must_go_on(self, result: RunResult) -> bool | None:
        """Say whether another turn has begun already; None if there will be none, whatever waits."""
        interrupted, self._active.interrupted = self._active.interrupted, False
        if interrupted:
            self._active.cancellation = Cancellation()
            # The message that interrupts may have been delivered between two steps just before it did.
            return _asks_something(self._writer.session)
        return False if result.reason.code in ("natural_end", "length") else None

    def _turn(self, messages: Sequence[Message], decided: Sequence[Approval]) -> Flow[RunResult | None]:
        """Run the agent once, and store everything; None if that failed, which plugins and caller hear."""
        agent: ResolvedAgent | None = None
        try:
            agent = self._services.resolve(self._writer.session)
            yield from read_for_request(self._writer.session, agent, self._outbox.tell)
            yield from self._recover(agent)
            before = self._writer.session
            session = yield from self._lifecycle("request_prepare", before, agent)
            self._writer.keep(session)
            agent = self._resolved(agent, before, session)
            result = yield from self._run(agent, session, messages, decided)
            if result.error is None:
                agent = self._resolved(agent, session, result.session)
                about = {"reason": result.reason._asdict()}
                ended = end_lifecycle(result.reason)
                session = yield from self._lifecycle(ended, result.session, agent, about)
                yield from self._keep_prepared(session, agent)
                return result
            error = result.error
        except Exception as problem:  # whatever it is, plugins and the caller hear of it
            error = problem
        yield from self._fail(error)
        return None

    def _resolved(self, agent: ResolvedAgent, before: Session, now: Session) -> ResolvedAgent:
        """Return the agent of a session: the same one, unless a plugin has changed what it depends on."""
        same = all(before.metadata.get(key) == now.metadata.get(key) for key in (AGENT, OVERRIDES))
        return agent if same else self._services.resolve(now)

    def _recover(self, agent: ResolvedAgent) -> Flow[None]:
        """Answer the calls that a crash left open, or that a branch has without their results.

        A request that continues its own run does so itself, and runs those again that can be.
        """
        services, session = self._services, self._writer.session
        if not unanswered(session) or _broke_off(session, self._request):
            return
        begun = yield from run_blocking(partial(services.store.open_intents, session.session_id))
        finished = yield from run_blocking(partial(_known_results, services, session))
        elsewhere = yield from run_blocking(partial(_calls_of_source, services, session.session_id))
        session, answered = recover(agent.core, session, begun, elsewhere, finished=finished)
        _log.warning("calls_recovered", session=session.session_id, calls=answered)
        self._writer.keep(session, results=[*begun, *answered])
        yield from self._outbox.settle()

    def _run(
        self,
        agent: ResolvedAgent,
        session: Session,
        messages: Sequence[Message],
        decided: Sequence[Approval],
    ) -> Flow[RunResult]:
        run = replace(
            _run_asked(self._services, agent, session, self._request),
            messages=messages,
            decisions=[{**(one.decision or {}), "target": one.id} for one in decided],
            cancellation=self._active.cancellation,
        )
        flow = run_agent(agent, run, SYSTEM_CLOCK, keeps=True)
        return self._outbox.relay(flow, [one.id for one in decided])

    def _lifecycle(
        self,
        name: str,
        session: Session,
        agent: ResolvedAgent | None,
        about: Mapping[str, Any] = EMPTY,
    ) -> Flow[Session]:
        """Run a lifecycle when everything up to it is stored, since its actions may read the session."""
        if not somebody_acts(self._services, name):
            return session
        yield from self._outbox.settle()
        session, events = yield from _dispatch(self._services, name, session, agent, self._request, about)
        self._writer.log(events)
        return session

    def _keep_prepared(self, session: Session, agent: ResolvedAgent | None) -> Flow[None]:
        """Have a session stored after its plugins had a last look at it."""
        self._writer.keep((yield from self._lifecycle("session_save_prepare", session, agent)))

    def _fail(self, error: Exception) -> Flow[None]:
        """Tell the plugins and the caller what went wrong; what was produced up to then is stored."""
        about = describe(error)
        session = self._writer.session
        _log.info("request_failed", session=session.session_id, **about)
        try:
            agent = self._services.resolve_if_possible(session)
            session = yield from self._lifecycle("request_error", session, agent, {"error": about})
            yield from self._keep_prepared(session, agent)
            yield from self._outbox.settle()
            if isinstance(error, StoreError):  # whoever reads only that must not say everything again
                about = {**about, "message": f"{about['message']}; a second try stored everything up to here"}
        except AgentError as worse:
            _log.warning("request_error_not_saved", session=session.session_id, error=str(worse))
        yield from self._outbox.fail({"type": "error", "error": about})


def _is_done(session: Session, request: Request) -> bool:
    """Say whether a request was made before, under the same id, and nothing of it is left to do."""
    return request.run_id is not None and not _broke_off(session, request) and not _asks_something(session)


def _has_begun(services: Services, session: Session, request: Request) -> Flow[bool]:
    """Say whether the session has a turn that is not over, which comes before what is queued.

    A message that nobody has answered is one, and so are calls in the middle of which a run failed or its
    process died, unless somebody cancelled that.
    """
    if _broke_off(session, request):
        return True
    if not _asks_something(session):
        return False
    last = yield from run_blocking(partial(_last_border, services, session))
    if (last.get("reason") or {}).get("code") == "cancelled":
        return False
    return session.messages[-1].role == "user" or last.get("type") in ("run_start", "error")


def _last_border(services: Services, session: Session) -> dict[str, Any]:
    """Return the last event of the log that tells of a run's begin or end; an empty one if there is none."""
    borders = ("run_start", "turn_end", *_ENDS)
    return next((one for one in services.hub.read_back(session.session_id) if one["type"] in borders), {})


def _broke_off(session: Session, request: Request) -> bool:
    """Say whether the session has a run of this request that another process has not brought to its end."""
    saved = read_saved_run(session)
    return saved is not None and request.run_id is not None and saved.run_id.startswith(f"{request.run_id}.")


def _already_ended(session: Session) -> FinalEvent:
    said = [message for message in session.messages if message.role == "assistant" and message.content]
    return {
        "type": "final",
        "session": session,
        "messages": [],
        "text": str(said[-1].content) if said else "",
        "reason": Reason("suspended" if waiting(session) else "natural_end")._asdict(),
        "usage": Usage().to_dict(),
        "approvals": [one.id for one in waiting(session)],
    }


def _check_something_to_do(
    session: Session, messages: Sequence[Message], decided: Sequence[Approval], request: Request
) -> None:
    if messages or decided or _asks_something(session) or _broke_off(session, request):
        return
    ids = [one.id for one in waiting(session)]
    if ids:
        raise ArgumentError(f"the session waits for decisions about {ids}: decide, or say something else")
    raise ArgumentError("there is nothing to say: give a text, a decision, or enqueue a message before")


def _asks_something(session: Session) -> bool:
    """Say whether a session ends with something that the model has not answered yet, as a branch may."""
    if not session.messages or waiting(session):
        return False
    last = session.messages[-1]
    return last.role != "assistant" or last.is_interrupted or bool(unanswered(session))


def _known_results(services: Services, session: Session) -> dict[str, Mapping[str, Any]]:
    """Return the results of the last answer's calls that are known although the transcript lacks them.

    They are stored with the run, or somebody was shown them: earlier versions did that first.
    """
    results: dict[str, Mapping[str, Any]] = {}
    for event in services.hub.read_back(session.session_id):
        if event["type"] == "step_start":  # models use the ids of calls again in later answers
            break
        if event["type"] == "tool_call_result" and isinstance(event.get("message"), dict):
            results.setdefault(event["call_id"], event["message"])
    saved = read_saved_run(session)
    return {**results, **(saved.finished if saved is not None else {})}


def _calls_of_source(services: Services, session_id: str) -> Collection[str]:
    """Return the calls of the session that this one was taken from; if that is gone, all of them."""
    parent = services.store.info(session_id).parent_id
    if parent is None:
        return ()
    try:
        return call_ids(services.read(parent).session)
    except SessionNotFound:
        return call_ids(services.read(session_id).session)


def _run_asked(services: Services, agent: ResolvedAgent, session: Session, request: Request) -> RunRequest:
    return RunRequest(
        agent.spec.id,
        request.messages,
        session,
        run_id=_run_id(session, request),
        resumable=request.run_id is not None,
        pauses=request.kept is not None,
        **request.limits,
        config=_over(agent, session, request.overrides),
        stream=request.stream,
        context=application_context(services, request.context, agent),
        granted=partial(granted_rules, services),
    )


def _run_id(session: Session, request: Request) -> str | None:
    """Return the id of a run: the one that broke off, or one of its own for each turn of the request."""
    if request.run_id is None:
        return None
    saved = read_saved_run(session)
    if saved is not None and (_broke_off(session, request) or saved.waiting):
        return saved.run_id
    return f"{request.run_id}.{len(session.messages)}"


def _over(agent: ResolvedAgent, session: Session, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request changes of the agent's settings."""
    wanted = resolve_request_config({}, own_settings(agent, session), overrides)
    return {key: value for key, value in wanted.items() if key not in ("provider", "agent_id")}


def _dispatch(
    services: Services,
    name: str,
    session: Session,
    agent: ResolvedAgent | None,
    request: Request,
    about: Mapping[str, Any] = EMPTY,
) -> Flow[tuple[Session, list[Event]]]:
    """Run a lifecycle with the settings of a request; return the session and the events to log.

    There is an event for each failure, and for each answer that an action asked a model for. Without an
    agent, since there is none to be had, only application plugins take part.
    """
    used = None if agent is None else SideUsage(agent)
    outcome = yield from run_lifecycle(
        services,
        name,
        session,
        agent=agent,
        config={} if agent is None else effective_config(agent, session, request.overrides),
        context=request.context,
        facts=about if used is None else {**about, **used.facts},
    )
    failed: list[Event] = [
        {
            "type": "lifecycle_error",
            "lifecycle": name,
            "plugin": problem["plugin"],
            "action_id": problem["action_id"],
            "error": problem["error"],
        }
        for problem in outcome.problems
    ]
    return outcome.session, [*(() if used is None else used.events), *failed]


def _ended(session: Session, results: Sequence[RunResult]) -> FinalEvent:
    """Return the event that ends a request, after all its turns."""
    last = results[-1]
    return {
        "type": "final",
        "session": session,
        "messages": [message for result in results for message in result.messages],
        "text": last.text,
        "reason": last.reason._asdict(),
        "usage": sum((result.usage for result in results), Usage()).to_dict(),
        "approvals": [one.id for one in last.suspended],
    }


def _turn_ended(session: Session, result: RunResult) -> TurnEnd:
    return {
        "type": "turn_end",
        "session": session,
        "messages": result.messages,
        "text": result.text,
        "reason": result.reason._asdict(),
        "usage": result.usage.to_dict(),
        "approvals": [one.id for one in result.suspended],
    }


def save_prepared(
    services: Services, writer: SessionWriter, session: Session, *, agent_id: str | None = None
) -> Flow[None]:
    """Save a session after its plugins had a last look at it, with another agent if one is given."""
    agent = services.resolve_if_possible(session) if services.agents_act else None
    prepared, _ = yield from _dispatch(services, "session_save_prepare", session, agent, Request())
    writer.keep(prepared, agent_id=agent_id)
    yield from run_blocking(writer.commit)
