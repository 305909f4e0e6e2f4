"""One request from start to end, as people see it: prepared, run, kept, completed.

`chat` is the whole of it: the session is loaded and leased, what a crash left open is answered, what was
decided and what waits is taken along, and everything that the run brings is stored before it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app.agents import resolve_request_config
from agent_app.attachments import with_content
from agent_app.errors import SessionNotFound, StoreError
from agent_app.keeping import Keeper, hold
from agent_app.lifecycle import application_context, run_lifecycle
from agent_app.permissions import granted_rules
from agent_app.recovery import call_ids, not_to_repeat, recover
from agent_app.services import own_overrides, read_whole
from agent_core import AgentError, ArgumentError, Cancellation, Message
from agent_core.errors import RequestCancelled
from agent_core.log import get_logger
from agent_core.steps import Emit, Flow, Read, run_blocking, with_events
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.errors import describe, nearest
from agent_runtime.loop import run_request
from agent_runtime.results import Reason, Usage
from agent_runtime.runs import RunRequest
from agent_runtime.suspension import read_saved_run, unanswered, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agent_app.services import ActiveRun, Services
    from agent_app.store.base import Approval
    from agent_core import Session
    from agent_runtime import Checkpoint, ResolvedAgent, RunResult

MOST_TURNS = 100
"""How often a request goes on by itself with what came meanwhile."""

LIMITS = ("timeout", "token_budget", "cost_budget")
_log = get_logger("app")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one request shall do.

    Attributes:
        messages: What the user says.
        overrides: Settings for this request.
        stream: Whether the answer is wanted piece by piece.
        context: What plugins and tools are told beside what the platform tells them.
        take_over: Whether the session is taken from another process that has it.
        run_id: What the request's runs are called, so that another process can go on with them: it makes
            the same request again, under the same id.
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

    Messages that came meanwhile (`enqueue`) are answered as well, before the last event.

    Raises:
        SessionBusy: If this process uses the session already.
        SessionHeld: If another one does.
        ArgumentError: If there is nothing to say, nothing decided and nothing waiting.
    """

    def work(keeper: Keeper, active: ActiveRun) -> Flow[Session]:
        yield from read_whole(keeper.session)
        return (yield from _shown(services, keeper, _talk(services, keeper, active, request)))

    return (yield from hold(services, session_id, work, take_over=request.take_over))


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
        session = yield from _lifecycle(services, "request_prepare", session, agent, request)
        result = yield from _run(agent, _run_request(services, agent, session, request))
        session, error = result.session, result.error
        if error is None:
            session = yield from _lifecycle(
                services, "request_complete", session, agent, request, reason=result.reason._asdict()
            )
            yield Emit([_ended("final", session, [result])])
            return session
    except Exception as problem:  # noqa: BLE001 - whatever it is, plugins and the caller are told
        error = problem
    told = describe(error)
    _log.info("request_failed", session=session.session_id, **told)
    session = yield from _lifecycle(services, "request_error", session, agent, request, error=told)
    yield Emit([{"type": "error", "error": told}])
    return session


def _changed(agent: ResolvedAgent, base_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the caller has changed since `update_agent`."""
    known = agent.config
    return {key: value for key, value in base_config.items() if key != "agent_id" and known.get(key) != value}


def _talk(services: Services, keeper: Keeper, active: ActiveRun, request: Request) -> Flow[Session]:
    said = request.messages
    if any(message.multipart_content is not None for message in said):
        attached = partial(with_content, said, services.assets, keeper.session.session_id)
        said = yield from run_blocking(attached)
    messages = [*said, *(yield from run_blocking(keeper.take_waiting))]
    decided = yield from run_blocking(keeper.decided)
    if not (messages or decided) and _is_done(keeper.session, request):
        yield Emit([_already_ended(keeper.session)])
        return keeper.session
    _check_something_to_do(keeper.session, messages, decided, request)
    results: list[RunResult] = []
    for _ in range(MOST_TURNS):
        result = yield from _turn(services, keeper, active, request, messages, decided)
        if result is None:
            return keeper.session
        results.append(result)
        more = yield from _came_meanwhile(keeper, active, result)
        if more is None:
            break
        yield Emit([_ended("turn_end", keeper.session, [result])])
        messages, decided = more, []
    yield Emit([_ended("final", keeper.session, results)])
    return keeper.session


def _is_done(session: Session, request: Request) -> bool:
    """Say whether a request was made before, under the same id, and nothing of it is left to do."""
    return request.run_id is not None and not _broke_off(session, request) and not _asks_something(session)


def _broke_off(session: Session, request: Request) -> bool:
    """Say whether the session has a run of this request that another process has not brought to its end."""
    saved = read_saved_run(session)
    return saved is not None and request.run_id is not None and saved.run_id.startswith(f"{request.run_id}.")


def _already_ended(session: Session) -> dict[str, Any]:
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
    return last.role != "assistant" or "interrupted" in last.metadata or bool(unanswered(session))


def _came_meanwhile(keeper: Keeper, active: ActiveRun, result: RunResult) -> Flow[list[Message] | None]:
    """Return the messages that shall be answered now; None if the request is over."""
    interrupted, active.interrupted = active.interrupted, False
    if interrupted:
        active.cancellation = Cancellation()
    elif result.reason.code != "natural_end":
        return None
    messages = yield from run_blocking(keeper.take_waiting)
    # The message that interrupts may have been delivered between two steps just before it did.
    return messages or ([] if interrupted and _asks_something(keeper.session) else None)


def _turn(
    services: Services,
    keeper: Keeper,
    active: ActiveRun,
    request: Request,
    messages: Sequence[Message],
    decided: Sequence[Approval],
) -> Flow[RunResult | None]:
    """Run the agent once, and keep everything; None if that failed, which plugins and caller are told."""
    try:
        yield from _recover(services, keeper, request)
        result = yield from _prepared_run(services, keeper, active, request, messages, decided)
        if result.error is None:
            yield from _complete(services, keeper, request, result)
            return result
        error = result.error
    except Exception as problem:  # noqa: BLE001 - whatever it is, plugins and the caller are told
        error = problem
    yield from _fail(services, keeper, request, error)
    return None


def _recover(services: Services, keeper: Keeper, request: Request) -> Flow[None]:
    """Answer the calls that a crash left open, or that a branch has without their results.

    A request that goes on with its own run leaves those open that can be run again.
    """
    session = keeper.session
    if not unanswered(session):
        return
    agent = services.resolve(session)
    begun = yield from run_blocking(partial(services.store.open_intents, session.session_id))
    if _broke_off(session, request):
        session, answered = recover(
            agent.core, session, begun, only=not_to_repeat(agent.tools, begun, session)
        )
        yield from run_blocking(partial(keeper.save, session, results=answered))
        return
    elsewhere = yield from run_blocking(partial(_calls_of_source, services, session.session_id))
    session, answered = recover(agent.core, session, begun, elsewhere)
    _log.warning("calls_recovered", session=session.session_id, calls=answered)
    yield from run_blocking(partial(keeper.save, session, results=[*begun, *answered]))


def _calls_of_source(services: Services, session_id: str) -> Collection[str]:
    """Return the calls of the session that this one was taken from; if that is gone, all of them."""
    parent = services.store.info(session_id).parent_id
    if parent is None:
        return ()
    try:
        return call_ids(services.read(parent).session)
    except SessionNotFound:
        return call_ids(services.read(session_id).session)


def _prepared_run(
    services: Services,
    keeper: Keeper,
    active: ActiveRun,
    request: Request,
    messages: Sequence[Message],
    decided: Sequence[Approval],
) -> Flow[RunResult]:
    agent = services.resolve(keeper.session)
    session = yield from _lifecycle(services, "request_prepare", keeper.session, agent, request)
    yield from run_blocking(partial(keeper.save, session))
    agent = services.resolve(session)  # the lifecycle may have repaired the session's settings
    run = replace(
        _run_request(services, agent, session, request),
        messages=messages,
        decisions=[{**(one.decision or {}), "target": one.id} for one in decided],
        cancellation=active.cancellation,
        checkpoint=partial(_keep, keeper, request, [one.id for one in decided]),
        inbox=keeper.steering,
    )
    return (yield from _run(agent, run))


def _keep(keeper: Keeper, request: Request, decided: Sequence[str], checkpoint: Checkpoint) -> None:
    keeper.checkpoint(checkpoint, decided=decided)
    if request.kept is not None:
        request.kept(checkpoint)


def _run_request(services: Services, agent: ResolvedAgent, session: Session, request: Request) -> RunRequest:
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
        context=application_context(services, request.context),
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


def _run(agent: ResolvedAgent, run: RunRequest) -> Flow[RunResult]:
    return with_events(run_request(agent, run, SYSTEM_CLOCK), _without_ends)


def _without_ends(events: list[Any]) -> list[Any]:
    """Leave out how a run ended: the request tells that itself, when everything is kept."""
    return [event for event in events if event["type"] not in ("run_end", "error")]


def effective_config(agent: ResolvedAgent, session: Session, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request: the agent's, the session's own, then the caller's."""
    return resolve_request_config(agent.config, _own(agent, session), overrides)


def _over(agent: ResolvedAgent, session: Session, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request changes of the agent's settings."""
    wanted = resolve_request_config({}, _own(agent, session), overrides)
    return {key: value for key, value in wanted.items() if key not in ("provider", "agent_id")}


def _own(agent: ResolvedAgent, session: Session) -> dict[str, Any]:
    """Return the session's own settings; a model of ours that it asks for is the agent's already."""
    own = own_overrides(session)
    return {key: value for key, value in own.items() if (key, value) != ("model", agent.model.id)}


def _lifecycle(
    services: Services,
    name: str,
    session: Session,
    agent: ResolvedAgent | None,
    request: Request,
    **told: Any,
) -> Flow[Session]:
    """Run a lifecycle with the settings of a request, and show which of its actions failed.

    Without an agent, since there is none to be had, only application plugins take part.
    """
    outcome = yield from run_lifecycle(
        services,
        name,
        session,
        core=None if agent is None else agent.core,
        config={} if agent is None else effective_config(agent, session, request.overrides),
        context=request.context,
        told=told,
    )
    if problems := outcome.problems:
        yield Emit([{"type": "lifecycle_error", "lifecycle": name, **problem} for problem in problems])
    return outcome.session


def _complete(services: Services, keeper: Keeper, request: Request, result: RunResult) -> Flow[None]:
    agent = services.resolve(result.session)
    reason = result.reason._asdict()
    session = yield from _lifecycle(
        services, "request_complete", result.session, agent, request, reason=reason
    )
    yield from save_prepared(services, keeper, session, request)


def _ended(kind: str, session: Session, results: Sequence[RunResult]) -> dict[str, Any]:
    """Return the event of an end: that of a turn, or of all turns of a request."""
    last = results[-1]
    return {
        "type": kind,
        "session": session,
        "messages": [message for result in results for message in result.messages],
        "text": last.text,
        "reason": last.reason._asdict(),
        "usage": sum((result.usage for result in results), Usage()).to_dict(),
        "approvals": [one.id for one in last.suspended],
    }


def _fail(services: Services, keeper: Keeper, request: Request, error: Exception) -> Flow[None]:
    """Tell the plugins and the caller what went wrong; what was produced up to then is kept."""
    told = describe(error)
    _log.info("request_failed", session=keeper.session.session_id, **told)
    agent = services.resolve_if_possible(keeper.session)
    session = yield from _lifecycle(services, "request_error", keeper.session, agent, request, error=told)
    try:
        yield from save_prepared(services, keeper, session, request)
    except AgentError as worse:
        _log.warning("request_error_not_saved", session=session.session_id, error=str(worse))
    yield Emit([{"type": "error", "error": told}])


def save_prepared(
    services: Services,
    keeper: Keeper,
    session: Session,
    request: Request | None = None,
    *,
    agent_id: str | None = None,
) -> Flow[None]:
    """Save a session after its plugins had a last look at it, with another agent if one is given."""
    agent = services.resolve_if_possible(session) if services.agents_act else None
    prepared = yield from _lifecycle(
        services, "session_save_prepare", session, agent, request if request is not None else Request()
    )
    yield from run_blocking(partial(keeper.save, prepared, agent_id=agent_id))


def _shown(services: Services, keeper: Keeper, flow: Flow[Session]) -> Flow[Session]:
    """Run a flow with its events written to the log before they are shown."""
    resume: Any = flow.send
    value: Any = None
    while True:
        try:
            step = resume(value)
        except StopIteration as done:
            session: Session = done.value
            return session
        try:
            if isinstance(step, (Emit, Read)) and step.events:
                step.events = yield from run_blocking(partial(_logged, services, keeper, step.events))
            resume, value = flow.send, (yield step)
        except (Exception, RequestCancelled) as error:  # noqa: BLE001 - passed on to the flow
            resume, value = flow.throw, error


def _logged(services: Services, keeper: Keeper, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    session_id = keeper.session.session_id
    if events[-1]["type"] == "kept":  # it comes alone, and only to whoever makes the request
        return events
    try:
        return services.hub.log(session_id, events, keeper.lease)
    except StoreError as error:
        # The caller must hear of the end in any case, also when the log, or the session, is gone.
        if events[-1]["type"] != "error":
            raise
        _log.warning("error_not_logged", session=session_id, error=str(error))
        return events
